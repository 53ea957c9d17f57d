"""Reads and writes safetensors files with NumPy only (the format: an eight-byte length, a JSON
header with type, shape and place of each tensor, then their bytes).

It reads F64, F32, F16, BF16 (widened to float32) and integers.  A tensor of I8 goes with a tensor
``NAME.scale`` of one float per row: together they are one matrix of floats, rounded to bfloat16's
numbers, which a CPU multiplies faster.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sassxlate.errors import ModelError, Where

Array = NDArray[Any]
_TYPES: Mapping[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
    "I16": "<i2", "I8": "<i1", "U8": "<u1",
}  # fmt: skip
_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32",
          "int8": "I8", "uint8": "U8"}  # fmt: skip
SCALE = ".scale"
_MOST_HEADER = 100 << 20


def _bad(path: Path, why: str) -> ModelError:
    return ModelError("SX1003", why, Where(file=str(path)))


def types(path: Path) -> dict[str, str]:
    """The type of each tensor, as in the file.  ModelError as :func:`read`."""
    return {name: str(row.get("dtype")) for name, row in _header(path)[0].items()}


def read(path: Path) -> dict[str, Array]:
    """All tensors by name, floats as float32.

    Raises ModelError SX1003 for an invalid file.
    """
    header, body = _header(path)
    return _scaled(path, {name: _tensor(path, name, row, body) for name, row in header.items()})


def _header(path: Path) -> tuple[dict[str, Any], memoryview]:
    """A file's header on its tensors, and their bytes."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError("SX1001", error.strerror or "cannot be read", Where(str(path))) from error
    if len(data) < 8:
        raise _bad(path, "shorter than its header")
    size = int.from_bytes(data[:8], "little")
    if size > min(_MOST_HEADER, len(data) - 8):
        raise _bad(path, f"a header of {size} bytes in a file of {len(data)}")
    try:
        header = json.loads(data[8 : 8 + size])
    except ValueError as error:
        raise _bad(path, f"the header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise _bad(path, "the header is not a table")
    rows = {k: v for k, v in cast("dict[str, Any]", header).items() if k != "__metadata__"}
    if not all(isinstance(row, dict) for row in rows.values()):
        raise _bad(path, "a tensor is not described")
    return rows, memoryview(data)[8 + size :]


def _tensor(path: Path, name: str, row: Any, body: memoryview) -> Array:
    try:
        kind, shape, (first, end) = (
            str(row["dtype"]),
            [int(n) for n in row["shape"]],
            row["data_offsets"],
        )
        dtype = np.dtype(_TYPES[kind])
    except (KeyError, TypeError, ValueError) as error:
        raise _bad(path, f"tensor {name!r} is not described: {error!r}") from None
    count = 1
    for n in shape:
        count *= n
    right = isinstance(first, int) and isinstance(end, int) and 0 <= first <= end <= len(body)
    if not right or min(shape, default=0) < 0 or end - first != count * dtype.itemsize:
        raise _bad(path, f"tensor {name!r} is not where its header says")
    array = np.frombuffer(body[first:end], dtype).reshape(shape)
    if kind == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _scaled(path: Path, tensors: dict[str, Array]) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for name, array in tensors.items():
        if name.endswith(SCALE) and name.removesuffix(SCALE) in tensors:
            continue
        scale = tensors.get(name + SCALE)
        if scale is None:
            out[name] = array
        elif array.ndim != 2 or scale.shape != (array.shape[0],):
            raise _bad(path, f"{name + SCALE!r} is not a scale of {name!r}")
        else:
            wide = array.astype(np.float32) * scale.astype(np.float32)[:, None]
            out[name] = (rounded(wide).astype(np.uint32) << 16).view(np.float32)
    return out


def write(path: Path, tensors: Mapping[str, Array], metadata: Mapping[str, str] | None = None,
          bfloat: bool = False) -> None:  # fmt: skip
    """Writes tensors; ``bfloat``: float32 ones as BF16, rounded to nearest even."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    parts: list[bytes] = []
    at = 0
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        kind = _NAMES[array.dtype.name]
        if bfloat and kind == "F32":
            array, kind = rounded(array), "BF16"
        data = array.tobytes()
        header[name] = {"dtype": kind, "shape": list(tensors[name].shape),
                        "data_offsets": [at, at + len(data)]}  # fmt: skip
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def rounded(x: Array) -> NDArray[np.uint16]:
    """float32s as the bits of bfloat16, to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    near = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    return np.where(np.isnan(x), bits >> 16 | 0x40, near).astype("<u2")


def int8(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Matrices as int8 with one scale per row; other tensors are unchanged."""
    out: dict[str, Array] = {}
    for name, array in tensors.items():
        if array.ndim != 2 or array.dtype != np.float32:
            out[name] = array
            continue
        scale = np.maximum(np.abs(array).max(axis=1), 1e-12) / 127
        out[name] = np.rint(array / scale[:, None]).astype(np.int8)
        out[name + SCALE] = scale.astype(np.float32)
    return out

"""Results of operators: flat lists of tensors, their compact form in a file, and comparisons."""

from __future__ import annotations

import base64
import importlib
import zlib
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, cast

from .declare import Tolerance

torch: Any = importlib.import_module("torch")

WHOLE_BYTES = 2048
SAMPLE = 128
HALF_UNITS = 8
"""The most units for types of 16 bits: they are computed in float32 and rounded at the end."""


def flat(value: Any) -> list[Any]:
    """The tensors of a result, on the CPU, dense; numbers become tensors."""
    if isinstance(value, list | tuple):
        return [tensor for part in cast("Iterable[Any]", value) for tensor in flat(part)]
    if not torch.is_tensor(value):
        return [torch.tensor(value)]
    return [value.detach().cpu().resolve_conj().resolve_neg().contiguous()]


def _bytes(tensor: Any) -> bytes:
    """A contiguous tensor's bytes, every NaN the same."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.is_floating_point():
        tensor = torch.where(tensor.isnan(), torch.full_like(tensor, float("nan")), tensor)
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def _sampled(tensor: Any) -> Any:
    """The elements that a file keeps of a tensor."""
    line = tensor.reshape(-1)
    if line.numel() * line.element_size() <= WHOLE_BYTES:
        return line
    return line[torch.arange(SAMPLE) * (line.numel() - 1) // (SAMPLE - 1)]


def compact(tensor: Any) -> dict[str, Any]:
    """A row's form of one tensor: type, shape, digest of all bytes, some values."""
    kept = zlib.compress(_bytes(_sampled(tensor)), 9)
    return {
        "type": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "digest": blake2b(_bytes(tensor), digest_size=12).hexdigest(),
        "kept": base64.b64encode(kept).decode("ascii"),
    }


def against_kept(got: list[Any], rows: list[dict[str, Any]], tolerance: Tolerance) -> str:
    """Compares with a file's values: "" if the bits are equal, "close", or what differs."""
    if len(got) != len(rows):
        return f"{len(got)} results, not {len(rows)}"
    said = ""
    for tensor, row in zip(got, rows, strict=True):
        mine = compact(tensor)
        if (mine["type"], mine["shape"]) != (row["type"], row["shape"]):
            return f"{mine['type']} {mine['shape']}, not {row['type']} {row['shape']}"
        if mine["digest"] == row["digest"]:
            continue
        raw = bytearray(zlib.decompress(base64.b64decode(row["kept"])))
        if not raw:
            return "empty, and another digest"
        theirs = torch.frombuffer(raw, dtype=torch.uint8).view(tensor.dtype)
        fault = differs(_sampled(tensor), theirs, tolerance)
        if fault:
            return fault
        said = "close"
    return said


def compare(got: list[Any], expected: list[Any], tolerance: Tolerance) -> str:
    """Compares with the CPU's result: "" if within the tolerance, otherwise what differs."""
    if len(got) != len(expected):
        return f"{len(got)} results, not {len(expected)}"
    for mine, theirs in zip(got, expected, strict=True):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            return f"{mine.dtype} {list(mine.shape)}, not {theirs.dtype} {list(theirs.shape)}"
        if tolerance.units >= 0 and (fault := differs(mine, theirs, tolerance)):
            return fault
    return ""


def differs(mine: Any, theirs: Any, tolerance: Tolerance) -> str:
    """What is farther apart than the tolerance, in words; "" if nothing is."""
    mine, theirs = mine.reshape(-1), theirs.reshape(-1)
    if not mine.numel():
        return ""
    exact = tolerance.units == 0 or not (theirs.is_floating_point() or theirs.is_complex())
    same = (mine == theirs) | ((mine != mine) & (theirs != theirs))
    if exact:
        bad = ~same
    else:
        eps = torch.finfo(theirs.dtype).eps
        units = tolerance.units if tolerance.units > 0 else 1000.0
        if theirs.dtype in (torch.float16, torch.bfloat16):
            units = min(units, HALF_UNITS)
        wide = torch.complex128 if theirs.is_complex() else torch.float64
        a, b = mine.to(wide), theirs.to(wide)
        size = b.abs()
        finite = size[size.isfinite()]
        scale = finite.max().item() if tolerance.of == "largest" and finite.numel() else 0.0
        bad = ~(same | ((a - b).abs() <= units * eps * (size + scale)))
    if not bad.any():
        return ""
    at = int(bad.nonzero()[0, 0])
    return (
        f"{int(bad.sum())} of {bad.numel()} elements; [{at}] is {mine[at].item()!r}, "
        f"not {theirs[at].item()!r}"
    )

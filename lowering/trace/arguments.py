"""Parses the arguments of a kernel on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sassxlate.disasm.inputs import (
    CodeOf,
    kernel_matches,
    matching_images,
    no_match,
    read_input,
    require_machine_code,
)

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin

import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers import Kernel
from sassxlate.errors import UsageError

Bytes = NDArray[np.uint8]
FORMS = """TYPE:VALUE (u8 i8 u16 i16 u32 i32 u64 i64 f32 f64), hex:BYTES,
buf:SIZE[:zeros|random|count|ones] or file:PATH"""
_NUMBERS = {
    "u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q",
    "f32": "f", "f64": "d",
}  # fmt: skip
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_FIRST = 0x0000_7000_0000_0000  # the address of the first buffer
_GAP = 4096


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its bytes, or the buffer that it points to."""

    text: str
    value: bytes = b""
    buffer: Bytes | None = None


def _bad(text: str, why: str) -> UsageError:
    return UsageError("SX0826", f"--arg {text}: {why}")


def parse(text: str, number: int, seed: int) -> Argument:
    """UsageError SX0826 if it is not an argument."""
    kind, _, rest = text.partition(":")
    if kind in _NUMBERS:
        try:
            value: int | float = float(rest) if kind[0] == "f" else int(rest, 0)
            return Argument(text, struct.pack("<" + _NUMBERS[kind], value))
        except (ValueError, struct.error, OverflowError) as error:
            raise _bad(text, str(error)) from None
    if kind == "hex":
        try:
            return Argument(text, bytes.fromhex(rest))
        except ValueError as error:
            raise _bad(text, str(error)) from None
    if kind == "file":
        try:
            return Argument(text, buffer=np.frombuffer(Path(rest).read_bytes(), np.uint8).copy())
        except OSError as error:
            raise _bad(text, error.strerror or str(error)) from None
    if kind == "buf":
        size, _, fill = rest.partition(":")
        return Argument(text, buffer=_filled(text, _size(text, size), fill, number, seed))
    raise _bad(text, f"it is not one of {' '.join(FORMS.split())}")


def _size(text: str, size: str) -> int:
    found = re.fullmatch(r"(\d+)([kmg]?)", size.lower())
    if found is None:
        raise _bad(text, "a buffer has a size in bytes (or k, m, g)")
    return int(found[1]) * _UNITS[found[2]]


def _filled(text: str, size: int, fill: str, number: int, seed: int) -> Bytes:
    if size == 0 or size > 1 << 32:
        raise _bad(text, "this size")
    if fill in ("", "zeros"):
        return np.zeros(size, np.uint8)
    words = -(-size // 4)
    match fill:
        case "random":
            rng = np.random.default_rng([seed, number, zlib.crc32(text.encode())])
            data = rng.integers(0, 1 << 32, words, dtype=np.uint32)
        case "floats":
            rng = np.random.default_rng([seed, number, zlib.crc32(text.encode())])
            data = rng.standard_normal(words).astype(np.float32).view(np.uint32)
        case "count":
            data = np.arange(words, dtype=np.uint32)
        case "ones":
            return np.full(size, 0xFF, np.uint8)
        case _:
            raise _bad(text, "a buffer is zeros, random, floats, count or ones")
    return np.ascontiguousarray(data).view(np.uint8)[:size].copy()


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parameter area, and the buffers by address; ``places`` has one address per argument."""

    params: bytes
    buffers: dict[int, Bytes]
    places: tuple[int | None, ...]
    end: int  # the first address after them


def lay_out(kernel: Kernel, texts: tuple[str, ...], seed: int) -> Arguments:
    """UsageError SX0826 if the arguments do not match the kernel's parameters."""
    params = sorted(kernel.params, key=lambda p: p.index)
    if len(texts) != len(params):
        sizes = ", ".join(str(p.size) for p in params) or "none"
        raise UsageError(
            "SX0826", f"--arg: {len(texts)} given for {len(params)} parameters (bytes: {sizes})"
        )
    area = bytearray(max([kernel.param_size, *(p.offset + p.size for p in params)]))
    buffers: dict[int, Bytes] = {}
    places: list[int | None] = []
    at = _FIRST
    for number, (text, param) in enumerate(zip(texts, params, strict=True)):
        argument = parse(text, number, seed)
        value = argument.value
        if argument.buffer is not None:
            buffers[at] = argument.buffer
            value = at.to_bytes(8, "little")
            places.append(at)
            at += len(argument.buffer) + _GAP + 511 & ~511
        else:
            places.append(None)
        if len(value) != param.size:
            raise _bad(text, f"{len(value)} bytes for a parameter of {param.size}")
        area[param.offset : param.offset + param.size] = value
    return Arguments(bytes(area), buffers, tuple(places), at)


LaunchShape = tuple[int, int, int]


def shape_of(text: str) -> LaunchShape:
    """X, X,Y or X,Y,Z; UsageError SX0826."""
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(p.strip().isdecimal() and int(p) for p in parts):
        raise UsageError("SX0826", f"{text!r} is not X, X,Y or X,Y,Z")
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


def find_kernel(
    file: str, name: str, arch: str | None, code_of: CodeOf = require_machine_code
) -> tuple[bytes, str]:
    """The image that holds the one kernel of that name, and its mangled name."""
    image, _, kernel = find_cubin(file, name, arch, code_of)
    return image, kernel.name


def find_cubin(
    file: str, name: str, arch: str | None, code_of: CodeOf = require_machine_code
) -> tuple[bytes, Cubin, Kernel]:
    """The cubin that matches; with several architectures the first in the file."""
    loaded = code_of(read_input(file), arch)
    found: list[tuple[bytes, Cubin, Kernel]] = []
    for _, image, cubin in matching_images(loaded, (name,), arch):
        some = (k for k in cubin.kernels if kernel_matches(k.name, k.demangled, (name,)))
        found += [(image, cubin, k) for k in some]
    names = {k.name for _, _, k in found}
    if not found:
        raise no_match(file, (name,), arch)
    if len(names) > 1:
        raise UsageError("SX0827", f"{name} matches kernels {', '.join(sorted(names))}")
    return found[0]

"""Matrix products of a warpgroup (sm_90): what a descriptor of a tile in shared memory names, and
the sums.

A warp multiplies its own 16 of the 64 rows of A; its fragments of A (in registers), C and D are
those of a warp's products (``matrix.py``), D's columns 8 j + 2 t and + 1 in registers 4 j to
4 j + 3.  Whether an instruction waits for memory is not seen here: it reads when it is issued.

A descriptor of 64 bits (PTX manual, "Matrix Descriptor"; the layouts were compared with an H100)::

    bits 0-13    address / 16
    bits 16-29   leading byte offset / 16
    bits 32-45   stride byte offset / 16
    bits 49-51   base offset
    bits 62-63   swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes

A row of the swizzle's size (none: 16 bytes) holds elements of one matrix row (transposed: of one
k); eight such rows follow one another.  Swizzling inverts bits 4 to 6 of an address by its bits 7
to 9, as many as the size has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Reg, Special
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp.matrix import (
    addend_words,
    all_active,
    integers,
    packed,
    rows_of_a,
    split,
    times,
)
from sassxlate.disasm.sass.semantics.warp.matrix_formats import (
    BF16,
    E4M3,
    E5M2,
    F16,
    F32,
    TF32,
    WARPGROUP_CORES,
    Format,
)
from sassxlate.disasm.sass.semantics.warp_state import (
    LANES,
    Fn,
    WarpMeaning,
    WarpView,
    Words,
)

Results: TypeAlias = "Mapping[str, NDArray[Any]]"
I64: TypeAlias = "NDArray[np.int64]"
SHIFTS = (4, 7, 6, 5)  # by the swizzle's number: the size of a row, as a power of two
_G, _T = np.arange(LANES) // 4, np.arange(LANES) % 4


@dataclass(frozen=True, slots=True)
class Tile:
    """A descriptor's fields in bytes, (...): ``shift`` is the logarithm of a row's size."""

    start: I64
    leading: I64
    stride: I64
    shift: I64

    def address(self, row: I64, byte: I64, transposed: bool) -> I64:
        """Where bytes of a row of A, or a column of B, are: (..., rows, bytes).  ``byte`` counts
        along k; transposed, it is k itself, and ``row`` counts bytes."""
        start, leading, stride, shift = (
            v[..., None, None] for v in (self.start, self.leading, self.stride, self.shift)
        )
        row, byte = row[:, None], byte[None, :]
        plain = shift == 4
        if transposed:
            outer, inner = np.where(plain, stride, leading), np.where(plain, leading, stride)
            at = (row >> shift) * outer + (row & (1 << shift) - 1)
            at = at + ((byte & 7) << shift) + (byte >> 3) * inner
        else:
            chunk = np.where(plain, leading, 16)
            at = (row >> 3) * stride + ((row & 7) << shift) + (byte >> 4) * chunk + (byte & 15)
        at = at + start
        out: I64 = at ^ (at >> 3 & (1 << shift) - 16)
        return out


def tile(words: Words) -> Tile:
    """The descriptor in two words, (..., 2)."""
    low, high = (words[..., i].astype(np.int64) for i in (0, 1))
    if (high >> 17 & 7).any():
        raise NoSemantics("a matrix descriptor with a base offset")
    shift = np.array(SHIFTS, np.int64)[high >> 30]
    return Tile((low & 0x3FFF) << 4, (low >> 16 & 0x3FFF) << 4, (high & 0x3FFF) << 4, shift)


def _read(x: WarpView, at: I64, size: int) -> NDArray[np.uint8]:
    """``size`` bytes at each address: (..., rows, columns, size)."""
    lead, shape = at.shape[:-2], at.shape[-2:]
    flat = at.reshape(*lead, -1)
    parts: list[NDArray[np.uint8]] = []
    for first in range(0, flat.shape[-1], LANES):
        where = flat[..., first : first + LANES].astype(np.uint64)
        parts.append(x.warp.load("shared", where, size, x.mask))
    return np.concatenate(parts, axis=-2).reshape(*lead, *shape, size)


def _matrix(x: WarpView, found: Tile, rows: I64, transposed: bool) -> Words:
    """32 bytes along k of each row: (..., rows, 8 words)."""
    if transposed:
        at = found.address(2 * rows, np.arange(16, dtype=np.int64), True)
        halves = np.ascontiguousarray(_read(x, at, 2)).view("<u2")[..., 0]
        return np.ascontiguousarray(halves).view("<u4")
    at = found.address(rows, 4 * np.arange(8, dtype=np.int64), False)
    return np.ascontiguousarray(_read(x, at, 4)).view("<u4")[..., 0]


def _quarter(x: WarpView) -> I64:
    """The number of the warp in its warpgroup: (...)."""
    tid = [x.warp.special(Special(0, f"SR_TID.{axis}")).astype(np.int64) for axis in "XYZ"]
    sizes = x.warp.constant(0, np.array([0, 4], np.uint32), 4)
    across, down = (
        np.ascontiguousarray(sizes).view("<u4")[..., i, :].astype(np.int64) for i in (0, 1)
    )
    number = tid[0] + across * (tid[1] + down * tid[2])
    out: I64 = np.broadcast_to(number, x.mask.shape)[..., 0] >> 5 & 3
    return out


def _select(x: WarpView, role: str) -> set[str]:
    operand = x.operand(role)
    return set(operand.select.split(".")) if isinstance(operand, Reg) else set()


def _left(x: WarpView) -> tuple[Words, bool, bool]:
    """The warp's 16 rows of A, (..., 16, 8 words), and whether A and B are negated."""
    chosen = _select(x, "Ra")
    if "Rb" in x.ins.operands:
        rows = rows_of_a(x.words("Ra"), True)
        return rows, x.flag("Ra", "neg"), "negB" in _select(x, "Rb")
    where = tile(x.words("Ra")[..., 0, 0:2])
    first = 16 * _quarter(x)
    transposed = "tnspA" in chosen
    unique = np.unique(first)
    out = np.zeros((*first.shape, 16, 8), np.uint32)
    for one in unique:
        rows = _matrix(x, where, one + np.arange(16, dtype=np.int64), transposed)
        out = np.where((first == one)[..., None, None], rows, out)
    return out, "negA" in chosen, "negB" in chosen


def _right(x: WarpView, columns: int) -> Words:
    """B by columns: (..., columns, 8 words)."""
    role = "Rb" if "Rb" in x.ins.operands else "Ra"
    found = tile(x.words(role)[..., 0, 2:4])
    return _matrix(x, found, np.arange(columns, dtype=np.int64), "tnspB" in _select(x, role))


def columns_of(x: WarpView) -> int:
    """N of the shape 64 x N x K."""
    return int(next(m for m in x.ins.modifiers if m.startswith("64x")).split("x")[1])


def _places(i: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of element ``i`` of C in each lane."""
    return _G + 8 * (i % 4 // 2), 8 * (i // 4) + 2 * _T + i % 2


def _elements(values: NDArray[Any], columns: int) -> NDArray[Any]:
    """(..., 32, elements) as (..., 16, columns)."""
    out = np.zeros((*values.shape[:-2], 16, columns), dtype=values.dtype)
    for i in range(values.shape[-1]):
        out[(..., *_places(i))] = values[..., i]
    return out


def _lanes(matrix: NDArray[Any]) -> NDArray[Any]:
    count = 16 * matrix.shape[-1] // LANES
    return np.stack([matrix[(..., *_places(i))] for i in range(count)], axis=-1)


def _floats(x: WarpView, formats: tuple[Format, Format], into: Format, signs: int) -> Results:
    all_active(x)
    columns = columns_of(x)
    a, negative_a, negative_b = _left(x)
    b = _right(x, columns)
    a = a ^ np.uint32(signs if negative_a else 0)
    b = b ^ np.uint32(signs if negative_b else 0)
    words = addend_words(x)
    if into.width == 16:
        words = np.ascontiguousarray(words, dtype="<u4").view("<u2")
    c = _elements(words, columns)
    left, right = split(a, formats[0]), split(b, formats[1])[..., None, :, :]
    d = times(left, right, c, formats, into, WARPGROUP_CORES[formats[0].width])
    return {"Rd": packed(_lanes(d), into)}


def hgmma(x: WarpView) -> Results:
    """Halves, bfloats or TF32."""
    kind = BF16 if x.has("BF16") else TF32 if x.has("TF32") else F16
    into = F32 if x.has("F32") else F16
    return _floats(x, (kind, kind), into, 0x80000000 if kind is TF32 else 0x80008000)


def qgmma(x: WarpView) -> Results:
    """Elements of eight bits, of two types in any combination."""
    kinds = {"E4M3": E4M3, "E5M2": E5M2}
    found = [kinds[m] for m in x.ins.modifiers if m in kinds]
    return _floats(x, (found[0], found[1]), F32 if x.has("F32") else F16, 0x80808080)


def igmma(x: WarpView) -> Results:
    """Bytes; the sum wraps, or saturates as a signed one with .SAT."""
    all_active(x)
    columns = columns_of(x)
    sorts = [m for m in x.ins.modifiers if m in ("U8", "S8")]
    a, b = (np.ascontiguousarray(m, dtype="<u4") for m in (_left(x)[0], _right(x, columns)))
    left, right = integers(a, sorts[0]), integers(b, sorts[1])
    total = np.einsum("...ik,...jk->...ij", left, right)
    total = total + _elements(addend_words(x), columns).view(np.int32).astype(np.int64)
    if x.has("SAT"):
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return {"Rd": _lanes(total.astype(np.uint32))}


def _row(mnemonic: str, fn: Fn, mods: str, k: str) -> WarpMeaning:
    shapes = {f"64x{n}x{depth}" for n in range(8, 257, 8) for depth in k.split()}
    return WarpMeaning(mnemonic, fn, frozenset(mods.split()) | shapes)


def rows() -> list[WarpMeaning]:
    return [
        _row("HGMMA", hgmma, "F16 F32 BF16 TF32", "8 16"),
        _row("QGMMA", qgmma, "F16 F32 E4M3 E5M2", "32"),
        _row("IGMMA", igmma, "U8 S8 SAT", "32"),
    ]


__all__ = ["SHIFTS", "Tile", "columns_of", "rows", "tile"]

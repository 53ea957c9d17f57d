"""Matrix products of a warp: where the elements are, and how the sums are formed.

Lane 4 g + t holds, in register i of A (16 rows), row g + 8 (i mod 2), and of that row the 32-bit
word t + 4 (i div 2); in register i of B column g, word t + 4 i; of C and D rows g and g + 8,
columns 2 t and 2 t + 1 (PTX manual, mma.sync; measured).  A of 8 rows has only rows g.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.semantics.arithmetic.float import passed_on
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp.matrix_formats import (
    BF16,
    CORES,
    E4M3,
    E5M2,
    F16,
    F32,
    TF32,
    Core,
    Format,
)
from sassxlate.disasm.sass.semantics.warp_state import LANES, Fn, Mask, WarpMeaning, WarpView, Words
from sassxlate.domain.interface import Fp, Round
from sassxlate.domain.numpy_lanes import Vec, Vectors, pack

Results: TypeAlias = "Mapping[str, NDArray[Any]]"
I64: TypeAlias = "NDArray[np.int64]"
_G, _T = np.arange(LANES) // 4, np.arange(LANES) % 4


# --- fragments ---------------------------------------------------------------------------------


def rows_of_a(words: NDArray[Any], tall: bool) -> NDArray[Any]:
    """(..., 32, n) registers, or pairs of them, as (..., rows, words of a row)."""
    lead, n = words.shape[:-2], words.shape[-1]
    if tall and n % 2:
        raise NoSemantics("half a matrix")
    deep = n // 2 if tall else n
    out = np.zeros((*lead, 16 if tall else 8, 4 * deep), dtype=words.dtype)
    for i in range(n):
        row, step = (_G + 8 * (i % 2), i // 2) if tall else (_G, i)
        out[..., row, _T + 4 * step] = words[..., i]
    return out


def columns_of_b(words: Words) -> Words:
    """(..., 32, n) registers as (..., 8 columns, words of a column)."""
    return rows_of_a(words, False)


def _places(i: int, tall: bool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of C's element number ``i`` in each lane."""
    del tall
    return _G + 8 * (i // 2), 2 * _T + i % 2


def elements_of_c(values: NDArray[Any], tall: bool) -> NDArray[Any]:
    """(..., 32, elements) as (..., rows, 8)."""
    out = np.zeros((*values.shape[:-2], 16 if tall else 8, 8), dtype=values.dtype)
    for i in range(values.shape[-1]):
        row, column = _places(i, tall)
        out[..., row, column] = values[..., i]
    return out


def lanes_of_d(matrix: NDArray[Any], count: int, tall: bool) -> NDArray[Any]:
    """The reverse: (..., rows, 8) as (..., 32, count)."""
    parts = [matrix[(..., *_places(i, tall))] for i in range(count)]
    return np.stack(parts, axis=-1)


def all_active(x: WarpView) -> None:
    if not x.mask.all():
        raise NoSemantics(f"{x.ins.mnemonic} with inactive lanes")


def addend_words(x: WarpView) -> Words:
    """C's registers; zeros if the uniform predicate does not hold."""
    words = x.words("Rc")
    if x.absent("Pp"):
        return words
    return np.where(x.truth("Pp")[..., None], words, np.uint32(0))


# --- sums of products as the tensor core makes them --------------------------------------------


@dataclass(frozen=True, slots=True)
class Numbers:
    """Value: ``m`` (with its sign) times two to the ``e`` - mantissa bits; ``kind``: 0 finite,
    1 infinite, 2 NaN."""

    m: I64
    e: I64
    kind: NDArray[np.int8]
    negative: Mask
    mantissa: int


def numbers(raw: NDArray[Any], f: Format) -> Numbers:
    bits = raw.astype(np.int64) >> f.cut
    field = bits >> f.mantissa & (1 << f.exponent) - 1
    fraction = bits & (1 << f.mantissa) - 1
    negative = (bits >> (f.exponent + f.mantissa) & 1).astype(np.bool_)
    special = field == (1 << f.exponent) - 1
    if f.finite:
        special &= fraction == (1 << f.mantissa) - 1
    kind = np.where(special, np.where(fraction != 0, 2, 1), 0).astype(np.int8)
    m = np.where(field != 0, fraction | 1 << f.mantissa, fraction)
    return Numbers(
        np.where(negative, -m, m), np.maximum(field, 1) - f.bias, kind, negative, f.mantissa
    )


def core_of(arch: int, width: int) -> Core:
    """Raises NoSemantics for an architecture whose sums are not known."""
    known = CORES.get(arch, {}).get(width)
    if known is None:
        raise NoSemantics(f"sums of matrix products on sm_{arch}")
    return known


_LOWEST = -(1 << 20)


def _aligned(m: I64, e: I64, scale: int, top: I64, extra: int) -> I64:
    """``m`` times two to the ``e`` - ``scale`` in units of two to the ``top`` - ``extra``."""
    shift = top - e - extra + scale
    left = np.abs(m) << np.clip(-shift, 0, 40)
    right = left >> np.clip(shift, 0, 62)
    out: I64 = np.where(m < 0, -right, right)
    return out


def dot(a: Numbers, b: Numbers, c: Numbers, core: Core) -> tuple[I64, I64, NDArray[np.int8], Mask]:
    """The sum of a * b over the last axis and c: mantissa, the exponent of its unit, its kind, and
    the sign of an infinite one."""
    m = a.m * b.m
    e = a.e + b.e
    zero = m == 0
    e = np.where(zero, _LOWEST, e)
    ec = np.where(c.m == 0, _LOWEST, c.e)
    top = np.maximum(e.max(axis=-1), ec)
    top = np.where(top == _LOWEST, 0, top)
    total = _aligned(m, e, a.mantissa + b.mantissa, top[..., None], core.extra).sum(axis=-1)
    total = total + _aligned(c.m, ec, c.mantissa, top, core.extra)
    # special values
    invalid = ((a.kind == 1) & (b.kind == 0) & (b.m == 0)) | (
        (b.kind == 1) & (a.kind == 0) & (a.m == 0)
    )
    nan = ((a.kind == 2) | (b.kind == 2) | invalid).any(axis=-1) | (c.kind == 2)
    infinite = (a.kind == 1) | (b.kind == 1)
    sign = a.negative ^ b.negative
    plus = (infinite & ~sign).any(axis=-1) | ((c.kind == 1) & ~c.negative)
    minus = (infinite & sign).any(axis=-1) | ((c.kind == 1) & c.negative)
    kind = np.where(nan | (plus & minus), 2, np.where(plus | minus, 1, 0)).astype(np.int8)
    return total, top - core.extra, kind, minus


def rounded(
    total: I64, unit: I64, kind: NDArray[np.int8], minus: Mask, f: Format, how: Round
) -> Words:
    """The patterns of a format; NaN is all ones except its sign, zero has no sign, and a value
    beyond the largest number is infinite."""
    size = np.abs(total).astype(np.uint64)
    out = pack(total < 0, size, unit, f.width, how).v
    inf = np.uint64(((1 << f.exponent) - 1) << f.mantissa)
    sign = np.uint64(1 << (f.width - 1))
    with np.errstate(divide="ignore"):
        large = np.log2(size.astype(np.float64)) + unit >= f.bias + 1
    out = np.where(large, inf | out & sign, out)
    out = np.where(out == sign, np.uint64(0), out)
    out = np.where(kind == 1, np.where(minus, inf | sign, inf), out)
    return np.where(kind == 2, sign - np.uint64(1), out).astype(np.uint32)


def split(words: Words, f: Format) -> NDArray[Any]:
    """(..., words) as (..., elements)."""
    if f.width == 32:
        return words
    return np.ascontiguousarray(words, dtype="<u4").view(f"<u{f.width // 8}")


def times(
    a: NDArray[Any], b: NDArray[Any], c: Words, formats: tuple[Format, Format], into: Format,
    core: Core,
) -> Words:  # fmt: skip
    """A * B + C: (..., rows, k), (..., 1 or rows, 8, k), (..., rows, 8) -> (..., rows, 8)."""
    how = Round.ZERO if into.width == 32 else Round.NEAREST
    lost = np.uint32((1 << into.mantissa - core.kept) - 1 if into.width == 32 else 0)
    out = c
    for at in range(0, a.shape[-1], core.group):
        left = numbers(a[..., :, None, at : at + core.group], formats[0])
        right = numbers(b[..., at : at + core.group], formats[1])
        total, unit, kind, minus = dot(left, right, numbers(out, into), core)
        out = rounded(total, unit, kind, minus, into, how)
        out = np.where(kind == 2, out, out & ~lost)
    return out


# --- sparse A ----------------------------------------------------------------------------------


def _indices(x: WarpView, units: int, bits: int) -> NDArray[np.int64]:
    """Which of four units of B each unit of A is multiplied with: (..., 16, units).

    A unit has ``bits`` bits: of 16 (an element, or half of a TF32 one) or 8.  Their places, two
    bits each, are in one, two or four lanes of each four; the selector chooses which.
    """
    word = x.lanes("Re")
    first = x.imm("selector") * (units // 8)
    parts = [word[..., i::4] for i in range(4)]  # (..., 8)
    half = np.uint64(0xFFFF)
    if bits == 16:
        rows = [np.concatenate([p & half, p >> np.uint64(16)], axis=-1) for p in parts]
        fields, each = rows[first : first + units // 8], 8
    else:
        rows = [np.concatenate(parts[i : i + 2], axis=-1) for i in (0, 2)]
        fields, each = rows[first // 2 : first // 2 + units // 16], 16
    shifts = 2 * np.arange(each, dtype=np.uint64)
    found = [f[..., None] >> shifts & np.uint64(3) for f in fields]
    return np.concatenate(found, axis=-1).astype(np.int64)


def _chosen(x: WarpView, a: Words, b: Words, bits: int) -> NDArray[Any]:
    """B's units for each row of a sparse A: (..., 16, 8, units of a row)."""
    kind = "<u2" if bits == 16 else "u1"
    units = a.shape[-1] * 32 // bits
    groups: I64 = 4 * (np.arange(units, dtype=np.int64) // 2)
    place: I64 = groups + _indices(x, units, bits)
    columns = np.ascontiguousarray(b, dtype="<u4").view(kind)[..., None, :, :]
    shape = (*place.shape[:-1], 8)
    return np.take_along_axis(
        np.broadcast_to(columns, (*shape, columns.shape[-1])),
        np.broadcast_to(place[..., None, :], (*shape, units)), axis=-1,
    )  # fmt: skip


# --- instructions ------------------------------------------------------------------------------


def hmma(x: WarpView) -> Results:
    all_active(x)
    f = BF16 if x.has("BF16") else TF32 if x.has("TF32") else F16
    into = F32 if x.has("F32") else F16
    core = core_of(x.ins.arch, f.width)
    sign = np.uint32(0x80008000 if f.width == 16 else 0x80000000)
    a, b = rows_of_a(_signed(x, "Ra", sign), True), columns_of_b(_signed(x, "Rb", sign))
    if x.has("SP"):
        right = np.ascontiguousarray(_chosen(x, a, b, 16)).view("<u2" if f.width == 16 else "<u4")
    else:
        right = split(b, f)[..., None, :, :]
    c = elements_of_c(_addend(x, into), True)
    d = lanes_of_d(times(split(a, f), right, c, (f, f), into, core), 4, True)
    return {"Rd": packed(d, into)}


def qmma(x: WarpView) -> Results:
    """Elements of eight bits, of two types in any combination."""
    all_active(x)
    kinds = {"E4M3": E4M3, "E5M2": E5M2}
    formats = [kinds[m] for m in x.ins.modifiers if m in kinds]
    if len(formats) != 2 or x.has("SP"):
        raise NoSemantics("this form of QMMA")
    into = F32 if x.has("F32") else F16
    core = core_of(x.ins.arch, 8)
    sign = np.uint32(0x80808080)
    a, b = rows_of_a(_signed(x, "Ra", sign), True), columns_of_b(_signed(x, "Rb", sign))
    c = elements_of_c(_addend(x, into), True)
    right = split(b, formats[1])[..., None, :, :]
    d = times(split(a, formats[0]), right, c, (formats[0], formats[1]), into, core)
    return {"Rd": packed(lanes_of_d(d, 4, True), into)}


def packed(d: NDArray[Any], into: Format) -> Words:
    if into.width == 16:
        return np.ascontiguousarray(d.astype("<u2")).view("<u4")
    return d


def _signed(x: WarpView, role: str, sign: np.uint32) -> Words:
    words = x.words(role)
    return words ^ sign if x.flag(role, "neg") else words


def _addend(x: WarpView, into: Format) -> NDArray[Any]:
    words = addend_words(x)
    if into.width == 16:
        return np.ascontiguousarray(words, dtype="<u4").view("<u2")
    return words


# --- integers ----------------------------------------------------------------------------------


def integers(words: Words, kind: str) -> I64:
    """The elements of words, lowest first: U8, S8, U4 or S4."""
    if kind.endswith("8"):
        return words.view("u1" if kind == "U8" else "i1").astype(np.int64)
    bytes_ = words.view("u1").astype(np.int64)
    nibbles = np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(*bytes_.shape[:-1], -1)
    return nibbles - 16 * (nibbles >> 3) if kind == "S4" else nibbles


def imma(x: WarpView) -> Results:
    """Elements of 8 or 4 bits; the sum wraps, or saturates as a signed one with .SAT."""
    all_active(x)
    shape = next(m for m in x.ins.modifiers if m.isdigit())
    sorts = [m for m in x.ins.modifiers if m in ("U8", "S8", "U4", "S4")]
    if len(sorts) != 2 or sorts[0][1] != sorts[1][1]:
        raise NoSemantics("IMMA of elements of two widths")
    if x.has("SP") and sorts[0][1] == "4":
        raise NoSemantics("IMMA.SP of four bits")
    tall = shape.startswith("16")
    a = np.ascontiguousarray(rows_of_a(x.words("Ra"), tall), dtype="<u4")
    b = np.ascontiguousarray(columns_of_b(x.words("Rb")), dtype="<u4")
    right = _chosen(x, a, b, 8) if x.has("SP") else b[..., None, :, :]
    products = integers(a, sorts[0])[..., :, None, :] * integers(
        np.ascontiguousarray(right), sorts[1]
    )
    c = elements_of_c(addend_words(x), tall).view(np.int32).astype(np.int64)
    total = products.sum(axis=-1) + c
    if x.has("SAT"):
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return {"Rd": lanes_of_d(total.astype(np.uint32), 4 if tall else 2, tall)}


def bmma(x: WarpView) -> Results:
    """Single bits: the population count of their AND or XOR."""
    all_active(x)
    tall = x.ins.modifiers[0].startswith("16")
    a, b = rows_of_a(x.words("Ra"), tall), columns_of_b(x.words("Rb"))
    left, right = a[..., :, None, :], b[..., None, :, :]
    both = left & right if x.has("AND") else left ^ right
    count = Vectors().popcount(Vec(both.astype(np.uint64), 32)).v.sum(axis=-1)
    c = elements_of_c(addend_words(x), tall)
    return {"Rd": lanes_of_d(c + count.astype(np.uint32), 4 if tall else 2, tall)}


def dmma(x: WarpView) -> Results:
    """8 or 16 rows, 4 to 16 products of doubles: fused multiply-adds, one after the other."""
    all_active(x)
    rounds = {"RM": Round.DOWN, "RP": Round.UP, "RZ": Round.ZERO}
    fp = Fp(rounds.get(x.one_of(rounds), Round.NEAREST))
    tall = x.has("16x8x4", "16x8x8", "16x8x16")
    (a, b, c), (na, nb, nc) = (_doubles(x, signed, tall) for signed in (True, False))
    total, other = Vec(c.reshape(-1), 64), Vec(nc.reshape(-1), 64)
    for k in range(a.shape[-1]):
        left, right, p, q = (
            Vec(np.broadcast_to(part, c.shape).reshape(-1), 64)
            for m, n in ((a, b), (na, nb))
            for part in (m[..., :, None, k], n[..., None, :, k])
        )
        total = other = passed_on(x.d, x.d.ffma(left, right, total, fp), p, other, q)
    d = lanes_of_d(total.v.reshape(c.shape), 4 if tall else 2, tall)
    return {"Rd": np.ascontiguousarray(d, dtype="<u8").view("<u4")}


def _doubles(x: WarpView, signed: bool, tall: bool) -> list[NDArray[np.uint64]]:
    """A, (..., rows, k), B, (..., 8, k), and C, (..., rows, 8), with or without the printed
    signs."""
    out: list[NDArray[np.uint64]] = []
    top = np.uint64(1 << 63)
    for role in ("Ra", "Rb", "Rc"):
        words = addend_words(x) if role == "Rc" else x.words(role)
        value = np.ascontiguousarray(words, dtype="<u4").view("<u8")
        if signed and x.flag(role, "abs"):
            value = value & ~top
        if signed and x.flag(role, "neg"):
            value = value ^ top
        if role == "Rc":
            out.append(elements_of_c(value, tall))
        else:
            out.append(rows_of_a(value, tall and role == "Ra"))
    return out


def _row(mnemonic: str, fn: Fn, mods: str) -> WarpMeaning:
    return WarpMeaning(mnemonic, fn, frozenset(mods.split()))


def rows() -> list[WarpMeaning]:
    return [
        _row("HMMA", hmma, "SP 1688 16816 16832 1684 F16 F32 BF16 TF32"),
        _row("QMMA", qmma, "16816 16832 F16 F32 E4M3 E5M2"),
        _row("IMMA", imma, "SP 8816 8832 16816 16832 16864 U8 S8 U4 S4 SAT"),
        _row("BMMA", bmma, "88128 168128 168256 AND XOR POPC"),
        _row("DMMA", dmma, "8x8x4 884 16x8x4 16x8x8 16x8x16 RM RP RZ"),
    ]


__all__ = [
    "addend_words",
    "all_active",
    "core_of",
    "dot",
    "integers",
    "numbers",
    "packed",
    "rounded",
    "rows",
    "rows_of_a",
    "split",
    "times",
]

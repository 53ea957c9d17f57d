"""Logic, shifts, bit fields and byte permutations of the vector ALU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics.rows import Fn, Semantics, row
from sassxlate.domain.interface import Domain, is_zero, mask_bits

T = TypeVar("T")


def mov(d: Domain[T], a: T) -> T:
    return a


def and_(d: Domain[T], a: T, b: T) -> T:
    return d.and_(a, b)


def or_(d: Domain[T], a: T, b: T) -> T:
    return d.or_(a, b)


def xor(d: Domain[T], a: T, b: T) -> T:
    return d.xor(a, b)


def xnor(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.xor(a, b))


def not_(d: Domain[T], a: T) -> T:
    return d.not_(a)


def _count(d: Domain[T], a: T, count: T) -> T:
    """A shift count, masked and in the shifted value's width."""
    w = d.width(a)
    if d.width(count) < w:
        count = d.zext(count, w)
    return mask_bits(d, count, w - 1)


def lshl(d: Domain[T], a: T, count: T) -> T:
    return d.shl(a, _count(d, a, count))


def lshlrev(d: Domain[T], count: T, a: T) -> T:
    return d.shl(a, _count(d, a, count))


def lshrrev(d: Domain[T], count: T, a: T) -> T:
    return d.lshr(a, _count(d, a, count))


def ashrrev(d: Domain[T], count: T, a: T) -> T:
    return d.ashr(a, _count(d, a, count))


def bfe_u32(d: Domain[T], a: T, offset: T, count: T) -> T:
    low = d.lshr(a, mask_bits(d, offset, 31))
    mask = d.sub(d.shl(d.const(1, 32), mask_bits(d, count, 31)), d.const(1, 32))
    return d.and_(low, mask)


def bfe_i32(d: Domain[T], a: T, offset: T, count: T) -> T:
    """Bits beyond the top are copies of the sign; an empty field is 0."""
    n = mask_bits(d, count, 31)
    low = d.ashr(a, mask_bits(d, offset, 31))
    up = mask_bits(d, d.sub(d.const(32, 32), n), 31)
    wide = d.ashr(d.shl(low, up), up)
    return d.select(is_zero(d, n), d.const(0, 32), wide)


def bfi(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.or_(d.and_(a, b), d.and_(d.not_(a), c))


def bfm(d: Domain[T], a: T, b: T) -> T:
    """A mask of `a` ones at bit `b`."""
    one = d.const(1, 32)
    return d.shl(d.sub(d.shl(one, mask_bits(d, a, 31)), one), mask_bits(d, b, 31))


def alignbit(d: Domain[T], a: T, b: T, c: T) -> T:
    pair = d.concat(a, b)
    return d.extract(d.lshr(pair, d.zext(mask_bits(d, c, 31), 64)), 0, 32)


def alignbyte(d: Domain[T], a: T, b: T, c: T) -> T:
    pair = d.concat(a, b)
    count = d.shl(mask_bits(d, c, 3), d.const(3, 32))
    return d.extract(d.lshr(pair, d.zext(count, 64)), 0, 32)


def perm(d: Domain[T], a: T, b: T, c: T) -> T:
    """Each selector byte: 0-3 a byte of b, 4-7 of a, 8-11 the sign of a half of {a, b}, 12 zero,
    above 12 ones."""
    pair = d.concat(a, b)
    out = d.const(0, 32)
    for i in range(4):
        sel = d.extract(c, 8 * i, 8)
        wide = d.zext(sel, 64)
        three = d.const(3, 64)
        byte = d.extract(d.lshr(pair, d.shl(mask_bits(d, wide, 7), three)), 0, 8)
        half = d.shl(mask_bits(d, wide, 3), d.const(4, 64))
        sign = d.extract(d.lshr(pair, d.add(half, d.const(15, 64))), 0, 1)
        ones = d.or_(sign, d.ult(d.const(11, 8), sel))
        special = d.select(d.eq(sel, d.const(12, 8)), d.const(0, 8), d.sext(ones, 8))
        picked = d.select(d.ult(sel, d.const(8, 8)), byte, special)
        out = d.or_(out, d.shl(d.zext(picked, 32), d.const(8 * i, 32)))
    return out


def bcnt(d: Domain[T], a: T, b: T) -> T:
    return d.add(d.popcount(a), b)


def bfrev(d: Domain[T], a: T) -> T:
    return d.bitreverse(a)


def clz_u32(d: Domain[T], a: T) -> T:
    """-1 if no bit is set."""
    return d.select(is_zero(d, a), d.const(-1, 32), d.clz(a))


def ctz_b32(d: Domain[T], a: T) -> T:
    return d.select(is_zero(d, a), d.const(-1, 32), d.ctz(a))


def cls_i32(d: Domain[T], a: T) -> T:
    """Leading bits equal to the sign; -1 if all are."""
    folded = d.xor(a, d.ashr(a, d.const(31, 32)))
    return d.select(is_zero(d, folded), d.const(-1, 32), d.clz(folded))


def cndmask(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.select(c, b, a)


def _three(f: Fn, g: Fn) -> Fn:
    def fn(d: Domain[T], a: T, b: T, c: T) -> T:
        out: T = g(d, f(d, a, b), c)
        return out

    return fn


def _add(d: Domain[T], a: T, b: T) -> T:
    return d.add(a, b)


def rows() -> Iterator[Semantics]:
    two, three = "b32 b32", "b32 b32 b32"
    yield row("v_mov_b32", "b32", "b32", mov)
    yield row("v_mov_b16", "b16", "b16", mov)
    for op, fn in (("and", and_), ("or", or_), ("xor", xor), ("xnor", xnor)):
        yield row(f"v_{op}_b32", "b32", two, fn)
        yield row(f"v_{op}_b16", "b16", "b16 b16", fn)
    for w in (16, 32):
        k = f"b{w}"
        yield row(f"v_not_b{w}", k, k, not_)
        yield row(f"v_lshlrev_b{w}", k, f"{k} {k}", lshlrev)
        yield row(f"v_lshrrev_b{w}", k, f"{k} {k}", lshrrev)
        yield row(f"v_ashrrev_i{w}", k, f"{k} {k}", ashrrev)
    # Its sources may be negated and made absolute, which changes their sign bits alone.
    yield row("v_cndmask_b32", "b32", "f32 f32 m", cndmask)
    yield row("v_cndmask_b16", "b16", "b16 b16 m", cndmask)
    yield row("v_lshlrev_b64", "b64", "b32 b64", lshlrev)
    yield row("v_lshrrev_b64", "b64", "b32 b64", lshrrev)
    yield row("v_ashrrev_i64", "b64", "b32 b64", ashrrev)
    yield row("v_bfe_u32", "b32", three, bfe_u32)
    yield row("v_bfe_i32", "b32", three, bfe_i32)
    yield row("v_bfi_b32", "b32", three, bfi)
    yield row("v_bfm_b32", "b32", two, bfm)
    yield row("v_alignbit_b32", "b32", three, alignbit)
    yield row("v_alignbyte_b32", "b32", three, alignbyte)
    yield row("v_perm_b32", "b32", three, perm)
    yield row("v_bcnt_u32_b32", "b32", two, bcnt)
    yield row("v_bfrev_b32", "b32", "b32", bfrev)
    yield row("v_clz_i32_u32", "b32", "b32", clz_u32)
    yield row("v_ctz_i32_b32", "b32", "b32", ctz_b32)
    yield row("v_cls_i32", "b32", "b32", cls_i32)
    triples: tuple[tuple[str, Fn, Fn], ...] = (
        ("and_or", and_, or_),
        ("or3", or_, or_),
        ("xor3", xor, xor),
        ("lshl_or", lshl, or_),
    )
    for op, f, g in triples:
        yield row(f"v_{op}_b32", "b32", three, _three(f, g))
    for op, f, g in (("lshl_add", lshl, _add), ("add_lshl", _add, lshl), ("xad", xor, _add)):
        yield row(f"v_{op}_u32", "b32", three, _three(f, g))

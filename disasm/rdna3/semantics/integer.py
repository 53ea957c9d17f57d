"""Integer arithmetic of the vector ALU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics.rows import Fn, Semantics, row
from sassxlate.domain.interface import Domain, neg, sle, smax, smin, umax, umin

T = TypeVar("T")


def add(d: Domain[T], a: T, b: T) -> T:
    return d.add(a, b)


def sub(d: Domain[T], a: T, b: T) -> T:
    return d.sub(a, b)


def subrev(d: Domain[T], a: T, b: T) -> T:
    return d.sub(b, a)


def uadd_sat(d: Domain[T], a: T, b: T) -> T:
    s = d.add(a, b)
    return d.select(d.ult(s, a), d.const(-1, d.width(a)), s)


def usub_sat(d: Domain[T], a: T, b: T) -> T:
    return d.select(d.ult(a, b), d.const(0, d.width(a)), d.sub(a, b))


def usubrev_sat(d: Domain[T], a: T, b: T) -> T:
    return usub_sat(d, b, a)


def clamp_signed(d: Domain[T], a: T, width: int) -> T:
    """Saturates a wider signed value; the result still has `a`'s width."""
    w = d.width(a)
    top = d.const((1 << (width - 1)) - 1, w)
    return smax(d, smin(d, a, top), d.const(-(1 << (width - 1)), w))


def clamp_unsigned(d: Domain[T], a: T, width: int) -> T:
    return umin(d, a, d.const((1 << width) - 1, d.width(a)))


def _signed_sat(op: Fn) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        w = d.width(a)
        wide: T = op(d, d.sext(a, 2 * w), d.sext(b, 2 * w))
        return d.extract(clamp_signed(d, wide, w), 0, w)

    return fn


sadd_sat, ssub_sat = _signed_sat(add), _signed_sat(sub)


def add_co(d: Domain[T], a: T, b: T) -> tuple[T, T]:
    s = d.add(a, b)
    return s, d.ult(s, a)


def sub_co(d: Domain[T], a: T, b: T) -> tuple[T, T]:
    return d.sub(a, b), d.ult(a, b)


def _with_carry(value: Fn, carry: Fn) -> Fn:
    """A saturated value beside the carry of the plain operation."""

    def fn(d: Domain[T], a: T, b: T, *c: T) -> tuple[T, T]:
        out: T = value(d, a, b, *c)
        return out, carry(d, a, b, *c)[1]

    return fn


def add_co_ci(d: Domain[T], a: T, b: T, c: T) -> tuple[T, T]:
    w = d.width(a)
    s = d.add(a, b)
    t = d.add(s, d.zext(c, w))
    return t, d.or_(d.ult(s, a), d.ult(t, s))


def sub_co_ci(d: Domain[T], a: T, b: T, c: T) -> tuple[T, T]:
    w = d.width(a)
    s = d.sub(a, b)
    return d.sub(s, d.zext(c, w)), d.or_(d.ult(a, b), d.and_(d.eq(a, b), c))


def add_ci_sat(d: Domain[T], a: T, b: T, c: T) -> T:
    total, carry = add_co_ci(d, a, b, c)
    return d.select(carry, d.const(-1, 32), total)


def sub_ci_sat(d: Domain[T], a: T, b: T, c: T) -> T:
    total, borrow = sub_co_ci(d, a, b, c)
    return d.select(borrow, d.const(0, 32), total)


def subrev_ci_sat(d: Domain[T], a: T, b: T, c: T) -> T:
    return sub_ci_sat(d, b, a, c)


def subrev_co(d: Domain[T], a: T, b: T) -> tuple[T, T]:
    return sub_co(d, b, a)


def subrev_co_ci(d: Domain[T], a: T, b: T, c: T) -> tuple[T, T]:
    return sub_co_ci(d, b, a, c)


def mul(d: Domain[T], a: T, b: T) -> T:
    return d.mul(a, b)


def umul_hi(d: Domain[T], a: T, b: T) -> T:
    return d.extract(d.mul(d.zext(a, 64), d.zext(b, 64)), 32, 32)


def smul_hi(d: Domain[T], a: T, b: T) -> T:
    return d.extract(d.mul(d.sext(a, 64), d.sext(b, 64)), 32, 32)


def _u24(d: Domain[T], a: T, width: int = 32) -> T:
    return d.zext(d.extract(a, 0, 24), width)


def _i24(d: Domain[T], a: T, width: int = 32) -> T:
    return d.sext(d.extract(a, 0, 24), width)


def mul_u24(d: Domain[T], a: T, b: T) -> T:
    return d.mul(_u24(d, a), _u24(d, b))


def mul_i24(d: Domain[T], a: T, b: T) -> T:
    return d.mul(_i24(d, a), _i24(d, b))


def mul_hi_u24(d: Domain[T], a: T, b: T) -> T:
    return d.extract(d.mul(_u24(d, a, 64), _u24(d, b, 64)), 32, 32)


def mul_hi_i24(d: Domain[T], a: T, b: T) -> T:
    return d.extract(d.mul(_i24(d, a, 64), _i24(d, b, 64)), 32, 32)


def mad_u24(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(mul_u24(d, a, b), c)


def mad_i24(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(mul_i24(d, a, b), c)


def mad_u64_u32(d: Domain[T], a: T, b: T, c: T) -> tuple[T, T]:
    s = d.add(d.mul(d.zext(a, 64), d.zext(b, 64)), c)
    return s, d.ult(s, c)


def mad_i64_i32(d: Domain[T], a: T, b: T, c: T) -> tuple[T, T]:
    p = d.mul(d.sext(a, 64), d.sext(b, 64))
    s = d.add(p, c)
    # The carry out is bit 64 of the sum of the two sign-extended to 65 bits.
    zero = d.const(0, 64)
    carry = d.ult(s, c)
    return s, d.xor(carry, d.xor(d.slt(p, zero), d.slt(c, zero)))


def mad(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(d.mul(a, b), c)


def mad_u32_u16(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(d.mul(d.zext(a, 32), d.zext(b, 32)), c)


def mad_i32_i16(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(d.mul(d.sext(a, 32), d.sext(b, 32)), c)


def mad_u16_sat(d: Domain[T], a: T, b: T, c: T) -> T:
    wide = d.add(d.mul(d.zext(a, 32), d.zext(b, 32)), d.zext(c, 32))
    return d.extract(clamp_unsigned(d, wide, 16), 0, 16)


def mad_i16_sat(d: Domain[T], a: T, b: T, c: T) -> T:
    wide = d.add(d.mul(d.sext(a, 32), d.sext(b, 32)), d.sext(c, 32))
    return d.extract(clamp_signed(d, wide, 16), 0, 16)


def _three(f: Fn) -> Fn:
    def fn(d: Domain[T], a: T, b: T, c: T) -> T:
        out: T = f(d, f(d, a, b), c)
        return out

    return fn


def _med3(lo: Fn, hi: Fn) -> Fn:
    def fn(d: Domain[T], a: T, b: T, c: T) -> T:
        out: T = hi(d, lo(d, a, b), lo(d, hi(d, a, b), c))
        return out

    return fn


def _then(f: Fn, g: Fn) -> Fn:
    """g(f(a, b), c)"""

    def fn(d: Domain[T], a: T, b: T, c: T) -> T:
        out: T = g(d, f(d, a, b), c)
        return out

    return fn


def add3(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(d.add(a, b), c)


def absdiff(d: Domain[T], a: T, b: T) -> T:
    return d.select(d.ult(a, b), d.sub(b, a), d.sub(a, b))


def _bytes_sum(d: Domain[T], a: T, b: T, *, masked: bool) -> T:
    total = d.const(0, 32)
    for i in range(4):
        x, y = d.extract(a, 8 * i, 8), d.extract(b, 8 * i, 8)
        diff = d.zext(absdiff(d, x, y), 32)
        if masked:  # msad: zero bytes of the reference are skipped
            diff = d.select(d.eq(y, d.const(0, 8)), d.const(0, 32), diff)
        total = d.add(total, diff)
    return total


def sad_u8(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(_bytes_sum(d, a, b, masked=False), c)


def msad_u8(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(_bytes_sum(d, a, b, masked=True), c)


def sad_hi_u8(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(d.shl(_bytes_sum(d, a, b, masked=False), d.const(16, 32)), c)


def sad_u16(d: Domain[T], a: T, b: T, c: T) -> T:
    total = c
    for i in (0, 16):
        diff = absdiff(d, d.extract(a, i, 16), d.extract(b, i, 16))
        total = d.add(total, d.zext(diff, 32))
    return total


def sad_u32(d: Domain[T], a: T, b: T, c: T) -> T:
    return d.add(absdiff(d, a, b), c)


def lerp_u8(d: Domain[T], a: T, b: T, c: T) -> T:
    """Each byte: (a + b + bit 0 of c) >> 1."""
    out = d.const(0, 32)
    for i in range(4):
        x, y, r = (d.zext(d.extract(v, 8 * i, 8), 32) for v in (a, b, c))
        s = d.add(d.add(x, y), d.and_(r, d.const(1, 32)))
        out = d.or_(out, d.shl(d.lshr(s, d.const(1, 32)), d.const(8 * i, 32)))
    return out


def mbcnt_lo(d: Domain[T], a: T, b: T, lane: T) -> T:
    below = d.sub(d.shl(d.const(1, 32), lane), d.const(1, 32))
    return d.add(d.popcount(d.and_(a, below)), b)


def mbcnt_hi(d: Domain[T], a: T, b: T, lane: T) -> T:
    return b  # wave32 has no upper lanes


def iabs(d: Domain[T], a: T) -> T:
    return d.select(sle(d, d.const(0, d.width(a)), a), a, neg(d, a))


def rows() -> Iterator[Semantics]:
    two, three = "b32 b32", "b32 b32 b32"
    yield row("v_add_nc_u32", "b32", two, add, saturating=uadd_sat)
    yield row("v_sub_nc_u32", "b32", two, sub, saturating=usub_sat)
    yield row("v_subrev_nc_u32", "b32", two, subrev, saturating=usubrev_sat)
    yield row("v_add_nc_i32", "b32", two, add, saturating=sadd_sat)
    yield row("v_sub_nc_i32", "b32", two, sub, saturating=ssub_sat)
    yield row("v_add_nc_u16", "b16", "b16 b16", add, saturating=uadd_sat)
    yield row("v_sub_nc_u16", "b16", "b16 b16", sub, saturating=usub_sat)
    yield row("v_add_nc_i16", "b16", "b16 b16", add, saturating=sadd_sat)
    yield row("v_sub_nc_i16", "b16", "b16 b16", sub, saturating=ssub_sat)
    yield row("v_add_co_u32", "b32 m", two, add_co, saturating=_with_carry(uadd_sat, add_co))
    yield row("v_sub_co_u32", "b32 m", two, sub_co, saturating=_with_carry(usub_sat, sub_co))
    yield row(
        "v_subrev_co_u32", "b32 m", two, subrev_co, saturating=_with_carry(usubrev_sat, subrev_co)
    )
    yield row(
        "v_add_co_ci_u32",
        "b32 m",
        "b32 b32 m",
        add_co_ci,
        saturating=_with_carry(add_ci_sat, add_co_ci),
    )
    yield row(
        "v_sub_co_ci_u32",
        "b32 m",
        "b32 b32 m",
        sub_co_ci,
        saturating=_with_carry(sub_ci_sat, sub_co_ci),
    )
    yield row(
        "v_subrev_co_ci_u32",
        "b32 m",
        "b32 b32 m",
        subrev_co_ci,
        saturating=_with_carry(subrev_ci_sat, subrev_co_ci),
    )
    yield row("v_mul_lo_u32", "b32", two, mul)
    yield row("v_mul_hi_u32", "b32", two, umul_hi)
    yield row("v_mul_hi_i32", "b32", two, smul_hi)
    yield row("v_mul_u32_u24", "b32", two, mul_u24)
    yield row("v_mul_i32_i24", "b32", two, mul_i24)
    yield row("v_mul_hi_u32_u24", "b32", two, mul_hi_u24)
    yield row("v_mul_hi_i32_i24", "b32", two, mul_hi_i24)
    yield row("v_mul_lo_u16", "b16", "b16 b16", mul)
    yield row("v_mad_u32_u24", "b32", three, mad_u24)
    yield row("v_mad_i32_i24", "b32", three, mad_i24)
    yield row("v_mad_u64_u32", "b64 m", "b32 b32 b64", mad_u64_u32)
    yield row("v_mad_i64_i32", "b64 m", "b32 b32 b64", mad_i64_i32)
    yield row("v_mad_u16", "b16", "b16 b16 b16", mad, saturating=mad_u16_sat)
    yield row("v_mad_i16", "b16", "b16 b16 b16", mad, saturating=mad_i16_sat)
    yield row("v_mad_u32_u16", "b32", "b16 b16 b32", mad_u32_u16)
    yield row("v_mad_i32_i16", "b32", "b16 b16 b32", mad_i32_i16)
    for suffix, lo, hi in (("u", umin, umax), ("i", smin, smax)):
        for w in (32, 16):
            k = f"b{w}"
            yield row(f"v_min_{suffix}{w}", k, f"{k} {k}", lo)
            yield row(f"v_max_{suffix}{w}", k, f"{k} {k}", hi)
            yield row(f"v_min3_{suffix}{w}", k, f"{k} {k} {k}", _three(lo))
            yield row(f"v_max3_{suffix}{w}", k, f"{k} {k} {k}", _three(hi))
            yield row(f"v_med3_{suffix}{w}", k, f"{k} {k} {k}", _med3(lo, hi))
        yield row(f"v_maxmin_{suffix}32", "b32", three, _then(hi, lo))
        yield row(f"v_minmax_{suffix}32", "b32", three, _then(lo, hi))
    yield row("v_add3_u32", "b32", three, add3)
    yield row("v_sad_u8", "b32", three, sad_u8)
    yield row("v_sad_hi_u8", "b32", three, sad_hi_u8)
    yield row("v_sad_u16", "b32", three, sad_u16)
    yield row("v_sad_u32", "b32", three, sad_u32)
    yield row("v_msad_u8", "b32", three, msad_u8)
    yield row("v_lerp_u8", "b32", three, lerp_u8)
    yield row("v_mbcnt_lo_u32_b32", "b32", "b32 b32 lane", mbcnt_lo)
    yield row("v_mbcnt_hi_u32_b32", "b32", "b32 b32 lane", mbcnt_hi)

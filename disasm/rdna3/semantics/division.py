"""The steps of a correctly rounded division: div_scale, div_fmas, div_fixup, and trig_preop.

The manual's pseudocode is wrong in places (its div_fmas scales one way only, its div_fixup forgets
a quotient that is not a number); these definitions give IEEE quotients in LLVM's expansion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics.float import ldexp
from sassxlate.disasm.rdna3.semantics.rows import Fn, Mode, Semantics, frow
from sassxlate.domain.interface import (
    IEEE,
    Domain,
    exponent_bits,
    fabs,
    flush,
    is_denormal,
    is_inf,
    is_nan,
    is_zero,
    mantissa_bits,
    quiet,
)

T = TypeVar("T")

_STEP = {32: 64, 64: 128}  # the scaling exponent


def _exponent(d: Domain[T], a: T) -> T:
    """The biased exponent, in 32 bits."""
    w = d.width(a)
    field = d.lshr(fabs(d, a), d.const(mantissa_bits(w), w))
    return d.extract(field, 0, 32) if w == 64 else d.zext(field, 32) if w < 32 else field


def _scaled(d: Domain[T], a: T, n: int) -> T:
    return ldexp(d, Mode(), a, d.const(n, 32))


def div_scale(d: Domain[T], mode: Mode, a: T, den: T, num: T) -> tuple[T, T]:
    """`a` (the denominator or the numerator) scaled so that the division is safe, and whether the
    quotient must be scaled back.  Whether the quotient is denormal is judged by the exponents."""
    w = d.width(a)
    if mode.fp(w).flush_in:
        a, den, num = (flush(d, v) for v in (a, den, num))
    step = _STEP[w]
    bias = (1 << (exponent_bits(w) - 1)) - 1
    far = bias - 31 if w == 32 else 768
    up, down = _scaled(d, a, step), _scaled(d, a, -step)
    is_den, is_num = d.eq(a, den), d.eq(a, num)
    zero = d.or_(is_zero(d, fabs(d, den)), is_zero(d, fabs(d, num)))
    e_num, e_den = _exponent(d, num), _exponent(d, den)
    huge = d.not_(d.slt(d.sub(e_num, e_den), d.const(far, 32)))
    den_denormal = is_denormal(d, den)
    # 1 / den is denormal if den is above 2 ** (bias - 1).
    top = d.const((2 * bias - 1) << mantissa_bits(w), w)
    inverse = d.and_(d.ult(top, fabs(d, den)), d.not_(d.or_(is_inf(d, den), is_nan(d, den))))
    small = d.slt(d.sub(e_num, e_den), d.const(2 - bias, 32))
    tiny_num = d.not_(d.slt(d.const(23 if w == 32 else 53, 32), e_num))
    true, false = d.const(1, 1), d.const(0, 1)

    value, flag = d.select(tiny_num, up, a), false
    value = d.select(small, d.select(is_num, up, a), value)
    flag = d.select(small, true, flag)
    value = d.select(inverse, down, value)
    flag = d.select(inverse, false, flag)
    both = d.and_(inverse, small)
    value = d.select(both, d.select(is_den, down, a), value)
    flag = d.select(both, true, flag)
    value = d.select(den_denormal, up, value)
    flag = d.select(den_denormal, false, flag)
    value = d.select(huge, d.select(is_den, up, a), value)
    flag = d.select(huge, true, flag)
    nan = d.const(((1 << exponent_bits(w)) - 1 << 1 | 1) << (mantissa_bits(w) - 1), w)
    return d.select(zero, nan, value), d.select(zero, true, flag)


def div_fmas(d: Domain[T], mode: Mode, a: T, b: T, c: T, vcc: T) -> T:
    """a * b + c, and the scaling of div_scale undone, towards where the addend lies."""
    w = d.width(a)
    fp = mode.fp(w)
    plain = d.ffma(a, b, c, fp)
    bias = d.const((1 << (exponent_bits(w) - 1)) - 1, 32)
    n = d.select(d.slt(bias, _exponent(d, c)), d.const(_STEP[w], 32), d.const(-_STEP[w], 32))
    return d.select(vcc, ldexp(d, mode, plain, n), plain)


def div_fixup(d: Domain[T], mode: Mode, q: T, den: T, num: T) -> T:
    """The special cases of num / den; `q` is the quotient otherwise."""
    w = d.width(q)
    sign = d.and_(d.xor(den, num), d.const(1 << (w - 1), w))
    inf = d.const(((1 << exponent_bits(w)) - 1) << mantissa_bits(w), w)
    quiet_nan = ((1 << exponent_bits(w)) - 1 << 1 | 1) << (mantissa_bits(w) - 1)
    nan = d.const(1 << (w - 1) | quiet_nan, w)
    out = d.or_(fabs(d, q), sign)
    out = d.select(is_nan(d, q), d.or_(inf, sign), out)
    if w > 16:
        gap = d.sub(_exponent(d, num), _exponent(d, den))
        least = -150 if w == 32 else -1075
        out = d.select(d.slt(gap, d.const(least, 32)), sign, out)
    den_zero, num_zero = is_zero(d, fabs(d, den)), is_zero(d, fabs(d, num))
    den_inf, num_inf = is_inf(d, den), is_inf(d, num)
    out = d.select(d.or_(den_inf, num_zero), sign, out)
    out = d.select(d.or_(den_zero, num_inf), d.or_(inf, sign), out)
    invalid = d.or_(d.and_(den_zero, num_zero), d.and_(den_inf, num_inf))
    out = d.select(invalid, nan, out)
    out = d.select(is_nan(d, den), quiet(d, den), out)
    return d.select(is_nan(d, num), quiet(d, num), out)


# 2 / pi to 1201 bits after the point.
_TWO_OVER_PI_BITS = 1201


def _two_over_pi() -> int:
    """floor(2 / pi * 2 ** 1201), by Machin's formula in integers."""
    guard = 64
    one = 1 << (_TWO_OVER_PI_BITS + guard)

    def arctan_inverse(x: int) -> int:
        total, term, n = 0, one // x, 1
        while term:
            total += term // n if n % 4 == 1 else -(term // n)
            term //= x * x
            n += 2
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return (2 * one * one // pi) >> guard


def trig_preop(d: Domain[T], mode: Mode, a: T, segment: T) -> T:
    """53 bits of 2 / pi, at the position given by `a`'s exponent and the segment."""
    bits = _two_over_pi()
    exponent = _exponent(d, a)
    shift = d.mul(d.and_(segment, d.const(31, 32)), d.const(53, 32))
    extra = d.sub(exponent, d.const(1077, 32))
    shift = d.select(d.slt(d.const(1077, 32), exponent), d.add(shift, extra), shift)
    # The window of 53 bits below bit 1201 - shift, from 64-bit words of the constant.
    padded = bits << 2048 - _TWO_OVER_PI_BITS  # bit 2047 is the first after the point
    word, within = d.lshr(shift, d.const(5, 32)), d.and_(shift, d.const(31, 32))
    pick = [d.const(0, 32)] * 3
    for i in range(64):
        hit = d.eq(word, d.const(i, 32))
        for k in range(3):
            at = 2048 - 32 * (i + k + 1)
            value = padded >> at & 0xFFFFFFFF if at >= 0 else 0
            if value:
                pick[k] = d.select(hit, d.const(value, 32), pick[k])
    high = d.concat(pick[0], pick[1])
    wide = d.zext(within, 64)
    low = d.zext(pick[2], 64)
    low = d.lshr(low, d.and_(d.sub(d.const(32, 64), wide), d.const(63, 64)))
    window = d.or_(d.shl(high, wide), d.select(is_zero(d, within), d.const(0, 64), low))
    mantissa = d.lshr(window, d.const(11, 64))
    scale = d.sub(d.const(-53, 32), shift)
    big = d.not_(d.slt(exponent, d.const(1968, 32)))
    scale = d.select(big, d.add(scale, d.const(128, 32)), scale)
    hi = d.itof(d.extract(mantissa, 32, 32), 64, False, IEEE)
    lo = d.itof(d.extract(mantissa, 0, 32), 64, False, IEEE)
    number = d.ffma(hi, d.const(0x41F0000000000000, 64), lo, IEEE)
    return ldexp(d, mode, number, scale)


def _sized(op: str, dst: str, src: str, fn: Fn, widths: tuple[int, ...]) -> Iterator[Semantics]:
    for w in widths:
        k = f"f{w}"
        yield frow(f"v_{op}_{k}", dst.replace("K", k), src.replace("K", k), fn)


def rows() -> Iterator[Semantics]:
    yield from _sized("div_scale", "K m", "K K K", div_scale, (32, 64))
    yield from _sized("div_fmas", "K", "K K K vcc", div_fmas, (32, 64))
    yield from _sized("div_fixup", "K", "K K K", div_fixup, (16, 32, 64))
    yield frow("v_trig_preop_f64", "f64", "f64 b32", trig_preop)


__all__ = ["div_fixup", "div_fmas", "div_scale", "rows", "trig_preop"]

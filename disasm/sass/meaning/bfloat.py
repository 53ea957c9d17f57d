"""bf16: the upper half of a binary32 pattern, computed in binary64 and rounded once."""

from __future__ import annotations

from typing import TypeVar

from sassxlate.domain import IEEE, Domain, Fp, Round, flush, is_inf, is_nan

T = TypeVar("T")
NAN = 0x7FFF


def widen(d: Domain[T], a: T) -> T:
    """The binary64 pattern of a bf16 one, exactly."""
    return d.fcvt(d.concat(a, d.const(0, 16)), 64, IEEE)


def odd(d: Domain[T], down: T, up: T) -> T:
    """A result rounded to odd, from those rounded down and up."""
    w = d.width(down)
    minus = d.extract(up, w - 1, 1)
    cut = d.or_(d.select(minus, up, down), d.const(1, w))
    finite = d.not_(d.or_(d.or_(is_nan(d, down), is_inf(d, down)), is_inf(d, up)))
    exact = d.eq(down, up)
    # A sum that is exactly zero is -0 downwards: not an inexact one.
    return d.select(d.or_(exact, d.not_(finite)), up, cut)


def odd_fma(d: Domain[T], a: T, b: T, c: T) -> T:
    """a * b + c of binary64 patterns, rounded to odd; an exact zero has the sign of nearest."""
    near = d.ffma(a, b, c, IEEE)
    out = odd(d, d.ffma(a, b, c, Fp(Round.DOWN)), d.ffma(a, b, c, Fp(Round.UP)))
    zero = d.eq(d.shl(near, d.const(1, 64)), d.const(0, 64))
    return d.select(zero, near, out)


def narrow(d: Domain[T], a: T, how: Round = Round.NEAREST) -> T:
    """A binary64 pattern, rounded to odd or exact, as bf16; a NaN becomes 0x7fff."""
    single = odd(d, d.fcvt(a, 32, Fp(Round.DOWN)), d.fcvt(a, 32, Fp(Round.UP)))
    return of_single(d, single, how)


def of_single(d: Domain[T], value: T, how: Round) -> T:
    """A binary32 pattern rounded to its upper half; a NaN becomes 0x7fff."""
    low = d.extract(value, 0, 16)
    some = d.not_(d.eq(low, d.const(0, 16)))
    minus = d.extract(value, 31, 1)
    if how == Round.NEAREST:
        bit = d.zext(d.extract(value, 16, 1), 16)
        # Above the middle, or at it and odd: 0x7fff and the lowest kept bit carry.
        total = d.add(d.zext(low, 17), d.add(d.const(0x7FFF, 17), d.zext(bit, 17)))
        up = d.extract(total, 16, 1)
    elif how == Round.ZERO:
        up = d.const(0, 1)
    else:
        up = d.and_(some, minus if how == Round.DOWN else d.not_(minus))
    out = d.add(d.extract(value, 16, 16), d.zext(up, 16))
    infinite = d.eq(d.extract(value, 0, 31), d.const(0x7F800000, 31))
    out = d.select(infinite, d.extract(value, 16, 16), out)
    return d.select(is_nan(d, value), d.const(NAN, 16), out)


def flushed(d: Domain[T], a: T) -> T:
    """A denormal bf16 becomes a zero of its sign."""
    return d.extract(flush(d, d.concat(a, d.const(0, 16))), 16, 16)

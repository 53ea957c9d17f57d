"""bf16: the upper half of a binary32 pattern.  Everything is rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sassxlate.domain.interface import IEEE, Domain, Fp, Round, fabs, is_nan

T = TypeVar("T")
NAN = 0x7FFF


def single(d: Domain[T], a: T) -> T:
    """The binary32 pattern of a bf16 one."""
    return d.concat(a, d.const(0, 16))


def odd(d: Domain[T], down: T, up: T) -> T:
    """A result rounded to odd, from those rounded down and up; it never overflows.

    An exact zero is taken from the value rounded up: its sign is that of rounding to nearest.
    """
    w = d.width(down)
    minus = d.extract(up, w - 1, 1)
    cut = d.or_(d.select(minus, up, down), d.const(1, w))
    return d.select(d.fcmp("oeq", down, up), up, cut)


def fma(d: Domain[T], a: T, b: T, c: T) -> T:
    """a * b + c of bf16 numbers, rounded to nearest once: by way of binary32, rounded to odd.  A
    domain may write it otherwise."""
    written: Callable[[T, T, T], T | None] | None = getattr(d, "bf16_fma", None)
    if written is not None and (out := written(a, b, c)) is not None:
        return out
    p, q, r = (single(d, v) for v in (a, b, c))
    down, up = (d.ffma(p, q, r, Fp(how)) for how in (Round.DOWN, Round.UP))
    return of_single(d, odd(d, down, up), Round.NEAREST)


def narrow(d: Domain[T], a: T, how: Round = Round.NEAREST) -> T:
    """A binary64 pattern, rounded to odd or exact, as bf16; a NaN becomes 0x7fff."""
    single = odd(d, d.fcvt(a, 32, Fp(Round.DOWN)), d.fcvt(a, 32, Fp(Round.UP)))
    return of_single(d, single, how)


def without_tiny(d: Domain[T], a: T, out: T, how: Round) -> T:
    """``out``, bf16 of ``a``, replaced by a zero of its sign if ``a``, rounded to the precision of
    normal numbers, is below them."""
    lifted = narrow(d, d.fmul(a, d.const(0x43F0000000000000, 64), IEEE), how)  # scaled by 2**64
    tiny = d.ult(fabs(d, lifted), d.const(65 << 7, 16))
    return d.select(tiny, d.and_(out, d.const(0x8000, 16)), out)


def of_single(d: Domain[T], value: T, how: Round) -> T:
    """A binary32 pattern rounded to its upper half; a NaN becomes 0x7fff.  A domain may write the
    nearest otherwise."""
    nearest: Callable[[T], T] | None = getattr(d, "bf16_nearest", None)
    if how == Round.NEAREST and nearest is not None:
        return nearest(value)
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

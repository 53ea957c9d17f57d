"""The abstract domain over which instructions' semantics are written.

A meaning is a Python function of a `Domain` and opaque values.  Evaluated over NumPy lanes it is
the reference interpreter, over z3 terms the verifier, over LLVM values the emulator's compiler.

Every value is a bit vector with a width; a width of 1 is a truth value.  Floating-point
operations take and return the IEEE bit patterns of their width (16, 32 or 64): there is no float
type.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")

FloatPredicate = Literal[
    "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"
]
Approximation = Literal["rcp", "rsq", "sqrt", "exp2", "log2", "sin", "cos", "tanh"]


class Round(IntEnum):
    """Rounding modes, numbered as AMD's MODE register does."""

    NEAREST = 0
    UP = 1
    DOWN = 2
    ZERO = 3


@dataclass(frozen=True, slots=True)
class Fp:
    """How one floating-point operation rounds, and whether it flushes denormals to signed zeros."""

    round: Round = Round.NEAREST
    flush_in: bool = False
    flush_out: bool = False


IEEE = Fp()
FTZ = Fp(flush_in=True, flush_out=True)


class Domain(Protocol[T]):
    """The operations of a meaning.  Operands of a binary operation have the same width, and so has
    its result.

    Shift counts must be below the width: a meaning masks or clamps them first, as its hardware
    does.
    """

    def const(self, n: int, width: int) -> T: ...
    def width(self, a: T) -> int: ...

    # integers
    def add(self, a: T, b: T) -> T: ...
    def sub(self, a: T, b: T) -> T: ...
    def mul(self, a: T, b: T) -> T: ...
    def and_(self, a: T, b: T) -> T: ...
    def or_(self, a: T, b: T) -> T: ...
    def xor(self, a: T, b: T) -> T: ...
    def not_(self, a: T) -> T: ...
    def shl(self, a: T, count: T) -> T: ...
    def lshr(self, a: T, count: T) -> T: ...
    def ashr(self, a: T, count: T) -> T: ...
    def eq(self, a: T, b: T) -> T: ...
    def ult(self, a: T, b: T) -> T: ...
    def slt(self, a: T, b: T) -> T: ...
    def select(self, c: T, a: T, b: T) -> T:
        """`a` if the truth value `c` holds, otherwise `b`."""
        ...

    def zext(self, a: T, width: int) -> T: ...
    def sext(self, a: T, width: int) -> T: ...
    def extract(self, a: T, lo: int, width: int) -> T:
        """Bits [lo, lo + width) of `a`."""
        ...

    def concat(self, hi: T, lo: T) -> T: ...
    def popcount(self, a: T) -> T: ...
    def clz(self, a: T) -> T:
        """Leading zeros; the width for zero."""
        ...

    def ctz(self, a: T) -> T:
        """Trailing zeros; the width for zero."""
        ...

    def bitreverse(self, a: T) -> T: ...

    # floating point; a NaN result is some quiet NaN
    def fadd(self, a: T, b: T, fp: Fp) -> T: ...
    def fmul(self, a: T, b: T, fp: Fp) -> T: ...
    def ffma(self, a: T, b: T, c: T, fp: Fp) -> T:
        """a * b + c, rounded once."""
        ...

    def fcmp(self, predicate: FloatPredicate, a: T, b: T) -> T:
        """An IEEE comparison; denormals are numbers (flush first where the hardware does)."""
        ...

    def frint(self, a: T, how: Round) -> T:
        """The integral value next to `a`; a NaN is quieted, signs of zeros are kept."""
        ...

    def fcvt(self, a: T, width: int, fp: Fp) -> T:
        """`a` in the format of another width; rounds if that is narrower."""
        ...

    def ftoi(self, a: T, width: int, signed: bool) -> T:
        """Truncated towards zero, saturated; NaN gives 0."""
        ...

    def itof(self, a: T, width: int, signed: bool, fp: Fp) -> T: ...
    def approx(self, fn: Approximation, a: T) -> T:
        """An approximation within the bounds its vendor states; sin and cos take revolutions.

        Denormals are not flushed: a meaning does that itself.
        """
        ...


def has_payloads(d: Domain[T]) -> bool:
    """Whether a domain distinguishes NaNs; the solver's has one NaN per format."""
    return bool(getattr(d, "payloads", True))


# --- what many meanings share -------------------------------------------------------------------

_EXP = {16: 5, 32: 8, 64: 11}


def exponent_bits(width: int) -> int:
    """Exponent bits of the IEEE format of that width."""
    return _EXP[width]


def mantissa_bits(width: int) -> int:
    """Stored mantissa bits of the IEEE format of that width."""
    return width - 1 - _EXP[width]


def ne(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.eq(a, b))


def ule(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.ult(b, a))


def sle(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.slt(b, a))


def umin(d: Domain[T], a: T, b: T) -> T:
    return d.select(d.ult(a, b), a, b)


def umax(d: Domain[T], a: T, b: T) -> T:
    return d.select(d.ult(b, a), a, b)


def smin(d: Domain[T], a: T, b: T) -> T:
    return d.select(d.slt(a, b), a, b)


def smax(d: Domain[T], a: T, b: T) -> T:
    return d.select(d.slt(b, a), a, b)


def neg(d: Domain[T], a: T) -> T:
    return d.sub(d.const(0, d.width(a)), a)


def is_zero(d: Domain[T], a: T) -> T:
    return d.eq(a, d.const(0, d.width(a)))


def mask_bits(d: Domain[T], a: T, mask: int) -> T:
    return d.and_(a, d.const(mask, d.width(a)))


def fneg(d: Domain[T], a: T) -> T:
    w = d.width(a)
    return d.xor(a, d.const(1 << (w - 1), w))


def fabs(d: Domain[T], a: T) -> T:
    w = d.width(a)
    return d.and_(a, d.const((1 << (w - 1)) - 1, w))


def is_nan(d: Domain[T], a: T) -> T:
    w = d.width(a)
    inf = ((1 << _EXP[w]) - 1) << mantissa_bits(w)
    return d.ult(d.const(inf, w), fabs(d, a))


def is_inf(d: Domain[T], a: T) -> T:
    w = d.width(a)
    return d.eq(fabs(d, a), d.const(((1 << _EXP[w]) - 1) << mantissa_bits(w), w))


def is_denormal(d: Domain[T], a: T) -> T:
    """Whether `a` is denormal and not zero."""
    w = d.width(a)
    m = mantissa_bits(w)
    low = d.sub(fabs(d, a), d.const(1, w))  # zero wraps to the largest
    return d.ult(low, d.const((1 << m) - 1, w))


def flush(d: Domain[T], a: T) -> T:
    """A denormal becomes a zero of its sign."""
    w = d.width(a)
    m = mantissa_bits(w)
    exponent = d.and_(a, d.const(((1 << _EXP[w]) - 1) << m, w))
    return d.select(is_zero(d, exponent), d.and_(a, d.const(1 << (w - 1), w)), a)


def quiet(d: Domain[T], a: T) -> T:
    """A signalling NaN becomes quiet."""
    w = d.width(a)
    return d.select(is_nan(d, a), d.or_(a, d.const(1 << (mantissa_bits(w) - 1), w)), a)

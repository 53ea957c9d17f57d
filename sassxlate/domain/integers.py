"""The integer domain of semantics: one lane, Python integers, exact arithmetic rounded once.

It shares only the semantics with the LLVM evaluator, so that the two check each other.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction

from sassxlate.domain.interface import (
    Approximation,
    FloatPredicate,
    Fp,
    Round,
    exponent_bits,
    mantissa_bits,
)


@dataclass(frozen=True, slots=True)
class Bits:
    """`w` bits with the value `n`."""

    n: int
    w: int

    @property
    def signed(self) -> int:
        return self.n - (1 << self.w) if self.n >> (self.w - 1) & 1 else self.n


def make(n: int, w: int) -> Bits:
    return Bits(n & ((1 << w) - 1), w)


# --- IEEE formats ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A decoded float: `kind` is "nan", "inf" or "finite"; finite ones are `value`, and a zero
    has its `sign` (1: negative)."""

    kind: str
    sign: int
    value: Fraction


def decode(a: Bits) -> Number:
    m, ebits = mantissa_bits(a.w), exponent_bits(a.w)
    sign, biased = a.n >> (a.w - 1), a.n >> m & ((1 << ebits) - 1)
    fraction = a.n & ((1 << m) - 1)
    if biased == (1 << ebits) - 1:
        return Number("nan" if fraction else "inf", sign, Fraction(0))
    bias = (1 << (ebits - 1)) - 1
    size = Fraction(fraction) if biased == 0 else Fraction(fraction | 1 << m)
    exponent = max(biased, 1) - bias - m
    size = size * (1 << exponent) if exponent >= 0 else size / (1 << -exponent)
    return Number("finite", sign, -size if sign else size)


def nan(w: int) -> Bits:
    m, ebits = mantissa_bits(w), exponent_bits(w)
    return Bits(((1 << ebits) - 1) << m | 1 << (m - 1), w)


def infinity(w: int, sign: int) -> Bits:
    return Bits(sign << (w - 1) | ((1 << exponent_bits(w)) - 1) << mantissa_bits(w), w)


def _integer(x: Fraction, how: Round, negative: bool) -> int:
    """A magnitude to an integer; directions are those of the signed value."""
    low = x.numerator // x.denominator
    rest = x - low
    if rest == 0:
        return low
    if how == Round.NEAREST:
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low & 1 == 1)
    else:
        up = (how == Round.UP and not negative) or (how == Round.DOWN and negative)
    return low + up


def encode(x: Fraction, w: int, how: Round, zero_sign: int = 0) -> Bits:
    """A number in the format of width w, rounded once."""
    m, ebits = mantissa_bits(w), exponent_bits(w)
    bias = (1 << (ebits - 1)) - 1
    sign = zero_sign if x == 0 else int(x < 0)
    size = abs(x)
    if size == 0:
        return Bits(sign << (w - 1), w)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** e:
        e -= 1
    e = max(e, 1 - bias)
    units = _integer(size / Fraction(2) ** (e - m), how, bool(sign))
    bits = ((e + bias - 1) << m) + units  # a carry goes into the exponent
    top = ((1 << ebits) - 1) << m
    if bits >= top:
        away = (
            how == Round.NEAREST
            or (how == Round.UP and not sign)
            or (how == Round.DOWN and bool(sign))
        )
        bits = top if away else top - 1
    return Bits(sign << (w - 1) | bits, w)


def _is_denormal(a: Bits) -> bool:
    m = mantissa_bits(a.w)
    return a.n >> m & ((1 << exponent_bits(a.w)) - 1) == 0 and a.n & ((1 << m) - 1) != 0


def _rounded(x: Fraction, w: int, fp: Fp, zero_sign: int = 0) -> Bits:
    """A number in the format of width w, rounded once and flushed.

    Flushed is what is below the normal numbers after rounding to their precision, as an H100 does;
    of binary64, what is a denormal number (no instruction that we have flushes one).
    """
    out = encode(x, w, fp.round, zero_sign)
    if not fp.flush_out or w == 64:
        return _flush(out, fp.flush_out)
    lift = 8 if w == 16 else 64
    sign = 1 << (w - 1)
    lifted = encode(x * 2**lift, w, fp.round).n & (sign - 1)
    return Bits(out.n & sign, w) if lifted < (lift + 1) << mantissa_bits(w) else out


def _flush(a: Bits, on: bool) -> Bits:
    return Bits(a.n & 1 << (a.w - 1), a.w) if on and _is_denormal(a) else a


# --- the domain ------------------------------------------------------------------------------


class Reference:
    """`Domain[Bits]`."""

    def const(self, n: int, width: int) -> Bits:
        return make(n, width)

    def width(self, a: Bits) -> int:
        return a.w

    def add(self, a: Bits, b: Bits) -> Bits:
        return make(a.n + b.n, a.w)

    def sub(self, a: Bits, b: Bits) -> Bits:
        return make(a.n - b.n, a.w)

    def mul(self, a: Bits, b: Bits) -> Bits:
        return make(a.n * b.n, a.w)

    def and_(self, a: Bits, b: Bits) -> Bits:
        return Bits(a.n & b.n, a.w)

    def or_(self, a: Bits, b: Bits) -> Bits:
        return Bits(a.n | b.n, a.w)

    def xor(self, a: Bits, b: Bits) -> Bits:
        return Bits(a.n ^ b.n, a.w)

    def not_(self, a: Bits) -> Bits:
        return make(~a.n, a.w)

    def _count(self, a: Bits, count: Bits) -> int:
        if count.n >= a.w:
            raise ValueError(f"a shift of {a.w} bits by {count.n}")
        return count.n

    def shl(self, a: Bits, count: Bits) -> Bits:
        return make(a.n << self._count(a, count), a.w)

    def lshr(self, a: Bits, count: Bits) -> Bits:
        return make(a.n >> self._count(a, count), a.w)

    def ashr(self, a: Bits, count: Bits) -> Bits:
        return make(a.signed >> self._count(a, count), a.w)

    def eq(self, a: Bits, b: Bits) -> Bits:
        return Bits(int(a.n == b.n), 1)

    def ult(self, a: Bits, b: Bits) -> Bits:
        return Bits(int(a.n < b.n), 1)

    def slt(self, a: Bits, b: Bits) -> Bits:
        return Bits(int(a.signed < b.signed), 1)

    def select(self, c: Bits, a: Bits, b: Bits) -> Bits:
        return a if c.n else b

    def zext(self, a: Bits, width: int) -> Bits:
        return Bits(a.n, width)

    def sext(self, a: Bits, width: int) -> Bits:
        return make(a.signed, width)

    def extract(self, a: Bits, lo: int, width: int) -> Bits:
        return make(a.n >> lo, width)

    def concat(self, hi: Bits, lo: Bits) -> Bits:
        return Bits(hi.n << lo.w | lo.n, hi.w + lo.w)

    def popcount(self, a: Bits) -> Bits:
        return Bits(a.n.bit_count(), a.w)

    def clz(self, a: Bits) -> Bits:
        return Bits(a.w - a.n.bit_length(), a.w)

    def ctz(self, a: Bits) -> Bits:
        return Bits((a.n & -a.n).bit_length() - 1 if a.n else a.w, a.w)

    def bitreverse(self, a: Bits) -> Bits:
        return Bits(int(f"{a.n:0{a.w}b}"[::-1], 2), a.w)

    # -- floating point -------------------------------------------------------------------

    def _sum(self, a: Number, b: Number, w: int, fp: Fp) -> Bits:
        if a.kind == "nan" or b.kind == "nan":
            return nan(w)
        if a.kind == "inf" or b.kind == "inf":
            if a.kind == b.kind and a.sign != b.sign:
                return nan(w)
            return infinity(w, a.sign if a.kind == "inf" else b.sign)
        total = a.value + b.value
        zero = a.sign if a.sign == b.sign else int(fp.round == Round.DOWN)
        return _rounded(total, w, fp, zero)

    def fadd(self, a: Bits, b: Bits, fp: Fp) -> Bits:
        x, y = (decode(_flush(v, fp.flush_in)) for v in (a, b))
        return self._sum(x, y, a.w, fp)

    def _product(self, a: Number, b: Number) -> Number:
        sign = a.sign ^ b.sign
        if "nan" in (a.kind, b.kind):
            return Number("nan", 0, Fraction(0))
        if "inf" in (a.kind, b.kind):
            other = b if a.kind == "inf" else a
            if other.kind == "finite" and other.value == 0:
                return Number("nan", 0, Fraction(0))
            return Number("inf", sign, Fraction(0))
        return Number("finite", sign, a.value * b.value)

    def fmul(self, a: Bits, b: Bits, fp: Fp) -> Bits:
        x, y = (decode(_flush(v, fp.flush_in)) for v in (a, b))
        p = self._product(x, y)
        if p.kind == "nan":
            return nan(a.w)
        if p.kind == "inf":
            return infinity(a.w, p.sign)
        return _rounded(p.value, a.w, fp, p.sign)

    def ffma(self, a: Bits, b: Bits, c: Bits, fp: Fp) -> Bits:
        x, y, z = (decode(_flush(v, fp.flush_in)) for v in (a, b, c))
        return self._sum(self._product(x, y), z, a.w, fp)

    def fcmp(self, predicate: FloatPredicate, a: Bits, b: Bits) -> Bits:
        x, y = decode(a), decode(b)
        unordered = "nan" in (x.kind, y.kind)
        if predicate in ("ord", "uno"):
            return Bits(int(unordered == (predicate == "uno")), 1)
        if unordered:
            return Bits(int(predicate[0] == "u"), 1)

        def key(v: Number) -> tuple[int, Fraction]:
            return ((-1 if v.sign else 1) if v.kind == "inf" else 0), v.value

        p, q = key(x), key(y)
        result = {
            "eq": p == q, "gt": p > q, "ge": p >= q, "lt": p < q, "le": p <= q, "ne": p != q,
        }[predicate[1:]]  # fmt: skip
        return Bits(int(result), 1)

    def frint(self, a: Bits, how: Round) -> Bits:
        x = decode(a)
        if x.kind != "finite":
            return Bits(a.n | 1 << (mantissa_bits(a.w) - 1), a.w) if x.kind == "nan" else a
        n = _integer(abs(x.value), how, bool(x.sign))
        return encode(Fraction(-n if x.sign else n), a.w, Round.ZERO, x.sign)

    def fcvt(self, a: Bits, width: int, fp: Fp) -> Bits:
        x = decode(_flush(a, fp.flush_in))
        if x.kind == "nan":
            return nan(width)
        if x.kind == "inf":
            return infinity(width, x.sign)
        return _rounded(x.value, width, fp, x.sign)

    def ftoi(self, a: Bits, width: int, signed: bool) -> Bits:
        x = decode(a)
        low = -(1 << (width - 1)) if signed else 0
        high = low + (1 << width) - 1
        if x.kind == "nan":
            return Bits(0, width)
        if x.kind == "inf":
            return make(low if x.sign else high, width)
        n = math.trunc(x.value)
        return make(max(low, min(high, n)), width)

    def itof(self, a: Bits, width: int, signed: bool, fp: Fp) -> Bits:
        return encode(Fraction(a.signed if signed else a.n), width, fp.round)

    def approx(self, fn: Approximation, a: Bits) -> Bits:
        x = decode(a)
        if x.kind == "finite" and x.value == 0:
            inf = infinity(a.w, x.sign)
            zero = {"rcp": inf, "rsq": inf, "sqrt": a, "log2": infinity(a.w, 1), "sin": a}
            return zero.get(fn, encode(Fraction(1), a.w, Round.NEAREST))
        if x.kind == "inf":
            return self._of_infinity(fn, a.w, x.sign)
        if x.kind == "nan" or (x.sign and fn in ("rsq", "sqrt", "log2")):
            return nan(a.w)
        return _function(fn, x.value, a.w)

    def _of_infinity(self, fn: Approximation, w: int, sign: int) -> Bits:
        if fn == "rcp":
            return Bits(sign << (w - 1), w)
        if fn == "exp2":
            return Bits(0, w) if sign else infinity(w, 0)
        if fn in ("sin", "cos") or sign:
            return nan(w)
        return Bits(0, w) if fn == "rsq" else infinity(w, 0)


def _sqrt(x: Fraction) -> Fraction:
    """To 160 bits."""
    scale = 320 + max(0, x.denominator.bit_length() - x.numerator.bit_length())
    scale += scale & 1
    return Fraction(math.isqrt((x.numerator << scale) // x.denominator), 1 << scale // 2)


def _function(fn: Approximation, x: Fraction, w: int) -> Bits:
    if fn in ("rcp", "rsq", "sqrt"):
        y = x if fn == "rcp" else _sqrt(x)
        return encode(y if fn == "sqrt" else 1 / y, w, Round.NEAREST)
    if fn == "exp2":
        if abs(x) > 2000:
            return Bits(0, w) if x < 0 else infinity(w, 0)
        n = math.floor(x)
        return encode(Fraction(2.0 ** float(x - n)) * Fraction(2) ** n, w, Round.NEAREST)
    if fn == "log2":
        return encode(Fraction(_log2(x)), w, Round.NEAREST)
    r = x - round(x)
    turn = 2 * math.pi * float(r)
    wave: float
    if fn == "cos":
        wave = (
            math.cos(turn)
            if abs(r) < Fraction(1, 8)
            else math.sin(2 * math.pi * float(Fraction(1, 4) - abs(r)))
        )
    else:
        near = abs(r) <= Fraction(1, 4)
        wave = (
            math.sin(turn)
            if near
            else math.copysign(math.sin(2 * math.pi * float(Fraction(1, 2) - abs(r))), r)
        )
    # Of whole negative turns the sine is +0 (RDNA3 ISA, V_SIN_F32's examples).
    return encode(Fraction(wave), w, Round.NEAREST, int(math.copysign(1.0, wave) < 0))


def _log2(x: Fraction) -> float:
    if Fraction(1, 2) < x < 2:
        return math.log1p(float(x - 1)) / math.log(2)
    return math.log2(float(x)) if x > Fraction(2) ** -1000 else math.log2(float(x * 2**200)) - 200


def from_float(x: float, w: int) -> Bits:
    fmt = {16: "<e", 32: "<f", 64: "<d"}[w]
    return Bits(int.from_bytes(struct.pack(fmt, x), "little"), w)

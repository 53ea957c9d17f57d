"""The NumPy domain of semantics: many lanes at once, every rounding mode, no host control register.

Values are arrays of ``uint64`` that hold ``w`` bits each; constants have one element and broadcast.
binary16 and binary32 are computed in binary64 rounded to odd and then rounded once (Boldo and
Melquiond 2008: right where the wider format has at least two bits more than twice the narrower's);
binary64 in integers where NumPy's nearest-even addition and product do not apply.

A result is flushed where it is below the normal numbers once it is rounded to their precision: what
rounds up to the smallest of them is kept (measured on an H200; not known of AMD's hardware).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.domain.interface import (
    Approximation,
    FloatPredicate,
    Fp,
    Round,
    exponent_bits,
    mantissa_bits,
)

U: TypeAlias = NDArray[np.uint64]
F: TypeAlias = NDArray[np.float64]
B: TypeAlias = NDArray[np.bool_]

_ONE = np.uint64(1)


@dataclass(frozen=True, slots=True)
class Vec:
    """``w`` bits per lane, at most 64; bits above are zero."""

    v: U
    w: int

    @property
    def signed(self) -> NDArray[np.int64]:
        """As two's complement numbers."""
        rest = np.uint64(64 - self.w)
        return (self.v << rest).view(np.int64) >> rest.astype(np.int64)

    @property
    def true(self) -> B:
        out: B = self.v != 0
        return out


def vec(values: object, w: int) -> Vec:
    """Lanes from numbers, cut to ``w`` bits."""
    return Vec(np.atleast_1d(np.asarray(values, dtype=np.uint64)) & _ones(w), w)


def _ones(w: int) -> np.uint64:
    return np.uint64((1 << w) - 1)


def _truth(b: B) -> Vec:
    return Vec(b.astype(np.uint64), 1)


# --- IEEE formats ------------------------------------------------------------------------------


def _sign(a: Vec) -> B:
    out: B = (a.v >> np.uint64(a.w - 1)).astype(np.bool_)
    return out


def _inf(w: int) -> int:
    return ((1 << exponent_bits(w)) - 1) << mantissa_bits(w)


def _magnitude(a: Vec) -> U:
    return a.v & _ones(a.w - 1)


def _is_nan(a: Vec) -> B:
    out: B = _magnitude(a) > np.uint64(_inf(a.w))
    return out


def _flush(a: Vec, on: bool) -> Vec:
    if not on:
        return a
    tiny = (a.v & np.uint64(_inf(a.w))) == 0
    return Vec(np.where(tiny, a.v & np.uint64(1 << (a.w - 1)), a.v), a.w)


def to_float(a: Vec) -> F:
    """As binary64 numbers, exactly."""
    if a.w == 64:
        return a.v.view(np.float64)
    narrow = a.v.astype(np.uint32 if a.w == 32 else np.uint16)
    return narrow.view(np.float32 if a.w == 32 else np.float16).astype(np.float64)


def pack(negative: B, mantissa: U, exponent: NDArray[np.int64], w: int, how: Round) -> Vec:
    """``mantissa`` times two to the ``exponent``, rounded once to the format of width ``w``.

    The lowest bit of a mantissa of 64 significant bits may be sticky.
    """
    m, bias = mantissa_bits(w), (1 << (exponent_bits(w) - 1)) - 1
    lead = _clz64(mantissa)
    norm = mantissa << np.minimum(lead, np.uint64(63))
    e = exponent + 63 - lead.astype(np.int64)  # of the highest bit
    sticky = (norm & np.uint64(3)) != 0
    norm = (norm >> np.uint64(2)) | sticky.astype(np.uint64)
    below = np.maximum(1 - bias - e, 0)
    shift = np.minimum(61 - m + below, 63).astype(np.uint64)
    q = norm >> shift
    rest = norm & ((_ONE << shift) - _ONE)
    half = _ONE << (shift - _ONE)
    if how == Round.NEAREST:
        up = (rest > half) | ((rest == half) & ((q & _ONE) == 1))
    elif how == Round.ZERO:
        up = np.zeros_like(negative)
    else:
        up = (rest != 0) & (negative == (how == Round.DOWN))
    field = (np.maximum(e, 1 - bias) + bias - 1).astype(np.int64)
    top = np.uint64(_inf(w))
    huge = field >= (1 << exponent_bits(w)) - 1
    safe = np.where(huge, 0, field).astype(np.uint64)
    bits = (safe << np.uint64(m)) + q + up.astype(np.uint64)
    huge |= bits >= top
    if how == Round.NEAREST:
        away = np.ones_like(negative)
    elif how == Round.ZERO:
        away = np.zeros_like(negative)
    else:
        away = negative == (how == Round.DOWN)
    bits = np.where(huge, np.where(away, top, top - _ONE), bits)
    bits = np.where(mantissa == 0, np.uint64(0), bits)
    return Vec(bits | (negative.astype(np.uint64) << np.uint64(w - 1)), w)


def _clz64(a: U) -> U:
    out = np.zeros_like(a)
    left = a.copy()
    for step in (32, 16, 8, 4, 2, 1):
        empty = (left >> np.uint64(64 - step)) == 0
        out += np.where(empty, np.uint64(step), np.uint64(0))
        left = np.where(empty, left << np.uint64(step), left)
    return np.where(a == 0, np.uint64(64), out)


def _from_float(x: F, w: int, how: Round) -> Vec:
    """A binary64 number in the format of width ``w``, rounded once; NaN is a quiet one."""
    bits = np.atleast_1d(x).view(np.uint64)
    if w == 64:
        return Vec(np.where(np.isnan(x), np.uint64(_inf(64) | 1 << 51), bits), 64)
    negative = (bits >> np.uint64(63)) != 0
    field = ((bits >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64)
    mantissa = bits & np.uint64((1 << 52) - 1)
    mantissa = np.where(field != 0, mantissa | np.uint64(1 << 52), mantissa)
    out = pack(negative, mantissa, np.maximum(field, 1) - 1075, w, how)
    sign = negative.astype(np.uint64) << np.uint64(w - 1)
    v = np.where(np.isinf(x), np.uint64(_inf(w)) | sign, out.v)
    return Vec(np.where(np.isnan(x), np.uint64(_inf(w) | 1 << (mantissa_bits(w) - 1)), v), w)


def _rounded(x: F, w: int, fp: Fp) -> Vec:
    """``x`` (binary64, rounded to odd) in the format of width ``w``, rounded and flushed."""
    out = _from_float(x, w, fp.round)
    if not fp.flush_out or w == 64:
        return _flush(out, fp.flush_out)
    # With the exponent moved away from the limits, the precision is that of normal numbers.
    lift = 8 if w == 16 else 64
    least = np.uint64((lift + 1) << mantissa_bits(w))
    tiny = _magnitude(_from_float(x * 2.0**lift, w, fp.round)) < least
    return Vec(np.where(tiny, out.v & np.uint64(1 << (w - 1)), out.v), w)


def _odd_sum(a: F, b: F) -> F:
    """a + b in binary64, rounded to odd; neither overflows nor underflows."""
    s = a + b
    near = s - a
    error = (a - (s - near)) + (b - near)
    inexact = np.isfinite(s) & (error != 0) & np.isfinite(error)
    bits = s.view(np.uint64)
    outside = (error < 0) != (s < 0)
    cut = np.where(outside, bits - _ONE, bits) | _ONE
    return np.where(inexact, cut, bits).view(np.float64)


# --- binary64 in integers ----------------------------------------------------------------------


def _split64(bits: int) -> tuple[int, int, int, str]:
    """Sign, mantissa and exponent of its lowest bit, and the kind of number."""
    sign, field, fraction = bits >> 63, bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if field == 0x7FF:
        return sign, 0, 0, "nan" if fraction else "inf"
    return sign, fraction | (1 << 52 if field else 0), max(field, 1) - 1075, "finite"


def _round64(sign: int, mantissa: int, exponent: int, how: Round) -> int:
    """A positive mantissa as binary64."""
    e = max(mantissa.bit_length() + exponent - 1, -1022) - 52
    cut = e - exponent
    if cut > 0:
        q, rest, half = mantissa >> cut, mantissa & (1 << cut) - 1, 1 << (cut - 1)
        if how == Round.NEAREST:
            q += rest > half or (rest == half and q & 1 == 1)
        elif how != Round.ZERO:
            q += rest > 0 and bool(sign) == (how == Round.DOWN)
    else:
        q = mantissa << -cut
    bits = ((e + 1074) << 52) + q
    if bits >= _inf(64):
        away = how == Round.NEAREST or (how != Round.ZERO and bool(sign) == (how == Round.DOWN))
        bits = _inf(64) if away else _inf(64) - 1
    return sign << 63 | bits


_NAN64 = _inf(64) | 1 << 51


def _fma64(a: int, b: int, c: int, how: Round) -> int:
    """a * b + c of binary64 patterns."""
    (sa, ma, ea, ka), (sb, mb, eb, kb), (sc, mc, ec, kc) = _split64(a), _split64(b), _split64(c)
    sp, zero = sa ^ sb, (ka == "finite" and ma == 0) or (kb == "finite" and mb == 0)
    if "nan" in (ka, kb, kc):
        return _NAN64
    if "inf" in (ka, kb):
        if zero or (kc == "inf" and sc != sp):
            return _NAN64
        return sp << 63 | _inf(64)
    if kc == "inf":
        return c
    low = min(ea + eb, ec)
    total = (-1 if sp else 1) * (ma * mb << (ea + eb - low))
    total += (-1 if sc else 1) * (mc << (ec - low))
    if total == 0:
        sign = sp if sp == sc else int(how == Round.DOWN)
        return sign << 63
    return _round64(int(total < 0), abs(total), low, how)


def _fma64s(a: U, b: U, c: U, how: Round) -> U:
    arrays = np.broadcast_arrays(a, b, c)
    lists: list[list[int]] = [v.ravel().tolist() for v in arrays]
    out = [_fma64(x, y, z, how) for x, y, z in zip(*lists, strict=True)]
    return np.array(out, dtype=np.uint64).reshape(arrays[0].shape)


# --- the domain --------------------------------------------------------------------------------


class Vectors:
    """``Domain[Vec]``."""

    def const(self, n: int, width: int) -> Vec:
        return Vec(np.array([n & ((1 << width) - 1)], dtype=np.uint64), width)

    def width(self, a: Vec) -> int:
        return a.w

    def _cut(self, v: U, w: int) -> Vec:
        return Vec(v if w == 64 else v & _ones(w), w)

    def add(self, a: Vec, b: Vec) -> Vec:
        return self._cut(a.v + b.v, a.w)

    def sub(self, a: Vec, b: Vec) -> Vec:
        return self._cut(a.v - b.v, a.w)

    def mul(self, a: Vec, b: Vec) -> Vec:
        return self._cut(a.v * b.v, a.w)

    def and_(self, a: Vec, b: Vec) -> Vec:
        return Vec(a.v & b.v, a.w)

    def or_(self, a: Vec, b: Vec) -> Vec:
        return Vec(a.v | b.v, a.w)

    def xor(self, a: Vec, b: Vec) -> Vec:
        return Vec(a.v ^ b.v, a.w)

    def not_(self, a: Vec) -> Vec:
        return self._cut(~a.v, a.w)

    def _count(self, a: Vec, count: Vec) -> U:
        if (count.v >= np.uint64(a.w)).any():
            raise ValueError(f"a shift of {a.w} bits by {int(count.v.max())}")
        return count.v

    def shl(self, a: Vec, count: Vec) -> Vec:
        return self._cut(a.v << self._count(a, count), a.w)

    def lshr(self, a: Vec, count: Vec) -> Vec:
        return Vec(a.v >> self._count(a, count), a.w)

    def ashr(self, a: Vec, count: Vec) -> Vec:
        moved = a.signed >> self._count(a, count).astype(np.int64)
        return self._cut(moved.view(np.uint64), a.w)

    def eq(self, a: Vec, b: Vec) -> Vec:
        return _truth(a.v == b.v)

    def ult(self, a: Vec, b: Vec) -> Vec:
        return _truth(a.v < b.v)

    def slt(self, a: Vec, b: Vec) -> Vec:
        return _truth(a.signed < b.signed)

    def select(self, c: Vec, a: Vec, b: Vec) -> Vec:
        return Vec(np.where(c.true, a.v, b.v), a.w)

    def zext(self, a: Vec, width: int) -> Vec:
        return Vec(a.v, width)

    def sext(self, a: Vec, width: int) -> Vec:
        return self._cut(a.signed.view(np.uint64), width)

    def extract(self, a: Vec, lo: int, width: int) -> Vec:
        return self._cut(a.v >> np.uint64(lo), width)

    def concat(self, hi: Vec, lo: Vec) -> Vec:
        if hi.w + lo.w > 64:
            raise ValueError("more than 64 bits")
        return Vec(hi.v << np.uint64(lo.w) | lo.v, hi.w + lo.w)

    def popcount(self, a: Vec) -> Vec:
        total = np.zeros_like(a.v)
        for i in range(a.w):
            total += (a.v >> np.uint64(i)) & _ONE
        return self._cut(total, a.w)

    def clz(self, a: Vec) -> Vec:
        return self._cut(_clz64(a.v) - np.uint64(64 - a.w), a.w)

    def ctz(self, a: Vec) -> Vec:
        lowest = a.v & (~a.v + _ONE)
        place = np.uint64(63) - _clz64(lowest)
        return self._cut(np.where(a.v == 0, np.uint64(a.w), place), a.w)

    def bitreverse(self, a: Vec) -> Vec:
        out = np.zeros_like(a.v)
        for i in range(a.w):
            out |= ((a.v >> np.uint64(i)) & _ONE) << np.uint64(a.w - 1 - i)
        return Vec(out, a.w)

    # -- floating point -------------------------------------------------------------------

    def fadd(self, a: Vec, b: Vec, fp: Fp) -> Vec:
        a, b = _flush(a, fp.flush_in), _flush(b, fp.flush_in)
        with np.errstate(all="ignore"):
            if a.w == 64:
                out = self._add64(a, b, fp.round)
            else:
                x, y = to_float(a), to_float(b)
                out = _rounded(_odd_sum(x, y), a.w, fp)
                return self._zero_sum(out, _sign(a), _sign(b), x + y, fp.round)
        return _flush(out, fp.flush_out)

    def _zero_sum(self, out: Vec, a: B, b: B, total: F, how: Round) -> Vec:
        """An exact zero of two signs is negative if rounding is downwards."""
        if how != Round.DOWN:
            return out
        mixed = (total == 0) & (a != b)
        return Vec(np.where(mixed, np.uint64(1 << (out.w - 1)), out.v), out.w)

    def _add64(self, a: Vec, b: Vec, how: Round) -> Vec:
        if how == Round.NEAREST:
            return _from_float(to_float(a) + to_float(b), 64, how)
        one = np.array([1.0]).view(np.uint64)
        return Vec(_fma64s(a.v, one, b.v, how), 64)

    def fmul(self, a: Vec, b: Vec, fp: Fp) -> Vec:
        a, b = _flush(a, fp.flush_in), _flush(b, fp.flush_in)
        with np.errstate(all="ignore"):
            if a.w < 64 or fp.round == Round.NEAREST:
                return _rounded(to_float(a) * to_float(b), a.w, fp)
            minus = (a.v ^ b.v) & np.uint64(1 << 63)  # a zero of the product's sign
            out = Vec(_fma64s(a.v, b.v, minus, fp.round), 64)
        return _flush(out, fp.flush_out)

    def ffma(self, a: Vec, b: Vec, c: Vec, fp: Fp) -> Vec:
        a, b, c = (_flush(x, fp.flush_in) for x in (a, b, c))
        with np.errstate(all="ignore"):
            if a.w == 64:
                out = Vec(_fma64s(a.v, b.v, c.v, fp.round), 64)
            else:
                product = to_float(a) * to_float(b)  # exact
                z = to_float(c)
                out = _rounded(_odd_sum(product, z), a.w, fp)
                return self._zero_sum(out, np.signbit(product), _sign(c), product + z, fp.round)
        return _flush(out, fp.flush_out)

    def fcmp(self, predicate: FloatPredicate, a: Vec, b: Vec) -> Vec:
        with np.errstate(all="ignore"):
            x, y = to_float(a), to_float(b)
            unordered = _is_nan(a) | _is_nan(b)
            if predicate in ("ord", "uno"):
                return _truth(unordered == (predicate == "uno"))
            result = {
                "eq": x == y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y, "ne": x != y,
            }[predicate[1:]]  # fmt: skip
        return _truth(np.where(unordered, predicate[0] == "u", result))

    def frint(self, a: Vec, how: Round) -> Vec:
        rounded = {
            Round.NEAREST: np.rint, Round.UP: np.ceil, Round.DOWN: np.floor, Round.ZERO: np.trunc,
        }[how]  # fmt: skip
        with np.errstate(all="ignore"):
            out = _from_float(rounded(to_float(a)), a.w, Round.ZERO)
        quiet = a.v | np.uint64(1 << (mantissa_bits(a.w) - 1))
        return Vec(np.where(_is_nan(a), quiet, out.v), a.w)

    def fcvt(self, a: Vec, width: int, fp: Fp) -> Vec:
        with np.errstate(all="ignore"):
            return _rounded(to_float(_flush(a, fp.flush_in)), width, fp)

    def ftoi(self, a: Vec, width: int, signed: bool) -> Vec:
        with np.errstate(all="ignore"):
            x = np.trunc(to_float(a))
            low = -(2.0 ** (width - 1)) if signed else 0.0
            high = 2.0 ** (width - 1 if signed else width)
            top = (1 << (width - 1 if signed else width)) - 1
            inside = (x >= low) & (x < high)
            safe = np.where(inside, x, 0.0)
            upper = safe >= 2.0**63
            whole = np.where(upper, safe - 2.0**63, safe).astype(np.int64).view(np.uint64)
            whole = np.where(upper, whole | np.uint64(1 << 63), whole)
            out = np.where(x >= high, np.uint64(top), whole)
            bottom = np.uint64(int(low) & (1 << 64) - 1)
            out = np.where(x < low, bottom, out)
            return self._cut(np.where(np.isnan(x), np.uint64(0), out), width)

    def itof(self, a: Vec, width: int, signed: bool, fp: Fp) -> Vec:
        negative = _sign(a) if signed else np.zeros(a.v.shape, dtype=np.bool_)
        size = np.where(negative, (~a.signed.view(np.uint64)) + _ONE, a.v)
        return pack(negative, size, np.zeros(size.shape, dtype=np.int64), width, fp.round)

    def approx(self, fn: Approximation, a: Vec) -> Vec:
        """The nearest value of the format, or, for binary64, possibly an adjacent one."""
        with np.errstate(all="ignore"):
            x = to_float(a)
            return _from_float(_APPROXIMATE[fn](x), a.w, Round.NEAREST)


def _wave(x: F, quarter: float) -> F:
    """sin of ``x`` revolutions, ahead by ``quarter``; reduced before it is multiplied."""
    r = x - np.rint(x)
    turned = np.where(np.isfinite(x), r + quarter, np.nan)
    turned = turned - np.rint(turned)
    folded = np.where(np.abs(turned) > 0.25, np.copysign(0.5, turned) - turned, turned)
    return np.asarray(np.sin(2 * np.pi * folded), dtype=np.float64)


def _sin(x: F) -> F:
    return np.where(x == 0, x, _wave(x, 0.0))


_APPROXIMATE: dict[Approximation, Callable[[F], F]] = {
    "rcp": lambda x: 1.0 / x,
    "rsq": lambda x: np.where(x == 0, 1.0 / x, 1.0 / np.sqrt(x)),
    "sqrt": np.sqrt,
    "exp2": np.exp2,
    "log2": np.log2,
    "sin": _sin,
    "cos": lambda x: _wave(x, 0.25),
    "tanh": np.tanh,
}

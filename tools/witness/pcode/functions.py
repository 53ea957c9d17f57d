"""The functions that the pseudocode calls but does not define.

Their definitions are in AMD's RDNA3 ISA manual, section 15.5 ("Instruction pseudocode helper
functions" by content): conversions saturate, NaN becomes 0, ``exponent`` is the biased field.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tools.witness.pcode import softfloat as sf

from .values import Frame, Function, NotDescribed, Value, as_kind, flag, form, value


def _one(fn: Callable[[Frame, Value], Value]) -> Function:
    def call(frame: Frame, args: list[Value]) -> Value:
        (a,) = args
        return fn(frame, a)

    return call


def _ftoi(width: int, signed: bool) -> Function:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)

    def call(frame: Frame, a: Value) -> Value:
        return value(sf.to_integer(form(a), a.n, low, high), width, "i" if signed else "u")

    return _one(call)


def _itof(width: int) -> Function:
    def call(frame: Frame, a: Value) -> Value:
        n = sf.from_integer(a.signed, sf.FORMATS[width], frame.rules(width))
        return Value(n, width, "f")

    return _one(call)


def _ftof(width: int) -> Function:
    """The conversion between two formats: with the narrower one's rounding and the result's
    flushing."""

    def call(frame: Frame, a: Value) -> Value:
        how = frame.rules(a.w).round if a.w == 64 and width == 32 else frame.rules(width).round
        if {a.w, width} == {64, 32}:
            how = frame.rules(64).round
        if {a.w, width} == {32, 16}:
            how = frame.rules(16).round
        rules = sf.Rules(how, frame.rules(a.w).flush_in, frame.rules(width).flush_out)
        return Value(sf.convert(form(a), a.n, sf.FORMATS[width], rules), width, "f")

    return _one(call)


def _saturated(width: int, signed: bool) -> Function:
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)

    def call(frame: Frame, a: Value) -> Value:
        return value(min(max(a.signed, low), high), width, "i" if signed else "u")

    return _one(call)


def _norm(signed: bool) -> Function:
    """A float of [-1, 1] or [0, 1] to 16 bits, to nearest even."""
    top = 32767 if signed else 65535

    def call(frame: Frame, a: Value) -> Value:
        f = form(a)
        if sf.is_nan(f, a.n):
            return value(0, 16, "i" if signed else "u")
        low = -1 if signed else 0
        if sf.is_inf(f, a.n):
            x = Fraction(low if sf.negative(f, a.n) else 1)
        else:
            n, e = sf.unpack(f, a.n)
            x = Fraction(n) * Fraction(2) ** e
        return value(round(min(max(x, Fraction(low)), Fraction(1)) * top), 16, "i")

    return _one(call)


def _integral(how: int) -> Function:
    def call(frame: Frame, a: Value) -> Value:
        return Value(sf.to_integral(form(a), a.n, how), a.w, a.k)

    return _one(call)


def _floor_of(a: Value) -> int:
    return sf.to_integral(form(a), a.n, sf.DOWN)


def _fract(frame: Frame, a: Value) -> Value:
    f = form(a)
    return Value(sf.add(f, a.n, _floor_of(a) ^ f.sign, frame.rules(a.w)), a.w, "f")


def _is_even(frame: Frame, a: Value) -> Value:
    f = form(a)
    if sf.is_nan(f, a.n) or sf.is_inf(f, a.n):
        return flag(False)
    n, e = sf.unpack(f, a.n)
    return flag((n << e if e >= 0 else n >> -e) % 2 == 0)


def _fma(frame: Frame, args: list[Value]) -> Value:
    a, b, c = args
    return Value(sf.fma(form(a), a.n, b.n, c.n, frame.rules(a.w)), a.w, "f")


def _ldexp(frame: Frame, args: list[Value]) -> Value:
    a, n = args
    return Value(sf.scale(form(a), a.n, n.signed, frame.rules(a.w)), a.w, "f")


def _sqrt(frame: Frame, a: Value) -> Value:
    return Value(sf.sqrt(form(a), a.n, frame.rules(a.w)), a.w, "f")


def _from_real(x: float, w: int, rules: sf.Rules) -> Value:
    """A real that was computed in binary64, rounded."""
    f = sf.FORMATS[w]
    if math.isnan(x):
        return Value(f.nan, w, "f")
    if math.isinf(x):
        return Value(f.infinity | (f.sign if x < 0 else 0), w, "f")
    n, d = x.as_integer_ratio()
    minus = math.copysign(1.0, x) < 0
    return Value(sf.pack(f, n, -(d.bit_length() - 1), rules, minus_zero=minus), w, "f")


def _real(a: Value) -> float:
    f = form(a)
    if sf.is_nan(f, a.n):
        return math.nan
    if sf.is_inf(f, a.n):
        return -math.inf if sf.negative(f, a.n) else math.inf
    return sf.value(f, a.n)


def _log2(frame: Frame, a: Value) -> Value:
    x = _real(a)
    y = -math.inf if x == 0 else math.nan if x < 0 or math.isnan(x) else math.log2(x)
    return _from_real(y, a.w, frame.rules(a.w))


def _pow(frame: Frame, args: list[Value]) -> Value:
    base, a = args
    if _real(base) != 2.0:
        raise NotDescribed("a power of another base")
    x = _real(a)
    y = x if math.isnan(x) else math.exp2(x) if x < 1024 else math.inf
    return _from_real(y, a.w, frame.rules(a.w))


def _turn(which: Callable[[float], float]) -> Callable[[Frame, Value], Value]:
    """sin or cos of so many turns, exactly reduced."""

    def call(frame: Frame, a: Value) -> Value:
        f = form(a)
        if sf.is_nan(f, a.n) or sf.is_inf(f, a.n):
            return Value(f.nan, a.w, "f")
        n, e = sf.unpack(f, a.n)
        turns = Fraction(n) * Fraction(2) ** e
        part = turns - round(turns)
        if which is math.sin and abs(part) > Fraction(1, 4):  # near half a turn: no cancellation
            part = Fraction(1 if part > 0 else -1, 2) - part
        if which is math.sin and part == 0:
            return Value(a.n & f.sign, a.w, "f")
        if which is math.cos and abs(part) > Fraction(1, 8):
            quarter = Fraction(1, 4) - abs(part)
            return _from_real(math.sin(2 * math.pi * float(quarter)), a.w, frame.rules(a.w))
        return _from_real(which(2 * math.pi * float(part)), a.w, frame.rules(a.w))

    return call


def _isnan(frame: Frame, a: Value) -> Value:
    return flag(sf.is_nan(form(a), a.n))


def _signalling(frame: Frame, a: Value) -> Value:
    return flag(sf.is_signalling(form(a), a.n))


def _quiet_nan(frame: Frame, a: Value) -> Value:
    return flag(sf.is_nan(form(a), a.n) and not sf.is_signalling(form(a), a.n))


def _quieted(frame: Frame, a: Value) -> Value:
    return Value(sf.quiet(form(a), a.n), a.w, a.k)


def _exponent(frame: Frame, a: Value) -> Value:
    return value(sf.field(form(a), a.n), 32, "i")


def _frexp_exponent(frame: Frame, a: Value) -> Value:
    """C's frexp(): 0 of zero."""
    f = form(a)
    if sf.is_zero(f, a.n):
        return value(0, 32, "i")
    n, e = sf.unpack(f, a.n)
    return value(abs(n).bit_length() + e, 32, "i")


def _rndne(frame: Frame, a: Value) -> Value:
    return Value(sf.to_integral(form(a), a.n, sf.NEAREST), a.w, a.k)


def _below_one(frame: Frame, a: Value) -> Value:
    f = form(a)
    return Value((f.bias << f.fraction) - 1, a.w, a.k)


def _mantissa(frame: Frame, a: Value) -> Value:
    f = form(a)
    if sf.is_zero(f, a.n):
        return a
    n, _ = sf.unpack(f, a.n)
    size = abs(n)
    return Value(sf.pack(f, n, -size.bit_length(), sf.Rules()), a.w, a.k)


def _sign(frame: Frame, a: Value) -> Value:
    return flag(sf.negative(form(a), a.n))


def _abs(frame: Frame, a: Value) -> Value:
    if a.k != "f":
        return value(abs(a.signed), a.w, a.k)
    return Value(a.n & ~form(a).sign, a.w, a.k)


def _signext(frame: Frame, a: Value) -> Value:
    return value(Value(a.n, a.w, "i").signed, max(64, a.w), "i")


def _signext_from_bit(frame: Frame, args: list[Value]) -> Value:
    """The field of so many bits, extended from its top one."""
    a, n = args
    if n.n == 0:
        return Value(0, a.w, a.k)
    if n.n >= a.w:
        return a
    return value(Value(a.n & ((1 << n.n) - 1), n.n, "i").signed, a.w, a.k)


def _first_one(frame: Frame, a: Value) -> Value:
    return value((a.n & -a.n).bit_length() - 1, 32, "i")


def _tables() -> dict[str, Function]:
    out: dict[str, Function] = {
        "fma": _fma, "ldexp": _ldexp, "pow": _pow, "signext_from_bit": _signext_from_bit,
        "trunc": _integral(sf.ZERO), "floor": _integral(sf.DOWN),
    }  # fmt: skip
    for name, fn in {
        "fract": _fract, "isEven": _is_even, "sqrt": _sqrt, "log2": _log2, "isNAN": _isnan,
        "isSignalNAN": _signalling, "isQuietNAN": _quiet_nan, "cvtToQuietNAN": _quieted,
        "exponent": _exponent, "mantissa": _mantissa, "sign": _sign, "abs": _abs,
        "signext": _signext, "frexp_exponent": _frexp_exponent, "below_one": _below_one,
        "rndne": _rndne, "s_ff1_i32_b32": _first_one, "s_ff1_i32_b64": _first_one,
        "sin": _turn(math.sin), "cos": _turn(math.cos),
    }.items():  # fmt: skip
        out[name] = _one(fn)
    for a in (16, 32, 64):
        for b in (16, 32, 64):
            out[f"f{a}_to_f{b}"] = _ftof(b)
        for k in ("i", "u"):
            for b in (8, 16, 32):
                out[f"f{a}_to_{k}{b}"] = _ftoi(b, k == "i")
                out[f"{k}{b}_to_f{a}"] = _itof(a)
                out[f"v_cvt_{k}{b}_f{a}"] = _ftoi(b, k == "i")
        out[f"f{a}_to_snorm"], out[f"f{a}_to_unorm"] = _norm(True), _norm(False)
    out["i32_to_i16"], out["u32_to_u16"] = _saturated(16, True), _saturated(16, False)
    for n in (4, 8):
        out[f"u{n}_to_u32"] = _one(lambda frame, a: Value(a.n, 32, "u"))
    out["bf16_to_f32"] = _one(lambda frame, a: as_kind(a, 32, "f"))
    return out


FUNCTIONS = _tables()

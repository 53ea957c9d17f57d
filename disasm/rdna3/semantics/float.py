"""Floating-point arithmetic of the vector ALU, at all three widths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics.rows import Fn, Mode, Semantics, frow
from sassxlate.domain.interface import (
    IEEE,
    Approximation,
    Domain,
    Fp,
    Round,
    exponent_bits,
    fabs,
    flush,
    fneg,
    is_denormal,
    is_inf,
    is_nan,
    is_zero,
    mantissa_bits,
    quiet,
    smax,
    smin,
)

T = TypeVar("T")


def _flushed(d: Domain[T], mode: Mode, *args: T) -> tuple[T, ...]:
    on = mode.fp(d.width(args[0])).flush_in
    return tuple(flush(d, a) for a in args) if on else args


def fadd(d: Domain[T], mode: Mode, a: T, b: T) -> T:
    return d.fadd(a, b, mode.fp(d.width(a)))


def fsub(d: Domain[T], mode: Mode, a: T, b: T) -> T:
    return d.fadd(a, fneg(d, b), mode.fp(d.width(a)))


def fsubrev(d: Domain[T], mode: Mode, a: T, b: T) -> T:
    return fsub(d, mode, b, a)


def fmul(d: Domain[T], mode: Mode, a: T, b: T) -> T:
    return d.fmul(a, b, mode.fp(d.width(a)))


def ffma(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    return d.ffma(a, b, c, mode.fp(d.width(a)))


def fmamk(d: Domain[T], mode: Mode, a: T, k: T, b: T) -> T:
    return ffma(d, mode, a, k, b)


def _dx9(d: Domain[T], a: T, b: T, result: T, zero: T) -> T:
    """DX9: zero times anything is zero."""
    any_zero = d.or_(is_zero(d, fabs(d, a)), is_zero(d, fabs(d, b)))
    return d.select(any_zero, zero, result)


def mul_dx9(d: Domain[T], mode: Mode, a: T, b: T) -> T:
    a, b = _flushed(d, mode, a, b)
    return _dx9(d, a, b, fmul(d, mode, a, b), d.const(0, 32))


def fma_dx9(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    a, b = _flushed(d, mode, a, b)
    return _dx9(d, a, b, ffma(d, mode, a, b, c), d.fadd(d.const(0, 32), c, mode.f32))


def _pick(d: Domain[T], a: T, b: T, least: bool) -> T:
    """The smaller or larger of two; of a number and a NaN, the number; of two NaNs, the first; -0
    is below +0."""
    first = d.fcmp("olt", a, b) if least else d.fcmp("ogt", a, b)
    second = d.fcmp("olt", b, a) if least else d.fcmp("ogt", b, a)
    both = d.or_(a, b) if least else d.and_(a, b)  # equal: differs for zeros alone
    out = d.select(first, a, d.select(second, b, both))
    out = d.select(d.fcmp("uno", a, a), quiet(d, b), out)
    return d.select(d.fcmp("uno", b, b), quiet(d, a), out)


def _ieee_snan(d: Domain[T], a: T, out: T) -> T:
    w = d.width(a)
    signalling = d.and_(is_nan(d, a), d.not_(d.extract(a, mantissa_bits(w) - 1, 1)))
    return d.select(signalling, quiet(d, a), out)


def _minmax(least: bool) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T, b: T) -> T:
        a, b = _flushed(d, mode, a, b)
        out = _pick(d, a, b, least)
        if mode.ieee:
            out = _ieee_snan(d, a, _ieee_snan(d, b, out))
        return out

    return fn


fmin, fmax = _minmax(True), _minmax(False)


def _three(f: Fn) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
        out: T = f(d, mode, f(d, mode, a, b), c)
        return out

    return fn


def _then(f: Fn, g: Fn) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
        out: T = g(d, mode, f(d, mode, a, b), c)
        return out

    return fn


def fmed3(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    """The middle one; with a NaN among them, the least of the three."""
    a, b, c = _flushed(d, mode, a, b, c)
    lo: T = fmin(d, mode, a, b)
    hi: T = fmax(d, mode, a, b)
    middle: T = fmax(d, mode, lo, fmin(d, mode, hi, c))
    nan = d.or_(d.fcmp("uno", a, b), d.fcmp("uno", c, c))
    return d.select(nan, fmin(d, mode, lo, c), middle)


def _rounding(how: Round) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T) -> T:
        (a,) = _flushed(d, mode, a)
        return d.frint(a, how)

    return fn


def fract(d: Domain[T], mode: Mode, a: T) -> T:
    """a - floor(a), below one."""
    (a,) = _flushed(d, mode, a)
    w = d.width(a)
    low = d.fadd(a, fneg(d, d.frint(a, Round.DOWN)), mode.fp(w))
    one = ((1 << (exponent_bits(w) - 1)) - 1) << mantissa_bits(w)
    return d.select(d.fcmp("oge", low, d.const(one, w)), d.const(one - 1, w), low)


def _power(d: Domain[T], n: T, width: int) -> T:
    """2 ** n as a float of that width; n within its normal exponents."""
    bias = (1 << (exponent_bits(width) - 1)) - 1
    n = d.sext(n, width) if d.width(n) < width else n
    return d.shl(d.add(n, d.const(bias, width)), d.const(mantissa_bits(width), width))


def _clamp(d: Domain[T], n: T, bound: int) -> T:
    w = d.width(n)
    return smax(d, smin(d, n, d.const(bound, w)), d.const(-bound, w))


def ldexp(d: Domain[T], mode: Mode, a: T, n: T) -> T:
    """a * 2 ** n, rounded once."""
    w = d.width(a)
    fp = mode.fp(w)
    (a,) = _flushed(d, mode, a)
    if w < 64:  # exact in the next wider format
        n = d.sext(n, 32) if d.width(n) < 32 else n
        wide = d.fcvt(a, 2 * w, IEEE)
        out = d.fmul(wide, _power(d, _clamp(d, n, 400 if w == 32 else 60), 2 * w), IEEE)
        return d.fcvt(out, w, Fp(fp.round, False, fp.flush_out))
    # Three steps, the largest last: an inexact earlier step means that the result underflows.
    n = _clamp(d, n, 2200)
    last = _clamp(d, n, 1000)
    middle = _clamp(d, d.sub(n, last), 1000)
    first = d.sub(d.sub(n, last), middle)
    keep = Fp(fp.round)
    for step in (first, middle, last):
        a = d.fmul(a, _power(d, step, 64), keep)
    return flush(d, a) if fp.flush_out else a


def _exponent(d: Domain[T], a: T) -> T:
    """The biased exponent, in a's width."""
    w = d.width(a)
    return d.lshr(fabs(d, a), d.const(mantissa_bits(w), w))


def _special(d: Domain[T], a: T) -> T:
    """Zero, infinite or NaN."""
    top = (1 << exponent_bits(d.width(a))) - 1
    return d.or_(is_zero(d, fabs(d, a)), d.eq(_exponent(d, a), d.const(top, d.width(a))))


def frexp_exp(d: Domain[T], mode: Mode, a: T) -> T:
    """The exponent that leaves a mantissa in [0.5, 1); 32 bits wide, 16 for binary16."""
    (a,) = _flushed(d, mode, a)
    w = d.width(a)
    m, bias = mantissa_bits(w), (1 << (exponent_bits(w) - 1)) - 1
    lead = d.sub(d.clz(fabs(d, a)), d.const(w - m - 1, w))  # of a denormal
    small = d.sub(d.const(2 - bias, w), lead)
    normal = d.sub(_exponent(d, a), d.const(bias - 1, w))
    out = d.select(is_denormal(d, a), small, normal)
    out = d.select(_special(d, a), d.const(0, w), out)
    return d.extract(out, 0, 32) if w == 64 else out


def frexp_mant(d: Domain[T], mode: Mode, a: T) -> T:
    (a,) = _flushed(d, mode, a)
    w = d.width(a)
    m, bias = mantissa_bits(w), (1 << (exponent_bits(w) - 1)) - 1
    sign = d.and_(a, d.const(1 << (w - 1), w))
    lead = d.sub(d.clz(fabs(d, a)), d.const(w - m - 1, w))
    fraction = d.select(is_denormal(d, a), d.shl(a, d.and_(lead, d.const(w - 1, w))), a)
    fraction = d.and_(fraction, d.const((1 << m) - 1, w))
    half = d.or_(d.or_(sign, d.const((bias - 1) << m, w)), fraction)
    return d.select(_special(d, a), quiet(d, a), half)


def _approx(fn: Approximation) -> Fn:
    def meaning(d: Domain[T], mode: Mode, a: T) -> T:
        """Denormal binary32 arguments and results are flushed in every mode, not by sine and
        cosine."""
        w = d.width(a)
        fp = mode.fp(w)
        always = w == 32 and fn not in ("sin", "cos")
        if always or fp.flush_in:
            a = flush(d, a)
        out = d.approx(fn, a)
        if fn in ("rsq", "sqrt"):  # never denormal
            return out
        return flush(d, out) if always or fp.flush_out else out

    return meaning


def _floats(op: str, widths: tuple[int, ...], n: int, fn: Fn) -> Iterator[Semantics]:
    for w in widths:
        k = f"f{w}"
        yield frow(f"v_{op}_f{w}", k, " ".join([k] * n), fn)


ALL = (16, 32, 64)


def rows() -> Iterator[Semantics]:
    yield from _floats("add", ALL, 2, fadd)
    yield from _floats("sub", (16, 32), 2, fsub)
    yield from _floats("subrev", (16, 32), 2, fsubrev)
    yield from _floats("mul", ALL, 2, fmul)
    yield from _floats("fma", ALL, 3, ffma)
    yield from _floats("min", ALL, 2, fmin)
    yield from _floats("max", ALL, 2, fmax)
    yield from _floats("min3", (16, 32), 3, _three(fmin))
    yield from _floats("max3", (16, 32), 3, _three(fmax))
    yield from _floats("med3", (16, 32), 3, fmed3)
    yield from _floats("maxmin", (16, 32), 3, _then(fmax, fmin))
    yield from _floats("minmax", (16, 32), 3, _then(fmin, fmax))
    for w in (16, 32):
        k = f"f{w}"
        yield frow(f"v_fmac_f{w}", k, f"{k} {k} acc:{k}", ffma)
        yield frow(f"v_fmaak_f{w}", k, f"{k} {k} {k}", ffma)
        yield frow(f"v_fmamk_f{w}", k, f"{k} {k} {k}", fmamk)
    yield frow("v_mul_dx9_zero_f32", "f32", "f32 f32", mul_dx9)
    yield frow("v_fma_dx9_zero_f32", "f32", "f32 f32 f32", fma_dx9)
    yield frow("v_fmac_dx9_zero_f32", "f32", "f32 f32 acc:f32", fma_dx9)
    for op, how in (
        ("rndne", Round.NEAREST), ("ceil", Round.UP), ("floor", Round.DOWN), ("trunc", Round.ZERO),
    ):  # fmt: skip
        yield from _floats(op, ALL, 1, _rounding(how))
    yield from _floats("fract", ALL, 1, fract)
    for w in ALL:
        n, e = ("b16", "i16") if w == 16 else ("b32", "i32")
        yield frow(f"v_ldexp_f{w}", f"f{w}", f"f{w} {n}", ldexp)
        yield frow(f"v_frexp_exp_{e}_f{w}", n, f"f{w}", frexp_exp)
        yield frow(f"v_frexp_mant_f{w}", f"f{w}", f"f{w}", frexp_mant)
    names: tuple[tuple[str, Approximation, tuple[int, ...]], ...] = (
        ("rcp", "rcp", ALL), ("rsq", "rsq", ALL), ("sqrt", "sqrt", ALL),
        ("exp", "exp2", (16, 32)), ("log", "log2", (16, 32)),
        ("sin", "sin", (16, 32)), ("cos", "cos", (16, 32)),
    )  # fmt: skip
    for op, name, widths in names:
        for w in widths:
            yield frow(f"v_{op}_f{w}", f"f{w}", f"f{w}", _approx(name), approximate=True)
    yield frow("v_rcp_iflag_f32", "f32", "f32", _approx("rcp"), approximate=True)


__all__ = ["fadd", "ffma", "fmax", "fmin", "fmul", "is_inf", "rows"]

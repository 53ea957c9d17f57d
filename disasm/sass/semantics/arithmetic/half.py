"""Half precision: pairs of fp16 or bf16, arithmetic and comparisons.

Any NaN result is 0x7fff.
"""

from __future__ import annotations

from typing import TypeVar

from sassxlate.disasm.sass.instruction import Reg
from sassxlate.disasm.sass.semantics.arithmetic import bfloat
from sassxlate.disasm.sass.semantics.arithmetic.compare import (
    FLOAT,
    FLOAT_MODS,
    JOINS,
    constant,
    join,
)
from sassxlate.disasm.sass.semantics.arithmetic.float import extreme, saturate, zero_product
from sassxlate.disasm.sass.semantics.rows import NoSemantics, Results, Semantics, View, reading, row
from sassxlate.domain.interface import (
    IEEE,
    Domain,
    Fp,
    Round,
    fabs,
    flush,
    fneg,
    is_nan,
    smax,
)

T = TypeVar("T")
_NAN16 = 0x7FFF
_OUT_OF_BOUNDS = 0x7FF7  # of .OOB, with either sign


def _halves(d: Domain[T], x: View[T], role: str) -> tuple[T, T]:
    """The low and high half of a source under its selector, signs applied."""
    value = x.whole(role)
    if x.flag(role, "inv"):
        raise NoSemantics(f"complement of {role}")
    low, high = d.extract(value, 0, 16), d.extract(value, 16, 16)
    match x.select(role):
        case "":
            pair = low, high
        case "H0_H0":
            pair = low, low
        case "H1_H1":
            pair = high, high
        case "H0_NH1":  # the low part is the high half, negated
            pair = fneg(d, high), low
        case other:
            raise NoSemantics(f"selector {other}")
    a, b = (x.signed(role, part) for part in pair)
    return a, b


def _narrowed(d: Domain[T], x: View[T], role: str) -> T:
    """A binary32 source (selector .F32, before sm_80) as a half, with its signs: cut off."""
    return d.fcvt(x.signed(role, x.whole(role)), 16, Fp(Round.ZERO))


_ONE, _MINUS_ZERO = 0x3F80, 0x8000  # of bf16


def _fp(x: View[T]) -> Fp:
    return Fp(flush_in=x.has("FTZ"), flush_out=x.has("FTZ"))


def _is_bf16(x: View[T]) -> bool:
    return x.has("BF16_V2", "BF16")


def _fma(d: Domain[T], x: View[T], a: T, b: T, c: T) -> T:
    """a * b + c of halves in the instruction's format, under its .FTZ, .FMZ, .SAT and .RELU."""
    if x.has("F32"):
        raise NoSemantics("this form of a half-precision instruction")
    on = x.has("FTZ", "FMZ")
    if _is_bf16(x):
        if on or x.has("SAT"):
            raise NoSemantics("this form of a bf16 instruction")
        out = bfloat.fma(d, a, b, c)
    else:
        out = d.ffma(a, b, c, Fp(flush_in=on, flush_out=on))
        out = d.select(is_nan(d, out), d.const(_NAN16, 16), out)
    if x.has("FMZ"):
        alone = d.fadd(d.const(0, 16), c, Fp(flush_in=True, flush_out=True))
        alone = d.select(is_nan(d, alone), d.const(_NAN16, 16), alone)
        out = d.select(zero_product(d, a, b), alone, out)
    if x.has("OOB"):  # a factor that marks an element as out of bounds
        marks = [d.eq(fabs(d, v), d.const(_OUT_OF_BOUNDS, 16)) for v in (a, b)]
        out = d.select(d.or_(*marks), d.const(0, 16), out)
    if x.has("RELU"):  # if Pp holds; a NaN, 0x7fff, is the largest pattern
        out = d.select(x.pred_or("Pp", 1), smax(d, out, d.const(0, 16)), out)
    return saturate(d, x, out)


def _finish(d: Domain[T], x: View[T], value: T) -> T:
    return saturate(d, x, d.select(is_nan(d, value), d.const(_NAN16, 16), value))


def _each(d: Domain[T], x: View[T], *sources: tuple[T, T]) -> Results:
    lo, hi = (_fma(d, x, *parts) for parts in zip(*sources, strict=True))
    return {"Rd": d.concat(hi, lo)}


def _same(d: Domain[T], value: int) -> tuple[T, T]:
    return d.const(value, 16), d.const(value, 16)


def hadd2(d: Domain[T], x: View[T]) -> Results:
    if x.has("F32"):
        return _hadd2_f32(d, x)
    if "F32" in (x.select("Ra"), x.select("Rb")):
        return _converted(d, x)
    a, b = _halves(d, x, "Ra"), _halves(d, x, "Rb")
    if _is_bf16(x):
        return _each(d, x, a, _same(d, _ONE), b)
    lo, hi = (_finish(d, x, d.fadd(p, q, _fp(x))) for p, q in zip(a, b, strict=True))
    return {"Rd": d.concat(hi, lo)}


def _converted(d: Domain[T], x: View[T]) -> Results:
    """A binary32 number and a zero: the number in both halves, rounded towards zero.

    ptxas takes it for ``cvt.rz.f16.f32``, and F2F for the other modes of rounding.
    """
    single, other = ("Ra", "Rb") if x.select("Ra") == "F32" else ("Rb", "Ra")
    zero = x.operand(other)
    if not (isinstance(zero, Reg) and zero.is_zero and zero.neg and not zero.abs):
        raise NoSemantics("selector F32")
    if _is_bf16(x) or x.has("FTZ"):
        raise NoSemantics("selector F32")
    half = _finish(d, x, _narrowed(d, x, single))
    return {"Rd": d.concat(half, half)}


def _hadd2_f32(d: Domain[T], x: View[T]) -> Results:
    """The sum of the low selected halves in single precision; .FTZ flushes denormal halves."""
    if _is_bf16(x):
        raise NoSemantics("HADD2.F32 of bf16")
    parts = [_halves(d, x, r)[0] for r in ("Ra", "Rb")]
    a, b = (d.fcvt(flush(d, v) if x.has("FTZ") else v, 32, IEEE) for v in parts)
    out = d.fadd(a, b, _fp(x))
    out = d.select(is_nan(d, out), d.const(0x7FFFFFFF, 32), out)
    return {"Rd": saturate(d, x, out)}


def hmul2(d: Domain[T], x: View[T]) -> Results:
    """For bf16, -0 is the neutral addend of a product."""
    if x.has("F32"):
        raise NoSemantics("this form of HMUL2")
    a, b = _halves(d, x, "Ra"), _halves(d, x, "Rb")
    if _is_bf16(x) or x.has("FMZ"):
        return _each(d, x, a, b, _same(d, 0 if x.has("FMZ") else _MINUS_ZERO))
    lo, hi = (_finish(d, x, d.fmul(p, q, _fp(x))) for p, q in zip(a, b, strict=True))
    return {"Rd": d.concat(hi, lo)}


def hfma2(d: Domain[T], x: View[T]) -> Results:
    return _each(d, x, *(_halves(d, x, r) for r in ("Ra", "Rb", "Rc")))


def _comparable(d: Domain[T], x: View[T], a: T) -> T:
    """A half as a float of the domain: bf16 as the binary32 number that it is."""
    out = bfloat.single(d, a) if _is_bf16(x) else a
    return flush(d, out) if x.has("FTZ") else out


def _picked(d: Domain[T], x: View[T], a: T, b: T, raw: tuple[T, T]) -> tuple[T, T]:
    """The extreme of two halves, and the same before .XORSIGN: the sign is then that of the
    product of the ``raw`` halves, whatever - and || they have."""
    nan = _NAN16 << 16 if _is_bf16(x) else _NAN16
    out = extreme(
        d, _comparable(d, x, a), _comparable(d, x, b), x.pred("Pp"), nan=nan, strict=x.has("NAN")
    )
    chosen = out = d.extract(out, d.width(out) - 16, 16)
    if x.has("XORSIGN"):
        sign = d.and_(d.xor(*raw), d.const(0x8000, 16))
        none = d.eq(out, d.const(_NAN16, 16))
        out = d.select(none, out, d.or_(fabs(d, out), sign))
    return out, chosen


def _raw(d: Domain[T], x: View[T], role: str, i: int) -> T:
    """The half that a selector names, without signs."""
    high = x.select(role) == "H1_H1" or (x.select(role) == "" and i == 1)
    return d.extract(x.whole(role), 16 if high else 0, 16)


def hmnmx2(d: Domain[T], x: View[T]) -> Results:
    """.IS_A: Pu and Pv: the low and the high half is Ra's."""
    a, b = _halves(d, x, "Ra"), _halves(d, x, "Rb")
    parts: list[T] = []
    same: list[T] = []
    for i, (p, q) in enumerate(zip(a, b, strict=True)):
        out, chosen = _picked(d, x, p, q, (_raw(d, x, "Ra", i), _raw(d, x, "Rb", i)))
        none = d.and_(is_nan(d, _comparable(d, x, p)), d.eq(out, d.const(_NAN16, 16)))
        same.append(d.or_(d.and_(d.eq(out, p), d.eq(chosen, p)), none))
        parts.append(out)
    return {"Rd": d.concat(parts[1], parts[0]), "Pu": same[0], "Pv": same[1]}


def vhmnmx(d: Domain[T], x: View[T]) -> Results:
    """The extreme of Ra's and Rb's halves, then of that and Rc's."""
    sources = [_halves(d, x, role) for role in ("Ra", "Rb", "Rc")]
    parts: list[T] = []
    for i, (p, q, r) in enumerate(zip(*sources, strict=True)):
        first, _ = _picked(d, x, p, q, (_raw(d, x, "Ra", i), _raw(d, x, "Rb", i)))
        out, _ = _picked(d, x, first, r, (first, _raw(d, x, "Rc", i)))
        parts.append(out)
    return {"Rd": d.concat(parts[1], parts[0])}


def _compared(d: Domain[T], x: View[T], role: str) -> tuple[T, T]:
    """A source of a comparison, which may be binary32."""
    if x.select(role) != "F32":
        return _halves(d, x, role)
    if _is_bf16(x) or x.has("FTZ") or x.flag(role, "inv"):
        raise NoSemantics("selector F32")
    half = _narrowed(d, x, role)
    return half, half


def _hits(d: Domain[T], x: View[T]) -> list[T]:
    """The comparisons of the low and the high halves."""
    hits: list[T] = []
    a, b = (_compared(d, x, role) for role in ("Ra", "Rb"))
    for p, q in zip(a, b, strict=True):
        fixed = constant(d, x)
        p, q = _comparable(d, x, p), _comparable(d, x, q)
        hits.append(d.fcmp(FLOAT[x.one_of(FLOAT)], p, q) if fixed is None else fixed)
    return hits


def hset2(d: Domain[T], x: View[T]) -> Results:
    """Ones, or with .BF the number 1, in the halves where the comparison joined with Pp holds."""
    one = (_ONE if _is_bf16(x) else 0x3C00) if x.has("BF") else 0xFFFF
    other = x.pred("Pp")
    lo, hi = (
        d.select(join(d, x, hit, other), d.const(one, 16), d.const(0, 16)) for hit in _hits(d, x)
    )
    return {"Rd": d.concat(hi, lo)}


def hsetp2(d: Domain[T], x: View[T]) -> Results:
    """Pu: the low halves' comparison; Pv the high ones'; each joined with Pp.  With .H_AND both
    must hold for Pu, and Pv is its opposite."""
    hits = _hits(d, x)
    if x.has("H_AND"):
        both = d.and_(hits[0], hits[1])
        hits = [both, d.not_(both)]
    other = x.pred("Pp")
    return {"Pu": join(d, x, hits[0], other), "Pv": join(d, x, hits[1], other)}


def rows() -> list[Semantics]:
    joins = " ".join(JOINS)
    return reading(
        "f16",
        row("HADD2", hadd2, "F32 FTZ SAT BF16_V2"),
        row("HMUL2", hmul2, "FTZ SAT FMZ BF16_V2 F32"),
        row("HFMA2", hfma2, "MMA FTZ SAT FMZ OOB RELU BF16_V2 F32"),
        row("HMNMX2", hmnmx2, "FTZ NAN XORSIGN BF16_V2 IS_A"),
        row("VHMNMX", vhmnmx, "FTZ NAN XORSIGN BF16_V2"),
        row("HSET2", hset2, f"{FLOAT_MODS} {joins} BF FTZ BF16_V2"),
        row("HSETP2", hsetp2, f"{FLOAT_MODS} {joins} FTZ H_AND BF16_V2"),
    )

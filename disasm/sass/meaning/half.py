"""Half precision: pairs of fp16 or bf16, arithmetic and comparisons.

Any NaN result is 0x7fff.
"""

from __future__ import annotations

from typing import TypeVar

from sassxlate.domain import IEEE, Domain, Fp, flush, is_nan

from .compare import FLOAT, FLOAT_MODS, JOINS, constant, join
from .float import extreme, saturate
from .rows import Meaning, NoMeaning, Results, View, row

T = TypeVar("T")
_NAN16 = 0x7FFF


def _halves(d: Domain[T], x: View[T], role: str) -> tuple[T, T]:
    """The low and high half of a source under its selector, signs applied."""
    value = x.whole(role)
    if x.flag(role, "inv"):
        raise NoMeaning(f"complement of {role}")
    low, high = d.extract(value, 0, 16), d.extract(value, 16, 16)
    match x.select(role):
        case "":
            pair = low, high
        case "H0_H0":
            pair = low, low
        case "H1_H1":
            pair = high, high
        case other:
            raise NoMeaning(f"selector {other}")
    a, b = (x.signed(role, part) for part in pair)
    return a, b


def _fp(x: View[T]) -> Fp:
    return Fp(flush_in=x.has("FTZ"), flush_out=x.has("FTZ"))


def _only_fp16(x: View[T]) -> None:
    if x.has("BF16_V2", "BF16", "FMZ", "RELU"):
        raise NoMeaning("this form of a half-precision instruction")


def _finish(d: Domain[T], x: View[T], value: T) -> T:
    nan = d.select(is_nan(d, value), d.const(_NAN16, 16), value)
    return saturate(d, x, nan)


def hadd2(d: Domain[T], x: View[T]) -> Results:
    _only_fp16(x)
    if x.has("F32"):
        return _hadd2_f32(d, x)
    a, b = _halves(d, x, "Ra"), _halves(d, x, "Rb")
    lo, hi = (_finish(d, x, d.fadd(p, q, _fp(x))) for p, q in zip(a, b, strict=True))
    return {"Rd": d.concat(hi, lo)}


def _hadd2_f32(d: Domain[T], x: View[T]) -> Results:
    """The sum of the low selected halves in single precision."""
    a, b = (d.fcvt(_halves(d, x, r)[0], 32, IEEE) for r in ("Ra", "Rb"))
    out = d.fadd(a, b, _fp(x))
    out = d.select(is_nan(d, out), d.const(0x7FFFFFFF, 32), out)
    return {"Rd": saturate(d, x, out)}


def hmul2(d: Domain[T], x: View[T]) -> Results:
    _only_fp16(x)
    if x.has("F32", "FTZ"):
        raise NoMeaning("this form of HMUL2")
    a, b = _halves(d, x, "Ra"), _halves(d, x, "Rb")
    lo, hi = (_finish(d, x, d.fmul(p, q, IEEE)) for p, q in zip(a, b, strict=True))
    return {"Rd": d.concat(hi, lo)}


def hfma2(d: Domain[T], x: View[T]) -> Results:
    _only_fp16(x)
    if x.has("F32", "FTZ"):
        raise NoMeaning("this form of HFMA2")
    sources = [_halves(d, x, r) for r in ("Ra", "Rb", "Rc")]
    lo, hi = (
        _finish(d, x, d.ffma(p, q, r, IEEE)) for p, q, r in zip(*sources, strict=True)
    )
    return {"Rd": d.concat(hi, lo)}


def hmnmx2(d: Domain[T], x: View[T]) -> Results:
    _only_fp16(x)
    if x.has("XORSIGN", "IS_A"):
        raise NoMeaning("this form of HMNMX2")
    a, b = _halves(d, x, "Ra"), _halves(d, x, "Rb")
    parts: list[T] = []
    for p, q in zip(a, b, strict=True):
        if x.has("FTZ"):
            p, q = flush(d, p), flush(d, q)
        parts.append(extreme(d, p, q, x.pred("Pp"), nan=_NAN16, strict=x.has("NAN")))
    return {"Rd": d.concat(parts[1], parts[0])}


def hsetp2(d: Domain[T], x: View[T]) -> Results:
    """Pu: the low halves' comparison; Pv the high ones'; each joined with Pp.  With .H_AND both
    must hold for Pu, and Pv is its opposite."""
    _only_fp16(x)
    a, b = _halves(d, x, "Ra"), _halves(d, x, "Rb")
    hits: list[T] = []
    for p, q in zip(a, b, strict=True):
        fixed = constant(d, x)
        if x.has("FTZ"):
            p, q = flush(d, p), flush(d, q)
        hits.append(d.fcmp(FLOAT[x.one_of(FLOAT)], p, q) if fixed is None else fixed)
    if x.has("H_AND"):
        both = d.and_(hits[0], hits[1])
        hits = [both, d.not_(both)]
    other = x.pred("Pp")
    return {"Pu": join(d, x, hits[0], other), "Pv": join(d, x, hits[1], other)}


def rows() -> list[Meaning]:
    joins = " ".join(JOINS)
    return [
        row("HADD2", hadd2, "F32 FTZ SAT BF16_V2"),
        row("HMUL2", hmul2, "FTZ SAT FMZ BF16_V2 F32"),
        row("HFMA2", hfma2, "MMA FTZ SAT FMZ RELU BF16_V2 F32"),
        row("HMNMX2", hmnmx2, "FTZ NAN XORSIGN BF16_V2 IS_A"),
        row("HSETP2", hsetp2, f"{FLOAT_MODS} {joins} FTZ H_AND BF16_V2"),
    ]

"""Comparisons that set predicates, and selections of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sassxlate.disasm.sass.semantics.rows import NoSemantics, Results, Semantics, View, row, uniform
from sassxlate.domain.interface import Domain, FloatPredicate, flush, is_nan

T = TypeVar("T")

INTEGER = ("LT", "EQ", "LE", "GT", "NE", "GE")
FLOAT: dict[str, FloatPredicate] = {
    "LT": "olt", "EQ": "oeq", "LE": "ole", "GT": "ogt", "NE": "one", "GE": "oge", "NUM": "ord",
    "NAN": "uno", "LTU": "ult", "EQU": "ueq", "LEU": "ule", "GTU": "ugt", "NEU": "une",
    "GEU": "uge",
}  # fmt: skip
JOINS = ("AND", "OR", "XOR")
INTEGER_MODS = "F T LT EQ LE GT NE GE"
FLOAT_MODS = "F T " + " ".join(FLOAT)


def join(d: Domain[T], x: View[T], hit: T, other: T) -> T:
    name = x.one_of(JOINS, "AND")
    fn = {"AND": d.and_, "OR": d.or_, "XOR": d.xor}[name]
    return fn(hit, other)


def results(d: Domain[T], x: View[T], hit: T) -> Results:
    """Pu: the comparison joined with Pp; Pv: its opposite joined with Pp."""
    other = x.pred("Pp")
    return {"Pu": join(d, x, hit, other), "Pv": join(d, x, d.not_(hit), other)}


def constant(d: Domain[T], x: View[T]) -> T | None:
    if x.has("T"):
        return d.const(1, 1)
    return d.const(0, 1) if x.has("F") else None


def _relation(d: Domain[T], name: str, less: Callable[[T, T], T], a: T, b: T) -> T:
    match name:
        case "LT":
            return less(a, b)
        case "GT":
            return less(b, a)
        case "LE":
            return d.not_(less(b, a))
        case "GE":
            return d.not_(less(a, b))
        case "EQ":
            return d.eq(a, b)
        case _:
            return d.not_(d.eq(a, b))


def isetp(d: Domain[T], x: View[T]) -> Results:
    """With .EX the high words of a comparison whose low words gave Pq."""
    fixed = constant(d, x)
    name = x.one_of(INTEGER)
    wide = x.has("64", "U64", "S64")
    a, b = (x.integer(r, 64 if wide else 32) for r in ("Ra", "Rb"))
    less = d.ult if x.has("U32", "U64") else d.slt
    if fixed is not None:
        return results(d, x, fixed)
    hit = _relation(d, name, less, a, b)
    if x.has("EX"):
        if wide:
            raise NoSemantics("64-bit comparison with a low part")
        low, same = x.pred("Pq"), d.eq(a, b)
        if name == "EQ":
            hit = d.and_(hit, low)
        elif name == "NE":
            hit = d.or_(hit, low)
        else:
            strict = {"GE": "GT", "LE": "LT"}.get(name, name)
            hit = d.or_(_relation(d, strict, less, a, b), d.and_(same, low))
    return results(d, x, hit)


def _float_hit(d: Domain[T], x: View[T], a: T, b: T) -> T:
    fixed = constant(d, x)
    if fixed is not None:
        return fixed
    if x.has("FTZ"):
        a, b = flush(d, a), flush(d, b)
    return d.fcmp(FLOAT[x.one_of(FLOAT)], a, b)


def fsetp(d: Domain[T], x: View[T]) -> Results:
    return results(d, x, _float_hit(d, x, x.float("Ra"), x.float("Rb")))


def fset(d: Domain[T], x: View[T]) -> Results:
    """1.0 or 0.0."""
    hit = join(d, x, _float_hit(d, x, x.float("Ra"), x.float("Rb")), x.pred("Pp"))
    return {"Rd": d.select(hit, d.const(0x3F800000, 32), d.const(0, 32))}


def dsetp(d: Domain[T], x: View[T]) -> Results:
    a, b = x.float("Ra", 64), x.float("Rb", 64)
    if x.has("MIN", "MAX"):
        return _dsetp_extreme(d, x, a, b)
    return results(d, x, _float_hit(d, x, a, b))


def _dsetp_extreme(d: Domain[T], x: View[T], a: T, b: T) -> Results:
    """Pu: take Ra; Pv: both are NaN.  Measured: -0 is below +0; of equal numbers .MIN takes
    Ra and .MAX Rb; a NaN is not taken."""
    nan_a, nan_b = is_nan(d, a), is_nan(d, b)
    zeros = d.and_(d.eq(a, d.const(0, 64)), d.eq(b, d.const(1 << 63, 64)))  # +0 and -0
    if x.has("MIN"):
        hit = d.and_(d.fcmp("ole", a, b), d.not_(zeros))
    else:
        hit = d.or_(d.fcmp("ogt", a, b), zeros)
    take = d.and_(d.or_(hit, nan_b), d.not_(nan_a))
    other = x.pred("Pp")
    return {"Pu": join(d, x, take, other), "Pv": d.and_(nan_a, nan_b)}


def fsel(d: Domain[T], x: View[T]) -> Results:
    out = d.select(x.pred("Pp"), x.float("Ra"), x.float("Rb"))
    return {"Rd": flush(d, out) if x.has("FTZ") else out}


def rows() -> list[Semantics]:
    joins = " ".join(JOINS)
    return [
        *uniform([
            row("ISETP", isetp, f"{INTEGER_MODS} {joins} U32 64 U64 S64 EX"),
            row("FSETP", fsetp, f"{FLOAT_MODS} {joins} FTZ", number="f32"),
            row("FSET", fset, f"{FLOAT_MODS} {joins} FTZ BF", number="f32"),
            row("FSEL", fsel, "FTZ"),
        ]),
        row("DSETP", dsetp, f"{FLOAT_MODS} {joins} MIN MAX", number="f64"),
    ]  # fmt: skip

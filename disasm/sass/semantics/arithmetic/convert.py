"""Conversions between integers and floats, and rounding to integral values.

Values out of range saturate.  NaN gives 0 with .NTZ, otherwise the pattern with only the top bit
set (measured).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from sassxlate.disasm.sass.instruction import Imm
from sassxlate.disasm.sass.semantics.arithmetic import bfloat
from sassxlate.disasm.sass.semantics.arithmetic.float import NAN64, canonical, passed_on, rounding
from sassxlate.disasm.sass.semantics.rows import (
    NoSemantics,
    Results,
    Semantics,
    View,
    reading,
    row,
    uniform,
)
from sassxlate.domain.interface import (
    IEEE,
    Domain,
    Fp,
    Round,
    flush,
    has_payloads,
    is_nan,
    smax,
    smin,
    umin,
)

T = TypeVar("T")
_INTS = ("S8", "U8", "S16", "U16", "S32", "U32", "S64", "U64")
_ROUND_INT = {"FLOOR": Round.DOWN, "CEIL": Round.UP, "TRUNC": Round.ZERO}
_FLOATS = ("F16", "BF16", "F32", "F64")
_WIDTHS = {"F16": 16, "BF16": 16, "F32": 32, "F64": 64}


@dataclass(frozen=True, slots=True)
class IntType:
    signed: bool
    bits: int


def _int_type(x: View[T]) -> IntType:
    """The integer type; S32 is not printed."""
    name = x.one_of(_INTS)
    return IntType(name[0] == "S", int(name[1:])) if name else IntType(True, 32)


def _format(x: View[T]) -> str:
    """The float format; F32 is not printed."""
    return x.one_of(_FLOATS, "F32")


def _raw_source(d: Domain[T], x: View[T], kind: str) -> T:
    """A float source without its printed signs; a half is the low one, also of immediates."""
    value = x.whole("Rb", 64 if kind == "F64" else 32)
    if _WIDTHS[kind] != 16:
        return value
    return d.extract(value, 16 if x.select("Rb") in ("H1", "H1_H1") else 0, 16)


def _float_source(d: Domain[T], x: View[T], kind: str) -> T:
    """A source with its signs, flushed by .FTZ; bf16 as the binary32 pattern whose upper half it
    is."""
    if _WIDTHS[kind] == 16:
        out = x.signed("Rb", _raw_source(d, x, kind))
    else:
        out = x.float("Rb", _WIDTHS[kind])
    if kind == "BF16":
        out = bfloat.single(d, out)
    return flush(d, out) if x.has("FTZ") else out


# --- integer to float --------------------------------------------------------------------------


def i2f(d: Domain[T], x: View[T]) -> Results:
    kind, target, how = _int_type(x), _format(x), rounding(x)
    if kind.bits == 64:
        value = x.bits("Rb", 64)
        if isinstance(x.operand("Rb"), Imm):  # measured: it is the high word
            value = d.concat(x.bits("Rb"), d.const(0, 32))
    else:
        value = _narrow(d, x, kind)
    if target == "BF16":
        down, up = (d.itof(value, 32, kind.signed, Fp(r)) for r in (Round.DOWN, Round.UP))
        out = bfloat.of_single(d, bfloat.odd(d, down, up), how)
    else:
        out = d.itof(value, _WIDTHS[target], kind.signed, Fp(how))
    return {"Rd": d.zext(out, 32) if _WIDTHS[target] == 16 else out}


def _narrow(d: Domain[T], x: View[T], kind: IntType) -> T:
    """A source of 8, 16 or 32 bits as a word; the byte or half is a selector."""
    value, select = x.whole("Rb"), x.select("Rb")
    if any(x.flag("Rb", f) for f in ("neg", "abs", "inv")):
        raise NoSemantics("sign of an integer")
    start = int(select[1]) * {"B": 8, "H": 16}[select[0]] if select else 0
    part = d.extract(value, start, kind.bits)
    return d.sext(part, 32) if kind.signed else d.zext(part, 32)


# --- float to integer --------------------------------------------------------------------------


def f2i(d: Domain[T], x: View[T]) -> Results:
    kind = _int_type(x)
    value = _float_source(d, x, _format(x))
    how = _ROUND_INT.get(x.one_of(_ROUND_INT), Round.NEAREST)
    width = max(kind.bits, 32)
    number = d.ftoi(d.frint(value, how), width, kind.signed)
    if kind.bits < 32:
        if kind.signed:
            top = d.const((1 << kind.bits - 1) - 1, 32)
            number = smax(d, smin(d, number, top), d.const(-(1 << kind.bits - 1), 32))
        else:
            number = umin(d, number, d.const((1 << kind.bits) - 1, 32))
    if not x.has("NTZ"):
        number = d.select(is_nan(d, value), d.const(1 << kind.bits - 1, width), number)
    return {"Rd": number}


# --- float to float ----------------------------------------------------------------------------


def frnd(d: Domain[T], x: View[T]) -> Results:
    kind = _format(x)
    out = d.frint(_float_source(d, x, kind), _ROUND_INT.get(x.one_of(_ROUND_INT), Round.NEAREST))
    if kind == "F64":
        return {"Rd": passed_on(d, out, x.whole("Rb", 64))}
    if kind == "F32":
        return {"Rd": canonical(d, out)}
    half = d.extract(out, d.width(out) - 16, 16)
    return {"Rd": d.zext(d.select(is_nan(d, out), d.const(0x7FFF, 16), half), 32)}


_NANS = {"F16": 0x7FFF, "BF16": 0x7FFF, "F32": 0x7FFFFFFF, "F64": NAN64}
_MANTISSA = {"F16": 10, "BF16": 7, "F32": 23, "F64": 52}


def f2f(d: Domain[T], x: View[T]) -> Results:
    """The result's format first, then the source's.  .FTZ flushes both."""
    kinds = [m for m in x.ins.modifiers if m in _FLOATS]
    if len(kinds) != 2 or kinds[0] == kinds[1]:
        raise NoSemantics("this form of F2F")
    to, source = kinds
    value, how = _float_source(d, x, source), rounding(x)
    flushes = x.has("FTZ")
    if to == "BF16" and source == "F64":
        out = bfloat.narrow(d, value, how)
        out = bfloat.without_tiny(d, value, out, how) if flushes else out
    elif to == "BF16":
        out = bfloat.of_single(d, d.fcvt(value, 32, IEEE) if source == "F16" else value, how)
    elif d.width(value) == _WIDTHS[to]:
        out = value  # bf16 as binary32
    else:
        out = d.fcvt(value, _WIDTHS[to], Fp(how, flush_out=flushes))
    if "F64" in kinds and has_payloads(d):  # the double-precision unit propagates payloads
        nan = _carried_nan(d, _raw_source(d, x, source), source, to)
    else:
        nan = d.const(_NANS[to], _WIDTHS[to])
    out = d.select(is_nan(d, value), nan, out)
    return {"Rd": d.zext(out, 32) if _WIDTHS[to] == 16 else out}


def _carried_nan(d: Domain[T], value: T, source: str, to: str) -> T:
    """A NaN in another format: sign and upper payload bits kept, quieted."""
    width, wide = _WIDTHS[to], _WIDTHS[source]
    gap = _MANTISSA[to] - _MANTISSA[source]
    payload = d.and_(value, d.const((1 << _MANTISSA[source]) - 1, wide))
    if gap > 0:
        moved = d.shl(d.zext(payload, width), d.const(gap, width))
    else:
        moved = d.extract(d.lshr(payload, d.const(-gap, wide)), 0, width)
    sign = d.shl(d.zext(d.extract(value, wide - 1, 1), width), d.const(width - 1, width))
    quiet = (1 << width - 1) - (1 << _MANTISSA[to] - 1)  # the exponent and the top payload bit
    return d.or_(d.or_(sign, d.const(quiet, width)), moved)


_ROUND = "RM RP RZ"
_INT_MODS = " ".join(_INTS)


def rows() -> list[Semantics]:
    return uniform([
        row("I2F", i2f, f"F16 F64 BF16 {_ROUND} {_INT_MODS}"),
        row("I2FP", i2f, "F32 S32 U32 RZ"),
        *reading(
            "f32",
            row("F2I", f2i, f"FTZ NTZ F16 F64 BF16 FLOOR CEIL TRUNC {_INT_MODS}"),
            row("FRND", frnd, "F16 F64 BF16 FTZ FLOOR CEIL TRUNC"),
            row("F2F", f2f, f"F16 F32 F64 BF16 FTZ {_ROUND}"),
        ),
    ])  # fmt: skip

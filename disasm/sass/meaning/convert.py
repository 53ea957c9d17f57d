"""Conversions between integers and floats, and rounding to integral values.

Out of range saturates.  What is no number gives 0 with .NTZ, else the pattern with only the top
bit set (measured).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from sassxlate.domain import (
    Domain,
    Fp,
    Round,
    exponent_bits,
    flush,
    has_payloads,
    is_nan,
    mantissa_bits,
    smax,
    smin,
    umin,
)

from ..ir import Imm
from . import bfloat
from .float import NAN64, canonical, passed_on, rounding
from .rows import Meaning, NoMeaning, Results, View, row, uniform

T = TypeVar("T")
_INTS = ("S8", "U8", "S16", "U16", "S32", "U32", "S64", "U64")
_ROUND_INT = {"FLOOR": Round.DOWN, "CEIL": Round.UP, "TRUNC": Round.ZERO}
_FLOATS = {"F16": 16, "F32": 32, "F64": 64}


@dataclass(frozen=True, slots=True)
class IntType:
    signed: bool
    bits: int


def _int_type(x: View[T]) -> IntType:
    """The integer end; S32 is not printed."""
    name = x.one_of(_INTS)
    return IntType(name[0] == "S", int(name[1:])) if name else IntType(True, 32)


def _float_width(x: View[T]) -> int:
    if x.has("BF16"):
        raise NoMeaning("bf16 in this conversion")
    name = x.one_of(_FLOATS)
    return _FLOATS[name] if name else 32


def _raw_source(d: Domain[T], x: View[T], width: int) -> T:
    """A float source without its printed signs."""
    if width != 16:
        return x.whole("Rb", width)
    if isinstance(x.operand("Rb"), Imm):
        raise NoMeaning("immediate half")
    high = x.select("Rb") in ("H1", "H1_H1")
    return d.extract(x.whole("Rb"), 16 if high else 0, 16)


def _float_source(d: Domain[T], x: View[T], width: int) -> T:
    out = x.signed("Rb", _raw_source(d, x, width)) if width == 16 else x.float("Rb", width)
    return flush(d, out) if x.has("FTZ") else out


# --- integer to float --------------------------------------------------------------------------


def i2f(d: Domain[T], x: View[T]) -> Results:
    kind, target = _int_type(x), _float_width(x)
    if kind.bits == 64:
        value = x.bits("Rb", 64)
        if isinstance(x.operand("Rb"), Imm):  # measured: it is the high word
            value = d.concat(x.bits("Rb"), d.const(0, 32))
    else:
        value = _narrow(d, x, kind)
    out = d.itof(value, target, kind.signed, Fp(rounding(x)))
    return {"Rd": d.zext(out, 32) if target == 16 else out}


def _narrow(d: Domain[T], x: View[T], kind: IntType) -> T:
    """A source of 8, 16 or 32 bits; the byte or half is a selector."""
    value, select = x.whole("Rb"), x.select("Rb")
    if any(x.flag("Rb", f) for f in ("neg", "abs", "inv")):
        raise NoMeaning("sign of an integer")
    start = int(select[1]) * {"B": 8, "H": 16}[select[0]] if select else 0
    return d.extract(value, start, kind.bits)


# --- float to integer --------------------------------------------------------------------------


def f2i(d: Domain[T], x: View[T]) -> Results:
    kind = _int_type(x)
    value = _float_source(d, x, _float_width(x))
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
    width = _float_width(x)
    value = _float_source(d, x, width)
    out = d.frint(value, _ROUND_INT.get(x.one_of(_ROUND_INT), Round.NEAREST))
    if width == 16:
        return {"Rd": d.zext(d.select(is_nan(d, out), d.const(0x7FFF, 16), out), 32)}
    if width == 64:
        return {"Rd": passed_on(d, out, x.whole("Rb", 64))}
    return {"Rd": canonical(d, out)}


def f2f(d: Domain[T], x: View[T]) -> Results:
    """The result's format first, then the source's."""
    kinds = [_FLOATS[m] for m in x.ins.modifiers if m in _FLOATS]
    if len(kinds) != 2 or kinds[0] == kinds[1] or x.has("BF16"):
        raise NoMeaning("this form of F2F")
    to, source = kinds
    if x.has("FTZ") and 32 not in kinds:
        raise NoMeaning("F2F.FTZ of these formats")
    value = _float_source(d, x, source)
    out = d.fcvt(value, to, Fp(rounding(x), flush_out=x.has("FTZ") and to == 32))
    if 64 in kinds and has_payloads(d):  # the double-precision unit passes payloads on
        nan = _carried_nan(d, _raw_source(d, x, source), to)
    else:
        nan = d.const({16: 0x7FFF, 32: 0x7FFFFFFF, 64: NAN64}[to], to)
    out = d.select(is_nan(d, value), nan, out)
    return {"Rd": d.zext(out, 32) if to == 16 else out}


def _carried_nan(d: Domain[T], value: T, to: int) -> T:
    """A NaN of another width: its own sign and the payload's upper bits, quieted."""
    source = d.width(value)
    gap = mantissa_bits(to) - mantissa_bits(source)
    payload = d.and_(value, d.const((1 << mantissa_bits(source)) - 1, source))
    if gap > 0:
        moved = d.shl(d.zext(payload, to), d.const(gap, to))
    else:
        moved = d.extract(d.lshr(payload, d.const(-gap, source)), 0, to)
    sign = d.shl(d.zext(d.extract(value, source - 1, 1), to), d.const(to - 1, to))
    top = d.const(((1 << exponent_bits(to)) - 1) << mantissa_bits(to), to)
    loud = d.const(1 << mantissa_bits(to) - 1, to)
    return d.or_(d.or_(sign, top), d.or_(moved, loud))


def f2fp(d: Domain[T], x: View[T]) -> Results:
    """Two binary32 numbers as a pair of halves, Ra's the high one."""
    if x.has("RELU", "SATFINITE", "E4M3", "E5M2", "TF32", "UNPACK_B") or not x.has("PACK_AB"):
        raise NoMeaning("this form of F2FP")
    parts: list[T] = []
    for role in ("Rb", "Ra"):
        value = x.float(role)
        if x.has("BF16"):
            parts.append(bfloat.of_single(d, value, rounding(x)))
        else:
            half = d.fcvt(value, 16, Fp(rounding(x)))
            parts.append(d.select(is_nan(d, half), d.const(0x7FFF, 16), half))
    return {"Rd": d.concat(parts[1], parts[0])}


def i2i(d: Domain[T], x: View[T]) -> Results:
    """A signed word, saturated to a narrower type."""
    name = x.one_of(_INTS)
    bits, value = int(name[1:]), x.bits("Rb")
    low, top = (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "S" else (0, (1 << bits) - 1)
    return {"Rd": smax(d, smin(d, value, d.const(top, 32)), d.const(low, 32))}


_ROUND = "RM RP RZ"
_INT_MODS = " ".join(_INTS)


def rows() -> list[Meaning]:
    return [
        *uniform([
            row("I2F", i2f, f"F16 F64 BF16 {_ROUND} {_INT_MODS}"),
            row("I2FP", i2f, "F32 S32 U32 RZ"),
            row("F2I", f2i, f"FTZ NTZ F16 F64 BF16 FLOOR CEIL TRUNC {_INT_MODS}"),
            row("FRND", frnd, "F16 F64 BF16 FTZ FLOOR CEIL TRUNC"),
            row("F2F", f2f, f"F16 F32 F64 BF16 FTZ {_ROUND}"),
            row("I2I", i2i, f"{_INT_MODS} SAT"),
        ]),
        row("F2FP", f2fp, "F16 BF16 F32 PACK_AB RZ RELU SATFINITE E4M3 E5M2 TF32 UNPACK_B"),
    ]  # fmt: skip

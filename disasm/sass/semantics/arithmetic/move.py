"""Moves: special registers and constants without an index."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sassxlate.disasm.sass.instruction import Const, Reg, RegRef, Special
from sassxlate.disasm.sass.semantics.rows import NoSemantics, Results, Semantics, View, row
from sassxlate.domain.interface import Domain

T = TypeVar("T")
_PARTS = {"U8": (8, False), "S8": (8, True), "U16": (16, False), "S16": (16, True)}


def s2r(d: Domain[T], x: View[T]) -> Results:
    source = x.operand("sr")
    if not isinstance(source, Special):
        raise NoSemantics("this source of S2R")
    target = x.ins.get("Rd")
    width = target.width if isinstance(target, Reg) else 1
    if source.name == "SRZ":
        return {"Rd": d.const(0, 32 * width)}
    low = x.env.special(source)
    if width == 1:
        return {"Rd": low}
    if source.name not in ("SR_CLOCKLO", "SR_GLOBALTIMERLO"):
        raise NoSemantics("64 bits of a special register")
    high = x.env.special(replace(source, name=f"{source.name[:-2]}HI"))
    return {"Rd": d.concat(high, low)}


def ldc(d: Domain[T], x: View[T]) -> Results:
    source = x.operand("src")
    if not isinstance(source, Const) or source.ur is not None:
        raise NoSemantics("this kind of constant operand")
    if source.index is not None and not source.index.is_zero:
        raise NoSemantics("a constant with an index")
    part = x.one_of(_PARTS)
    if part:
        bits, signed = _PARTS[part]
        value = d.extract(x.env.const(source, 0), 0, bits)
        return {"Rd": d.sext(value, 32) if signed else d.zext(value, 32)}
    target = x.ins.get("Rd")
    if x.has("128") and isinstance(target, Reg):
        return {
            RegRef(target.file, target.index + i): x.env.const(source, i)
            for i in range(0 if target.is_zero else 4)
        }
    value = x.env.const(source, 0)
    if x.has("64"):
        value = d.concat(x.env.const(source, 1), value)
    return {"Rd": value}


def rows() -> list[Semantics]:
    return [
        row("S2R", s2r),
        row("S2UR", s2r),
        row("CS2R", s2r, "32"),
        row("CS2UR", s2r, "32"),
        row("LDC", ldc, "64 U8 S8 U16 S16"),
        row("ULDC", ldc, "64 U8 S8 U16 S16"),
        row("LDCU", ldc, "64 128 U8 S8 U16 S16"),
    ]

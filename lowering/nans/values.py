"""Bounds of binary32 results, as far as they rule out a NaN.

A bound is an exponent: the value is finite and at most two to it; ``NUMBER`` is finite or infinite,
``ANY`` may be NaN.  A result that cannot be NaN needs no repair.
"""

from __future__ import annotations

from typing import Final

from sassxlate.cfg.register_sets import FIRST
from sassxlate.disasm.sass.instruction import Imm, Instruction, Reg
from sassxlate.disasm.sass.traits import traits

NUMBER: Final = 1 << 20
ANY: Final = 1 << 21
_MOST: Final = 126  # largest exponent surely finite, with room for rounding up
_ZERO: Final = -200


class Bounds:
    """Bounds of an instruction's sources of which nothing is known."""

    def of(self, role: str) -> int:
        """The bound of a source of binary32."""
        return ANY


class Sources(Bounds):
    """Bounds of an instruction's sources, of which registers may be anything."""

    def __init__(self, ins: Instruction) -> None:
        self.ins = ins

    def of(self, role: str) -> int:
        operand = self.ins.get(role)
        if isinstance(operand, Reg):
            if operand.is_zero:
                return _ZERO
            return self.of_register(FIRST[operand.file] + operand.index)
        if isinstance(operand, Imm) and operand.bits == 32:
            return bound_of_number(operand.value)
        return ANY

    def of_register(self, number: int) -> int:
        """The bound of a register, by the number of its bit."""
        return ANY


def bound_of_number(bits: int) -> int:
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return ANY if fraction else NUMBER
    if not exponent:
        return -126 if fraction else _ZERO
    return exponent - 127 + bool(fraction)


def float_result(ins: Instruction, sources: Bounds) -> int | None:
    """The bound of a result that is one binary32; None if it is not a float or unknown."""
    t = traits(ins)
    if ins.has("SAT") and t.number == "f32" and not t.converts:
        return 0
    match t.base:
        case "FADD":
            return _sum(sources.of("Ra"), sources.of("Rb"))
        case "FMUL":
            scaled = any(m in ins.modifiers for m in ("M2", "M4", "M8", "D2", "D4", "D8"))
            return ANY if scaled else _product(sources.of("Ra"), sources.of("Rb"))
        case "FFMA":
            return _sum(_product(sources.of("Ra"), sources.of("Rb")), sources.of("Rc"))
        case "FMNMX":
            return _extreme(ins, sources.of("Ra"), sources.of("Rb"))
        case "I2FP":
            return 64
        case "I2F":
            wide = any(ins.has(m) for m in ("F16", "F64", "BF16"))
            return None if wide else 64
        case "FRND":
            half = any(ins.has(m) for m in ("F16", "F64", "BF16"))
            size = sources.of("Rb")
            return None if half else size if size >= NUMBER else max(size, 0)
        case "MUFU":
            return _mufu(ins, sources.of("Rb"))
        case _:
            return None


def _sum(a: int, b: int) -> int:
    """An infinity plus a finite number is not NaN; two infinities may be."""
    if max(a, b) >= ANY or min(a, b) >= NUMBER:
        return ANY
    if max(a, b) >= NUMBER:
        return NUMBER
    out = max(a, b) + 1 if min(a, b) > _ZERO else max(a, b)
    return out if out <= _MOST else NUMBER


def _product(a: int, b: int) -> int:
    """Infinity times a possible zero is NaN."""
    if max(a, b) >= NUMBER:
        return ANY
    out = max(a + b, _ZERO)
    return out if out <= _MOST else NUMBER


def _extreme(ins: Instruction, a: int, b: int) -> int:
    """For a number and a NaN, the number."""
    if ins.has("NAN"):
        return max(a, b)
    if max(a, b) < NUMBER:
        return max(a, b)
    return NUMBER if min(a, b) <= NUMBER else ANY


def _mufu(ins: Instruction, size: int) -> int | None:
    if any(ins.has(m) for m in ("F16", "BF16", "F16x2", "BF16x2", "RCP64H", "RSQ64H")):
        return None
    if (ins.has("SIN") or ins.has("COS")) and size < NUMBER:
        return 1
    if ins.has("TANH") and size <= NUMBER:
        return 1
    if (ins.has("EX2") or ins.has("RCP")) and size <= NUMBER:
        return NUMBER
    return ANY


__all__ = ["ANY", "NUMBER", "Bounds", "Sources", "bound_of_number", "float_result"]

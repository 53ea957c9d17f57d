"""Instructions that move halves of registers: as bf16 become binary32 numbers, and pairs of halves
are put together.

bf16 is the upper half of a binary32 pattern, so nvcc converts it by PRMT, by a shift, or by the
upper half's mask.  The optimising tier follows halves through them; the rules' code repairs what
such an instruction reads.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from sassxlate.disasm.sass.instruction import Imm, Instruction, Pred, Reg
from sassxlate.disasm.sass.traits import traits

# Half of a source, by its role and whether it is the upper one; or a constant.
Part: TypeAlias = tuple[str, bool] | int
_WIDTH: Final = 16
_AND: Final = 0xC0  # LOP3's table of Ra & Rb
_UPPER, _LOWER = 0xFFFF0000, 0xFFFF


def halves_of(ins: Instruction) -> tuple[Part, Part] | None:
    """The lower and the upper half of the result, each a half of a source; None if they are
    not."""
    match traits(ins).base:
        case "PRMT":
            parts = _permuted(ins)
        case "SHF":
            parts = _shifted(ins)
        case "IMAD":
            parts = _multiplied(ins)
        case "LOP3":
            parts = _masked(ins)
        case _:
            return None
    return parts


def _permuted(ins: Instruction) -> tuple[Part, Part] | None:
    selector = ins.get("Rb")
    if ins.modifiers or not isinstance(selector, Imm):
        return None
    found: list[Part] = []
    for place in (0, 8):
        first, second = selector.value >> place & 0xF, selector.value >> place + 4 & 0xF
        if first % 2 or second != first + 1 or first >= 8:
            return None
        part = _half(ins, "Ra" if first < 4 else "Rc", first & 2 != 0)
        if part is None:
            return None
        found.append(part)
    return found[0], found[1]


def _shifted(ins: Instruction) -> tuple[Part, Part] | None:
    if not _is(ins, "Rb", _WIDTH):
        return None
    if ins.modifiers == ("L", "U32"):
        part = _half(ins, "Ra", False)
        return None if part is None else (0, part)
    if ins.modifiers == ("R", "U32", "HI"):
        part = _half(ins, "Rc", True)
        return None if part is None else (part, 0)
    return None


def _multiplied(ins: Instruction) -> tuple[Part, Part] | None:
    if ins.modifiers not in ((), ("U32",)) or not _is_zero(ins, "Rc"):
        return None
    if not _is(ins, "Rb", 1 << _WIDTH):
        return None
    part = _half(ins, "Ra", False)
    return None if part is None else (0, part)


def _masked(ins: Instruction) -> tuple[Part, Part] | None:
    result = ins.get("Pu")
    if not _is(ins, "lut", _AND) or not (isinstance(result, Pred) and result.is_true):
        return None
    if _is(ins, "Rb", _UPPER):
        part = _half(ins, "Ra", True)
        return None if part is None else (0, part)
    if _is(ins, "Rb", _LOWER):
        part = _half(ins, "Ra", False)
        return None if part is None else (part, 0)
    return None


def _half(ins: Instruction, role: str, upper: bool) -> Part | None:
    operand = ins.get(role)
    if isinstance(operand, Imm):
        return operand.value >> (_WIDTH if upper else 0) & 0xFFFF
    if not isinstance(operand, Reg) or operand.neg or operand.abs or operand.inv or operand.select:
        return None
    return 0 if operand.is_zero else (role, upper)


def _is(ins: Instruction, role: str, value: int) -> bool:
    operand = ins.get(role)
    return isinstance(operand, Imm) and operand.value == value and not (operand.neg or operand.inv)


def _is_zero(ins: Instruction, role: str) -> bool:
    operand = ins.get(role)
    return isinstance(operand, Reg) and operand.is_zero


__all__ = ["Part", "halves_of"]

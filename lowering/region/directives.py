"""The words of an answer that begin with a dot: guards, and what stands for a macro."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sassxlate.disasm.rdna3 import registers
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Item, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import VCC_LO
from sassxlate.errors import EncodeError
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.macro import MACRO, Macro, is_temporary
from sassxlate.lowering.region.places import Names
from sassxlate.lowering.region.subset import guard, guard_inst

CLOBBERS: Final = ".clobbers"  # in a macro's line: the temporaries that its code overwrites


def guard_words(inst: Inst, regs: RegisterMap, here: Names) -> tuple[str, ...] | None:
    """The words of a guard's opening, switching or closing; None for any other instruction."""
    found = guard(inst, regs)
    if found is None:
        return None
    word, inverted, mask = found
    if mask is None:
        return (word,)
    return (word, *(["!"] if inverted else []), here.of(mask))


def read_guard(words: Sequence[str], at: int, regs: RegisterMap, here: Names) -> tuple[Inst, int]:
    """The instruction that words from ``at`` on mean, and where they end.  EncodeError SX0543."""
    word = words[at]
    if word == ".endpred":
        return guard_inst(word, False, None, regs), at + 1
    if word not in (".pred", ".switch"):
        raise EncodeError("SX0543", f"no directive {word!r}")
    inverted = words[at + 1 : at + 2] == ["!"] or words[at + 1 : at + 2] == ("!",)
    at += 2 if inverted else 1
    name = words[at] if at < len(words) else ""
    mask = here.register(name)
    if name[0] not in "pqs" or not isinstance(mask, S):
        raise EncodeError("SX0543", f"{name} is not a predicate")
    return guard_inst(word, inverted, mask, regs), at + 1


def macro_line(
    said: Sequence[str], macro: Macro, regs: RegisterMap, here: Names
) -> tuple[str, ...]:
    """A macro's line in a question: its instruction's, and the temporaries that it overwrites."""
    over = [
        _place(arg, here)
        for arg in macro.clobbers
        if all(is_temporary(ref, regs) for ref in registers(arg))
    ]
    return (MACRO, *said, CLOBBERS, *over)


def _place(arg: Arg, here: Names) -> str:
    if isinstance(arg, Sp):
        return arg.name
    if arg in (S(VCC_LO), S(VCC_LO + 1)):
        return "vcc_lo" if arg == S(VCC_LO) else "vcc_hi"
    assert isinstance(arg, V | S)
    return here.of(arg)


def macro_code(
    group: Sequence[Item], macro: Macro, regs: RegisterMap, here: Names
) -> Iterator[str]:
    """The words of a macro's instruction: the macro once, and guards.  EncodeError SX0543 for
    anything else."""
    if sum(item == macro.inst for item in group) != 1:
        raise EncodeError("SX0543", "a macro's code stays as it is")
    for item in group:
        words = guard_words(item, regs, here) if isinstance(item, Inst) else None
        if item == macro.inst:
            yield MACRO
        elif words is not None:
            yield from words
        else:
            raise EncodeError("SX0543", "other code with a macro's")


__all__ = ["CLOBBERS", "guard_words", "macro_code", "macro_line", "read_guard"]

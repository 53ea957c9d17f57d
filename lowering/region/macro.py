"""Macros: SASS instructions whose code stays the rules', as one word of a question and its answer.

Loops around an atomic, cross-lane instructions, fences, strong accesses, matrix products and all
instructions whose rule was tested on inputs have code that no proposer may change.  In a region
such code is one pseudo-instruction (:data:`.MACRO`) that says which registers it reads and writes;
what it stands for is kept beside the region (:class:`Macro`).  So a region may have macros between
the instructions that are changed, while their code stays what the rules wrote, in its place.

A macro's code changes neither EXEC nor where a guard saves it: guards stand beside it, in words,
and may be shared with the instructions around it.  It reads no temporary, VCC or SCC that it did
not write itself: before it, these are free, and after it they hold anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sassxlate.disasm.rdna3 import MACRO, READS, RRef, info, reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, M0, VCC_LO
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.subset import guard

# Control that leaves the code, and what a block must not hold.
_NEVER: Final = frozenset({"jump", "end", "message", "interp", "ldsdir", "export"})
_SCC: Final = RRef("scc")
_VCC: Final = frozenset({RRef("s", VCC_LO), RRef("s", VCC_LO + 1)})
_M0: Final = RRef("s", M0)
_ELSEWHERE: Final = frozenset({RRef("s", EXEC_LO), RRef("s", EXEC_LO + 1), _M0})  # not operands


@dataclass(frozen=True, slots=True)
class Macro:
    """The rules' code of one SASS instruction, and the pseudo-instruction that stands for it."""

    inst: Inst
    items: tuple[Item, ...]

    @property
    def clobbers(self) -> tuple[Arg, ...]:
        """What it writes, in order; results of its SASS instruction included."""
        return self.inst.args[: self.inst.args.index(READS)]


Macros = Mapping[int, Macro]  # by the offset of the SASS instruction


def macro_of(code: Sequence[Item], regs: RegisterMap, guarded: bool = True) -> Macro | None:
    """The macro of an instruction's code, which may have guards at either end; None where the code
    may leave the block, changes EXEC for good or the place where guards save it, or depends on a
    temporary of the code before it.  ``guarded``: whether the instruction is, so that its results
    may keep what they were."""
    first, end = _core(code, regs)
    core = code[first:end]
    if not _closed(core):
        return None
    read: set[RRef] = set()
    written: set[RRef] = set()
    for inst in core:
        if isinstance(inst, Label):
            continue
        for ref in reads(inst):
            if is_temporary(ref, regs) and ref not in written:
                return None
            read.add(ref)
        written |= writes(inst)
    if RRef("s", regs.save_exec.index) in read | written:
        return None
    # What keeps its bits in lanes that run the code is read, too; so are the masks of others.
    kept = {ref for ref in written if guarded or ref.kind != "v"}
    takes = {ref for ref in read | kept if not is_temporary(ref, regs)}
    args = (*_operands(written - _ELSEWHERE), READS, *_operands(takes - _ELSEWHERE))
    return Macro(Inst(MACRO, args), tuple(core))


def _core(code: Sequence[Item], regs: RegisterMap) -> tuple[int, int]:
    """The part of an instruction's code between guards."""
    first, end = 0, len(code)
    while first < end and _narrows(code[first], regs):
        first += 1
    while first < end and _narrows(code[end - 1], regs):
        end -= 1
    return first, end


def _narrows(item: Item, regs: RegisterMap) -> bool:
    return isinstance(item, Inst) and guard(item, regs) is not None


def is_temporary(ref: RRef, regs: RegisterMap) -> bool:
    """Whether no value is kept in a register from one region to the next."""
    if ref.kind == "v":
        return ref.number >= regs.vtemp_base
    scalar = ref.kind == "s" and ref.number in regs.stemps
    return scalar or ref in _VCC or ref in (_SCC, _M0)


def _operands(refs: set[RRef] | frozenset[RRef]) -> list[Arg]:
    out: list[Arg] = []
    for ref in sorted(refs):
        if ref.kind in ("v", "s"):
            out.append((V if ref.kind == "v" else S)(ref.number))
        elif ref == _SCC:
            out.append(Sp("scc"))
    return out


def _closed(code: Sequence[Item]) -> bool:
    """Whether control stays in the code and goes on at its end."""
    labels = {item.name for item in code if isinstance(item, Label)}
    found = False
    for item in code:
        if isinstance(item, Label):
            continue
        found = True
        if info(item.op).kind in _NEVER or item.op in ("s_trap", "s_sethalt"):
            return False
        if any(isinstance(arg, LabelRef) and arg.name not in labels for arg in item.args):
            return False
    return found


def sealed(
    code: Sequence[Sequence[Item]],
    instructions: Sequence[Instruction],
    macros: Macros,
    regs: RegisterMap,
) -> tuple[tuple[Item, ...], ...]:
    """The rules' code with the pseudo-instruction in place of each macro's."""
    out: list[tuple[Item, ...]] = []
    for ins, group in zip(instructions, code, strict=True):
        macro = macros.get(ins.offset)
        if macro is None or macro.inst in group:
            out.append(tuple(group))
            continue
        first, end = _core(group, regs)
        out.append((*group[:first], macro.inst, *group[end:]))
    return tuple(out)


def opened(
    code: Sequence[Sequence[Item]], instructions: Sequence[Instruction], macros: Macros
) -> list[list[Item]]:
    """The code of each instruction, with that of macros.  A pseudo-instruction elsewhere stays, and
    is then no instruction of RDNA3."""
    out: list[list[Item]] = []
    for ins, group in zip(instructions, code, strict=True):
        macro = macros.get(ins.offset)
        made: list[Item] = []
        for item in group:
            made += macro.items if macro is not None and item == macro.inst else [item]
        out.append(made)
    return out


def misplaced(
    code: Sequence[Sequence[Item]],
    instructions: Sequence[Instruction],
    macros: Macros,
    regs: RegisterMap,
) -> str | None:
    """What is wrong with the macros of an answer: each is all of the code of its instruction but
    for guards, once, and stands nowhere else.  None if nothing is."""
    for ins, group in zip(instructions, code, strict=True):
        macro = macros.get(ins.offset)
        rest = [item for item in group if not _narrows(item, regs)]
        if macro is not None:
            if rest != [macro.inst]:
                return f"the code of {ins.mnemonic} is a macro's, which stays as it is"
        elif any(isinstance(item, Inst) and item.op == MACRO for item in rest):
            return f"a macro in the code of {ins.mnemonic}"
    return None


def same_code(a: Sequence[Item], b: Sequence[Item]) -> bool:
    """Whether two pieces of code are equal but for the names of labels."""
    if len(a) != len(b):
        return False
    names: dict[str, str] = {}

    def same(x: Item, y: Item) -> bool:
        if isinstance(x, Label) or isinstance(y, Label):
            if not isinstance(x, Label) or not isinstance(y, Label):
                return False
            return names.setdefault(x.name, y.name) == y.name
        renamed = tuple(
            LabelRef(names.setdefault(p.name, q.name))
            if isinstance(p, LabelRef) and isinstance(q, LabelRef)
            else p
            for p, q in zip(x.args, y.args, strict=False)
        )
        return len(x.args) == len(y.args) and replace(x, args=renamed) == y

    return all(map(same, a, b)) and len(set(names.values())) == len(names)


__all__ = [
    "MACRO", "Macro", "Macros", "is_temporary", "macro_of", "misplaced", "opened", "same_code",
    "sealed",
]  # fmt: skip

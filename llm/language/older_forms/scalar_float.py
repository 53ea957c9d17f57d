"""Floating point on the scalar unit, restated for the vector unit: sources are moved to vector
registers, results stay there for later lines and are copied to the block's registers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass.instruction import Instruction, Mem, Operand, Pred, Reg, RegRef
from sassxlate.llm.language.older_forms.lender import FALSE, TRUE, ZERO, ScratchNames, line
from sassxlate.lowering.region.places import place_of
from sassxlate.lowering.region.restated import Copies

VECTOR: Final[Mapping[str, str]] = {
    "UFADD": "FADD", "UFMUL": "FMUL", "UFFMA": "FFMA", "UFSEL": "FSEL", "UFSETP": "FSETP",
    "UFMNMX": "FMNMX", "UF2I": "F2I", "UI2FP": "I2FP", "UI2F": "I2F", "UFRND": "FRND",
    "UVIMNMX": "VIMNMX",
}  # fmt: skip


@dataclass(slots=True)
class Scalars:
    """The uniform registers that currently have a copy in a vector register: ``now`` those written
    by restated lines."""

    lender: ScratchNames
    now: dict[int, Reg] = field(default_factory=dict[int, Reg])
    moved: dict[int, Reg] = field(default_factory=dict[int, Reg])  # copies of read registers
    made: list[tuple[int, int, Reg]] = field(default_factory=list["tuple[int, int, Reg]"])
    moves: dict[int, tuple[S | V, V]] = field(default_factory=dict[int, "tuple[S | V, V]"])

    def said(self, ins: Instruction, at: int) -> list[Instruction] | None:
        """A floating-point instruction of the scalar unit as lines for the vector unit; ``at`` is
        the number of its first line."""
        if ins.mnemonic not in VECTOR or not ins.guard.is_true:
            return None
        wide = [o for o in ins.operands.values() if isinstance(o, Reg) and o.width > 1]
        if wide and not all(o.is_zero for o in wide):
            return None
        lines: list[Instruction] = []
        operands: dict[str, Operand] = {}
        moved: dict[int, Reg] = {}
        moves: dict[int, tuple[S | V, V]] = {}
        for role, operand in ins.operands.items():
            if not isinstance(operand, Reg) or role == "Rd":
                operands[role] = operand
                continue
            if operand.is_zero:
                operands[role] = replace(operand, file="R", width=1)
                continue
            copy = (self.now | self.moved | moved).get(operand.index)
            if copy is None:
                copy = self.lender.vector()
                if copy is None:
                    return None
                moved[operand.index] = copy
                source = Reg("UR", operand.index)
                of: dict[str, Operand] = {
                    "Rd": copy, "Ra": ZERO, "Rb": ZERO, "Rc": source, "Pu": TRUE, "Pp": FALSE,
                }  # fmt: skip
                moves[at + len(lines)] = self._place(operand.index), self._vector(copy)
                lines.append(line(ins, "IMAD", ("U32",), of, guard=TRUE))
            operands[role] = replace(operand, file="R", index=copy.index)
        to = ins.get("Rd")
        if isinstance(to, Reg):
            result = self.lender.vector()
            if result is None or to.is_zero:
                return None
            operands["Rd"] = result
            self.forget(ins)
            self.now[to.index] = result
            self.made.append((at + len(lines), to.index, result))
            moved.pop(to.index, None)
        self.moved |= moved
        self.moves |= moves
        modifiers = [m for m in ins.modifiers if m != "S32" or ins.mnemonic != "UVIMNMX"]
        return [*lines, line(ins, VECTOR[ins.mnemonic], modifiers, operands, guard=TRUE)]

    def read(self, ins: Instruction) -> Instruction:
        """A line that reads copies wherever the vector unit allows."""
        to = ins.get("Rd")
        if not self.now or (isinstance(to, Reg) and to.file == "UR"):
            return ins
        if any(isinstance(o, Pred) and o.file == "UP" for o in ins.operands.values()):
            return ins
        operands = dict(ins.operands)
        for role, operand in ins.operands.items():
            if isinstance(operand, Reg) and operand.file == "UR" and operand.width == 1:
                copy = self.now.get(operand.index)
                if copy is not None and not operand.is_zero:
                    operands[role] = replace(operand, file="R", index=copy.index)
        return ins if operands == ins.operands else replace(ins, operands=operands)

    def forget(self, ins: Instruction) -> None:
        """Records an instruction's results: their copies are stale."""
        for ref in ins.writes:
            if ref.file == "UR":
                self.now.pop(ref.index, None)
                self.moved.pop(ref.index, None)

    def copies(self, lines: Sequence[Instruction], live_out: Collection[RegRef]) -> Copies:
        """By line, the copies to uniform registers that are read as uniform registers."""
        out: dict[int, tuple[S | V, V]] = {}
        for at, number, copy in self.made:
            if not _needed(lines[at + 1 :], number, live_out):
                continue
            out[at] = self._place(number), self._vector(copy)
        return out

    def _place(self, number: int) -> S | V:
        kind, at = place_of(RegRef("UR", number), self.lender.regs)
        return V(at) if kind == "l" else S(at)

    def _vector(self, copy: Reg) -> V:
        return V(self.lender.vectors[copy.index])


def _needed(lines: Sequence[Instruction], number: int, live_out: Collection[RegRef]) -> bool:
    for ins in lines:
        to = ins.get("Rd")
        for role, operand in ins.operands.items():
            for reg in _registers(operand) if role != "Rd" else ():
                if reg.file == "UR" and reg.index <= number < reg.index + reg.width:
                    return True
        written = isinstance(to, Reg) and to.file == "UR" and ins.guard.is_true
        if written and isinstance(to, Reg) and to.index <= number < to.index + to.width:
            return False
        # A result that is itself copied.
        if RegRef("UR", number) in ins.writes and ins.mnemonic in VECTOR.values():
            return False
    return RegRef("UR", number) in live_out


def _registers(operand: Operand) -> list[Reg]:
    if isinstance(operand, Mem):
        return [r for r in (operand.base, operand.ureg) if r is not None]
    return [operand] if isinstance(operand, Reg) else []


__all__ = ["VECTOR", "Scalars"]

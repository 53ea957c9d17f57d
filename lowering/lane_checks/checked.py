"""The check of hand-written code, for a whole kernel: each different sequence once.

Rules write the same sequences many times, with other registers of the program and other numbers,
of which :func:`.handwritten.faults` looks at nothing: exact operations on doubles have a loop or a
branch each, and following each lane through them took a third of such kernels' time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, LabelRef, V
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.lane_checks.handwritten import HELPED, faults, is_sequence
from sassxlate.lowering.regalloc.register_map import RegisterMap

_ALL: Final = 0xFFFFFFFF
_MOST: Final = 1 << 12
# Registers of the program: for barriers, copies of uniform registers, any other.
_BARRIER, _COPY, _GIVEN = range(3)
# What stands for an instruction that is compared as it is.
_Shape = tuple[str, tuple[object, ...], str, bool]


class Checked:
    """Sequences of a kernel that treat every lane rightly."""

    def __init__(self, regs: RegisterMap) -> None:
        self.regs = regs
        self._copies = frozenset(regs.ur_lanes.values())
        self._barriers = frozenset(regs.barriers.values())
        self._right: set[tuple[int, ...]] = set()
        self._numbers: dict[_Shape, int] = {}  # of what matters per lane
        self._known: dict[tuple[str, tuple[Arg, ...], str, bool], int] = {}

    def check(self, kernel: str, ins: Instruction, code: Sequence[Item]) -> None:
        """Raises SX0431 if an instruction's code, without the EXEC of its guard, treats lanes
        wrongly."""
        if not is_sequence(code):
            return
        helps = ins.mnemonic in HELPED
        key = self._key(code, helps)
        if key is not None and key in self._right:
            return
        found = faults(code, self.regs, helps=helps)
        if found:
            what = "; ".join(f.text for f in found[:3])
            where = Where(kernel=kernel, offset=ins.offset, word=ins.word, inst=ins.text)
            raise LoweringError("SX0431", f"the code for it {what}", where)
        if key is not None:
            self._right.add(key)

    def _key(self, items: Sequence[Item], helps: bool) -> tuple[int, ...] | None:
        """All that :func:`faults` looks at, apart from the kernel's registers, as numbers: what an
        instruction is, and where labels stand and branches go.  None if it cannot be said so."""
        key = [int(helps)]
        labels: dict[str, int] = {}
        for item in items:
            if isinstance(item, Label):
                key += (-1, labels.setdefault(item.name, len(labels)))
                continue
            if item.y is not None:
                return None
            key.append(self._number(item))
            for arg in item.args:
                if isinstance(arg, LabelRef):
                    key.append(labels.setdefault(arg.name, len(labels)))
        return tuple(key)

    def _number(self, inst: Inst) -> int:
        exact = (inst.op, inst.args, inst.dpp, inst.glc)
        known = self._known.get(exact)
        if known is None:
            shape = (inst.op, tuple([self._shape(a) for a in inst.args]), inst.dpp, inst.glc)
            known = self._numbers.setdefault(shape, len(self._numbers))
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[exact] = known
        return known

    def _shape(self, arg: Arg) -> object:
        """What of an operand matters per lane: of numbers, whether all bits are the same; of
        registers of the program, whether lanes that are elsewhere may lose what they hold."""
        if isinstance(arg, I):
            value = arg.value & _ALL
            return I(value) if value in (0, _ALL) else I(1)
        if isinstance(arg, LabelRef):
            return None
        if isinstance(arg, V):
            members = range(arg.index, arg.index + arg.n)
            if members.stop <= self.regs.vtemp_base:
                given = [v for v in members if v not in self._barriers]
                if not given:
                    return _BARRIER
                return _COPY if all(v in self._copies for v in given) else _GIVEN
        return arg


__all__ = ["Checked"]

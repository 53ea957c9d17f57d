"""Which registers hold the two words of one double.

A double that is NaN on both sides is NaN to whatever reads both of its words as a number.  Its low
word beside the high word of another double need not be: ``0x7ff00000`` is an infinity above a low
word of zero, and NaN above any other.  So such a pair is a read of the low word's bits.  So is
the NaN that F2F.F32.F64 makes as a high word: 0x7fc00000 is one of a large number.
"""

from __future__ import annotations

from typing import Final

from sassxlate.cfg.register_sets import FIRST, bit_number
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Pred, Reg
from sassxlate.lowering.nans.reads import WIDE, Nan, moved
from sassxlate.lowering.nans.steps import COPY, DOUBLE, SHUFFLED, State, Step, Value

_LOW: Final = int(Nan.LOW)
_HIGH: Final = int(Nan.HIGH)
_ALONE: Final = int(Nan.ALONE)
_WIDE: Final = int(WIDE)
_EXACT: Final = 0  # a word that is the same on both sides


class Pairs:
    """The words of doubles in a block, from its start on.

    Each register has the number of the double, per lane, that it holds a word of: two words with
    the same number come from the same operation by the same choices.
    """

    def __init__(self, entry: State, *, tier: bool) -> None:
        self._entry = entry
        self._tier = tier
        self._numbers: dict[tuple[object, ...], int] = {}
        self._held: dict[int, int] = {}
        self._written: dict[int, int] = {}  # when a register or predicate was written last
        self._now = 0

    def apart(self, step: Step, found: State) -> list[int]:
        """The words of doubles, NaN on both sides, that an instruction reads beside others, and the
        floats that it reads as high words."""
        out: list[int] = []
        for low, high in step.pairs:
            bits = found[low].bits if low in found else 0
            if bits & _LOW and self._of(low) != self._of(high):
                out.append(low)
            bits = found[high].bits if high in found else 0
            if bits & _HIGH and bits & _ALONE:
                out.append(high)
        return out

    def step(self, step: Step) -> None:
        """An instruction has been executed."""
        self._now += 1
        if step.makes == DOUBLE:
            made = self._number(("made", self._now))
            new = {word: made for word in step.words}
        elif step.makes in (COPY, SHUFFLED):
            new = self._copies(step)
        else:
            new = {}
        if not step.plain:
            guard = self._predicate(step.ins.guard)
            for register in step.writes:
                choice = (new.get(register, _EXACT), self._of(register))
                new[register] = self._number(("guard", guard, *choice)) if any(choice) else _EXACT
        for register in step.writes:
            self._held[register] = new.get(register, _EXACT)
        for ref in step.ins.writes:
            self._written[bit_number(ref)] = self._now

    def leave(self, state: State) -> None:
        """Enters into the state after the block which low words have no high word beside them."""
        changed = [r for r in self._written if r >= FIRST["R"]]
        for register in {*changed, *(r - 1 for r in changed)}:
            value = state.get(register)
            if value is None or not value.bits & _LOW:
                continue
            bits = value.bits & ~_ALONE
            if bits & _HIGH or self._of(register) != self._of(register + 1):
                bits |= _ALONE
            if bits != value.bits:
                state[register] = Value(bits, value.bound, value.makers)

    def _of(self, register: int) -> int:
        known = self._held.get(register)
        if known is None:
            known = self._held[register] = self._before(register)
        return known

    def _before(self, register: int) -> int:
        """What a register holds where the block begins."""
        value = self._entry.get(register)
        bits = 0 if value is None else value.bits & (_WIDE | _ALONE)
        if not bits:
            return _EXACT
        if bits == _LOW:
            return self._number(("before", register))
        if bits == _HIGH:
            return self._number(("before", register - 1))
        return self._number(("alone", register))

    def _copies(self, step: Step) -> dict[int, int]:
        out: dict[int, int] = {}
        for word, sources in zip(step.words, step.copies, strict=False):
            held = [self._of(s) if isinstance(s, int) else _EXACT for s in sources]
            if not any(held):
                continue
            if len(held) == 1 and step.ins.mnemonic != "SHFL":
                out[word] = held[0]
            else:
                out[word] = self._number(("copy", *self._choice(step.ins), *held))
        return out

    def _choice(self, ins: Instruction) -> tuple[object, ...]:
        """By what an instruction chooses a source, or another lane."""
        roles = ("Ra",) if ins.mnemonic == "SHFL" else moved(ins, tier=self._tier)
        out: list[object] = [ins.mnemonic, *ins.modifiers]
        for role, operand in ins.operands.items():
            if role in roles or role == "Rd":
                continue
            out.append(role)
            if isinstance(operand, Pred):
                out.append(self._predicate(operand))
            elif isinstance(operand, Reg):
                first = FIRST[operand.file] + operand.index
                words = range(first, first if operand.is_zero else first + operand.width)
                out += [operand, *(self._written.get(word, 0) for word in words)]
            elif isinstance(operand, Imm) or (isinstance(operand, Const) and not operand.index):
                out.append(operand)
            else:
                out.append(self._now)
        return tuple(out)

    def _predicate(self, operand: Pred) -> tuple[Pred, int]:
        return operand, self._written.get(FIRST[operand.file] + operand.index, 0)

    def _number(self, what: tuple[object, ...]) -> int:
        return self._numbers.setdefault(what, len(self._numbers) + 1)


__all__ = ["Pairs"]

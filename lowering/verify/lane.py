"""The SASS side: what instructions do to one lane's registers, over a domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from sassxlate.disasm.sass.ir import Const, Instruction, PredFile, RegFile, RegRef, Special
from sassxlate.disasm.sass.meaning import NoMeaning, evaluate, meanings
from sassxlate.domain import Domain
from sassxlate.lowering.launch import BankLayout

from .verdict import Undecided

T = TypeVar("T")


class Lane(Generic[T]):
    """Registers and predicates; those never written are free, as ``free`` makes them."""

    def __init__(
        self, d: Domain[T], layout: BankLayout, free: Callable[[str, int], T]
    ) -> None:
        self.d = d
        self.layout = layout
        self.free = free
        self.values: dict[RegRef, T] = {}

    def reg(self, file: RegFile, index: int) -> T:
        return self.get(RegRef(file, index))

    def pred(self, file: PredFile, index: int) -> T:
        return self.get(RegRef(file, index))

    def get(self, ref: RegRef) -> T:
        if ref not in self.values:
            width = 32 if ref.file in ("R", "UR") else 1
            self.values[ref] = self.free(f"{ref.file}{ref.index}", width)
        return self.values[ref]

    def word(self, bank: int, offset: int) -> T:
        """An aligned word of a constant bank; the windows' bases are AMD's apertures."""
        windows = (
            (self.layout.shared_window, 0x00010000), (self.layout.local_window, 0x00020000),
        )  # fmt: skip
        for base, high in windows:
            if bank == 0 and base is not None and offset in (base, base + 4):
                return self.d.const(high if offset > base else 0, 32)
        return self.free(f"c[{bank:#x}][{offset:#x}]", 32)

    def const(self, operand: Const, word: int) -> T:
        if operand.ur is not None or operand.index is not None:
            raise Undecided("a constant whose place is computed")
        offset = operand.offset + 4 * word
        value = self.word(operand.bank, offset & ~3)
        shift = 8 * (offset & 3)
        return self.d.lshr(value, self.d.const(shift, 32)) if shift else value

    def special(self, operand: Special) -> T:
        raise Undecided(f"special register {operand.name}")

    def run(self, ins: Instruction) -> None:
        """One instruction, where its guard holds.  Raises Undecided."""
        meaning = meanings().get(ins.mnemonic)
        if meaning is None:
            raise Undecided(f"no meaning of {ins.mnemonic}")
        try:
            written = evaluate(self.d, meaning, ins, self)
        except NoMeaning as reason:
            raise Undecided(f"{ins.mnemonic}: {reason}") from None
        guard = ins.guard
        if guard.index != 7:
            told = self.get(RegRef(guard.file, guard.index))
            if guard.inv:
                told = self.d.not_(told)
            written = {r: self.d.select(told, v, self.get(r)) for r, v in written.items()}
        elif guard.inv:
            written = {}
        self.values.update(written)

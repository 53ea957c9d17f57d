"""The history of one word of memory on both sides of a launch, and the place where they diverge."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.sass.instruction import Instruction, Mem, RegRef
from sassxlate.disasm.sass.interpreter import Group, Launch, Order, Resident, ScheduleOptions, run
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import InterpretError
from sassxlate.lowering.target import LANES
from sassxlate.lowering.trace.observations import Mask, Seen


@dataclass(frozen=True, slots=True)
class Word:
    """A word of memory: of the device by its address, or of a block's shared memory by its offset
    there; ``block`` is the block's number in the grid, -1 for device memory."""

    address: int
    block: int = -1

    def loaded(self, s: Resident) -> int | None:
        """Its value in the interpreter; None if it does not exist now."""
        if self.block < 0:
            return int.from_bytes(s.device.read(self.address, 4).tobytes(), "little")
        row = self.block - s.first
        if not 0 <= row < s.blocks or self.address + 4 > s.shared.size:
            return None
        data = s.shared.row(row)[self.address : self.address + 4]
        return int.from_bytes(data.tobytes(), "little")

    def writer(self, s: Resident) -> int:
        """The warp that wrote it last, -1 if none did."""
        if self.block < 0:
            by = next(
                s.device.writer_of(n, self.address - p.base)
                for n, p in enumerate(s.device.pieces)
                if p.base <= self.address < p.base + p.size
            )
            return -1 if by is None else by[1] // LANES
        at = ((self.block - s.first) * s.shared.stride + self.address) >> 2
        return int(s.shared.thread[at]) // LANES


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A word of memory has another value after a step of a warp."""

    warp: int
    offset: int
    value: int


def word_of(seen: Seen, each: int) -> Word | None:
    """The first word that a load found different; None if its address is not plain.  ``each``:
    the warps of a block."""
    ins, memory = seen.step.ins, seen.step.ins.get("mem")
    space, t = None, traits(ins)
    if not t.lanes and t.reaches(("load",), "global", "generic", "shared"):
        space = seen.warp // each if t.reaches(("load",), "shared") else -1
    found = [v for v in seen.values if v.differs and v.ref in ins.writes]
    if space is None or not isinstance(memory, Mem) or not found:
        return None
    first = min(found, key=lambda v: v.ref.index)
    lane = (first.differs & -first.differs).bit_length() - 1
    held = {v.ref: int(v.sass_before[lane]) for v in seen.values}
    address = memory.offset
    for reg, scale in ((memory.base, memory.scale), (memory.ureg, 1)):
        if reg is not None and not reg.is_zero:
            for word in range(reg.width):
                address += scale * held.get(RegRef(reg.file, reg.index + word), 0) << 32 * word
    if space >= 0:
        address &= 0xFFFFFFFF
    base = min((r.index for r in ins.writes if r.file == "R"), default=first.ref.index)
    address += 4 * (first.ref.index - base)
    return Word(address & 0xFFFFFFFFFFFFFFFC, space)


def changes_of_sass(
    launch: Launch, word: Word, wanted: frozenset[int], order: Order, give_up: int
) -> list[MemoryChange]:
    """The changes of a word in the interpreter, by the steps ``wanted``."""
    out: list[MemoryChange] = []
    before: list[int] = []

    def see(ins: Instruction, group: Group, lanes: Mask) -> None:
        value = word.loaded(group.s) if ins.offset in wanted else None
        if value is None:
            return
        if before and value != before[0]:
            out.append(MemoryChange(word.writer(group.s), ins.offset, value))
        before[:] = [value]

    def first(ins: Instruction, group: Group, lanes: Mask) -> None:
        value = None if before else word.loaded(group.s)
        if value is not None:
            before.append(value)

    with contextlib.suppress(InterpretError):
        run(launch, ScheduleOptions(order, give_up), see, before=first)
    return out


def culprit(
    sass: Sequence[MemoryChange], rdna: Sequence[MemoryChange]
) -> tuple[MemoryChange, bool] | None:
    """The first change of a word that only one side made; True: RDNA3 made it."""
    for change in rdna:
        if change not in sass:
            return change, True
    return next(((c, False) for c in sass if c not in rdna), None)


__all__ = ["MemoryChange", "Word", "changes_of_sass", "culprit", "word_of"]

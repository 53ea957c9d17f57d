"""Runs a launch as observed on an H200: warp after warp, the lanes of each by :mod:`.splits`.

Only what lanes of one warp observe of each other may differ from the other orders: which lanes run
together where the code does not reconverge them, or where it relies on barrier registers that
recursion reuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import BReg, Imm, Instruction, Reg
from sassxlate.disasm.sass.interpreter.control_transfer import barrier_number, register_value
from sassxlate.disasm.sass.interpreter.execute import Interpreter, Observer
from sassxlate.disasm.sass.interpreter.launch import Launch
from sassxlate.disasm.sass.interpreter.memory import GlobalMemory
from sassxlate.disasm.sass.interpreter.resident_warps import Group, Mask, ballot, spread
from sassxlate.disasm.sass.interpreter.schedule import SIZE, ScheduleOptions, key_index, place_key
from sassxlate.disasm.sass.interpreter.splits import Splits, Waits, lanes_of
from sassxlate.disasm.sass.interpreter.waiting import home_of
from sassxlate.disasm.sass.semantics.warp_state import LANES

ROUNDS = 64  # rounds of a loop that may wait for other warps, before these get their turn


class Silicon(Interpreter):
    """The resident blocks of a launch."""

    def __init__(
        self,
        launch: Launch,
        options: ScheduleOptions,
        device: GlobalMemory,
        code: Sequence[Instruction | None],
        blocks: tuple[int, int],
        observe: Observer | None,
    ) -> None:
        super().__init__(launch, options, device, code, blocks, observe)
        self.splits = [Splits(int(mask)) for mask in ballot(self.s.live).tolist()]
        self.row = 0
        self.rounds = 0

    def transfers(self) -> Mapping[str, Callable[[int, Instruction, Group, Mask], None]]:
        own = {"YIELD": self._give_way, "NANOSLEEP": self._give_way}
        return {**super().transfers(), **own}

    # --- whose turn it is -------------------------------------------------------------------------

    def run(self) -> None:
        """Runs until every lane has ended."""
        while self.s.live.any():
            before = self.executed
            for row in range(self.s.warps):
                self._turn(row)
            if self.executed == before and not any(
                split.resolve() for split in self.splits if split.live
            ):
                raise self._stuck()

    def _turn(self, row: int) -> None:
        """Runs a warp until none of its lanes can run, or it may be waiting for other warps."""
        self.row, self.rounds = row, 0
        split = self.splits[row]
        alone = self.s.warps == 1
        while split.live and (alone or self.rounds < ROUNDS):
            if not split.choose():
                if split.waiting("bar") or not split.resolve():
                    return
                continue
            running = split.running
            assert running is not None
            group = Group(self.s, np.array([row]), spread(np.array([running.mask], "<u4")))
            self._go(place_key(running.place), group, False)
            if self._spins:
                self.rounds += 1

    def _stuck(self) -> Exception:
        for row, split in enumerate(self.splits):
            for lane in split.waits:
                text = f"lanes wait for others that never come; first {self._lane(row, lane)}"
                return self._error("SX0214", text, split.place_of(lane))
        return self._deadlock()

    # --- transfers of control ---------------------------------------------------------------------

    def transfer(self, key: int, ins: Instruction, group: Group, lanes: Mask, spins: bool) -> None:
        self._spins = spins
        if ins.mnemonic in ("YIELD", "NANOSLEEP"):
            self._give_way(key, ins, group, lanes)
        else:
            super().transfer(key, ins, group, lanes, spins)

    def _now(self, ins: Instruction, group: Group, lanes: Mask) -> tuple[Splits, int, int, int]:
        """The warp, its running lanes, those that execute the instruction, and its place."""
        doing = self._condition(ins, group, lanes)
        split = self.splits[self.row]
        return split, int(ballot(group.act)[0]), int(ballot(doing)[0]), key_index(ins)

    def _to(self, key: int, index: int, group: Group | None, polite: bool = False) -> None:
        """The running lanes, or some of them, continue, beside others that already did."""
        if group is None:
            return
        mask, split = int(ballot(group.act)[0]), self.splits[self.row]
        running = split.running
        if running is None or running.place == index or not running.mask & ~mask:
            split.go(mask, index)
        else:
            split.put_beside(mask, index)

    def _branch(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        if any(ins.has(m) for m in ("DIV", "CONV", "ANY")):
            super()._branch(key, ins, group, lanes)  # all go the same way
            return
        split, mask, taken, place = self._now(ins, group, lanes)
        target = self._target(ins, place)
        self._spins = self._spins and target <= place
        split.part(taken, target, mask & ~taken, place + 1)

    def _indirect(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        """The lanes with the lowest lane's target split off; the others execute the instruction
        again."""
        split, mask, moving, place = self._now(ins, group, lanes)
        if mask & ~moving:
            split.part(moving, place, mask & ~moving, place + 1)
            return
        places = self._places(ins, group)[0]
        first = int(places[next(lanes_of(mask))])
        if first % SIZE or first >= SIZE * len(self.code):
            raise self._error("SX0217", f"control goes to {first:#x}", place)
        same = int(ballot((places == first)[None] & group.act)[0])
        self._spins = self._spins and first <= ins.offset
        split.part(mask & ~same, place, same, first // SIZE)

    def _exit(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, leaving, place = self._now(ins, group, lanes)
        self.s.live[self.row] &= ~spread(np.array([leaving], "<u4"))[0]
        split.go(mask & ~leaving, place + 1)
        if leaving:
            split.end(leaving)
            self._open(self.s.block_of[self.row : self.row + 1])

    # --- convergence ------------------------------------------------------------------------------

    def _arm(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, taking, place = self._now(ins, group, lanes)
        split.barriers[barrier_number(ins)] |= taking
        split.go(mask, place + 1)

    def _bsync(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, arriving, place = self._now(ins, group, lanes)
        split.sync(barrier_number(ins), mask, arriving, place)

    def _break(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, leaving, place = self._now(ins, group, lanes)
        split.leave(barrier_number(ins), mask, leaving, place)

    def _warpsync(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, arriving, place = self._now(ins, group, lanes)
        wanted = self._sync_masks(ins, group)[0].tolist()
        coming = list(lanes_of(arriving))
        if not coming:
            split.go(mask, place + 1)
        elif any(not wanted[lane] >> lane & 1 for lane in coming):
            raise self._error("SX0219", "WARPSYNC of a lane that its mask leaves out", place)
        elif ins.has("COLLECTIVE"):
            kind, home = int(self.waiting.classes[place]), home_of(ins)
            section = {n: Waits("section", kind, wanted[n], home) for n in coming}
            split.gather(mask, section, place + 1, place)
        else:
            exclusive = ins.has("EXCLUSIVE")
            split.meet(mask, {n: wanted[n] for n in coming}, place, exclusive=exclusive)

    def _go_home(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, _, place = self._now(ins, group, lanes)
        split.home(mask, place + 1)

    def _give_way(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, giving, place = self._now(ins, group, lanes)
        if giving:
            split.give_way(mask, place)
        else:
            split.go(mask, place + 1)

    # --- barriers of a block --------------------------------------------------------------------

    def _bar(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        split, mask, coming, place = self._now(ins, group, lanes)
        if ins.has("ARV") or not coming:
            split.go(mask, place + 1)
        else:
            split.stand(mask, coming, place)
        super()._bar(key, ins, group, lanes)

    def _resume(self, index: int, lanes: Mask, polite: bool = False) -> None:
        """Resumes lanes of any warp that waited at BAR."""
        for row, mask in enumerate(ballot(lanes).tolist()):
            if mask:
                self.splits[row].free(mask, index)

    # --- barrier registers ----------------------------------------------------------------------

    def _move(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        """There is one of each register per warp: the lowest lane's value is written."""
        source, target = ins.get("B"), ins.get("Rd")
        if not isinstance(source, BReg) or source.index >= 16 or ins.get("Bd") is not None:
            super()._move(ins, group, lanes)
            return
        barriers, s = self.splits[self.row].barriers, self.s
        if isinstance(target, Reg):
            if not target.is_zero:
                old = s.r[target.index][group.at]
                s.r[target.index][group.at] = np.where(lanes, barriers[source.index], old)
            if ins.has("CLEAR"):
                barriers[source.index] = 0
            return
        value = ins.get("Ra")
        if isinstance(value, Reg):
            words: NDArray[np.uint64] = np.broadcast_to(register_value(value, group), (1, LANES))
            barriers[source.index] = int(words[0, int(np.argmax(lanes[0]))]) & 0xFFFFFFFF
        else:
            barriers[source.index] = value.value & 0xFFFFFFFF if isinstance(value, Imm) else 0


__all__ = ["Silicon"]

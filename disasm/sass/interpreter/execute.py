"""Runs resident blocks, one straight-line run of instructions after the other; asynchronous copies
complete at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.interpreter.control_transfer import Transfers
from sassxlate.disasm.sass.interpreter.lane_domain import Lanes
from sassxlate.disasm.sass.interpreter.launch import Launch
from sassxlate.disasm.sass.interpreter.memory import GlobalMemory
from sassxlate.disasm.sass.interpreter.resident_warps import Group, LaneEnv, Mask, Missed
from sassxlate.disasm.sass.interpreter.schedule import ScheduleOptions, at_index, index_of
from sassxlate.disasm.sass.semantics import semantics_table
from sassxlate.disasm.sass.semantics.rows import NoSemantics, evaluate
from sassxlate.disasm.sass.semantics.warp_state import SemanticsFault, executing
from sassxlate.disasm.sass.semantics.whole_warps import evaluate_warp, warp_meanings
from sassxlate.disasm.sass.traits import traits

_ATOMICS = ("atomic", "reduction")

# Called after (or before) each instruction: its group, and which of its lanes execute it.
Observer = Callable[[Instruction, Group, Mask], None]


class Stop(Exception):
    """The requested offset is reached, or an observer ends the run."""


class Interpreter(Transfers):
    """The resident blocks of a launch, from their start to their end."""

    def __init__(
        self,
        launch: Launch,
        options: ScheduleOptions,
        device: GlobalMemory,
        code: Sequence[Instruction | None],
        blocks: tuple[int, int],
        observe: Observer | None,
    ) -> None:
        super().__init__(launch, options, device, code, blocks)
        self.observe = observe
        self.before: Observer | None = None
        self.domain = Lanes()
        self.executed = 0
        self.seen = np.zeros(len(code), np.bool_)
        self.here: Group | None = None  # where it stopped
        self.steps: list[Callable[[Instruction, Group, Mask], None] | None] = [
            self._step(i) if i is not None else None for i in code
        ]

    def run(self) -> None:
        """Runs until every lane has ended."""
        self._resume(0, self.s.live.copy())
        while True:
            if not self.ready:
                if not self.s.live.any():
                    return
                if not self._relent():
                    raise self._deadlock()
            self._go(*self._next())

    def _go(self, key: int, group: Group, polite: bool) -> None:
        """Runs a group to the end of a block, or to an instruction where other lanes wait to be
        joined."""
        s, code, steps, index = self.s, self.code, self.steps, index_of(key)
        start = index
        spins = polite
        while True:
            if index != start and at_index(key, index) in self.ready:
                self._add(at_index(key, index), group)
                return
            ins = code[index] if index < len(code) else None
            if ins is None:
                raise self._error("SX0217", "control leaves the code", index)
            if ins.offset == self.options.stop_at:
                self.here = group
                raise Stop
            self.executed += group.count
            s.clock += 1
            if self.options.limit and self.executed > self.options.limit:
                text = f"{self.options.limit} instructions of warps were executed"
                raise self._error("SX0215", text, index)
            self.seen[index] = True
            group.by = ins.offset
            step = steps[index]
            try:
                lanes = executing(ins, group)
                if self.before is not None:
                    self.before(ins, group, lanes)
                if step is None:
                    self.transfer(key, ins, group, lanes, spins)
                    if self.observe is not None:
                        self.observe(ins, group, lanes)
                    return
                if lanes.any():
                    step(ins, group, lanes)
            except NoSemantics as error:
                raise self._error("SX0211", f"{error} is not described", index) from None
            except Missed as error:
                text = f"{error}, {self._lane(error.warp, error.lane)}"
                raise self._error("SX0212", text, index) from None
            except SemanticsFault as error:
                raise self._error("SX0213", str(error), index) from None
            if self.observe is not None:
                self.observe(ins, group, lanes)
            spins = spins or _waits(ins)
            index += 1

    def _step(self, ins: Instruction) -> Callable[[Instruction, Group, Mask], None] | None:
        """The function that executes an instruction; None for control transfers."""
        name, t = ins.mnemonic, traits(ins)
        if name in self.control:
            return None
        if t.order and not ins.writes:
            return _nothing
        if t.barrier:
            return self._move if t.barrier == "move" else self._result
        if name == "BPT":
            return self._trap
        if t.reaches(_ATOMICS):
            return _atomic_step
        if name in warp_meanings():
            return _warp_step
        return self._lane_step

    def _lane_step(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        meaning = semantics_table().get(ins.mnemonic)
        if meaning is None:
            raise NoSemantics(ins.mnemonic)
        out = evaluate(self.domain, meaning, ins, LaneEnv(group))
        if len(out) > 1:  # a register may be written before the next is read
            group.write({ref: value.v.copy() for ref, value in out.items()}, lanes)
        else:
            group.write({ref: value.v for ref, value in out.items()}, lanes)


def _nothing(ins: Instruction, group: Group, lanes: Mask) -> None:
    pass


def _atomic_step(ins: Instruction, group: Group, lanes: Mask) -> None:
    group.op = ""
    if not (ins.has("RN") or ins.has("128") or ins.has("CAS")):
        group.op = next((m for m in ("ADD", "XOR", "EXCH") if ins.has(m)), "")
    if ins.has("POPC"):
        group.op = "ADD"
    _warp_step(ins, group, lanes)


def _warp_step(ins: Instruction, group: Group, lanes: Mask) -> None:
    group.write(evaluate_warp(ins, group), lanes)


def _waits(ins: Instruction) -> bool:
    """Whether a loop with this instruction may be waiting for other lanes."""
    t, strong = traits(ins), ins.has("STRONG") or ins.has("MMIO")
    looks = t.reaches(("arrival",)) and ins.has("PHASECHK")
    loads = strong and t.reaches(("load",), "global", "generic")
    return loads or looks or t.yields or t.reaches(_ATOMICS)


__all__ = ["Interpreter", "Observer", "Stop"]

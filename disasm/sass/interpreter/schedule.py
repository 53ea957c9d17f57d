"""The scheduler: which of the lanes that can run go next.

Lanes of all resident warps that are at the same instruction run together, the lowest address
first, so that diverged lanes reconverge.  That is one of the orders that the hardware
may take; ``Order.WARPS`` is another: each warp in turn runs until it waits.  Groups that repeat a
loop with an atomic, a strong load, YIELD or NANOSLEEP yield to all others, and no group starves:
the holder of a lock always makes progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.interpreter.launch import Launch
from sassxlate.disasm.sass.interpreter.memory import GlobalMemory
from sassxlate.disasm.sass.interpreter.resident_warps import Group, Mask, Resident, ballot, spread
from sassxlate.disasm.sass.interpreter.waiting import Wait, Waiting, section_classes
from sassxlate.errors import InterpretError, Where

SIZE = 16  # bytes of an instruction
# Lanes that run together share a key: the warp's number in bits 63:40 (0 in Order.TOGETHER), the
# index of the instruction, and in bits 7:0 a team, 0 for none.  Lanes that WARPSYNC.EXCLUSIVE or a
# collective section brought together are a team, named by its lowest lane plus 1, up to the next
# sync.
_WARP, _INDEX = 40, 8
PATIENCE = 2000  # turns after which the group that waited longest runs for a while
QUANTUM = 64
GIVE = 64  # turns with only spinning groups after which BSYNC releases its lanes
MOST_LANES = 1 << 16  # lanes that are resident at once, unless the launch is cooperative


class Order(Enum):
    """The schedule: all lanes at the lowest address together, or one warp at a time until it
    waits."""

    TOGETHER = "together"
    WARPS = "warps"
    REVERSED = "reversed"  # as WARPS, from the last one
    SILICON = "silicon"  # as WARPS, with each warp's lanes scheduled as on an H200 (splits.py)


# A program that relies on nothing undefined must give the same results under all of these.
ORDERS_OF_WARPS = (Order.TOGETHER, Order.WARPS, Order.REVERSED)


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """``limit``: warp instructions after which a launch is given up; 0: none.  ``lanes`` are
    the most that are resident at once, but never less than a block, and all if the launch is
    cooperative."""

    order: Order = Order.TOGETHER
    limit: int = 0
    stop_at: int = -1  # a code offset
    lanes: int = MOST_LANES


class Turns:
    """The resident blocks of a launch: their state, and which of their lanes can run."""

    def __init__(
        self,
        launch: Launch,
        options: ScheduleOptions,
        device: GlobalMemory,
        code: Sequence[Instruction | None],
        blocks: tuple[int, int],
    ) -> None:
        self.launch = launch
        self.options = options
        self.code = code
        known = [i for i in code if i is not None]
        used = (r.index for i in known for r in (i.reads | i.writes) if r.file == "R")
        self.s = Resident(launch, device, *blocks, max(used, default=0) + 1)
        self.waiting = Waiting(self.s, section_classes(code))
        self.ready: dict[int, tuple[Group, int, bool]] = {}  # by key: since when, whether it spins
        self.turn = 0
        self.favoured = 0
        self.gave = 0

    def _next(self) -> tuple[int, Group, bool]:
        self.turn += 1
        if len(self.ready) == 1:
            key, (group, _, polite) = self.ready.popitem()
            self._spinning(polite)
            return key, group, polite
        if self.favoured:
            self.favoured -= 1
            key = max(self.ready, key=lambda k: self.ready[k][1])
        elif self.turn % 16 == 0 and self._oldest()[1] < self.turn - PATIENCE:
            self.favoured = QUANTUM
            key = self._oldest()[0]
        else:
            busy = [k for k, entry in self.ready.items() if not entry[2]]
            key = min(busy) if busy else self._oldest()[0]
        group, _, polite = self.ready.pop(key)
        self._spinning(polite)
        return key, group, polite

    def _oldest(self) -> tuple[int, int]:
        key = min(self.ready, key=lambda k: self.ready[k][1])
        return key, self.ready[key][1]

    def _spinning(self, polite: bool) -> None:
        """If every runnable group spins, BSYNC yields: others may be waiting for its lanes."""
        self.gave = self.gave + 1 if polite else 0
        if self.gave < GIVE or not self.waiting.any:
            return
        self.gave = 0
        lanes = self.waiting.kind == Wait.BSYNC
        for index, some in self.waiting.free(lanes) if lanes.any() else ():
            self._resume(index, some)

    def _resume(self, index: int, lanes: Mask, polite: bool = False) -> None:
        """Makes lanes (over all warps) runnable at an instruction."""
        if self.options.order == Order.TOGETHER:
            self._add(index << _INDEX, Group.of(self.s, lanes), polite)
            return
        for row in np.flatnonzero(lanes.any(axis=1)).tolist():
            one = Group(self.s, np.array([row]), lanes[row : row + 1])
            self._add(self._of_warp(row) | index << _INDEX, one, polite)

    def _of_warp(self, row: int) -> int:
        """The warp's part of a key."""
        reverse = self.options.order == Order.REVERSED
        return (self.s.warps - 1 - row if reverse else row) << _WARP

    def _teams(self, index: int, lanes: Mask, masks: NDArray[np.uint32]) -> None:
        """As _resume, with the lanes of each mask (over all warps) as a separate team."""
        masks = masks & ballot(self.s.live)[:, None]
        lowest = np.argmax(spread(masks.reshape(-1)), axis=1).reshape(masks.shape)
        for team in np.unique(lowest[lanes]).tolist():
            some = lanes & (lowest == team)
            if self.options.order == Order.TOGETHER:
                self._add(index << _INDEX | (team + 1), Group.of(self.s, some))
                continue
            for row in np.flatnonzero(some.any(axis=1)).tolist():
                one = Group(self.s, np.array([row]), some[row : row + 1])
                self._add(self._of_warp(row) | index << _INDEX | (team + 1), one)

    def _add(self, key: int, group: Group, polite: bool = False) -> None:
        before = self.ready.get(key)
        if before is None:
            self.ready[key] = (group, self.turn, polite)
        else:
            self.ready[key] = (before[0].joined(group), before[1], before[2] and polite)

    def _to(self, key: int, index: int, group: Group | None, polite: bool = False) -> None:
        """Moves part of a key's group to another instruction."""
        if group is not None:
            self._add(at_index(key, index), group, polite)

    def _leave(self, key: int, index: int, group: Group | None) -> None:
        """As _to, and dissolves the team."""
        self._to(key & ~255, index, group)

    def _deadlock(self) -> InterpretError:
        w = self.waiting
        rows, lanes = np.nonzero(w.kind != Wait.NOTHING)
        if not len(rows):
            return InterpretError("SX0214", "lanes that are nowhere", Where(self.launch.name))
        row, lane = int(rows[0]), int(lanes[0])
        index = int(w.index[row, lane])
        many = len(rows)
        text = f"{many} lanes wait for others that never come; first {self._lane(row, lane)}"
        return self._error("SX0214", text, index)

    # --- what goes wrong ------------------------------------------------------------------------

    def _error(self, code: str, text: str, index: int) -> InterpretError:
        ins = self.code[index] if 0 <= index < len(self.code) else None
        shown = ins.text if ins is not None else None
        return InterpretError(code, text, Where(None, self.launch.name, SIZE * index, None, shown))

    def _lane(self, row: int, lane: int) -> str:
        s = self.s
        block = s.first + row // s.each
        return f"lane {lane} of warp {row % s.each} of block {block}"


def key_index(ins: Instruction) -> int:
    """The index of an instruction in the code."""
    return ins.offset // SIZE


def place_key(index: int) -> int:
    """The key of an instruction for lanes without a team."""
    return index << _INDEX


def index_of(key: int) -> int:
    """The instruction index in a key."""
    return key >> _INDEX & 0xFFFFFFFF


def at_index(key: int, index: int) -> int:
    """The same warp and team at another instruction."""
    return key & ~(0xFFFFFFFF << _INDEX) | index << _INDEX

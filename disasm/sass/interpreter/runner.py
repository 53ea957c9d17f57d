"""Runs a launch, a few of its blocks at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.interpreter.execute import Interpreter, Observer, Stop
from sassxlate.disasm.sass.interpreter.launch import Launch, instructions
from sassxlate.disasm.sass.interpreter.memory import GlobalMemory
from sassxlate.disasm.sass.interpreter.resident_warps import Group, Resident
from sassxlate.disasm.sass.interpreter.schedule import SIZE, Order, ScheduleOptions
from sassxlate.disasm.sass.interpreter.silicon import Silicon
from sassxlate.disasm.sass.semantics.warp_state import LANES
from sassxlate.errors import InterpretError, Where


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a launch.  ``shared`` is per block and ``local`` per lane, if kept."""

    device: GlobalMemory
    shared: tuple[bytes, ...]
    executed: int  # warp instructions
    seen: frozenset[int]  # code offsets that were executed
    stopped: bool


def run(
    launch: Launch,
    options: ScheduleOptions | None = None,
    observe: Observer | None = None,
    stopped: Callable[[Resident, Group], None] | None = None,
    before: Observer | None = None,
) -> Done:
    """Runs a launch to its end; an observer may end it by raising Stop.

    Raises InterpretError: SX0211 no semantics, SX0212 an access outside memory, SX0213 bad
    alignment, SX0214 lanes that wait forever, SX0215 the limit, SX0216 a trap, SX0217 control that
    leaves the code, SX0218 an impossible launch, SX0219 (in Order.SILICON) a
    WARPSYNC whose mask leaves out an executing lane.
    """
    options = options or ScheduleOptions()
    _check(launch)
    device = GlobalMemory(launch.pieces)
    code = instructions(launch)
    each = (launch.threads + LANES - 1) // LANES
    batch = max(1, options.lanes // (each * LANES))
    if launch.cooperative:
        batch = launch.blocks
    elif options.order != Order.TOGETHER:
        batch = 1
    kind = Silicon if options.order == Order.SILICON else Interpreter
    executed, seen, shared = 0, np.zeros(len(code), np.bool_), list[bytes]()
    starts = range(0, launch.blocks, batch)
    for first in reversed(starts) if options.order == Order.REVERSED else starts:
        count = min(batch, launch.blocks - first)
        machine = kind(launch, options, device, code, (first, count), observe)
        machine.executed, machine.seen, machine.before = executed, seen, before
        try:
            machine.run()
        except Stop:
            if stopped is not None and machine.here is not None:
                stopped(machine.s, machine.here)
            return Done(device, (), machine.executed, _offsets(seen), True)
        executed = machine.executed
        shared += [machine.s.shared.row(b).tobytes() for b in range(count)]
    return Done(device, tuple(shared), executed, _offsets(seen), False)


def _offsets(seen: NDArray[np.bool_]) -> frozenset[int]:
    return frozenset((np.flatnonzero(seen) * SIZE).tolist())


def _check(launch: Launch) -> None:
    where = Where(kernel=launch.name)
    if not 0 < launch.threads <= 1024 or min(launch.block) < 1:
        raise InterpretError("SX0218", f"a block of {launch.threads} threads", where)
    if min(launch.grid) < 1 or launch.blocks >= 1 << 31:
        raise InterpretError("SX0218", f"a grid of {launch.blocks} blocks", where)
    if not launch.code or len(launch.code) % SIZE:
        raise InterpretError("SX0218", "no code, or a part of an instruction", where)


__all__ = ["Done", "run"]

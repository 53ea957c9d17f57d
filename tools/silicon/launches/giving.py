"""YIELD, NANOSLEEP and BSYNC in the launches of ``meeting``, under another model of them.

In the interpreter hints do nothing, and lanes stay together.  Here a lane that runs one has yielded
until no other lane of its warp can run, and BSYNC waits only for lanes that have not yielded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.interpreter import Done, Group, Order, ScheduleOptions, execute, runner
from sassxlate.disasm.sass.interpreter.launch import Launch
from sassxlate.disasm.sass.interpreter.resident_warps import Mask, ballot
from sassxlate.disasm.sass.interpreter.schedule import key_index
from sassxlate.disasm.sass.interpreter.waiting import Wait
from sassxlate.disasm.sass.semantics.warp_state import LANES
from sassxlate.errors import InterpretError
from tools.silicon.launches import interpreted
from tools.silicon.report import print_table

from .cases import OWN, AnyCase, cases
from .measure import digest

KEPT = OWN / "meeting.txt"  # a line per launch: verdict, digest (- of one that hung), name
LIMIT = 200_000
_COLUMNS = ("equal", "differ", "explained", "unsteady", "hung", "refutes")


class Giving(execute.Interpreter):
    """The interpreter, with lanes that yield.  One warp at a time (Order.WARPS)."""

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        shape = (self.s.warps, LANES)
        self.away = np.zeros(shape, np.bool_)  # the lanes that yielded
        self.back = np.zeros(shape, np.int64)  # where they continue
        for index, ins in enumerate(self.code):
            if ins is not None and ins.mnemonic in ("YIELD", "NANOSLEEP"):
                self.steps[index] = None
        self.control = {**self.control, "YIELD": self._give, "NANOSLEEP": self._give}

    def _give(self, key: int, ins: Instruction, group: Group, lanes: Mask) -> None:
        self._to(key, key_index(ins) + 1, group.only(group.act & ~lanes))
        full = group.everywhere(lanes)
        self.away |= full
        self.back[full] = key_index(ins) + 1
        self._pass(group.rows, Wait.BSYNC)

    def _wait(
        self, key: int, ins: Instruction, group: Group, arriving: Mask, kind: Wait,
        masks: NDArray[np.uint32], number: int = 0,
    ) -> None:  # fmt: skip
        if kind != Wait.BSYNC:
            super()._wait(key, ins, group, arriving, kind, masks, number)
            return
        self._to(key, key_index(ins) + 1, group.only(group.act & ~arriving))
        self.waiting.put(
            group.everywhere(arriving), kind, key_index(ins), self.turn,
            mask=group.everywhere(masks), number=number,
        )  # fmt: skip
        self._pass(group.rows[arriving.any(axis=1)], kind)

    def _pass(self, rows: NDArray[np.int64], kind: Wait) -> None:
        if kind != Wait.BSYNC:
            super()._pass(rows, kind)
            return
        w = self.waiting
        met = w.met(rows, kind, ballot(self.away))
        for row in np.flatnonzero(met.any(axis=1)).tolist():
            for number in np.unique(w.number[row][met[row]]).tolist():
                self._leave_behind(self.s.b[number][row], met[row] & (w.number[row] == number))
        for index, lanes in w.free(met) if met.any() else ():
            self._resume(index, lanes)

    def _go(self, key: int, group: Group, polite: bool) -> None:
        super()._go(key, group, polite)
        ready = np.zeros(self.s.warps, np.bool_)
        for waiting, _, _ in self.ready.values():
            ready[waiting.rows] = True
        lanes = self.away & ~ready[:, None]
        self.away &= ready[:, None]
        for index in np.unique(self.back[lanes]).tolist():
            self._resume(index, lanes & (self.back == index))


def model(case: AnyCase) -> tuple[str, set[str]]:
    """The digest that the model leaves, or what stops it, and what a part of a warp came to."""
    apart: set[str] = set()

    def ran(launch: Launch, _: ScheduleOptions, observe: execute.Observer) -> Done:
        def see(ins: Instruction, group: Group, lanes: Mask) -> None:
            some = lanes.any(axis=1)
            if (lanes != group.s.live[group.at]).any(axis=1)[some].any():
                apart.add(ins.mnemonic)
            observe(ins, group, lanes)

        return runner.run(launch, ScheduleOptions(Order.WARPS, limit=LIMIT), see)

    giving = mock.patch.object(runner, "Interpreter", Giving)
    with giving, mock.patch.object(interpreted, "run", ran):
        try:
            left = digest(interpreted.interpreted(case).memory)
        except InterpretError as error:
            left = error.code
    return left, apart


def keep(results: Path) -> None:
    """From the lines of a run."""
    out: list[str] = []
    for line in map(json.loads, results.read_text().splitlines()):
        if str(line["name"]).startswith("meeting "):
            out.append(f"{line['verdict']} {line.get('digest', '-')} {line['name']}")
    KEPT.write_text("\n".join(out) + "\n")


def compared() -> Iterator[tuple[str, str]]:
    """For each stored launch: the outcome of part of a warp, and the verdict."""
    known = {c.name: c for c in cases()}
    for line in KEPT.read_text().splitlines():
        verdict, real, name = line.split(" ", 2)
        left, apart = model(known[name])
        part = "BAR" if "BAR" in apart else "SHFL, VOTE" if apart & {"SHFL", "VOTE"} else "neither"
        if verdict == "differ" and left == real:
            verdict = "explained"
        elif verdict == "equal" and left != real:
            verdict = "refutes"
        yield part, verdict


def table() -> None:
    """Prints how many of each."""
    print_table(compared(), _COLUMNS)

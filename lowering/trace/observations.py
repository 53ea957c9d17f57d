"""Observations when a launch runs twice (:mod:`.lockstep`): steps, values, the end; and the records
that each wave and lane passed on the emulated side."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.options import Place, TracePoint
from sassxlate.lowering.emulate.trace_buffer import Buffer
from sassxlate.lowering.emulate.wave.trace_points import HEAD
from sassxlate.lowering.target import ALL_ONES, LANES
from sassxlate.lowering.trace.points import SourceStep

ALL = ALL_ONES.value
Words: TypeAlias = NDArray[np.uint32]
Mask: TypeAlias = NDArray[np.bool_]
LANE = np.arange(LANES, dtype=np.uint32)
_AHEAD = 400  # steps searched for a lane that took another path
_FAULT = re.compile(r"(\w+) fault in workgroup (\d+), wave (\d+), lane (\d+): (.*)")


def bits(mask: int) -> Mask:
    """A mask as truth values, lane 0 first."""
    return (np.uint32(mask) >> LANE & np.uint32(1)).astype(np.bool_)


@functools.lru_cache(maxsize=4096)
def numbers_of(mask: int) -> tuple[int, ...]:
    return tuple(n for n in range(LANES) if mask >> n & 1)


def mask_of(lanes: Mask) -> int:
    return int(np.packbits(lanes, bitorder="little").view("<u4")[0])


# --- what is seen --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """A register at a step.  ``rdna_*`` is None if the translation keeps no such register, or
    has no code there; 32 values each, a bit of a predicate as 0 or 1."""

    ref: RegRef
    place: Place | None
    sass_before: Words
    sass_after: Words
    rdna_before: Words | None
    rdna_after: Words | None
    differs: int = 0  # the lanes whose value after the instruction (or before it) differs

    @property
    def name(self) -> str:
        return f"{self.ref.file}{self.ref.index}"


@dataclass(frozen=True, slots=True)
class Seen:
    """One instruction as one warp executed it.  Masks of lanes: ``active`` reached it,
    ``executing`` pass its guard, ``here`` reached it on the other side, too."""

    number: int
    step: SourceStep
    warp: int  # over the grid
    active: int
    executing: int
    here: int
    values: tuple[Value, ...] = ()

    @property
    def differs(self) -> int:
        out = 0
        for value in self.values:
            out |= value.differs
        return out


EndKind: TypeAlias = Literal[
    "done", "limit", "value", "operand", "path", "fault", "order", "both", "unknown", "memory"
]
DIFFERENCES: frozenset[EndKind] = frozenset({"value", "operand", "path", "fault", "memory"})


@dataclass(frozen=True, slots=True)
class End:
    """Why the run ended.  done: both ran to their end; limit: something was given up; value,
    operand, path, fault, memory: a difference (a result; a register that changed in between; the
    path of control; one side stopped; memory after the instruction); order: a difference in
    something that the order of warps decides; both: both sides stopped at the same instruction;
    unknown: the interpreter does not support an instruction."""

    kind: EndKind
    text: str
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The selection to compare; None: everything.  ``until``: show nothing before a difference."""

    steps: Mapping[int, SourceStep]  # the kernel's steps, by offset
    wanted: frozenset[int]  # the offsets of the selected steps
    warps: frozenset[int] | None = None
    lanes: int = ALL
    until: bool = False
    limit: int = 0  # most steps

    def points(self) -> tuple[TracePoint, ...]:
        """The points that the emulated code needs."""
        out: list[TracePoint] = []
        for offset in sorted(self.wanted):
            step = self.steps[offset]
            out += [p for p in (step.before, step.after) if p is not None]
        return tuple(out)


# --- the emulated side ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why the emulated launch stopped: a fault in a wave, at an RDNA3 offset from the entry."""

    kind: str
    text: str
    wave: int
    pc: int

    @classmethod
    def of(cls, error: EmulatorError, waves: int) -> Stopped:
        """``waves``: per workgroup."""
        found = _FAULT.match(error.message)
        if found is None:
            return cls("fault", str(error), -1, error.where.offset or 0)
        kind, group, wave, lane, what = found.groups()
        text = f"{kind} fault, {what}" if kind != "traced" else "too many instructions or steps"
        number = int(group) * waves + int(wave)
        return cls(kind, f"{text} (lane {lane})", number, error.where.offset or 0)

    def strict_in(self, warp: int, step: SourceStep) -> bool:
        """Whether strict mode refused an instruction of this step, before it was executed."""
        return self.kind == "strict" and self.wave == warp and self.pc in step.rdna

    @property
    def given_up(self) -> bool:
        return self.kind == "traced"


@dataclass(slots=True)
class WaveObservations:
    """The records of one wave: [offset of the step, mask, index of the record before, after or -1],
    and for each lane the next of these that may be its own."""

    passed: list[list[int]] = field(default_factory=list[list[int]])
    cursor: list[int] = field(default_factory=lambda: [0] * LANES)
    last: list[int] = field(default_factory=lambda: [-1] * LANES)  # offset of the previous step
    lost: int = 0  # lanes that took another path


class Streams:
    """The records of a launch by wave and lane."""

    def __init__(self, buffer: Buffer, choice: Choice) -> None:
        self.words = buffer.words()
        self.points = {p.number: p for p in choice.points()}
        self.steps = choice.steps
        self.waves: dict[int, WaveObservations] = {}
        self._index()

    def _index(self) -> None:
        owner = {p.number: (s.ins.offset, s.after is not None) for s in self.steps.values()
                 for p in (s.before, s.after) if p is not None}  # fmt: skip
        size = {n: HEAD + LANES * len(p.wide) + len(p.scalar) for n, p in self.points.items()}
        after = {n for n, p in self.points.items() if self.steps[owner[n][0]].after is p}
        at, end = 0, len(self.words)
        words = self.words.data.cast("B").cast("I") if end else memoryview(b"")
        while at < end:
            number = words[at + 1]
            key = words[at + 4] | words[at + 5] << 32
            wave = self.waves.get(key)
            if wave is None:
                wave = self.waves[key] = WaveObservations()
            offset, closes = owner[number]
            last = wave.passed[-1] if wave.passed else None
            if number in after:
                if last is not None and last[0] == offset:
                    last[3] = at
            elif not (closes and last is not None and last[0] == offset and last[3] < 0):
                # Otherwise: one more round of a loop inside the instruction's own code.
                wave.passed.append([offset, words[at + 2], at, -1])
            at += size[number]

    def rewind(self) -> None:
        """Resets every lane to its start."""
        for wave in self.waves.values():
            wave.cursor, wave.last, wave.lost = [0] * LANES, [-1] * LANES, 0

    def find(
        self, wave: int, lane: int, offset: int, reads: Mapping[RegRef, Words]
    ) -> list[int] | None:
        """The lane's next pass over a step with these operands, among the near ones; moves the lane
        there."""
        found = self.waves[wave]
        at = found.cursor[lane]
        for n in range(at, min(at + _AHEAD, len(found.passed))):
            row = found.passed[n]
            if row[0] != offset or not row[1] >> lane & 1:
                continue
            theirs = self.registers(self.steps[offset], row[2])
            if all(theirs[r][lane] == v[lane] for r, v in reads.items() if r in theirs):
                found.cursor[lane] = n
                return row
        return None

    def registers(self, step: SourceStep, at: int) -> dict[RegRef, Words]:
        """The values of a step's registers in one of its records."""
        known = self.values(at)
        out: dict[RegRef, Words] = {}
        for ref, place in step.places.items():
            value = known[place]
            out[ref] = value >> LANE & np.uint32(1) if ref.file in ("P", "UP") else value
        return out

    def next(self, wave: int, lane: int, offset: int) -> list[int] | None:
        """The lane's next record; ``offset``: the expected step."""
        found = self.waves.get(wave)
        if found is None:
            return None
        passed, at = found.passed, found.cursor[lane]
        while at < len(passed):
            row = passed[at]
            if row[1] >> lane & 1:
                # Waiting lanes may pass the start of a control transfer once more.
                again = row[0] == found.last[lane] != offset and self.steps[row[0]].control
                if not again:
                    break
            at += 1
        found.cursor[lane] = at
        return passed[at] if at < len(passed) else None

    def all(self, wave: int, lanes: int, offset: int) -> list[int] | None:
        """The next record of all these lanes together, if it is of this step; advances the
        lanes."""
        found = self.waves.get(wave)
        numbers = numbers_of(lanes)
        if found is None or not numbers:
            return None
        cursor = found.cursor
        at = cursor[numbers[0]]
        if at >= len(found.passed) or any(cursor[n] != at for n in numbers):
            return None
        row = found.passed[at]
        if row[0] != offset or lanes & ~row[1]:
            return None
        for n in numbers:
            cursor[n] = at + 1
            found.last[n] = offset
        return row

    def take(self, wave: int, lane: int) -> None:
        found = self.waves[wave]
        found.last[lane] = found.passed[found.cursor[lane]][0]
        found.cursor[lane] += 1

    def passing(self, wave: int, row: list[int]) -> int:
        """The number of earlier passes of the wave over the same step."""
        count = 0
        for other in self.waves[wave].passed:
            if other is row:
                break
            count += other[0] == row[0]
        return count

    def values(self, at: int) -> dict[Place, Words]:
        """The values of a record, 32 each."""
        point = self.points[int(self.words[at + 1])]
        out: dict[Place, Words] = {}
        at += HEAD
        for place in point.wide:
            out[place] = self.words[at : at + LANES]
            at += LANES
        for n, place in enumerate(point.scalar):
            out[place] = np.full(LANES, self.words[at + n], np.uint32)
        return out

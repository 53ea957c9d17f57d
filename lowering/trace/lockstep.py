"""One launch twice, step by step: RDNA3 on the emulated device in strict mode, SASS in the
reference interpreter.

The emulated device runs first and records registers at the points of :mod:`.points`.  Then the
interpreter runs, and each lane's instructions are compared with the records of the same lane: lane
by lane, since the two need not run warps, nor the sides of a branch, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.interpreter import (
    ORDERS_OF_WARPS,
    Done,
    Group,
    Launch,
    Order,
    Resident,
    ScheduleOptions,
    Stop,
    run,
)
from sassxlate.disasm.sass.semantics import semantics_table
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import InterpretError
from sassxlate.lowering.target import LANES
from sassxlate.lowering.trace.observations import (
    Choice,
    End,
    EndKind,
    Mask,
    Seen,
    Stopped,
    Streams,
    Value,
    WaveObservations,
    Words,
    bits,
    mask_of,
)
from sassxlate.lowering.trace.points import SourceStep
from sassxlate.lowering.trace.tolerances import (
    both_nan,
    depends_on_order,
    floating,
    is_free,
    is_nan,
    reads_memory,
    state_test,
    within_bounds,
)


@dataclass(slots=True)
class _Open:
    """A step that the interpreter is about to execute."""

    row: int
    step: SourceStep
    active: int
    executing: int
    here: int
    parts: list[tuple[int, list[int]]]  # lanes, and the record they pass on the other side
    before: dict[RegRef, Words]


class LockstepPair:
    """Compares the interpreter's steps with the records; ``show`` gets each chosen step."""

    def __init__(
        self, choice: Choice, streams: Streams, stopped: Stopped | None,
        show: Callable[[Seen], None],
    ) -> None:  # fmt: skip
        self.choice = choice
        self.streams = streams
        self.stopped = stopped
        self.show = show
        self.number = 0
        self.end: End | None = None
        self.adopted: dict[str, int] = {}  # adopted results, by reason
        self.met = 0  # lanes that were seen at a chosen step
        self._open: list[_Open] = []
        self._last: dict[int, Seen] = {}  # by warp
        # At a difference: the interpreter's registers then, and how often the wave had passed the
        # step before.
        self.state: dict[RegRef, Words] = {}
        # By warp, the lanes that may take either path, and those that did and were found again.
        self._tested: dict[int, int] = {}
        self._unsure: dict[int, int] = {}
        self.passing = 0
        self.order = ""  # the interpreter's order, if one other than the requested order agrees

    # -- the interpreter's observers -------------------------------------------------------

    def before(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        self._open.clear()
        if ins.offset not in self.choice.wanted:
            return
        step, s = self.choice.steps[ins.offset], group.s
        first = s.first * s.each
        for k, row in enumerate(group.rows.tolist()):
            if self.choice.warps is not None and first + row not in self.choice.warps:
                continue
            active = mask_of(group.act[k])
            if step.before is None and self.choice.until:
                continue
            values = {ref: _sass(s, row, ref) for ref in _refs(ins)}
            here, parts = self._others(first + row, step, active & self.choice.lanes, values)
            self._open.append(_Open(row, step, active, mask_of(lanes[k]), here, parts, values))

    def _others(
        self, warp: int, step: SourceStep, lanes: int, values: Mapping[RegRef, Words]
    ) -> tuple[int, list[tuple[int, list[int]]]]:
        """The lanes that reach this step on the other side, too, and the records they pass
        there."""
        if step.before is None:
            return 0, []
        wave = self.streams.waves.get(warp)
        lost = wave.lost if wave is not None else 0
        if not lost and not self._tested.get(warp):
            whole = self.streams.all(warp, lanes, step.ins.offset)
            if whole is not None:
                if state_test(step.ins):
                    self._tested[warp] = lanes
                return lanes, [(lanes, whole)]
        here, parts = 0, dict[int, tuple[int, list[int]]]()
        astray: list[tuple[int, list[int] | None]] = []
        for lane in range(LANES):
            if not lanes >> lane & 1 or lost >> lane & 1:
                continue
            row = self.streams.next(warp, lane, step.ins.offset)
            if row is None or row[0] != step.ins.offset:
                if self._tested.get(warp, 0) >> lane & 1:
                    reads = {r: v for r, v in values.items() if r in step.ins.reads}
                    row = self.streams.find(warp, lane, step.ins.offset, reads)
                    if row is None:
                        continue
                    self._unsure[warp] = self._unsure.get(warp, 0) | 1 << lane
                else:
                    astray.append((lane, row))
                    continue
            self._tested[warp] = self._tested.get(warp, 0) & ~(1 << lane)
            self.streams.take(warp, lane)
            here |= 1 << lane
            before = parts.get(id(row))
            parts[id(row)] = ((before[0] if before else 0) | 1 << lane, row)
        if state_test(step.ins):
            self._tested[warp] = self._tested.get(warp, 0) | here
        if astray:
            self._astray(warp, step, astray)
        return here, list(parts.values())

    def _astray(
        self, warp: int, step: SourceStep, lanes: Sequence[tuple[int, list[int] | None]]
    ) -> None:
        """Lanes that take another path on the other side, or stopped there."""
        wave = self.streams.waves.setdefault(warp, WaveObservations())
        for lane, _ in lanes:
            wave.lost |= 1 << lane
        lane, row = lanes[0]
        where = f"/*{step.ins.offset:04x}*/ {step.ins.text}"
        if row is None and self.stopped is not None:
            if self.stopped.given_up:
                self._finish("limit", f"the emulated launch was given up: {self.stopped.text}")
            if self.choice.until and self.stopped.strict_in(warp, step):
                mask = sum(1 << n for n, _ in lanes)
                seen = Seen(self.number + 1, step, warp, mask, mask, 0)
                self._finish("fault", f"RDNA3 stops at {where}: {self.stopped.text}", seen)
            return  # nothing more is known of a wave that did not fault
        if row is None:
            text = f"lane {lane} goes on at {where}; its RDNA3 has ended"
        else:
            other = self.streams.steps[row[0]].ins
            text = f"lane {lane} goes on at {where}; its RDNA3 at /*{row[0]:04x}*/ {other.text}"
        if self.choice.until:
            self._finish("path", text, self._last.get(warp))
        self.adopted["lanes that went another way"] = self.adopted.get(
            "lanes that went another way", 0
        ) + len(lanes)

    def after(self, ins: Instruction, group: Group, lanes: Mask) -> None:
        s = group.s
        for one in self._open:
            self.number += 1
            seen = self._seen(one, s, s.first * s.each + one.row)
            self.met |= one.active & self.choice.lanes
            self._last[seen.warp] = seen
            if self.choice.until:
                self._judge(one, seen, s)
            elif one.active:
                self.show(seen)
            if self.choice.limit and self.number >= self.choice.limit:
                self._finish("limit", f"{self.number} steps")
        self._open.clear()
        if ins.mnemonic == "EXIT" and self.choice.warps is not None:
            self._look_for_the_end(s, self.choice.warps)

    def _look_for_the_end(self, s: Resident, warps: frozenset[int]) -> None:
        """Ends the run once the last lane of the chosen warps has ended: the others may take
        long."""
        rows = [w - s.first * s.each for w in warps]
        if all(0 <= row < s.warps for row in rows) and not s.live[rows].any():
            self.end = self.left_over() or End("done", "the chosen warps ran to their end")
            raise Stop

    def _seen(self, one: _Open, s: Resident, warp: int) -> Seen:
        step, ins = one.step, one.step.ins
        rdna_before, rdna_after = self._rdna(step, one.parts)
        values: list[Value] = []
        for ref, before in one.before.items():
            place = step.places.get(ref)
            after = _sass(s, one.row, ref)
            theirs, then = rdna_before.get(ref), rdna_after.get(ref)
            differs = 0
            if theirs is not None and ref in ins.reads and ref.file != "B":
                ways = one.active if ref.file in ("P", "UP") else one.executing
                differs |= one.here & ways & ~mask_of(before == theirs)
            if then is not None and ref in step.live and ref.file != "B":
                wrong = one.here & ~mask_of(after == then)
                if wrong and theirs is not None:
                    # If the guard fails, the old value stays, and it may be dead.
                    wrong &= one.executing | mask_of(before == theirs)
                if wrong:
                    wrong = self._adopt(one, s, ref, wrong, (after, then), rdna_after)
                    after = _sass(s, one.row, ref)
                differs |= wrong
            values.append(Value(ref, place, before, after, theirs, then, differs))
        return Seen(self.number, step, warp, one.active, one.executing, one.here, tuple(values))

    def _rdna(
        self, step: SourceStep, parts: Sequence[tuple[int, list[int]]]
    ) -> tuple[dict[RegRef, Words], dict[RegRef, Words]]:
        """The values before and after the step on the other side."""
        out: tuple[dict[RegRef, Words], dict[RegRef, Words]] = {}, {}
        for lanes, (_, _, first, last) in parts:
            some = bits(lanes)
            for table, at in zip(out, (first, last), strict=True):
                if at < 0:
                    continue
                for ref, value in self.streams.registers(step, at).items():
                    table.setdefault(ref, np.zeros(LANES, np.uint32))[some] = value[some]
        return out

    def _adopt(
        self, one: _Open, s: Resident, ref: RegRef, wrong: int, both: tuple[Words, Words],
        after: Mapping[RegRef, Words],
    ) -> int:  # fmt: skip
        """Adopts values that need not be equal; returns the lanes that still differ."""
        ins, (mine, theirs) = one.step.ins, both
        row = semantics_table().get(ins.mnemonic)
        if ref.file == "R" and floating(ins):
            nan = bits(wrong) & (both_nan(mine, theirs) | self._double(one, s, ref, after))
            if nan.any():
                why = "NaN payloads"
                self.adopted[why] = self.adopted.get(why, 0) + int(np.count_nonzero(nan))
                mine = np.where(nan, theirs, mine)
                s.r[ref.index][one.row] = mine
                wrong &= ~mask_of(nan)
        if is_free(ins):
            why, fine = "clocks and numbers of the hardware", bits(wrong)
        elif row is not None and row.approximate and ref.file == "R":
            why, fine = "approximations", bits(wrong) & within_bounds(ins, mine, theirs)
        else:
            return wrong
        if fine.any():
            self.adopted[why] = self.adopted.get(why, 0) + int(np.count_nonzero(fine))
            if ref.file == "R":
                s.r[ref.index][one.row] = np.where(fine, theirs, mine)
            elif ref.file == "UR":
                s.ur[ref.index][one.row] = theirs[int(np.argmax(fine))]
        return wrong & ~mask_of(fine)

    def _double(self, one: _Open, s: Resident, ref: RegRef, after: Mapping[RegRef, Words]) -> Mask:
        """The lanes in which a register is part of a double that is NaN on both sides."""
        high = RegRef("R", ref.index | 1)
        theirs = after.get(high)
        if theirs is None or high not in one.step.ins.writes:
            return np.zeros(LANES, np.bool_)
        mine = _sass(s, one.row, high)
        out: Mask = is_nan(mine, 0x7FEFFFFF, 1 << 31) & is_nan(theirs, 0x7FEFFFFF, 1 << 31)
        return out

    # -- judging ---------------------------------------------------------------------------

    def _judge(self, one: _Open, seen: Seen, s: Resident) -> None:
        """Ends the run at a difference."""
        step, ins = one.step, one.step.ins
        fault = self.stopped
        unfinished = any(row[3] < 0 for _, row in one.parts) and step.after is not None
        if seen.differs or unfinished:
            self.state = {ref: _sass(s, one.row, ref) for ref in _all(self.choice.steps)}
            self.passing = self.streams.passing(seen.warp, one.parts[0][1])
        if unfinished and fault is not None and fault.wave == seen.warp:
            self._finish("fault", f"RDNA3 stops here: {fault.text}", seen)
        if not seen.differs:
            return
        for value in seen.values:
            if not value.differs:
                continue
            before = value.rdna_before
            early = (
                before is not None
                and value.ref in ins.reads
                and (value.differs & ~mask_of(value.sass_before == before))
            )
            lane = (value.differs & -value.differs).bit_length() - 1
            if value.differs & self._unsure.get(seen.warp, 0):
                text = f"{value.name} of lane {lane} differs after a test of which lanes are here"
                self._finish("order", text, seen)
            if early:
                text = f"{value.name} of lane {lane} is not what was written: something changed it"
                self._finish("operand", text, seen)
            # Lanes that are here together on one side need not be on the other.
            some = traits(ins).lanes == "some"
            apart = some and any(row[1] != seen.active for _, row in one.parts)
            if apart:
                text = f"{value.name} of lane {lane} differs: other lanes are here together"
                self._finish("order", text, seen)
            self._finish("value", f"{value.name} of lane {lane} differs", seen)

    def _finish(self, kind: EndKind, text: str, seen: Seen | None = None) -> None:
        self.end = End(kind, text, seen)
        raise Stop

    # -- the end ---------------------------------------------------------------------------

    def of_error(self, error: InterpretError) -> End:
        """The end that an error of the interpreter implies."""
        if error.code == "SX0211":
            return End("unknown", f"the interpreter stopped: {error}")
        if error.code == "SX0215":
            return End("limit", f"the interpreter was given up: {error.message}")
        fault = self.stopped
        if fault is not None and not fault.given_up:
            return End("both", f"both sides stop.  SASS: {error}.  RDNA3: {fault.text}")
        if fault is not None:
            return End("limit", f"SASS stops ({error}), RDNA3 was given up: {fault.text}")
        return End("fault", f"SASS stops, RDNA3 does not: {error}")

    def left_over(self) -> End | None:
        """What the other side still did after the end of this one."""
        mine = self.choice.warps
        if self.stopped is not None and (mine is None or self.stopped.wave in mine):
            if self.stopped.given_up:
                return End("limit", f"the emulated launch was given up: {self.stopped.text}")
            return End("fault", f"RDNA3 stops, SASS does not: {self.stopped.text}")
        for number, wave in sorted(self.streams.waves.items()):
            for lane in range(LANES):
                if not self.choice.lanes >> lane & 1 or wave.lost >> lane & 1:
                    continue
                row = self.streams.next(number, lane, -1)
                if row is not None:
                    ins = self.streams.steps[row[0]].ins
                    text = f"lane {lane} of warp {number} has ended; its RDNA3 goes on at "
                    return End("path", f"{text}/*{row[0]:04x}*/ {ins.text}", self._last.get(number))
        return None


def _all(steps: Mapping[int, SourceStep]) -> list[RegRef]:
    """Every register that has a place."""
    found = {ref for step in steps.values() for ref in step.places}
    return sorted(found, key=lambda r: (r.file, r.index))


def _refs(ins: Instruction) -> list[RegRef]:
    return sorted(ins.reads | ins.writes, key=lambda r: (r in ins.writes, r.file, r.index))


def _sass(s: Resident, row: int, ref: RegRef) -> Words:
    """A register of a warp, one value per lane."""
    i = ref.index
    match ref.file:
        case "R":
            source = s.r[i][row]
        case "P":
            source = s.p[i][row]
        case "UR":
            source = s.ur[i][row]
        case "UP":
            source = s.up[i][row]
        case _:
            source = s.b[i][row]
    return np.ascontiguousarray(np.broadcast_to(source, LANES)).astype(np.uint32)


def compare(
    launch: Launch,
    choice: Choice,
    streams: Streams,
    stopped: Stopped | None,
    show: Callable[[Seen], None],
    order: Order = Order.TOGETHER,
    give_up: int = 0,
) -> tuple[End, LockstepPair, Done | None]:
    """Runs the interpreter against the records.

    A difference in a loaded value may come from the order in which warps store: then the other
    orders are tried, and only a difference in all of them counts.
    """
    found = _compare(launch, choice, streams, stopped, show, order, give_up)
    end, first, _ = found
    if not (choice.until and end.seen and end.kind == "value" and reads_memory(end.seen.step.ins)):
        return found
    for other in ORDERS_OF_WARPS:
        if other == order:
            continue
        streams.rewind()
        one = replace(choice, warps=frozenset((end.seen.warp,)))
        again = _compare(launch, one, streams, stopped, show, other, give_up)
        if _same(end, again[0]):
            continue
        streams.rewind()
        again = _compare(launch, choice, streams, stopped, show, other, give_up)
        if again[0].kind == "done":
            again[1].order = other.value
            return again
        if not _same(end, again[0]):
            text = f"{end.text}, which the order of warps may decide"
            return End("order", text, end.seen), first, None
    return found


def _same(a: End, b: End) -> bool:
    """Whether two ends are the same difference."""
    if a.seen is None or b.seen is None:
        return False
    mine, theirs = (
        (e.kind, e.seen and (e.seen.warp, e.seen.step.ins.offset, e.seen.differs)) for e in (a, b)
    )
    values = zip(a.seen.values, b.seen.values, strict=True)
    return mine == theirs and all(np.array_equal(x.sass_after, y.sass_after) for x, y in values)


def _compare(
    launch: Launch,
    choice: Choice,
    streams: Streams,
    stopped: Stopped | None,
    show: Callable[[Seen], None],
    order: Order,
    give_up: int,
) -> tuple[End, LockstepPair, Done | None]:
    pair = LockstepPair(choice, streams, stopped, show)
    try:
        # With few warps, running many blocks at once gains nothing.
        lanes = 1024 if choice.warps is not None else ScheduleOptions().lanes
        options = ScheduleOptions(order, give_up, lanes=lanes)
        done = run(launch, options, pair.after, before=pair.before)
    except InterpretError as error:
        return pair.of_error(error), pair, None
    if pair.end is not None:
        return pair.end, pair, None
    return pair.left_over() or End("done", "both ran to their end"), pair, done


def order_of(instructions: Iterable[Instruction]) -> Order:
    """The order in which the interpreter agrees with the emulated device: warp after warp if
    atomics give results; otherwise all together, which is faster."""
    return Order.WARPS if any(map(depends_on_order, instructions)) else Order.TOGETHER


__all__ = ["LockstepPair", "compare", "order_of"]

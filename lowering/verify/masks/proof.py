"""Proves that new code of a kernel runs its instructions in the same lanes as the old code does.

The two are given as rows: an instruction of the old code beside that of the new one, either of
which may be missing.  Rows whose instructions differ hold operations on masks alone.  Both sides go
the same way: wherever one branches, so does the other, under conditions that are equal, and every
other instruction finds the same EXEC and the same scalar registers on both sides.  So all else they
read and write is equal, too, whatever it is.

That is shown by going along all paths with the cases of :mod:`.lanes`, until nothing new comes to
any label: the cases at a label are an invariant, the contract of all edges to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sassxlate.disasm.rdna3.instruction import S
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.verify.masks.lanes import NEW, OLD, SIDES, Cases, Crowded, Lanes
from sassxlate.lowering.verify.masks.live import live_after
from sassxlate.lowering.verify.masks.operations import (
    SCC,
    Jump,
    MaskOperation,
    Opaque,
    bits,
)
from sassxlate.lowering.verify.masks.rows import Row, that_matter
from sassxlate.lowering.verify.verdict import Proved, Undecided, Unknown, Verdict

MOST_STEPS: Final = 300_000
_JUMP: Final = 8  # steps that a jump counts as


@dataclass(slots=True)
class Budget:
    """Steps that may be taken: of rows, a jump counting more, and with many cases each of them.
    Not of time, so that the same code comes out on any machine."""

    left: int = MOST_STEPS

    def spend(self, steps: int) -> None:
        """Raises Undecided if there are none left."""
        self.left -= steps
        if self.left < 0:
            raise Undecided("more steps than are taken")


Visitor = Callable[[int, Lanes], None]


@dataclass(slots=True)
class Walk:
    """The cases at each label that control comes to, and where it goes.  ``taken`` and ``passed``
    are the rows of jumps that are (not) taken by some wave."""

    rows: Sequence[Row]
    base: frozenset[int]
    budget: Budget
    at: dict[int, Cases] = field(default_factory=dict[int, Cases])
    taken: set[int] = field(default_factory=set[int])
    passed: set[int] = field(default_factory=set[int])
    _places: dict[str, int] = field(default_factory=dict[str, int])
    _kept: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    _wanted: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    _order: list[int] = field(default_factory=list[int])
    _next: dict[int, int] = field(default_factory=dict[int, int])
    _work: list[int] = field(default_factory=list[int])

    def run(self) -> None:
        """Raises Undecided if the sides may part, or if there is too much to follow."""
        rows = self.rows
        self._places = {row.label: n for n, row in enumerate(rows) if row.label}
        self._order = that_matter(rows)
        self._next = {n: at + 1 for at, n in enumerate(self._order) if rows[n].label}
        self._wanted = _wanted(rows, self._order, self.base)
        self._kept = _kept(rows, self._places, self.base)
        try:
            self._from(0, Lanes.at_entry(), None)
            while self._work:
                start = min(self._work)
                self._work.remove(start)
                self._from(self._next[start], Lanes.of(self.at[start]), None)
        except Crowded:
            raise Undecided("more cases per lane than are looked at") from None

    def visit(self, visitor: Visitor) -> None:
        """Calls with each row that control comes to, and what is known of the lanes there."""
        self._from(0, Lanes.at_entry(), visitor)
        for start in sorted(self.at):
            self._from(self._next[start], Lanes.of(self.at[start]), visitor)
        self._work.clear()

    def _arrive(self, label: str, lanes: Lanes) -> None:
        place = self._places.get(label)
        if place is None:
            raise Undecided(f"no label {label}")
        lanes.keep(self._kept[place])
        found = lanes.cases()
        if not found.rows:
            return
        before = self.at.get(place)
        after = found if before is None else before.joined(found)
        if after != before:
            self.at[place] = after
            if place not in self._work:
                self._work.append(place)

    def _from(self, first: int, lanes: Lanes, visitor: Visitor | None) -> None:
        """From a row to the next label, or to where no wave goes on."""
        rows = self.rows
        for at in range(first, len(self._order)):
            n = self._order[at]
            row = rows[n]
            self.budget.spend(1 + (lanes.ones.bit_length() >> 4))
            if visitor is not None:
                visitor(n, lanes)
            if row.label:
                self._arrive(row.label, lanes)
                return
            if not self._step(n, row, lanes):
                return
            lanes.keep(self._wanted[n])

    def _step(self, n: int, row: Row, lanes: Lanes) -> bool:
        """One row; whether control goes on to the next."""
        old, new = row.was, row.now
        if row.same:
            if isinstance(old, Jump):
                return self._jump(n, old, lanes)
            if isinstance(old, Opaque):
                self._agree(n, old.reads, lanes)
                lanes.forget(old, self._wanted[n])
            elif old is not None:
                _follow(lanes, old.sources)
                lanes.run_both(old)
            return True
        if isinstance(old, Jump):
            return self._replaced(n, old, new, lanes)
        for what, side in ((old, OLD), (new, NEW)):
            if what is None:
                continue
            if not isinstance(what, MaskOperation):
                raise Undecided(f"row {n}: an instruction of one side alone")
            _follow(lanes, (*what.sources, *what.to))
            lanes.run(what, side)
        return True

    def _agree(self, n: int, keys: Iterable[int], lanes: Lanes) -> None:
        for key in keys:
            if not lanes.equal(key):
                what = "EXEC" if key == EXEC_LO else "SCC" if key == SCC else f"s{key}"
                raise Undecided(f"row {n}: {what} may differ")

    def _jump(self, n: int, what: Jump, lanes: Lanes) -> bool:
        """A jump of both sides."""
        if not what.label:
            return False
        if what.on == 0:
            self._take(n, what.label, lanes, None)
            return False
        if what.taken_if is None:
            self._agree(n, (what.on,), lanes)
            self._take(n, what.label, lanes, None)
            self.passed.add(n)
            return True
        known = [lanes.decided(what.on, side) for side in SIDES]
        if known[OLD] is None or known[NEW] is None:
            self._agree(n, (what.on,), lanes)
            known = [k for k in known if k is not None] or known
        elif known[OLD] != known[NEW]:
            raise Undecided(f"row {n}: one side jumps")
        if known[0] is not None:
            if known[0] != what.taken_if:
                self.passed.add(n)
                return True
            self._take(n, what.label, lanes, None)
            return False
        followed = what.on in lanes.columns and (what.on != SCC or lanes.polarity[OLD] is not None)
        if not followed:
            self._take(n, what.label, lanes, None)
            self.passed.add(n)
            return True
        # The jump is taken if the mask is not empty, or if it is.
        some = what.taken_if == (what.on != SCC or lanes.polarity[OLD])
        self._take(n, what.label, lanes, (what.on, some))
        self.passed.add(n)
        return self._assume(what.on, not some, lanes)

    def _take(self, n: int, label: str, lanes: Lanes, known: tuple[int, bool] | None) -> None:
        self.taken.add(n)
        self.budget.spend(_JUMP + (lanes.ones.bit_length() >> 2))
        there = lanes.copy()
        if known is None or self._assume(*known, there):
            self._arrive(label, there)

    def _assume(self, key: int, some: bool, lanes: Lanes) -> bool:
        """A mask that is equal on both sides is empty, or is not (``some``); False if none is."""
        if some:
            for side in SIDES:
                lanes.assume(key, side)
            return True
        lanes.leave_out(key)
        return bool(lanes.ones)

    def _replaced(
        self, n: int, old: Jump, new: MaskOperation | Opaque | Jump | None, lanes: Lanes
    ) -> bool:
        """A jump that the new code does not have, or always takes."""
        known = None if old.taken_if is None else lanes.decided(old.on, OLD)
        if known is not None and known != old.taken_if and new is None:
            self.passed.add(n)
            return True
        if known is not None and known == old.taken_if and new == Jump(old.label, 0, True):
            self._take(n, old.label, lanes, None)
            return False
        raise Undecided(f"row {n}: a jump of one side alone")


def _follow(lanes: Lanes, keys: Iterable[int]) -> None:
    for key in keys:
        if key >= 0:
            lanes.follow(key)


def _wanted(
    rows: Sequence[Row], order: Sequence[int], base: frozenset[int]
) -> dict[int, frozenset[int]]:
    """The registers to follow after each row: those that masks of ``base`` are made from before the
    next label, and those that rows of two kinds write."""
    need = 0
    always = bits(base)
    every = 0
    for row in rows:
        if not row.same:
            every |= _changed(row)
    out: dict[int, int] = {}
    first, written = len(order), 0
    scc = 1 << SCC
    for at in range(len(order) - 1, -1, -1):
        n = order[at]
        row = rows[n]
        out[n] = always | need
        if not row.same:
            written |= _changed(row)
        if row.label or at == 0:
            if written:
                for m in order[at:first]:
                    out[m] |= written
            need = written = 0
            first = at
            continue
        before = need
        for what in (row.was,) if row.same else (row.was, row.now):
            if isinstance(what, Jump):
                need |= scc if what.on == SCC else 0
            elif isinstance(what, Opaque):
                need = (need & ~(bits(what.writes) & scc)) | (bits(what.reads) & every & ~always)
            elif what is not None and bits(what.writes) & (always | before):
                need |= bits(what.sources) & ~always
                if row.same:
                    need &= ~(bits(what.writes) & ~bits(what.sources))
    sets = {found: _members(found) for found in set(out.values())}
    return {n: sets[found] for n, found in out.items()}


def _members(found: int) -> frozenset[int]:
    return frozenset(k for k in range(found.bit_length()) if found >> k & 1)


def _changed(row: Row) -> int:
    """The registers that a row with two instructions writes."""
    both = (what for what in (row.was, row.now) if isinstance(what, MaskOperation))
    return bits(k for what in both for k in what.to)


def _kept(
    rows: Sequence[Row], labels: Mapping[str, int], base: frozenset[int]
) -> dict[int, frozenset[int]]:
    """The registers to follow from each label on: those of ``base`` that are read later."""
    sides = [live_after(rows, labels)]
    if not all(row.same for row in rows):
        sides.append(live_after([row.settled() for row in rows], labels))
    always = bits(base)
    running = frozenset({EXEC_LO})
    found = {at: always & (sides[0][at] | sides[-1][at]) for at in labels.values()}
    return {at: running | _members(some) for at, some in found.items()}


def followed(regs: RegisterMap) -> frozenset[int]:
    """The masks that are followed through a kernel: EXEC, live lanes, those that wait, and
    temporaries."""
    slots = [regs.live, *(slot for key, slot in regs.ready.items() if key > 0), *regs.regions]
    return frozenset({EXEC_LO, *regs.stemps, *(s.index for s in slots if isinstance(s, S))})


def walked(rows: Sequence[Row], regs: RegisterMap, budget: Budget | None = None) -> Walk:
    """All that waves may come to.  Raises Undecided as :meth:`Walk.run`."""
    walk = Walk(rows, followed(regs), budget or Budget())
    walk.run()
    return walk


def same_lanes(rows: Sequence[Row], regs: RegisterMap, budget: Budget | None = None) -> Verdict:
    """Whether the new code does in each lane what the old code does: Proved or Unknown.  No wave is
    an example of the opposite: what may be is more than what is."""
    try:
        walked(rows, regs, budget)
    except Undecided as why:
        return Unknown(str(why))
    return Proved()


__all__ = ["Budget", "Visitor", "Walk", "followed", "same_lanes", "walked"]

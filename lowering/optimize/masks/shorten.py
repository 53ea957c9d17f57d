"""Shorter operations on masks for the same results, found by trying.

A *run* is straight code of operations on masks, with jumps that no wave takes.  Each register has
per case of lanes that may come there one bit before the run and one after it: a column.  Code
of fewer operations is looked for that makes the columns of all registers that are read later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.lowering.optimize.masks.edges import Part
from sassxlate.lowering.verify.masks.lanes import OLD, Crowded, Lanes
from sassxlate.lowering.verify.masks.live import live_after
from sassxlate.lowering.verify.masks.operations import (
    ONES,
    SCC,
    ZERO,
    Jump,
    MaskOperation,
    bits,
)
from sassxlate.lowering.verify.masks.proof import Walk
from sassxlate.lowering.verify.masks.rows import Meaning, Row

_MOST: Final = 16  # operations of a run that is looked at as one
_DEEPEST: Final = 4  # operations of the code that is looked for
_TRIED: Final = 3_000  # codes that are tried for a run
Columns = dict[int, int]


@dataclass(slots=True)
class _Run:
    """Rows of operations and of jumps that are never taken; ``at`` is what lanes may be before.
    ``cut``: where a label is among them, and what lanes may be there."""

    rows: list[int]
    at: Lanes
    cut: tuple[int, Lanes] | None = None

    def parts(self) -> tuple[_Run, ...]:
        """The run before the label and that after it."""
        if self.cut is None:
            return ()
        n, lanes = self.cut
        return _Run(self.rows[:n], self.at), _Run(self.rows[n:], lanes)


Change = dict[int, Row]


class Known(dict[object, "list[Inst] | None"]):
    """What was found for runs of before, by their columns."""


def shortened(rows: Sequence[Row], walk: Walk, part: Sequence[Part], known: Known) -> list[Change]:
    """Shorter new code, each change for some rows, by number.  ``part`` of each row as by
    :func:`.edges.parts`.  That new and old code are the same is not proved here."""
    labels = {row.label: n for n, row in enumerate(rows) if row.label}
    live = live_after(rows, labels, (walk.taken, walk.passed))
    changes: list[Change] = []
    for n in sorted(walk.taken - walk.passed):
        what, old = rows[n].was, rows[n].old
        if part[n] and isinstance(what, Jump) and what.on and what.taken_if is not None:
            assert old is not None
            changes.append({n: rows[n].other(replace(old, op="s_branch"))})
    if changes:  # what the jumps depend on is not needed after this
        return changes
    for whole in _runs(rows, walk, part):
        made = _change(rows, whole, live, walk.base, known)
        found = (
            [made]
            if made
            else [_change(rows, run, live, walk.base, known) for run in whole.parts()]
        )
        changes += [change for change in found if change]
    return changes


def _change(
    rows: Sequence[Row], run: _Run, live: Sequence[int], base: frozenset[int], known: Known
) -> Change | None:
    made = _shorter(rows, run, live, base, known)
    if made is None:
        return None
    out = {n: rows[n].other(None) for n in run.rows}
    origin = next(i.origin for n in run.rows if (i := rows[n].old) is not None)
    operations = [n for n in run.rows if not isinstance(_what(rows, n), Jump)]
    for n, inst in zip(operations, made, strict=False):
        out[n] = rows[n].other(replace(inst, origin=origin))
    return out


def _what(rows: Sequence[Row], n: int) -> Meaning | None:
    return rows[n].was


def _runs(rows: Sequence[Row], walk: Walk, part: Sequence[Part]) -> list[_Run]:
    """The runs in code that waves come to."""
    found: list[_Run] = []
    aimed = {what.label for n in walk.taken if isinstance(what := _what(rows, n), Jump)}

    def see(n: int, lanes: Lanes) -> None:
        what = _what(rows, n)
        never = isinstance(what, Jump) and what.label and n not in walk.taken
        if not part[n] or (not isinstance(what, MaskOperation) and not never):
            return
        last = found[-1] if found else None
        if last is None or len(last.rows) == _MOST or part[last.rows[-1]] != part[n]:
            found.append(_Run([n], lanes.copy()))
            return
        between = rows[last.rows[-1] + 1 : n]
        if any(not row.label or row.label in aimed for row in between):
            found.append(_Run([n], lanes.copy()))
        elif between and last.cut is not None:
            before, after = last.parts()
            after.cut = len(after.rows), lanes.copy()
            after.rows.append(n)
            found[-1:] = [before, after]
        else:
            if between:
                last.cut = len(last.rows), lanes.copy()
            last.rows.append(n)

    walk.visit(see)
    return found


def _shorter(
    rows: Sequence[Row], run: _Run, live: Sequence[int], base: frozenset[int], known: Known
) -> list[Inst] | None:
    """Shorter code of a run; None if none is found."""
    operations = [what for n in run.rows if isinstance(what := _what(rows, n), MaskOperation)]
    count = len(operations)
    lanes = run.at.copy()
    read: set[int] = set()
    made_here: set[int] = set()
    for what in operations:
        read.update(k for k in what.sources if k >= 0 and k not in made_here)
        made_here.update(what.to)
    if max(read, default=0) > SCC:  # a constant other than 0 and all ones
        return None
    if run.cut is not None and not read <= base:  # a label loses what is not followed
        return None
    try:
        for key in read:
            lanes.follow(key)
    except Crowded:
        return None
    touched = read | made_here
    ones = lanes.ones
    start: Columns = {k: lanes.columns[k][OLD] for k in read}
    start[EXEC_LO] = lanes.columns[EXEC_LO][OLD]
    now = dict(start)
    scc: int | None = None
    polarity = True
    between: set[int] = set()
    for what in operations:
        made = what.compute(ones, *(_column(s, now, ones) for s in what.sources))
        for key, column in zip(what.to, made, strict=False):
            now[key] = column
            between.add(column)
        if what.scc is not None:
            scc, polarity = made[-1], what.scc
    read_later = live[run.rows[-1]] | bits((EXEC_LO,))
    after = {k for k in (*touched, SCC) if read_later >> k & 1}
    if SCC in after and (scc is None or not polarity):
        return None
    wanted = {k: now[k] for what in operations for k in what.to if k in after}
    goal = _Goal(
        ones,
        wanted,
        scc if SCC in after else None,
        frozenset(k for what in operations for k in what.to) - after,
        frozenset(wanted.values()) | between,
    )
    jumps = len(run.rows) > count
    asked = (*sorted(start.items()), *sorted(wanted.items()), goal.scc, goal.free, count)
    if asked not in known:
        search = _Search(goal, start)
        depths = range(min(count + jumps, _DEEPEST + 1))
        known[asked] = next(
            (f for depth in depths if (f := search.within(depth)) is not None), None
        )
    found = known[asked]
    if found is None and jumps:  # the operations stay, the jumps go
        return [
            inst for n in run.rows
            if (inst := rows[n].old) is not None and not isinstance(rows[n].was, Jump)
        ]  # fmt: skip
    return found


def _column(source: int, now: Mapping[int, int], ones: int) -> int:
    return 0 if source == ZERO else ones if source == ONES else now[source]


@dataclass(frozen=True, slots=True)
class _Goal:
    """``wanted`` columns, that of SCC if it is read, registers that may be used on the way, and
    columns that are worth making."""

    ones: int
    wanted: Mapping[int, int]
    scc: int | None
    free: frozenset[int]
    useful: frozenset[int]


@dataclass(slots=True)
class _Search:
    goal: _Goal
    start: Columns
    _tried: int = 0

    def within(self, depth: int) -> list[Inst] | None:
        """Code of so many operations."""
        return self._from(dict(self.start), None, depth)

    def _from(self, now: Columns, scc: int | None, depth: int) -> list[Inst] | None:
        goal = self.goal
        missing = [k for k, column in goal.wanted.items() if now.get(k) != column]
        if not missing and (goal.scc is None or goal.scc == scc):
            return []
        # One operation makes one register, or two where it saves EXEC.
        if not depth or len(missing) > depth + 1 or self._tried > _TRIED:
            return None
        for inst, made, flag in self._steps(now, missing):
            self._tried += 1
            new = dict(now)
            new.update(made)
            rest = self._from(new, scc if flag is None else flag, depth - 1)
            if rest is not None:
                return [inst, *rest]
        return None

    def _steps(
        self, now: Columns, missing: Sequence[int]
    ) -> Iterator[tuple[Inst, Columns, int | None]]:
        goal, ones = self.goal, self.goal.ones
        sources = [(k, c) for k, c in now.items()]
        targets = [(k, goal.wanted[k]) for k in missing]
        if EXEC_LO in now and EXEC_LO in missing:
            running = now[EXEC_LO]
            for to in missing:
                if to == EXEC_LO or goal.wanted[to] != running:
                    continue
                for k, c in sources:
                    for op, made in (("and", c & running), ("and_not0", running & ~c)):
                        if made == goal.wanted.get(EXEC_LO):
                            inst = Inst(f"s_{op}_saveexec_b32", (_arg(to), _arg(k)))
                            yield inst, {to: running, EXEC_LO: made}, made
        for to in goal.free:
            targets += [(to, c) for c in goal.useful if c not in now.values()]
        if goal.scc is not None and not missing:
            targets += [(to, goal.scc) for to in (*goal.free, *goal.wanted)
                        if goal.wanted.get(to, goal.scc) == goal.scc]  # fmt: skip
        for to, column in targets:
            if column == 0:
                yield Inst("s_mov_b32", (_arg(to), I(0))), {to: 0}, None
            for k, c in sources:
                if c == column and k != to and goal.scc is None:
                    yield Inst("s_mov_b32", (_arg(to), _arg(k))), {to: column}, None
            for n, (k, c) in enumerate(sources):
                for m, (j, d) in enumerate(sources):
                    for op, made in _pairs(c, d, n < m):
                        if made == column:
                            yield Inst(op, (_arg(to), _arg(k), _arg(j))), {to: made}, made
            if ones == column and column:
                yield Inst("s_mov_b32", (_arg(to), I(0xFFFFFFFF))), {to: column}, None


def _pairs(c: int, d: int, ordered: bool) -> Iterator[tuple[str, int]]:
    if ordered:
        yield "s_and_b32", c & d
        yield "s_or_b32", c | d
        yield "s_xor_b32", c ^ d
    yield "s_and_not1_b32", c & ~d


def _arg(key: int) -> Arg:
    if key == EXEC_LO:
        return Sp("exec_lo")
    return Sp("vcc_lo") if key == VCC_LO else S(key)


__all__ = ["shortened"]

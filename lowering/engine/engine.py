"""A kernel that the rules wrote, with a proposer's code where that passes the gate.

A block is cut into regions, each is asked for once, and each candidate is judged: proved, and
cheaper than the rules' code.  What does not pass is tried in steps and in parts; what is left is
the rules'.  The report counts what became of each region, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import UnionType
from typing import TypeAlias, get_args

from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.errors import ModelError, SassxlateError, Where
from sassxlate.lowering.engine.edges import shorter
from sassxlate.lowering.engine.gate import Gate, Judgement
from sassxlate.lowering.engine.macros import (
    as_it_stands,
    macros_in_place,
    regions,
    with_macros,
)
from sassxlate.lowering.engine.memo import Memo
from sassxlate.lowering.engine.parts import parts
from sassxlate.lowering.engine.report import BlockReport, EngineReport, Outcome
from sassxlate.lowering.engine.seam import (
    AsksAhead,
    Candidate,
    Code,
    NoCandidate,
    Proposals,
    Proposer,
    Question,
    Unreadable,
    malformed,
    raised_at,
)
from sassxlate.lowering.engine.splice import spliced
from sassxlate.lowering.engine.stepwise import Stepwise, by_steps
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.regions import LONGEST, CutRegion, TooLong, never
from sassxlate.lowering.optimize.temporaries import packed, room, used
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import RegionSite
from sassxlate.lowering.select.rewrite import Replacement, rewritten
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify.steps.framing import flat_items
from sassxlate.lowering.verify.steps.prover import Prover

_NO_MEMORY = "memory ran out"
Progress: TypeAlias = Callable[[str, int, int], None]  # of what, how many of how many


@dataclass(frozen=True, slots=True)
class _Task:
    """A region of a kernel, the place of its code, and the question for it; ``outcome`` is why
    there is none.  ``starts`` is where the code of each instruction begins, see
    :class:`~sassxlate.lowering.region.region.RegionSite`."""

    part: CutRegion
    first: int
    end: int
    question: Question | None
    outcome: Outcome | None
    starts: tuple[int | None, ...] = ()


@dataclass(slots=True)
class _Node:
    """What came of a task: what was proposed; the gate's word on the best of it; what passes of one
    that does not (``partly``); and its parts, which were asked for because of that."""

    task: _Task
    made: Proposals = field(default_factory=Proposals)
    got: Judgement = field(default_factory=lambda: Judgement("none"))
    partly: Judgement | None = None
    parts: tuple[_Node, ...] = ()
    kept: bool = False

    @property
    def asked(self) -> bool:
        return self.task.question is not None and self.made.why != "unsaid"


@dataclass(frozen=True, slots=True)
class _Settled:
    """Rows of the report and changes of the code for one region; ``saved`` by the proposed code,
    ``whole`` where all of it is proposed code."""

    rows: tuple[BlockReport, ...]
    changes: tuple[Replacement, ...] = ()
    saved: int = 0
    whole: bool = False


@dataclass(slots=True)
class _Asked:
    """Canonical forms that one kernel asked for: those of whole regions, of them those with an
    answer from before, and those of parts too."""

    distinct: set[str] = field(default_factory=set[str])
    known: set[str] = field(default_factory=set[str])
    every: set[str] = field(default_factory=set[str])

    def level(self, nodes: Sequence[_Node]) -> None:
        """Counts what a level asked for, and says of each whether its answer is from before: what
        this very kernel asked is not."""
        first: dict[str, bool] = {}
        for node in nodes:
            first.setdefault(_key(node), node.made.remembered)
        known = {key for key, was in first.items() if was and key not in self.every}
        for node in nodes:
            node.kept = _key(node) in known
        if not self.every:
            self.known, self.distinct = known, set(first)
        self.every |= first.keys()


def _key(node: _Node) -> str:
    assert node.task.question is not None
    return node.made.key or node.task.question.text.text


@dataclass(slots=True)
class Engine:
    """A proposer and what is done with its code.  One instance may serve many kernels.

    ``name`` is what ``--engine`` calls it.  ``cheaper``: code is taken where it costs less than the
    rules', which stay elsewhere; without, wherever it is proved, and a kernel is refused where it
    is not, so that one sees what a proposer can do by itself.  ``longest`` is the most SASS
    instructions of a region, and ``too_long`` says which regions are cut further.  ``key`` is what
    answers depend on besides the proposer's name.  ``edges``: the code between blocks is
    shortened, too, which no proposer is asked for.  ``macros``: regions may have macros
    (:mod:`sassxlate.lowering.region.macro`), for proposers that read them.  ``memo`` remembers what
    was found between blocks.
    """

    proposer: Proposer
    name: str
    cheaper: bool = True
    key: str = ""
    too_long: TooLong = never
    longest: int = LONGEST
    progress: Progress = lambda _, __, ___: None
    prover: Prover = field(default_factory=Prover)
    edges: bool = False
    macros: bool = False
    memo: Memo = field(default_factory=Memo)

    @property
    def identity(self) -> str:
        """Equal ones make equal code of a kernel."""
        return " ".join(part for part in (self.name, self.proposer.name, self.key) if part)

    def rewrite(self, selected: Selected, kernel: str) -> tuple[Selected, EngineReport]:
        """A kernel that the rules wrote, with the proposer's code where it passes the gate.

        ModelError SX1007 where that has to be everywhere (``cheaper`` is false) and is not.
        """
        gate = Gate(room(selected), cheaper=self.cheaper, prover=self.prover)
        nodes = [_Node(t) for piece in selected.pieces for t in self._tasks(piece, selected)]
        asked = _Asked()
        asking = judging = 0.0
        level: list[_Node] = [node for node in nodes if node.task.question is not None]
        while level:
            started = time.perf_counter()
            self._ask(level)
            asking += time.perf_counter() - started + sum(node.made.seconds for node in level)
            started = time.perf_counter()
            said: list[_Node] = [node for node in level if node.asked]
            asked.level(said)
            for n, node in enumerate(said):
                try:
                    self._judge(node, selected, gate)
                except MemoryError:  # that says nothing about the code: the rules' stays
                    self.prover.forget()
                    node.got, node.partly, node.parts = Judgement("unknown", _NO_MEMORY), None, ()
                self.progress("proving", n + 1, len(said))
            judging += time.perf_counter() - started
            level = [part for node in said for part in node.parts]
        changes: list[Replacement] = []
        rows: list[BlockReport] = []
        for node in nodes:
            found = self._settled(node, selected)
            if not self.cheaper and node.asked and not found.whole:
                bad = next(row for row in found.rows if row.outcome != "accepted")
                first = next(i for i in node.task.part.block.instructions if i.offset == bad.start)
                where = Where(kernel=kernel, offset=bad.start, inst=first.text)
                raise ModelError("SX1007", f"no proved code: {bad.outcome} {bad.detail}", where)
            rows += found.rows
            changes += found.changes
        report = EngineReport(
            self.name, self.proposer.name, tuple(rows), sum(node.asked for node in nodes),
            len(asked.distinct), len(asked.known), len(asked.every - asked.distinct),
            round(asking, 4), round(judging, 4),
        )  # fmt: skip
        return self._shortened(_changed(selected, changes), report)

    def _shortened(self, selected: Selected, report: EngineReport) -> tuple[Selected, EngineReport]:
        """The kernel with shorter code between its blocks, where that is proved."""
        if not self.edges:
            return selected, report
        started = time.perf_counter()
        found = shorter(selected, self.memo, self.prover.regions)
        seconds = round(report.judging_s + time.perf_counter() - started, 4)
        if found is None:
            return selected, replace(report, judging_s=seconds)
        fewer = len(selected.items) - len(found)
        made = replace(selected, items=found, pieces=())
        return made, replace(report, judging_s=seconds, edges=fewer)

    def ahead(self, kernels: Iterable[Selected]) -> None:
        """Asks what several kernels will, all at once, where that is faster for the proposer."""
        if isinstance(self.proposer, AsksAhead):
            tasks = (
                task
                for selected in kernels
                for piece in selected.pieces
                for task in self._tasks(piece, selected)
            )
            self._ask_ahead([task.question for task in tasks if task.question is not None])

    def _ask_ahead(self, questions: Sequence[Question]) -> None:
        """ModelError SX1014 if the proposer raises another error: ``propose`` would fail, too."""
        if not isinstance(self.proposer, AsksAhead):
            return
        try:
            self.proposer.ahead(questions, partial(self.progress, "asking"))
        except SassxlateError:
            raise
        except MemoryError:  # for all at once: each is asked for by itself, in `propose`
            self.prover.forget()
        except Exception as error:
            what = f"{type(error).__name__}: {error}{raised_at(error, __file__)}"
            text = f"ahead() of {self.proposer.name} raised {what}"
            raise ModelError("SX1014", text) from error

    def _tasks(self, piece: RegionSite, selected: Selected) -> Iterable[_Task]:
        at = 0
        for part in regions(
            piece, selected, self.longest, too_long=self.too_long, macros=self.macros
        ):
            starts = piece.starts[at : at + len(part.block.instructions) + 1]
            first, end = starts[0], starts[-1]
            at += len(part.block.instructions)
            outcome: Outcome | None = "macro" if part.macro else None
            if first is None or end is None:
                outcome = outcome or "guarded"
            question = None if outcome is not None else _question(part, selected.regs)
            if question is None:
                outcome = outcome or "unsaid"
            yield _Task(part, first or 0, end or 0, question, outcome, starts)

    def _parts(self, task: _Task, selected: Selected) -> tuple[_Node, ...]:
        """A task's parts, or none."""
        regs = selected.regs
        out: list[_Node] = []
        at = 0
        for part in parts(task.part, regs, lambda n: task.starts[n] is not None):
            count = len(part.block.instructions)
            starts = task.starts[at : at + count + 1]
            at += count
            first, end = starts[0], starts[-1]
            assert first is not None
            assert end is not None
            question = _question(part, regs)
            if question is None or not as_it_stands(part, selected, first, end):
                return ()
            out.append(_Node(_Task(part, first, end, question, None, starts)))
        return tuple(out)

    def _ask(self, level: Sequence[_Node]) -> None:
        """Has code proposed for each node."""
        questions = [node.task.question for node in level if node.task.question is not None]
        self._ask_ahead(questions)
        for n, (node, question) in enumerate(zip(level, questions, strict=True)):
            node.made = self._proposed(question)
            self.progress("asking", n + 1, len(level))

    def _proposed(self, question: Question) -> Proposals:
        """What a proposer says.  Its errors are its own: they are counted, and the rules' code
        stays."""
        try:
            return _checked(self.proposer.propose(question))
        except ModelError:
            raise
        except MemoryError:
            self.prover.forget()
            return Proposals(why="raised", detail=_NO_MEMORY)
        except Exception as error:
            place = raised_at(error, __file__)
            return Proposals(why="raised", detail=f"{type(error).__name__}: {error}{place}")

    def _judge(self, node: _Node, selected: Selected, gate: Gate) -> None:
        """Judges what was proposed for a task, and takes the task apart where none of it is right.

        The best is the cheapest candidate that passes; else what the gate said of the one that came
        nearest, and the cheapest that comes of the steps of one.
        """
        task, regs = node.task, selected.regs
        rules = selected.items[task.first : task.end]
        if not node.made.candidates and node.made.why in ("none", "raised"):
            node.got = Judgement(node.made.why, node.made.detail)
            return
        partly: Judgement | None = None
        for code in _distinct(node.made.candidates, len(task.part.block.instructions)):
            if isinstance(code, Unreadable):
                got = Judgement("malformed", code.why)
            else:
                mine = packed(code, regs.vtemp_base)
                steps = self._by_steps(task, code, selected, gate)
                if steps is not None and steps.complete:
                    got = steps.got
                else:
                    got = gate.judge(task.part.block, regs, task.part.live_out, mine, rules)
                if not got.accepted and self.cheaper:
                    some = steps.got if steps else self._partly(task, mine, rules, regs, gate)
                    if some is not None and (partly is None or _rank(some) > _rank(partly)):
                        partly = some
            if _rank(got) > _rank(node.got):
                node.got = got
        if not node.got.accepted:
            node.partly = partly
            if node.got.reason != "dearer":
                node.parts = self._parts(task, selected)

    def _by_steps(self, task: _Task, code: Code, selected: Selected, gate: Gate) -> Stepwise | None:
        """What passes step by step, where the rules' code may stay in the others."""
        if not self.cheaper:
            return None
        return by_steps(task.part, selected.regs, code, task.starts, selected.items, gate)

    def _partly(
        self, task: _Task, code: Code, rules: Sequence[Item], regs: RegisterMap, gate: Gate
    ) -> Judgement | None:
        """What passes of code that does not; None where nothing does."""
        part = task.part
        found = spliced(part.block, regs, part.live_out, code, part.code, self.prover)
        if found is None:
            return None
        made, taken, steps = found
        got = gate.judge(part.block, regs, part.live_out, made, rules)
        return replace(got, detail=f"{taken} of {steps} steps") if got.accepted else None

    def _settled(self, node: _Node, selected: Selected) -> _Settled:
        """Whose code a region has: one candidate's, its parts', or the rules'."""
        task, got = node.task, node.got
        block = task.part.block
        rules = selected.items[task.first : task.end]
        price = cost(rules if rules else flat_items(block, task.part.code))

        def one(engine: str, outcome: Outcome, got: Judgement) -> BlockReport:
            verdict = {"accepted": "Proved", "refuted": "Refuted", "unknown": "Unknown"}
            return BlockReport(
                block.index, block.start, block.instructions[-1].offset, len(block.instructions),
                engine, outcome, got.detail, price, got.cost, verdict.get(outcome, ""),
                got.proved or (), len(node.made.candidates), node.kept,
            )  # fmt: skip

        if not node.asked:
            return _Settled((one("rules", task.outcome or "unsaid", Judgement("none")),))
        accepted = got if got.accepted else node.partly
        saved = price - (accepted.cost or 0) if accepted is not None else 0
        every = [self._settled(part, selected) for part in node.parts]
        apart = _Settled(
            tuple(row for part in every for row in part.rows),
            tuple(change for part in every for change in part.changes),
            sum(part.saved for part in every),
            bool(every) and all(part.whole for part in every),
        )
        if apart.changes and (accepted is None or apart.saved >= saved):
            return apart
        if accepted is None:
            row = one("rules", "long" if node.made.why == "long" else got.reason, got)
            # Where a kernel is refused, it is of interest which part it was.
            return apart if every and not self.cheaper else _Settled((row,))
        row = one(self.proposer.name, "accepted", accepted)
        return _Settled((row,), tuple(_changes(task, accepted, selected)), saved, got.accepted)


def _changes(task: _Task, accepted: Judgement, selected: Selected) -> Iterator[Replacement]:
    """The places of a task's new code: of all of it, or of each step that passed."""
    sass = task.part.block.instructions
    own = macros_in_place(task.part, selected, task.first)
    for first, end, got in accepted.steps or ((0, len(sass), accepted),):
        begin, stop = task.starts[first], task.starts[end]
        assert begin is not None
        assert stop is not None
        yield Replacement(begin, stop, sass[first:end], with_macros(got.code, own[first:end]))


def _checked(made: object) -> Proposals:
    """A proposer's answer.  Raises TypeError or ValueError for any other value."""
    if not isinstance(made, Proposals):
        raise TypeError(f"propose() returned {type(made).__name__}, not Proposals")
    if not _is(made.candidates, tuple):
        raise TypeError(f"candidates are {type(made.candidates).__name__}, not a tuple")
    if made.why not in get_args(NoCandidate):
        raise ValueError(f"why is {made.why!r}, not one of {', '.join(get_args(NoCandidate))}")
    for name, kind in (("detail", str), ("key", str), ("remembered", bool)):
        if not _is(getattr(made, name), kind):
            raise TypeError(f"{name} is {type(getattr(made, name)).__name__}, not {kind.__name__}")
    if not _is(made.seconds, int | float):
        raise TypeError(f"seconds are {type(made.seconds).__name__}, not a number")
    return made


def _is(value: object, kind: type | UnionType) -> bool:
    return isinstance(value, kind)


def _question(part: CutRegion, regs: RegisterMap) -> Question | None:
    """None for a region that has no words."""
    if part.asked is None:
        return None
    rules = tuple(tuple(i for i in group if isinstance(i, Inst)) for group in part.code)
    assert sum(map(len, rules)) == sum(map(len, part.code)), "a label in code that has words"
    return Question(part.block, regs, part.live_out, rules, part.asked)


def _distinct(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """Each candidate once; those that are not code of ``count`` instructions as Unreadable."""
    out: list[Candidate] = []
    for candidate in candidates:
        if not isinstance(candidate, Unreadable):
            bad = malformed(candidate, count)
            candidate = candidate if bad is None else Unreadable(bad)
        if candidate not in out:
            out.append(candidate)
    return out


def _changed(selected: Selected, changes: Sequence[Replacement]) -> Selected:
    """The kernel with the changes, and as many VGPRs as they need."""
    if not changes:
        return selected
    base = selected.regs.vtemp_base
    most = max(base + used(change.code, base) for change in changes)
    return replace(rewritten(selected, changes), vgprs=max(selected.vgprs, most))


_ORDER = (
    "none", "raised", "malformed", "encoding", "registers", "accesses", "refuted", "unknown",
    "dearer",
)  # fmt: skip


def _rank(judgement: Judgement) -> tuple[int, int]:
    if judgement.accepted:
        return len(_ORDER), -(judgement.cost or 0)
    return _ORDER.index(judgement.reason), 0


__all__ = ["Engine", "Progress"]

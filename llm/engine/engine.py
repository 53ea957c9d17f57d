"""The model as an engine beside the rules: it proposes, the gate disposes.

``hybrid`` takes the model's code for a region if it is proved and costs less than the rules',
otherwise the rules'; so a wrong model costs time, never correctness.  ``model`` takes it whenever
it is proved, and otherwise refuses the kernel: this shows what a model can do by itself.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from sassxlate.disasm.rdna3.instruction import Item
from sassxlate.errors import EncodeError, ModelError, SassxlateError, Where
from sassxlate.llm.engine.report import BlockReport, EngineReport, Outcome
from sassxlate.llm.gate.gate import Gate, Judgement
from sassxlate.llm.gate.parts import parts
from sassxlate.llm.gate.splice import Code, spliced
from sassxlate.llm.gate.temporaries import packed, room, used
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.llm.language.prompt import question_words
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.regions import CutRegion, cut_regions
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.region import RegionSite
from sassxlate.lowering.region.text import RegionText, read_code
from sassxlate.lowering.select.rewrite import Replacement, rewritten
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify.steps.prover import Prover

Mode: TypeAlias = Literal["rules", "model", "hybrid"]
Words: TypeAlias = tuple[str, ...]
Progress: TypeAlias = Callable[[str, int, int], None]  # (what, done, total)


@runtime_checkable
class ProgressListener(Protocol):
    """A proposer that reports its progress: answers done, of a total."""

    told: Callable[[int, int], None]


class Proposer(Protocol):
    """A source of answers for blocks.  ``name`` identifies it and is part of the cache key: the
    same name must give equal answers."""

    @property
    def name(self) -> str: ...

    def propose(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        """For each question up to ``samples`` answers, the likeliest first; none if it is too long.
        ``vtemps`` is the number of vector temporaries that each may use."""
        ...


@dataclass(slots=True)
class Memo:
    """Cache of answers by canonical form: in this process, and in an external store (``read``,
    ``write``).

    It caches only proposals: they are judged again at each use.
    """

    read: Callable[[str], bytes | None] = lambda _: None
    write: Callable[[str, bytes], None] = lambda _, __: None
    kept: dict[str, list[Words]] = field(default_factory=dict[str, "list[Words]"])

    def find(self, key: str) -> list[Words] | None:
        """The cached answers; None if the question is new."""
        if key not in self.kept:
            data = self.read(key)
            if data is None:
                return None
            self.kept[key] = [tuple(line.split()) for line in data.decode().splitlines()]
        return self.kept[key]

    def keep(self, key: str, answers: list[Words]) -> None:
        self.kept[key] = answers
        self.write(key, "\n".join(map(" ".join, answers)).encode())


@dataclass(frozen=True, slots=True)
class _Task:
    """A region of a kernel, the place of its code, and the question for it; ``outcome`` is the
    reason if there is no question.  ``starts`` is where the code of each instruction begins, see
    :class:`~sassxlate.lowering.region.region.RegionSite`."""

    part: CutRegion
    first: int
    end: int
    question: RegionText | None
    outcome: Outcome | None
    starts: tuple[int | None, ...] = ()


@dataclass(slots=True)
class _Node:
    """The result of a task: the gate's judgement of its best answer; the passing steps of an answer
    that fails (``partly``); and its parts, which were tried because of that."""

    task: _Task
    got: Judgement = field(default_factory=lambda: Judgement("none"))
    partly: Judgement | None = None
    parts: tuple[_Node, ...] = ()
    answers: int = 0
    kept: bool = False


@dataclass(frozen=True, slots=True)
class _Settled:
    """Rows of the report and changes of the code for one stretch; ``saved`` by the model's code,
    ``whole`` if all of its code is the model's."""

    rows: tuple[BlockReport, ...]
    changes: tuple[Replacement, ...] = ()
    saved: int = 0
    whole: bool = False


_ANSWERS = 2  # bump when the answers of a model to the same question change


def key_of(name: str, question: RegionText, samples: int, vtemps: int) -> str:
    """The key under which answers are cached."""
    text = f"{_ANSWERS}\0{name}\0{samples}\0{vtemps}\0{question.text}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class ModelEngine:
    """An engine for blocks, from a proposer.  One instance may serve many kernels."""

    proposer: Proposer
    mode: Mode = "hybrid"
    samples: int = 1
    memo: Memo = field(default_factory=Memo)
    progress: Progress = lambda _, __, ___: None
    prover: Prover = field(default_factory=Prover)
    _fresh: dict[str, float] = field(default_factory=dict[str, float])  # asked ahead: its seconds

    def rewrite(self, selected: Selected, kernel: str) -> tuple[Selected, EngineReport]:
        """A kernel by the rules, with the model's code wherever it passes the gate.

        ModelError SX1007 in mode ``model`` if it does not pass.
        """
        vtemps = room(selected)
        nodes = [_Node(t) for piece in selected.pieces for t in self._tasks(piece, selected)]
        known: set[str] = set()
        distinct: set[str] = set()  # questions of regions
        every: set[str] = set()  # and of their parts
        asking = judging = 0.0
        level = [node for node in nodes if node.task.question is not None]
        while level:
            started = time.perf_counter()
            answers, remembered = self._asked_for(level, selected.regs)
            remembered -= every  # this kernel's own questions do not count as remembered
            if not every:
                known, distinct = remembered, set(answers)
            every |= answers.keys()
            asking += time.perf_counter() - started
            asking += sum(self._fresh.pop(key, 0.0) for key in answers)
            started = time.perf_counter()
            deeper: list[_Node] = []
            for n, node in enumerate(level):
                self._judge(node, selected, answers, remembered, vtemps)
                deeper += node.parts
                self.progress("proving", n + 1, len(level))
            judging += time.perf_counter() - started
            level = deeper
        changes: list[Replacement] = []
        rows: list[BlockReport] = []
        for node in nodes:
            found = self._settled(node, selected)
            if self.mode == "model" and node.task.question is not None and not found.whole:
                bad = next(row for row in found.rows if row.outcome != "accepted")
                where = Where(kernel=kernel, offset=bad.start)
                raise ModelError("SX1007", f"no proved code: {bad.outcome} {bad.detail}", where)
            rows += found.rows
            changes += found.changes
        report = EngineReport(
            self.mode, self.proposer.name, tuple(rows),
            sum(node.task.question is not None for node in nodes), len(distinct), len(known),
            len(every - distinct), round(asking, 4), round(judging, 4),
        )  # fmt: skip
        return _changed(selected, changes), report

    def ahead(self, kernels: Iterable[Selected]) -> None:
        """Asks the questions of several kernels at once, which is faster than one after another."""
        questions: list[RegionText] = []
        named: list[int] = []
        for selected in kernels:
            for piece in selected.pieces:
                mine = (t.question for t in self._tasks(piece, selected))
                questions += [question for question in mine if question is not None]
            named += [_named(selected.regs)] * (len(questions) - len(named))
        started = time.perf_counter()
        answers, remembered = self._answers(questions, named)
        new = [key for key in answers if key not in remembered]
        seconds = time.perf_counter() - started
        self._fresh |= {key: seconds / len(new) for key in new}

    def _tasks(self, piece: RegionSite, selected: Selected) -> Iterable[_Task]:
        at = 0
        for part in cut_regions(piece.block, selected.regs, piece.live_out, too_long=too_long):
            starts = piece.starts[at : at + len(part.block.instructions) + 1]
            first, end = starts[0], starts[-1]
            at += len(part.block.instructions)
            outcome: Outcome | None = "macro" if part.macro else None
            question = None
            if first is None or end is None:
                outcome = outcome or "guarded"
            if outcome is None:
                try:
                    question = question_words(part.block, selected.regs, part.live_out, part.asked)
                except EncodeError:
                    outcome = "unsaid"
            yield _Task(part, first or 0, end or 0, question, outcome, starts)

    def _parts(self, task: _Task, regs: RegisterMap) -> tuple[_Node, ...]:
        """A task's parts, or none."""
        out: list[_Node] = []
        at = 0
        for part in parts(task.part, regs, lambda n: task.starts[n] is not None):
            count = len(part.block.instructions)
            starts = task.starts[at : at + count + 1]
            at += count
            first, end = starts[0], starts[-1]
            assert first is not None
            assert end is not None
            try:
                question = question_words(part.block, regs, part.live_out, part.asked)
            except EncodeError:
                return ()
            out.append(_Node(_Task(part, first, end, question, None, starts)))
        return tuple(out)

    def _asked_for(
        self, level: Sequence[_Node], regs: RegisterMap
    ) -> tuple[dict[str, list[Words]], set[str]]:
        """Answers by key, and the keys that were already known.  An answer may name any temporary;
        those that it uses are packed into the available ones."""
        questions = [n.task.question for n in level if n.task.question is not None]
        return self._answers(questions, [_named(regs)] * len(questions))

    def _answers(
        self, questions: Sequence[RegionText], vtemps: Sequence[int]
    ) -> tuple[dict[str, list[Words]], set[str]]:
        """Answers by key, each question asked once; and the keys that were known before."""
        out: dict[str, list[Words]] = {}
        known: set[str] = set()
        new: dict[str, tuple[RegionText, int]] = {}
        for question, limit in zip(questions, vtemps, strict=True):
            key = key_of(self.proposer.name, question, self.samples, limit)
            if key in out or key in new:
                continue
            found = self.memo.find(key)
            if found is None:
                new[key] = question, limit
            else:
                out[key] = found
                if key not in self._fresh:
                    known.add(key)
        if new:
            questioned = list(new.values())
            if isinstance(self.proposer, ProgressListener):
                self.proposer.told = lambda done, of: self.progress("asking the model", done, of)
            made = self.proposer.propose(
                [q for q, _ in questioned], self.samples, [limit for _, limit in questioned]
            )
            for key, answers in zip(new, made, strict=True):
                out[key] = answers
                self.memo.keep(key, answers)
        return out, known

    def _best(
        self, task: _Task, answers: Sequence[Words], rules: Sequence[Item], regs: RegisterMap,
        vtemps: int,
    ) -> tuple[Judgement, Judgement | None]:  # fmt: skip
        """The cheapest answer that passes; otherwise the gate's judgement of the one that came
        nearest, and the cheapest splice of one answer's steps."""
        assert task.question is not None
        gate = Gate(vtemps, cheaper=self.mode == "hybrid", prover=self.prover)
        best = Judgement("none")
        partly: Judgement | None = None
        for words in dict.fromkeys(answers):
            try:
                code = packed(read_code(words, task.question), regs.vtemp_base)
            except SassxlateError as error:
                got = Judgement("text", str(error))
            else:
                got = gate.judge(task.part.block, regs, task.part.live_out, code, rules)
                if not got.accepted and self.mode == "hybrid":
                    some = self._partly(task, code, rules, regs, gate)
                    if some is not None and (partly is None or _rank(some) > _rank(partly)):
                        partly = some
            if _rank(got) > _rank(best):
                best = got
        return best, None if best.accepted else partly

    def _partly(
        self, task: _Task, code: Code, rules: Sequence[Item], regs: RegisterMap, gate: Gate
    ) -> Judgement | None:
        """The steps that pass, of an answer that does not; None if none does."""
        part = task.part
        found = spliced(part.block, regs, part.live_out, code, part.code, self.prover)
        if found is None:
            return None
        made, taken, steps = found
        got = gate.judge(part.block, regs, part.live_out, made, rules)
        return replace(got, detail=f"{taken} of {steps} steps") if got.accepted else None

    def _judge(
        self, node: _Node, selected: Selected, answers: Mapping[str, list[Words]],
        known: set[str], vtemps: int,
    ) -> None:  # fmt: skip
        """Judges the answers to a task, and splits it if none is right."""
        task, regs = node.task, selected.regs
        assert task.question is not None
        key = key_of(self.proposer.name, task.question, self.samples, _named(regs))
        mine = answers[key]
        node.answers, node.kept = len(mine), key in known
        if mine:
            rules = selected.items[task.first : task.end]
            node.got, node.partly = self._best(task, mine, rules, regs, vtemps)
        if not node.got.accepted and node.got.reason != "dearer":
            node.parts = self._parts(task, regs)

    def _settled(self, node: _Node, selected: Selected) -> _Settled:
        """The code chosen for a region: one answer's, its parts', or the rules'."""
        task, got = node.task, node.got
        block = task.part.block
        rules = selected.items[task.first : task.end]
        price = cost(rules if rules else [i for group in task.part.code for i in group])

        def one(engine: str, outcome: Outcome, got: Judgement) -> BlockReport:
            verdict = {"accepted": "Proved", "refuted": "Refuted", "unknown": "Unknown"}
            return BlockReport(
                block.index, block.start, block.instructions[-1].offset, len(block.instructions),
                engine, outcome, got.detail, price, got.cost, verdict.get(outcome, ""),
                got.proved or (), node.answers, node.kept,
            )  # fmt: skip

        if task.outcome is not None or task.question is None:
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
            row = one("rules", got.reason if node.answers else "long", got)
            # In mode `model` the error names the part.
            return apart if every and self.mode == "model" else _Settled((row,))
        change = Replacement(task.first, task.end, block.instructions, accepted.code)
        row = one(self.proposer.name, "accepted", accepted)
        return _Settled((row,), (change,), saved, got.accepted)


def _named(regs: RegisterMap) -> int:
    """The number of vector temporaries that have names."""
    return min(VTEMPS, 256 - regs.vtemp_base)


def _changed(selected: Selected, changes: Sequence[Replacement]) -> Selected:
    """The kernel with the changes, and as many VGPRs as they need."""
    if not changes:
        return selected
    base = selected.regs.vtemp_base
    most = max(base + used(change.code, base) for change in changes)
    return replace(rewritten(selected, changes), vgprs=max(selected.vgprs, most))


_ORDER = ("none", "text", "encoding", "registers", "accesses", "refuted", "unknown", "dearer")


def _rank(judgement: Judgement) -> tuple[int, int]:
    if judgement.accepted:
        return len(_ORDER), -(judgement.cost or 0)
    return _ORDER.index(judgement.reason), 0


__all__ = ["Memo", "Mode", "ModelEngine", "Proposer", "key_of"]

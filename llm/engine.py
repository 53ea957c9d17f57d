"""The model as an engine beside the rules: it proposes, the gate disposes.

``hybrid`` takes the model's code of a stretch where it is proved and costs less than the rules',
the rules' otherwise; so a wrong model costs time, never correctness.  ``model`` takes it wherever
it is proved, and refuses a kernel where it is not: so one sees what a model can do by itself.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from sassxlate.disasm.rdna3.ir import Item
from sassxlate.disasm.sass.ir import RegRef
from sassxlate.errors import EncodeError, ModelError, SassxlateError, Where
from sassxlate.lowering.allocate import RegisterMap
from sassxlate.lowering.engine import Change, Piece, RdnaBlock, SassBlock, rewritten
from sassxlate.lowering.select import Selected

from .cost import cost
from .gate import Gate, Judgement
from .mixed import Code, mixed
from .names import VTEMPS
from .prompt import Prompt, asked, read_answer
from .proof import Prover
from .report import BlockReport, EngineReport, Outcome
from .stretch import Stretch, rules_code, stretches
from .temporaries import packed, room, used

Mode: TypeAlias = Literal["rules", "model", "hybrid"]
Words: TypeAlias = tuple[str, ...]
Progress: TypeAlias = Callable[[str, int, int], None]  # of what, how many of how many


@runtime_checkable
class Telling(Protocol):
    """A proposer that says how far it is: so many of so many answers."""

    told: Callable[[int, int], None]


class Proposer(Protocol):
    """Whoever answers the questions for blocks.  ``name`` says who, and is part of what is
    remembered: equal names give equal answers."""

    @property
    def name(self) -> str: ...

    def propose(
        self, questions: Sequence[Prompt], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        """For each question up to ``samples`` answers, the likeliest first; none where it is too
        long.  ``vtemps`` is how many vector temporaries each may use."""
        ...


@dataclass(slots=True)
class Memo:
    """Answers by canonical form: in this process, and in a store beyond it (``read``, ``write``).

    What is remembered is only what was proposed: it is judged again wherever it is used.
    """

    read: Callable[[str], bytes | None] = lambda _: None
    write: Callable[[str, bytes], None] = lambda _, __: None
    kept: dict[str, list[Words]] = field(default_factory=dict[str, "list[Words]"])

    def find(self, key: str) -> list[Words] | None:
        """The answers of before; None where the question is new."""
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
    """A stretch of a kernel, where its code stands, and what is asked of it; ``outcome`` is why
    nothing is."""

    part: Stretch
    first: int
    end: int
    question: Prompt | None
    outcome: Outcome | None


def key_of(name: str, question: Prompt, samples: int, vtemps: int) -> str:
    """Of what is remembered."""
    text = f"{name}\0{samples}\0{vtemps}\0{question.text}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class ModelEngine:
    """An engine of blocks out of a proposer.  One instance may serve many kernels."""

    proposer: Proposer
    mode: Mode = "hybrid"
    samples: int = 1
    memo: Memo = field(default_factory=Memo)
    progress: Progress = lambda _, __, ___: None
    prover: Prover = field(default_factory=Prover)
    _fresh: dict[str, float] = field(default_factory=dict[str, float])  # asked ahead: its seconds

    @property
    def name(self) -> str:
        return self.mode

    def translate(
        self, block: SassBlock, regs: RegisterMap, live_out: frozenset[RegRef]
    ) -> RdnaBlock | None:
        """One block alone; None where the model has nothing that passes the gate."""
        rules = rules_code(block, regs)
        items = [item for group in rules for item in group]
        try:
            question = asked(block, regs, live_out)
        except EncodeError:
            return None
        task = _Task(Stretch(block, live_out, rules), 0, len(items), question, None)
        vtemps = _named(regs)
        answers = self._answers([question], [vtemps])[0][key_of(
            self.proposer.name, question, self.samples, vtemps
        )]
        found = self._best(task, answers, items, regs, vtemps)
        if not found.accepted:
            return None
        return RdnaBlock(tuple(i for group in found.code for i in group), self.proposer.name)

    def rewrite(self, selected: Selected, kernel: str) -> tuple[Selected, EngineReport]:
        """A kernel that the rules wrote, with the model's code where it passes the gate.

        ModelError SX1007 in mode ``model`` where it does not.
        """
        regs = selected.regs
        vtemps = room(selected)
        tasks = [t for piece in selected.pieces for t in self._tasks(piece, selected)]
        questions = [t.question for t in tasks if t.question is not None]
        started = time.perf_counter()
        # An answer may name any; those that it needs are packed into the room there is.
        named = _named(regs)
        answers, remembered = self._answers(questions, [named] * len(questions))
        asking = time.perf_counter() - started
        asking += sum(self._fresh.pop(key, 0.0) for key in answers)
        started = time.perf_counter()
        changes: list[Change] = []
        rows: list[BlockReport] = []
        for n, task in enumerate(tasks):
            row, change = self._settled(task, selected, answers, remembered, vtemps)
            if self.mode == "model" and row.asked and change is None:
                where = Where(kernel=kernel, offset=row.start)
                raise ModelError("SX1007", f"no proved code: {row.outcome} {row.detail}", where)
            rows.append(row)
            if change is not None:
                changes.append(change)
            self.progress("proving", n + 1, len(tasks))
        report = EngineReport(
            self.mode, self.proposer.name, tuple(rows), len(answers), len(remembered),
            round(asking, 4), round(time.perf_counter() - started, 4),
        )  # fmt: skip
        return _changed(selected, changes), report

    def ahead(self, kernels: Iterable[Selected]) -> None:
        """Asks what several kernels will, all at once, which is faster than one after another."""
        questions: list[Prompt] = []
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

    def _tasks(self, piece: Piece, selected: Selected) -> Iterable[_Task]:
        at = 0
        for part in stretches(piece.block, selected.regs, piece.live_out):
            first, end = piece.starts[at], piece.starts[at + len(part.block.instructions)]
            at += len(part.block.instructions)
            outcome: Outcome | None = "macro" if part.macro else None
            question = None
            if first is None or end is None:
                outcome = outcome or "guarded"
            if outcome is None:
                try:
                    question = asked(part.block, selected.regs, part.live_out, part.asked)
                except EncodeError:
                    outcome = "unsaid"
            yield _Task(part, first or 0, end or 0, question, outcome)

    def _answers(
        self, questions: Sequence[Prompt], vtemps: Sequence[int]
    ) -> tuple[dict[str, list[Words]], set[str]]:
        """Answers by key, each question asked once; and the keys that were known before."""
        out: dict[str, list[Words]] = {}
        known: set[str] = set()
        new: dict[str, tuple[Prompt, int]] = {}
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
            if isinstance(self.proposer, Telling):
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
    ) -> Judgement:  # fmt: skip
        """The cheapest answer that passes; else what the gate said of the one that came nearest."""
        assert task.question is not None
        gate = Gate(vtemps, cheaper=self.mode == "hybrid", prover=self.prover)
        best = Judgement("none")
        for words in dict.fromkeys(answers):
            try:
                code = packed(read_answer(words, task.question), regs.vtemp_base)
            except SassxlateError as error:
                got = Judgement("text", str(error))
            else:
                got = gate.judge(task.part.block, regs, task.part.live_out, code, rules)
                if not got.accepted and self.mode == "hybrid":
                    got = self._partly(task, code, rules, regs, gate) or got
            if _rank(got) > _rank(best):
                best = got
        return best

    def _partly(
        self, task: _Task, code: Code, rules: Sequence[Item], regs: RegisterMap, gate: Gate
    ) -> Judgement | None:
        """What passes of an answer that does not; None where nothing does."""
        part = task.part
        found = mixed(part.block, regs, part.live_out, code, part.code, self.prover)
        if found is None:
            return None
        made, taken, steps = found
        got = gate.judge(part.block, regs, part.live_out, made, rules)
        return replace(got, detail=f"{taken} of {steps} steps") if got.accepted else None

    def _settled(
        self, task: _Task, selected: Selected, answers: Mapping[str, list[Words]],
        known: set[str], vtemps: int,
    ) -> tuple[BlockReport, Change | None]:  # fmt: skip
        block = task.part.block
        rules = selected.items[task.first : task.end]
        price = cost(rules if rules else [i for group in task.part.code for i in group])
        size = len(block.instructions)

        def row(
            engine: str, outcome: Outcome, got: Judgement, count: int, kept: bool
        ) -> BlockReport:
            verdict = {"accepted": "Proved", "refuted": "Refuted", "unknown": "Unknown"}
            return BlockReport(
                block.index, block.start, block.instructions[-1].offset, size, engine, outcome,
                got.detail, price, got.cost, verdict.get(outcome, ""), got.proved or (), count,
                kept,
            )  # fmt: skip

        if task.outcome is not None or task.question is None:
            return row("rules", task.outcome or "unsaid", Judgement("none"), 0, False), None
        named = _named(selected.regs)
        key = key_of(self.proposer.name, task.question, self.samples, named)
        mine = answers[key]
        if not mine:
            return row("rules", "long", Judgement("none"), 0, key in known), None
        got = self._best(task, mine, rules, selected.regs, vtemps)
        if not got.accepted:
            return row("rules", got.reason, got, len(mine), key in known), None
        change = Change(task.first, task.end, block.instructions, got.code)
        return row(self.proposer.name, "accepted", got, len(mine), key in known), change


def _named(regs: RegisterMap) -> int:
    """Vector temporaries that have names."""
    return min(VTEMPS, 256 - regs.vtemp_base)


def _changed(selected: Selected, changes: Sequence[Change]) -> Selected:
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

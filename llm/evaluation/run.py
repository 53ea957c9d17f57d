"""Asking a model for blocks and proving its answers, in batches, by several processes."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sassxlate.errors import SassxlateError
from sassxlate.executors import Begin, Place, work_through
from sassxlate.llm.dataset.verdict_store import VerdictStore, sources_tag
from sassxlate.llm.evaluation.corpus import Corpus, EvaluationBlock, Key
from sassxlate.llm.evaluation.parts import Cases, in_parts
from sassxlate.llm.evaluation.results import (
    Answer,
    Batch,
    BlockResult,
    EvaluationRun,
    Outcome,
    Results,
)
from sassxlate.llm.inference.language_model import LanguageModel, Words
from sassxlate.lowering.engine.gate import Gate, Judgement
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.optimize.search import improved
from sassxlate.lowering.optimize.temporaries import packed, used
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.text import answer_text, read_code, region_text
from sassxlate.lowering.verify.steps.framing import flat_items
from sassxlate.lowering.verify.steps.prover import Prover

QUESTIONS = 128  # questions of a batch, per process
PART = 4  # blocks per proof job
TIMEOUT_MS = 2_000
_VERDICTS: dict[str, Outcome] = {
    "accepted": "Proved", "refuted": "Refuted", "unknown": "Unknown",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """The settings of a run.  ``jobs`` processes; no batch begins after ``limit_s`` seconds."""

    samples: int = 1
    seed: int = 0
    jobs: int = 1
    timeout_ms: int = TIMEOUT_MS
    limit_s: float | None = None
    tag: str = ""  # tag of the source code that decides verdicts


# --- judging, in a process -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProofCase:
    """A block with numbered answers to judge; ``last``: if no answer is proved, try the rules'
    code; ``searched``: the search is asked too."""

    block: EvaluationBlock
    answers: tuple[tuple[int, Words], ...]
    last: bool
    searched: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    answers: tuple[Answer, ...]
    rules_proved: bool | None
    seconds: float  # of processor time
    search: int | None = None
    search_s: float = 0.0


class Judge:
    """A process's prover."""

    def __init__(self, proofs: Path, settings: EvaluationSettings) -> None:
        tag = f"{settings.tag[:32]} {sources_tag()} {settings.timeout_ms}"
        self.store = VerdictStore(proofs, tag)
        self.prover = Prover(self.store.read, self.store.write, settings.timeout_ms)
        # The model's answers are mostly the search's: neither profits from the other's proofs.
        self.search_prover = Prover(timeout_ms=settings.timeout_ms)
        self.settings = settings

    def judge(self, case: ProofCase) -> Judged:
        block = case.block
        price, spent = self._searched(block) if case.searched else (None, 0.0)
        started = time.process_time()
        out: list[Answer] = []
        for drawn, words in case.answers:
            out.append(self._answer(block, drawn, words))
        rules = None
        if case.last and not any(a.proved for a in out):
            rules = self._rules(block)
        return Judged(tuple(out), rules, time.process_time() - started, price, spent)

    def _searched(self, block: EvaluationBlock) -> tuple[int, float]:
        """The cost of the search's code, or the rules', and the processor seconds of finding and
        proving it."""
        here = block.question
        started = time.process_time()
        found = None
        with contextlib.suppress(SassxlateError, RecursionError, MemoryError):
            # As the engine asks it: in the architecture's own forms.
            own = region_text(here.block, here.regs, here.live_out)
            rules = read_code(answer_text(block.rules, own).split(), own)
            region = CutRegion(here.block, here.live_out, rules)
            found = improved(region, here.regs, own, self.search_prover, rules)
        spent = time.process_time() - started
        return (block.cost if found is None else min(found.cost, block.cost)), spent

    def _answer(self, block: EvaluationBlock, drawn: int, words: Words) -> Answer:
        here = block.question
        try:
            code = read_code(words, here)
        except SassxlateError as error:
            return Answer(
                "refused", "malformed", str(error)[:160], drawn=drawn, text=" ".join(words)
            )
        gate = Gate(block.vtemps, False, self.settings.timeout_ms, self.prover)
        rules = flat_items(here.block, block.rules)
        try:
            got = gate.judge(here.block, here.regs, here.live_out, code, rules)
        except (RecursionError, MemoryError) as fault:
            got = Judgement("unknown", repr(fault)[:80])
        base = here.regs.vtemp_base
        temps = used(packed(code, base), base)
        return Answer(
            _VERDICTS.get(got.reason, "refused"), got.reason, got.detail[:160], got.cost, temps,
            "; ".join(got.proved or ()), drawn, " ".join(words),
        )  # fmt: skip

    def _rules(self, block: EvaluationBlock) -> bool:
        try:
            words = answer_text(block.rules, block.question).split()
        except SassxlateError:
            return False
        return self._answer(block, 0, tuple(words)).proved


class _Shared:
    """State that forked processes inherit."""

    cases: Sequence[ProofCase] = ()  # with blocks that cannot be pickled
    judge: Judge | None = None


_shared = _Shared()


def _begin(proofs: Path, settings: EvaluationSettings) -> None:
    _shared.judge = Judge(proofs, settings)


def _work(part: Sequence[int]) -> list[tuple[int, Judged]]:
    judge = _shared.judge
    assert judge is not None
    out = [(n, judge.judge(_shared.cases[n])) for n in part]
    judge.store.flush()
    return out


def _judged(cases: Sequence[ProofCase], proofs: Path, settings: EvaluationSettings) -> list[Judged]:
    """Judges all cases, with ``jobs`` processes that end with them."""
    if settings.jobs == 1 or len(cases) <= PART:
        judge = Judge(proofs, settings)
        try:
            return [judge.judge(case) for case in cases]
        finally:
            judge.store.close()
    _shared.cases = cases
    found: dict[int, Judged] = {}
    try:
        # Longest first, so that no long part is left at the end.
        order = sorted(range(len(cases)), key=lambda n: -cases[n].block.tokens)
        parts = [order[at : at + PART] for at in range(0, len(order), PART)]
        lost = _spread(parts, settings, proofs, found)
        for (n,) in _spread([[n] for part in lost for n in part], settings, proofs, found):
            died = Answer("Unknown", "unknown", "the process that proved it died")
            made = tuple(replace(died, drawn=d, text=" ".join(w)) for d, w in cases[n].answers)
            found[n] = Judged(made, None, 0.0)
    finally:
        _shared.cases = ()
    return [found[n] for n in range(len(cases))]


def _spread(
    parts: Sequence[Sequence[int]],
    settings: EvaluationSettings,
    proofs: Path,
    found: dict[int, Judged],
) -> list[Sequence[int]]:
    """Judges parts into ``found``, always in other processes; returns those whose processes
    died."""
    lost: list[Sequence[int]] = []
    place = Place(max(2, min(settings.jobs, len(parts))))
    for done in work_through(place, _work, parts, begin=Begin(_begin, (proofs, settings))):
        if done.result is None:
            lost.append(done.job)
        else:
            found.update(done.result)
    return lost


# --- the run ---------------------------------------------------------------------------------


def measure(
    corpus: Corpus,
    proposer: LanguageModel,
    settings: EvaluationSettings,
    results: Path | None = None,
    told: Callable[[EvaluationRun], None] = lambda _: None,
) -> EvaluationRun:
    """Asks for all blocks that ``results`` does not have yet; each question once, whatever the
    architecture.  A block whose first answer is not proved is asked for in parts, and further
    samples are drawn for parts that cannot be split.

    Raises ModelError SX1051 if ``results`` is another run's.
    """
    started = time.monotonic()
    run = EvaluationRun()
    keeper = Results(results)
    keeper.read(
        {"model": proposer.name, "samples": settings.samples, "seed": settings.seed,
         "timeout_ms": settings.timeout_ms, "temporaries": VTEMPS, "tag": settings.tag,
         "language": sources_tag()},
        run,
    )  # fmt: skip
    questions: dict[str, list[EvaluationBlock]] = {}
    for key in sorted(corpus.blocks):
        if key not in run.results:
            questions.setdefault(key[1], []).append(corpus.blocks[key])
    run.left = sum(map(len, questions.values()))
    told(run)
    with tempfile.TemporaryDirectory(prefix="sassxlate-eval-") as folder:
        proofs = Path(folder) / "proofs.sqlite3"
        for median, groups in _batches(list(questions.values()), settings, bool(run.batches)):
            if settings.limit_s is not None and time.monotonic() - started > settings.limit_s:
                break
            made, batch = _batch(groups, proposer, settings, proofs)
            batch.median = median
            keeper.add(made, batch)
            run.results.update({(r.arch, r.key): r for r in made})
            run.batches.append(batch)
            run.left -= len(made)
            with contextlib.suppress(OSError):
                run.load = max(run.load, os.getloadavg()[0])
            told(run)
    return run


def _batches(
    questions: list[list[EvaluationBlock]], settings: EvaluationSettings, begun: bool
) -> Iterator[tuple[bool, list[list[EvaluationBlock]]]]:
    """Batches, in an order shuffled by the seed: the finished blocks of an interrupted run are a
    fair sample.  The first batch has the questions nearest to the median length, for their rate."""
    size = QUESTIONS * settings.jobs
    questions.sort(key=lambda g: g[0].key)
    random.Random(settings.seed).shuffle(questions)
    if not begun and len(questions) > 2 * size:
        lengths = sorted(g[0].tokens for g in questions)
        middle = lengths[len(lengths) // 2]
        near = sorted(range(len(questions)), key=lambda n: abs(questions[n][0].tokens - middle))
        first = frozenset(near[:size])
        yield True, [questions[n] for n in sorted(first)]
        questions = [g for n, g in enumerate(questions) if n not in first]
    for at in range(0, len(questions), size):
        yield False, questions[at : at + size]


def _batch(
    groups: Sequence[Sequence[EvaluationBlock]],
    proposer: LanguageModel,
    settings: EvaluationSettings,
    proofs: Path,
) -> tuple[list[BlockResult], Batch]:
    """Asks and proves the questions of ``groups``, each of one or more architectures."""
    clock = time.perf_counter
    started, cpu = clock(), _cpu()
    answers = _asked(groups, proposer, 1)
    asking, asking_cpu = clock() - started, _cpu() - cpu
    words = sum(len(a) for mine in answers for a in mine)
    started = clock()
    only = settings.samples == 1
    cases = [
        ProofCase(block, tuple(enumerate(mine)), only, searched=True)
        for group, mine in zip(groups, answers, strict=True)
        for block in group
    ]
    first = _judged(cases, proofs, settings)
    batch = Batch(
        len(groups), len(cases), asking, clock() - started, words=words, asking_cpu_s=asking_cpu
    )
    done = {(c.block.arch, c.block.key): (c, j) for c, j in zip(cases, first, strict=True)}
    again = [
        case
        for case, judged in done.values()
        if not only and judged.answers and not judged.answers[0].proved
    ]
    cpu = _cpu()
    more = _further(again, done, proposer, settings, proofs, batch) if again else {}
    batch.further_cpu_s = _cpu() - cpu
    return [_settled(case, judged, more.get(key)) for key, (case, judged) in done.items()], batch


def _further(
    cases: Sequence[ProofCase],
    done: Mapping[Key, tuple[ProofCase, Judged]],
    proposer: LanguageModel,
    settings: EvaluationSettings,
    proofs: Path,
    batch: Batch,
) -> dict[Key, tuple[Judged, int]]:
    """The proved answers of blocks whose first answer is not proved, in parts and by further
    answers; and the number of answers that contain an instruction."""
    clock = time.perf_counter

    def ask(blocks: Sequence[EvaluationBlock], count: int) -> list[list[Words]]:
        started = clock()
        found = _asked([[block] for block in blocks], proposer, count)
        batch.further_asking_s += clock() - started
        return found

    def judge(numbered: Cases, last: bool = False) -> list[Judged]:
        started = clock()
        found = _judged([ProofCase(b, a, last) for b, a in numbered], proofs, settings)
        batch.further_proving_s += clock() - started
        return found

    batch.further = len(cases)
    firsts = [(c.block, done[c.block.arch, c.block.key][1].answers[0]) for c in cases]
    found = in_parts(firsts, settings.samples, ask, lambda cases: [j.answers for j in judge(cases)])
    left = [block for (block, _), (answer, _) in zip(firsts, found, strict=True) if answer is None]
    rules = {
        (b.arch, b.key): j.rules_proved
        for b, j in zip(left, judge([(b, ()) for b in left], last=True), strict=True)
    }
    out: dict[Key, tuple[Judged, int]] = {}
    for (block, _), (answer, count) in zip(firsts, found, strict=True):
        key = block.arch, block.key
        out[key] = Judged((answer,) if answer else (), rules.get(key), 0.0), count
    return out


def _asked(
    groups: Sequence[Sequence[EvaluationBlock]], proposer: LanguageModel, samples: int
) -> list[list[Words]]:
    heads = [group[0] for group in groups]
    return proposer.answers([b.question for b in heads], samples, [b.vtemps for b in heads])


def _cpu() -> float:
    """Processor seconds of this process and of its children that have ended."""
    every = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in every)


def _settled(case: ProofCase, judged: Judged, more: tuple[Judged, int] | None) -> BlockResult:
    block = case.block
    arch, key = block.arch, block.key
    if not judged.answers:
        long = Answer("long", "long")
        return BlockResult(
            arch, key, long, long, 0, judged.rules_proved, judged.seconds, judged.search,
            round(judged.search_s, 5),
        )  # fmt: skip
    best = first = judged.answers[0]
    rules, seconds, count = judged.rules_proved, judged.seconds, len(judged.answers)
    if more is not None:
        further, count = more
        best = further.answers[0] if further.answers else first
        rules = further.rules_proved
    return BlockResult(
        arch, key, first, best, count, rules, round(seconds, 5), judged.search,
        round(judged.search_s, 5),
    )  # fmt: skip


__all__ = ["EvaluationSettings", "measure"]

"""Expert iteration: a model answers questions of the training split, and an answer that is proved
and costs less than the known one replaces it.

One process asks the model, the others judge and prove at the same time; results are written
every few seconds, as units beside those of the build (``units/model-*``), so that the dataset's
shards, made again, have the cheapest proven answer of each question.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.errors import EncodeError, ModelError, SassxlateError
from sassxlate.llm.dataset.build import DatasetSettings
from sassxlate.llm.dataset.files import MODEL, best_rows, model_reports, read_rows, write_rows
from sassxlate.llm.dataset.rows import TrainingPair
from sassxlate.llm.dataset.verdict_store import VerdictStore, sources_tag
from sassxlate.llm.inference.qwen2 import read_config
from sassxlate.llm.inference.torch_sampler import TEMPERATURE, TorchSampler, has_gpu
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.engine.gate import Gate, Judgement
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.region.macro import MACRO
from sassxlate.lowering.region.places import VTEMPS
from sassxlate.lowering.region.subset import guard
from sassxlate.lowering.region.text import RegionText, answer_text, read_code
from sassxlate.lowering.verify.block.replay import differential
from sassxlate.lowering.verify.steps.framing import accesses, flat_code, framed_for_verifier
from sassxlate.lowering.verify.steps.legality import check_legality
from sassxlate.lowering.verify.steps.prover import Code, Prover, reduced
from sassxlate.lowering.verify.verdict import Defective, Undecided
from sassxlate.processes import Producer, WorkerPool

Words: TypeAlias = "tuple[str, ...]"
FLUSH_S = 10.0
_GRACE_S = 20.0  # to finish proofs in progress when the time is over
_QUEUE = 4096  # questions with answers in the queue for judging
_PROVED = 4  # answers per question to prove, the cheapest first
_NUMBERS = 128  # inputs to try before a proof
_KEPT = 200_000  # proofs that a process caches


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the answer to improve on."""

    id: str
    prompt: str
    answer: str
    rules: str  # the rules' answer
    cost: int
    rules_cost: int
    sass: int
    arch: int
    program: str
    kernel: str


# Yields answers to questions, by their numbers, in any order; the second argument stops it.
Sampler: TypeAlias = Callable[
    [Sequence[Asked], Callable[[], bool]], Iterator[tuple[int, list[Words]]]
]


@dataclass(frozen=True, slots=True)
class ImproveOutcome:
    """The outcome of the answers to one question: counts, the better row, and the answers that were
    cheaper but not proved (answer, cost, reason)."""

    counts: Mapping[str, int]
    row: TrainingPair | None = None
    unproved: tuple[tuple[str, int, str], ...] = ()


@dataclass(slots=True)
class Progress:
    """The progress of a round.  ``counts`` are of answers; see :func:`judged`."""

    questions: int
    counts: Counter[str] = field(default_factory=Counter[str])
    before: int = 0  # cost of the questions' known answers, judged so far
    saved: int = 0
    seconds: float = 0.0

    @property
    def done(self) -> int:
        return self.counts["questions"]


# --- which questions ---------------------------------------------------------------------------


def choose(costs: Mapping[str, int], tried: Mapping[str, int], count: int, seed: int) -> list[str]:
    """Draws this many questions without replacement, preferring costly ones and those not asked
    yet: a question's weight is its cost, a fifth of that if it was asked once, and so on."""
    keys = sorted(costs)
    if not keys:
        return []
    weights = np.array([max(costs[k], 1) / (1 + 4 * tried.get(k, 0)) for k in keys])
    chance = np.random.default_rng(seed).random(len(keys))
    order = np.argsort(np.log(np.maximum(chance, 1e-300)) / weights)[::-1]
    return [keys[int(i)] for i in order[:count]]


def questions(folder: Path, count: int, seed: int) -> list[Asked]:
    """The questions of a round: those that a model is asked in the text that is also proved from,
    so neither those with macros, whose code a text does not have, nor those asked in older forms.
    ModelError SX1044 if there are none."""
    paths, best = best_rows(folder, "train")
    if not best:
        raise ModelError("SX1044", f"{folder} has no rows of training")
    tried: Counter[str] = Counter()
    for report in model_reports(folder):
        tried.update(report["tried"])
    chosen = choose({key: price for key, (price, _, _) in best.items()}, tried, count, seed)
    rows = read_rows(paths, {key: best[key][1:] for key in chosen})
    return [_asked(rows[key]) for key in chosen if _reads_back(rows[key])]


def _reads_back(row: Mapping[str, Any]) -> bool:
    return not row.get("asked") and f"\n{MACRO} " not in row["prompt"]


def _asked(row: Mapping[str, Any]) -> Asked:
    names = ("id", "prompt", "answer", "cost", "rules_cost", "sass", "arch", "program", "kernel")
    return Asked(rules=row["rules"] or row["answer"], **{name: row[name] for name in names})


# --- one question --------------------------------------------------------------------------------


def judged(asked: Asked, answers: Sequence[Words], prover: Prover) -> ImproveOutcome:
    """Judges the answers to one question.

    Counts ``answers``, of them ``same`` (as the known one or an earlier one), ``illegal``
    (no code), ``dearer`` (or equal), ``cheaper``; of those that were judged, the gate's reasons
    (``accepted``, ``accesses``, ``registers``, ``refuted``, ``unknown`` ...); ``unread``, questions
    that could not be read back; ``faults`` of this program, whose answers are dropped.
    """
    counts: Counter[str] = Counter(questions=1, answers=len(answers))
    try:
        here = read_question(asked.prompt, asked.arch)
        rules = flat_code(read_code(asked.rules.split(), here))
        numbers = _Numbers(here, read_code(asked.answer.split(), here), rules)
    except SassxlateError:
        counts["unread"] += 1
        return ImproveOutcome(dict(counts))
    distinct = dict.fromkeys(answers)
    distinct.pop(tuple(asked.answer.split()), None)
    counts["same"] += len(answers) - len(distinct)
    cheaper: list[tuple[int, Words]] = []
    for words in distinct:
        try:
            code = read_code(words, here)
            check_legality(code, here)
            price = cost(flat_code(code))
        except SassxlateError:
            counts["illegal"] += 1
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            counts["faults"] += 1
        else:
            known = price >= asked.cost
            counts["dearer" if known else "cheaper"] += 1
            if not known:
                cheaper.append((price, words))
    gate = Gate(VTEMPS, cheaper=False, prover=prover)
    unproved: list[tuple[str, int, str]] = []
    proved = 0
    for price, words in sorted(cheaper):
        if proved == _PROVED:
            break
        code = read_code(words, here)
        got = numbers.against(code)
        if got is None:
            proved += 1
            got = gate.judge(here.block, here.regs, here.live_out, code, rules)
        counts[got.reason] += 1
        if got.accepted and got.proved is not None:
            row = _row(asked, here, code, price, got.proved)
            counts["saved"] += asked.cost - price
            return ImproveOutcome(dict(counts), row, tuple(unproved))
        unproved.append((" ".join(words), price, f"{got.reason}: {got.detail}"[:200]))
    return ImproveOutcome(dict(counts), None, tuple(unproved))


@dataclass(slots=True)
class _Numbers:
    """Cheap refutation of code on random inputs, tried before the prover.

    The inputs do not model values shared between lanes: if they refute the known answer too, they
    are not used.
    """

    here: RegionText
    known: Code
    rules: Sequence[Inst]
    _trusted: bool | None = None

    def against(self, code: Code) -> Judgement | None:
        if accesses(flat_code(code)) != accesses(self.rules):
            return Judgement("accesses", "other accesses, waits or caching than the rules'")
        why = self._why(code)
        if why is None:
            return None
        if self._trusted is None:
            self._trusted = self._why(self.known) is None
        return Judgement("refuted", why) if self._trusted else None

    def _why(self, code: Code) -> str | None:
        here = self.here
        try:
            made = framed_for_verifier(here.block, reduced(here.regs, here), here.live_out, code)
            found = differential(made, _NUMBERS)
        except Defective as reason:
            return str(reason)
        except (SassxlateError, Undecided):
            return None
        return None if found is None else f"{found.where} on numbers"


def _row(
    asked: Asked, here: RegionText, code: Code, price: int, modulo: Sequence[str]
) -> TrainingPair:
    return TrainingPair(
        id=asked.id,
        prompt=asked.prompt,
        answer=answer_text(code, here),
        rules=asked.rules,
        cost=price,
        rules_cost=asked.rules_cost,
        sass=asked.sass,
        rdna=sum(guard(inst, here.regs) is None for inst in flat_code(code)),
        arch=asked.arch,
        program=asked.program,
        kernel=asked.kernel,
        modulo="; ".join(modulo),
        by="model",
        count=0,  # occurrences are counted where the question was found
    )


# --- all of them ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Found:
    """Results that are not on disk yet."""

    rows: list[TrainingPair] = field(default_factory=list[TrainingPair])
    tried: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    unproved: list[dict[str, Any]] = field(default_factory=list["dict[str, Any]"])
    since: float = field(default_factory=time.monotonic)

    def flush(self, folder: Path, by: str) -> None:
        """Writes a unit: the rows, then the report, which makes them valid."""
        self.since = time.monotonic()
        if self.tried:
            text = json.dumps([by, self.tried, [(r.id, r.answer) for r in self.rows]])
            name = MODEL + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
            path = folder / "units" / f"{name}.parquet"
            path.parent.mkdir(exist_ok=True)
            rows = sorted(self.rows, key=lambda r: r.id)
            if rows:
                write_rows(path, rows, "train")
            report = {"model": by, "rows": len(rows), "counts": self.counts, "tried": self.tried}
            beside = path.with_suffix(".tmp")
            beside.write_text(json.dumps(report), encoding="utf-8")
            beside.replace(path.with_suffix(".json"))
        if self.unproved:
            with (folder / "unproved.jsonl").open("a", encoding="utf-8") as stream:
                stream.writelines(json.dumps(line) + "\n" for line in self.unproved)
        self.rows, self.tried, self.unproved = [], [], []
        self.counts = Counter()


def improve(
    folder: Path,
    asked: Sequence[Asked],
    sampler: Sampler,
    *,
    by: str,
    tag: str = "",
    jobs: int = 1,
    timeout_ms: int = DatasetSettings().timeout_ms,
    limit_s: float | None = None,
    unproved: bool = False,
    told: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Asks, judges and stores better answers.  ``by`` names the model, ``tag`` the source code that
    decides verdicts; ``unproved`` stores cheaper, unproved answers in ``unproved.jsonl``.

    After ``limit_s`` seconds no new work begins.  The sampler runs in a separate process.
    Raises ModelError: as the sampler, and SX1046 if its process dies; earlier results
    are then on disk.
    """
    started = time.monotonic()
    progress = Progress(len(asked))
    found = _Found()

    def begin() -> Callable[[tuple[int, list[Words]]], ImproveOutcome]:
        proofs = VerdictStore(folder / "proofs.sqlite3", f"{tag[:32]} {sources_tag()} {timeout_ms}")
        prover = Prover(proofs.read, proofs.write, timeout_ms)

        def work(job: tuple[int, list[Words]]) -> ImproveOutcome:
            out = judged(asked[job[0]], job[1], prover)
            proofs.flush()
            if len(prover.kept) > _KEPT:
                prover.kept.clear()
            return out

        return work

    def settle(job: tuple[int, list[Words]], out: ImproveOutcome | None) -> None:
        question = asked[job[0]]
        counts = out.counts if out is not None else {"questions": 1, "died": 1}
        progress.counts.update(counts)
        progress.before += question.cost
        progress.saved += counts.get("saved", 0)
        found.counts.update(counts)
        found.tried.append(question.id)
        if out is None:
            return
        if out.row is not None:
            found.rows.append(out.row)
        if unproved:
            for answer, price, why in out.unproved:
                line = {"prompt": question.prompt, "answer": answer, "cost": price, "why": why}
                found.unproved.append({"id": question.id, "of": question.cost, **line})

    crew: WorkerPool[tuple[int, list[Words]], ImproveOutcome] = WorkerPool(jobs, begin)
    producer: Producer[tuple[int, list[Words]]] = Producer(lambda stop: sampler(asked, stop))
    waiting: deque[tuple[int, list[Words]]] = deque()
    error: ModelError | None = None
    try:
        while producer.open or waiting or crew.busy:
            late = 0.0 if limit_s is None else time.monotonic() - started - limit_s
            if late > 0:
                producer.stop()
                producer.open = False
                waiting.clear()
                if late > _GRACE_S:
                    break
            while waiting and crew.idle:
                crew.give(waiting.popleft())
            produced, done = crew.wait(producer if len(waiting) < _QUEUE else None, 0.5)
            if produced:
                kind, what = producer.receive()
                if kind == "job":
                    waiting.append(what)
                elif kind == "error":
                    error = ModelError(*what)
                elif kind == "fault":
                    error = ModelError("SX1046", f"the process that asked the model died: {what}")
            for job, out in done:
                settle(job, out)
            progress.seconds = time.monotonic() - started
            told(progress)
            if time.monotonic() - found.since > FLUSH_S:
                found.flush(folder, by)
    finally:
        found.flush(folder, by)
        producer.child.end()
        crew.end()
    if error is not None:
        raise error
    return progress


def figures(progress: Progress, by: str) -> dict[str, Any]:
    """A round as a table for scripts."""
    counts = {k: v for k, v in sorted(progress.counts.items()) if k not in ("questions", "saved")}
    return {
        "schema": 1,
        "model": by,
        "questions": progress.done,
        "of": progress.questions,
        **counts,
        "cost_before": progress.before,
        "saved": progress.saved,
        "seconds": round(progress.seconds, 1),
    }


# --- samplers -------------------------------------------------------------------------------------


def model_sampler(
    model: Path, samples: int, seed: int, device: str = "auto", temperature: float = TEMPERATURE
) -> Sampler:
    """A sampler of a checkpoint: with torch on a GPU, unconstrained; otherwise constrained, as in
    the engine.

    ``device``: ``auto``, ``numpy``, or one of torch's; ``temperature`` is only for torch.  Errors
    are raised at the first use.
    """

    def run(asked: Sequence[Asked], stop: Callable[[], bool]) -> Iterator[tuple[int, list[Words]]]:
        from sassxlate.llm.inference.block_model import check_vocabulary

        check_vocabulary(model)
        if device == "numpy" or (device == "auto" and not has_gpu()):
            yield from _numpy(model, asked, samples, seed, stop)
        else:
            made = TorchSampler(model, device, seed, temperature=temperature)
            yield from _torch(made, read_config(model).vocab, asked, samples, stop)

    return run


def _torch(
    sampler: TorchSampler,
    vocab: int,
    asked: Sequence[Asked],
    samples: int,
    stop: Callable[[], bool],
) -> Iterator[tuple[int, list[Words]]]:
    texts = [
        (tokenizer.BOS, *tokenizer.encode(q.prompt.split(), vocab), tokenizer.ANSWER) for q in asked
    ]
    # A cheaper answer is not much longer.
    most = [24 + len(tokenizer.encode(q.answer.split())) * 3 // 2 for q in asked]
    for number, answers in sampler.answers(texts, samples, most, stop):
        yield number, [_words(answer) for answer in answers]


def _words(answer: Sequence[int]) -> Words:
    """An answer's words; none if a word is spelled badly, so that there is no answer."""
    try:
        return tuple(tokenizer.decode(answer))
    except EncodeError:
        return ()


_TOGETHER = 16  # questions answered together on a CPU


def _numpy(
    model: Path, asked: Sequence[Asked], samples: int, seed: int, stop: Callable[[], bool]
) -> Iterator[tuple[int, list[Words]]]:
    from sassxlate.llm.inference.block_model import BlockModel

    proposer = BlockModel(model, seed, workers=1)
    step = max(1, _TOGETHER // samples)
    for first in range(0, len(asked), step):
        if stop():
            return
        numbers: list[int] = []
        prompts: list[RegionText] = []
        for n, q in enumerate(asked[first : first + step], first):
            try:
                prompts.append(read_question(q.prompt, q.arch))
                numbers.append(n)
            except EncodeError:
                yield n, []  # judging counts it
        made = proposer.answers(prompts, samples, [VTEMPS] * len(prompts))
        yield from zip(numbers, made, strict=True)


def name_of(model: Path) -> str:
    """A checkpoint's name: its folder's, and a hash of its weights."""
    digest = hashlib.blake2b(digest_size=6)
    for path in [model / "config.json", *sorted(model.glob("*.safetensors"))]:
        try:
            digest.update(path.read_bytes())
        except OSError as error:
            raise ModelError("SX1001", f"no model: {path}: {error.strerror}") from error
    return f"{model.resolve().name}-{digest.hexdigest()}"


__all__ = [
    "Asked", "ImproveOutcome", "Progress", "Sampler", "choose", "figures", "improve", "judged",
    "model_sampler", "name_of", "questions",
]  # fmt: skip

"""Answers of a small model on a CPU, without a framework: constrained, several blocks at once.

The first answer to a question has the likeliest word at each place.  Each further one is the first
up to a place where two words were nearly as likely, the closest first, has the second likeliest
word there, and continues with the likeliest; if there are no more such places, answers are drawn at
random.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Self, TypeAlias

import numpy as np

from sassxlate.errors import ModelError, UsageError, Where
from sassxlate.executors import Begin, Place, in_order
from sassxlate.llm.inference.automaton import AnswerAutomaton, TokenMask, draw
from sassxlate.llm.inference.qwen2 import Floats, Qwen2, Session, read_json
from sassxlate.llm.inference.qwen2_native import Fast, FastSession, fast
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.limits import limits_of
from sassxlate.lowering.region.text import RegionText

Words = tuple[str, ...]
Answer: TypeAlias = tuple[tuple[int, int], Words | None]  # question and sample, and what is said
NewSession: TypeAlias = Callable[[int, int], Session | FastSession]
SLOTS = 64  # sequences at once: more wait longer for the last, fewer read the weights more often
ROWS = 160  # rows of a product above which more bring nothing: new questions wait for the next
TEMPERATURE = 0.7
_TELL_S = 0.2  # seconds between two progress reports
_DOUBTS = 4  # doubtful places of an answer: with more, further answers only cost time
_TOGETHER = 2  # fewer: a second process does not pay


@dataclass(frozen=True, slots=True)
class _Job:
    """An answer to generate: number ``sample`` of several; ``begun`` are its first words."""

    question: int
    sample: int
    samples: int
    tokens: tuple[int, ...]
    most: int
    begun: tuple[int, ...] = ()


def answer_limit(asked: int) -> int:
    """The limit on the words of an answer to a question of this length.  The last 56 are reserved
    for an instruction that has begun, so a single MUFU, 10 words whose answer has 57, needs over
    113.  Of 17,689 answers of the dataset 0.7 % are longer than this leaves room for, nearly all
    over 900 words."""
    return min(160 + 3 * asked, 1024)


class BlockModel:
    """A model of the block language in a folder, as ``sassxlate train`` writes it."""

    def __init__(self, folder: Path, seed: int = 0, workers: int | None = None) -> None:
        """Raises ModelError as Qwen2.load does; SX1005 for one of another vocabulary."""
        check_vocabulary(folder)
        self.limits = limits_of(folder)
        self.model = Qwen2.load(folder)
        self.seed = seed
        self.workers = len(os.sched_getaffinity(0)) if workers is None else workers
        digest = digest_of_weights([folder / "config.json", *sorted(folder.glob("*.safetensors"))])
        self.told: Callable[[int, int], None] = lambda _, __: None
        self.name = f"{folder.name}-{digest}" + (f"-{seed}" if seed else "")

    @cached_property
    def fast(self) -> Fast | None:
        """The model in machine code; None if this CPU has none, and NumPy does it."""
        return fast(self.model)

    def _begin(self) -> NewSession:
        """The constructor of sessions, given a number of sequences and a length."""
        if self.fast is None:
            return partial(Session, self.model)
        return partial(FastSession, self.fast)

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        """Up to ``samples`` answers to each question; none to one that is too long."""
        out: list[list[Words]] = [[] for _ in questions]
        jobs = [job for n, q in enumerate(questions) for job in self._jobs(n, q, samples)]
        count = len(jobs) * samples
        jobs.sort(key=lambda j: len(j.tokens))
        workers = min(self.workers, len(jobs), count // _TOGETHER)
        made: dict[tuple[int, int], Words | None] = {}
        if workers > 1:
            made = self._forked(jobs, count, questions, vtemps, workers)
        else:
            _one_thread()
            for key, words in self._run(self._begin(), jobs, questions, vtemps):
                made[key] = words
                self.told(len(made), count)
        for job in jobs:
            every = (made[job.question, sample] for sample in range(samples))
            out[job.question] += [words for words in every if words is not None]
        return out

    def _jobs(self, n: int, question: RegionText, samples: int) -> Iterator[_Job]:
        asked = tokenizer.encode(question.words, self.model.config.vocab)
        tokens = (tokenizer.BOS, *asked, tokenizer.ANSWER)
        most = answer_limit(len(tokens))
        if len(tokens) + 32 > self.model.config.context:
            return
        most = min(most, self.model.config.context - len(tokens) - 1)
        yield _Job(n, 0, samples, tokens, most)

    def _forked(
        self,
        jobs: Sequence[_Job],
        count: int,
        questions: Sequence[RegionText],
        vtemps: Sequence[int],
        workers: int,
    ) -> dict[tuple[int, int], Words | None]:
        """Forked workers: each process takes every n-th job, and returns only words.  UsageError
        SX0888 if one dies, again when it is alone."""
        begin = self._begin()  # before forking, once for all
        done = multiprocessing.get_context("fork").Value("l", 0)

        def run(part: int) -> list[Answer]:
            out: list[Answer] = []
            for answer in self._run(begin, jobs[part::workers], questions, vtemps):
                out.append(answer)
                with done.get_lock():
                    done.value += 1
            return out

        lost = UsageError("SX0888", "the processes that a model answered in died")
        with _Telling(lambda: self.told(done.value, count)) as telling:
            # The second part is asked for when the processes run: none inherits the thread.
            parts = (part for part in range(workers) if not part or telling.start())
            first = Begin(_begin_process, (run,))
            work = in_order(Place(workers), _work, parts, lost=lost, begin=first)
            with contextlib.closing(work):
                return {key: words for part in work for key, words in part}

    def _run(
        self,
        begin: NewSession,
        jobs: Sequence[_Job],
        questions: Sequence[RegionText],
        vtemps: Sequence[int],
    ) -> Iterator[Answer]:
        if not jobs:
            return
        length = max(len(j.tokens) + j.most for j in jobs) + 1
        slots = min(SLOTS, len(jobs) * jobs[0].samples)
        session = begin(slots, length)
        waiting = list(jobs)  # from its end: the longest first, to leave few at the end
        running: list[_Writing] = []
        question, known = -1, None  # answers to one question begin consecutively
        while running or waiting:
            fresh: list[_Writing] = []
            rows = len(running)
            while waiting and len(running) + len(fresh) < slots and rows < ROWS:
                job = waiting.pop()
                if known is None or question != job.question:
                    question = job.question
                    known = TokenMask(questions[question], vtemps[question])
                state = AnswerAutomaton(questions[question], job.most, vtemps[question], known)
                for word in job.begun:
                    state.take(word)
                fresh.append(_Writing(job, state, [*job.begun], _random(self.seed, job)))
                rows += len(job.tokens) + len(job.begun)
            logits = session.advance(
                [w.words[-1] for w in running], [(*w.job.tokens, *w.job.begun) for w in fresh]
            )
            running += fresh
            near = [w for row, w in zip(logits, running, strict=True) if not w.take(row, self.fast)]
            if near and self.fast is not None:
                again = self.fast.again([(*w.job.tokens, *w.words) for w in near])
                for row, writing in zip(again, near, strict=True):
                    writing.take(row, None)
            for writing in _ended(running, session):
                job = writing.job
                yield (job.question, job.sample), tuple(tokenizer.decode(writing.words))
                if not job.sample:
                    waiting += _others(writing)


def _others(first: _Writing) -> Iterator[_Job]:
    """The further answers to a question, the last first, from the record of the first."""
    job = first.job
    near = sorted(first.second)[: job.samples - 1]
    for sample in range(job.samples - 1, 0, -1):
        begun: tuple[int, ...] = ()
        if sample <= len(near):
            _, place, word = near[sample - 1]
            begun = (*first.words[:place], word)
        yield replace(job, sample=sample, begun=begun)


@dataclass(slots=True)
class _Writing:
    """An answer under construction.  For the first answer to a question, ``second`` records by how
    much the likeliest word was ahead, at which place, and the second likeliest word."""

    job: _Job
    state: AnswerAutomaton
    words: list[int]
    random: np.random.Generator
    doubts: int = 0
    second: list[tuple[float, int, int]] = field(default_factory=list[tuple[float, int, int]])

    def take(self, logits: Floats, fast: Fast | None) -> bool:
        """Takes the next word; words without an alternative are taken all the same, because the
        model must read them.  False if ``fast`` cannot tell which is the likeliest."""
        allowed = sorted(self.state.allowed())
        word = allowed[0]
        if len(allowed) > 1:
            scores = logits[allowed]
            if self.job.sample and not self.job.begun:
                word = draw(logits, allowed, self.random, TEMPERATURE)
            elif self.job.sample:
                word = allowed[int(scores.argmax())]
            elif fast is not None and self.doubts < _DOUBTS and fast.near(*_two(scores)):
                self.doubts += 1
                return False
            else:
                best = int(scores.argmax())
                word = allowed[best]
                if self.job.samples > 1:
                    ahead = float(scores[best])
                    scores[best] = -np.inf
                    other = int(scores.argmax())
                    gap = ahead - float(scores[other])
                    self.second.append((gap, len(self.words), allowed[other]))
        self.state.take(word)
        self.words.append(word)
        return True


def _two(scores: Floats) -> tuple[float, float]:
    """The two highest scores."""
    next_, best = np.partition(scores, len(scores) - 2)[-2:]
    return float(best), float(next_)


def _ended(running: list[_Writing], session: Session | FastSession) -> Iterator[_Writing]:
    """Removes finished answers; as in the session, the last one moves into a freed place."""
    at = 0
    while at < len(running):
        writing = running[at]
        if not writing.state.done:
            at += 1
            continue
        yield writing
        session.drop(at)
        last = running.pop()
        if at < len(running):
            running[at] = last


def _random(seed: int, job: _Job) -> np.random.Generator:
    """Seeded by the question alone, so batching does not change answers."""
    data = hashlib.blake2b(repr((seed, job.sample, job.tokens)).encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(data, "little"))


class _Telling:
    """Calls a function from time to time, in a thread, from its start until the end."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._often, daemon=True)

    def __enter__(self) -> Self:
        return self

    def start(self) -> bool:
        """True; once is enough."""
        if self._thread.ident is None:
            self._thread.start()
        return True

    def _often(self) -> None:
        while not self._ended.wait(_TELL_S):
            self._tell()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._tell()


class _Shared:
    """State of a forked process."""

    run: Callable[[int], list[Answer]] | None = None


_shared = _Shared()


def _begin_process(run: Callable[[int], list[Answer]]) -> None:
    _one_thread()
    _shared.run = run


def _work(part: int) -> list[Answer]:
    assert _shared.run is not None
    return _shared.run(part)


def _blas() -> ctypes.CDLL | None:
    """NumPy's OpenBLAS library."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in sorted(folder.glob("libscipy_openblas*.so*")):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(str(path))
    return None


def _one_thread() -> None:
    """Limits each process to one core: products of small matrices do not parallelise well, least of
    all when cores are busy and threads wait for each other."""
    library = _blas()
    with contextlib.suppress(AttributeError):
        if library is not None:
            library.scipy_openblas_set_num_threads64_(1)


def digest_of_weights(files: Iterable[Path]) -> str:
    """What makes two models different, for their names."""
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        with path.open("rb") as stream:
            while part := stream.read(1 << 24):
                digest.update(part)
    return digest.hexdigest()


def check_vocabulary(folder: Path) -> None:
    """ModelError SX1005 if a checkpoint's vocabulary is no version of the block language's,
    whatever its architecture; SX1001 and SX1003 if its config.json cannot be read."""
    vocab = read_json(folder).get("vocab_size")
    if vocab not in tokenizer.VERSIONS:
        *older, words = tokenizer.VERSIONS
        text = f"{vocab} words; the block language has {words}, before {', '.join(map(str, older))}"
        raise ModelError("SX1005", text, Where(str(folder)))
    try:
        about = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        digest = str(about["vocabulary"])
    except (OSError, ValueError, KeyError, TypeError):
        return  # made elsewhere: only the number of words can be checked
    if digest != tokenizer.digest_of_size(vocab):
        raise ModelError("SX1005", "trained for another vocabulary", Where(str(folder)))


__all__ = ["BlockModel", "answer_limit", "check_vocabulary", "digest_of_weights"]

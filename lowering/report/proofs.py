"""The verdicts on kernels' blocks, in several processes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import click

from sassxlate.errors import SassxlateError, UsageError
from sassxlate.executors import Place, in_order
from sassxlate.lowering.report.judged import Judged, ProofSettings
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.notes import shows_progress

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel
    from sassxlate.lowering.select.translated import Translated
    from sassxlate.lowering.verify import BlockPair, Verdict
    from sassxlate.lowering.verify.block.of_kernel import Found

_PART = 6400  # bytes of SASS per work item
_QUIET_S = 2.0  # seconds before progress is shown


class VerdictCache(Protocol):
    """Stores verdicts between runs."""

    def key(self, block: BlockPair, settings: object) -> str:
        """The key of everything that the verdict on the block depends on."""
        ...

    def read(self, name: str) -> Verdict | None:
        """The verdict under a key, if there is one."""
        ...

    def write(self, name: str, verdict: Verdict) -> None:
        """Keeps a verdict under a key."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """A work item: every ``of``-th block of a kernel, from number ``part`` on."""

    kernel: int
    part: int
    of: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The blocks of a part, or why the kernel is refused."""

    judged: tuple[Judged, ...]
    refused: SassxlateError | None = None


@dataclass(slots=True)
class _Job:
    """The state that processes inherit."""

    kernels: Sequence[tuple[Cubin, Kernel]] = ()
    made: Sequence[Translated | SassxlateError] | None = None
    settings: ProofSettings = field(default_factory=ProofSettings)
    kept: VerdictCache | None = None
    target: Target = DEFAULT


_job = _Job()


def judge(found: Found, settings: ProofSettings, kept: VerdictCache | None) -> Judged:
    """The verdict on one block, kept or new."""
    from sassxlate.lowering.verify import Refuted, verify
    from sassxlate.lowering.verify.block.counterexample import explain_counterexample

    started = time.process_time()
    name = "" if kept is None else kept.key(found.block, settings)
    verdict = None if kept is None else kept.read(name)
    was = verdict is not None
    if verdict is None:
        verdict = verify(
            found.block, timeout_ms=settings.timeout_ms, vectors=settings.vectors, tested=True
        )
        if kept is not None:
            kept.write(name, verdict)
    ms = 1000 * (time.process_time() - started)
    lines = explain_counterexample(found.block, verdict) if isinstance(verdict, Refuted) else ()
    count = len(found.block.sass)
    return Judged(found.index, found.start, count, verdict, round(ms, 2), was, tuple(lines))


def judge_kernel(
    translated: Translated, settings: ProofSettings, kept: VerdictCache | None
) -> Iterator[Judged]:
    """The verdicts on the blocks that are not empty."""
    from sassxlate.lowering.verify.block.of_kernel import blocks

    for found in blocks(translated):
        if found.block.sass:
            yield judge(found, settings, kept)


@lru_cache(maxsize=1)
def _found(kernel: int) -> tuple[Found, ...]:
    from sassxlate.lowering.pipeline import translate_kernel
    from sassxlate.lowering.verify.block.of_kernel import blocks

    if _job.made is None:
        cubin, k = _job.kernels[kernel]
        made = translate_kernel(cubin, k.name, target=_job.target, placed=True)
    else:
        there = _job.made[kernel]
        if isinstance(there, SassxlateError):
            raise there
        made = there
    return tuple(f for f in blocks(made) if f.block.sass)


def _work(part: Part) -> Answer:
    try:
        found = _found(part.kernel)[part.part :: part.of]
    except SassxlateError as error:
        return Answer((), error)
    return Answer(tuple(judge(f, _job.settings, _job.kept) for f in found))


def _parts(jobs: int) -> list[Part]:
    out: list[Part] = []
    for n, (_, kernel) in enumerate(_job.kernels):
        of = min(jobs, 1 + len(kernel.code) // _PART)
        out += [Part(n, i, of) for i in range(of)]
    return out


def judge_all(
    kernels: Sequence[tuple[Cubin, Kernel]],
    settings: ProofSettings,
    kept: VerdictCache | None,
    jobs: int,
    made: Sequence[Translated | SassxlateError] | None = None,
    target: Target = DEFAULT,
) -> Generator[Answer, None, None]:
    """The answers for each kernel, in order.  Nothing is left running when the caller stops.

    ``made`` has the kernels' translations, or why there is none; without it, each is translated for
    ``target`` by the rules.  An engine's are made once: processes that each ask it could get
    different code.

    Raises:
        UsageError: SX0888, a part's processes died, again when it was tried alone.
    """
    _job.kernels, _job.settings, _job.kept = kernels, settings, kept
    _job.made, _job.target = made, target
    _found.cache_clear()
    parts = _parts(jobs)
    if jobs == 1 or len(parts) == 1:
        yield from _gathered(parts, map(_work, parts))
        return
    lost = UsageError("SX0888", "the processes that proved some blocks died")
    # What the processes share, they inherit.
    place = Place(min(jobs, len(parts)))
    with contextlib.closing(in_order(place, _work, parts, lost=lost)) as answers:
        yield from _gathered(parts, answers)


def _gathered(parts: Sequence[Part], answers: Iterator[Answer]) -> Iterator[Answer]:
    """Merges the parts of a kernel."""
    progress = _Progress(len(parts))
    mine: list[Judged] = []
    try:
        for part, answer in zip(parts, answers, strict=True):
            progress.step(len(answer.judged))
            mine += answer.judged
            if part.part == part.of - 1:
                progress.clear()
                mine.sort(key=lambda j: j.start)
                yield Answer(tuple(mine), answer.refused)
                mine = []
    finally:
        progress.clear()


class _Progress:
    """A progress line on the terminal, once the proof takes long."""

    def __init__(self, parts: int) -> None:
        self.parts, self.done, self.blocks = parts, 0, 0
        self.started = time.monotonic()
        self.visible = False

    def step(self, blocks: int) -> None:
        self.done += 1
        self.blocks += blocks
        if shows_progress() and time.monotonic() - self.started > _QUIET_S:
            self.visible = True
            click.echo(f"\r{self.done} of {self.parts}, {self.blocks} blocks", err=True, nl=False)

    def clear(self) -> None:
        if self.visible:
            self.visible = False
            click.echo("\r\x1b[K", err=True, nl=False)

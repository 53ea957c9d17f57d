"""Translates and compiles the kernels of files before a program runs: `sassxlate warm`."""

from __future__ import annotations

import contextlib
import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import Cache, remove_abandoned
from sassxlate.runtime_shim.service.early.preparation import Preparation
from sassxlate.runtime_shim.service.engine import Engine
from sassxlate.runtime_shim.service.jobs import Answer, Job
from sassxlate.runtime_shim.service.scheduler import Scheduler, default_width
from sassxlate.runtime_shim.service.work import Work

_LOOK_S = 0.5
_FIRST_ESTIMATE = 3  # kernels


@dataclass(frozen=True, slots=True)
class Warmed:
    """How far it came: kernels that are done, of how many known; those that are refused; whether
    it was interrupted; and what went wrong, a line each."""

    done: int
    kernels: int
    refused: int
    interrupted: bool
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known so far; ``left_s`` is an estimate in seconds, None if there is none yet."""

    images_done: int
    images: int
    done: int
    kernels: int
    elapsed_s: float
    left_s: float | None


def warm(
    files: Sequence[Path],
    cache: Cache,
    engine: Engine,
    *,
    compiles: bool,
    record: str | None = None,
    patterns: tuple[str, ...] = (),
    device: int = 0,
    asked: int = 0,
    width: int | None = None,
    job_limit_s: float,
    told: Callable[[Progress], None],
) -> Warmed:
    """Prepare the kernels of files (of a record in the cache, only those; with ``patterns``, only
    those whose names match one), in processes of its own, ``width`` at a time (by default as many
    as there are cores).

    Ctrl-C (KeyboardInterrupt) ends it; what is done is in the cache then, whole.
    """

    def spare() -> Cache:
        root = paths.private_dir(paths.runtime_dir() / "cache")
        return Cache(root, cache.tag, cache.cap)

    def finished(job: Job, answer: Answer) -> None:
        if job.done is not None:
            job.done(answer)

    work = Work(cache, engine, spare)
    with selectors.DefaultSelector() as selector:
        scheduler = Scheduler(
            work,
            selector,
            width or default_width(),
            job_limit_s,
            finished=finished,
            lost=partial(remove_abandoned, cache.root, cache.tag),
            held=tuple,
            gone=partial(work.lost, job_limit_s),
        )
        state = Preparation(
            scheduler.submit, compiles, record, patterns, urgent=True, device=device, asked=asked
        )
        interrupted = False
        try:
            _loop(state, scheduler, selector, files, told)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            # A second Ctrl-C is not to leave processes.
            with contextlib.suppress(KeyboardInterrupt):
                scheduler.end()
            scheduler.end()
    return Warmed(
        state.kernels_done, state.kernels, state.refused, interrupted, tuple(state.faults)
    )


def _loop(
    state: Preparation,
    scheduler: Scheduler,
    selector: selectors.BaseSelector,
    files: Sequence[Path],
    told: Callable[[Progress], None],
) -> None:
    started = time.monotonic()
    state.begin(list(files))
    while not state.ended:
        scheduler.dispatch()
        for key, events in selector.select(_LOOK_S):
            key.data(events)
        scheduler.kill_overdue()
        told(progress_of(state, time.monotonic() - started))


def progress_of(state: Preparation, elapsed: float) -> Progress:
    """How far it came in ``elapsed`` seconds."""
    left = None
    if state.kernels_done >= _FIRST_ESTIMATE and not state.files and state.images_done:
        # Images that are not read yet hold as many kernels as the others.
        kernels = state.kernels * state.images / state.images_done
        left = elapsed * (kernels - state.kernels_done) / state.kernels_done
    return Progress(
        state.images_done, state.images, state.kernels_done, state.kernels, elapsed, left
    )


__all__ = ["Progress", "Warmed", "progress_of", "warm"]

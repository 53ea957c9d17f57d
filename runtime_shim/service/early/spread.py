"""`sassxlate warm --cluster`: the kernels of files are prepared by workers of a Dask cluster.

This process reads the files and writes the manifests.  A worker finds the files under the same
paths, has a cache of its own while the work lasts, and answers with the files that it wrote for a
kernel; they are written to the cache here.  So the machines need not share a cache.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sassxlate.errors import ServiceError
from sassxlate.executors import Begin, Place, work_through
from sassxlate.lowering.target import target_named
from sassxlate.runtime_shim.cache.keys import host_key
from sassxlate.runtime_shim.cache.store import Cache, name_key
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service.early.preparation import Preparation
from sassxlate.runtime_shim.service.early.warm import Progress, Warmed, progress_of
from sassxlate.runtime_shim.service.engine import default_engine
from sassxlate.runtime_shim.service.jobs import Answer, Job, Request
from sassxlate.runtime_shim.service.work import Work, failure

Written = tuple[str, str, bytes]  # area, name, content


def identity(target: str) -> str:
    """What the workers must have in common with this machine: our code, and the instruction set
    that host code is compiled for."""
    from sassxlate.lowering.emulate.options import host_isa

    return f"{cache_tag(target)} {host_isa()}"


# --- on a worker ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """A kernel to prepare, and the request that registers its module."""

    part: Request
    ahead: Request


class _Recording(Cache):
    """A cache that remembers what was written to it."""

    def __init__(self, root: Path, tag: str) -> None:
        super().__init__(root, tag)
        self.written: list[Written] = []

    def write(self, area: str, name: str, data: bytes) -> Path:
        self.written.append((area, name, data))
        return super().write(area, name, data)


@dataclass(slots=True)
class _Worker:
    cache: _Recording
    work: Work
    parts: set[str] = field(default_factory=set[str])

    def do(self, task: _Task) -> tuple[Answer, list[Written]]:
        part = repr(sorted(task.part.items()))
        if part not in self.parts:
            answer = self.work.run(task.part)
            if not answer["ok"]:
                return answer, []
            self.parts.add(part)
        self.cache.written.clear()
        answer = self.work.run(task.ahead)
        return answer, list(self.cache.written)


_worker: _Worker | None = None


def _begin(target: str) -> None:
    global _worker
    root = Path(tempfile.mkdtemp(prefix="sassxlate-warm-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    cache = _Recording(root, cache_tag(target))
    _worker = _Worker(cache, Work(cache, default_engine(target_named(target)), lambda: cache))


def _do(task: _Task) -> tuple[Answer, list[Written]]:
    assert _worker is not None
    return _worker.do(task)


# --- here ----------------------------------------------------------------------------------------


def warm_on_cluster(
    files: Sequence[Path],
    cache: Cache,
    target: str,
    place: Place,
    *,
    compiles: bool,
    record: str | None = None,
    patterns: tuple[str, ...] = (),
    device: int = 0,
    asked: int = 0,
    told: Callable[[Progress], None],
) -> Warmed:
    """As :func:`.warm.warm`, on a cluster.  No limit of time ends a kernel's compiler.

    Raises:
        UsageError: the cluster cannot be used.
        ServiceError: SX0907, a file of the cache cannot be written.
    """
    work = Work(cache, default_engine(target_named(target)), lambda: cache)
    queued: deque[Job] = deque()
    state = Preparation(
        queued.append, compiles, record, patterns, urgent=True, device=device, asked=asked
    )
    started = time.monotonic()
    try:
        state.begin(list(files))
        begin = Begin(_begin, (target,), uuid.uuid4().hex)
        waiting: dict[str, Job] = {}
        tasks = _tasks(work, queued, waiting)
        for done in work_through(place, _do, tasks, begin=begin):
            job = waiting.pop(_name(done.job.ahead))
            if done.result is None:
                answer = failure(ServiceError("SX0905", "every worker that prepared it died"))
            else:
                answer, written = done.result
                _keep(cache, written)
            _tell(job, answer)
            told(progress_of(state, time.monotonic() - started))
    except KeyboardInterrupt:
        return _warmed(state, interrupted=True)
    return _warmed(state, interrupted=False)


def _tasks(work: Work, queued: deque[Job], waiting: dict[str, Job]) -> Iterator[_Task]:
    """Does what is to be done here, and gives the kernels that the cache lacks."""
    parts: dict[str, Request] = {}
    while queued:
        job = queued.popleft()
        if job.request["op"] != "ahead":
            answer = work.run(job.request)
            if answer["ok"] and job.request["op"] == "part" and "key" in answer:
                # The names in a record are in this machine's cache alone.
                part = {k: v for k, v in job.request.items() if k != "record"}
                parts[str(answer["key"])] = part
            _tell(job, answer)
        elif (found := _there(work.cache, job.request)) is not None:
            _tell(job, found)
        else:
            waiting[_name(job.request)] = job
            yield _Task(parts[str(job.request["module"])], job.request)


def _name(request: Request) -> str:
    return f"{request['module']}-{name_key(str(request['kernel']))}"


def _there(cache: Cache, request: Request) -> Answer | None:
    """The answer if the cache has all that the request asks for."""
    stem = _name(request)
    if cache.read("kernel", f"{stem}.refused") is not None:
        return {"ok": True}
    code = cache.read("kernel", f"{stem}.hsaco")
    if code is None or cache.read("kernel", f"{stem}.launch") is None:
        return None
    key = host_key(code, str(request["kernel"]), False)
    if request.get("compile") and cache.read("host", f"{key}.sxh") is None:
        return None
    return {"ok": True}


def _keep(cache: Cache, written: Sequence[Written]) -> None:
    try:
        for area, name, data in written:
            cache.write(area, name, data)
    except OSError as error:
        place = os.fspath(error.filename or cache.root)
        raise ServiceError("SX0907", f"{place}: {error.strerror}") from error


def _tell(job: Job, answer: Answer) -> None:
    if job.done is not None:
        job.done(answer)


def _warmed(state: Preparation, *, interrupted: bool) -> Warmed:
    return Warmed(
        state.kernels_done, state.kernels, state.refused, interrupted, tuple(state.faults)
    )


def place_of(cluster: str, target: str) -> Place:
    """The cluster, for code of a target."""
    return Place(cluster=cluster, identity=partial(identity, target))


__all__ = ["identity", "place_of", "warm_on_cluster"]

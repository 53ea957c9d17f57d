"""Where hours of work run: processes of this machine, or the workers of a Dask cluster.

Both are executors of :mod:`concurrent.futures`: :class:`ProcessPoolExecutor`, and the one that
dask.distributed's client has (the extra ``cluster``).  :func:`work_through` hands work to either,
and gives a job whose worker died to another one.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Generic, TypeVar

from sassxlate.errors import UsageError
from sassxlate.processes import die_with_parent

Job = TypeVar("Job")
Result = TypeVar("Result")

_CONNECT_S = 10
_ADDRESS = re.compile(r"(?:tcp|tls)://(\[[^]]+\]|[^:/\s]+):(\d+)")
_AHEAD = 2  # jobs handed out per process, so that none waits for the next
_DASK_LOSES = 5  # results of one job, before it counts as lost
_END_S = 5.0  # for a job to end what it started, once the work is given up


@dataclass(frozen=True, slots=True)
class Place:
    """Where work runs: ``jobs`` processes here, or the workers of the Dask scheduler at ``cluster``
    (``tcp://host:8786``).

    ``identity`` is called here and in each worker: a worker whose answer differs has other code of
    ours, and refuses the work (UsageError SX0887).
    """

    jobs: int = 1
    cluster: str | None = None
    identity: Callable[[], str] | None = None


HERE = Place()  # one process: this one


@dataclass(frozen=True, slots=True)
class Begin:
    """What a process does once before its first job; ``key`` tells one beginning from another."""

    function: Callable[..., None]
    arguments: tuple[Any, ...] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Done(Generic[Job, Result]):
    """A job and its result; ``lost`` if every process that worked on it died."""

    job: Job
    result: Result | None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a worker of a cluster must know before a job."""

    identity: Callable[[], str] | None
    expected: str
    begin: Begin | None


# --- in a process --------------------------------------------------------------------------------


_one_at_a_time = threading.Lock()
_begun: set[str] = set()
_busy = False


class _GivenUp(BaseException):
    """The work was given up: a job is to end, and what it started."""


def _give_up(_number: int, _frame: FrameType | None) -> None:
    if not _busy:
        os._exit(0)
    raise _GivenUp


def _begin_process(begin: Begin | None) -> None:
    die_with_parent()
    # Ctrl-C is for the parent, which then ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _give_up)
    if begin is not None:
        begin.function(*begin.arguments)


def _in_process(function: Callable[[Job], Result], job: Job) -> Result:
    global _busy
    _busy = True
    try:
        return function(job)
    finally:
        _busy = False


def _on_cluster(terms: _Terms, function: Callable[[Job], Result], job: Job) -> Result:
    """A job on a worker of a cluster.  The solver and our tables are not for several threads: one
    job at a time, also on a worker that joined later with more of them."""
    with _one_at_a_time:
        key = f"{terms.expected} {terms.begin.key if terms.begin else ''}"
        if key not in _begun:
            if terms.identity is not None and terms.identity() != terms.expected:
                message = "a worker of the cluster has another version of sassxlate or of z3"
                raise UsageError("SX0887", message)
            if terms.begin is not None:
                terms.begin.function(*terms.begin.arguments)
            _begun.add(key)
        return function(job)


# --- executors -----------------------------------------------------------------------------------


def _client(address: str) -> Any:
    """The client of the scheduler at an address.

    Raises:
        UsageError: SX0885, dask.distributed is not installed; SX0886, no scheduler answers.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        message = "dask.distributed is missing: pip install 'sassxlate[cluster]'"
        raise UsageError("SX0885", message) from None
    url = _ADDRESS.fullmatch(address)
    if url is None:
        raise UsageError("SX0886", f"{address!r} is no address like tcp://HOST:PORT")
    try:
        # A client that finds none there keeps on trying, and leaves a thread.
        socket.create_connection((url[1].strip("[]"), int(url[2])), _CONNECT_S).close()
        return distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, OverflowError) as error:
        message = f"no Dask scheduler answers at {address}: {error}"
        raise UsageError("SX0886", message) from None


@contextlib.contextmanager
def _processes(jobs: int, begin: Begin | None) -> Generator[Executor]:
    context = multiprocessing.get_context("fork")
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, context, _begin_process, (begin,)) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            workers = set(multiprocessing.active_children()) - others
            for worker in workers:
                worker.terminate()
            end = time.monotonic() + _END_S
            for worker in workers:
                worker.join(max(0.0, end - time.monotonic()))
                worker.kill()
            raise


def work_through(
    place: Place,
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    begin: Begin | None = None,
    late: Callable[[], bool] = lambda: False,
) -> Generator[Done[Job, Result], None, None]:
    """The results of ``function`` for each job, as they come; no job is begun once ``late``
    says so.

    ``function`` and the jobs can be pickled.  Alone (one process, no cluster) the jobs run here.
    If a process dies, the jobs that were out run again, each in a process of its own; a cluster's
    scheduler gives them to other workers.  A job that kills those, too, is ``lost``.  What
    ``function`` raises is raised here.

    Raises:
        UsageError: SX0885, SX0886: the cluster cannot be used, or went away; SX0887.
    """
    left = iter(jobs)
    if place.cluster is not None:
        yield from _in_cluster(place, place.cluster, function, left, begin, late)
    elif place.jobs == 1:
        yield from _here(function, left, begin, late)
    else:
        yield from _in_processes(place.jobs, function, left, begin, late)


def in_order(
    place: Place,
    function: Callable[[Job], Result],
    jobs: Iterable[Job],
    *,
    lost: Exception,
    begin: Begin | None = None,
) -> Generator[Result, None, None]:
    """:func:`work_through`, but the results in the order of the jobs; raises ``lost`` if one is.

    Closing it ends the processes.
    """
    ready: dict[int, Result] = {}
    due = 0
    work = work_through(place, partial(_numbered, function), enumerate(jobs), begin=begin)
    with contextlib.closing(work):
        for done in work:
            if done.result is None:
                raise lost
            number, result = done.result
            ready[number] = result
            while due in ready:
                yield ready.pop(due)
                due += 1


def _numbered(function: Callable[[Job], Result], job: tuple[int, Job]) -> tuple[int, Result]:
    return job[0], function(job[1])


def _here(
    function: Callable[[Job], Result],
    left: Iterator[Job],
    begin: Begin | None,
    late: Callable[[], bool],
) -> Iterator[Done[Job, Result]]:
    if begin is not None:
        begin.function(*begin.arguments)
    while not late():
        for job in left:
            yield Done(job, function(job))
            break
        else:
            return


def _in_processes(
    many: int,
    function: Callable[[Job], Result],
    left: Iterator[Job],
    begin: Begin | None,
    late: Callable[[], bool],
) -> Iterator[Done[Job, Result]]:
    more = True
    while more and not late():
        out: dict[Future[Result], Job] = {}
        try:
            with _processes(many, begin) as pool:
                more = False
                yield from _served(pool, function, left, _AHEAD * many, late, out)
        except BrokenProcessPool:
            # A job killed its process (memory, a crash of the solver): which one is unknown.
            # Each is tried alone, and given up if that happens again.
            more = True
            for job in list(out.values()):
                yield in_own_process(function, job, begin)


def in_own_process(
    function: Callable[[Job], Result], job: Job, begin: Begin | None = None
) -> Done[Job, Result]:
    """The result of one job, in a new process; ``lost`` if that dies.  What ``function`` raises is
    raised here."""
    with _processes(1, begin) as pool:
        try:
            return Done(job, pool.submit(_in_process, function, job).result())
        except BrokenProcessPool:
            return Done(job, None, lost=True)


def _served(
    pool: Executor,
    function: Callable[[Job], Result],
    left: Iterator[Job],
    most: int,
    late: Callable[[], bool],
    out: dict[Future[Result], Job],
) -> Iterator[Done[Job, Result]]:
    """Keeps ``most`` jobs out; ``out`` holds those without a result when this raises."""
    ended = False
    while True:
        while not ended and len(out) < most and not late():
            for job in left:
                try:
                    out[pool.submit(_in_process, function, job)] = job
                except BrokenProcessPool:
                    # It was not begun, and must not be lost.
                    broken: Future[Result] = Future()
                    out[broken] = job
                    raise
                break
            else:
                ended = True
        if not out:
            return
        finished, _ = wait(out, return_when=FIRST_COMPLETED)
        for future in finished:
            result = future.result()
            yield Done(out.pop(future), result)


def _lost_by_dask(error: BaseException) -> bool:
    """Whether Dask's executor failed, and not the job: when the worker that has a result dies
    before the client looks at its state, the executor takes the result for an error (distributed
    2026.8)."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__") == "distributed.cfexecutor"


def _in_cluster(
    place: Place,
    address: str,
    function: Callable[[Job], Result],
    left: Iterator[Job],
    begin: Begin | None,
    late: Callable[[], bool],
) -> Iterator[Done[Job, Result]]:
    expected = place.identity() if place.identity else ""
    terms = _Terms(place.identity, expected, begin)
    with _client(address) as client:
        if any(threads != 1 for threads in client.nthreads().values()):
            message = f"a worker at {address} has several threads; start it with --nthreads 1"
            raise UsageError("SX0886", message)
        killed: type[BaseException] = importlib.import_module("distributed").KilledWorker
        # Each job counts, even if two are equal: pure functions' results would be shared.
        pool: Executor = client.get_executor(pure=False)
        out: dict[Future[Result], Job] = {}
        again: dict[Future[Result], int] = {}  # of jobs that Dask lost: how often
        ended = False
        try:
            while not ended or out:
                workers = max(1, len(client.nthreads()))
                while not ended and len(out) < 2 * _AHEAD * workers and not late():
                    for job in left:
                        out[pool.submit(_on_cluster, terms, function, job)] = job
                        break
                    else:
                        ended = True
                if not out:
                    break
                finished, _ = wait(out, return_when=FIRST_COMPLETED)
                for future in finished:
                    job = out.pop(future)
                    try:
                        done: Done[Job, Result] = Done(job, future.result())
                    except killed:
                        done = Done(job, None, lost=True)
                    except TypeError as error:
                        if not _lost_by_dask(error):
                            raise
                        times = again.pop(future, 0) + 1
                        if times < _DASK_LOSES:
                            future = pool.submit(_on_cluster, terms, function, job)
                            out[future], again[future] = job, times
                            continue
                        done = Done(job, None, lost=True)
                    yield done
        except (CancelledError, OSError) as error:
            message = f"the Dask scheduler at {address} went away: {error or 'work was cancelled'}"
            raise UsageError("SX0886", message) from None
        finally:
            for future in out:
                future.cancel()


__all__ = ["HERE", "Begin", "Done", "Place", "in_order", "in_own_process", "work_through"]

"""A worker pool fed by a producer process; nothing blocks on a full pipe.

The producer is one process, the workers are several; this process hands the jobs on.  A worker that
dies (memory, a crash of the solver) loses its job and is replaced; when this process dies, all
others die.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from sassxlate.errors import SassxlateError

Job = TypeVar("Job")
Done = TypeVar("Done")


def _alone() -> None:
    """Makes this process die with its parent; Ctrl-C is left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()


class Child:
    """A process, and the pipe to it."""

    def __init__(self, run: Callable[[Connection], None]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()

        def main() -> None:
            _alone()
            self.pipe.close()
            run(theirs)

        self.process = context.Process(target=main)
        self.process.start()
        theirs.close()

    def end(self) -> None:
        """Kills it if it is alive."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Producer(Generic[Job]):
    """A process that makes jobs one after the other until it is stopped."""

    def __init__(self, make: Callable[[Callable[[], bool]], Iterator[Job]]) -> None:
        self._stop: Any = multiprocessing.get_context("fork").Event()

        def run(pipe: Connection) -> None:
            try:
                for job in make(self._stop.is_set):
                    pipe.send(("job", job))
                pipe.send(("end", None))
            except SassxlateError as error:
                pipe.send(("error", (error.code, error.message)))
            except Exception as fault:
                pipe.send(("fault", f"{type(fault).__name__}: {fault}"))
                raise

        self.child = Child(run)
        self.open = True

    def stop(self) -> None:
        self._stop.set()

    def receive(self) -> tuple[str, Any]:
        """Its next message: ``job``, ``end``, ``error`` (code and message), or ``fault``."""
        try:
            kind, what = self.child.pipe.recv()
        except (EOFError, OSError):
            kind, what = "fault", "it was killed"
        if kind != "job":
            self.open = False
        return kind, what


class WorkerPool(Generic[Job, Done]):
    """Worker processes.  ``begin`` is called in each; the function that it returns does the
    jobs."""

    def __init__(self, count: int, begin: Callable[[], Callable[[Job], Done]]) -> None:
        def run(pipe: Connection) -> None:
            work = begin()
            while True:
                try:
                    job = pipe.recv()
                except EOFError:
                    return
                pipe.send(work(job))

        self._run = run
        self._idle = [Child(run) for _ in range(count)]
        self._busy: dict[Any, tuple[Child, Job]] = {}

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def busy(self) -> int:
        return len(self._busy)

    def give(self, job: Job) -> None:
        """Gives a job to an idle worker."""
        child = self._idle.pop()
        with contextlib.suppress(OSError):  # it has died: receive will detect that
            child.pipe.send(job)
        self._busy[child.pipe] = child, job

    def wait(
        self, producer: Producer[Job] | None, seconds: float
    ) -> tuple[bool, list[tuple[Job, Done | None]]]:
        """Waits for a message: whether one came from the producer, and finished jobs, with None
        if the worker died on one."""
        pipes: list[Any] = [*self._busy]
        if producer is not None and producer.open:
            pipes.append(producer.child.pipe)
        ready = wait(pipes, seconds)
        done: list[tuple[Job, Done | None]] = []
        produced = False
        for pipe in ready:
            if pipe not in self._busy:
                produced = True
                continue
            child, job = self._busy.pop(pipe)
            try:
                done.append((job, child.pipe.recv()))
            except (EOFError, OSError):
                done.append((job, None))
                child.end()
                child = Child(self._run)
            self._idle.append(child)
        return produced, done

    def end(self) -> None:
        """Kills all workers, busy or not."""
        for child in [*self._idle, *(c for c, _ in self._busy.values())]:
            child.end()
        self._idle.clear()
        self._busy.clear()


_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int | None = None) -> None:
    """Call in a forked child: the kernel kills it when its parent dies (Linux only).

    ``parent`` is the parent's process number: if it died before this call, the child ends here.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def processes_for(asked: int, items: int, size: int, part: int) -> int:
    """The number of processes to work in: as many as asked for, but one for each item at most.
    0 asks for one per core, but then each has at least ``part`` of the ``size`` of all items."""
    return max(1, min(items, asked or min(cores(), size // part)))


def idle_threads_sleep() -> None:
    """Call before torch is imported: its threads then sleep between two operations.  They spin
    otherwise, which takes four times the processor time on a machine that has other work."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


__all__ = [
    "Child",
    "Producer",
    "WorkerPool",
    "cores",
    "die_with_parent",
    "idle_threads_sleep",
    "processes_for",
]

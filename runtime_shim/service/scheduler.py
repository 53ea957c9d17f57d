"""Which job runs when: on all cores, what an application waits for first.

A job that comes later in :class:`~.jobs.Priority` never keeps one that comes first from a
processor: where none is free, its worker is stopped (SIGSTOP) until one is; where too many are
stopped, it is killed and its job begins again.  Guesses leave one core to the
application's own threads.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import selectors
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from sassxlate.errors import ServiceError
from sassxlate.runtime_shim.service.jobs import Answer, Job, Priority, Request
from sassxlate.runtime_shim.service.work import failure
from sassxlate.runtime_shim.service.workers import RETIRED, Performs, Worker, fork_worker

log = logging.getLogger("sassxlate.service")

_WORKER_BYTES = 512 << 20  # of the machine's memory, for each job at a time


def default_width() -> int:
    """Jobs at a time: the cores that this process may use, fewer where memory is short."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    return max(1, min(cores, memory // _WORKER_BYTES))


def _queues() -> dict[Priority, collections.deque[Job]]:
    return {priority: collections.deque() for priority in Priority}


def _failed(_request: Request, error: ServiceError) -> Answer:
    return failure(error)


@dataclass(slots=True, eq=False)
class Scheduler:
    """Jobs, queued and under way, and the workers that do them.

    ``finished`` is called with each job and its answer, ``lost`` with the process of each worker
    that has ended; ``held`` gives descriptors that workers must not hold open.
    """

    work: Performs
    selector: selectors.BaseSelector
    width: int
    job_limit_s: float
    finished: Callable[[Job, Answer], None]
    lost: Callable[[int], object]
    held: Callable[[], Iterable[int]]
    # The answer for the job of a lost worker: of a request and what happened.
    gone: Callable[[Request, ServiceError], Answer] = _failed
    counts: collections.Counter[str] = field(default_factory=collections.Counter[str])
    workers: list[Worker] = field(default_factory=list[Worker])
    queues: dict[Priority, collections.deque[Job]] = field(default_factory=_queues)

    # -- jobs

    def submit(self, job: Job) -> None:
        """Queue a job; :meth:`dispatch` starts it."""
        self.queues[job.priority].append(job)

    def running(self) -> list[Worker]:
        """The workers that have a job and a processor."""
        return [w for w in self.workers if w.job is not None and w.paused_at is None]

    def queued(self) -> Iterator[Job]:
        """The jobs that no worker has, in their order."""
        for queue in self.queues.values():
            yield from queue

    def jobs(self) -> list[Job]:
        """All jobs."""
        return [*(w.job for w in self.workers if w.job is not None), *self.queued()]

    def promote(self, job: Job, priority: Priority) -> None:
        """Let a job be as urgent as ``priority``, if it is less so."""
        if job.priority <= priority:
            return
        with contextlib.suppress(ValueError):
            self.queues[job.priority].remove(job)
            self.queues[priority].append(job)
        job.priority = priority

    def abandon(self, job: Job) -> bool:
        """No application waits any more: forget it if it is queued, else go on as with a guess;
        whether it was queued."""
        try:
            self.queues[job.priority].remove(job)
        except ValueError:
            job.priority = Priority.GUESS
            return False
        return True

    def drop(self, forget: Callable[[Job], bool]) -> list[Job]:
        """Forget queued jobs; those that were."""
        gone = [job for job in self.queued() if forget(job)]
        for job in gone:
            self.queues[job.priority].remove(job)
        return gone

    # -- workers

    def dispatch(self) -> None:
        """Start or continue what there is room for."""
        for priority in Priority:
            while self._start_one(priority):
                pass

    def _start_one(self, priority: Priority) -> bool:
        paused = next((w for w in self._paused() if w.job and w.job.priority == priority), None)
        if (paused is None and not self.queues[priority]) or not self._room(priority):
            return False
        if paused is not None:
            paused.resume()
            return True
        return self._begin(priority)

    def _paused(self) -> list[Worker]:
        return [w for w in self.workers if w.paused_at is not None]

    def _room(self, priority: Priority) -> bool:
        """Whether a job may begin; stops a less urgent one where that is needed."""
        running = self.running()
        if priority == Priority.GUESS:
            guesses = sum(w.job is not None and w.job.priority == priority for w in running)
            if guesses >= self.width - 1:
                return False
        if len(running) < self.width:
            return True
        less = [w for w in running if w.job is not None and w.job.priority > priority]
        if not less:
            return False
        victim = max(less, key=_cheapest)
        if len(self._paused()) < self.width:
            victim.pause()
            self.counts["paused"] += 1
        else:
            self._begin_again(victim)
        return True

    def _begin_again(self, worker: Worker) -> None:
        job, worker.job = worker.job, None
        self._end(worker)
        self.counts["preempted"] += 1
        if job is not None:
            self.queues[job.priority].appendleft(job)

    def _begin(self, priority: Priority) -> bool:
        worker = next((w for w in self.workers if w.job is None), None)
        if worker is None:
            try:
                worker = self._fork()
            except OSError as reason:
                return self._without_worker(priority, reason)
        job = self.queues[priority].popleft()
        try:
            worker.give(job)
        except OSError:
            worker.job = None
            self.queues[priority].appendleft(job)
            self._end(worker)
        return True

    def _without_worker(self, priority: Priority, reason: OSError) -> bool:
        """No process can be started: whether to go on with the queue."""
        if self.running():
            return False  # the next worker that is done will take it
        paused = self._paused()
        if paused:
            self._begin_again(paused[-1])
            return True
        job = self.queues[priority].popleft()
        text = f"no worker process can be started: {reason.strerror}"
        self.finished(job, failure(ServiceError("SX0913", text)))
        return True

    def _fork(self) -> Worker:
        selector = getattr(self.selector, "fileno", None)
        close = [
            *self.held(),
            *([] if selector is None else [int(selector())]),
            *(w.pipe.fileno() for w in self.workers),
        ]
        worker = fork_worker(self.work, close)
        self.workers.append(worker)
        self.selector.register(worker.pipe, selectors.EVENT_READ, partial(self._hear, worker))
        return worker

    def _hear(self, worker: Worker, _events: int) -> None:
        try:
            answer = worker.take()
        except (EOFError, ServiceError):
            self._lose(worker, "it ended", "SX0905")
            return
        if answer is not None and worker.job is not None:
            job, worker.job = worker.job, None
            if worker.paused_at is not None:  # it was stopped after its answer
                worker.resume()
            self.finished(job, answer)
            self.dispatch()

    def kill_overdue(self) -> None:
        """End workers whose jobs hang."""
        for worker in list(self.workers):
            if worker.overdue(self.job_limit_s):
                self._lose(worker, f"no answer within {self.job_limit_s:.0f} s", "SX0904")

    def _lose(self, worker: Worker, why: str, code: str) -> None:
        job, worker.job = worker.job, None
        how = self._end(worker)
        if job is not None and how == RETIRED:  # it was on its way out when the job was sent
            self.queues[job.priority].appendleft(job)
        elif job is not None:
            kernel = job.request.get("kernel", "")
            log.error("worker %d lost (%s, %s) on %s", worker.pid, why, how, job.request)
            text = f"the worker on {job.request.get('op')} {kernel} was lost: {why} ({how})"
            self.finished(job, self.gone(job.request, ServiceError(code, text)))
        self.dispatch()

    def _end(self, worker: Worker) -> str:
        self.workers.remove(worker)
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(worker.pipe)
        how = worker.end()
        self.lost(worker.pid)
        return how

    def end(self) -> None:
        """Kill all workers."""
        for worker in list(self.workers):
            self._end(worker)


def _cheapest(worker: Worker) -> tuple[int, float]:
    """Greatest for the worker that has the least urgent job, and of those the youngest."""
    job = worker.job
    return (job.priority, job.started) if job is not None else (len(Priority), time.monotonic())


__all__ = ["Scheduler", "default_width"]

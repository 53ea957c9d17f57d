"""The service's worker processes: forked from it once all is imported, one job each at a time.

A job may crash LLVM, hang or exhaust memory: that ends its worker, not the service.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from sassxlate.processes import die_with_parent
from sassxlate.runtime_shim.service import wire
from sassxlate.runtime_shim.service.jobs import Answer, Job, Request

RETIRED = "exit status 0"  # how a worker ends by itself: after an answer, never within a job
RETIRE_RSS = 1536 << 20  # bytes: a worker that grew past this makes room for a fresh one


class Performs(Protocol):
    """What a worker does for a request; see :class:`sassxlate.runtime_shim.service.work.Work`."""

    def run(self, request: Request, /) -> Answer: ...


def processor_time(pid: int) -> float:
    """Processor seconds of a process; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Bytes of memory that a process has; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def _groups_below(pid: int) -> list[int]:
    """The children of a process that lead a process group, as a compiler's do."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        return []
    found: list[int] = []
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(child) == child:
                found.append(child)
    return found


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process as the service sees it."""

    pid: int
    pipe: socket.socket
    began: int = -1  # a descriptor that ends once the process ends with the service; -1: it has
    reader: wire.FrameReader = field(default_factory=wire.FrameReader)
    job: Job | None = None
    used_before: float = 0.0  # processor seconds, when the job began
    paused_at: float | None = None  # of the monotonic clock; None: it runs

    def give(self, job: Job) -> None:
        """Send a job to the idle worker."""
        self.job = job
        job.started = time.monotonic()
        self.used_before = processor_time(self.pid)
        self.pipe.sendall(wire.encode(dict(job.request)))

    def _wait_until_it_began(self) -> None:
        if self.began >= 0:
            os.read(self.began, 1)
            os.close(self.began)
            self.began = -1

    def pause(self) -> None:
        """Stop the process, so that another has its processor; it keeps what it has done."""
        self._wait_until_it_began()  # stopped before, it would outlive a service that is killed
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)
        self.paused_at = time.monotonic()

    def resume(self) -> None:
        """Let the process continue."""
        if self.paused_at is not None and self.job is not None:
            self.job.started += time.monotonic() - self.paused_at
        self.paused_at = None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def used(self) -> float:
        """Processor seconds that the job has taken so far."""
        return processor_time(self.pid) - self.used_before

    def take(self) -> Answer | None:
        """The answer if it is complete; EOFError when the worker is gone."""
        try:
            data = self.pipe.recv(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        answers = self.reader.feed(data)
        return answers[0] if answers else None

    def overdue(self, limit_s: float) -> bool:
        """Whether the job hangs: it used ``limit_s`` processor seconds, or ran that long and is not
        waiting for a processor.

        On a busy machine a job takes many times as long, and must not be killed for that.
        """
        if self.job is None or self.paused_at is not None:
            return False
        passed = time.monotonic() - self.job.started
        if passed <= limit_s:
            return False
        used = self.used()
        # A quick compilation is the last resort: it has no limit.
        limited = not self.job.request.get("quick")
        return (limited and used >= 0.9 * limit_s) or used < 0.01 * passed

    def end(self) -> str:
        """Kill and reap the process, with the tools that it runs; returns how it ended, as text."""
        tools = _groups_below(self.pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        for group in tools:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self.pipe.close()
        if self.began >= 0:
            os.close(self.began)
            self.began = -1
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            return f"signal {-code}" if code < 0 else f"exit status {code}"
        return "gone"


def fork_worker(work: Performs, close: Iterable[int]) -> Worker:
    """Start a worker; ``close`` are the service's descriptors that it must not hold open."""
    ours, theirs = socket.socketpair()
    began, beginning = os.pipe()
    service = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        for descriptor in (began, beginning):
            os.close(descriptor)
        raise
    if pid == 0:
        status = 1
        try:
            die_with_parent(service)  # one that is stopped would stay for ever
            os.close(beginning)
            os.close(began)
            ours.close()
            for descriptor in close:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(
                signal.SIGINT, signal.SIG_IGN
            )  # of a terminal: this process's parent ends
            _serve(work, theirs)
            status = 0
        finally:
            os._exit(status)
    theirs.close()
    os.close(beginning)
    return Worker(pid, ours, began)


def _serve(work: Performs, pipe: socket.socket) -> None:
    with contextlib.suppress(OSError):
        os.nice(1)  # the application's own threads come first
    while (request := wire.receive(pipe)) is not None:
        answer: dict[str, Any] = work.run(request)
        pipe.sendall(wire.encode(answer))
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > RETIRE_RSS:
            return

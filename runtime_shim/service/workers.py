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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sassxlate.runtime_shim.service import wire
from sassxlate.runtime_shim.service.work import Answer, Request, Work

RETIRE_RSS = 1536 << 20  # bytes: a worker that grew past this makes room for a fresh one


@dataclass(slots=True)
class Job:
    """A request and the clients waiting for its answer."""

    request: Request
    waiting: list[Callable[[Answer], None]]
    started: float = 0.0


def _processor_time(pid: int) -> float:
    """Processor seconds of a process; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    reader: wire.FrameReader = field(default_factory=wire.FrameReader)
    job: Job | None = None
    used_before: float = 0.0  # processor seconds, when the job began

    def give(self, job: Job) -> None:
        """Send a job to the idle worker."""
        self.job = job
        job.started = time.monotonic()
        self.used_before = _processor_time(self.pid)
        self.pipe.sendall(wire.encode(dict(job.request)))

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
        if self.job is None:
            return False
        passed = time.monotonic() - self.job.started
        if passed <= limit_s:
            return False
        used = _processor_time(self.pid) - self.used_before
        return used >= 0.9 * limit_s or used < 0.01 * passed

    def end(self) -> str:
        """Kill and reap the process, with the tools that it runs; returns how it ended, as text."""
        tools = _groups_below(self.pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        for group in tools:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self.pipe.close()
        with contextlib.suppress(ChildProcessError):
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            return f"signal {-code}" if code < 0 else f"exit status {code}"
        return "gone"


def fork_worker(work: Work, close: Iterable[int]) -> Worker:
    """Start a worker; ``close`` are the service's descriptors that it must not hold open."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            ours.close()
            for descriptor in close:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _serve(work, theirs)
            status = 0
        finally:
            os._exit(status)
    theirs.close()
    return Worker(pid, ours)


def _serve(work: Work, pipe: socket.socket) -> None:
    with contextlib.suppress(OSError):
        os.nice(1)  # the application's own threads come first
    while (request := wire.receive(pipe)) is not None:
        answer: dict[str, Any] = work.run(request)
        pipe.sendall(wire.encode(answer))
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > RETIRE_RSS:
            return

"""Runs a tool: a limit on its time, its output and its files, and nothing of it is left over."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.processes import die_with_parent

OUTPUT_MAX = 64 << 10  # bytes kept of what a tool prints; the rest is read and dropped
_FILE_MAX = 1 << 30  # bytes of a file that a tool writes
_KEEP = ("PATH", "HOME", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a tool ended: its exit status, or minus the signal; what it printed, control characters
    replaced."""

    status: int
    output: str
    timed_out: bool


def run(command: Sequence[str], folder: Path, limit_s: float) -> Ran:
    """Runs a command in a folder, in a process group of its own, without input.

    After ``limit_s`` seconds the whole group is killed; what is left of it when the tool has ended
    is killed too.  It also dies with this process.  OSError if it cannot be started.
    """
    environment = {name: os.environ[name] for name in _KEEP if name in os.environ}
    deadline = time.monotonic() + limit_s
    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env={**environment, "LC_ALL": "C", "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_before,
    )
    try:
        output, ended = _collect(process, deadline)
    finally:
        # Not reaped yet, so the group's number cannot belong to anything else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    text = output.decode("utf-8", "replace")
    return Ran(process.returncode, "".join(c if _shows(c) else "?" for c in text), not ended)


def _shows(character: str) -> bool:
    return character.isprintable() or character in "\n\t"


def _before() -> None:
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = _FILE_MAX if hard == resource.RLIM_INFINITY else min(hard, _FILE_MAX)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))


def _collect(process: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bool]:
    """The output until the process ends; False if the deadline came first."""
    assert process.stdout is not None
    kept = bytearray()
    os.set_blocking(process.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            ended = _has_ended(process.pid)
            more = _read(process.stdout.fileno(), kept)
            if ended:
                # A child that it left may still hold the pipe: what is in it now is enough.
                return bytes(kept), True
            left = deadline - time.monotonic()
            if left <= 0:
                return bytes(kept), False
            if more is None:  # closed, but running
                time.sleep(min(left, 0.002))
            else:
                selector.select(min(left, 0.1))


def _read(pipe: int, kept: bytearray) -> bool | None:
    """Reads what is there, without waiting: whether something was; None at its end."""
    try:
        data = os.read(pipe, 1 << 16)
    except BlockingIOError:
        return False
    kept += data[: max(0, OUTPUT_MAX - len(kept))]
    return True if data else None


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

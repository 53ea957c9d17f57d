"""The process that LLVM runs in: started when it is first needed, kept for the next module, and
replaced once LLVM has ended it."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import IO

from sassxlate.lowering.tier.refusal import BACKEND, refused

_MODULE = "sassxlate.lowering.tier.compiler"
_SHOWN = 300  # characters of LLVM's message
_REASONS = ("Assertion `", "LLVM ERROR:", "error:", "UNREACHABLE", "*** Bad machine code")


class Ended(Exception):
    """The process ended before it answered.  The text says how."""


@dataclass(slots=True)
class _Compiler:
    """A running process.  ``said`` is what it writes to its standard error."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    said: IO[bytes]

    @classmethod
    def start(cls) -> _Compiler:
        """Raises OSError if there is no such process."""
        ours, theirs = socket.socketpair()
        said = os.fdopen(os.memfd_create("llvm"), "w+b")
        with theirs:
            fd = theirs.fileno()
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(fd)],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said, pass_fds=(fd,),
            )  # fmt: skip
        return cls(process, Connection(ours.detach()), said)

    def ask(self, target: tuple[str, str, str, bool], text: bytes) -> tuple[bool, bytes]:
        """Whether LLVM made a file, and that or its message.  Raises Ended."""
        start = self.said.seek(0, os.SEEK_END)
        try:
            self.pipe.send_bytes(json.dumps(target).encode())
            self.pipe.send_bytes(text)
            answer = self.pipe.recv_bytes()
        except (EOFError, OSError):
            raise Ended(self._ended(start)) from None
        return answer[0] == 1, answer[1:]

    def _ended(self, start: int) -> str:
        """How it ended, with the reason that it wrote since ``start``."""
        self.end()
        code = self.process.returncode
        if code < 0:
            with suppress(ValueError):
                how = signal.Signals(-code).name
                return f"{how}{self._line(start)}"
        return f"exit status {code}{self._line(start)}"

    def _line(self, start: int) -> str:
        self.said.seek(start)
        told = reason(self.said.read().decode("utf-8", "replace"))
        return f": {told}" if told else ""

    def end(self) -> None:
        """Closes the socket, which ends it; kills it if it does not end soon."""
        self.pipe.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def reason(text: str) -> str:
    """The line of LLVM's messages that says why it gave up, an assertion from that word on; empty
    if none does.  The first lines may be a whole function that it prints before."""
    for line in text.split("\n"):
        if any(word in line for word in _REASONS):
            return line[max(line.find("Assertion `"), 0) :].strip()
    return ""


_lock = threading.Lock()
_running: list[_Compiler] = []


def _at_end() -> None:
    while _running:
        _running.pop().end()


def _in_a_fork() -> None:
    """The process is its parent's, and so may be the lock."""
    global _lock
    _lock = threading.Lock()
    _running.clear()


atexit.register(_at_end)
os.register_at_fork(after_in_child=_in_a_fork)


def object_file(text: str, triple: str, cpu: str, features: str, listed: bool = False) -> bytes:
    """A relocatable file of the module, by a process of its own; ``listed``: with its assembly, as
    :func:`.passes.object_of`.

    Raises Refused SX0464 if LLVM refuses the module, or ends its process twice over it: once may
    be for another reason, as when memory was short for a moment.
    """
    data, target = text.encode(), (triple, cpu, features, listed)
    with _lock:
        try:
            made, answer = _once(target, data)
        except Ended:
            try:
                made, answer = _once(target, data)
            except Ended as again:
                raise refused(BACKEND, f"LLVM ended its process: {again}"[:_SHOWN]) from None
    if not made:
        message = " ".join(answer.decode("utf-8", "replace").split())
        raise refused(BACKEND, message[:_SHOWN])
    return answer


def _once(target: tuple[str, str, str, bool], text: bytes) -> tuple[bool, bytes]:
    compiler = _compiler()
    try:
        return compiler.ask(target, text)
    except Ended:
        _running.clear()
        compiler.said.close()
        raise


def _compiler() -> _Compiler:
    if not _running:
        try:
            _running.append(_Compiler.start())
        except OSError as error:
            raise refused(BACKEND, f"its process did not start: {error}") from error
    return _running[0]


__all__ = ["object_file", "reason"]

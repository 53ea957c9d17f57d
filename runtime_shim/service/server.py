"""The translation service: one process per user and socket, called by the native libraries.

A loop over sockets, in one thread, hands jobs to forked workers (:mod:`.scheduler`), so that no job
can stop it.  It ends by itself when there was no request for a while.  :mod:`.start` starts it.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import gc
import logging
import os
import selectors
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.errors import ServiceError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache import runs
from sassxlate.runtime_shim.cache.store import Cache, remove_abandoned, usage
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service import status, wire
from sassxlate.runtime_shim.service.ahead import Ahead
from sassxlate.runtime_shim.service.early.preparation import Preparation
from sassxlate.runtime_shim.service.engine import Engine
from sassxlate.runtime_shim.service.jobs import (
    Answer,
    Job,
    Key,
    Priority,
    Waiter,
    identity,
    kind_of,
)
from sassxlate.runtime_shim.service.request import checked, text_of
from sassxlate.runtime_shim.service.scheduler import Scheduler, default_width
from sassxlate.runtime_shim.service.work import Work, failure

log = logging.getLogger("sassxlate.service")

IDLE_S = 600.0
JOB_LIMIT_S = 120.0
_QUIET_S = 0.5  # without a request and a job, until what a first launch does without is imported
_JOBS = ("module", "translate", "compile", "stencils", "assemble", "link")
_OTHERS = ("ping", "tag", "stats", "status", "prepare", "upgrade", "stop")
_OF_KERNELS = ("translate", "compile")


@dataclass(slots=True, eq=False)
class _Client:
    """A connection; answers are sent when the socket is writable."""

    socket: socket.socket
    pid: int  # of the process at its other end
    reader: wire.FrameReader = field(default_factory=wire.FrameReader)
    out: bytearray = field(default_factory=bytearray)
    last: bool = False  # close once ``out`` is sent


class _Missing:
    """Work without a translator: it could not be imported."""

    def run(self, _request: object) -> Answer:
        text = "the translator cannot be imported; see service.log"
        return failure(ServiceError("SX0908", text))


class Service:
    """The loop.  ``engine`` makes the translator, for ``target``; it is called once, before the
    first job."""

    def __init__(
        self,
        listener: socket.socket,
        cache: Cache,
        engine: Callable[[], Engine],
        *,
        target: str,
        idle_s: float = IDLE_S,
        job_limit_s: float = JOB_LIMIT_S,
        workers: int | None = None,
        private: Sequence[int] = (),
    ) -> None:
        self._listener = listener
        self._cache = cache
        self._make_engine = engine
        self._target = target
        self._idle_s = idle_s
        # A signal (SIGTERM) must end the wait in select().
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        self._private = (
            *private,
            listener.fileno(),
            self._wake.fileno(),
            self._waker.fileno(),
        )
        self._selector = selectors.DefaultSelector()
        self._clients: set[_Client] = set()
        self._jobs: dict[Key, Job] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        self._broken = False
        self._scheduler = Scheduler(
            _Missing(),
            self._selector,
            workers or default_width(),
            job_limit_s,
            finished=self._finish,
            lost=partial(remove_abandoned, cache.root, cache.tag),
            held=lambda: (*self._private, *(c.socket.fileno() for c in self._clients)),
            counts=self._counts,
        )
        self._ahead = Ahead(cache, self._scheduler.width - 1)
        self._later: Callable[[], None] | None = None
        self._stopping = False
        self._active = time.monotonic()
        self._started = time.time()

    def run(self, record: str | None = None) -> None:
        """Serve until stopped, or idle for long; prepare an application's record first."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake, selectors.EVENT_READ, self._woken)
        # The imports take a while; requests of the application meanwhile wait in the socket.
        self._prepare()
        self._active = time.monotonic()
        remove_abandoned(self._cache.root, self._cache.tag)
        if record is not None and not self._broken:
            self.prepare(record)
        while not self._finished():
            heard = self._selector.select(self._patience())
            for key, events in heard:
                key.data(events)
            if not heard:
                self._import_the_rest()
            self._scheduler.kill_overdue()
        self._scheduler.end()
        self._jobs.clear()
        for client in list(self._clients):
            self._close(client)
        self._selector.close()

    def stop(self) -> None:
        """End when the jobs under way are done; may be called from a signal handler."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._waker.send(b"\0")

    def _woken(self, _events: int) -> None:
        with contextlib.suppress(OSError):
            self._wake.recv(4096)

    def _prepare(self) -> None:
        try:
            engine = self._make_engine()
            self._later = engine.later
            work = Work(self._cache, engine, self._spare)
            self._scheduler.work = work
            self._scheduler.gone = partial(work.lost, self._scheduler.job_limit_s)
        except Exception:
            # Without its translator it can only report that; the next start tries again.
            log.exception("the translator cannot be imported")
            self._broken = True
        gc.freeze()
        gc.enable()

    def _import_the_rest(self) -> None:
        """Once, when nothing is asked."""
        if self._later is None or self._stopping or self._scheduler.jobs():
            return
        later, self._later = self._later, None
        gc.disable()  # as for the imports of the start
        try:
            later()
        except Exception:
            log.exception("the compiler of host code cannot be imported")
        gc.freeze()
        gc.enable()

    def _spare(self) -> Cache:
        root = paths.private_dir(paths.runtime_dir() / "cache")
        return Cache(root, self._cache.tag, self._cache.cap)

    def _finished(self) -> bool:
        idle = time.monotonic() - self._active
        if self._stopping:
            self._scheduler.drop(lambda job: not job.waiting)
        jobs = self._scheduler.jobs()
        busy = any(job.waiting or not self._stopping for job in jobs)
        busy = busy or any(c.out for c in self._clients)
        return not busy and (self._stopping or idle > self._idle_s)

    def _patience(self) -> float:
        if self._stopping:
            return 0.05
        if self._scheduler.jobs():
            return 1.0
        if self._later is not None:
            return _QUIET_S
        return max(0.05, min(60.0, self._idle_s - (time.monotonic() - self._active) + 0.01))

    # -- clients

    def _accept(self, _events: int) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(0.05)  # descriptors may be freed; until then it would spin
            return
        connection.setblocking(False)
        client = _Client(connection, _process_of(connection))
        self._clients.add(client)
        self._watch(client)
        self._active = time.monotonic()

    def _watch(self, client: _Client) -> None:
        events = selectors.EVENT_WRITE if client.out else 0
        if not client.last:
            events |= selectors.EVENT_READ
        with contextlib.suppress(KeyError):
            self._selector.unregister(client.socket)
        if events:
            self._selector.register(client.socket, events, partial(self._talk, client))
        else:
            self._close(client)

    def _talk(self, client: _Client, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE and client.out:
                del client.out[: client.socket.send(client.out)]
                self._watch(client)
            if events & selectors.EVENT_READ and client in self._clients:
                data = client.socket.recv(1 << 16)
                if not data:
                    self._close(client)
                    return
                for message in client.reader.feed(data):
                    self._message(client, message)
        except BlockingIOError:
            pass
        except OSError:
            self._close(client)
        except ServiceError as error:
            client.last = True
            self._answer(client, failure(error))

    def _message(self, client: _Client, message: dict[str, Any]) -> None:
        """Answers invalid requests too; no message can end the service."""
        try:
            self._request(client, checked(message))
        except ServiceError as error:
            self._answer(client, failure(error))
        except Exception as fault:
            log.exception("a message failed")
            text = f"internal error: {type(fault).__name__}"
            self._answer(client, failure(ServiceError("SX0908", text)))

    def _close(self, client: _Client) -> None:
        self._clients.discard(client)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.socket)
        client.socket.close()
        self._withdraw(client)

    def _withdraw(self, client: _Client) -> None:
        """What it alone waited for is as urgent as a guess from now on, or forgotten."""
        mine = [
            (key, job)
            for key, job in self._jobs.items()
            if any(waiter.client is client for waiter in job.waiting)
        ]
        for key, job in mine:
            job.waiting = [w for w in job.waiting if w.client is not client]
            if not job.waiting and self._scheduler.abandon(job):
                del self._jobs[key]
        if mine:
            self._scheduler.dispatch()

    def _answer(self, client: _Client, answer: Answer) -> None:
        if client not in self._clients:
            return  # the client is gone
        client.out += wire.encode(answer)
        self._watch(client)

    # -- requests

    def _request(self, client: _Client, request: dict[str, Any]) -> None:
        self._active = time.monotonic()
        op = str(request.get("op"))
        self._counts[op if op in (*_JOBS, *_OTHERS) else "unknown"] += 1
        if self._stale(request):
            self._stopping = True
            error = ServiceError(
                "SX0911",
                "the service runs another version of the translator, or for another target",
            )
            self._answer(client, {**failure(error), "restart": True})
        elif op in _JOBS:
            self._enqueue(client, op, request)
        elif op == "ping":
            self._answer(client, {"ok": True, "pid": os.getpid(), "tag": self._cache.tag})
        elif op == "tag":
            self._answer_tag(client)
        elif op == "stats":
            self._answer(client, self._stats())
        elif op == "status":
            self._answer(client, self._status())
        elif op == "prepare":
            self.prepare(str(request.get("module")))
            self._answer(client, {"ok": True})
        elif op == "upgrade":
            if not self._broken and identity(request) not in self._jobs:
                self._submit(Job(request, [], Priority.BETTER))
                self._scheduler.dispatch()
            self._answer(client, {"ok": True})
        elif op == "stop":
            self._stopping = True
            self._answer(client, {"ok": True})
        else:
            self._answer(client, failure(ServiceError("SX0903", f"no operation {op[:40]!a}")))

    def _stale(self, request: dict[str, Any]) -> bool:
        if request.get("op") == "tag" and request.get("target", RDNA3[0]) != self._target:
            return True
        tag = request.get("tag")  # the target is a part of it
        return isinstance(tag, str) and tag != self._cache.tag

    def _answer_tag(self, client: _Client) -> None:
        # Sources may have changed since the start: who asks wants what a new service would say.
        now = cache_tag(self._target)
        answer: Answer = {"ok": True, "tag": now, "cache": text_of(self._cache.root)}
        if now != self._cache.tag:
            self._stopping = True
            answer["restart"] = True
        self._answer(client, answer)

    def _stats(self) -> Answer:
        return {
            "ok": True,
            "pid": os.getpid(),
            "tag": self._cache.tag,
            "cache": text_of(self._cache.root),
            "uptime_s": round(time.time() - self._started, 3),
            "workers": len(self._scheduler.workers),
            "queued": sum(1 for _ in self._scheduler.queued()),
            "requests": dict(self._counts),
            "usage": {
                u.area: {"files": u.files, "bytes": u.bytes} for u in usage(self._cache.root)
            },
        }

    def _status(self) -> Answer:
        return {
            "ok": True,
            "pid": os.getpid(),
            "tag": self._cache.tag,
            "target": self._target,
            "cache": text_of(self._cache.root),
            "uptime_s": round(time.time() - self._started, 3),
            "requests": dict(self._counts),
            **status.of(self._scheduler),
        }

    def prepare(self, record: str) -> None:
        """Prepare the kernels of an application's record, as far as its files have changed."""
        try:
            known = runs.read_own(runs.record_path(self._cache.root, record))
        except (OSError, ServiceError) as error:
            log.info("%s", error)
            return
        files = [Path(one.file) for one in known.outdated(self._cache.tag)]
        device = max((one.cc for one in known.used), default=0)
        state = Preparation(self._submit_new, known.compiled, record, device=device)
        state.begin([file for file in dict.fromkeys(files) if file.is_file()])
        self._scheduler.dispatch()

    def _submit_new(self, job: Job) -> None:
        if self._stopping:
            return
        if (there := self._jobs.get(identity(job.request))) is None:
            self._submit(job)
            self._counts["prepared"] += job.request["op"] == "ahead"
        elif job.done is not None:
            there.waiting.append(Waiter(job.done))

    def _enqueue(
        self, client: _Client, op: str, request: dict[str, Any], since: float | None = None
    ) -> None:
        if self._broken:
            self._stopping = True
            self._answer(client, _Missing().run(request))
            return
        reply = partial(self._answer, client)
        since = since or time.monotonic()
        waiter = Waiter(reply, client, client.pid, since)
        # An application runs already: other code would be better.
        background = op == "compile" and bool(request.get("background"))
        priority = Priority.BETTER if background else Priority.WAIT
        key = identity(request)
        if (job := self._jobs.get(key)) is not None:
            job.waiting.append(waiter)
            self._scheduler.promote(job, priority)
            self._counts["merged"] += 1
        elif (early := self._early(op, request)) is not None:
            # Started before it was requested: when it is done, this request is answered from the
            # cache.
            again = {**request, "made": True}
            early.waiting.append(
                Waiter(lambda _: self._enqueue(client, op, again, since), client, client.pid, since)
            )
            self._scheduler.promote(early, priority)
            self._counts["early"] += 1
        else:
            self._submit(Job(request, [waiter], priority))
            if op in _OF_KERNELS and not request.get("made") and not background:
                for more in self._ahead.after(request):
                    self._guess(more)
        self._scheduler.dispatch()

    def _submit(self, job: Job) -> None:
        self._jobs[identity(job.request)] = job
        self._scheduler.submit(job)

    def _guess(self, request: dict[str, Any], priority: Priority = Priority.GUESS) -> None:
        """First translates, so that who asks for that meanwhile does not wait for host code."""
        first = {k: v for k, v in request.items() if k != "compile"}
        then = request if request.get("compile") else None
        if identity(first) not in self._jobs:
            self._submit(Job(first, [], priority, then=then))
            self._counts["ahead"] += 1

    def _early(self, op: str, request: dict[str, Any]) -> Job | None:
        """The job of a worker that already does this ahead; a job not yet begun is dropped."""

        def same(job: Job) -> bool:
            mine = job.request
            if mine["op"] != "ahead" or mine.get("kernel") != request.get("kernel"):
                return False
            if op == "translate":
                return bool(mine["module"] == request.get("module")) and not mine.get("compile")
            return bool(mine.get("compile")) and kind_of(mine) == kind_of(request)

        # What is done ahead is of whole kernels.
        if op not in _OF_KERNELS or request.get("made") or request.get("entered"):
            return None
        for job in self._scheduler.drop(same):
            self._jobs.pop(identity(job.request), None)
        return next((job for job in self._scheduler.jobs() if same(job)), None)

    def _finish(self, job: Job, answer: Answer) -> None:
        self._active = time.monotonic()
        key = identity(job.request)
        if self._jobs.get(key) is job:
            del self._jobs[key]
        for waiter in job.waiting:
            waiter.reply(answer)
        if job.done is not None:
            job.done(answer)
        if job.then is not None and answer["ok"] and identity(job.then) not in self._jobs:
            # Less urgent than this has become, perhaps: no application has asked for it.
            self._submit(Job(job.then, [], max(job.priority, Priority.PREPARE)))


def _process_of(connection: socket.socket) -> int:
    """The process at the other end; 0 if that is not known."""
    with contextlib.suppress(OSError):
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(data[:4], "little", signed=True)
    return 0


__all__ = ["IDLE_S", "JOB_LIMIT_S", "Service"]

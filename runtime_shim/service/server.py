"""The translation service: one process per user and socket, called by the native libraries.

`python -m sassxlate.runtime_shim.service [--socket PATH] [--cache DIR]`.  A loop over sockets, in
one thread, hands jobs to forked workers, so that no job can stop it.  It ends by itself
when there was no request for a while.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import errno
import fcntl
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.errors import SassxlateError, ServiceError
from sassxlate.lowering.target import target_named
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import Cache, evict, remove_abandoned, size_cap, usage
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service import wire
from sassxlate.runtime_shim.service.ahead import Ahead, kind_of
from sassxlate.runtime_shim.service.request import checked, text_of
from sassxlate.runtime_shim.service.work import Answer, Engine, Work, default_engine, failure
from sassxlate.runtime_shim.service.workers import Job, Worker, fork_worker

log = logging.getLogger("sassxlate.service")

IDLE_S = 600.0
JOB_LIMIT_S = 120.0
LOG_MAX = 4 << 20
_JOBS = ("module", "translate", "compile", "stencils", "assemble", "link")
_OF_KERNELS = ("translate", "compile")


@dataclass(slots=True, eq=False)
class _Client:
    """A connection; answers are sent when the socket is writable."""

    socket: socket.socket
    reader: wire.FrameReader = field(default_factory=wire.FrameReader)
    out: bytearray = field(default_factory=bytearray)
    last: bool = False  # close once ``out`` is sent


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
        self._job_limit_s = job_limit_s
        self._max_workers = workers or max(1, min(8, len(os.sched_getaffinity(0))))
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
        self._workers: list[Worker] = []
        self._queue: collections.deque[Job] = collections.deque()
        self._jobs: dict[tuple[object, ...], Job] = {}
        # Kernels that were not requested yet: for idle workers.
        self._aside: collections.deque[Job] = collections.deque()
        self._ahead = Ahead(cache, self._max_workers - 1)
        self._work: Work | None = None
        self._stopping = False
        self._active = time.monotonic()
        self._counts: collections.Counter[str] = collections.Counter()
        self._started = time.time()

    def run(self) -> None:
        """Serve until stopped, or idle for long."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._wake, selectors.EVENT_READ, self._woken)
        # The import takes half a second; requests of the application meanwhile wait in the socket.
        self._prepare()
        self._active = time.monotonic()
        remove_abandoned(self._cache.root, self._cache.tag)
        while not self._finished():
            for key, events in self._selector.select(self._patience()):
                key.data(events)
            self._kill_overdue()
        for worker in self._workers:
            worker.end()
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
            self._work = Work(self._cache, self._make_engine(), self._spare)
        except Exception:
            # Without its translator it can only report that; the next start tries again.
            log.exception("the translator cannot be imported")

    def _spare(self) -> Cache:
        root = paths.private_dir(paths.runtime_dir() / "cache")
        return Cache(root, self._cache.tag, self._cache.cap)

    def _finished(self) -> bool:
        idle = time.monotonic() - self._active
        if self._stopping:
            self._aside.clear()
        jobs = [worker.job for worker in self._workers if worker.job is not None]
        running = any(job.waiting or not self._stopping for job in jobs)
        busy = self._jobs or running or any(c.out for c in self._clients)
        return not busy and (self._stopping or idle > self._idle_s)

    def _patience(self) -> float:
        if self._stopping:
            return 0.05
        if self._jobs or any(worker.job is not None for worker in self._workers):
            return 1.0
        return max(0.05, min(60.0, self._idle_s - (time.monotonic() - self._active) + 0.01))

    def _kill_overdue(self) -> None:
        for worker in list(self._workers):
            if worker.overdue(self._job_limit_s):
                self._lose(worker, f"no answer within {self._job_limit_s:.0f} s", "SX0904")

    # -- clients

    def _accept(self, _events: int) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(0.05)  # descriptors may be freed; until then it would spin
            return
        connection.setblocking(False)
        client = _Client(connection)
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

    def _answer(self, client: _Client, answer: Answer) -> None:
        if client not in self._clients:
            return  # the client is gone
        client.out += wire.encode(answer)
        self._watch(client)

    # -- requests

    def _request(self, client: _Client, request: dict[str, Any]) -> None:
        self._active = time.monotonic()
        op = str(request.get("op"))
        self._counts[op if op in (*_JOBS, "ping", "tag", "stats", "stop") else "unknown"] += 1
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
        elif op == "stop":
            self._stopping = True
            self._answer(client, {"ok": True})
        else:
            self._answer(client, failure(ServiceError("SX0903", f"no operation {op[:40]!a}")))

    def _stale(self, request: dict[str, Any]) -> bool:
        tag, target = request.get("tag"), request.get("target")
        other = isinstance(target, str) and target != self._target
        return other or (isinstance(tag, str) and tag != self._cache.tag)

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
            "workers": len(self._workers),
            "queued": len(self._queue),
            "requests": dict(self._counts),
            "usage": {
                u.area: {"files": u.files, "bytes": u.bytes} for u in usage(self._cache.root)
            },
        }

    def _enqueue(self, client: _Client, op: str, request: dict[str, Any]) -> None:
        names = (
            "image",
            "cc",
            "module",
            "kernel",
            "code_object",
            "jit",
            "environment",
            "inputs",
            "shapes",
        )
        key = (op, *(request.get(name) for name in names))
        key = (*(str(part) for part in key), *kind_of(request))

        def reply(answer: Answer) -> None:
            self._answer(client, answer)

        job = self._jobs.get(key)
        if job is not None:
            job.waiting.append(reply)
            self._counts["merged"] += 1
            return

        if (early := self._early(op, request)) is not None:
            # Started before it was requested: when it is done, this request is answered from the
            # cache.
            again = {**request, "made": True}
            early.waiting.append(lambda _answer: self._enqueue(client, op, again))
            self._counts["early"] += 1
            return

        def forget(_answer: Answer) -> None:
            self._jobs.pop(key, None)

        job = Job(request, [reply, forget])
        self._jobs[key] = job
        self._queue.append(job)
        if op in _OF_KERNELS and not request.get("made"):
            self._aside.extend(Job(more, []) for more in self._ahead.after(request))
        self._dispatch()

    def _early(self, op: str, request: dict[str, Any]) -> Job | None:
        """The job of a worker that already does this ahead; a job not yet begun is dropped."""

        def same(job: Job) -> bool:
            mine = job.request
            if mine["op"] != "ahead" or mine["kernel"] != request.get("kernel"):
                return False
            if op == "translate":
                return bool(mine["module"] == request.get("module"))
            return bool(mine.get("compile")) and kind_of(mine) == kind_of(request)

        if op not in _OF_KERNELS or request.get("made"):
            return None
        self._aside = collections.deque(job for job in self._aside if not same(job))
        return next((w.job for w in self._workers if w.job is not None and same(w.job)), None)

    def _dispatch(self) -> None:
        self._dispatch_requests()
        self._dispatch_aside()

    def _dispatch_requests(self) -> None:
        while self._queue:
            if self._work is None:
                error = ServiceError("SX0908", "the translator cannot be imported; see service.log")
                self._stopping = True
                self._finish(self._queue.popleft(), failure(error))
                continue
            worker = next((w for w in self._workers if w.job is None), None)
            if worker is None:
                if len(self._workers) >= self._max_workers:
                    return
                try:
                    worker = self._fork(self._work)
                except OSError as reason:
                    if self._workers:
                        return  # existing workers will take it
                    text = f"no worker process can be started: {reason.strerror}"
                    self._finish(self._queue.popleft(), failure(ServiceError("SX0913", text)))
                    continue
            job = self._queue.popleft()
            try:
                worker.give(job)
            except OSError:
                worker.job = None
                self._queue.appendleft(job)
                self._drop(worker)

    def _dispatch_aside(self) -> None:
        """Work without a waiting client: one worker is kept for requests."""
        while self._aside and self._work is not None and not self._stopping:
            if sum(w.job is not None for w in self._workers) >= self._max_workers - 1:
                return
            try:
                idle = next((w for w in self._workers if w.job is None), None)
                worker = idle or self._fork(self._work)
            except OSError:
                self._aside.clear()
                return
            try:
                worker.give(self._aside[0])
            except OSError:
                worker.job = None
                self._drop(worker)
                continue
            self._aside.popleft()
            self._counts["ahead"] += 1

    def _fork(self, work: Work) -> Worker:
        close = [
            *self._private,
            self._selector_fd(),
            *(c.socket.fileno() for c in self._clients),
            *(w.pipe.fileno() for w in self._workers),
        ]
        worker = fork_worker(work, close)
        self._workers.append(worker)
        self._selector.register(worker.pipe, selectors.EVENT_READ, partial(self._hear, worker))
        return worker

    def _selector_fd(self) -> int:
        fileno = getattr(self._selector, "fileno", None)
        return int(fileno()) if fileno is not None else -1

    def _hear(self, worker: Worker, _events: int) -> None:
        try:
            answer = worker.take()
        except (EOFError, ServiceError):
            self._lose(worker, "it ended", "SX0905")
            return
        if answer is not None and worker.job is not None:
            job, worker.job = worker.job, None
            self._finish(job, answer)
            self._dispatch()

    def _lose(self, worker: Worker, why: str, code: str) -> None:
        job, worker.job = worker.job, None
        how = self._drop(worker)
        if job is not None:
            kernel = job.request.get("kernel", "")
            log.error("worker %d lost (%s, %s) on %s", worker.pid, why, how, job.request)
            text = f"the worker on {job.request.get('op')} {kernel} was lost: {why} ({how})"
            self._finish(job, failure(ServiceError(code, text)))
        self._dispatch()

    def _drop(self, worker: Worker) -> str:
        self._workers.remove(worker)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(worker.pipe)
        how = worker.end()
        remove_abandoned(self._cache.root, self._cache.tag, worker.pid)
        return how

    def _finish(self, job: Job, answer: Answer) -> None:
        self._active = time.monotonic()
        for reply in job.waiting:
            reply(answer)


def listen(path: Path) -> tuple[socket.socket, int] | None:
    """Bind the socket under its lock: (listener, lock); None if a service already serves it."""
    # Not "<path>.lock": the clients hold that one while they start the service.
    lock = os.open(f"{path}.serving", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.bind(str(path))
    os.chmod(path, 0o600)
    listener.listen(128)
    return listener, lock


def open_cache(root: Path, tag: str) -> Cache:
    """The cache in ``root``, or in a private directory if ``root`` is not writable."""
    if (error := paths.unusable(root)) is not None:
        spare = paths.private_dir(paths.runtime_dir() / "cache")
        log.warning("%s; using %s", error, spare)
        root = spare
    return Cache(root, tag, size_cap())


def _start_log(root: Path) -> None:
    path = root / "service.log"
    try:
        if path.exists() and path.stat().st_size > LOG_MAX:
            os.replace(path, path.with_suffix(".log.old"))
        handler: logging.Handler = logging.FileHandler(
            path, encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def serve(socket_path: Path, cache_root: Path, engine: Callable[[], Engine], target: str) -> None:
    """Serve translations for a target on ``socket_path`` until idle; returns at once where another
    service does."""
    os.umask(0o077)
    bound = listen(socket_path)
    if bound is None:
        return
    listener, lock = bound
    try:
        cache = open_cache(cache_root, cache_tag(target))
        _start_log(cache.root)
        idle = float(os.environ.get("SASSXLATE_SERVICE_IDLE", IDLE_S))
        limit = float(os.environ.get("SASSXLATE_SERVICE_JOB_LIMIT", JOB_LIMIT_S))
        service = Service(
            listener,
            cache,
            engine,
            target=target,
            idle_s=idle,
            job_limit_s=limit,
            private=(lock,),
        )
        signal.signal(signal.SIGTERM, lambda _number, _frame: service.stop())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        log.info("serving %s, cache %s, tag %s", socket_path, cache.root, cache.tag)
        service.run()
        evict(cache.root, cache.cap)
        log.info("done")
    finally:
        with contextlib.suppress(OSError):
            socket_path.unlink()
        listener.close()
        os.close(lock)


def main(args: Sequence[str] | None = None) -> None:
    """The program; ends with status 2 and one line if it cannot start."""
    parser = argparse.ArgumentParser(prog="sassxlate service", description=__doc__)
    parser.add_argument("--socket", type=Path)
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args(args)
    try:
        os.chdir("/")
        socket_path = options.socket or paths.socket_path()
        target = os.environ.get("SASSXLATE_TARGET") or RDNA3[0]
        engine = partial(default_engine, target_named(target))
        serve(socket_path, options.cache or paths.cache_dir(), engine, target)
    except (SassxlateError, OSError) as error:
        sys.stderr.write(f"sassxlate service: {error}\n")
        raise SystemExit(2) from None

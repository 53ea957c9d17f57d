"""Starts the service: its socket and lock, its log, its cache, and the program itself.

`python -m sassxlate.runtime_shim.service [--socket PATH] [--cache DIR]`.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from sassxlate.disasm.amdgpu_machines import RDNA3, spelled
from sassxlate.errors import SassxlateError
from sassxlate.lowering.target import target_named
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import Cache, evict, size_cap
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service.client import listen
from sassxlate.runtime_shim.service.engine import Engine, default_engine
from sassxlate.runtime_shim.service.server import IDLE_S, JOB_LIMIT_S, Service

log = logging.getLogger("sassxlate.service")

LOG_MAX = 4 << 20


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


def _inherited(listener: int, lock: int) -> tuple[socket.socket, int]:
    for descriptor in (listener, lock):
        os.set_inheritable(descriptor, False)  # tools that it starts must not hold them
    return socket.socket(fileno=listener), lock


def serve(
    socket_path: Path,
    cache_root: Path,
    engine: Callable[[], Engine],
    target: str,
    record: str | None = None,
    inherited: Sequence[int] = (),
) -> None:
    """Serve translations for a target on ``socket_path`` until idle; returns at once where another
    service does.  ``inherited``: listener and lock, if the starter has made them."""
    os.umask(0o077)
    bound = _inherited(*inherited) if inherited else listen(socket_path)
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
        service.run(record)
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
    parser.add_argument("--target", help="as target_named takes it")
    parser.add_argument("--prepare", metavar="RECORD", help="the key of an application's record")
    parser.add_argument("--inherited", type=int, nargs=2, default=(), help=argparse.SUPPRESS)
    options = parser.parse_args(args)
    try:
        os.chdir("/")
        socket_path = options.socket or paths.socket_path()
        name = os.environ.get("SASSXLATE_TARGET") or RDNA3[0]
        target = options.target or spelled(name, os.environ.get("SASSXLATE_MATRIX") or "exact")
        engine = partial(default_engine, target_named(target))
        cache = options.cache or paths.cache_dir()
        serve(socket_path, cache, engine, target, options.prepare, options.inherited)
    except (SassxlateError, OSError) as error:
        sys.stderr.write(f"sassxlate service: {error}\n")
        raise SystemExit(2) from None

"""A stand-in translator, and a service that runs with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from sassxlate.disasm.containers.values import Cubin, Fatbin, Global, Kernel, Param, Reloc, Symbol
from sassxlate.errors import ContainerError, EmulatorError, LoweringError, Where
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.service import client, server
from sassxlate.runtime_shim.service import start as starting
from sassxlate.runtime_shim.service.engine import Engine

KERNEL = Kernel(
    name="_Z5saxpyifPKfPf",
    demangled="saxpy(int, float, const float*, float*)",
    arch=90,
    code=b"\0" * 16,
    registers=12,
    shared_size=1024 + 256,
    local_size=0,
    barriers=0,
    param_base=0x210,
    param_size=24,
    params=(Param(0, 0, 4), Param(1, 4, 4), Param(2, 8, 8), Param(3, 16, 8)),
    constant0_size=0x228,
    constant2=b"\1\2\3\4",
    max_threads=(256, 2, 1),
    exits=(),
    indirect_targets={},
    syscall_offsets=(),
    externs=(),
    callees=(),
    relocs=(),
    attributes=(),
    uses_cta_z=False,
)

CUBIN = Cubin(
    arch=90,
    variant="",
    abi=8,
    relocatable=False,
    kernels=(
        KERNEL,
        *(
            replace(KERNEL, name=n)
            for n in ("refused", "buggy", "crashing", "hanging", "slow", "slow2")
        ),
    ),
    globals=(Global("table", ".nv.constant3", 0, 16), Global("counter", ".nv.global", 8, 4)),
    sections={".nv.constant3": bytes(range(16)), ".nv.constant4": b"\0" * 24},
    section_sizes={
        ".nv.constant3": 16,
        ".nv.constant4": 24,
        ".nv.global": 64,
        ".nv.constant0.k": 0x228,
    },
    relocs=(
        Reloc(".nv.constant4", 0, 2, "counter", 0),
        Reloc(".nv.constant4", 8, 2, "table", 4),
        Reloc(".nv.constant4", 16, 2, "vprintf", 0),
        Reloc(".nv.constant0.k", 0, 2, "table", 0),
    ),
    symbols=(
        Symbol("counter", ".nv.global", 8, 4, "object", "global"),
        Symbol("table", ".nv.constant3", 0, 16, "object", "global"),
        Symbol("vprintf", "", 0, 0, "func", "global"),
    ),
    attributes=(),
)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of the stand-in translator."""

    code_object: bytes
    launch: str


def _fatbin(data: bytes) -> Fatbin:
    raise ContainerError("SX0101", "truncated", Where(offset=len(data)))


def _cubin(data: bytes) -> Cubin:
    if data[4:] == b"bad":
        raise ContainerError("SX0102", "no cubin")
    return CUBIN


def _translate(_cubin: Cubin, kernel: Kernel) -> Done:
    match kernel.name:
        case "refused":
            raise LoweringError("SX0407", "not supported", Where(offset=0xA0, inst="SUST.P"))
        case "buggy":
            raise KeyError("no such register")
        case "crashing":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hanging":
            time.sleep(1000)
        case "slow" | "slow2":
            time.sleep(0.5)
        case _:
            pass
    return Done(b"\x7fELF code of " + kernel.name.encode(), "kernarg_size 552\n")


def _compile(code: bytes, kernel: str, strict: bool, counts: bool, turns: bool) -> bytes:
    match kernel:
        case "refused":
            raise EmulatorError("SX0601", "cannot be compiled")
        case "crashing":
            os.kill(os.getpid(), signal.SIGKILL)
        case "endless":
            while True:
                pass
        case _:
            pass
    return code + (b" strict" if strict else b" plain")


def _compile_quickly(code: bytes, kernel: str, strict: bool, counts: bool, turns: bool) -> bytes:
    if kernel == "endless":  # longer than its limit
        end = time.process_time() + 0.8
        while time.process_time() < end:
            pass
    return code + b" quick"


def _compile_part(
    code: bytes, kernel: str, strict: bool, counts: bool, turns: bool, entered: str
) -> bytes:
    return _compile(code, kernel, strict, counts, turns) + entered.encode()


ENGINE = Engine(
    _fatbin,
    _cubin,
    _translate,
    _compile,
    frozenset({75, 80, 90}),
    compile_quickly=_compile_quickly,
    compile_part=_compile_part,
)


def stand_in() -> Engine:
    """The engine of the tests' services."""
    return ENGINE


def broken() -> Engine:
    """An engine that cannot be imported."""
    raise ImportError("no translator")


@dataclass(frozen=True, slots=True)
class Running:
    """A service in a process of its own."""

    socket: Path
    cache: Path
    process: BaseProcess

    def call(self, **request: object) -> dict[str, object]:
        """One request's answer."""
        return client.call(self.socket, dict(request), timeout=120)


def _serve(
    socket: Path, cache: Path, engine: Callable[[], Engine], limit: float, workers: int | None
) -> None:
    bound = starting.listen(socket)
    assert bound is not None
    listener, lock = bound
    running = server.Service(
        listener,
        Cache(cache, "tag"),
        engine,
        target="gfx1100",
        idle_s=30,
        job_limit_s=limit,
        workers=workers,
        private=(lock,),
    )
    running.run()
    socket.unlink()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts services; they end with the test."""
    started: list[BaseProcess] = []
    forked = multiprocessing.get_context("fork")
    fresh = multiprocessing.get_context("spawn")

    def go(
        engine: Callable[[], Engine] = stand_in,
        limit: float = 20.0,
        workers: int | None = None,
        *,
        own_memory: bool = False,
    ) -> Running:
        """``own_memory``: a process that has imported the service alone, not a copy of this one,
        which has megabytes that are free."""
        socket = tmp_path / f"s{len(started)}.sock"
        args = (socket, tmp_path / "cache", engine, limit, workers)
        context = fresh if own_memory else forked
        process = context.Process(target=_serve, args=args)
        process.start()
        started.append(process)
        deadline = time.monotonic() + 60
        while not client.listening(socket) and time.monotonic() < deadline:
            time.sleep(0.01)
        return Running(socket, tmp_path / "cache", process)

    yield go
    for process in started:
        process.kill()
        process.join()


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file with a cubin for the stand-in."""
    path = tmp_path / "image"
    path.write_bytes(b"\x7fELFgood")
    return path

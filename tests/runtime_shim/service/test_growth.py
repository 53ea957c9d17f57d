"""The service and its workers keep nothing of a request."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.runtime_shim.service import server
from sassxlate.runtime_shim.service.engine import Engine

from .conftest import ENGINE, Running

Start = Callable[..., Running]
Serve = Callable[[Callable[[], Engine]], Running]

_WORKERS = 2
_BOUND = 1 << 20  # bytes, over 300 modules: the service's own state, which is bounded, takes half
_LEAK = 4096  # bytes a request
_PR_SET_THP_DISABLE = 41


def engine() -> Engine:
    """The stand-in, in a process whose memory grows by pages of 4 KiB only."""
    ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
    return ENGINE


def leaking_worker() -> Engine:
    """A translator that keeps some memory for each kernel."""
    kept: list[bytearray] = []

    def translate(cubin: Cubin, kernel: Kernel) -> Any:
        kept.append(bytearray(b"x" * _LEAK))
        return ENGINE.translate(cubin, kernel)

    return replace(engine(), translate=translate)


def leaking_service() -> Engine:
    """The service, in whose process this runs, keeps some memory for each message."""
    kept: list[bytearray] = []
    checked = server.checked

    def check(message: dict[str, Any]) -> dict[str, Any]:
        kept.append(bytearray(b"x" * _LEAK))
        return checked(message)

    patch.object(server, "checked", check).start()
    return engine()


def _anonymous(pid: int) -> dict[int, int]:
    """Bytes of memory that are no file's, of a process and of its children, by process.

    Not all that is resident: a worker maps 2.4 MB of libraries' pages at its first job, which may
    come late where another worker is quick, and they are no growth.
    """
    size = 0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Anonymous", "Swap"):
            size += int(rest.split()[0]) << 10
    found = {pid: size}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found |= _anonymous(int(child))
    return found


def _growth(service: Running, image: Path, modules: int) -> int:
    """The growth of the service and its workers over the last nine tenths, in bytes.

    A worker that was started meanwhile began with what the service had.
    """
    before: dict[int, int] = {}
    pid = int(str(service.process.pid))
    for number in range(modules):
        if number == modules // 10:
            before = _anonymous(pid)
        image.write_bytes(b"\x7fELF" + number.to_bytes(4, "little"))
        made = service.call(op="module", image=str(image), cc=90)
        assert made["ok"], made
        for kernel in ("_Z5saxpyifPKfPf", "refused"):
            service.call(op="translate", module=made["key"], kernel=kernel)
    after = _anonymous(pid)
    assert sum(size > 0 for size in after.values()) <= 1 + _WORKERS, after
    return sum(size - before.get(process, before[pid]) for process, size in after.items())


@pytest.fixture
def serve(start: Start) -> Callable[[Callable[[], Engine]], Running]:
    """Starts a service with an engine, in a process without free memory of the tests'."""
    return lambda engine: start(engine, workers=_WORKERS, own_memory=True)


def test_service_does_not_grow(serve: Serve, image: Path) -> None:
    """Modules, translations and refusals that are all new."""
    grown = _growth(serve(engine), image, 300)
    print(f"grown {grown >> 10} KiB")
    assert grown < _BOUND


@pytest.mark.parametrize("leak", [leaking_worker, leaking_service])
def test_a_leak_is_found(serve: Serve, image: Path, leak: Callable[[], Engine]) -> None:
    """Half as many requests show a leak of 4 KiB a translation, or a message."""
    assert _growth(serve(leak), image, 150) > _BOUND


@pytest.mark.sweep
def test_service_does_not_grow_in_long(serve: Serve, image: Path) -> None:
    """The same with thirty thousand modules; the state for work ahead has its bound in
    the first tenth."""
    grown = _growth(serve(engine), image, 30_000)
    print(f"grown {grown >> 10} KiB")
    assert grown < 4 << 20

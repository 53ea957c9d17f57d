"""`--tier auto` under adversity: the compiler dies, finds no room, or serves two applications,
while a kernel goes from the baseline's code to the compiler's.  The words stay the same."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service import client

CUBIN = Path(__file__).resolve().parents[3] / "fixtures" / "peers" / "peers.cubin"
_LIMIT_S = 120
# Launches until a number arrives on standard input, then so many more; every launch writes all
# words again.  The kernel is hot after about twenty.
_APPLICATION = """
import ctypes, select, sys
import numpy as np
from pathlib import Path
from sassxlate.runtime_shim.driver import Driver
d, n = Driver(), 2048
f = d.function(Path(sys.argv[1]).read_bytes(), "nbody")
rng = np.random.default_rng(3)
empty = np.zeros(3 * n, np.uint32)
values = [d.upload(rng.random(4 * n, np.float32).view(np.uint32)), d.upload(empty), ctypes.c_int(n)]
where = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in values))
first, left = None, None
while left != 0:
    d.write(values[1], empty)
    d.call("cuLaunchKernel", f, n // 256, 1, 1, 256, 1, 1, 0, None, where, None)
    d.call("cuCtxSynchronize")
    words = d.read(values[1], 3 * n)
    if first is None:
        first = words
        print("started", flush=True)
    assert words.any() and (words == first).all()
    if left is None and select.select([sys.stdin], [], [], 0)[0]:
        left = int(sys.stdin.readline())
    left = left and left - 1
print(f"same {hash(first.tobytes())}", flush=True)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache; its service is stopped at the end."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    yield tmp_path / "cache"
    with contextlib.suppress(ServiceError):
        _ask(tmp_path / "cache", "stop")


def _ask(cache: Path, op: str) -> dict[str, Any]:
    return client.call(paths.socket_path(cache_tag("gfx1100"), cache), {"op": op}, timeout=10)


def _start(cache: Path, before: Callable[[], None] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
    command += ["--tier", "auto", "--", sys.executable, "-P", "-c", _APPLICATION, str(CUBIN)]
    return subprocess.Popen(
        command,
        env={
            **os.environ, "SASSXLATE_CACHE_DIR": str(cache), "SASSXLATE_SERVICE_IDLE": "10",
            "PYTHONPATH": client.import_root(), "PYTHONHASHSEED": "0",
        },
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=before,
    )  # fmt: skip


def _started(application: subprocess.Popen[str]) -> None:
    assert application.stdout is not None
    line = application.stdout.readline()
    assert line == "started\n", line + application.communicate()[1]


def _ended(application: subprocess.Popen[str]) -> tuple[str, str]:
    """Its words and what it complained of, after 20 more launches."""
    output, errors = application.communicate("20\n", timeout=_LIMIT_S)
    assert application.returncode == 0, output + errors
    assert output.startswith("same "), output
    return output, errors


def _images(cache: Path) -> list[Path]:
    return list((cache / "host").rglob("*.sxh"))


def _until(good: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not good():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def _workers(status: dict[str, Any]) -> list[int]:
    children = Path(f"/proc/{status['pid']}/task/{status['pid']}/children").read_text().split()
    return [int(pid) for pid in children]


@pytest.mark.parametrize("victim", ["service", "workers"])
def test_killed_while_it_compiles(victim: str, cache: Path) -> None:
    """The application goes on with the baseline's code; the next one has the compiler's."""
    with _start(cache) as application:
        _started(application)
        status: dict[str, Any] = {}

        def compiling() -> bool:
            status.update(_ask(cache, "status"))
            return any(job["op"] == "compile" for job in status["jobs"])

        _until(lambda: compiling() or bool(_images(cache)))
        for pid in [status["pid"]] if victim == "service" else _workers(status):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        first, _ = _ended(application)
    with _start(cache) as application:
        _started(application)
        _until(lambda: bool(_images(cache)))
        assert _ended(application) == (first, "")


def test_two_applications(cache: Path) -> None:
    """Both change over to one image, made once."""
    with _start(cache) as one, _start(cache) as other:
        _started(one)
        _started(other)
        _until(lambda: bool(_images(cache)))
        words = [_ended(application) for application in (one, other)]
    assert words[0] == words[1]
    assert words[0][1] == ""
    assert len(_images(cache)) == 1


@pytest.mark.parametrize("room", [1 << 14, pytest.param(0, marks=pytest.mark.sweep)])
def test_full_disk(room: int, cache: Path) -> None:
    """No file may grow beyond ``room`` bytes, the service's neither; the kernel gets hot."""

    def short() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    with _start(cache, short) as application:
        output, errors = application.communicate("60\n", timeout=_LIMIT_S)
    if application.returncode == 0:
        assert output.startswith("started\nsame ")
    else:  # a typed refusal, no signal
        assert application.returncode in (1, 3), errors
        assert "sassxlate: SX0" in errors
    assert not list(cache.rglob(".tmp-*"))

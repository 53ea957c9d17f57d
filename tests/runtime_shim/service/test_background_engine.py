"""Another engine's code for a kernel that a program loaded at run time and goes on launching."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache import hybrid
from sassxlate.runtime_shim.cache.store import Cache, name_key
from sassxlate.runtime_shim.cache.upgrade import UPGRADED, Better, upgrade
from sassxlate.runtime_shim.service import client

ROOT = Path(__file__).resolve().parents[3]
_PROGRAM = """
import os, struct, sys, time
from pathlib import Path
from sassxlate.bench.peers_child import Cuda
from sassxlate.bench.peers_kernels import peer_kernel
cache, tally = Path(sys.argv[2]), Path(os.environ["SASSXLATE_INSTRUCTIONS"])
side = Cuda(Path(sys.argv[1]))
reduction = peer_kernel("reduction")
launch = side.prepare(reduction)
def executed():
    before = struct.unpack("<Q", tally.read_bytes())[0] if tally.exists() else 0
    launch()
    wrong = reduction.wrong(side.result())
    assert not wrong, wrong
    return struct.unpack("<Q", tally.read_bytes())[0] - before
first, end = executed(), time.monotonic() + 120
while not list(cache.rglob("*.upgraded")) and time.monotonic() < end:
    time.sleep(0.06)
    executed()
time.sleep(0.06)
print(first, executed(), executed())
"""


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    (tmp_path / "run").mkdir(mode=0o700)
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("SASSXLATE_")},
        "SASSXLATE_CACHE_DIR": str(tmp_path / "cache"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "SASSXLATE_SERVICE_IDLE": "30",
        "SASSXLATE_INSTRUCTIONS": str(tmp_path / "instructions"),
        "PYTHONPATH": client.import_root(),
    }


def _run(place: dict[str, str], *options: str) -> list[int]:
    (Path(place["SASSXLATE_INSTRUCTIONS"])).unlink(missing_ok=True)
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator", *options]
    command += ["--", sys.executable, "-c", _PROGRAM, str(ROOT / "fixtures/peers/peers.cubin")]
    done = subprocess.run(
        [*command, place["SASSXLATE_CACHE_DIR"]], env=place, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [int(number) for number in done.stdout.split()]


def test_a_program_takes_it_while_it_runs(place: dict[str, str]) -> None:
    try:
        rules, after, again = _run(place, "--engine", "llvm")
        assert after == again < rules
        # The next one has it from the first launch on.
        assert _run(place, "--engine", "llvm") == [after] * 3
    finally:
        for socket in Path(place["XDG_RUNTIME_DIR"]).rglob("service-*.sock"):
            client.call(socket, {"op": "stop"}, timeout=10)


def _better(**changes: Any) -> Better:
    given: dict[str, Any] = {
        "rules": b"rules", "made": b"made", "launch": "launch", "made_launch": "launch",
        "report": {"saved": 1}, "engine": "tier llvm",
    }  # fmt: skip
    return Better(**(given | changes))


def test_what_is_written(tmp_path: Path) -> None:
    cache, stem = Cache(tmp_path, "tag"), f"m-{name_key('k')}"
    cache.write("kernel", f"{stem}.hsaco", b"rules")
    ready: list[bytes] = []

    def put(found: Better) -> bytes | None:
        upgrade(cache, stem, found, lambda code: code + b" with lines", ready.append)
        return cache.read("kernel", f"{stem}.hsaco")

    # Launched otherwise: its arguments would be others.
    assert put(_better(made_launch="other")) == b"rules"
    assert hybrid.find(cache, b"rules", "launch") is None
    # The engine has no code of its own: the reason is kept.
    assert put(_better(made=b"rules", report={"why": "refused"})) == b"rules"
    kept = hybrid.find(cache, b"rules", "launch", "tier llvm")
    assert kept is not None
    assert kept.report == {"why": "refused"}
    assert not ready
    assert put(_better()) == b"made with lines"
    assert ready == [b"made with lines"]
    assert cache.read("kernel", f"{stem}{UPGRADED}") == b""

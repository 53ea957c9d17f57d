"""Images that run several waves, and workgroups of a row, in one call."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from ctypes import c_size_t, c_void_p
from pathlib import Path

import pytest

from .conftest import Script
from .hip_api import Hip
from .hip_code_objects import Kernel, build

_KERNELS = [Kernel(f"run_{name}", dimensions=3) for name in ("count", "stop", "wait")]


@pytest.fixture(scope="module")
def module(hip: Hip) -> Iterator[int]:
    loaded = hip.load(build([*_KERNELS, Kernel("bump")]))
    yield loaded
    hip.ok("hipModuleUnload", c_void_p(loaded))


def _run(hip: Hip, module: int, name: str, row: int, rows: int, threads: int, *more: int,
         shared: int = 0) -> list[int]:  # fmt: skip
    waves = -(-threads // 32)
    total = row * rows * waves
    out = hip.malloc(4 * total)
    hip.ok("hipMemset", c_void_p(out), 0, c_size_t(4 * total))
    args = struct.pack("<QII", out, waves, row) + struct.pack(f"<{len(more)}I", *more)
    grid, function = (row, rows, 1), hip.function(module, f"run_{name}")
    assert hip.launch(function, grid, threads, args, shared=shared) == 0
    words = hip.words(out, total)
    hip.free(out)
    return words


@pytest.mark.parametrize("shared", [0, 64])
@pytest.mark.parametrize("every", [0, 1, 2, 5, 37])
@pytest.mark.parametrize(
    ("row", "rows", "threads"),
    [(1, 1, 32), (1, 90, 64), (7, 13, 100), (64, 9, 256), (300, 1, 31), (5, 40, 1024)],
)
def test_each_wave_runs_once(
    hip: Hip, module: int, row: int, rows: int, threads: int, every: int, shared: int
) -> None:
    found = _run(hip, module, "count", row, rows, threads, every, shared=shared)
    partial = (1 << threads % 32) - 1 if threads % 32 else 1
    assert found == [*[1] * ((threads - 1) // 32), partial] * (row * rows)


@pytest.mark.parametrize("distance", [1, 3, 8, 25])
@pytest.mark.parametrize(("row", "rows", "threads"), [(1, 4, 256), (19, 2, 32), (6, 3, 96)])
def test_waves_that_wait_for_later_ones(
    hip: Hip, module: int, row: int, rows: int, threads: int, distance: int
) -> None:
    """They end only if what they wait for, which a run was to go on with, begins on its own."""
    total = row * rows * -(-threads // 32)
    assert _run(hip, module, "wait", row, rows, threads, distance, total) == [1] * total


def test_launches_of_other_shapes_in_turn(hip: Hip, module: int) -> None:
    for every in (3, 0, 2):
        for threads in (96, 512):
            assert set(_run(hip, module, "count", 40, 3, threads, every)) == {1}


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("at", [0, 5, 8, 100, 1234, 2399])
def test_a_fault_names_its_wave(script: Script, at: int, threads: str) -> None:
    """Of 20 * 15 workgroups with 8 waves each."""
    done = script(
        "m = hip.load(build([Kernel('run_stop', dimensions=3)]))\n"
        f"args = struct.pack('<QIII', hip.malloc(64), 8, 20, {at})\n"
        "print(hip.launch(hip.function(m, 'run_stop'), (20, 15, 1), 256, args),\n"
        "      hip.hipDeviceSynchronize())\n",
        SASSXLATE_THREADS=threads,
    )
    assert done.stdout == "0 719\n", done.stderr
    wave, x, y = at % 8, at // 8 % 20, at // 160
    where = rf"trap 0x2, lane 5 of wave {wave}, workgroup \({x},{y},0\)"
    assert re.search(where, done.stderr), done.stderr


def test_no_memory_for_the_first_wave(script: Script) -> None:
    """The workgroups that the run was to go on with have ended, too."""
    done = script(
        "import resource\n"
        "m = hip.load(build([Kernel('run_count', dimensions=3)]))\n"
        "args = struct.pack('<QIII', hip.malloc(1 << 16), 7, 30, 0)\n"
        "now = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (now + (40 << 20), -1))\n"
        "print(hip.launch(hip.function(m, 'run_count'), (30, 5, 1), 224, args),\n"
        "      hip.hipDeviceSynchronize())\n",
        SASSXLATE_THREADS="1",
        SASSXLATE_FIBER_STACK=str(64 << 20),
    )
    assert done.stdout == "0 701\n", done.stderr


@pytest.mark.parametrize("every", [0, 2])
def test_all_instructions_are_counted(script: Script, tmp_path: Path, every: int) -> None:
    tally = tmp_path / "instructions"
    done = script(
        "m = hip.load(build([Kernel('run_count', dimensions=3)]))\n"
        f"args = struct.pack('<QIII', hip.malloc(4 * 7 * 30 * 5), 7, 30, {every})\n"
        "print(hip.launch(hip.function(m, 'run_count'), (30, 5, 1), 224, args),\n"
        "      hip.hipDeviceSynchronize())\n",
        SASSXLATE_INSTRUCTIONS=str(tally),
    )
    assert done.stdout == "0 0\n", done.stderr
    assert struct.unpack("<Q", tally.read_bytes()) == (7 * 30 * 5,)

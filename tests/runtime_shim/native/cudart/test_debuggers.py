"""The detour in programs that run under a debugger, which puts a breakpoint where we put a jump."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .stage import Stage, stripped

Tool = Callable[..., str]
PROGRAMS = Path(__file__).parent / "programs"
KERNEL = "cuLaunchKernel _Z5twice"


@pytest.fixture(scope="module")
def opened(programs: Path, gxx: Tool) -> Path:
    """A program that loads a library and closes it, twice."""
    target = programs / "opened_debugged"
    gxx(PROGRAMS / "opened.cpp", "-o", target, "-ldl")
    return target


@pytest.fixture(scope="module")
def library(programs: Path) -> Path:
    """A library with a runtime of its own, whose constructor launches a kernel."""
    return stripped(programs / "liblibrary.so")


@pytest.fixture(scope="module")
def gdb() -> str:
    """The debugger; skips without it."""
    found = shutil.which("gdb")
    if found is None:
        pytest.skip("gdb is not installed")
    return found


def under_gdb(gdb: str, *program: object) -> list[object]:
    return [gdb, "-q", "-nx", "-batch", "-ex", "run", "--args", *program]


def test_opened_library_where_the_linkers_function_has_a_breakpoint(
    stage: Stage, programs: Path, gxx: Tool, opened: Path, library: Path
) -> None:
    """It was not examined: the runtime in it was NVIDIA's, and failed."""
    tracer = programs / "breakpoint"
    gxx(PROGRAMS / "breakpoint.cpp", "-o", tracer)
    result = stage.run(tracer, opened, library)
    if result.status == 77:
        pytest.skip("ptrace is not allowed here")
    assert result.out.startswith("library 0\nlibrary 0\n"), result
    assert sum(KERNEL in c for c in result.calls) == 4
    assert not any("are not examined" in m for m in result.messages)
    # The debugger still sees libraries come and go, two times in each case.
    counted = re.search(r"^reached (\d+)$", result.out, re.MULTILINE)
    assert counted is not None
    assert int(counted[1]) >= 8


def test_opened_library_under_gdb(stage: Stage, opened: Path, library: Path, gdb: str) -> None:
    result = stage.run(*under_gdb(gdb, opened, library))
    assert "library 0\nlibrary 0\n" in result.out, result
    assert sum(KERNEL in c for c in result.calls) == 4


def test_own_runtime_under_gdb(stage: Stage, programs: Path, gdb: str) -> None:
    result = stage.run(*under_gdb(gdb, stripped(programs / "flow")))
    assert "cudaMalloc(&device, 1024) 0\n" in result.out, result
    assert "exited normally" in result.out
    assert result.calls[-1] == "cuLibraryUnload"


def test_run_under_gdb_starts_the_service(tmp_path: Path, nvcc: Tool, gdb: str) -> None:
    """A start of the service looked to gdb like a thread, whose exec ended the program for it."""
    program = tmp_path / "program"
    nvcc("-arch=sm_80", PROGRAMS / "triple.cu", "-o", program)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", *map(str, under_gdb(gdb, program))],
        capture_output=True,
        text=True,
        env={**os.environ, "SASSXLATE_CACHE_DIR": str(tmp_path), "SASSXLATE_SERVICE_IDLE": "1"},
        check=False,
        timeout=120,
    )
    assert "last 93\n" in done.stdout, done.stdout + done.stderr
    assert "exited normally" in done.stdout

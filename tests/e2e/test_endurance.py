"""Leaks and races: short runs by default, the long ones in the sweep."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parent / "builds" / "endurance.cu"
GROWTH_KIB = 1024  # of the process over nine tenths of its rounds


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program with either kind of default stream; skips where there is no nvcc."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    folder = tmp_path_factory.mktemp("endurance")

    def build(kind: str) -> Path:
        program = folder / kind
        if not program.is_file():
            options = ["-O3", "-w", "-arch=sm_80", "--default-stream", kind]
            subprocess.run([nvcc, *options, SOURCE, "-o", program], check=True)
        return program

    return build


def _loop(run_program: Callable[..., Any], program: Path, rounds: int) -> None:
    outcome = run_program(program, ["loop", str(rounds)], time_limit=1200)
    found = re.fullmatch(r"rounds (\d+) bad 0 grown (-?\d+) KiB\n", outcome.output)
    assert found, f"{outcome.output}\n{outcome.errors}"
    assert int(found[1]) == rounds
    assert int(found[2]) < GROWTH_KIB, outcome.output


def _streams(run_program: Callable[..., Any], program: Path, seconds: float) -> None:
    outcome = run_program(program, ["streams", str(seconds)], time_limit=seconds + 60)
    assert re.fullmatch(r"rounds \d+ bad 0\n", outcome.output), outcome.output + outcome.errors
    assert outcome.status == 0


def test_loop(run_program: Callable[..., Any], built: Callable[[str], Path]) -> None:
    """Allocations, launches, copies, streams, events, graphs and arrays leak nothing."""
    _loop(run_program, built("legacy"), 2000)


@pytest.mark.sweep
def test_long_loop(run_program: Callable[..., Any], built: Callable[[str], Path]) -> None:
    """A hundred thousand rounds."""
    _loop(run_program, built("legacy"), 100_000)


@pytest.mark.parametrize("kind", ["legacy", "per-thread"])
def test_streams(run_program: Callable[..., Any], built: Callable[[str], Path], kind: str) -> None:
    """Eight threads, eight streams, each result checked."""
    _streams(run_program, built(kind), 1.0)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["legacy", "per-thread"])
def test_streams_for_a_minute(
    run_program: Callable[..., Any], built: Callable[[str], Path], kind: str
) -> None:
    """The same for sixty seconds."""
    _streams(run_program, built(kind), 60.0)

"""Races that every NVIDIA GPU wins: lost by warps that run to their barriers alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.generate import programs

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executable; skips where there is no nvcc."""
    try:
        toolkit = programs.find_toolkit()
    except programs.BuildError as error:
        pytest.skip(str(error))
    source = Path(__file__).with_name("neighbours.cu")
    program = programs.Program("neighbours", source, (), {}, "")
    out = tmp_path_factory.mktemp("neighbours") / "neighbours"
    return programs.build_program(program, out, [80, 90], toolkit=toolkit)


@pytest.mark.parametrize("arch", ["8.0", "9.0"])
def test_turns_decide_the_race(run_program: Run, neighbours: Path, arch: str) -> None:
    """Both ways with one cache: host code for turns has a key of its own."""
    environment = {"SASSXLATE_CC": arch}
    alone = run_program(neighbours, environment=environment)
    assert alone.status == 1, alone.errors
    assert "shared 0" not in alone.output
    assert "global 0" not in alone.output
    assert "sums 0" not in alone.output
    turns = run_program(neighbours, options=["--interleave"], environment=environment)
    assert turns.output == "shared 0 wrong, global 0 wrong, sums 0 wrong\nPASS\n", turns.errors
    assert turns.status == 0


def test_a_report_counts_in_turns(run_program: Run, neighbours: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.json"
    run_program(neighbours, options=["--interleave", "--report", str(page)])
    assert '"waves": 8' in page.read_text()


def test_a_card_takes_no_turns(run_program: Run, neighbours: Path) -> None:
    done = run_program(neighbours, options=["--interleave", "--device", "hip"])
    assert "SX0719" in done.errors

"""Programs built in other ways than nvcc's default: debug, separate compilation, cooperative."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli

SOURCES = Path(__file__).resolve().parent / "builds"


def _sweep(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.sweep)


@pytest.mark.parametrize(
    ("name", "flags", "arch"),
    [
        ("functions", "-rdc=true", 90),
        ("functions", "-G", 80),
        ("grid", "-O3", 90),
        ("shared_index", "-O3", 80),
        ("capture", "-O3", 90),
        ("graphs", "-O3", 80),
        ("whole_words", "-O3", 90),
        ("saved_barriers", "-O3", 80),
        ("atomic128", "-O3", 90),
        ("clusters", "-O3", 90),
        ("deep_recursion", "-O3", 80),
        _sweep("deep_recursion", "-G", 90),
        ("occupancy", "-O3", 90),
        ("parameter_address", "-G", 80),
        _sweep("parameter_address", "-G", 75),
        _sweep("parameter_address", "-G", 90),
        ("parameter_address", "-G", 120),
        ("tiles", "-G", 90),
        ("tiles", "-G", 80),  # the word is read at an index
        _sweep("tiles", "-O3", 80),
        _sweep("tiles", "-O3", 90),
        _sweep("tiles", "-O3", 120),
        _sweep("tiles", "-G", 120),
        ("multiprocessors", "-G", 90),
        _sweep("multiprocessors", "-G", 75),
        _sweep("multiprocessors", "-G", 80),
        _sweep("multiprocessors", "-G", 120),
        _sweep("clusters", "-O3", 120),
        _sweep("atomic128", "-G", 90),
        _sweep("atomic128", "-O3", 120),
        _sweep("whole_words", "-O3", 80),
        _sweep("saved_barriers", "-O3", 90),
        _sweep("saved_barriers", "-G", 80),
        _sweep("graphs", "-O3", 90),
        _sweep("functions", "-rdc=true", 80),
        _sweep("functions", "-G", 90),
        _sweep("grid", "-O3", 80),
        _sweep("grid", "-rdc=true", 80),
    ],
)
def test_build(
    name: str,
    flags: str,
    arch: int,
    run_program: Callable[..., Any],
    compiled: Callable[..., Path],
) -> None:
    program = compiled(SOURCES / name, [flags], arch)
    outcome = run_program(program, environment={"SASSXLATE_CC": str(arch)})
    assert outcome.status == 0, f"{outcome.output}\n{outcome.errors}"
    assert re.match(r"bad 0\s", outcome.output)


@pytest.mark.sweep
def test_blocks_of_few_multiprocessors(
    run_program: Callable[..., Any], compiled: Callable[..., Path], tmp_path: Path
) -> None:
    """Their number is read at each launch: the code is the same for all, by either engine."""
    program = compiled(SOURCES / "multiprocessors", ["-O3"], 80)
    report = tmp_path / "report.json"
    asked = [str(program), "--engine", "llvm", "-o", str(tmp_path), "--report", str(report)]
    assert CliRunner().invoke(cli, ["translate", *asked]).exit_code == 0
    kernels = json.loads(report.read_text("utf-8"))["kernels"]
    outcomes = {k["kernel"]: k["engine"]["outcomes"] for k in kernels}
    assert outcomes["_Z4lookPj"] == outcomes["_Z4onlyPjj"] == {"accepted": 1}
    for count, options in (("1", ()), ("7", ()), ("7", ("--engine", "llvm"))):
        told = {"SASSXLATE_CC": "80", "SASSXLATE_MULTIPROCESSORS": count}
        outcome = run_program(program, options=options, environment=told)
        assert re.match(r"bad 0\s", outcome.output), outcome.errors

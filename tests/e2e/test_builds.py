"""Programs built in other ways than nvcc's default: debug, separate compilation, cooperative."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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
        ("tiles", "-G", 90),
        _sweep("tiles", "-O3", 90),
        _sweep("tiles", "-O3", 120),
        _sweep("tiles", "-G", 120),
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


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param("-O3", marks=pytest.mark.sweep),  # the word itself; -G has it at an index
        "-G",
    ],
)
def test_no_memory_is_reserved_at_the_end(
    flags: str, run_program: Callable[..., Any], compiled: Callable[..., Path]
) -> None:
    """Before sm_90 the memory of tiles of several warps follows the block's own; with its place
    read as 0, tiles overwrote variables of the block."""
    program = compiled(SOURCES / "tiles", [flags], 80)
    outcome = run_program(program, environment={"SASSXLATE_CC": "80"})
    assert outcome.status != 0
    assert "SX0413" in outcome.errors
    assert "word 0x124" in outcome.errors

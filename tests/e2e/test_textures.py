"""Textures and surfaces, against the same arithmetic on the host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BUILDS = Path(__file__).resolve().parent / "builds"


@pytest.mark.parametrize("arch", [80, pytest.param(90, marks=pytest.mark.sweep)])
def test_textures(
    arch: int, run_program: Callable[..., Any], compiled: Callable[..., Path]
) -> None:
    program = compiled(BUILDS / "textures", ["-O3", "-w"], arch)
    outcome = run_program(program, environment={"SASSXLATE_CC": str(arch)})
    assert outcome.output == "bad 0 of 5113\n", outcome.errors
    assert outcome.status == 0


@pytest.mark.parametrize("arch", [80, pytest.param(90, marks=pytest.mark.sweep)])
def test_stores_at_the_edges_of_coordinates(
    arch: int, run_program: Callable[..., Any], compiled: Callable[..., Path]
) -> None:
    """A store outside does nothing or traps, wherever it is: also where x + size passes 2^32, as
    that of a negative x does."""
    program = compiled(BUILDS / "surfaces", ["-O3", "-w"], arch)
    environment = {"SASSXLATE_CC": str(arch)}
    outcome = run_program(program, ["zero"], environment=environment)
    assert outcome.output == "bad 0 0 0 0 0, cudaSuccess\n", outcome.errors
    inside = [("0", "0"), ("60", "3")]
    outside = [("64", "0"), ("0", "4"), ("0xfffffffc", "0"), ("0xfffffffd", "0")]
    outside += [("0xffffffff", "3"), ("0", "0xffffffff"), ("0", "0x04000000")]
    for x, y in inside + outside:
        outcome = run_program(program, ["trap", x, y], environment=environment)
        assert outcome.output == ("0\n" if (x, y) in inside else "719\n"), (x, y, outcome.errors)

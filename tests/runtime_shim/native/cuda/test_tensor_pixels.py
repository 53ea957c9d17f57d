"""Copies of columns of pixels (im2col) by tensor maps: what an H100 leaves, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run
from .driver_program import Tool
from .tensor_cases import Case, cases_of, check, program_of


def _cases() -> list[Case]:
    return cases_of("tensor_pixels", 39)


@pytest.fixture(scope="module")
def program(nvcc: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program_of("tensor_pixels", nvcc, tmp_path_factory.mktemp("pixels"))


def test_what_an_h100_left(program: Path, run: Run, tmp_path: Path) -> None:
    """Columns of one to three spatial dimensions, with corners, offsets and steps, partly outside
    of the tensor, each swizzle; and the encoder's errors."""
    cases = [case for case in _cases() if not case.error]
    assert len(cases) > 300
    assert check(program, run, tmp_path, cases) >= 300


def _failing() -> list[Case]:
    return [case for case in _cases() if case.error]


@pytest.mark.parametrize("number", [0, 6, 9])
def test_what_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    """Stores with a window or at coordinates outside of the tensor, columns that begin outside of
    the window or within 16 bytes."""
    assert check(program, run, tmp_path, [_failing()[number]]) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(61))
def test_all_that_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    assert len(_failing()) == 61
    assert check(program, run, tmp_path, [_failing()[number]]) == 1

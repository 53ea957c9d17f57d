"""Copies of tiles by tensor maps: the bytes that an H100 leaves, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run
from .driver_program import Tool
from .tensor_cases import Case, cases_of, check, program_of

_STEPS, _BYTES = slice(18, 23), 32  # columns of a case


def _cases() -> list[Case]:
    # An interleaved box has more bytes than the program expected: it had not arrived.
    made = cases_of("tensor_copies", 33)
    return [case for case in made if case.arrived or case.error or not case.numbers[_BYTES]]


@pytest.fixture(scope="module")
def program(nvcc: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program_of("tensor_copies", nvcc, tmp_path_factory.mktemp("copies"))


def test_what_an_h100_left(program: Path, run: Run, tmp_path: Path) -> None:
    """Tiles of one to five dimensions, partly outside of the tensor, each swizzle at each address;
    and the encoder's errors.  48 loads, 6 stores and 88 questions to the encoder were not
    refused when this was written."""
    cases = [case for case in _cases() if not case.error]
    assert len(cases) > 200
    assert check(program, run, tmp_path, cases) >= 142


def _failing() -> list[Case]:
    """Without those of strides of elements, which are refused."""
    return [case for case in _cases() if case.error and max(case.numbers[_STEPS]) == 1]


@pytest.mark.parametrize("number", [0, 2, 14])
def test_what_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    """Boxes that begin within 16 bytes, and stores at negative coordinates."""
    assert check(program, run, tmp_path, [_failing()[number]]) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(17))
def test_all_that_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    assert len(_failing()) == 17
    assert check(program, run, tmp_path, [_failing()[number]]) == 1

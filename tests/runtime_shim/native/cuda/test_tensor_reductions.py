"""Reductions of tiles by tensor maps: the bytes that an H100 leaves, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.lowering.rules.memory.tensor.reductions import TYPES

from .conftest import Run
from .driver_program import Tool
from .tensor_cases import Case, cases_of, check, program_of


def _cases() -> list[Case]:
    return cases_of("tensor_reductions", 9)


@pytest.fixture(scope="module")
def program(nvcc: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program_of("tensor_reductions", nvcc, tmp_path_factory.mktemp("reductions"))


def test_what_an_h100_left(program: Path, run: Run, tmp_path: Path) -> None:
    """Every operation on every type that has it, of edge values, with a tile in the tensor and one
    partly outside; flushed FP32 and TF32 are refused by the encoder."""
    cases = [case for case in _cases() if not case.error]
    assert len(cases) == 66
    assert check(program, run, tmp_path, cases) == 60


def test_each_pair_was_measured() -> None:
    """The pairs of operation and type that are translated are those that an H100 executed."""
    done = {(case.numbers[0], case.numbers[1]) for case in _cases() if not case.error}
    assert {(op, kind) for op, kinds in enumerate(TYPES.values()) for kind in kinds} == {
        (op, kind) for op, kind in done if kind < 10
    }


def _failing() -> list[Case]:
    return [case for case in _cases() if case.error]


@pytest.mark.parametrize("number", [0, 8])
def test_what_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    """INC of 64 bits, extremes of FP32."""
    assert check(program, run, tmp_path, [_failing()[number]]) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(13))
def test_all_that_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    assert len(_failing()) == 13
    assert check(program, run, tmp_path, [_failing()[number]]) == 1

"""Copies of columns of pixels (im2col) by tensor maps: what an H100 leaves, and its errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from .conftest import HERE, Run, Tool

TRUTH = HERE.parents[3] / "fixtures" / "silicon" / "sm_90" / "tensor_pixels.npz"
_REFUSED, _TRAP, _ILLEGAL = 801, 719, 715
_WAY, _BYTES, _DUMP = 0, 38, 39  # columns of a case

Bytes = npt.NDArray[np.uint8]


class Case:
    """A line of numbers for the program; what the card answered, and the bytes that it left."""

    def __init__(self, numbers: list[int], head: list[int], left: Bytes) -> None:
        self.numbers, self.left = numbers, left
        self.encoder, self.error, self.arrived = head

    def fits(self, encoder: int, error: int, left: Bytes) -> str:
        """What is wrong with ours, or nothing."""
        if encoder == _REFUSED and not self.encoder:
            return ""
        if encoder != self.encoder:
            return f"the encoder said {encoder}, not {self.encoder}"
        if error != {_ILLEGAL: _TRAP}.get(self.error, self.error):
            return f"error {error}, not {self.error}"
        same = error or bool((left == self.left).all())
        return "" if same else f"{(left != self.left).sum()} bytes differ"


def _cases() -> list[Case]:
    with np.load(TRUTH) as truth:
        rows, heads, data = truth["cases"].tolist(), truth["heads"].tolist(), truth["data"]
    ends = np.cumsum([row[_DUMP] for row in rows])[:-1]
    return list(map(Case, rows, heads, np.split(data, ends)))


@pytest.fixture(scope="module")
def program(nvcc: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pixels") / "tensor_pixels"
    code = ("-gencode", "arch=compute_90a,code=sm_90a")
    nvcc(*code, "-std=c++17", HERE / "programs" / "tensor_pixels.cu", "-o", made)
    return made


def _check(program: Path, run: Run, folder: Path, cases: list[Case]) -> int:
    """How many were not refused.  A case that fails is the last of its process."""
    given, found = folder / "cases.txt", folder / "found.bin"
    given.write_text("".join(" ".join(map(str, case.numbers)) + "\n" for case in cases))
    done = run(program, str(given), str(found))
    data = np.frombuffer(found.read_bytes(), np.uint8)
    at = ran = 0
    for case in cases:
        encoder, error = data[at : at + 8].view(np.int32).tolist()
        at += 8 + case.numbers[_DUMP]
        wrong = case.fits(encoder, error, data[at - case.numbers[_DUMP] : at])
        assert not wrong, (wrong, case.numbers, done.stderr)
        ran += encoder != _REFUSED
    assert at == len(data)
    return ran


def test_what_an_h100_left(program: Path, run: Run, tmp_path: Path) -> None:
    """Columns of one to three spatial dimensions, with corners, offsets and steps, partly outside
    of the tensor, each swizzle; and the encoder's errors."""
    cases = [case for case in _cases() if not case.error]
    assert len(cases) > 300
    assert _check(program, run, tmp_path, cases) >= 300


def _failing() -> list[Case]:
    return [case for case in _cases() if case.error]


@pytest.mark.parametrize("number", [0, 6, 9])
def test_what_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    """Stores with a window or at coordinates outside of the tensor, columns that begin outside of
    the window or within 16 bytes."""
    assert _check(program, run, tmp_path, [_failing()[number]]) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(61))
def test_all_that_is_an_error(program: Path, run: Run, tmp_path: Path, number: int) -> None:
    assert len(_failing()) == 61
    assert _check(program, run, tmp_path, [_failing()[number]]) == 1

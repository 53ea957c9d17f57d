"""The approximate functions as translated, compared with an H200: the bounds of docs/rdna3.md."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from tests.disasm.sass.interpreter.launches import Prepared, Words

HERE = Path(__file__).resolve().parent
MEASURED = HERE.parents[2] / "fixtures" / "silicon" / "sm_90" / "approximations.xz"
SINGLES = ("sin", "cos", "ex2", "lg2", "tanh", "rcp", "rsqrt", "sqrt")
HALVES = ("ex2.f16", "tanh.f16", "ex2.bf16", "tanh.bf16")
_EACH = 13  # arguments of a sign and exponent
_COUNT = 512 * _EACH

# The largest distance from the H200's result: absolute, or relative, or units of the last place.
ABSOLUTE = {"sin": 2.0**-21.5, "cos": 2.0**-21.5}
RELATIVE = {"tanh": 2.0**-16.5}
ULPS = {"ex2": 2, "rcp": 1, "rsqrt": 1, "sqrt": 1}


def _arguments() -> Words:
    """Both ends and the middle of each sign and exponent, and others by a multiplicative hash."""
    fixed = (0, 1, 0x7FFFFF, 0x7FFFFE, 0x400000, 0x3FFFFF)
    out: list[int] = []
    for bucket in range(512):
        spread = [(bucket * 64 + i) * 2654435761 % 2**32 >> 9 for i in range(6, 64, 9)]
        out += [bucket << 23 | m for m in (*fixed, *spread)]
    return np.array(out, np.uint32)


@cache
def _measured() -> tuple[Words, NDArray[np.uint16]]:
    data = lzma.decompress(MEASURED.read_bytes())
    singles = np.frombuffer(data, np.uint32, len(SINGLES) * _COUNT).reshape(len(SINGLES), -1)
    halves = np.frombuffer(data, np.uint16, offset=singles.nbytes).reshape(len(HALVES), -1)
    return singles, halves


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Words, Words]:
    """The translation's results for the arguments, and for all halves."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    made = tmp_path_factory.mktemp("approximations") / "approximations.cubin"
    words = [nvcc, "-O3", "-arch=sm_90", "-cubin", HERE / "approximations.cu", "-o", made]
    subprocess.run(words, check=True, capture_output=True)
    given = np.concatenate([_arguments(), np.arange(1 << 16, dtype=np.uint32)])
    inputs = given, np.zeros(4, np.uint32), np.zeros(12 * len(given), np.uint32)
    grid = (len(given) + 127) // 128, 1, 1
    cubin = parse_cubin(made.read_bytes())
    launch = Prepared(cubin, "approximations", grid, (128, 1, 1), inputs, len(given))
    out = launch.translated().reshape(-1, 12).T
    return out[:8, :_COUNT], out[8:, _COUNT:]


@pytest.mark.parametrize("name", SINGLES)
def test_singles(name: str, results: tuple[Words, Words]) -> None:
    n = SINGLES.index(name)
    ours, theirs = np.ascontiguousarray(results[0][n]), _measured()[0][n]
    a, b = (w.view(np.float32).astype(np.float64) for w in (ours, theirs))
    finite = np.isfinite(a) & np.isfinite(b)
    # Infinities and NaN are the same to the bit.
    assert np.flatnonzero(~finite & (ours != theirs)).tolist() == []
    a, b = a[finite], b[finite]
    distance = np.abs(a - b)
    steps = np.abs(ours[finite].astype(np.int64) - theirs[finite].astype(np.int64))
    if name in ABSOLUTE:
        assert distance.max() <= ABSOLUTE[name]
    elif name in RELATIVE:
        assert (distance <= RELATIVE[name] * np.abs(b)).all()
    elif name == "lg2":  # the larger of 2**-22 and two units in the last place
        assert ((distance <= 2.0**-22) | (steps <= 2)).all()
    else:
        assert steps.max() <= ULPS[name]


@pytest.mark.parametrize("name", HALVES)
def test_halves(name: str, results: tuple[Words, Words]) -> None:
    """All 65,536 of them: EX2 to the bit; TANH within a unit, and small arguments themselves."""
    n = HALVES.index(name)
    ours, theirs = results[1][n].astype(np.uint16), _measured()[1][n]
    assert np.flatnonzero(results[1][n] >> 16).tolist() == []
    wrong = np.flatnonzero(ours != theirs)
    if name.startswith("ex2"):
        assert wrong.tolist() == []
        return
    assert np.abs(ours[wrong].astype(int) - theirs[wrong].astype(int)).max() <= 1
    itself = 0x1C00 if name.endswith(".f16") else 0x3B80  # 2**-8
    assert (wrong & 0x7FFF > itself).all()
    assert len(wrong) <= {"tanh.f16": 312, "tanh.bf16": 36}[name]

"""`run --launches`: which kernels were launched, with which grids."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import launches, paths

REDUCTION = Path(__file__).resolve().parents[2] / "fixtures" / "programs" / "reduction"


def test_lines_of_a_trace(tmp_path: Path) -> None:
    """Equal launches are counted; one that failed is apart."""
    shape = "grid 2 1 1 block 32 4 1 shared 16"
    (tmp_path / "cuda-7.txt").write_text(
        f"cuInit 0 \ncuLaunchKernel 0 {shape} _Z1kPi\ncuLaunchKernel 0 {shape} _Z1kPi\n"
        f"cuLaunchKernel 1 {shape} _Z1kPi\ncuLaunchKernel 0 grid 2"
    )
    (tmp_path / "cuda-9.txt").write_text(f"cuLaunchCooperativeKernel 0 {shape} plain\n")
    assert [*launches.lines(tmp_path)] == [
        "2 x k(int*) <<<(2, 1, 1), (32, 4, 1), 16>>>",
        "1 x k(int*) <<<(2, 1, 1), (32, 4, 1), 16>>>: error 1",
        "1 x plain <<<(2, 1, 1), (32, 4, 1), 16>>>",
    ]


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "sassxlate", "run", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not REDUCTION.is_file():
        pytest.skip("fixtures/programs/reduction is absent")
    monkeypatch.setenv("SASSXLATE_SERVICE_IDLE", "2")
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    done = _run("--device", "emulator", "--launches", "--trace", tmp_path / "calls", REDUCTION)
    assert done.returncode == 0, done.stderr
    expected = [
        "1 x sum_and_largest(int const*, int) <<<(24, 1, 1), (256, 1, 1), 0>>>",
        "1 x sum_of_floats(int const*, int, float*) <<<(17, 1, 1), (192, 1, 1), 0>>>",
    ]
    assert done.stderr.splitlines()[-2:] == expected
    assert any(os.scandir(tmp_path / "calls"))
    again = _run("--device", "emulator", "--launches", REDUCTION)
    assert again.stderr.splitlines()[-2:] == expected
    assert not list(paths.runtime_dir().glob("trace-*"))


def test_it_reads_lines() -> None:
    done = _run("--launches", "--trace", "t", "--trace-format", "perfetto", REDUCTION)
    assert (done.returncode, "SX0719" in done.stderr) == (2, True)

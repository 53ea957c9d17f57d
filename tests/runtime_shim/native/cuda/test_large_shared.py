"""Blocks with more shared memory than an RDNA3 workgroup has: the emulated device gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import HERE, Run
from .driver_program import Tool

# Per multiprocessor, per block; blocks at the most and at 48 KiB; what is left to each of two.
SAID = {
    "7.5": "65536 64512 1 0 1 1 31744",
    "8.0": "167936 166912 1 0 1 3 82944",
    "8.6": "102400 101376 1 0 1 2 50176",
    "9.0": "233472 232448 1 0 1 4 115712",
}


@pytest.fixture(scope="module")
def program(nvcc: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("large") / "large_shared"
    codes = [f"-gencode=arch=compute_{cc},code=sm_{cc}" for cc in ("75", "80", "86", "90")]
    nvcc(*codes, "-std=c++17", HERE / "programs" / "large_shared.cu", "-o", made)
    return made


@pytest.mark.parametrize("capability", SAID)
def test_all_of_it(program: Path, run: Run, capability: str) -> None:
    """Every word is written and read back by asynchronous copies, atomics and generic addresses."""
    done = run(program, SASSXLATE_CC=capability)
    assert done.stdout == f"{SAID[capability]}\ncudaSuccess\nwrong 0\n", done.stderr

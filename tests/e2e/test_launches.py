"""What launches ask of the device and of the driver, and the capability that a program finds."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parent / "builds" / "launches.cu"
BOTH = ("-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90")


def _sweep(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.sweep)


@pytest.mark.parametrize(
    ("codes", "asked", "found"),
    [
        (("-arch=sm_80",), None, 80),
        (BOTH, None, 90),
        _sweep(BOTH, "8.6", 86),
        _sweep(("-arch=sm_90",), "9.0", 90),
        _sweep(("-arch=sm_80", "-cudart", "shared"), None, 80),
        _sweep(("-arch=sm_80", "--default-stream", "legacy", "-G"), None, 80),
    ],
)
def test_launches(
    codes: tuple[str, ...],
    asked: str | None,
    found: int,
    run_program: Callable[..., Any],
    tmp_path: Path,
) -> None:
    """One program for all; without SASSXLATE_CC it finds the newest device that it has code for."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    program = tmp_path / "launches"
    subprocess.run([nvcc, "-O3", "-w", *codes, SOURCE, "-o", program], check=True)
    environment = {} if asked is None else {"SASSXLATE_CC": asked}
    outcome = run_program(program, [str(found)], environment=environment)
    assert (outcome.output, outcome.status) == ("bad 0\n", 0), f"{outcome.output}{outcome.errors}"

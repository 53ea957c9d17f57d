"""Textures and surfaces, against the same arithmetic on the host."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parent / "builds" / "textures.cu"


@pytest.mark.parametrize("arch", [80, pytest.param(90, marks=pytest.mark.sweep)])
def test_textures(arch: int, run_program: Callable[..., Any], tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    program = tmp_path / "textures"
    command = [nvcc, "-O3", "-w", f"-arch=sm_{arch}", str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    outcome = run_program(program, environment={"SASSXLATE_CC": str(arch)})
    assert outcome.output == "bad 0 of 5113\n", outcome.errors
    assert outcome.status == 0

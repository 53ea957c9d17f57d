"""Programs of CUDA 11: its runtime's interface differs from 12's in a few functions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

BUILDS = Path(__file__).resolve().parent / "builds"
WANTED = """version 11080
properties 0, 728 bytes
attributes 0, 56 bytes
instantiated 0, log ""
value 42
updated 0, result 0, node null
entry point 0 1
texture 0
texture reference 801
"""


def test_functions_that_differ_from_those_of_12(
    run_program: Callable[..., Any], tmp_path: Path
) -> None:
    """Lengths of structures, parameters, and texture references, which are refused by name."""
    nvcc, gxx = shutil.which("nvcc"), shutil.which("g++")
    if nvcc is None or gxx is None:
        pytest.skip("there is no nvcc or no g++ here")
    library = Path(str(resources.files("sassxlate.runtime_shim") / "lib" / "libcudart.so.11.0"))
    kernel, image, program = tmp_path / "twice.cu", tmp_path / "twice.fatbin", tmp_path / "program"
    kernel.write_text("__global__ void twice(int *p) { *p *= 2; }\n")
    subprocess.run([nvcc, "-arch=sm_80", "-fatbin", kernel, "-o", image], check=True)
    source = BUILDS / "cuda_11.cpp"
    subprocess.run([gxx, "-std=c++17", source, library, "-o", program], check=True)
    outcome = run_program(program, [str(image)])
    assert outcome.output == WANTED, f"{outcome.output}{outcome.errors}"
    assert "SX0752: cudaBindTexture is not implemented" in outcome.errors

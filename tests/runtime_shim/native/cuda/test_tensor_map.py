"""Tensor maps through the driver: a program that copies tiles both ways, and what is refused."""

from __future__ import annotations

from pathlib import Path

from .conftest import HERE, Run
from .driver_program import Tool


def test_tiles(nvcc: Tool, run: Run, tmp_path: Path) -> None:
    """A stride that is no multiple of 16 is an error, what copies do not do is refused by name."""
    program = tmp_path / "tensor_map"
    code = ("-gencode", "arch=compute_90a,code=sm_90a")
    nvcc(*code, "-std=c++17", HERE / "programs" / "tensor_map.cu", "-o", program)
    done = run(program)
    assert done.stdout == "1 801 801\nno error\nwrong 0\nwrong 0\n", done.stderr
    assert "SX0718: a tensor map with strides of elements" in done.stderr
    assert "SX0718: a tensor map that fills with NaN" in done.stderr

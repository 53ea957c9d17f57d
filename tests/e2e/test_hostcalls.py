"""What kernels call of the driver: printf, assert, malloc and free."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parent / "builds" / "hostcalls.cu"
LINES = """\
0: even  0.00 1099511627776 a% [0     |0000]
1: odd  0.50 1099511627777 b% [3     |0011]
2: even  1.00 1099511627778 c% [6     |0022]
3: odd  1.50 1099511627779 d% [9     |0033]
plain
4: even  2.00 1099511627780 e% [12    |0044]
5: odd  2.50 1099511627781 f% [15    |0055]
6: even  3.00 1099511627782 g% [18    |0066]
lists wrong = 0, failures = 0
assert: cudaErrorAssert
after: cudaErrorAssert
"""


@pytest.mark.parametrize("arch", [pytest.param(80, marks=pytest.mark.sweep), 90])
def test_printf_assert_and_malloc(
    arch: int, run_program: Callable[..., Any], tmp_path: Path
) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    program = tmp_path / "hostcalls"
    command = [nvcc, "-O3", f"-arch=sm_{arch}", str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    outcome = run_program(program, environment={"SASSXLATE_CC": str(arch)})
    assert sorted(outcome.output.splitlines()) == sorted(LINES.splitlines()), outcome.errors
    failed = [line for line in outcome.errors.splitlines() if "Assertion" in line]
    place = (
        "void check(int): block: [0,0,0], thread: [{},0,0] Assertion `threadIdx.x < limit` failed."
    )
    assert [line.split(": ", 1)[1] for line in failed] == [place.format(n) for n in (2, 3)]

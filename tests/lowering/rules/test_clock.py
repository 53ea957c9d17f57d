"""The clocks of kernels, on the emulated device."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Tool = Callable[..., str]


def test_a_wait_for_cycles_ends(nvcc: Tool, tmp_path: Path) -> None:
    """clock64() never goes back: of 20 bits, as RDNA3 counts cycles, this wait had no end."""
    program = tmp_path / "clock"
    nvcc("-arch=sm_90", Path(__file__).with_name("clock.cu"), "-o", program)
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--kernel-time-limit", "60"]
    done = subprocess.run(
        [*command, "--", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "0 1 1 1\n", done.stderr

"""Every answer of the runtime, over the emulated device, against those of an H200."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_answers_are_those_of_an_h200(kind: str, nvcc: Callable[..., str], tmp_path: Path) -> None:
    if not (resources.files("sassxlate.runtime_shim") / "lib" / "libcuda.so.1").is_file():
        pytest.skip("libcuda.so.1 is not built (runtime_shim/native/build.sh)")
    program = tmp_path / "answers"
    nvcc("-arch=sm_80", "-cudart", kind, HERE / "programs" / "answers.cu", "-o", program)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    expected = (HERE / "answers.txt").read_text("ascii")
    assert done.stdout.splitlines() == expected.splitlines(), done.stderr

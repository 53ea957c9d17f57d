"""Every answer of the runtime, over the emulated device, against those of an H200."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _run(
    name: str, kind: str, nvcc: Callable[..., str], folder: Path, *options: str
) -> tuple[str, str]:
    """What a program prints, on both streams."""
    if not (resources.files("sassxlate.runtime_shim") / "lib" / "libcuda.so.1").is_file():
        pytest.skip("libcuda.so.1 is not built (runtime_shim/native/build.sh)")
    program = folder / name
    nvcc("-arch=sm_80", *options, "-cudart", kind, HERE / "programs" / f"{name}.cu", "-o", program)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", str(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_answers_are_those_of_an_h200(kind: str, nvcc: Callable[..., str], tmp_path: Path) -> None:
    got, errors = _run("answers", kind, nvcc, tmp_path)
    expected = (HERE / "answers.txt").read_text("ascii")
    assert got.splitlines() == expected.splitlines(), errors


def test_not_ready_is_no_last_error(nvcc: Callable[..., str], tmp_path: Path) -> None:
    """It was; CatBoost, which checks the last error between two queries, ended with it."""
    got, errors = _run("not_ready", "static", nvcc, tmp_path)
    assert got == "0, 600 0 0, 600 0, 1 600 1, 0 0\n", errors


@pytest.mark.parametrize("options", [("-O3",), ("-rdc=true",)], ids=["whole", "rdc"])
def test_a_managed_variable(
    options: tuple[str, ...], nvcc: Callable[..., str], tmp_path: Path
) -> None:
    """It was a device's, like the __device__ variable beside it; nothing could be asked of it."""
    got, errors = _run("managed", "static", nvcc, tmp_path, *options)
    assert got.splitlines() == [
        "number: 0 type 3 device 0, same same",
        "list: 0 type 3 device 0, same same",
        "by name: 0 type 3 device 0, same same",
        "plain: 0 type 2 device 0, same null",
        "prefetch 0 1 0",
        "asked 0: 0",
        "asked 0: 0 -1",
        "free 1 1 1",
        "launch 0: 12 12",
    ], errors

"""Copies of arrays, registered memory, linear textures: the emulated device's against an H200's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WAYS_OF_REGISTERED = 32
UNTOUCHED = " 45149dc5"  # the sum of memory that nothing was copied to

# Refused here where an H200 copies: the layout of these in a device's memory is not measured.
REFUSED = {
    "lines 3 at 0 0 0 of 20 1 4:",
    "lines 1 at 1 0 0 of 19 1 4:",
    "lines 3 at 1 0 0 of 19 1 4:",
    "lines 1 at 0 0 1 of 4 1 3:",
    "lines 3 at 0 0 1 of 4 1 3:",
    "lines 1 at 3 0 1 of 5 1 2:",
    "lines 3 at 3 0 1 of 5 1 2:",
}


def answers(program: Path, *arguments: str) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", str(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout, done.returncode


def compact(text: str) -> list[str]:
    """Sums of untouched memory as `-`, of copies into arrays (none is taken) as `=`."""
    return text.replace(UNTOUCHED, " -").replace(" 00000000", " =").splitlines()


def expected(name: str) -> list[str]:
    return (HERE / f"{name}.txt").read_text("ascii").splitlines()


@pytest.fixture
def built(nvcc: Callable[..., str], tmp_path: Path) -> Callable[[str], Path]:
    if not (resources.files("sassxlate.runtime_shim") / "lib" / "libcuda.so.1").is_file():
        pytest.skip("libcuda.so.1 is not built (runtime_shim/native/build.sh)")

    def build(name: str) -> Path:
        nvcc("-arch=sm_80", HERE / "programs" / f"{name}.cu", "-o", tmp_path / name)
        return tmp_path / name

    return build


def test_copies_of_arrays(built: Callable[[str], Path]) -> None:
    ours = compact(answers(built("array_copies"))[0])
    theirs = expected("array_copies")
    assert len(ours) == len(theirs)
    different = {
        mine[: mine.index(":") + 1]: mine
        for mine, other in zip(ours, theirs, strict=True)
        if mine != other
    }
    assert set(different) == REFUSED
    assert all(": 801 " in line for line in different.values())


def test_linear_textures(built: Callable[[str], Path]) -> None:
    """All but memory at an odd multiple of 256 bytes, which an H200 refuses."""
    ours = compact(answers(built("linear_textures"))[0])
    theirs = [
        line.replace(": 1", ": 0") if " at 256, " in f" {line}" else line
        for line in expected("linear_textures")
    ]
    assert ours == theirs


def test_registered_memory_that_is_only_read(built: Callable[[str], Path]) -> None:
    """A line per way: the last word of every step's line, or all of the line that shows memory."""
    program = built("registered")
    ours: list[str] = []
    for way in range(WAYS_OF_REGISTERED):
        text, status = answers(program, str(way))
        ours.append(f"{way}: {registered(text)} {status}")
    assert ours == expected("registered")


def registered(text: str) -> str:
    return " ".join(
        line if line.startswith("own") else line.split()[-1] for line in text.splitlines()
    )

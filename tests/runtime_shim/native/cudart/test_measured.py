"""Copies of arrays, registered memory, linear textures: the emulated device's against an H200's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DRIVER = HERE.parents[3] / "fixtures" / "silicon" / "sm_90" / "driver"
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
    """Memory at an odd multiple of 256 bytes, too, which was taken once."""
    assert compact(answers(built("linear_textures"))[0]) == expected("linear_textures")


# What the emulated device has where an H200 has another number: its second-level cache is a tenth
# of that one's, of which limit 6 is sixteenths, and its greatest block's shared memory is limit 7:
# that of capability 8.0, which the programs here are compiled for.
PART_H200, PART, SHARED_H200, SHARED = 3932160, 393216, "232448", "166912"


def scaled(line: str) -> str:
    """A line of an H200's limits as the emulated device has to print it."""
    if line == "limit 0, 15: 0, then 15":  # all else that is set is rounded up there, too
        return "limit 0, 15: 0, then 16"
    share = re.fullmatch(r"limit 6, (\d+): 0, then \d+", line)
    if share:
        parts = -(-int(share[1]) // PART)
        return f"limit 6, {share[1]}: 0, then {parts * PART}"
    if line.startswith("limit 6, "):  # refused: the limit stays as it was
        return line
    if line.startswith(("limit ", "kernel: ")):
        return line.replace(f"then {SHARED_H200}", f"then {SHARED}")
    when, _, numbers = line.partition(": ")
    words = numbers.split(" ")
    words[6] = {str(PART_H200 * 3): str(PART * 3), str(PART_H200): str(PART * 3)}[words[6]]
    words[7] = words[7].replace(SHARED_H200, SHARED)
    return f"{when}: {' '.join(words)}"


def test_limits(built: Callable[[str], Path]) -> None:
    """What is set, what is then said, and what a reset leaves: as an H200, but for sizes."""
    ours = answers(built("limits"))[0].splitlines()
    assert ours == [scaled(line) for line in (DRIVER / "limits.txt").read_text().splitlines()]


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


def test_errors_of_launches(built: Callable[[str], Path]) -> None:
    """What an H100 answers to launches that cannot be; a block of capability 8.0 has less shared
    memory.  A launch that fails while its stream is captured leaves no graph: 901."""
    ours = answers(built("launch_errors"))[0].splitlines()
    theirs = expected("launch_errors")
    assert len(ours) == len(theirs)
    different = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    assert [b.split(":")[0] for _, b in different] == [
        "set shared 232448",
        "shared 232448",
    ]


def test_heap_limits_near_two_to_the_64(built: Callable[[str], Path]) -> None:
    """Rounded up to 64 KiB they become 0, and no malloc has memory; an H100 and an H200 say so."""
    huge = ("18446744073709551615", "18446744073709486081", "18446744073709486080")
    lines = [li for li in answers(built("limits"), *huge)[0].splitlines() if "limit" in li]
    assert lines[:2] == [f"limit 2, {value}: 0, then 0" for value in huge[:2]]
    assert lines[0] in (DRIVER / "limits_huge.txt").read_text().splitlines()
    assert lines[2].startswith(f"limit 2, {huge[2]}: 0, then ")
    assert int(lines[2].rpartition(" ")[2]) > 8 << 20
    blocks = answers(built("heap_blocks"), huge[0], "64")[0]
    assert blocks.startswith(f"{huge[0]} 64: 0 0, ")


def test_calls_while_a_stream_is_captured(built: Callable[[str], Path]) -> None:
    """An H100's answers.  What would wait, or use the legacy stream, was executed, and the graph
    was made all the same."""
    got, _ = answers(built("captures"))
    assert got.splitlines() == expected("captures")


def test_more_answers(built: Callable[[str], Path]) -> None:
    """An H100's (the last line: an H200's), to arguments that are wrong."""
    got, _ = answers(built("more_answers"))
    assert got.splitlines() == expected("more_answers")

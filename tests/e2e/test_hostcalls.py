"""What kernels call of the driver: printf, assert, malloc and free."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BUILDS = Path(__file__).resolve().parent / "builds"
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


SEVERAL = """\
taking 100
pointer 1, conversions 2, last byte 99
blocks 100000 of 100000
mixed: cudaSuccess
mistakes 0
before 7
assert: cudaErrorAssert
"""  # what several_calls.cu prints, here and on an H200 (2026-11-23), but for the lines of mixed()


def _build(name: str, flags: list[str], arch: int, folder: Path) -> Path:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc here")
    program = folder / Path(name).name
    command = [nvcc, *flags, f"-arch=sm_{arch}", str(BUILDS / f"{name}.cu"), "-o", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    return program


@pytest.mark.parametrize("arch", [pytest.param(80, marks=pytest.mark.sweep), 90])
def test_printf_assert_and_malloc(
    arch: int, run_program: Callable[..., Any], tmp_path: Path
) -> None:
    program = _build("hostcalls", ["-O3"], arch, tmp_path)
    outcome = run_program(program, environment={"SASSXLATE_CC": str(arch)})
    assert sorted(outcome.output.splitlines()) == sorted(LINES.splitlines()), outcome.errors
    failed = [line for line in outcome.errors.splitlines() if "Assertion" in line]
    place = (
        "void check(int): block: [0,0,0], thread: [{},0,0] Assertion `threadIdx.x < limit` failed."
    )
    assert [line.split(": ", 1)[1] for line in failed] == [place.format(n) for n in (2, 3)]


def _mixed_lines(threads: int, rounds: int = 24) -> Counter[str]:
    """What mixed() of several_calls.cu prints in two blocks of ``threads``."""
    lines: Counter[str] = Counter()
    for lane in range(2 * threads):
        state = threads + 0x9E3779B9 * (lane + 1)
        for number in range(rounds):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            if state >> 28 == 7:
                lines[f"lane {lane} round {number}"] += 1
    return lines


def _sweep(flags: str, arch: int, option: str = "") -> Any:
    return pytest.param(flags, arch, option, marks=pytest.mark.sweep)


@pytest.mark.parametrize(
    ("flags", "arch", "option"),
    [
        ("-O3", 90, ""),
        ("-G", 80, ""),
        ("-G", 75, "--strict"),
        _sweep("-O3", 75, "--strict"),
        _sweep("-O3", 80, "--strict"),
        _sweep("-O3", 90, "--strict"),
        _sweep("-O0", 90),
        _sweep("-rdc=true", 80),
        _sweep("-rdc=true", 90),
        _sweep("-rdc=true -G", 90, "--strict"),
        _sweep("-G", 90, "--strict"),
    ],
)
def test_several_functions_of_the_driver_in_one_kernel(
    flags: str, arch: int, option: str, run_program: Callable[..., Any], tmp_path: Path
) -> None:
    """Each lane gets what it called for, whatever others call: printf and assert, printf and
    malloc, a hundred thousand malloc and free, all four under lanes that go different ways."""
    program = _build("several_calls", flags.split(), arch, tmp_path)
    options = option.split()
    outcome = run_program(program, options=options, environment={"SASSXLATE_CC": str(arch)})
    lines = outcome.output.splitlines()
    said = Counter(line for line in lines if line.startswith("lane "))
    rest = [line for line in lines if not line.startswith("lane ")]
    assert rest == SEVERAL.splitlines(), outcome.errors
    assert said == sum((_mixed_lines(n) for n in (1, 32, 45, 96)), Counter[str]())
    place = "void say_and_stop(int): block: [0,0,0], thread: [0,0,0] Assertion `n == 0` failed."
    assert outcome.errors.count(place) == 1


HEAP = """\
default 8388608
{set}0: {small} of 65536
0: {large} of 1000000
0: {small} of 65536
0 of 1 TiB
set later: 1, 1, {limit}, cudaErrorInvalidValue
within 1, full 1, {small} of 65536, faults 0, cudaSuccess
reset 8388608, set 0
157 of 65536
"""


@pytest.mark.parametrize("option", ["", "--strict"])
@pytest.mark.parametrize(
    ("asked", "limit", "small", "large"),
    [
        (0, 8388608, 78, 6),
        (4194304, 4194304, 39, 3),
        (10_000_000, 10_027_008, 94, 8),
        (67_108_864, 67_108_864, 629, 53),
    ],
)
def test_the_limit_of_the_heap(
    asked: int, limit: int, small: int, large: int, option: str,
    run_program: Callable[..., Any], tmp_path: Path,
) -> None:  # fmt: skip
    """What a kernel can hold is what an H200 says, but for one more of 52 in the last case; limits
    are raised, rounded and refused as there.  Many threads together get no more."""
    program = _build("heap", ["-O2"], 90, tmp_path)
    outcome = run_program(program, [str(asked)], options=option.split())
    done = f"set 1: 0, 4194304\nset all: 0, 1\nset: 0, {limit}\n" if asked else ""
    want = HEAP.format(set=done, small=small, large=large, limit=limit)
    assert outcome.output == want, outcome.errors


PROGRAMS = Path(__file__).resolve().parents[1] / "runtime_shim/native/cudart/programs"
FORMATS = """\
13|42    |
14|%.*f|
15|%.*f|
16|%*.*f|
20|%.*s|
22|    1|%.*f||
52|%zu|
53|%td|
54|%jd|
92|%Lf|
"""  # of formats.cu on an H200 (580.159.04, 2026-11-23): a number and a bar begin a line
LIMITS = """\
limit 0, 17: 0, then 32
limit 0, 1000: 0, then 1008
limit 0, 262144: 0, then 262144
limit 0, 523264: 1, then 262144
limit 1, 0: 0, then 524288
limit 1, 1000000: 0, then 1000192
limit 1, 7340033: 0, then 7340288
limit 3, 0: 215, then 12345
limit 4, 1: 0, then 32
limit 4, 129: 0, then 129
limit 4, 18446744073709551615: 0, then 599186
limit 5, 129: 1, then 128
limit 8, 1: 800, then 0
limit 9, 1: 215, then 12345
limit 100, 1: 1, then 12345
"""  # of limits.cu on the same H200


@pytest.mark.parametrize(("name", "lines"), [("formats", FORMATS), ("limits", LIMITS)])
def test_formats_and_limits_are_an_h200s(
    name: str, lines: str, run_program: Callable[..., Any], tmp_path: Path
) -> None:
    source = tmp_path / f"{name}.cu"
    text = (PROGRAMS / source.name).read_text()
    # Without the bytes that are no UTF-8.
    source.write_text(text.replace("0x80 + seven", "'b'").replace("\\xff", ""))
    program = _build(str(source.with_suffix("")), ["-O3"], 90, tmp_path)
    outcome = run_program(program)
    said = set(outcome.output.splitlines())
    assert [line for line in lines.splitlines() if line not in said] == [], outcome.errors


@pytest.mark.parametrize("kernel", ["1", "2"])
def test_a_string_outside_global_memory_is_reported(
    kernel: str, run_program: Callable[..., Any], tmp_path: Path
) -> None:
    program = _build(str(PROGRAMS / "formats"), ["-O3"], 90, tmp_path)
    outcome = run_program(program, [kernel])
    assert "SX0771" in outcome.errors

"""What kernels call of the driver: printf, assert, malloc and free."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli

Run = Callable[..., Any]
Compiled = Callable[..., Path]
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


@pytest.mark.parametrize("arch", [pytest.param(80, marks=pytest.mark.sweep), 90])
def test_printf_assert_and_malloc(arch: int, run_program: Run, compiled: Compiled) -> None:
    program = compiled(BUILDS / "hostcalls", ["-O3"], arch)
    outcome = run_program(program, environment={"SASSXLATE_CC": str(arch)})
    assert sorted(outcome.output.splitlines()) == sorted(LINES.splitlines()), outcome.errors
    failed = [line for line in outcome.errors.splitlines() if "Assertion" in line]
    place = (
        "void check(int): block: [0,0,0], thread: [{},0,0] Assertion `threadIdx.x < limit` failed."
    )
    assert [line.split(": ", 1)[1] for line in failed] == [place.format(n) for n in (2, 3)]


@pytest.mark.parametrize(
    ("flags", "arch"),
    [
        ("-G", 90),
        pytest.param("-O3", 80, marks=pytest.mark.sweep),
        pytest.param("-O3", 90, marks=pytest.mark.sweep),
        pytest.param("-G", 80, marks=pytest.mark.sweep),
    ],
)
def test_an_assertion_by_the_optimising_tier(
    flags: str, arch: int, run_program: Run, compiled: Compiled, tmp_path: Path
) -> None:
    """It fails in one thread; the launch before, in which it holds, has its results."""
    program = compiled(BUILDS / "asserting", [flags], arch)
    report = tmp_path / "report.json"
    asked = [str(program), "--engine", "llvm", "-o", str(tmp_path), "--report", str(report)]
    assert CliRunner().invoke(cli, ["translate", *asked]).exit_code == 0
    (kernel,) = json.loads(report.read_text("utf-8"))["kernels"]
    assert kernel["engine"]["outcomes"] == {"accepted": 1}  # not the rules' code
    options, environment = ("--engine", "llvm"), {"SASSXLATE_CC": str(arch)}
    outcome = run_program(program, options=options, environment=environment)
    assert outcome.output == "fine: cudaSuccess\nsum 98176\nfailed: cudaErrorAssert\n"
    failed = [line for line in outcome.errors.splitlines() if "Assertion" in line]
    place = "block: [3,0,0], thread: [63,0,0] Assertion `v < limit` failed."
    text = "void check(int *, const int *, int): "
    assert [line.split(": ", 1)[1] for line in failed] == [f"{text}{place}"]


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
        ("-G", 75, "--strict"),
        _sweep("-O3", 90),
        _sweep("-G", 80),
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
    flags: str,
    arch: int,
    option: str,
    run_program: Callable[..., Any],
    compiled: Callable[..., Path],
) -> None:
    """Each lane gets what it called for, whatever others call: printf and assert, printf and
    malloc, a hundred thousand malloc and free, all four under lanes that go different ways."""
    program = compiled(BUILDS / "several_calls", flags.split(), arch)
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


_HEAPS = (
    (0, 8388608, 78, 6),
    (4194304, 4194304, 39, 3),
    (10_000_000, 10_027_008, 94, 8),
    (67_108_864, 67_108_864, 629, 53),
)


@pytest.mark.parametrize(
    ("asked", "limit", "small", "large", "option"),
    [
        *((*heap, "") for heap in _HEAPS),
        (*_HEAPS[1], "--strict"),
        *(
            pytest.param(*heap, "--strict", marks=pytest.mark.sweep)
            for heap in (_HEAPS[0], *_HEAPS[2:])
        ),
    ],
)
def test_the_limit_of_the_heap(
    asked: int, limit: int, small: int, large: int, option: str,
    run_program: Run, compiled: Compiled,
) -> None:  # fmt: skip
    """What a kernel can hold is what an H200 says, but for one more of 52 in the last case; limits
    are raised, rounded and refused as there.  Many threads together get no more."""
    program = compiled(BUILDS / "heap", ["-O2"], 90)
    outcome = run_program(program, [str(asked)], options=option.split())
    done = f"set 1: 0, 4194304\nset all: 0, 0\nset much: 0, 1\nset: 0, {limit}\n" if asked else ""
    want = HEAP.format(set=done, small=small, large=large, limit=limit)
    assert outcome.output == want, outcome.errors


PROGRAMS = Path(__file__).resolve().parents[1] / "runtime_shim/native/cudart/programs"
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
"""  # of limits.cu on an H200 (580.159.04, 2026-11-23)


def test_limits_are_an_h200s(run_program: Run, compiled: Compiled) -> None:
    program = compiled(PROGRAMS / "limits", ["-O3"], 90)
    outcome = run_program(program)
    said = set(outcome.output.splitlines())
    assert [line for line in LIMITS.splitlines() if line not in said] == [], outcome.errors


SILICON = Path(__file__).resolve().parents[2] / "fixtures/silicon/sm_90/driver"
# There the same number whatever the argument, and another one for the 33rd argument.
OTHERWISE = ("41|", "43|", "45|", "110|")


def test_what_kernels_print_is_an_h200s(run_program: Run, compiled: Compiled) -> None:
    """Every format, the result of printf, strings that change after the call."""
    program = compiled(PROGRAMS / "formats", ["-O3"], 90)
    said = run_program(program).output.split("\n")
    want = (SILICON / "formats.txt").read_text(errors="surrogateescape").split("\n")
    assert len(said) == len(want)
    assert [
        (a, b) for a, b in zip(said, want, strict=True) if a != b and not b.startswith(OTHERWISE)
    ] == []


@pytest.mark.parametrize("kernel", range(4))
def test_texts_outside_global_memory_are_printed(
    kernel: int, run_program: Run, compiled: Compiled
) -> None:
    """No format, a string of the thread that changes, one of the block, a format of the thread."""
    program = compiled(PROGRAMS / "formats", ["-O3"], 90)
    outcome = run_program(program, [str(kernel)])
    want = (SILICON / f"formats.{kernel}").read_text()
    assert outcome.output == want.removesuffix("status 0\n"), outcome.errors


def _name(lane: int) -> str:
    return "x" * (lane % 7) + chr(97 + lane % 26)


def _printing() -> Counter[str]:
    """What printing.cu says, but for the order of lanes."""
    lines = Counter[str]()
    for lane in range(32):
        for i in range(lane % 9):
            own, shared = _name(lane + i), _name(lane * 3 + i)
            if (lane ^ i) & 1:
                line = f"A {lane} {i} [{own}] [{shared[:2]}] {lane * 0.5:5.1f}%"
            else:
                line = (
                    f"B {lane} {i} <{shared:>{lane % 5}}>"
                    if lane % 5
                    else f"B {lane} {i} <{shared}>"
                )
            lines[line] += 2
    lines["first Airst ABrst constant 7constant 8"] += 1
    lines["%(null)"] += 1
    text = "".join(chr(97 + n % 23) for n in range(2999))
    for lane in range(3, 32, 8):
        lines[f"{lane} {text[lane:]}"] += 1
    lines.update(f"s{k} {n} {lane}" for k in (0, 1) for n in range(20) for lane in range(33))
    lines.update(f"malloc {lane} {_name(lane)}" for lane in range(8))
    lines["0, 0 wrong, assert 710"] += 1
    return +lines


@pytest.mark.parametrize(
    ("flags", "arch", "option"),
    [
        ("-O3", 90, ""),
        _sweep("-G", 120, "--strict"),
        _sweep("-G", 75),
        _sweep("-O3", 75, "--strict"),
        _sweep("-O3", 80),
        _sweep("-O3", 90, "--strict"),
        _sweep("-O3", 120),
        _sweep("-O1", 80),
        _sweep("-G", 80),
        _sweep("-G", 90, "--strict"),
        _sweep("-rdc=true", 90),
    ],
)
def test_strings_are_read_by_the_call(
    flags: str,
    arch: int,
    option: str,
    run_program: Callable[..., Any],
    compiled: Callable[..., Path],
) -> None:
    """Strings and formats in global, constant, shared and local memory, changed after the call, of
    lanes that are apart; long ones; two streams; malloc and assert beside them."""
    program = compiled(BUILDS / "printing", flags.split(), arch)
    outcome = run_program(program, options=option.split(), environment={"SASSXLATE_CC": str(arch)})
    want = _printing()
    said = Counter[str](outcome.output.splitlines())
    assert (said - want, want - said) == (Counter(), Counter()), outcome.errors
    assert outcome.errors.count("Assertion `threadIdx.x < limit` failed") == 2


def test_what_finds_no_room_is_counted_and_later_lines_are_printed(
    run_program: Run, compiled: Compiled
) -> None:
    """A former bug: after more lines than the queue holds, nothing was printed ever again."""
    program = compiled(BUILDS / "printing", ["-O3"], 90)
    outcome = run_program(program, ["flood"])
    lines: list[str] = outcome.output.splitlines()
    assert lines[-5:] == ["0", "said once", "0", "said again", "0"]
    kept = len(lines) - 5
    lost = int(outcome.errors.partition("SX0772: ")[2].split()[0])
    assert kept + lost == 16 * 64 * 1000
    assert lost > 1000
    text = "and some more text, so that it takes room"
    whole = {f"flood {n} {lane} {text}" for n in range(1000) for lane in range(64)}
    assert set(lines[:-5]) <= whole
    assert max(Counter(lines[:-5]).values()) <= 16  # a line from each block

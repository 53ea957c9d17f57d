"""Programs that go wrong: CUDA's error, and a line that names kernel, SASS, lane and address."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.generate import programs

ROOT = Path(__file__).resolve().parents[2]


Run = Callable[..., Any]
STRICT = ("--strict", "--seed", "3")


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executable; skips where there is no nvcc."""
    try:
        toolkit = programs.find_toolkit()
    except programs.BuildError as error:
        pytest.skip(str(error))
    source = Path(__file__).with_name("faults.cu")
    program = programs.Program("faults", source, (), {}, "")
    out: Path = programs.build_program(
        program, tmp_path_factory.mktemp("faults") / "faults", [80, 90], toolkit=toolkit
    )
    return out


def _cases(*faults: tuple[str, int, str]) -> list[Any]:
    """Each fault on one architecture in a mode, and on the other in the other mode; the sweep has
    the rest."""
    return [
        pytest.param(
            *fault, arch, options, id=f"{fault[0]}-{arch}-{'strict' if options else 'plain'}",
            marks=[] if (i + j + k) % 2 == 0 else [pytest.mark.sweep],
        )
        for i, fault in enumerate(faults)
        for j, arch in enumerate(("8.0", "9.0"))
        for k, options in enumerate(((), STRICT))
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "error", "text", "arch", "options"),
    _cases(
        ("trap 5", 719, r"SX0663: kernel _Z4trap\w+: .* trap 0x2, lane 5 of .*BPT\.TRAP"),
        ("bytes 1", 716, r"SX0662: kernel _Z5bytes\w+: .* misaligned .* lane 0 of .*STG\.E"),
        ("far 9999999999", 700, r"SX0661: kernel _Z8far_away\w+: .* illegal address 0x.*STG\.E"),
        ("null", 700, r"SX0661: .* illegal address 0x0, lane 0 of .*STG\.E"),
        ("shared 100", 700, r"SX0664: .* shared memory \(LDS\) 0x.* lane 0 of .*LDS"),
        ("shared 99999", 700, r"SX0664: .*LDS"),
        ("local 201", 700, r"SX0665: .* stack overflow.* lane 0 of .*LDL"),
        ("local 99999", 700, r"SX0665: .* stack overflow.* lane 0 of .*LDL"),
        ("local -100000", 700, r"SX0665: .* stack overflow.* lane 0 of .*LDL"),
    ),
)
def test_fault(
    run_program: Run, faults: Path, arguments: str, error: int, text: str, arch: str, options: Any
) -> None:
    done = run_program(
        faults, arguments.split(), options=options, environment={"SASSXLATE_CC": arch}
    )
    assert done.output == f"0 {error} {error}\n", done.errors
    assert re.fullmatch(f"sassxlate: {text}.*\n", done.errors), done.errors
    assert ", from SASS /*" in done.errors


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("far 1", r"\(0 bytes past the end of the 128 bytes at 0x\w+\), lane 31 .*STG\.E"),
        ("freed", r"\(0 bytes into the freed 128 bytes at 0x\w+\), lane 0 .*STG\.E"),
    ],
)
def test_only_strict_mode_sees(run_program: Run, faults: Path, arguments: str, text: str) -> None:
    assert run_program(faults, arguments.split()).output == "0 0 0\n"
    done = run_program(faults, arguments.split(), options=STRICT)
    assert done.output == "0 700 700\n"
    assert re.search(rf"SX0661: .* illegal address 0x\w+ {text}", done.errors), done.errors

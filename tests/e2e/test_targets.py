"""Programs on the emulated device as each of the processors of RDNA3.

The device refuses the code of other processors, so what runs on it was translated for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.target import DEFAULT, TARGETS

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"
Run = Callable[..., Any]
RDNA3 = {name: target for name, target in TARGETS.items() if target.has_rules}


def _programs() -> list[Any]:
    """A program for each target, in turn; the sweep has the others."""
    names = [n for n in RDNA3 if n != DEFAULT.name]
    programs = ("saxpy", "reduction", "collatz")
    return [
        pytest.param(p, n, marks=[] if i == j % len(programs) else [pytest.mark.sweep])
        for i, p in enumerate(programs)
        for j, n in enumerate(names)
    ]


@pytest.mark.parametrize(("program", "name"), _programs())
def test_a_program_passes(program: str, name: str, run_program: Run, tmp_path: Path) -> None:
    outcome = run_program(
        PROGRAMS / program, options=["--target", name, "--device", "emulator", "--dump", tmp_path]
    )
    assert outcome.status == 0, outcome.output + outcome.errors
    assert outcome.output.endswith("PASS\n")
    dumped = list(tmp_path.rglob("*.hsaco"))
    assert dumped
    assert {read(file.read_bytes()).target.name for file in dumped} == {name}


def test_the_variable_is_the_option(run_program: Run, tmp_path: Path) -> None:
    name = list(RDNA3)[-1]
    outcome = run_program(
        PROGRAMS / "saxpy",
        options=["--device", "emulator", "--dump", tmp_path],
        environment={"SASSXLATE_TARGET": name},
    )
    assert outcome.status == 0, outcome.output + outcome.errors
    assert {read(file.read_bytes()).target.name for file in tmp_path.rglob("*.hsaco")} == {name}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[] if i in (0, len(RDNA3) - 1) else [pytest.mark.sweep])
        for i, n in enumerate(RDNA3)
    ],
)
def test_the_report_is_of_its_code(name: str, run_program: Run, tmp_path: Path) -> None:
    """The page's translation is the one that ran, with the target's occupancy."""
    file, target = tmp_path / "report.json", RDNA3[name]
    outcome = run_program(
        PROGRAMS / "saxpy",
        options=["--target", name, "--device", "emulator", "--report", file],
    )
    assert outcome.status == 0, outcome.output + outcome.errors
    report = json.loads(file.read_text())
    assert (report["target"], report["notes"]) == (name, [])
    (kernel,) = report["kernels"]
    code = kernel["resources"]["rdna3"]
    assert code["occupancy"]["most"] == target.simds * target.waves
    assert code["max_threads"] <= target.most_threads(code["vgprs"])

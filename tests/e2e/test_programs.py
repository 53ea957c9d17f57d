"""Every self-checking program under ``sassxlate run``, judged by itself and by a real GPU's output.

The executables that are kept run everywhere; the others are built here with nvcc.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.generate import programs
from tools.silicon import program_truth

ROOT = Path(__file__).resolve().parents[2]


PROGRAMS = programs.load_programs()
CASES = [(name, size) for name, program in PROGRAMS.items() for size in program.sizes]
KEPT = sorted(path.name.split(".")[0] for path in programs.PROGRAMS.glob("*.provenance.toml"))
# One program of each kind for the architectures that only the sweep runs.
TEN = (
    *("saxpy", "reduction", "matmul", "histogram", "collatz"),
    *("fp64", "scan", "fp32math", "compaction", "spill"),
)
Run = Callable[..., Any]
Build = Callable[..., Path]


def _check(run_program: Run, executable: Path, name: str, size: str, arch: int, **how: Any) -> None:
    outcome = run_program(executable, PROGRAMS[name].sizes[size], **how)
    outcome.check(name, size, arch=arch)


def test_sixteen_programs() -> None:
    assert len(PROGRAMS) == 16
    sources = {path.stem for path in programs.SOURCES.glob("*.cu")}
    assert {program.source.stem for program in PROGRAMS.values()} == sources
    for program in PROGRAMS.values():
        assert list(program.sizes) == ["small", "large"]


@pytest.mark.parametrize("name", KEPT)
def test_kept_executable_is_what_its_provenance_says(name: str) -> None:
    provenance = tomllib.loads((programs.PROGRAMS / f"{name}.provenance.toml").read_text())
    for file, digest in (
        (provenance["binary"]["file"], provenance["binary"]["sha256"]),
        (provenance["source"]["file"], provenance["source"]["sha256"]),
        (provenance["source"]["header"], provenance["source"]["header_sha256"]),
    ):
        data = (programs.PROGRAMS / file).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest, file


def test_kept_cubins_are_what_their_provenance_says() -> None:
    folder = ROOT / "fixtures" / "kernels"
    provenance = tomllib.loads((folder / "provenance.toml").read_text())
    sources = sorted(path.stem for path in folder.glob("*.cu"))
    assert sorted({Path(name).stem for name in provenance["cubin"]}) == sources
    for name, row in provenance["cubin"].items():
        for file, digest in ((name, row["sha256"]), (row["source"], row["source_sha256"])):
            assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest, file


def test_truth_is_complete() -> None:
    if not program_truth.TRUTH.is_dir():
        pytest.skip("no output of a real GPU is kept")
    for name, size in CASES:
        truth = program_truth.load_truth(name, size)
        assert truth is not None, f"{name} {size}"
        assert truth.endswith("PASS\n")
        assert program_truth.facts(truth), f"{name} {size}"


def test_comparison_sees_differences() -> None:
    truth = "int: a = 5\nbits: b = 0x10\nfloat: c = 1.5 tolerance 0.1\ntime: 3 ms\nPASS\n"
    near = "int: a = 5\nbits: b = 0x11\nfloat: c = 1.55 tolerance 9\nPASS\n"
    assert program_truth.differences(truth, near, same_code=False) == []
    assert program_truth.differences(truth, near, same_code=True)
    for old, new in (("= 5", "= 6"), ("1.55", "1.65"), ("1.55", "nan"), ("int: a", "int: d")):
        assert program_truth.differences(truth, near.replace(old, new), same_code=False), new
    assert program_truth.differences(truth, "PASS\n", same_code=False)


@pytest.mark.parametrize("name", KEPT)
def test_kept_executable(name: str, run_program: Run) -> None:
    run_program(programs.PROGRAMS / name).check(name, "small", arch=None)


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        # One architecture for each program, in turn; test_strict.py has the other, and the sweep
        # has both.
        pytest.param(name, arch, marks=[] if i % 2 != j else [pytest.mark.sweep])
        for i, name in enumerate(PROGRAMS)
        for j, arch in enumerate((80, 90))
    ],
)
def test_program(name: str, arch: int, run_program: Run, build: Build) -> None:
    # One executable holds the code of both; the device's capability says which is taken.
    environment = {"SASSXLATE_CC": f"{arch // 10}.{arch % 10}"}
    _check(
        *(run_program, build(name, [80, 90]), name, "small", arch),
        environment=environment,
    )


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["static", "shared", "stripped"])
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(("name", "size"), CASES)
def test_form(name: str, size: str, arch: int, form: str, run_program: Run, build: Build) -> None:
    cudart = "shared" if form == "shared" else "static"
    executable = build(name, [arch], cudart=cudart, strip=form == "stripped")
    _check(run_program, executable, name, size, arch)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [75, 86, 89, 100, 120])
@pytest.mark.parametrize("name", PROGRAMS)
def test_other_architecture(name: str, arch: int, run_program: Run, build: Build) -> None:
    executable = build(name, [arch])
    outcome = run_program(executable, PROGRAMS[name].sizes["small"])
    if name not in TEN and outcome.status == 3:
        pytest.skip(f"{name} for sm_{arch} has a kernel that is refused")
    outcome.check(name, "small", arch=arch)

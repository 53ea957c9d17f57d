"""``sassxlate selftest`` on the emulated device, and on the stand-in for AMD's library."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sassxlate.lowering.codeobject.code_object import read
from sassxlate.runtime_shim.selftest import selftest
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS
from sassxlate.runtime_shim.selftest.instructions import hip

from .conftest import ROOT, Standin
from .test_standin import check

Tool = Callable[..., str]


def chosen(*names: str) -> list[str]:
    """Options that choose fixtures."""
    return [part for name in names for part in ("--only", name)]


def report_of(path: Path) -> dict[str, Any]:
    """A report, and that it is whole."""
    report: dict[str, Any] = json.loads(path.read_text())
    assert report["schema"] == 1
    assert sum(report["counts"].values()) == len(report["fixtures"])
    assert report["environment"]["sassxlate"]
    assert report["environment"]["tag"]
    return report


def test_fixtures() -> None:
    """Everything that is kept is a fixture, and is found through the package."""
    names = [fixture.name for fixture in selftest.fixtures()]
    assert len(set(names)) == len(names)
    kept = [p for p in (ROOT / "fixtures/kernels").glob("sm_*/*.cubin") if p.stem in CONTRACTS]
    assert len(kept) > 50
    for path in kept:
        assert f"kernel/{path.stem}/{path.parent.name}" in names
    for program in ("saxpy", "reduction", "collatz"):
        assert f"program/{program}" in names
    assert selftest.data_folder().resolve() == (ROOT / "fixtures").resolve() or (
        "site-packages" in str(selftest.data_folder())
    )


def test_emulator(on_standin: Standin, tmp_path: Path) -> None:
    """Without a card: a program, a kernel; one archive with their code."""
    output = tmp_path / "report.zip"
    names = chosen("program/saxpy", "kernel/early_exit/sm_80")
    outcome = on_standin("selftest", "--device", "emulator", "-o", output, *names)
    assert outcome.status == 0, outcome.output + outcome.errors
    assert outcome.calls == []  # AMD's library is not touched
    assert "2 pass" in outcome.output
    with zipfile.ZipFile(output) as archive:
        report = json.loads(archive.read("report.json"))
        code = archive.read("code/kernel-early_exit-sm_80/early_exit.hsaco")
        text = archive.read("code/kernel-early_exit-sm_80/early_exit.s").decode()
    assert read(code).kernels[0].name == "early_exit"
    assert "s_endpgm" in text
    assert report["device"] == "emulator"
    assert [row["status"] for row in report["fixtures"]] == ["pass", "pass"]


def test_card(on_standin: Standin, tmp_path: Path) -> None:
    """The way to a card: no argument that AMD's library would not take, all results right."""
    output = tmp_path / "report.json"
    names = chosen("program/reduction", "kernel/shared_atomics/*", "instructions/flush/0")
    outcome = on_standin("selftest", "--device", "hip", "-o", output, *names)
    assert outcome.status == 0, outcome.output + outcome.errors
    check(outcome)
    report = report_of(output)
    assert report["device"] == "hip"
    assert report["hip"]["gcnArchName"] == "gfx1100"
    assert report["hip"]["multiProcessorCount"] == 48
    assert report["hip"]["clockRate"] == 2500000
    assert report["hip"]["hipRuntimeGetVersion"] == 60443483
    kernel = next(row for row in report["fixtures"] if row["kind"] == "kernel")
    assert kernel["found"]["device"] == "Stand-in for a gfx1100"
    assert [row["wrong"] for row in kernel["found"]["seeds"]] == [0, 0]
    assert all(row["launch_s"] > 0 for row in kernel["found"]["seeds"])
    assert kernel["codes"][0]["sha256"]


@pytest.mark.parametrize(
    ("mischief", "status", "line"),
    [
        ("SX_STANDIN_WRONG", "fail", "1 of 384 words differ"),
        ("SX_STANDIN_ABORT", "crash", "ended by signal 6"),
        ("SX_STANDIN_FAULT", "error", "cuLaunchKernel gives error 719"),
        ("SX_STANDIN_HANG", "hang", "did not end in time"),
    ],
)
def test_a_bad_card(
    mischief: str, status: str, line: str, on_standin: Standin, tmp_path: Path
) -> None:
    """A failure of one kernel is one row of the report; the next one runs."""
    output = tmp_path / "report.json"
    names = chosen("kernel/early_exit/sm_80", "kernel/divergent_if/sm_80")
    outcome = on_standin(
        *("selftest", "--device", "hip", "-o", output, "--time-limit", "8", *names),
        **{mischief: "divergent_if"},
    )
    assert outcome.status == 1, outcome.output + outcome.errors
    bad, good = report_of(output)["fixtures"]
    assert (bad["name"], bad["status"]) == ("kernel/divergent_if/sm_80", status)
    assert any(line in text for text in bad["lines"]), bad["lines"]
    assert good["status"] == "pass"
    (code,) = bad["codes"]
    assert any("s_endpgm" in text for text in code["assembly"])
    assert code["code_object"]
    assert "code_object" not in good["codes"][0]


@pytest.mark.parametrize(("kernel", "group"), [("instructions", "ieee/8"), ("scalars", "scalar/2")])
def test_a_wrong_instruction(kernel: str, group: str, on_standin: Standin, tmp_path: Path) -> None:
    """A bit that comes out otherwise is found, and named by instruction and inputs."""
    output = tmp_path / "report.json"
    outcome = on_standin(
        *("selftest", "--device", "hip", "-o", output, *chosen(f"instructions/{group}")),
        SX_STANDIN_WRONG=kernel,
    )
    assert outcome.status == 1, outcome.output + outcome.errors
    (row,) = report_of(output)["fixtures"]
    assert row["status"] == "fail"
    (wrong,) = row["found"]["wrong"]
    assert wrong["lanes"] == 1
    (lane,) = wrong["first"]
    assert int(lane["actual"][0], 16) ^ 1 == int(lane["expected"][0], 16)


def test_lost_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A device that does not come back: the rest is not run, and the report says so."""
    fixtures = [selftest.Fixture(name, "instructions", "ieee") for name in ("a", "b", "c")]
    states = iter(["pass", "crash"])

    def pretended(
        fixture: selftest.Fixture, settings: selftest.SelftestSettings
    ) -> selftest.FixtureResult:
        del settings
        return selftest.FixtureResult(fixture.name, fixture.kind, next(states))  # type: ignore[arg-type]

    monkeypatch.setattr(selftest, "run_fixture", pretended)
    monkeypatch.setattr(selftest, "device_is_well", lambda settings: False)  # type: ignore[misc]
    told: list[selftest.FixtureResult] = []
    settings = selftest.SelftestSettings("hip", 1.0, 1, tmp_path, "gfx1100")
    results = selftest.run_all(fixtures, settings, told.append)
    assert [result.status for result in results] == ["pass", "crash", "not run"]
    assert told == results


def test_no_card(on_standin: Standin, tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    outcome = on_standin("selftest", "--device", "hip", "-o", output, SX_STANDIN_DEVICES="0")
    assert outcome.status == 2
    assert "SX0707" in outcome.errors
    assert not output.exists()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["-o", "report.txt"], "SX0721"),
        (["--only", "no such"], "SX0721: no fixture matches no such: --only takes whole names"),
        (["-o", "/no/such/directory/report.json"], "SX0813"),
    ],
)
def test_bad_options(options: list[str], code: str, on_standin: Standin) -> None:
    outcome = on_standin("selftest", "--device", "emulator", *options)
    assert outcome.status == 2
    assert code in outcome.errors


def test_list(on_standin: Standin) -> None:
    outcome = on_standin("selftest", "--list", "--only", "instructions/a*")
    assert outcome.status == 0
    assert "instructions/approximate\n" in outcome.output


def test_properties_are_where_amd_has_them(amd_include: Path, gxx: Tool, tmp_path: Path) -> None:
    """Places and sizes in hipDeviceProp_tR0600."""
    rows = [
        f"static_assert(offsetof(hipDeviceProp_tR0600, {name}) == {offset});\n"
        f"static_assert(sizeof(hipDeviceProp_tR0600::{name}) == {width});\n"
        for name, (offset, kind) in hip.PROPERTIES.items()
        for width in ({"text": 256, "size_t": 8, "int": 4}[kind],)
    ]
    program = tmp_path / "check.cpp"
    program.write_text(
        "#define __HIP_PLATFORM_AMD__\n#include <cstddef>\n#include <hip/hip_runtime_api.h>\n"
        + "".join(rows)
        + f"static_assert(sizeof(hipDeviceProp_tR0600) == {hip.PROPERTIES_SIZE});\n"
    )
    gxx("-std=c++17", "-fsyntax-only", f"-I{amd_include}", program)


@pytest.mark.sweep
def test_everything(on_standin: Standin, tmp_path: Path) -> None:
    """All fixtures on the emulated device; kernels may still be refused, nothing may fail."""
    output = tmp_path / "report.zip"
    outcome = on_standin("selftest", "--device", "emulator", "-o", output, time_limit=1800.0)
    assert outcome.status in (0, 3), outcome.output


@pytest.mark.sweep
def test_everything_on_the_stand_in(on_standin: Standin, tmp_path: Path) -> None:
    output = tmp_path / "report.zip"
    outcome = on_standin("selftest", "--device", "hip", "-o", output, time_limit=1800.0)
    assert outcome.status in (0, 3), outcome.output
    check(outcome)


def test_meanings_of_a_damaged_answer() -> None:
    """The comparison of single instructions sees a flipped bit, and takes any NaN for a NaN."""
    from sassxlate.runtime_shim.selftest.instructions import vector

    same = vector._same  # pyright: ignore[reportPrivateUsage]
    assert same("f32", 0x7FC00001, 0x7FFFFFFF)
    assert not same("f32", 0x3F800001, 0x3F800000)
    assert not same("f32", 0x80000000, 0)
    assert not same("b32", 1, 0)
    assert vector.distance("f32", 0x3F800001, 0x3F7FFFFF) == 2
    assert vector.distance("f32", 0x80000001, 1) == 2
    assert vector.distance("f32", 0x7FC00000, 1) is None

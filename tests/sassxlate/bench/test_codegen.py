"""`sassxlate bench codegen`: the tables, the page, and one program from source to counts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sassxlate import toolchain
from sassxlate.bench.codegen import build as builds
from sassxlate.bench.codegen import compare as bench
from sassxlate.bench.codegen import table as report
from sassxlate.errors import UsageError

pytestmark = pytest.mark.usefixtures("valid_documents")

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "codegen.md"
needs_compilers = pytest.mark.skipif(
    toolchain.nvcc() is None or toolchain.clang() is None or toolchain.device_library() is None,
    reason="no nvcc, clang or ocml.bc",
)


def side(valu: int, hints: int = 0, vgprs: int = 10) -> bench.Side:
    numbers: Mapping[str, int] = {"valu": valu, "hint": hints, "branch": 1}
    return bench.Side(numbers, numbers, vgprs, 20)


def row(name: str, ours: int, theirs: int) -> bench.KernelComparison:
    return bench.KernelComparison("p", name, 1, 4, 5, side(ours - 1), side(theirs - 1, hints=50), 0)


def _measured(*arguments: str) -> str:
    """The command's output.  In a process of its own: launches are run again at the addresses that
    they had, where an emulated device of this process may have its memory."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "bench", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_hints_count_for_nobody_and_the_mean_is_geometric() -> None:
    rows = [row("a", 40, 20), row("b", 10, 20)]
    assert [r.ratio(dynamic=True) for r in rows] == [2.0, 0.5]
    assert bench.mean(rows) == pytest.approx(1.0)


def test_waves_by_registers() -> None:
    assert [side(1, vgprs=n).occupancy for n in (1, 96, 97, 256)] == [16, 16, 12, 5]


def test_what_misses_the_target() -> None:
    rows = [row("a", 70, 20), row("b", 20, 20)]
    assert len(bench.missed(rows, {})) == 2  # 1.87, and a without a reason
    assert len(bench.missed(rows, {"p: a": "because"})) == 1
    assert not bench.missed(rows[1:], {})


def test_page_is_rewritten_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    lines = report.markdown([row("a", 40, 20)], {}, "versions")
    assert report.differences(page, lines)
    report.write(page, lines)
    assert not report.differences(page, lines)
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert report.differences(page, report.markdown([row("a", 41, 20)], {}, "versions"))


def test_the_page_meets_the_target_and_explains_the_rest() -> None:
    text = PAGE.read_text().split(report.BEGIN)[1].split(report.END)[0]
    executed = text.split("In the code")[0]
    found = re.findall(r"(?m)^\| (\w+: [^|]+?) \| ([\d.]+) \| (\d+) \| (\d+) \|", executed)
    assert len(found) >= 36
    ratios = {name: int(ours) / int(theirs) for name, _, ours, theirs in found}
    assert {name: f"{ratio:.2f}" for name, ratio in ratios.items()} == {f[0]: f[1] for f in found}
    assert bench.geometric_mean(list(ratios.values())) <= bench.TARGET
    reasons = bench.explained(ROOT / "fixtures")
    for name in (name for name, ratio in ratios.items() if ratio > bench.EXPLAIN):
        assert f"* {name}: {reasons[name]}" in text
    programs = {name.split(":")[0] for name in ratios}
    assert programs == {path.stem for path in (ROOT / "fixtures/programs/src").glob("*.cu")}


@needs_compilers
def test_one_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path))
    done = _measured("codegen", "--only", "^saxpy$", "--format", "json")
    (kernel,) = json.loads(done)["kernels"]
    assert (kernel["waves"], kernel["different"]) == (2048, 0)
    ours, clang = kernel["ours"]["dynamic"], kernel["clang"]["dynamic"]
    assert ours["vmem"] == clang["vmem"] == 3 * 2048
    assert kernel["dynamic_ratio"] <= 1.3


@pytest.mark.sweep
@needs_compilers
def test_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path))
    _measured("codegen", "--check")


def test_a_folder_without_sources_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \.cu file"):
        builds.of_folder(tmp_path)


@pytest.mark.sweep
@needs_compilers
def test_the_held_out_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path))
    folder = str(ROOT / "fixtures" / "held_out")
    done = _measured("codegen", "--sources", folder, "--engine", "llvm", "--format", "json")
    ratios = [kernel["dynamic_ratio"] for kernel in json.loads(done)["kernels"]]
    assert len(ratios) == 20
    assert bench.geometric_mean(ratios) <= 1.12

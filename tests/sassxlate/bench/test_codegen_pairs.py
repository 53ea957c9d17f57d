"""`sassxlate bench codegen --pairs`: names of two compilers, tables, and a kernel from a CUDA file
and a code object."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.bench.codegen import compare as bench
from sassxlate.bench.codegen import library_pairs as pairs
from sassxlate.bench.codegen import table as report
from sassxlate.cli.bench import command
from sassxlate.disasm.containers import load
from sassxlate.errors import SassxlateError
from sassxlate.lowering.pipeline import translate_kernel

pytestmark = pytest.mark.usefixtures("valid_documents")

ROOT = Path(__file__).resolve().parents[3]
CUBIN = ROOT / "fixtures" / "kernels" / "sm_80" / "shuffle_forms.cubin"


def side(valu: int) -> bench.Side:
    return bench.Side({"valu": valu, "hint": 7}, {}, 10, 20)


def found(*ratios: tuple[str, int, int]) -> pairs.Found:
    some = tuple(
        pairs.LibraryPair(name, 5, side(ours), side(theirs)) for name, ours, theirs in ratios
    )
    return pairs.Found(some, 2, 1, {})


@pytest.mark.parametrize(
    ("cuda", "hip"),
    [
        ("void k<__nv_bfloat16, 4>(__nv_bfloat16*)", "void k<__hip_bfloat16, 4>(__hip_bfloat16*)"),
        ("void k<__half>(__half2 const*)", "void k<half>(half2 const*)"),
        (
            "void cub::CUB_300001_SM_800_900::Sum<__nv_fp8_e4m3>(int)",
            "void hipcub::Sum<__hip_fp8_e4m3>(int)",
        ),
        ("(anonymous namespace)::k(curandState*)", "k(hiprandState*)"),
    ],
)
def test_names_of_two_compilers(cuda: str, hip: str) -> None:
    assert pairs.normal(cuda) == pairs.normal(hip)


def test_other_types_stay_apart() -> None:
    assert pairs.normal("void k<float>(float*)") != pairs.normal("void k<__half>(__half*)")
    assert pairs.normal("my__half(int)") == "my__half(int)"


def test_pairs_by_parameters_and_by_the_only_name() -> None:
    ours = {"a(int)": 1, "a(float)": 2, "b<1>(long)": 3, "c(int)": 4, "d(int)": 5, "d(long)": 6}
    theirs = {"a(float)": 10, "a(int)": 20, "b<1>(long long)": 30, "d(char)": 40, "e()": 50}
    assert pairs.matched(ours, theirs) == {
        "a(int)": (1, 20), "a(float)": (2, 10),  # overloads keep their parameters
        "b<1>": (3, 30),
    }  # fmt: skip


def test_the_table_shows_the_instance_in_the_middle() -> None:
    some = found(("k<1>", 40, 10), ("k<2>", 10, 10), ("k<3>", 20, 10), ("m", 80, 10))
    assert [[p.kernel for p in group] for group in pairs.templates(some.pairs)] == [
        ["k<2>", "k<3>", "k<1>"], ["m"],
    ]  # fmt: skip
    assert pairs.mean(some.pairs) == pytest.approx((4 * 1 * 2 * 8) ** 0.25)
    lines = pairs.markdown(some, {"k": "because"}, "versions.")
    assert any(line.startswith("| k<3> | 2.00 | 20 | 10 |") for line in lines)
    assert any(line.endswith("| 3 | 1.00 to 4.00 |") for line in lines)
    assert "* k: because" in lines
    assert "* m: not explained" in lines
    assert pairs.missed(some, {"k": "because"}) == ["m: over 3, not explained"]


def test_the_page_has_ten_kernels_and_explains_those_over_three() -> None:
    text = (ROOT / "docs" / "codegen.md").read_text().split(pairs.MARKS[0])[1]
    text = text.split(pairs.MARKS[1])[0]
    rows = re.findall(r"(?m)^\| (\w+)[^|]* \| ([\d.]+) \| (\d+) \| (\d+) \|.*?([\d.]*) \|$", text)
    assert len(rows) >= 10
    reasons = pairs.explained(ROOT / "fixtures")
    for name, ratio, ours, theirs, highest in rows:
        assert f"{int(ours) / int(theirs):.2f}" == ratio
        if float(highest or ratio) > bench.EXPLAIN:
            assert f"* {name}: {reasons[name]}" in text


def _object_of(path: Path, folder: Path) -> Path:
    """Ours of its first kernel, in the place of AMD's."""
    cubin = next(c for _, c in load(path).cubins())
    out = folder / "amd.hsaco"
    out.write_bytes(translate_kernel(cubin, cubin.kernels[0].name).code_object)
    return out


def test_a_pair_of_files(tmp_path: Path) -> None:
    """Our own code object in AMD's place: the same instructions."""
    hip = _object_of(CUBIN, tmp_path)
    command_line = ["codegen", "--pairs", str(CUBIN), str(hip), "--format", "json"]
    done = CliRunner().invoke(command, command_line)
    assert done.exit_code == 0, done.output
    (kernel,) = json.loads(done.output)["kernels"]
    assert kernel["static_ratio"] == 1
    assert kernel["ours"] == kernel["amd"]
    assert kernel["ours"]["static"]["vmem"] > 0
    shown = CliRunner().invoke(command, command_line[:4])
    assert "1.00 times AMD's; 1 kernels, 0 over 3" in shown.output
    by_llvm = CliRunner().invoke(command, [*command_line, "--engine", "llvm"])
    (kernel,) = json.loads(by_llvm.output)["kernels"]
    assert kernel["refusal"] == ""
    assert kernel["static_ratio"] < 1


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    hip = _object_of(CUBIN, tmp_path)
    for args in ((CUBIN, hip, "sm_70"), (CUBIN, tmp_path / "none", "sm_80")):
        with pytest.raises(SassxlateError) as error:
            pairs.measure(*args)
        assert error.value.code == "SX0832"
    assert report.BEGIN not in pairs.MARKS

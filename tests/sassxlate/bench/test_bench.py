"""`sassxlate bench` with few and short repeats: it runs and prints all fields; nothing is timed."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.bench.cold import pack_note
from sassxlate.cli import cli
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import seal
from sassxlate.runtime_shim.service import prebuilt
from sassxlate.toolchain import nvdisasm
from tools.generate import bench_loops

pytestmark = pytest.mark.usefixtures("valid_documents")

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
MACHINE = {
    "cpu",
    "vectors",
    "cores",
    "load",
    "sassxlate",
    "python",
    "llvmlite",
    "llvm",
    "translator",
}
FIELDS = {"name", "unit", "repeats", "min", "median", "max", "better", "target", "met", "note"}


def run(*args: str) -> Any:
    result = CliRunner().invoke(cli, ["bench", *args])
    assert result.exit_code == 0, result.output
    return result


def answer(*args: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(*args, "--format", "json").stdout)
    assert document["schema"] == "sassxlate.bench-figures/1"
    assert set(document["machine"]) == MACHINE
    assert document["figures"]
    for figure in document["figures"]:
        assert set(figure) == FIELDS
        assert 0 < figure["min"] <= figure["median"] <= figure["max"]
        assert figure["better"] in ("more", "less")
        if figure["target"] is not None:
            assert figure["met"] in (True, False)
    return document


def emulator(*args: str) -> tuple[str, ...]:
    return ("emulator", "--fixtures", str(FIXTURES), "--call", "0.001", *args)


@pytest.mark.parametrize("isa", ["auto", "avx2"])
def test_emulator(isa: str) -> None:
    document = answer(*emulator("--repeat", "2", "--isa", isa))
    figures = {figure["name"]: figure for figure in document["figures"]}
    assert figures["alu: wave-instructions"]["target"] in (1e9, 4e8)
    assert {name.partition(":")[0] for name in figures} == {"alu", "memory", "lds"}
    assert all(figure["repeats"] == 2 for figure in figures.values())


def test_emulator_as_text() -> None:
    out = run(*emulator("--repeat", "1")).stdout
    for word in ("LLVM", "llvmlite", "Python", "sassxlate", "min", "median", "max", "target"):
        assert word in out
    assert "AVX" in out


@pytest.fixture
def libraries() -> None:
    try:
        paths.library_dir()
    except Exception as error:
        pytest.skip(f"the native libraries are not built: {error}")


@pytest.mark.usefixtures("libraries")
def test_translate() -> None:
    document = answer("translate", "--fixtures", str(FIXTURES), "--repeat", "1")
    targets = {f["name"]: f["target"] for f in document["figures"] if f["target"] is not None}
    assert targets["saxpy: run, warm"] == targets["saxpy: run, warm (CPU)"] == 0.3
    assert targets["uniform_loop: to code object, first"] == 0.25
    assert targets["uniform_loop: to host code"] == 1.2


@pytest.mark.usefixtures("libraries")
def test_cold(tmp_path: Path) -> None:
    (tmp_path / "saxpy").symlink_to(FIXTURES / "programs" / "saxpy")
    options = ("--repeat", "1", "--programs", str(tmp_path), "--fixtures", str(FIXTURES))
    document = answer("cold", *options)
    targets = {f["name"]: f["target"] for f in document["figures"] if f["target"] is not None}
    assert targets == {
        "alu, baseline: wave-instructions": 3e8,
        "saxpy (auto): run, cold less warm": 0.7,
        **{f"{k}: to a first wave (CPU)": 10.0
           for k in ("double_math", "uniform_loop", "sum_and_largest", "saxpy")},
    }  # fmt: skip


def test_cold_says_that_no_pack_of_stencils_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "library_dir", lambda: tmp_path)
    assert "each run makes the stencils first" in pack_note("avx2")
    (tmp_path / prebuilt.name_of("avx2")).write_bytes(
        seal(prebuilt.name_of("avx2"), prebuilt.digest() + b"a pack")
    )
    assert not pack_note("avx2")


def test_disasm() -> None:
    file = FIXTURES / "kernels" / "sm_80" / "calls.cubin"
    document = answer("disasm", "--repeat", "1", str(file))
    figures = {figure["name"]: figure for figure in document["figures"]}
    assert "1 cubin," in figures["decode"]["note"]
    assert figures["decode: memory held"]["target"] == 200
    assert figures["text: memory held"]["target"] == 1000
    witness = nvdisasm()
    assert ("text / nvdisasm" in figures) == (witness is not None)
    if witness is not None:
        assert figures["nvdisasm"]["note"].startswith(witness.version)


def test_disasm_without_sass() -> None:
    result = CliRunner().invoke(cli, ["bench", "disasm", str(FIXTURES / "bench" / "alu.hsaco")])
    assert result.exit_code == 2


def test_without_fixtures(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["bench", "emulator", "--fixtures", str(tmp_path)])
    assert result.exit_code == 2
    assert "SX0815" in result.output


def test_fixtures_are_what_the_tool_writes() -> None:
    """Text and code objects are the present encoder's, and the sums in their provenance hold."""
    table = tomllib.loads((FIXTURES / "bench" / "provenance.toml").read_text("utf-8"))["file"]
    for name in bench_loops.LOOPS:
        text, code_object = bench_loops.make(name)
        for file, data in ((f"{name}.s", text.encode()), (f"{name}.hsaco", code_object)):
            assert (FIXTURES / "bench" / file).read_bytes() == data, file
            assert table[file]["sha256"] == hashlib.sha256(data).hexdigest()

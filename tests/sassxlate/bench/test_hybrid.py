"""`sassxlate bench hybrid`: its figures, and the document that it writes into."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate import toolchain
from sassxlate.bench.codegen.table import write
from sassxlate.bench.hybrid import BEGIN, END, HybridResult, ProgramComparison, Rate, markdown, text
from sassxlate.cli import cli
from sassxlate.llm.inference.qwen2 import SIZES, random_weights, save
from sassxlate.llm.language.tokenizer import vocabulary

pytestmark = pytest.mark.usefixtures("valid_documents")

ROWS = (
    ProgramComparison("a", True, "", 1000, 810, 10, 8, 5, 8, 2.0, 1.0),
    ProgramComparison("b", True, "", 500, 500, 4, 2, 0, 0, 0.5, 0.0),
)
RATE = Rate(90, 40, 30, 7.5, 2)


def test_figures() -> None:
    made = HybridResult("model", "m-1", 80, ROWS, RATE)
    assert made.mean == pytest.approx(0.9)
    assert made.hit_rate == pytest.approx(0.2)
    assert made.asked_a_second == pytest.approx(4.0)
    assert made.missed() == []
    shown = "\n".join(text(made))
    assert "2 of 2 programs pass; 10.00 % of dynamic instructions saved" in shown
    assert "12.0 distinct blocks per second on 2 cores" in shown
    wrong = ProgramComparison("c", False, "checksum", 100, 10, 1, 1, 1, 1, 0.0, 0.0)
    less = HybridResult("model", "m-1", 80, (ROWS[1], wrong), replace(RATE, seconds=90.0))
    assert less.mean == 1  # what does not pass saves nothing
    assert [line.partition(":")[0] for line in less.missed()] == [
        "c", "0.00 % of instructions saved, under 3.0",
        "1.0 distinct blocks per second, under 10.0",
    ]  # fmt: skip
    assert HybridResult("model", "m-1", 80, (), None).mean == 1


def test_document(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    machine = {"cpu": "a CPU", "vectors": "AVX2", "load": 0.5}
    write(page, markdown(HybridResult("model", "m-1", 80, ROWS, RATE), machine), (BEGIN, END))
    made = page.read_text()
    assert made.startswith("before\n")
    assert made.endswith("after\n")
    assert "old" not in made
    assert "| a | PASS | 1,000 | 810 | 19.0 % | 10 | 8 | 8 | 5 |" in made
    assert BEGIN in (Path(__file__).resolve().parents[3] / "docs" / "model-history.md").read_text()


@pytest.mark.sweep
def test_command(tmp_path: Path) -> None:
    if toolchain.nvcc() is None:
        pytest.skip("no nvcc")
    config = replace(SIZES["tiny"], vocab=len(vocabulary()))
    save(tmp_path / "m", config, random_weights(config, 1))
    words = ["bench", "hybrid", "--only", "^saxpy$", "--model", str(tmp_path / "m")]
    done = CliRunner().invoke(cli, [*words, "--format", "json", "--check"])
    assert done.exit_code == 1, done.output  # nothing is saved
    made = json.loads(done.stdout)
    (row,) = made["programs"]
    assert (row["program"], row["passed"], row["ratio"]) == ("saxpy", True, 1.0)
    assert made["rate"]["questions"] == row["new"] == 2

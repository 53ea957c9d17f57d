"""The self-checking programs with a model's code: they pass, whatever the model answers.

Models are the shipped one, the same with its numbers shuffled, an untrained one, and the search
that the dataset's answers are from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.bench import hybrid as bench
from sassxlate.disasm.containers import load, parse_cubin
from sassxlate.errors import ShimError
from sassxlate.llm.engine import models
from sassxlate.llm.engine.model import model_engine
from sassxlate.llm.inference import safetensors
from sassxlate.llm.inference.block_model import BlockModel
from sassxlate.llm.inference.language_model import LanguageModel
from sassxlate.llm.inference.qwen2 import SIZES, random_weights, read_config, save
from sassxlate.llm.language.tokenizer import VERSIONS, vocabulary
from sassxlate.lowering.optimize.regions import CutRegion, rules_code
from sassxlate.lowering.optimize.search import improved
from sassxlate.lowering.region.text import RegionText, code_words
from sassxlate.lowering.verify.steps.prover import Prover
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.writer import Writer
from tests.llm.engines import Scripted, rules_words

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
KEPT = FIXTURES / "programs"
Words = tuple[str, ...]


@dataclass
class Searched:
    """Answers as the dataset has them."""

    name: str = "search"
    prover: Prover = field(default_factory=Prover)

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        del samples, vtemps
        return [[self._one(question)] for question in questions]

    def _one(self, question: RegionText) -> Words:
        code = rules_code(question.block, question.regs)
        part = CutRegion(question.block, question.live_out, code)
        plain = tuple(tuple(i for i in group) for group in code)
        better = improved(part, question.regs, question, self.prover, plain)  # type: ignore[arg-type]
        lines = code_words(code if better is None else better.code, question)
        return tuple(word for line in lines for word in line)


def untrained(folder: Path) -> LanguageModel:
    config = replace(SIZES["tiny"], vocab=len(vocabulary()))
    save(folder, config, random_weights(config, 7))
    return BlockModel(folder)


def shipped(folder: Path) -> LanguageModel:
    del folder
    there = models.shipped()
    if there is None:
        pytest.skip("no weights are shipped")
    return BlockModel(there)


def shuffled(folder: Path) -> LanguageModel:
    """The shipped model with the numbers of each matrix in another order."""
    there = models.shipped()
    if there is None:
        pytest.skip("no weights are shipped")
    rng = np.random.default_rng(5)
    weights = {
        name: rng.permutation(array.ravel()).reshape(array.shape) if array.ndim == 2 else array
        for path in sorted(there.glob("*.safetensors"))
        for name, array in safetensors.read(path).items()
    }
    save(folder, read_config(there), weights)
    return BlockModel(folder)


def searched(folder: Path) -> LanguageModel:
    del folder
    return Searched()


Maker = Callable[[Path], LanguageModel]
MAKERS: tuple[Maker, ...] = (searched, untrained, shipped, shuffled)


@pytest.fixture(scope="module", autouse=True)
def _libraries() -> None:  # pyright: ignore[reportUnusedFunction]
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))


def result(programs: Iterator[Path], maker: Maker, folder: Path, arch: int) -> bench.HybridResult:
    proposer = maker(folder / "model")
    engine = model_engine(proposer, "hybrid")
    made = bench.measure(programs, engine, arch, folder, strict=True, rated=False)
    assert [row.why for row in made.rows if not row.passed] == []
    assert sum(row.asked for row in made.rows) > 0
    return made


# The shuffled model, whose answers are as long as may be, takes minutes: it is the sweep's.
@pytest.mark.parametrize("maker", MAKERS[:-1], ids=lambda m: m.__name__)
def test_a_kept_program(maker: Maker, tmp_path: Path) -> None:
    made = result(iter([KEPT / "saxpy"]), maker, tmp_path, 90)
    (row,) = made.rows
    assert row.hybrid <= row.rules
    if maker is searched:
        assert made.mean < 0.95
        assert row.accepted
    if maker is untrained:
        assert row.accepted == 0


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
def test_all_programs(maker: Maker, arch: int, tmp_path: Path) -> None:
    if toolchain.nvcc() is None:
        pytest.skip("no nvcc")
    folder = tmp_path / "programs"
    folder.mkdir()
    made = result(bench.executables(FIXTURES, arch, "", folder), maker, tmp_path, arch)
    assert len(made.rows) == 16
    if maker in (searched, shipped):
        assert made.mean < 1 - bench.SAVED, bench.text(made)


def test_the_shipped_weights() -> None:
    """64 MB at most in all, matrices as bf16 or int8, a card beside them."""
    folder = models.shipped()
    if folder is None:
        pytest.skip("no weights are shipped")
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 64_000_000
    kinds = {
        kind for path in folder.glob("*.safetensors") for kind in safetensors.types(path).values()
    }
    assert kinds <= {"BF16", "I8", "F32"}
    assert "F32" not in kinds or "I8" in kinds  # the scales of int8
    config = read_config(folder)
    assert config.parameters <= (60_000_000 if "I8" in kinds else 30_000_000)
    assert config.vocab in VERSIONS
    card = (folder / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert {p.name for p in folder.iterdir()} <= {
        "config.json", "model.safetensors", "training.json", "README.md", "figures.json",
    }  # fmt: skip


def test_run_takes_what_is_kept_and_says_whose_it_is(tmp_path: Path) -> None:
    """`run` uses no model; its report names the writer of each block."""
    program, out = KEPT / "saxpy", tmp_path / "report.json"
    writer = Writer(model_engine(Searched()), place=tmp_path / "cache")
    kernels = [(c, k.name) for _, c in load(program).cubins() if c.arch == 90 for k in c.kernels]
    assert not any(writer.done(cubin, name) for cubin, name in kernels)
    for cubin, name in writer.asked(kernels, lambda k: k, "saxpy"):
        writer.translate(cubin, name)
    assert all(writer.done(cubin, name) for cubin, name in kernels)
    other = Writer(model_engine(Searched("other")), place=tmp_path / "cache")
    assert not any(other.done(cubin, name) for cubin, name in kernels)

    def report(*options: str) -> dict[str, Any]:
        done = bench.run(program, tmp_path / "cache", 90, "--report", str(out), *options)
        assert done.passed, done.why
        made: dict[str, Any] = json.loads(out.read_text())
        assert made["notes"] == []
        assert made["totals"]["executed"] == done.executed
        return made

    made = report()
    (kernel,) = made["kernels"]
    assert kernel["engine"] == "rules, search"
    assert (kernel["asked"]["model"], kernel["asked"]["engine"]) == ("search", "hybrid")
    taken = [a for a in kernel["details"]["answers"] if a["outcome"] == "accepted"]
    assert len(taken) == kernel["asked"]["accepted"] > 0
    for answer in taken:
        assert (answer["engine"], answer["verdict"]) == ("search", "Proved")
        assert answer["model_cost"] < answer["rules_cost"]
    plain = report("--engine", "rules")
    (row,) = plain["kernels"]
    assert (row["engine"], row["asked"]) == ("rules", None)
    assert plain["totals"]["executed"] > made["totals"]["executed"]


def test_what_is_asked_ahead_is_asked_once() -> None:
    """Several kernels at once: the same answers, and the same counts of new questions."""
    kernels = [
        (cubin, kernel.name)
        for path in sorted((FIXTURES / "kernels" / "sm_90").glob("*.cubin"))[:6]
        for cubin in (parse_cubin(path.read_bytes()),)
        for kernel in cubin.kernels
    ]
    both: list[tuple[list[int], int]] = []
    for together in (False, True):
        counting = Scripted("rules", lambda question, _: rules_words(question))
        writer = Writer(model_engine(counting), keeps=())
        items = writer.asked(kernels, lambda k: k, "") if together else iter(kernels)
        reports = [writer.translate(cubin, name)[1] for cubin, name in items]
        new = [report.distinct - report.remembered for report in reports if report is not None]
        both.append((new, counting.asked))
    assert both[0] == both[1]
    assert sum(both[0][0]) == both[0][1]

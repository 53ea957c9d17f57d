"""The self-checking programs with a model's code: they pass, whatever the model says.

Models are the shipped one, the same with its numbers shuffled, an untrained one, and the search
that the dataset's answers are from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.cli import _bench_hybrid as bench
from sassxlate.errors import ShimError
from sassxlate.llm import models, tensors
from sassxlate.llm.engine import ModelEngine, Proposer
from sassxlate.llm.model import SIZES, random_weights, read_config, save
from sassxlate.llm.prompt import Prompt, answer_words
from sassxlate.llm.proof import Prover
from sassxlate.llm.propose import BlockModel
from sassxlate.llm.search import improved
from sassxlate.llm.stretch import Stretch, rules_code
from sassxlate.llm.tokenizer import vocabulary
from sassxlate.runtime_shim import paths

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
KEPT = FIXTURES / "programs"
Words = tuple[str, ...]


@dataclass
class Searched:
    """Answers as the dataset has them."""

    name: str = "search"
    prover: Prover = field(default_factory=Prover)

    def propose(
        self, questions: Sequence[Prompt], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        del samples, vtemps
        return [[self._one(question)] for question in questions]

    def _one(self, question: Prompt) -> Words:
        code = rules_code(question.block, question.regs)
        part = Stretch(question.block, question.live_out, code)
        plain = tuple(tuple(i for i in group) for group in code)
        better = improved(part, question.regs, question, self.prover, plain)  # type: ignore[arg-type]
        lines = answer_words(code if better is None else better.code, question)
        return tuple(word for line in lines for word in line)


def untrained(folder: Path) -> Proposer:
    config = replace(SIZES["tiny"], vocab=len(vocabulary()))
    save(folder, config, random_weights(config, 7))
    return BlockModel(folder)


def shipped(folder: Path) -> Proposer:
    del folder
    there = models.shipped()
    if there is None:
        pytest.skip("no weights come along")
    return BlockModel(there)


def shuffled(folder: Path) -> Proposer:
    """The shipped model with the numbers of each matrix in another order."""
    there = models.shipped()
    if there is None:
        pytest.skip("no weights come along")
    rng = np.random.default_rng(5)
    weights = {
        name: rng.permutation(array.ravel()).reshape(array.shape) if array.ndim == 2 else array
        for path in sorted(there.glob("*.safetensors"))
        for name, array in tensors.read(path).items()
    }
    save(folder, read_config(there), weights)
    return BlockModel(folder)


def searched(folder: Path) -> Proposer:
    del folder
    return Searched()


Maker = Callable[[Path], Proposer]
MAKERS: tuple[Maker, ...] = (searched, untrained, shipped, shuffled)


@pytest.fixture(scope="module", autouse=True)
def _libraries() -> None:  # pyright: ignore[reportUnusedFunction]
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))


def result(programs: Iterator[Path], maker: Maker, folder: Path, arch: int) -> bench.Result:
    proposer = maker(folder / "model")
    engine = ModelEngine(proposer, "hybrid")
    made = bench.measure(programs, engine, arch, folder, strict=True, rated=False)
    assert [row.why for row in made.rows if not row.passed] == []
    assert sum(row.asked for row in made.rows) > 0
    return made


@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
def test_a_kept_program(maker: Maker, tmp_path: Path) -> None:
    made = result(iter([KEPT / "saxpy"]), maker, tmp_path, 90)
    (row,) = made.rows
    assert row.hybrid <= row.rules
    if maker is searched:
        assert made.mean < 0.95
        assert row.accepted
    if maker in (untrained, shuffled):
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
        pytest.skip("no weights come along")
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 64_000_000
    kinds = {kind for path in folder.glob("*.safetensors") for kind in tensors.types(path).values()}
    assert kinds <= {"BF16", "I8", "F32"}
    assert "F32" not in kinds or "I8" in kinds  # the scales of int8
    config = read_config(folder)
    assert config.parameters <= (60_000_000 if "I8" in kinds else 30_000_000)
    assert config.vocab == len(vocabulary())
    card = (folder / "README.md").read_text()
    assert "license: apache-2.0" in card
    assert {p.name for p in folder.iterdir()} <= {
        "config.json", "model.safetensors", "training.json", "README.md", "figures.json",
    }  # fmt: skip

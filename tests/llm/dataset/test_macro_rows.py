"""Datasets of whole blocks with macros: rows, what trainers read of them, and a model of a few."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="shards are parquet files")
pytest.importorskip("z3", reason="z3-solver is not installed")

from click.testing import CliRunner

from sassxlate.cli.dataset import command
from sassxlate.disasm.containers import load
from sassxlate.errors import ModelError
from sassxlate.llm.dataset import improve, shards
from sassxlate.llm.dataset.build import DatasetSettings, build
from sassxlate.llm.dataset.files import finish, read_split
from sassxlate.llm.dataset.rows import Harvest, TrainingPair, row_id
from sassxlate.llm.dataset.tokens import write_tokens
from sassxlate.llm.evaluation import corpus as evaluation
from sassxlate.llm.evaluation.run import EvaluationSettings, Judge, ProofCase
from sassxlate.llm.inference.block_model import BlockModel
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.limits import QuestionLimits, limits_of
from sassxlate.lowering.region.macro import MACRO

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"
LIMITS = QuestionLimits(24, macros=True, every=True)
SETTINGS = DatasetSettings(valid=0, test=0, search=False, longest=24, macros=True, every=True)
VOTES = [KERNELS / f"sm_{arch}" / "group_votes.cubin" for arch in (90, 120)]
SOURCES = [*VOTES, KERNELS / "sm_120" / "carry_chains.cubin"]
TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    assert build(folder, SOURCES, SETTINGS).done
    finish(folder)
    return folder


def harvested(path: Path, limits: QuestionLimits, search: bool = True) -> list[TrainingPair]:
    harvest = Harvest(search=search, limits=limits)
    for _, cubin in load(path).cubins():
        for kernel in cubin.kernels:
            harvest.kernel(cubin, kernel.name, "p")
    return harvest.taken()


def macros(words: str) -> int:
    return words.split().count(MACRO)


def test_rows_have_each_macro_once() -> None:
    """Those of macros are longer than those without, and the search's answers keep their words."""
    rows = harvested(VOTES[0], LIMITS)
    with_macros = [row for row in rows if macros(row.prompt)]
    assert with_macros
    assert any(row.by == "search" for row in with_macros)
    for row in rows:
        assert macros(row.answer) == macros(row.prompt) == row.prompt.count(f"\n{MACRO} ")
        assert row.answer.count(";") == row.sass
        assert row.cost <= row.rules_cost
    plain = harvested(VOTES[0], QuestionLimits(24), search=False)
    assert not any(macros(row.prompt) for row in plain)
    assert max(r.sass for r in rows) > max(r.sass for r in plain)
    assert max(r.sass for r in harvested(VOTES[0], QuestionLimits(), search=False)) <= 8


def test_tokens_are_in_the_words_that_a_model_is_asked_in(built: Path, tmp_path: Path) -> None:
    rows = list(read_split(built, "train"))
    assert {row["arch"] for row in rows} == {90, 120}
    older = [row for row in rows if row["asked"]]
    assert older
    assert {row["arch"] for row in older} == {120}
    assert not any(macros(row["asked"]) for row in older)
    write_tokens(built, tmp_path, "train")
    shard = shards.read(tmp_path / "train-000.tokens")
    assert shards.questions(shard) == [LIMITS.to_json()]
    said = {" ".join(tokenizer.decode(shard.example(n).tolist())) for n in range(len(shard))}
    unsaid = [row for row in rows if row["said"] and not row["asked"]]
    assert len(said) == len(rows) - len(unsaid)
    for row in rows:
        asked, answer = (row["asked"] or row["prompt"]), (row["asked_answer"] or row["answer"])
        assert (" ".join((*asked.split(), *answer.split())) in said) == (row not in unsaid)
    # An engine's questions for both architectures are known as seen.
    choice = evaluation.Choice(limits=LIMITS)
    tokens = evaluation.Trained(tmp_path)
    corpus = evaluation.collect(SOURCES, choice, evaluation.Trained(built))
    assert all(block.seen for block in corpus.blocks.values())
    corpus = evaluation.collect(SOURCES, choice, tokens)
    unseen = {row_id(b.question.text) for b in corpus.blocks.values() if not b.seen}
    assert unseen <= {row["said"] for row in unsaid}
    assert len(unseen) < len(corpus.blocks) / 4


def test_questions_of_other_lengths_are_refused(built: Path) -> None:
    with pytest.raises(ModelError, match="SX1040"):
        build(built, SOURCES, replace(SETTINGS, macros=False))


def test_answers_are_not_improved_where_a_text_does_not_have_the_code(built: Path) -> None:
    rows = {row["id"]: row for row in read_split(built, "train")}
    asked = improve.questions(built, 1000, 0)
    assert 0 < len(asked) < len(rows)
    assert not any(macros(q.prompt) or rows[q.id]["asked"] for q in asked)


def test_evaluation_judges_answers_with_macros(tmp_path: Path) -> None:
    corpus = evaluation.collect(VOTES[:1], evaluation.Choice(limits=LIMITS))
    blocks = [b for b in corpus.blocks.values() if b.question.block.macros]
    assert blocks
    judge = Judge(tmp_path / "proofs.sqlite3", EvaluationSettings())
    for block in blocks:
        got = judge.judge(ProofCase(block, (), last=True, searched=True))
        assert got.rules_proved
        assert got.search is not None
        assert got.search <= block.cost
    judge.store.close()


def test_the_options(tmp_path: Path) -> None:
    options = ["--longest", "24", "--macros", "--every-arch", "--no-search", "-j", "1"]
    run = CliRunner().invoke(command, ["build", str(tmp_path / "d"), str(VOTES[0]), *options])
    assert run.exit_code == 0, run.output
    settings = json.loads((tmp_path / "d" / "settings.json").read_text())
    assert {k: settings[k] for k in ("longest", "macros", "every")} == LIMITS.to_json()
    run = CliRunner().invoke(command, ["build", str(tmp_path / "e"), str(VOTES[0]), *options[3:]])
    assert run.exit_code == 0, run.output
    assert "longest" not in json.loads((tmp_path / "e" / "settings.json").read_text())


@pytest.mark.skipif(not TORCH, reason="torch is not installed")
def test_a_model_of_a_few_pairs_answers_with_macros(built: Path, tmp_path: Path) -> None:
    """Trained on shortest questions with macros until it has them by heart, asked and judged."""
    from sassxlate.llm.training.settings import TrainingSettings
    from sassxlate.llm.training.train import train

    corpus = evaluation.collect(VOTES[:1], evaluation.Choice(limits=LIMITS))
    blocks = [b for b in corpus.blocks.values() if b.question.block.macros]
    blocks = sorted(blocks, key=lambda b: b.tokens)[:3]
    texts = {b.question.text for b in blocks}
    rows = [r for r in read_split(built, "train") if r["prompt"] in texts]
    examples = [tokenizer.example(r["prompt"].split(), r["answer"].split()) for r in rows] * 4
    about: dict[str, Any] = {"questions": LIMITS.to_json()}
    path = tmp_path / "few.tokens"
    shards.write(path, examples, tokenizer.digest(tokenizer.vocabulary()), about)
    settings = TrainingSettings(size="tiny", row=512, batch=2, steps=120, every=120, rate=8e-3)
    train([path], tmp_path / "m", settings, [path], device="cpu")
    assert limits_of(tmp_path / "m" / "best") == LIMITS
    model = BlockModel(tmp_path / "m" / "best", workers=1)
    judge = Judge(tmp_path / "proofs.sqlite3", EvaluationSettings())
    for block in blocks:
        (words,) = model.answers([block.question], 1, [24])[0]
        assert macros(" ".join(words)) == macros(block.question.text)
        (answer,) = judge.judge(ProofCase(block, ((0, words),), last=False)).answers
        assert answer.proved, answer
    judge.store.close()

"""Measuring a model: with proposers whose answers are known."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import parent_process
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.errors import ModelError
from sassxlate.llm.dataset import shards
from sassxlate.llm.engine import models
from sassxlate.llm.evaluation import run as evaluate_run
from sassxlate.llm.evaluation.corpus import Choice, Corpus, Trained, collect
from sassxlate.llm.evaluation.figures import figures
from sassxlate.llm.evaluation.picture import picture
from sassxlate.llm.evaluation.results import EvaluationRun
from sassxlate.llm.evaluation.run import EvaluationSettings, measure
from sassxlate.llm.language import tokenizer
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.optimize.search import improved
from sassxlate.lowering.region.text import (
    RegionText,
    answer_text,
    code_words,
    read_code,
    region_text,
)
from sassxlate.lowering.verify.steps.prover import Prover
from tests.llm import engines
from tests.llm.engines import Scripted, Words
from tests.llm.questions import KERNELS

pytestmark = pytest.mark.usefixtures("valid_documents")

NAMES = ("spin_lock", "byte_lanes")
SOURCES = [KERNELS / f"sm_{arch}" / f"{name}.cubin" for arch in (80, 90) for name in NAMES]


class Late:
    """The rules' answer from the third sample on; before that nothing that is right."""

    name = "late"

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        del vtemps
        return [
            [tuple(engines.rules_words(q)) if n > 1 else (";",) * 99 for n in range(samples)]
            for q in questions
        ]


class Silent:
    """To whom every question is too long."""

    name = "silent"

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        del samples, vtemps
        return [[] for _ in questions]


RULES = Scripted("rules", lambda q, _: engines.rules_words(q))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return collect(SOURCES, Choice())


def measured(corpus: Corpus, proposer: Any, samples: int = 1, **more: Any) -> dict[str, Any]:
    run = measure(corpus, proposer, EvaluationSettings(samples, **more))
    return figures(corpus, run, samples)


def test_the_rules_answers(corpus: Corpus) -> None:
    found = measured(corpus, RULES)
    everything = found["blocks"]["all"]
    assert everything["distinct"] == len(corpus.blocks) > 10
    assert everything["first"] == everything["best"]
    assert everything["first"]["share"] == 1
    assert everything["first"]["equal"] == everything["distinct"]
    assert everything["first"]["mean_ratio"] == everything["first"]["ratio_of_sums"] == 1
    assert everything["why_not"] == {}
    assert sum(row["distinct"] for row in everything["by_length"].values()) == len(corpus.blocks)
    for arch in ("sm_80", "sm_90"):
        whole = found["whole_programs"][arch]
        assert whole["programs"] == whole["first"] == whole["best"] == 2
        assert whole["kernels"] == whole["kernels_first"]
        assert 0 < whole["bodies"] == whole["bodies_first"] == whole["bodies_best"]
        assert found["hybrid"][arch]["ratio"] == 1
    memo = found["rate"]["memo"]
    counts = found["programs"]["files"]
    assert memo["regions"] == sum(c["asked"] for c in counts.values())
    assert memo["distinct"] == len({key for _, key in corpus.blocks})
    assert all(c["regions"] == c["asked"] + sum(c["not_asked"].values()) for c in counts.values())


@pytest.mark.parametrize("answer", ["rubbish"])
def test_nothing_over_the_search(corpus: Corpus, answer: str) -> None:
    found = measured(corpus, Scripted(answer, getattr(engines, answer)))
    row = found["over_search"]["blocks"]["all"]
    assert row["distinct"] == row["better"] + row["equal"] + row["worse"] == len(corpus.blocks)
    assert row["worse"] > 0
    assert row["search"] <= row["both"] + 1e-9 < row["model_best"] <= 1
    assert row["saved"] < 0
    assert all(value > 0 for value in found["over_search"]["cpu_ms"].values())


def test_the_search_as_a_model_is_the_search(corpus: Corpus) -> None:
    """A model that answers with the search's code has nothing over it, and loses nothing."""

    def searched(question: RegionText, _: object) -> list[str]:
        rules = read_code(engines.rules_words(question), question)
        region = CutRegion(question.block, question.live_out, rules)
        found = improved(region, question.regs, question, Prover(timeout_ms=2000), rules)
        code = rules if found is None else found.code
        return [word for line in code_words(code, question) for word in line]

    found = measured(corpus, Scripted("search", searched))
    row = found["over_search"]["blocks"]["all"]
    assert row["saved"] == 0
    assert row["equal"] == row["distinct"]
    assert row["search"] == row["model_first"] == row["both"] < 1


def test_the_search_is_asked_in_the_architecture_s_own_forms() -> None:
    """A model is asked for sm_120 in older forms, which the search's own code cannot be written in:
    it was given the rules' cost there, and any model was better."""
    corpus = collect([KERNELS / "sm_120" / "carry_chains.cubin"], Choice())
    restated = {k: b for k, b in corpus.blocks.items() if b.question.parts}
    assert restated
    found = measure(replace(corpus, blocks=restated), RULES, EvaluationSettings())
    better = 0
    for key, block in restated.items():
        here = block.question
        asked = region_text(here.block, here.regs, here.live_out)
        rules = read_code(answer_text(block.rules, asked).split(), asked)
        region = CutRegion(here.block, here.live_out, rules)
        code = improved(region, here.regs, asked, Prover(timeout_ms=2000), rules)
        better += code is not None
        assert found.results[key].search == (block.cost if code is None else code.cost)
    assert better


@pytest.mark.parametrize("answer", ["near_miss", "rubbish"])
def test_wrong_answers(corpus: Corpus, answer: str) -> None:
    found = measured(corpus, Scripted(answer, getattr(engines, answer)))
    row = found["blocks"]["all"]["first"]
    kinds = [row[k] for k in ("Proved", "Refuted", "Unknown", "refused", "long")]
    assert sum(kinds) == len(corpus.blocks)
    assert row["Proved"] == row["cheaper"] + row["equal"] + row["dearer"] < len(corpus.blocks)
    assert sum(found["blocks"]["all"]["why_not"].values()) == sum(kinds) - row["Proved"]
    assert all(p["first"] == 0 for p in found["whole_programs"].values())
    assert all(h["ratio"] <= 1 for h in found["hybrid"].values())
    if answer == "near_miss":
        assert row["Refuted"] + row["Unknown"] > 0
        assert found["blocks"]["all"]["rules_unproved_too"] == 0
    else:
        assert row["refused"] == len(corpus.blocks)


def test_no_answers(corpus: Corpus) -> None:
    found = measured(corpus, Silent(), 8)
    assert found["blocks"]["all"]["first"]["long"] == len(corpus.blocks)
    assert found["blocks"]["all"]["first"]["share"] == 0
    assert found["rate"]["further"]["blocks"] == 0
    assert all(p["best"] == 0 for p in found["whole_programs"].values())


def test_further_samples(corpus: Corpus) -> None:
    run = measure(corpus, Late(), EvaluationSettings(8, jobs=2))
    found = figures(corpus, run, 8)
    everything = found["blocks"]["all"]
    assert everything["first"]["share"] == 0
    assert everything["first"]["refused"] == len(corpus.blocks)
    assert everything["best"]["share"] == 1
    assert all(p["first"] == 0 and p["best"] == 2 for p in found["whole_programs"].values())
    assert {r.best.drawn for r in run.results.values()} == {2}
    assert {r.answers for r in run.results.values()} == {8}
    assert all(1 <= r.best.parts <= corpus.blocks[key].sass for key, r in run.results.items())


def test_a_process_dies(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = sorted(corpus.blocks)[3]
    judge = evaluate_run.Judge.judge

    def killed(self: evaluate_run.Judge, case: evaluate_run.ProofCase) -> evaluate_run.Judged:
        if (case.block.arch, case.block.key) == victim and parent_process() is not None:
            os._exit(9)
        return judge(self, case)

    monkeypatch.setattr(evaluate_run.Judge, "judge", killed)
    run = measure(corpus, RULES, EvaluationSettings(jobs=2))
    lost = [key for key, result in run.results.items() if not result.first.proved]
    assert lost == [victim]
    assert run.results[victim].first.outcome == "Unknown"
    assert "died" in run.results[victim].first.detail


def test_each_question_once(corpus: Corpus) -> None:
    proposer = Scripted("rules", RULES.answer)
    measure(corpus, proposer, EvaluationSettings())
    assert proposer.asked == len({key for _, key in corpus.blocks}) < len(corpus.blocks)


def test_samples_are_seeded() -> None:
    few = Choice(blocks=5, seed=3)
    first, again = collect(SOURCES, few), collect(SOURCES, few)
    assert sorted(first.blocks) == sorted(again.blocks)
    assert len(first.blocks) == 10
    assert sorted(first.blocks) != sorted(collect(SOURCES, Choice(blocks=5, seed=4)).blocks)
    found = measured(first, RULES)
    assert found["whole_programs"] is None
    only = collect([KERNELS / "sm_90"], Choice(programs=2, arches=frozenset({90})))
    assert len(only.programs) == 2


def test_a_stopped_run_goes_on(corpus: Corpus, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    whole = measure(corpus, RULES, EvaluationSettings(), path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]) + lines[-1][:20])
    proposer = Scripted("rules", RULES.answer)
    again = measure(corpus, proposer, EvaluationSettings(), path)
    assert 0 < proposer.asked < len(whole.results)
    assert again.left == 0
    assert _plain(whole) == _plain(again)
    silent = Silent()
    silent.name = "rules"
    assert _plain(measure(corpus, silent, EvaluationSettings(), path)) == _plain(whole)
    stopped = measure(corpus, RULES, EvaluationSettings(limit_s=-1.0))
    assert stopped.left == len(corpus.blocks)
    assert figures(corpus, stopped, 1)["whole_programs"] is None
    with pytest.raises(ModelError, match=r"SX1051.*seed is 0, here 1"):
        measure(corpus, RULES, EvaluationSettings(seed=1), path)
    for text in ("{}\n", "x\n", lines[0] + '{"arch": 80}\n', lines[0] + "[]\n", "\xff\n"):
        path.write_text(text)
        with pytest.raises(ModelError, match="SX1051"):
            measure(corpus, RULES, EvaluationSettings(), path)


def _plain(run: EvaluationRun) -> dict[Any, Any]:
    return {k: (r.first.outcome, r.first.cost, r.best.text) for k, r in sorted(run.results.items())}


def test_what_training_saw(corpus: Corpus, tmp_path: Path) -> None:
    blocks = list(corpus.blocks.values())
    tokens = [tokenizer.example(b.question.words, [";"]) for b in blocks[::2]]
    shards.write(tmp_path / "train-000.tokens", tokens, "v")
    seen = collect(SOURCES, Choice(), Trained(tmp_path))
    held = {b.question.text for b in blocks[::2]}
    assert all(b.seen == (b.question.text in held) for b in seen.blocks.values())
    found = measured(seen, RULES)
    row = found["blocks"]["all"]
    assert 0 < row["unseen"]["distinct"] < row["distinct"]
    with pytest.raises(ModelError, match="SX1044"):
        Trained(tmp_path / "nowhere")


def test_nothing_to_measure(tmp_path: Path) -> None:
    (tmp_path / "x.cubin").write_bytes(b"\x7fELF and no more")
    with pytest.raises(ModelError, match="SX1050"):
        collect([tmp_path], Choice())
    corpus = collect([tmp_path, *SOURCES], Choice(arches=frozenset({90})))
    assert [e.code[:4] for e in corpus.errors] == ["SX01"]
    assert corpus.arches == [90]


def test_picture(corpus: Corpus) -> None:
    found = measured(corpus, Late(), 3)
    root = ElementTree.fromstring(picture(found))
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "sm_80: blocks Proved, by SASS instructions" in texts
    assert str(found["blocks"]["sm_80"]["by_length"]["1-2"]["distinct"]) in texts


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rules(*_: object) -> Scripted:
        return RULES

    monkeypatch.setattr(models, "language_model", rules)
    options = ["eval", str(SOURCES[0]), "-j", "1", "--samples", "2"]
    done = CliRunner().invoke(cli, [*options, "--picture", str(tmp_path / "p.svg")])
    assert done.exit_code == 0, done.output
    assert "100.00 %" in done.output
    assert "CASS-7B" in done.output
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    done = CliRunner().invoke(cli, [*options, "--format", "json", "--blocks", "4"])
    told = json.loads(done.stdout)
    assert told["blocks"]["sm_80"]["distinct"] == 4
    done = CliRunner().invoke(cli, [*options, "--limit-seconds", "0"])
    assert done.exit_code == 1
    assert "are left" in done.output
    assert CliRunner().invoke(cli, ["eval"]).exit_code == 2


def test_a_card_needs_the_data_of_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> Scripted:
        raise AssertionError("no model is read for a card that cannot be written")

    monkeypatch.setattr(models, "language_model", asked)
    data, model = tmp_path / "data", tmp_path / "model"
    data.mkdir()
    model.mkdir()
    options = ["eval", str(SOURCES[0]), "--model", str(model), "--card", str(tmp_path / "c.md")]

    def refused(*more: str) -> str:
        done = CliRunner().invoke(cli, [*options, *more])
        assert done.exit_code == 2
        assert "SX1052" in done.output
        return done.output

    assert "--dataset" in refused()
    assert "no datasheet.json with a digest" in refused("--dataset", str(data))
    (data / "datasheet.json").write_text('{"digest": "aa"}')
    assert "names none" in refused("--dataset", str(data))
    (model / "training.json").write_text('{"datasets": ["bb"]}')
    assert "names bb" in refused("--dataset", str(data))
    assert not (tmp_path / "c.md").exists()

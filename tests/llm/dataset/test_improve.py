"""Expert iteration: a model's proposals are judged, and proved and cheaper ones are stored."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli.dataset import command
from sassxlate.errors import ModelError
from sassxlate.llm.dataset import improve as rounds
from sassxlate.llm.dataset.build import DatasetSettings, build
from sassxlate.llm.dataset.improve import Asked, choose, figures, improve, judged, questions
from sassxlate.llm.inference.qwen2 import SIZES, random_weights, save
from sassxlate.llm.language.tokenizer import vocabulary
from sassxlate.lowering.verify.steps.prover import Prover

pytest.importorskip("pyarrow", reason="shards are parquet files")
from sassxlate.llm.dataset.files import finish, model_reports, read_split

pytestmark = pytest.mark.usefixtures("valid_documents")

CUBIN = Path(__file__).resolve().parents[3] / "fixtures/kernels/sm_80/calls.cubin"
Words = tuple[str, ...]
Stop = Callable[[], bool]
Made = Iterator[tuple[int, list[Words]]]
Answers = dict[str, str]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """A dataset without the search, and the answers that the search finds."""
    folder = tmp_path_factory.mktemp("data")
    settings = DatasetSettings(valid=0, test=0, search=False)
    build(folder / "plain", [CUBIN], settings)
    finish(folder / "plain")
    build(folder / "searched", [CUBIN], replace(settings, search=True))
    finish(folder / "searched")
    # Parts are cut where steps end, which is elsewhere in the search's code.
    asked = {r["id"] for r in read_split(folder / "plain", "train")}
    rows = [r for r in read_split(folder / "searched", "train") if r["id"] in asked]
    return folder / "plain", {r["id"]: r["answer"] for r in rows if r["by"] == "search"}


@pytest.fixture
def data(searched: tuple[Path, Answers], tmp_path: Path) -> tuple[Path, Answers]:
    shutil.copytree(searched[0], tmp_path / "data")
    return tmp_path / "data", searched[1]


def proposing(
    answer: Callable[[Asked], Sequence[str]],
) -> Callable[[Sequence[Asked], Stop], Made]:
    def run(asked: Sequence[Asked], stop: Stop) -> Made:
        for n, question in enumerate(asked):
            if stop():
                return
            yield n, [tuple(text.split()) for text in answer(question)]

    return run


def test_the_cheapest_proved_answer_is_kept(data: tuple[Path, Answers]) -> None:
    folder, better = data

    def answer(q: Asked) -> list[str]:
        nothing = " ".join(";" for _ in range(q.sass))
        return [q.answer, nothing, better.get(q.id, "v_mov_b32"), "v_mov_b32 v999 ;"]

    before = {r["id"]: r for r in read_split(folder, "train")}
    asked = questions(folder, 1000, 0)
    assert {q.id for q in asked} == before.keys()
    told: list[int] = []
    progress = improve(
        folder, asked, proposing(answer), by="tests", jobs=2, unproved=True,
        told=lambda p: told.append(p.done),
    )  # fmt: skip
    made = figures(progress, "tests")
    assert made["questions"] == len(asked) == told[-1]
    assert made["answers"] == 4 * len(asked) > made["illegal"] > len(asked)
    assert made["accepted"] == len(better) > 2
    assert made["same"] >= len(asked)
    assert not made.get("unread")
    assert not made.get("faults")
    # What writes nothing is cheap, and mostly wrong.
    lines = (folder / "unproved.jsonl").read_text().splitlines()
    assert len(lines) > 3
    assert {"id", "answer", "cost", "of", "why"} <= json.loads(lines[0]).keys()

    sheet = finish(folder)
    after = {r["id"]: r for r in read_split(folder, "train")}
    assert after.keys() == before.keys()
    for key, row in after.items():
        assert row["count"] == before[key]["count"]
        if key in better:
            assert row["by"] == "model"
            assert row["answer"] == better[key]
            assert row["cost"] < before[key]["cost"] == row["rules_cost"]
            assert row["rules"] == before[key]["answer"]
        else:
            assert row == before[key]
    saved = sum(before[k]["cost"] - after[k]["cost"] for k in before)
    assert made["saved"] == saved
    assert sheet["models"]["tests"]["accepted"] == len(better)
    assert sheet["splits"]["train"]["by"]["model"] == len(better)
    assert "tests: " in (folder / "datasheet.md").read_text()

    # Another round has nothing to better; nor has a build.
    again = improve(folder, questions(folder, 1000, 1), proposing(answer), by="tests")
    assert not again.counts["accepted"]
    assert finish(folder)["splits"]["train"]["cost"] == sheet["splits"]["train"]["cost"]


def test_a_proof_is_of_this_very_question(data: tuple[Path, Answers]) -> None:
    folder, better = data
    prover = Prover()
    for asked in questions(folder, 1000, 0):
        others = [tuple(text.split()) for key, text in better.items() if key != asked.id]
        row = judged(asked, others, prover).row
        assert row is None or (row.cost < asked.cost and row.id == asked.id)


def test_what_is_dear_or_new_is_asked_first() -> None:
    costs = {f"{n:04x}": 1 + 99 * (n % 2) for n in range(1000)}
    chosen = choose(costs, {}, 300, 3)
    assert chosen == choose(dict(reversed(costs.items())), {}, 300, 3)
    assert chosen != choose(costs, {}, 300, 4)
    assert len(set(chosen)) == 300
    assert sum(costs[k] == 100 for k in chosen) > 280
    tried = {key: 3 for key in chosen}
    assert len(set(choose(costs, tried, 150, 3)) & set(chosen)) < 60
    assert not choose({}, {}, 5, 0)


def test_a_round_that_is_stopped_keeps_what_it_found(data: tuple[Path, Answers]) -> None:
    folder, better = data

    def dies(asked: Sequence[Asked], stop: Stop) -> Made:
        del stop
        first = next(n for n, q in enumerate(asked) if q.id in better)
        yield first, [tuple(better[asked[first].id].split())]
        os.kill(os.getpid(), signal.SIGKILL)

    asked = questions(folder, 1000, 0)
    with pytest.raises(ModelError) as caught:
        improve(folder, asked, dies, by="tests")
    assert caught.value.code == "SX1046"
    (report,) = model_reports(folder)
    assert report["rows"] == 1
    assert len(report["tried"]) == 1
    assert finish(folder)["splits"]["train"]["by"]["model"] == 1

    def refuses(asked: Sequence[Asked], stop: Stop) -> Made:
        raise ModelError("SX1003", "no weights")
        yield  # pragma: no cover

    with pytest.raises(ModelError, match="no weights"):
        improve(folder, asked, refuses, by="tests")
    late = improve(folder, asked, proposing(lambda q: [q.answer]), by="tests", limit_s=0)
    assert late.done < len(asked)


def test_a_worker_that_dies_costs_one_question(
    data: tuple[Path, Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = data
    asked = questions(folder, 12, 0)

    def dies(question: Asked, answers: Sequence[Words], prover: Prover) -> rounds.ImproveOutcome:
        if question.id == asked[3].id:
            os.kill(os.getpid(), signal.SIGKILL)
        return judged(question, answers, prover)

    monkeypatch.setattr(rounds, "judged", dies)
    progress = improve(folder, asked, proposing(lambda q: [q.answer]), by="tests", jobs=2)
    assert progress.done == 12
    assert progress.counts["died"] == 1


def test_the_command(data: tuple[Path, Answers], tmp_path: Path) -> None:
    folder, _ = data
    model = tmp_path / "model"
    config = replace(SIZES["tiny"], vocab=len(vocabulary()), context=512)
    save(model, config, random_weights(config, 1))
    options = [
        "--model",
        str(model),
        "--samples",
        "2",
        "-j",
        "1",
        "--questions",
        "3",
        "--format",
        "json",
    ]
    run = CliRunner().invoke(command, ["improve", str(folder), *options, "--device", "numpy"])
    assert run.exit_code == 0, run.output
    made = json.loads(run.stdout)
    assert made["questions"] == 3
    assert made["answers"] == 6
    empty = tmp_path / "empty"
    empty.mkdir()
    run = CliRunner().invoke(command, ["improve", str(empty), *options])
    assert isinstance(run.exception, ModelError)
    assert run.exception.code == "SX1044"
    run = CliRunner().invoke(command, ["improve", str(folder), "--model", str(empty)])
    assert isinstance(run.exception, ModelError)
    assert run.exception.code == "SX1001"

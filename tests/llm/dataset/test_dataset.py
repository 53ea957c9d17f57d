"""The dataset: pairs from cubins, splits by program, a build that continues, and its files."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cli.dataset import command
from sassxlate.disasm.containers import load
from sassxlate.errors import EncodeError, ModelError, SassxlateError
from sassxlate.executors import Place
from sassxlate.llm.dataset import files, shards
from sassxlate.llm.dataset.build import DatasetSettings, build, program_of, split_of
from sassxlate.llm.dataset.generate import generate
from sassxlate.llm.dataset.generate.generate import program_name
from sassxlate.llm.dataset.generate.source import source
from sassxlate.llm.dataset.rows import Harvest, TrainingPair, row_id
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.question import read_question
from sassxlate.lowering.optimize.regions import LONGEST
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.text import read_code
from sassxlate.lowering.verify import Proved
from sassxlate.lowering.verify.steps.prover import Prover

pytest.importorskip("pyarrow", reason="shards are parquet files")
from sassxlate.llm.dataset.files import SPLITS, finish, read_ids, read_split, write_rows
from sassxlate.llm.dataset.tokens import write_tokens

pytestmark = pytest.mark.usefixtures("valid_documents")

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"
SETTINGS = DatasetSettings(test=0.3, search=False)
NAMES = ["calls", "carry_chains", "vote_forms"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for arch in (80, 90, 120):
        for name in NAMES:
            shutil.copy(KERNELS / f"sm_{arch}/{name}.cubin", folder / f"{name}.sm_{arch}.cubin")
    (folder / "broken.cubin").write_bytes(b"\x7fELF" + b"\1" * 60)
    (folder / "notes.txt").write_text("no program")
    return folder


@pytest.fixture(scope="module")
def built(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    failed: list[SassxlateError] = []
    progress = build(folder, [sources], SETTINGS, failed=failed.append)
    assert progress.done == progress.units > 3
    assert [e.where.file for e in failed] == [str(sources / "broken.cubin")]
    finish(folder, {"carry": "Apache-2.0"})
    return folder


def test_programs_are_in_one_split_each() -> None:
    builds = ["scan.O3.sm_80.cubin", "scan.sm_90.cubin", "scan"]
    assert {program_of(Path(name)) for name in builds} == {"scan"}
    counted = [split_of(f"program {n}", DatasetSettings()) for n in range(2000)]
    assert 60 < counted.count("test") < 150
    assert 5 < counted.count("valid") < 45


def test_rows_are_proved_pairs_each_question_once(built: Path) -> None:
    rows = [r for split in ("train", "valid", "test") for r in read_split(built, split)]
    assert len(rows) > 50
    for split in ("train", "valid", "test"):
        mine = list(read_split(built, split))
        assert len({r["prompt"] for r in mine}) == len(mine)
        assert {split_of(r["program"], SETTINGS) for r in mine} <= {split}
        if split == "train":
            assert {r["arch"] for r in mine} <= {80, 90}
    assert all(r["prompt"].startswith("gfx1100\nin") and r["cost"] > 0 for r in rows)
    assert all(r["answer"].count(";") == r["sass"] for r in rows)


def test_shards_are_the_cheapest_rows_in_order(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(built, folder)
    rows = [r for path in sorted((folder / "units").glob("*.parquet")) for r in _rows(path)]
    again: list[dict[str, Any]] = [
        {**r, "cost": r["cost"] - n % 3, "rdna": 1000 + n} for n, r in enumerate(rows)
    ]
    write_rows(folder / "units" / "model-1.parquet", [_row(r) for r in again[::2]], "train")
    (folder / "units" / "model-1.json").write_text(
        json.dumps({"model": "m", "rows": 1, "counts": {}, "tried": []})
    )
    wanted: dict[str, dict[str, Any]] = {}
    for row in rows + [r | {"split": "train"} for r in again[::2]]:
        best = wanted.get(row["id"])
        if row["split"] == "train" and (best is None or row["cost"] < best["cost"]):
            wanted[row["id"]] = row
    monkeypatch.setattr("sassxlate.llm.dataset.files.SHARD", 7)
    finish(folder)
    got = list(read_split(folder, "train"))
    assert [r["id"] for r in got] == sorted(wanted)
    for row in got:
        count = {"count": row["count"]}
        assert row == {k: v for k, v in (wanted[row["id"]] | count).items() if k != "split"}
    assert max(r["rdna"] for r in got) >= 1000
    sizes = [len(_rows(p)) for p in sorted((folder / "train").glob("*.parquet"))]
    assert sizes[:-1] == [7] * (len(sizes) - 1)
    assert sum(sizes) == len(wanted)


def _rows(path: Path) -> list[dict[str, Any]]:
    parquet: Any = importlib.import_module("pyarrow.parquet")
    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


def _row(row: dict[str, Any]) -> TrainingPair:
    return TrainingPair(**{k: v for k, v in row.items() if k != "split"})


def test_several_processes_find_the_same_units(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(jobs: int) -> tuple[int, list[str]]:
        failed: list[SassxlateError] = []
        made = build(tmp_path, [sources, tmp_path / "none"], SETTINGS, place=Place(jobs), limit_s=0,
                     failed=failed.append)  # fmt: skip
        return made.units, [e.code for e in failed]

    monkeypatch.setattr("sassxlate.llm.dataset.build._FILES", 1)
    one = found(1)
    assert one == found(2)
    assert one[0] > 3
    assert one[1][1:] == ["SX1042"]  # and before it the broken one's

    def dies(*_: object, **__: object) -> None:
        os._exit(1)

    monkeypatch.setattr("sassxlate.llm.dataset.build.units_of", dies)
    with pytest.raises(ModelError, match="SX1041"):
        found(2)


def _harvested(arch: int, name: str) -> list[TrainingPair]:
    cubin = next(c for _, c in load(KERNELS / f"sm_{arch}" / f"{name}.cubin").cubins())
    harvest = Harvest(search=False)
    for kernel in cubin.kernels:
        harvest.kernel(cubin, kernel.name, name)
    return harvest.taken()


def test_no_held_out_question_is_trained_on_in_any_spelling(built: Path, tmp_path: Path) -> None:
    """Questions of a held-out program for sm_120 are left out if training has them as they are, or
    in the forms of older architectures."""
    folder = tmp_path / "data"
    shutil.copytree(built, folder)
    known = {r["id"] for r in read_split(folder, "train")}
    new = {r.id: r for r in _harvested(120, "carry_chains") if not {r.id, r.said} & known}
    restated = next(r for r in new.values() if r.said)
    copied = next(r for r in new.values() if not r.said)
    assert restated.said != restated.id
    trained = next(read_split(folder, "train"))
    older = replace(_row(trained), id=restated.said)
    report = next((folder / "units").glob("*.json")).read_text()

    def add(name: str, rows: list[TrainingPair], split: str) -> dict[str, Any]:
        write_rows(folder / "units" / f"{name}.parquet", rows, split)
        (folder / "units" / f"{name}.json").write_text(report)
        return finish(folder)

    before = add("held", list(new.values()), "test")
    assert {r["id"] for r in read_split(folder, "test")} == new.keys()
    assert before["splits"]["test"]["trained"] == 0
    after = add("seen", [copied, older], "train")
    left = {r["id"] for r in read_split(folder, "test")}
    same = {r.id for r in new.values() if {r.id, r.said} & {copied.id, restated.said}}
    assert same >= {copied.id, restated.id}
    assert left == new.keys() - same
    assert after["splits"]["test"]["trained"] == len(same)
    assert after["digest"] != before["digest"]


def test_tokens_name_their_dataset(built: Path, tmp_path: Path) -> None:
    write_tokens(built, tmp_path, "train")
    shard = shards.read(tmp_path / "train-000.tokens")
    assert shards.datasets(shard) == [files.digest_of(built)]
    assert shards.datasets(shards.joined([shard, shard])) == [files.digest_of(built)]
    assert files.digest_of(tmp_path) == ""


def test_the_datasheet_counts_them(built: Path) -> None:
    sheet = json.loads((built / "datasheet.json").read_text())
    for split, said in sheet["splits"].items():
        assert said.get("pairs", 0) == len(list(read_split(built, split)))
    assert sheet["regions"]["regions"] == sum(
        sheet["regions"].get(k, 0) for k in ("macro", "again", "unknown", "rules")
    )
    text = (built / "datasheet.md").read_text()
    assert "Proved" in text


def test_a_stopped_build_goes_on(built: Path, sources: Path, tmp_path: Path) -> None:
    folder = tmp_path / "again"
    stopped = build(folder, [sources], SETTINGS, limit_s=0)
    assert stopped.done == 0
    first = build(folder, [sources], SETTINGS, shard=(0, 2))
    # Killed while it wrote: rows without a report, and a file half written.
    report = next((folder / "units").glob("*.json"))
    report.unlink()
    (folder / "units" / "x.123.tmp").write_bytes(b"half")
    rest = build(folder, [sources], SETTINGS, place=Place(2))
    assert rest.done == rest.units > first.units
    finish(folder)
    assert _shards(folder) == _shards(built)
    assert read_ids(folder / "units").keys() <= {"train", "valid", "test"}


def _shards(folder: Path) -> dict[str, bytes]:
    """The shards' bytes."""
    found = [p for split in SPLITS for p in (folder / split).glob("*.parquet")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_shards_do_not_depend_on_order_and_processes(
    built: Path, sources: Path, tmp_path: Path
) -> None:
    """A question that several units have was the first one's: the program, the kernel and the
    count of a row were those of the unit that came first.  Nor on where the files lie: the
    order of units was that of their paths' digests."""
    moved = shutil.copytree(sources, tmp_path / "moved")
    backwards = sorted(moved.glob("*.cubin"), reverse=True)
    folder = tmp_path / "data"
    build(folder, [*backwards, sources], SETTINGS, place=Place(2))
    finish(folder)
    same = _shards(folder)
    assert same
    assert same == _shards(built)


def test_other_splits_are_refused(built: Path, sources: Path) -> None:
    with pytest.raises(ModelError) as caught:
        build(built, [sources], replace(SETTINGS, seed=1))
    assert caught.value.code == "SX1040"


def test_an_empty_folder_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        finish(tmp_path)
    assert caught.value.code == "SX1044"


def test_the_command(sources: Path, tmp_path: Path) -> None:
    path = sources / "vote_forms.sm_80.cubin"
    options = ["--test", "0.3", "-j", "1", "--no-search"]
    run = CliRunner().invoke(
        command, ["build", str(tmp_path / "d"), str(path), *options, "--format", "json"]
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["schema"] == "sassxlate.dataset-build/1"
    run = CliRunner().invoke(
        command, ["build", str(tmp_path / "e"), str(path), *options, "--limit-seconds", "0"]
    )
    assert run.exit_code == 1
    run = CliRunner().invoke(command, ["build", str(tmp_path / "e"), "--shard", "3/2"])
    assert run.exit_code == 2


def test_what_is_missing_is_said_before_minutes_of_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    run = CliRunner().invoke(command, ["make", str(tmp_path / "d"), "--count", "6"])
    assert isinstance(run.exception, ModelError)
    assert run.exception.code == "SX1043"
    assert not (tmp_path / "d").exists()


def test_tokens_are_the_rows_for_a_trainer(built: Path, tmp_path: Path) -> None:
    options = ["tokens", str(built), "-o", str(tmp_path), "--split", "train", "--most", "1"]
    run = CliRunner().invoke(command, options)
    assert run.exit_code == 0, run.output
    shard = shards.read(tmp_path / "train-000.tokens")
    rows = list(read_split(built, "train"))
    assert len(shard) == len(rows)
    for i in (0, len(rows) - 1):
        asked = int(shard.questions[i])
        ids = shard.example(i).tolist()
        assert tokenizer.decode(ids[:asked]) == rows[i]["prompt"].split()
        assert tokenizer.decode(ids[asked:]) == rows[i]["answer"].split()
    run = CliRunner().invoke(command, ["tokens", str(tmp_path), "-o", str(tmp_path / "x")])
    assert isinstance(run.exception, ModelError)


def test_tokens_by_several_processes(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard of tokens for each of the dataset's, the same for any number of writers; what is
    beyond the limit, or of a former call, does not stay."""
    rows = list(read_split(built, "train"))
    monkeypatch.setattr(files, "SHARD", max(1, len(rows) // 4))
    shutil.copytree(built, tmp_path / "d")
    finish(tmp_path / "d")
    one = write_tokens(tmp_path / "d", tmp_path / "one", "train")
    several = write_tokens(tmp_path / "d", tmp_path / "several", "train", jobs=3)
    assert len(one) == len(several) > 3
    assert sum(w.examples for w in several) == len(rows)
    for a, b in zip(one, several, strict=True):
        assert a.path.read_bytes() == b.path.read_bytes()
    most = sum(w.bytes for w in one[:2])
    few = write_tokens(tmp_path / "d", tmp_path / "several", "train", most, jobs=3)
    assert [w.examples for w in few] == [w.examples for w in one[:2]]
    assert len(list((tmp_path / "several").iterdir())) == 2
    # Held-out tokens of a dataset that has none any more would be of programs in training.
    shutil.rmtree(tmp_path / "d" / "valid", ignore_errors=True)
    (tmp_path / "several" / "valid-000.tokens").write_bytes(b"old")
    run = CliRunner().invoke(
        command, ["tokens", str(tmp_path / "d"), "-o", str(tmp_path / "several")]
    )
    assert run.exit_code == 0, run.output
    assert not list((tmp_path / "several").glob("valid*"))


def test_generated_programs_are_decided_by_their_number() -> None:
    assert source(1, 5) == source(1, 5)
    assert source(1, 5) != source(1, 6)
    assert source(1, 5, 3).count("__global__") == 3
    # What is held out under one size is in no program of another.
    assert program_name(1, 5) == program_name(1, 5, 12) != program_name(1, 5, 36)
    assert source(1, 5, 36)[:2000] != source(1, 5)[:2000]


@pytest.mark.skipif(
    shutil.which("nvcc") is None or shutil.which("ptxas") is None, reason="needs nvcc and ptxas"
)
def test_generated_kernels_compile(tmp_path: Path) -> None:
    options = ["--count", "1", "-j", "1", "--test", "0"]
    run = CliRunner().invoke(command, ["generate", str(tmp_path), *options])
    assert run.exit_code == 0, run.output
    cubins = sorted(p.name for p in tmp_path.glob("*.cubin"))
    assert {program_of(Path(name)) for name in cubins} == {"gen0-000000"}
    assert len(cubins) >= 2


@pytest.mark.parametrize("seed", range(12))
def test_a_few_programs_have_one_to_test_on(seed: int) -> None:
    share = generate.test_share(seed, 6, 0.05)
    splits = [split_of(program_name(seed, n), DatasetSettings(seed, 0.01, share)) for n in range(6)]
    assert "test" in splits
    assert "train" in splits
    assert generate.test_share(seed, 1600, 0.05) == 0.05


@pytest.mark.skipif(
    shutil.which("nvcc") is None or shutil.which("ptxas") is None, reason="needs nvcc and ptxas"
)
def test_held_out_programs_are_built_for_every_architecture(tmp_path: Path) -> None:
    made = generate.make(0, tmp_path, 0, 1, DatasetSettings(test=1.0))
    assert made.error is None
    names = {p.name.split(".sm_")[1] for p in tmp_path.glob("*.cubin")}
    assert names == {f"{arch}.cubin" for arch in (75, 80, 86, 89, 90, 100, 120)}


def test_a_compiler_that_takes_too_long_takes_its_processes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "pid"
    tool = tmp_path / "nvcc"
    tool.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {told}; wait\n")
    tool.chmod(0o755)
    monkeypatch.setattr(generate, "TIMEOUT_S", 1)
    with pytest.raises(ModelError, match="SX1045"):
        generate._run([tool])  # pyright: ignore[reportPrivateUsage]
    pid = int(told.read_text())
    for _ in range(600):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError(f"{pid} goes on")


def test_what_no_answer_may_say_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region whose code has no words is counted, and the kernel's others are there."""
    cubin = next(c for _, c in load(KERNELS / "sm_90" / "carry_chains.cubin").cubins())
    name = cubin.kernels[0].name
    every = Harvest(search=False)
    every.kernel(cubin, name, "p")
    prove = Prover.region
    refused: list[int] = []

    def one_less(self: Prover, block: Region, *rest: Any) -> Any:
        if not refused:
            refused.append(len(block.instructions))
            raise EncodeError("SX0543", "v_readfirstlane_b32 is not in the language")
        return prove(self, block, *rest)

    monkeypatch.setattr(Prover, "region", one_less)
    harvest = Harvest(search=False)
    harvest.kernel(cubin, name, "p")
    assert harvest.counts["unknown"] == every.counts["unknown"] + 1
    assert "v_readfirstlane_b32 is not in the language" in harvest.why
    assert 0 < len(harvest.rows) < len(every.rows)


def test_parts_are_rows() -> None:
    """Each of a part's rows is a question that reads back, and its answer is proved again."""
    cubin = next(c for _, c in load(KERNELS / "sm_90" / "carry_chains.cubin").cubins())
    harvest = Harvest()
    for kernel in cubin.kernels:
        harvest.kernel(cubin, kernel.name, "p")
    parts = [row for row in harvest.taken() if not row.count]
    assert len(parts) == harvest.counts["part"] > 10
    assert len({row.id for row in harvest.taken()}) == len(harvest.taken())
    for row in parts:
        assert 1 <= row.sass < LONGEST
        assert row.cost <= row.rules_cost or not row.rules
        question = read_question(row.prompt, row.arch)
        assert row_id(question.text) == row.id
        code = read_code(row.answer.split(), question)
        found = Prover().region(question.block, question.regs, question.live_out, code)
        assert isinstance(found, Proved), row.answer

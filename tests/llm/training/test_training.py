"""Qwen2 in NumPy, files of tensors and tokens, training: small, and where torch is, with torch."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from sassxlate.cli.train import command as train_command
from sassxlate.errors import ModelError
from sassxlate.llm.dataset import shards
from sassxlate.llm.engine import choose, models
from sassxlate.llm.engine.model import ModelProposer
from sassxlate.llm.inference import safetensors
from sassxlate.llm.inference.block_model import BlockModel
from sassxlate.llm.inference.qwen2 import SIZES, Config, Qwen2, Session, random_weights, save
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.tokenizer import vocabulary
from sassxlate.llm.training.curves import curves
from sassxlate.llm.training.launch import arguments, together
from tests.llm.questions import questions

pytestmark = pytest.mark.usefixtures("valid_documents")

TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)
TINY = replace(SIZES["tiny"], vocab=len(vocabulary()))


def checkpoint(folder: Path, config: Config = TINY, **about: Any) -> Path:
    save(folder, config, random_weights(config, 1))
    if about:
        (folder / "training.json").write_text(json.dumps(about))
    return folder


def test_steps_are_what_the_whole_is() -> None:
    """Each token by itself, beside another sequence, gives what all at once give."""
    config = Config(50, 32, 2, 4, 2, 48, 64)
    model = Qwen2(config, random_weights(config, 3))
    ids = [int(n) for n in np.random.default_rng(1).integers(0, 50, 20)]
    session = Session(model, 3, 40)
    session.add([1, 2, 3])
    session.add(ids[:12])
    for n in range(12, 20):
        logits = session.step([7, ids[n]])[1]
        whole = Session(model, 1, 40).add(ids[: n + 1])
        assert np.allclose(logits, whole, atol=1e-5)
    session.drop(0)
    assert np.allclose(session.step([5])[0], Session(model, 1, 40).add([*ids, 5]), atol=1e-5)


def test_sizes() -> None:
    """The shipped model fits in 64 MB: as bf16, or as int8."""
    words = len(vocabulary())
    sizes = {name: replace(c, vocab=words).parameters for name, c in SIZES.items()}
    assert sizes["base"] <= 30_000_000
    assert sizes["large"] <= 62_000_000
    assert max(2 * sizes["base"], sizes["large"]) < 64_000_000


def test_tensors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = {"a": rng.standard_normal((5, 7)).astype(np.float32), "b": np.arange(4)}
    path = tmp_path / "x.safetensors"
    safetensors.write(path, made)
    assert all(np.array_equal(v, made[k]) for k, v in safetensors.read(path).items())
    safetensors.write(path, {"a": made["a"]}, bfloat=True)
    assert np.abs(safetensors.read(path)["a"] / made["a"] - 1).max() < 2**-8
    safetensors.write(path, safetensors.int8({"a": made["a"]}))
    assert np.abs(safetensors.read(path)["a"] - made["a"]).max() < np.abs(made["a"]).max() / 200


@pytest.mark.parametrize("cut", [0, 7, 20, 300])
def test_damaged_tensors(tmp_path: Path, cut: int) -> None:
    path = checkpoint(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelError, match="SX1003"):
        Qwen2.load(tmp_path)


def test_mutated_tensors(tmp_path: Path) -> None:
    config = Config(8, 8, 1, 2, 1, 8, 16)
    path = checkpoint(tmp_path, config) / "model.safetensors"
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for _ in range(200):
        data = bytearray(whole)
        for at in rng.integers(0, min(len(data), 900), 3):
            data[int(at)] = int(rng.integers(256))
        path.write_bytes(data)
        with suppress(ModelError):
            Qwen2.load(tmp_path)


def test_typed_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def code(mode: Any, model: str | None) -> str:
        with pytest.raises(ModelError) as caught:
            choose.engine(mode, model)
        return caught.value.code

    monkeypatch.delenv(models.MODEL, raising=False)
    monkeypatch.delenv("SASSXLATE_ALLOW_HUB", raising=False)
    assert code("hybrid", str(tmp_path / "none")) == "SX1001"
    assert code("hybrid", "somebody/something") == "SX1001"
    assert code("rules", "somebody/something") == "SX1008"
    assert choose.engine("rules", None) is None
    if models.shipped() is None:
        assert code("hybrid", None) == "SX1001"
        assert choose.usual(None) == "rules"
    assert code("hybrid", str(tmp_path)) == "SX1001"
    other = checkpoint(tmp_path / "words", replace(TINY, vocab=99))
    assert code("hybrid", str(other)) == "SX1005"
    old = checkpoint(tmp_path / "old", vocabulary="of another day")
    assert code("hybrid", str(old)) == "SX1005"
    (old / "config.json").write_text("{")
    assert code("hybrid", str(old)) == "SX1003"
    if not models.installed("torch", "transformers"):
        (old / "config.json").write_text('{"model_type": "llama"}')
        assert code("hybrid", str(old)) in ("SX1002", "SX1004")


def test_an_untrained_model_proposes(tmp_path: Path) -> None:
    checkpoint(tmp_path, vocabulary=tokenizer.digest(vocabulary()))
    engine = choose.engine("hybrid", str(tmp_path))
    assert engine is not None
    assert isinstance(engine.proposer, ModelProposer)
    model = engine.proposer.model
    assert isinstance(model, BlockModel)
    asked = questions()[:6]
    model.workers = 1
    alone = [model.answers([q], 2, [24])[0] for q in asked]
    model.workers = 2
    together = model.answers(asked, 2, [24] * 6)
    assert together == alone  # who else is asked changes nothing
    assert all(len(answers) == 2 for answers in together)


def test_shards(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = [([int(n) for n in rng.integers(0, 2000, n)], n // 2) for n in (3, 40, 0, 17)]
    path = tmp_path / "a.tokens"
    shards.write(path, made, "v", {"source": "test"})
    read = shards.read(path)
    both = shards.joined([read, read])
    for n, (tokens, question) in enumerate(made):
        assert read.example(n).tolist() == both.example(n + 4).tolist() == tokens
        assert read.questions[n] == question
    with pytest.raises(ModelError, match="SX1005"):
        shards.joined([read, replace(read, vocabulary="w")])
    data = path.read_bytes()
    for bad in (b"", data[:20], data[:-9], data.replace(b'"tokens": 60', b'"tokens": 61')):
        path.write_bytes(bad)
        with pytest.raises(ModelError, match="SX1009"):
            shards.read(path)


def test_curves() -> None:
    rows = [{"step": s, "loss": 5 / s, "held_loss": 6 / s, "whole": 1 - 1 / s} for s in (1, 2, 900)]
    text = curves(rows)
    assert text.startswith("<svg")
    assert "prefers-color-scheme:dark" in text
    assert "<script" not in text
    assert curves([]).startswith("<svg")
    assert "nan" not in curves([{"step": 1, "loss": float("nan")}])


def _examples(count: int) -> list[tuple[list[int], int]]:
    """An easily learned language: the answer repeats the question."""
    rng = np.random.default_rng(5)
    out: list[tuple[list[int], int]] = []
    for _ in range(count):
        words = [int(n) for n in rng.integers(10, 14, 3)]
        out.append(([1, *words, 2, *words, 3], 5))
    return out


@TORCH
def test_training_and_going_on(tmp_path: Path) -> None:
    from sassxlate.llm.training.settings import TrainingSettings
    from sassxlate.llm.training.train import read_log, train

    path = tmp_path / "a.tokens"
    shards.write(path, _examples(300), tokenizer.digest(vocabulary()))
    settings = TrainingSettings(size="tiny", row=64, batch=8, steps=4, every=2, vocabulary=16)
    first = train([path], tmp_path / "out", settings, device="cpu")
    assert first["step"] == 4
    again = train([path], tmp_path / "out", replace(settings, steps=8), device="cpu")
    assert again["step"] == 8
    straight = train([path], tmp_path / "other", replace(settings, steps=8), device="cpu")
    assert len(read_log(tmp_path / "out")) == 4
    assert again["held_loss"] < first["held_loss"] + 0.05
    assert np.isfinite(straight["held_loss"])
    assert (tmp_path / "out" / "curves.svg").read_text().startswith("<svg")
    # With other held out answers, and only then, the best so far is forgotten.
    torch: Any = importlib.import_module("torch")
    place, best = (tmp_path / "out" / name for name in ("last/state.pt", "best/model.safetensors"))
    torch.save({**torch.load(place, weights_only=True), "best": 2.0}, place)
    best.unlink()
    train([path], tmp_path / "out", replace(settings, steps=10), device="cpu")
    assert not best.exists()
    train([path], tmp_path / "out", replace(settings, steps=12), [path], "cpu")
    assert best.exists()
    (tmp_path / "out" / "last" / "state.pt").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="SX1003"):
        train([path], tmp_path / "out", settings, device="cpu")


@TORCH
def test_training_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sassxlate.llm.training import train as training

    monkeypatch.setattr(training, "SHOWN_S", 0.0)
    path = tmp_path / "x.tokens"
    shards.write(path, _examples(60), tokenizer.digest(vocabulary()))
    settings = training.TrainingSettings(size="tiny", row=64, batch=4, steps=3)
    training.train([path], tmp_path / "out", settings, device="cpu")
    assert "step 2 of 3, loss " in capsys.readouterr().err


def test_batches_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where examples are packed in parts; each process has examples of its own."""
    from sassxlate.llm.training import batches
    from sassxlate.llm.training.settings import TrainingSettings

    monkeypatch.setattr(batches, "PACKED", 90)
    shards.write(tmp_path / "a", _examples(200), tokenizer.digest(vocabulary()))
    shard = shards.read(tmp_path / "a")
    chosen, s = np.arange(len(shard)), TrainingSettings(row=64, batch=8)
    seen: list[set[bytes]] = []
    for k in range(2):
        made = batches.batches(shard, chosen, s, 0, (k, 2))
        taken = [next(made) for _ in range(8)]
        assert {b.tokens.shape for b in taken} == {(4, 64)}
        again, on = (batches.batches(shard, chosen, s, begun, (k, 2)) for begun in (0, 5))
        assert np.array_equal(next(again).tokens, taken[0].tokens)
        assert not np.array_equal(next(on).tokens, taken[5].tokens)
        seen.append({b.tokens.tobytes() for b in taken})
    assert not seen[0] & seen[1]
    few = batches.batches(shard, chosen[:9], s, 0)
    assert [len(next(few).tokens) for _ in range(3)] == [2, 2, 2]


@pytest.mark.parametrize("lacks", ["RANK", "LOCAL_RANK"])
def test_several_processes_without_torchrun(monkeypatch: pytest.MonkeyPatch, lacks: str) -> None:
    from sassxlate.llm.training.distributed import joined

    for name, value in (("WORLD_SIZE", "2"), ("RANK", "0"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(lacks)
    with pytest.raises(ModelError, match=f"SX1010.* {lacks} is not set"):
        joined(None, "cpu")


@TORCH
def test_two_processes_train_one_model(tmp_path: Path) -> None:
    path = tmp_path / "a.tokens"
    shards.write(path, _examples(300), tokenizer.digest(vocabulary()))
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "-m", "sassxlate.llm.training.train", str(path),
        "-o", str(tmp_path / "out"), "--size", "tiny",
        "--row", "64", "--batch", "8", "--steps", "6", "--every", "3", "--device", "cpu",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])["step"] == 6
    assert len((tmp_path / "out" / "log.jsonl").read_text().splitlines()) == 2  # the first's alone
    text = done.stderr
    assert text.count("held_loss") == 2


@TORCH
def test_training_by_the_clock_alone(tmp_path: Path) -> None:
    """Without epochs the minutes decide: not two epochs."""
    from sassxlate.llm.training.settings import TrainingSettings
    from sassxlate.llm.training.train import Trainer, train

    path = tmp_path / "a.tokens"
    shards.write(path, _examples(40), tokenizer.digest(vocabulary()))
    shard = shards.read(path)
    settings = TrainingSettings(size="tiny", row=64, batch=1, vocabulary=16)

    def steps(**said: float) -> int:
        return Trainer(shard, None, tmp_path / "out", replace(settings, **said), "cpu").total

    assert steps() == 2 * steps(epochs=1) == steps(epochs=2, minutes=1) > 0
    assert steps(steps=7, minutes=1) == 7
    assert steps(minutes=1) == 0
    last = train([path], tmp_path / "out", replace(settings, minutes=0.02), device="cpu")
    assert last["step"] == last["of"]


@TORCH
def test_a_process_for_each_gpu(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from sassxlate.llm.training.settings import TrainingSettings

    path = tmp_path / "a.tokens"
    shards.write(path, _examples(300), tokenizer.digest(vocabulary()))
    settings = TrainingSettings(size="tiny", row=64, batch=8, steps=6, every=3, clip=0.5)
    figures = together(arguments([path], tmp_path / "out", settings, [path], "cpu"), 2)
    assert figures is not None
    assert figures["step"] == 6
    about = json.loads((tmp_path / "out" / "last" / "training.json").read_text())
    assert TrainingSettings(**about["settings"]) == replace(
        settings, vocabulary=about["settings"]["vocabulary"]
    )
    wrong = replace(settings, start=str(tmp_path / "absent"))
    assert together(arguments([path], tmp_path / "x", wrong, [], "cpu"), 2) is None
    assert "sassxlate: SX1001" in capfd.readouterr().err


def _ended(number: int) -> bool:
    """Whether a process has ended, or ends soon: its new parent may not have reaped it yet."""
    for _ in range(1200):
        try:
            if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def _fake(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """In place of Python, a script that reads its RANK."""
    fake = folder / "python"
    fake.write_text(f"#!/bin/sh\n{text}\n")
    fake.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(fake))
    monkeypatch.setattr("sassxlate.llm.training.launch._GRACE_S", 0.3)


def test_a_process_that_fails_ends_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first message is reported, not later ones of others or of libraries; and nothing that
    any of them has started stays."""
    _fake(tmp_path, monkeypatch, f"""
      echo $$ > {tmp_path}/pid$RANK
      [ $RANK = 2 ] && {{
        until [ -s {tmp_path}/child0 ]; do sleep 0.01; done
        echo "OutOfMemoryError: no memory
not destroyed" >&2; exit 1; }}
      [ $RANK = 1 ] && {{
        until [ -s {tmp_path}/pid2 ] && ! kill -0 $(cat {tmp_path}/pid2); do sleep 0.01; done
        echo "Error: peer lost" >&2; exit 1; }}
      sleep 600 & echo $! > {tmp_path}/child$RANK; wait""")  # fmt: skip
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"SX1010.*process 2 of 3 .* 1: OutOfMemoryError: no mem"):
        together([], 3)
    assert time.monotonic() - started < 300
    for name in ("pid0", "child0"):
        assert _ended(int((tmp_path / name).read_text())), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[ $RANK = 0 ] && kill -9 $$; sleep 0.1; exit 0", "process 0 of 2 ended by signal 9"),
        ("exit 0", "without figures"),
        ("[ $RANK = 1 ] && exit 4; exit 0", "process 1 of 2 ended with status 4: it said nothing"),
    ],
)
def test_a_process_that_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    _fake(tmp_path, monkeypatch, text)
    with pytest.raises(ModelError, match=f"SX1010.*{said}"):
        together([], 2)


def test_figures_among_other_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, monkeypatch, """echo '{"step": 3}'; echo 'NCCL version 2'""")
    assert together([], 2) == {"step": 3}


def test_train_takes_the_gpus_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards.write(tmp_path / "a.tokens", _examples(9), "v")
    seen: list[int] = []

    def fake(arguments: Sequence[str], count: int) -> dict[str, Any] | None:
        assert f"--output={tmp_path / 'o'}" in " ".join(arguments).replace("--output ", "--output=")
        seen.append(count)
        return {"step": 1, "held_loss": 1.0, "right": 0.5, "whole": 0.5} if count == 4 else None

    monkeypatch.setattr("sassxlate.llm.training.launch.gpus", lambda: 4)
    monkeypatch.setattr("sassxlate.llm.training.launch.together", fake)
    monkeypatch.setenv("WORLD_SIZE", "1")
    usual = [str(tmp_path / "a.tokens"), "-o", str(tmp_path / "o")]
    run = CliRunner().invoke(train_command, usual)
    assert run.exit_code == 0, run.output
    assert "step 1" in run.output
    # The first process reports its own refusals.
    assert CliRunner().invoke(train_command, [*usual, "--gpus", "2"]).exit_code == 2
    assert seen == [4, 2]
    for options in (["--gpus", "5"], ["--gpus", "2", "--device", "cpu"]):
        run = CliRunner().invoke(train_command, [*usual, *options])
        assert isinstance(run.exception, ModelError)
        assert run.exception.code == "SX1010"


@TORCH
def test_torch_and_numpy_agree(tmp_path: Path) -> None:
    torch: Any = importlib.import_module("torch")
    from sassxlate.llm.training.qwen2_torch import TorchQwen2

    config = Config(50, 32, 2, 4, 2, 48, 64)
    model = TorchQwen2(config, "cpu", seed=3)
    save(tmp_path, config, model.weights(), bfloat=False)
    ids = np.random.default_rng(1).integers(0, 50, 20)
    tokens = torch.tensor(np.concatenate([ids[:7], ids]))[None]
    places = torch.tensor([*range(7), *range(20)])[None]
    documents = torch.tensor([0] * 7 + [1] * 20)[None]
    with torch.no_grad():
        packed = model.logits(tokens, places, documents)[0, -1].numpy()
    alone = Session(Qwen2.load(tmp_path), 1, 40).add([int(n) for n in ids])
    assert np.allclose(packed, alone, atol=1e-5)


def test_training_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sassxlate.llm.training import train as module

    def absent(name: str) -> Any:
        raise ImportError(f"no {name}")

    path = tmp_path / "a.tokens"
    shards.write(path, _examples(3), "v")
    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(ModelError, match="SX1002"):
        module.train([path], tmp_path / "out", module.TrainingSettings(size="tiny"))


def _forty(_: int) -> int:
    return 40


@pytest.mark.skipif(
    not all(importlib.util.find_spec(n) for n in ("torch", "transformers")),
    reason="the extra llm is not installed",
)
def test_transformers_is_constrained_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of the block language through transformers: its logits processor lets nothing
    else through, and its likeliest answer is NumPy's."""
    from sassxlate.llm.inference.automaton import accepts
    from sassxlate.llm.inference.transformers_model import TransformersModel
    from sassxlate.llm.language.tokenizer import encode

    for module in ("block_model", "transformers_model"):
        monkeypatch.setattr(f"sassxlate.llm.inference.{module}.answer_limit", _forty)
    checkpoint(tmp_path)
    asked = sorted(questions(), key=lambda q: len(q.text))[:2]
    theirs = TransformersModel(str(tmp_path), "cpu").answers(asked, 1, [24] * 2)
    ours = BlockModel(tmp_path, workers=1).answers(asked, 1, [24] * 2)
    for question, answers, own in zip(asked, theirs, ours, strict=True):
        ids = encode(answers[0])
        assert accepts(question, ids) == len(ids)
        assert answers[0][:8] == own[0][:8]

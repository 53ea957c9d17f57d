"""The model in machine code against the model in NumPy."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import replace
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sassxlate.errors import ModelError, UsageError
from sassxlate.llm.inference import block_model
from sassxlate.llm.inference import qwen2_native as module
from sassxlate.llm.inference.block_model import BlockModel
from sassxlate.llm.inference.native_code import Kind, Tile
from sassxlate.llm.inference.qwen2 import Config, Qwen2, Session, random_weights, save
from sassxlate.llm.inference.qwen2_native import NEAR, Fast, FastSession, fits, kinds_of_host
from sassxlate.llm.inference.safetensors import rounded
from sassxlate.llm.language.tokenizer import encode, vocabulary
from tests.llm.questions import KERNELS, questions

SMALL = Config(len(vocabulary()), 128, 2, 4, 2, 208, 512)
HOST = kinds_of_host()
CODE = pytest.mark.skipif(not HOST, reason="a CPU without AVX2")
BF16 = pytest.mark.skipif(
    not HOST or HOST[0][0] != "bf16", reason="a CPU that does not multiply bfloat16"
)


def model(config: Config = SMALL) -> Qwen2:
    return Qwen2(config, random_weights(config, 4))


def rounded_model() -> Qwen2:
    cut = {k: v.view(np.uint32) & 0xFFFF0000 for k, v in random_weights(SMALL, 4).items()}
    return Qwen2(SMALL, {k: v.view(np.float32) for k, v in cut.items()})


def _hundred(_: int) -> int:
    return 120


def _forty(_: int) -> int:
    return 40


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Untrained models stop late."""
    monkeypatch.setattr("sassxlate.llm.inference.block_model.answer_limit", _forty)


def some(count: int, seed: int) -> list[int]:
    return [int(n) for n in np.random.default_rng(seed).integers(300, 2000, count)]


@CODE
@pytest.mark.parametrize("which", range(len(HOST)))
def test_logits(which: int) -> None:
    """Logits of concurrent sequences that begin, continue and end, in every kind of code of this
    host."""
    kind, tile = HOST[which]
    made = model()
    ours, theirs = FastSession(Fast(made, kind, tile), 4, 90), Session(made, 4, 90)

    def same(tokens: list[int], new: tuple[list[int], ...] = ()) -> None:
        a, b = ours.advance(tokens, new), theirs.advance(tokens, new)
        assert a.shape == b.shape
        assert np.abs(a - b).max() < (1e-5 if kind == "f32" else 0.02) * np.abs(b).max()

    same([], (some(40, 1), some(17, 2)))
    same([5, 6], (some(3, 3), some(1, 4)))
    ours.drop(0)
    theirs.drop(0)
    for n in range(20):
        same([n, 7, 900])
    ours.drop(2)
    theirs.drop(2)
    same([1, 2], (some(60, 5), some(16, 6)))
    assert ours.used == theirs.used == 4
    assert ours.lengths[:4].tolist() == theirs.lengths[:4].tolist()


@CODE
def test_who_else_is_there_changes_no_bit() -> None:
    """A sequence alone, beside others, and read at once or word by word: the same numbers."""
    made = Fast(model(), *HOST[0])
    mine = some(30, 1)
    alone, beside, at_once = (FastSession(made, 9, 60) for _ in range(3))
    alone.add(mine[:12])
    beside.advance([], [some(n, n) for n in (2, 20, 5, 33)])
    beside.advance([1] * 4, [mine[:12]])
    a = np.zeros(0)
    for n in range(12, 30):
        a = alone.step([mine[n]])[0].copy()
        b = beside.step([n, n, n, n, mine[n]])[4]
        assert np.array_equal(a, b)
    assert np.array_equal(a, at_once.add(mine))


@CODE
@pytest.mark.parametrize("which", range(len(HOST)))
def test_answers_are_numpys(tmp_path: Path, which: int) -> None:
    """Also for an untrained model, whose likeliest words are close to each other."""
    save(tmp_path, SMALL, random_weights(SMALL, 1))
    asked = questions()[:4]
    ours, theirs = BlockModel(tmp_path, workers=1), BlockModel(tmp_path, workers=1)
    ours.fast, theirs.fast = Fast(ours.model, *HOST[which]), None
    got = ours.answers(asked, 1, [24] * 4)
    wanted = theirs.answers(asked, 1, [24] * 4)
    assert got == wanted
    assert all(len(answers) == 1 for answers in got)


@BF16
def test_read_again() -> None:
    """Recomputed logits are float32's; words are close relative to their logits' size."""
    made = rounded_model()
    fast = Fast(made, *HOST[0])
    sequences = [some(n, n) for n in (30, 5, 17, 1, 40, 2, 3, 4, 9, 8)]
    exact = [Session(made, 1, 40).add(one) for one in sequences]
    assert np.abs(fast.again(sequences) - exact).max() < 1e-4 * np.abs(exact).max()
    assert fast.near(10.0, 10.0 - 5 * NEAR)
    assert not fast.near(10.0, 10.0 - 20 * NEAR)
    assert fast.near(-0.5, -0.5 - NEAR / 4)
    assert not Fast(made, "f32", HOST[0][1]).near(1.0, 1.0)


@BF16
def test_only_bfloat16_is_taken_for_it() -> None:
    whole, cut = model(), rounded_model()
    found = module.fast(whole), module.fast(cut)
    assert [f.kind for f in found if f is not None] == ["f32", "bf16"]


@CODE
def test_processes(tmp_path: Path) -> None:
    """Forked processes use the code that was made before, in either order of asking."""
    save(tmp_path, SMALL, random_weights(SMALL, 1))
    asked = questions()[:6]
    one, two = BlockModel(tmp_path, workers=1), BlockModel(tmp_path, workers=2)
    first = two.answers(asked, 2, [24] * 6)
    assert isinstance(two.fast, Fast)
    assert first == one.answers(asked, 2, [24] * 6) == two.answers(asked, 2, [24] * 6)
    assert not multiprocessing.active_children()


def test_a_process_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with an error, where multiprocessing's pool waits for ever."""
    save(tmp_path, SMALL, random_weights(SMALL, 1))
    here = os.getpid()

    def dies(*_: object) -> list[object]:
        assert os.getpid() != here
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    monkeypatch.setattr(BlockModel, "_run", dies)
    with pytest.raises(UsageError, match="SX0888"):
        BlockModel(tmp_path, workers=2).answers(questions()[:6], 2, [24] * 6)
    assert not multiprocessing.active_children()


def test_further_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is the first up to a place where it was a near thing, the nearest first; where there are
    no more, answers are drawn."""
    monkeypatch.setattr(module, "kinds_of_host", list[tuple[Kind, Tile]])
    monkeypatch.setattr(block_model, "answer_limit", _hundred)
    save(tmp_path, SMALL, random_weights(SMALL, 1))
    asked = questions()[:3]
    model = BlockModel(tmp_path, workers=1)
    near: dict[int, list[int]] = {}
    others = block_model._others  # pyright: ignore[reportPrivateUsage]

    def seen(first: Any) -> Any:
        if first.job.samples > 1:
            near[first.job.question] = [place for _, place, _ in sorted(first.second)[:5]]
        return others(first)

    monkeypatch.setattr(block_model, "_others", seen)
    several = model.answers(asked, 6, [24] * 3)
    assert [answers[:1] for answers in several] == model.answers(asked, 1, [24] * 3)
    for n, (first, *rest) in enumerate(several):
        assert len({first, *rest}) == 6
        said = encode(first)
        same = (map(eq, said, encode(other)) for other in rest)
        assert [sum(1 for _ in takewhile(bool, words)) for words in same] == near[n]

    def nothing_near(first: Any) -> Any:
        first.second.clear()
        return others(first)

    monkeypatch.setattr(block_model, "_others", nothing_near)
    drawn = model.answers(asked, 6, [24] * 3)
    assert [answers[0] for answers in drawn] == [answers[0] for answers in several]
    assert drawn != several
    assert drawn == model.answers(asked, 6, [24] * 3)


def test_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU that there is no code for NumPy answers."""
    monkeypatch.setattr(module, "kinds_of_host", list[tuple[Kind, Tile]])
    assert module.fast(model()) is None
    save(tmp_path, SMALL, random_weights(SMALL, 1))
    plain = BlockModel(tmp_path, workers=1)
    assert plain.fast is None
    assert len(plain.answers(questions()[:1], 1, [24])[0]) == 1


@CODE
def test_llvm_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: str) -> None:
        raise RuntimeError("no such intrinsic")

    monkeypatch.setattr(module, "_compiled", refused)
    assert module.fast(model()) is None


@CODE
def test_sizes() -> None:
    assert fits(SMALL, HOST[0][1])
    assert not fits(replace(SMALL, heads=8), HOST[0][1])
    assert not fits(replace(SMALL, intermediate=200), HOST[0][1])
    assert module.fast(model(replace(SMALL, heads=8))) is None


@CODE
def test_too_long() -> None:
    session = FastSession(Fast(model(), *HOST[0]), 2, 16)
    wrong: tuple[list[list[int]], ...] = ([[]], [some(17, 1)], [[1], [2], [3]])
    for new in wrong:
        with pytest.raises(ModelError, match="SX1006"):
            session.advance([], new)
    session.add(some(16, 2))
    with pytest.raises(ModelError, match="SX1006"):
        session.step([1])
    with pytest.raises(ModelError, match="SX1006"):
        session.step([1, 2])


@CODE
def test_broken_weights_harm_nobody() -> None:
    """Infinities and NaNs: answers are meaningless, and nothing else happens."""
    weights = random_weights(SMALL, 1)
    for n, name in enumerate(sorted(weights)):
        weights[name] = weights[name].copy()
        weights[name].flat[:: 7 + n] = (np.inf, np.nan, -np.inf, 3e38)[n % 4]
    session = FastSession(Fast(Qwen2(SMALL, weights), *HOST[0]), 2, 40)
    assert session.add(some(20, 1)).shape == (SMALL.vocab,)
    assert session.step([3]).shape == (1, SMALL.vocab)


def test_rounding() -> None:
    values = np.asarray([1.0, 1.00390625, 1.01171875, -1.0078125, 3.0e-3, 0.0, 0.0], np.float32)
    values.view(np.uint32)[5:] = 0xFFFFFFFF, 0x7F800001  # no numbers
    back = (rounded(values).astype(np.uint32) << 16).view(np.float32)
    assert back.tolist()[:4] == [1.0, 1.0, 1.015625, -1.0078125]
    assert abs(back[4] / values[4] - 1) < 2**-8
    assert np.isnan(back[5:]).all()


def test_speed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sassxlate.llm.evaluation.speed import main

    save(tmp_path, SMALL, random_weights(SMALL, 1))
    source = str(sorted((KERNELS / "sm_90").glob("*.cubin"))[0])
    assert main([str(tmp_path), source, "--blocks", "4", "--processes", "1"]) == 0
    *rounds, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [r["by"] for r in rounds] == [HOST[0][0] if HOST else "numpy", "numpy"]
    assert last["same"] == last["blocks"] == 4
    for model, files, code in (("none", source, "SX1001"), (".", str(tmp_path), "SX1050")):
        assert main([str(tmp_path / model), files]) == 2
        assert code in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(tmp_path), source, "--blocks", "0"])
    assert "at least 1" in capsys.readouterr().err

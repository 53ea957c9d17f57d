"""The sampler's answers are those of the model in NumPy, whatever else is in the batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sassxlate.llm.inference.qwen2 import SIZES, Qwen2, Session, random_weights, save
from sassxlate.llm.language.tokenizer import ANSWER, BOS, EOS, PAD, vocabulary

pytest.importorskip("torch", reason="samples with torch")
from sassxlate.llm.inference.torch_sampler import TorchSampler

MOST = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model")
    config = replace(SIZES["tiny"], vocab=300, context=96, layers=3)
    weights = random_weights(config, 5)
    rng = np.random.default_rng(5)
    # Untrained models say one word again and again; these end some time.
    for name, array in weights.items():
        if name.endswith("weight") and array.ndim == 2:
            weights[name] = (array * rng.choice([4, 8])).astype(np.float32)
    weights["model.embed_tokens.weight"][EOS] *= 1.6
    save(out, config, weights, bfloat=False)
    return out


def asked() -> list[tuple[int, ...]]:
    rng = np.random.default_rng(1)
    return [
        (BOS, *(int(t) for t in rng.integers(4, 300, int(n))), ANSWER)
        for n in rng.integers(1, 60, 23)
    ]


def greedy(model: Qwen2, question: tuple[int, ...], most: int) -> list[int] | None:
    session = Session(model, 1, len(question) + most)
    logits = session.add(question)
    said: list[int] = []
    while True:
        logits[[PAD, BOS, ANSWER]] = -np.inf
        said.append(int(logits.argmax()))
        if said[-1] == EOS:
            return said
        if len(said) == most:
            return None
        logits = session.step(said[-1:])[0]


def test_the_first_answer_is_the_likeliest(folder: Path) -> None:
    assert len(vocabulary()) > 300
    questions = asked()
    sampler = TorchSampler(folder, "cpu", slots=5)
    found = dict(sampler.answers(questions, 1, [MOST] * len(questions)))
    model = Qwen2.load(folder)
    assert sorted(found) == list(range(len(questions)))
    ended = 0
    for n, question in enumerate(questions):
        want = greedy(model, question, MOST)
        assert found[n] == ([] if want is None else [tuple(want)])
        ended += want is not None
    assert 0 < ended < len(questions)


def test_others_are_drawn(folder: Path) -> None:
    questions = asked()[:6]
    sampler = TorchSampler(folder, "cpu", slots=7, temperature=1.0)
    first = dict(sampler.answers(questions, 8, [MOST] * 6))
    again = dict(TorchSampler(folder, "cpu", slots=7, temperature=1.0).answers(
        questions, 8, [MOST] * 6
    ))  # fmt: skip
    assert first == again
    assert any(len(set(answers)) > 2 for answers in first.values())
    assert all(a[-1] == EOS and EOS not in a[:-1] for some in first.values() for a in some)


def test_what_leaves_no_room_has_no_answer(folder: Path) -> None:
    long = (BOS, *[7] * 93, ANSWER)
    sampler = TorchSampler(folder, "cpu")
    assert list(sampler.answers([long, ()], 2, [MOST, MOST])) == [(0, []), (1, [])]
    assert not list(sampler.answers(asked(), 2, [MOST] * 23, stop=lambda: True))

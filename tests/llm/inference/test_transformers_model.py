"""Any causal language model of Hugging Face's: of the block vocabulary, and of text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ModelError
from sassxlate.llm.engine import models
from sassxlate.llm.language.tokenizer import vocabulary
from sassxlate.lowering.region.text import read_code
from tests.llm.questions import questions


def test_another_architecture_needs_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 7}))

    def absent(*names: str) -> bool:
        return not {"torch", "transformers"} & {*names}

    monkeypatch.setattr(models, "installed", absent)
    with pytest.raises(ModelError, match="a llama model needs torch and transformers") as caught:
        models.language_model(str(tmp_path), "cpu")
    assert caught.value.code == "SX1004"


def _made(kind: str, folder: Path, words: int, **more: Any) -> None:
    """A small random model of an architecture; it often ends."""
    torch = pytest.importorskip("torch", reason="transformers computes with it")
    transformers = pytest.importorskip("transformers", reason="reads other architectures")
    torch.manual_seed(7)
    sizes: dict[str, Any] = {
        "vocab_size": words, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 96, "max_position_embeddings": 2048, **more,
    }  # fmt: skip
    config = getattr(transformers, f"{kind}Config")(**sizes)
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    with torch.no_grad():
        for value in model.parameters():
            value.mul_(3.0)
    model.save_pretrained(folder)


@pytest.mark.parametrize("kind", ["Llama", "GPTNeoX"])
def test_a_model_of_the_block_vocabulary(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _made(kind, tmp_path / "m", len(vocabulary()))
    from sassxlate.llm.inference import transformers_model
    from sassxlate.llm.inference.transformers_model import TransformersModel

    def short(_: int) -> int:
        return 80

    monkeypatch.setattr(transformers_model, "answer_limit", short)
    model = models.language_model(str(tmp_path / "m"), "cpu")
    assert isinstance(model, TransformersModel)
    asked = sorted(questions(), key=lambda q: len(q.words))[2:9:3]
    assert len({len(q.words) for q in asked}) > 1
    vtemps = [8] * len(asked)
    together = model.answers(asked, 1, vtemps)
    # A batch is padded on the left, which must not change an answer.
    alone = TransformersModel(str(tmp_path / "m"), "cpu", batch=1).answers(asked, 1, vtemps)
    assert together == alone
    (several,) = model.answers(asked[:1], 3, vtemps[:1])
    assert len(several) == 3
    assert several[:1] == together[0]  # the likeliest comes first
    for question, answers in zip(asked, together, strict=True):
        assert len(read_code(answers[0], question)) == len(question.block.instructions)


def test_other_weights_are_another_model(tmp_path: Path) -> None:
    _made("Llama", tmp_path / "a" / "m", len(vocabulary()))
    _made("Llama", tmp_path / "b" / "m", len(vocabulary()), num_hidden_layers=1)
    names = [models.language_model(str(tmp_path / x / "m"), "cpu").name for x in "aab"]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("m-")
    assert names[0] != models.language_model(str(tmp_path / "a" / "m"), "cpu", seed=3).name


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    _made("Llama", tmp_path, 99)
    with pytest.raises(ModelError, match="99 words; the block language has"):
        models.language_model(str(tmp_path), "cpu")


def test_a_model_of_text_answers_within_its_limit(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="makes a tokenizer")
    transformers = pytest.importorskip("transformers", reason="reads it")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<end>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    asked = sorted(questions(), key=lambda q: len(q.words))[:2]
    made.train_from_iterator([q.text for q in asked], trainer)
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")
    _made("Llama", tmp_path, len(words), max_position_embeddings=320)
    words.save_pretrained(tmp_path)
    model = models.language_model(str(tmp_path), "cpu")
    answers = model.answers(asked, 2, [8] * 2)
    assert [len(some) for some in answers] == [2, 2]

"""Any causal language model of Hugging Face's, through transformers: on a GPU or a CPU.

A model of the block language (its vocabulary's size, no tokenizer beside it) is prompted with words
and constrained to allowed words; a text model is prompted with text, and its answer is read as
words.  Nothing is downloaded unless a hub's identifier was given and the hub was allowed.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from sassxlate.errors import ModelError, Where
from sassxlate.llm.inference.automaton import AnswerAutomaton
from sassxlate.llm.inference.block_model import answer_limit, check_vocabulary
from sassxlate.llm.language import tokenizer
from sassxlate.lowering.region.text import RegionText
from sassxlate.lowering.target import DEFAULT

Tensor: TypeAlias = Any
Words = tuple[str, ...]
ALLOW_HUB = "SASSXLATE_ALLOW_HUB"
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_FENCE = re.compile(r"```[a-z0-9]*\n(.*?)(?:```|$)", re.DOTALL)
INSTRUCTION = (
    f"Translate the following basic block of NVIDIA SASS to AMD RDNA3 ({DEFAULT.language}), in the "
    "notation of the block language; end the code of each SASS instruction with ;\n"
)


def libraries() -> tuple[Any, Any]:
    """torch and transformers.  ModelError SX1002 if one is missing."""
    try:
        return importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        text = f"{error}; pip install 'sassxlate[llm]'"
        raise ModelError("SX1002", text) from None


def place_of(model: str) -> str:
    """A folder, or a hub's identifier if that is allowed.  ModelError SX1001 otherwise."""
    if Path(model).is_dir():
        return model
    if not _HUB.fullmatch(model) or model.startswith(("./", "/")):
        raise ModelError("SX1001", "no such folder", Where(model))
    if os.environ.get(ALLOW_HUB) != "1":
        raise ModelError("SX1001", f"no such folder; {ALLOW_HUB}=1 asks the hub", Where(model))
    return model


def load(model: str, device: str = "auto") -> tuple[Any, Any, str]:
    """(model, tokenizer or None, device).

    Raises ModelError: SX1002 without the packages, SX1001 if there is none, SX1003 if it
    cannot be read.
    """
    place = place_of(model)
    torch, transformers = libraries()
    local = Path(place).is_dir()
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    try:
        made = transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=kind, local_files_only=local
        )
        words = None
        if not local or any(
            (Path(place) / n).exists() for n in ("tokenizer.json", "tokenizer_config.json")
        ):
            words = transformers.AutoTokenizer.from_pretrained(place, local_files_only=local)
    except Exception as error:  # errors of many kinds: files, JSON, tensors, the hub
        text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise ModelError("SX1003", text, Where(model)) from None
    return made.to(device).eval(), words, device


def processor(automata: Sequence[AnswerAutomaton], asked: int) -> Any:
    """A LogitsProcessor over automata, one per row; ``asked`` is the length of the questions."""
    torch, transformers = libraries()

    class Constrained(transformers.LogitsProcessor):  # type: ignore[misc,name-defined]
        """Masks the logits of words that are not allowed."""

        def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
            out = torch.full_like(scores, float("-inf"))
            for row, state in enumerate(automata):
                if input_ids.shape[1] > asked and not state.done:
                    state.take(int(input_ids[row, -1]))
                allowed = torch.tensor(sorted(state.allowed()), device=scores.device)
                out[row, allowed] = scores[row, allowed]
            return out

    return transformers.LogitsProcessorList([Constrained()])


class TransformersModel:
    """A proposer over transformers."""

    def __init__(self, model: str, device: str = "auto", seed: int = 0) -> None:
        """Raises ModelError as :func:`load`, and SX1005 for a model without a tokenizer whose
        vocabulary is not the block language's."""
        self.model, self.words, self.device = load(model, device)
        self.torch, _ = libraries()
        if self.words is None:
            check_vocabulary(Path(model))
        self.seed = seed
        self.name = f"{model.rstrip('/').rpartition('/')[2]}-transformers"

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        """Up to ``samples`` answers to each question; none for one that is too long."""
        self.torch.manual_seed(self.seed)
        ask = self._text if self.words is not None else self._block
        return [ask(q, samples, v) for q, v in zip(questions, vtemps, strict=True)]

    def _context(self) -> int:
        return int(getattr(self.model.config, "max_position_embeddings", 2048))

    def _drawn(self, samples: int) -> dict[str, Any]:
        if samples == 1:
            return {"do_sample": False}
        return {"do_sample": True, "temperature": 0.7, "num_return_sequences": samples}

    def _block(self, question: RegionText, samples: int, vtemps: int) -> list[Words]:
        tokens = [tokenizer.BOS, *tokenizer.encode(question.words), tokenizer.ANSWER]
        most = min(answer_limit(len(tokens)), self._context() - len(tokens) - 1)
        if most < 32:
            return []
        states = [AnswerAutomaton(question, most, vtemps) for _ in range(samples)]
        ids = self.torch.tensor([tokens], device=self.device)
        with self.torch.no_grad():
            made = self.model.generate(
                ids, attention_mask=self.torch.ones_like(ids), max_new_tokens=most,
                logits_processor=processor(states, len(tokens)), eos_token_id=tokenizer.EOS,
                pad_token_id=tokenizer.PAD, **self._drawn(samples),
            )  # fmt: skip
        return [tuple(tokenizer.decode(_ended(row[len(tokens) :].tolist()))) for row in made]

    def _text(self, question: RegionText, samples: int, vtemps: int) -> list[Words]:
        del vtemps
        text = f"{INSTRUCTION}```sass\n{question.text}\n```\n"
        if getattr(self.words, "chat_template", None):
            text = self.words.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
        ids = self.words(text, return_tensors="pt").to(self.device)
        asked = int(ids["input_ids"].shape[1])
        most = min(8 * answer_limit(len(question.words)), self._context() - asked - 1)
        if most < 64:
            return []
        with self.torch.no_grad():
            made = self.model.generate(**ids, max_new_tokens=most, **self._drawn(samples))
        texts = [self.words.decode(row[asked:], skip_special_tokens=True) for row in made]
        return [tuple(_inside(t).split()) for t in texts]


def _ended(ids: list[int]) -> list[int]:
    return ids[: ids.index(tokenizer.EOS)] if tokenizer.EOS in ids else ids


def _inside(text: str) -> str:
    found = _FENCE.search(text)
    return found[1] if found else text


def logits_processor(prompts: Sequence[RegionText], asked: int, most: int = 1024) -> Any:
    """A transformers LogitsProcessor for a batch of questions (padded on the left to ``asked``
    tokens, one row each): words that are not allowed get a logit of minus infinity.

    ModelError SX1002 if transformers is not installed.
    """
    return processor([AnswerAutomaton(p, most) for p in prompts], asked)


__all__ = ["ALLOW_HUB", "TransformersModel", "libraries", "load", "place_of", "processor"]

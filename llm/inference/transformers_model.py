"""Any causal language model of Hugging Face's, through transformers: on a GPU or a CPU.

A model of the block language (its vocabulary's size, no tokenizer beside it) is prompted with words
and constrained to allowed words; a text model is prompted with text, and its answer is read as
words.  Nothing is downloaded unless a hub's identifier was given and the hub was allowed.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sassxlate.errors import ModelError, Where
from sassxlate.llm.inference.automaton import AnswerAutomaton
from sassxlate.llm.inference.block_model import answer_limit, check_vocabulary, digest_of_weights
from sassxlate.llm.inference.text_answer import PROSE, inside, is_over
from sassxlate.llm.language import tokenizer
from sassxlate.llm.language.limits import QuestionLimits, limits_of
from sassxlate.lowering.region.text import RegionText
from sassxlate.lowering.target import DEFAULT
from sassxlate.processes import idle_threads_sleep

Tensor: TypeAlias = Any
Words = tuple[str, ...]
ALLOW_HUB = "SASSXLATE_ALLOW_HUB"
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
BATCH = 16  # rows that are generated at once
_LEAST = 32  # tokens: less is no room for an answer
_LOOKED = 8  # tokens between two looks at a text
INSTRUCTION = (
    f"Translate the following basic block of NVIDIA SASS to AMD RDNA3 ({DEFAULT.language}), in the "
    "notation of the block language; end the code of each SASS instruction with ;\n"
)


def libraries() -> tuple[Any, Any]:
    """torch and transformers.  ModelError SX1002 if one is missing."""
    idle_threads_sleep()
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


def answered(words: Any, questions: Sequence[RegionText], asked: int) -> Any:
    """StoppingCriteria for text: a row ends where more text makes no other answer of it.
    ``questions`` has one for each row, ``asked`` is the length of their text."""
    torch, transformers = libraries()

    class Answered(transformers.StoppingCriteria):  # type: ignore[misc,name-defined]
        """Whether each row has its answer, or cannot become one."""

        def __call__(self, input_ids: Tensor, scores: Tensor, **_: object) -> Tensor:
            made = input_ids.shape[1] - asked
            if made % _LOOKED:
                return torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
            texts = words.batch_decode(input_ids[:, asked:], skip_special_tokens=True)
            done = [
                is_over(text, question, made < PROSE)
                for text, question in zip(texts, questions, strict=True)
            ]
            return torch.tensor(done, dtype=torch.bool, device=input_ids.device)

    return transformers.StoppingCriteriaList([Answered()])


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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question to generate answers to, of at most ``most`` tokens."""

    number: int
    question: RegionText
    tokens: list[int]
    most: int
    vtemps: int


class TransformersModel:
    """A proposer over transformers.  Questions are asked ``batch`` at a time, those of one length
    together."""

    def __init__(self, model: str, device: str = "auto", seed: int = 0, batch: int = BATCH) -> None:
        """Raises ModelError as :func:`load`, and SX1005 for a model without a tokenizer whose
        vocabulary is not the block language's."""
        self.model, self.words, self.device = load(model, device)
        self.torch, _ = libraries()
        self.limits = QuestionLimits()
        if self.words is None:
            check_vocabulary(Path(model))
            self.limits = limits_of(Path(model))
        self.seed, self.batch = seed, batch
        self.told: Callable[[int, int], None] = lambda _, __: None
        named = model.rstrip("/").rpartition("/")[2]
        self.name = f"{named}-{self._digest(model)}-transformers-{self.device.partition(':')[0]}"
        self.name += f"-{seed}" if seed else ""

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        """Up to ``samples`` answers to each question, the likeliest first; none for one that is
        too long."""
        self.torch.manual_seed(self.seed)
        every = enumerate(zip(questions, vtemps, strict=True))
        asked = [self._asked(n, question, limit) for n, (question, limit) in every]
        fits = [one for one in asked if one.most >= _LEAST]
        fits.sort(key=lambda one: len(one.tokens))
        out: list[list[Words]] = [[] for _ in questions]
        each = max(1, self.batch // max(1, samples - 1))
        for at in range(0, len(fits), each):
            some = fits[at : at + each]
            made = self._generated(some, {"do_sample": False})
            if samples > 1:
                more = {"do_sample": True, "temperature": 0.7, "num_return_sequences": samples - 1}
                made = [[*a, *b] for a, b in zip(made, self._generated(some, more), strict=True)]
            for one, answers in zip(some, made, strict=True):
                out[one.number] = answers
            self.told(at + len(some), len(fits))
        return out

    def _digest(self, model: str) -> str:
        """Of a folder's files, or of a hub's weights."""
        folder = Path(model)
        if folder.is_dir():
            kinds = ("*.json", "*.safetensors", "*.bin", "*.model", "*.txt")
            return digest_of_weights(sorted({f for kind in kinds for f in folder.glob(kind)}))
        digest = hashlib.blake2b(digest_size=8)
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(self.torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def _context(self) -> int:
        return int(getattr(self.model.config, "max_position_embeddings", 2048))

    def _asked(self, n: int, question: RegionText, vtemps: int) -> _Asked:
        """A question's tokens, and the limit on its answer's."""
        if self.words is None:
            size = int(self.model.config.vocab_size)
            tokens = [tokenizer.BOS, *tokenizer.encode(question.words, size), tokenizer.ANSWER]
            most = min(answer_limit(len(tokens)), self._context() - len(tokens) - 1)
            return _Asked(n, question, tokens, most, vtemps)
        text = f"{INSTRUCTION}```sass\n{question.text}\n```\n"
        if getattr(self.words, "chat_template", None):
            text = self.words.apply_chat_template(
                [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
            )
        tokens = [int(t) for t in self.words(text)["input_ids"]]
        # An answer is about as long as its question, and both have the same kinds of words.
        said = len(self.words(question.text)["input_ids"])
        most = min(2 * said + 3 * PROSE, self._context() - len(tokens) - 1)
        return _Asked(n, question, tokens, most, vtemps)

    def _generated(self, some: Sequence[_Asked], drawn: dict[str, Any]) -> list[list[Words]]:
        """The answers to each of some questions, padded on the left to one length."""
        torch = self.torch
        count = int(drawn.get("num_return_sequences", 1))
        width = max(len(one.tokens) for one in some)
        pad, end = self._ends()
        ids = torch.full((len(some), width), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, one in enumerate(some):
            ids[row, width - len(one.tokens) :] = torch.tensor(one.tokens)
            mask[row, width - len(one.tokens) :] = 1
        most = max(one.most for one in some)
        # A longer question in the batch leaves less room in the context.
        most = min(most, self._context() - width - 1)
        more: dict[str, Any] = {}
        if self.words is None:
            states = [
                AnswerAutomaton(one.question, one.most, one.vtemps)
                for one in some for _ in range(count)
            ]  # fmt: skip
            more["logits_processor"] = processor(states, width)
        else:
            rows = [one.question for one in some for _ in range(count)]
            more["stopping_criteria"] = answered(self.words, rows, width)
        with torch.no_grad():
            made = self.model.generate(
                input_ids=ids.to(self.device), attention_mask=mask.to(self.device),
                max_new_tokens=most, eos_token_id=end, pad_token_id=pad, **more, **drawn,
            )  # fmt: skip
        read = [self._read(row[width:].tolist()) for row in made]
        return [read[at : at + count] for at in range(0, len(read), count)]

    def _ends(self) -> tuple[int, Any]:
        """What pads, and what ends an answer."""
        if self.words is None:
            return tokenizer.PAD, tokenizer.EOS
        end: Any = self.words.eos_token_id
        config: Any = getattr(self.model, "generation_config", None)
        ends: Any = getattr(config, "eos_token_id", None) or end  # one, or a list of them
        pad: Any = self.words.pad_token_id
        return int(pad if pad is not None else end or 0), ends

    def _read(self, ids: list[int]) -> Words:
        if self.words is None:
            return tuple(tokenizer.decode(_ended(ids)))
        return tuple(inside(self.words.decode(ids, skip_special_tokens=True)).split())


def _ended(ids: list[int]) -> list[int]:
    return ids[: ids.index(tokenizer.EOS)] if tokenizer.EOS in ids else ids


def logits_processor(prompts: Sequence[RegionText], asked: int, most: int = 1024) -> Any:
    """A transformers LogitsProcessor for a batch of questions (padded on the left to ``asked``
    tokens, one row each): words that are not allowed get a logit of minus infinity.

    ModelError SX1002 if transformers is not installed.
    """
    return processor([AnswerAutomaton(p, most) for p in prompts], asked)


__all__ = ["ALLOW_HUB", "TransformersModel", "libraries", "load", "place_of", "processor"]

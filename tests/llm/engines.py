"""Proposers whose answers are known: for tests of what the gate makes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sassxlate.errors import SassxlateError
from sassxlate.llm.inference.automaton import sample
from sassxlate.llm.language.tokenizer import decode
from sassxlate.lowering.optimize.regions import rules_code
from sassxlate.lowering.region.macro import sealed
from sassxlate.lowering.region.text import END, RegionText, code_words

Words = tuple[str, ...]
Answer = Callable[[RegionText, np.random.Generator], Sequence[str]]


@dataclass
class Scripted:
    """Answers by a function of the question; equal questions have equal answers."""

    name: str
    answer: Answer
    asked: int = 0

    def answers(
        self, questions: Sequence[RegionText], samples: int, vtemps: Sequence[int]
    ) -> list[list[Words]]:
        del vtemps
        self.asked += len(questions)
        return [[self._one(q, n) for n in range(samples)] for q in questions]

    def _one(self, question: RegionText, n: int) -> Words:
        data = hashlib.blake2b(f"{n}{question.text}".encode(), digest_size=8).digest()
        return tuple(self.answer(question, np.random.default_rng(list(data))))


def rules_words(question: RegionText) -> list[str]:
    """The rules' own answer; nothing if the language cannot say it."""
    try:
        block, regs = question.block, question.regs
        code = sealed(rules_code(block, regs), block.instructions, block.macros, regs)
        return [word for line in code_words(code, question) for word in line]
    except SassxlateError:
        return [END] * len(question.block.instructions)


def instructions(words: Sequence[str]) -> list[list[str]]:
    """An answer's instructions, the ends of groups among them."""
    out: list[list[str]] = []
    for word in words:
        begins = word in (END,) or word.startswith((".pred", ".switch", ".endpred"))
        if begins or ("_" in word and not word.endswith(("_lo", "base", "limit"))) or not out:
            out.append([word])
        else:
            out[-1].append(word)
    return out


def shortened(question: RegionText, rng: np.random.Generator) -> list[str]:
    """The rules' answer without one of its instructions: right only where that one was dead."""
    parts = instructions(rules_words(question))
    plain = [n for n, part in enumerate(parts) if part[0] != END and part[0][0] != "."]
    if plain:
        del parts[plain[int(rng.integers(len(plain)))]]
    return [word for part in parts for word in part]


def near_miss(question: RegionText, rng: np.random.Generator) -> list[str]:
    """The rules' answer with one word replaced by another of its, or one instruction left out."""
    words = rules_words(question)
    if rng.integers(3) == 0:
        return shortened(question, rng)
    same = [n for n, w in enumerate(words) if w[0] in "vpstuc#" and "_" not in w]
    if same:
        words[same[int(rng.integers(len(same)))]] = words[same[int(rng.integers(len(same)))]]
    return words


def mangled(question: RegionText, rng: np.random.Generator) -> list[str]:
    """The rules' answer with words in the place of others: operands are missing, or too many."""
    words = rules_words(question)
    for _ in range(1 + int(rng.integers(3))):
        words[int(rng.integers(len(words)))] = words[int(rng.integers(len(words)))]
    return words


def noise(question: RegionText, rng: np.random.Generator) -> list[str]:
    """The answers of an untrained model."""
    return decode(sample(question, rng, 24))


def rubbish(question: RegionText, rng: np.random.Generator) -> list[str]:
    """Words in no order."""
    words = [*question.words, END, "v_add_f32", ".pred", "s_endpgm", "0x", "v999", ":2"]
    return [words[int(rng.integers(len(words)))] for _ in range(12)]

"""Answers by canonical form: in this process, and in a store beyond it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from sassxlate.lowering.region.text import Words

KEPT = 20_000  # questions in memory
_ANSWERS = 3  # changes with what is made of a question by one proposer


def key_of(name: str, text: str, samples: int, vtemps: int) -> str:
    """Of what is remembered of a question's canonical text."""
    data = f"{_ANSWERS}\0{name}\0{samples}\0{vtemps}\0{text}"
    return hashlib.blake2b(data.encode(), digest_size=16).hexdigest()


@dataclass(slots=True)
class Memo:
    """Answers in words, by key; ``read`` and ``write`` reach the store.

    What is remembered is only what was proposed: it is judged again wherever it is used.
    """

    read: Callable[[str], bytes | None] = lambda _: None
    write: Callable[[str, bytes], None] = lambda _, __: None
    kept: dict[str, list[Words]] = field(default_factory=dict[str, "list[Words]"])

    def find(self, key: str) -> list[Words] | None:
        """The answers of before; None where the question is new."""
        if key not in self.kept:
            data = self.read(key)
            if data is None:
                return None
            self._put(key, [tuple(line.split()) for line in data.decode().splitlines()])
        return self.kept[key]

    def keep(self, key: str, answers: list[Words]) -> None:
        self._put(key, answers)
        self.write(key, "\n".join(map(" ".join, answers)).encode())

    def _put(self, key: str, answers: list[Words]) -> None:
        if len(self.kept) >= KEPT:
            self.kept.clear()
        self.kept[key] = answers


__all__ = ["Memo", "Words", "key_of"]

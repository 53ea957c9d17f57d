"""The measured words that the translator refuses, by mnemonic, with its reasons.

``python -m tools.silicon refused`` prints it; ``tests/lowering/test_refused.py`` holds the counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate.disasm.sass import decode
from sassxlate.errors import DecodeError, LoweringError
from sassxlate.lowering.verify.rules.one_instruction import selected

ARCH = 90


@dataclass(frozen=True, slots=True)
class Refused:
    """A measured word without a rule; ``reason`` is the error's code and message."""

    text: str
    reason: str

    @property
    def mnemonic(self) -> str:
        return re.sub(r"^@\S+ ", "", self.text).split()[0].partition(".")[0]


def refused(words: Sequence[tuple[int, str]]) -> Iterator[Refused]:
    """The refused ones of (word, nvdisasm's text): decoded as strictly as in a kernel, and passed
    to its rule."""
    for word, text in words:
        try:
            selected(decode(word, 0, ARCH), "together")
        except (DecodeError, LoweringError) as error:
            yield Refused(text, f"{error.code}: {error.message}")


def single_words(folder: Path) -> list[tuple[int, str]]:
    """Words whose lanes are for themselves (``forms.txt``)."""
    lines = (folder / "forms.txt").read_text(encoding="utf-8").splitlines()[1:]
    parts = (line.split(" ", 2) for line in lines)
    return [(int(word, 16), text) for word, _, text in parts]


def warp_words() -> list[tuple[int, str]]:
    """Words that reach other lanes or memory (``warps.xz``)."""
    from .warps import fixture

    return [(m.word.word, m.word.text) for m in fixture.measured()]

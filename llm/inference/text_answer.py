"""What a text model says, read as an answer; and when it has said enough.

A text model may write a few sentences first, and has its answer in a fenced block, or has no fence.
What is not in the block language can never be an answer, so there is no point in going on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sassxlate.errors import SassxlateError
from sassxlate.lowering.region.subset import subset_operations
from sassxlate.lowering.region.text import DIRECTIVES, END, RegionText, read_code

PROSE: Final = 64  # tokens before the fence: what follows without one is taken as the answer
_MARK: Final = "```"
_LANGUAGE: Final = 16  # characters that may follow the mark
_LONGEST: Final = 40  # characters: no word of the language has as many
_FENCE: Final = re.compile(r"```[a-z0-9]*\n(.*?)(?:```|\Z)", re.DOTALL)
_FIRST: Final = frozenset(subset_operations()) | frozenset(DIRECTIVES)


def inside(text: str) -> str:
    """The first fenced block, which need not be closed; the whole text if there is none."""
    found = _FENCE.search(text)
    return found[1] if found else text


def is_over(text: str, question: RegionText, prose: bool) -> bool:
    """Whether more text makes no other answer of it: the block is closed, has code for every
    instruction, or cannot be read any more.  ``prose``: a text without a fence may still be what
    comes before it."""
    _, opened, after = text.partition(_MARK)
    if not opened and prose:
        return False
    if opened and "\n" not in after and len(after) < _LANGUAGE:
        return False
    if _MARK in after:
        return True
    body = inside(text)
    words = body.split()
    if words and not body[-1].isspace() and len(words[-1]) < _LONGEST:
        words.pop()  # there may be more of it
    return words.count(END) >= question.groups or not _readable(words, question)


def _readable(words: Sequence[str], question: RegionText) -> bool:
    """Whether an answer may begin with these words, fewer groups of code than it needs."""
    done = len(words) - list(reversed(words)).index(END) if END in words else 0
    if done < len(words) and words[done] not in _FIRST:
        return False
    missing = question.groups - words.count(END)
    try:
        read_code([*words[:done], *[END] * missing], question)
    except SassxlateError:
        return False
    return True


__all__ = ["PROSE", "inside", "is_over"]

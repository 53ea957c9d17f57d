"""Words to numbers: a small fixed vocabulary that can express everything.

``vocabulary.txt`` has one word per line; its number is the line's.  A word that is not among them
(a modifier of a future architecture) is spelled: ``<spell>``, its bytes, ``<end>``.  A training
example is ``<bos>`` prompt ``<answer>`` answer ``<eos>``.

Words are only added, at the end, so each earlier vocabulary is the beginning of the present one.
``VERSIONS`` has the sizes at which models were trained: such a model is asked in the words that it
has, and later ones are spelled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from sassxlate.errors import EncodeError

PATH: Final = Path(__file__).with_name("vocabulary.txt")
PAD, BOS, ANSWER, EOS = range(4)
SPELL, SPELLED = 4, 5
CONTROL: Final = ("<pad>", "<bos>", "<answer>", "<eos>", "<spell>", "<end>")
SPELLING: Final = tuple(f"<{n:02x}>" for n in range(256))
VERSIONS: Final = (2230, 2267)  # words: without macros, with them
_FIRST_BYTE: Final = len(CONTROL)


@cache
def vocabulary() -> tuple[str, ...]:
    """The words by number."""
    return tuple(PATH.read_text(encoding="utf-8").split("\n")[:-1])


@cache
def numbers() -> dict[str, int]:
    """The number of each word."""
    return {word: n for n, word in enumerate(vocabulary())}


def encode(words: Iterable[str], size: int | None = None) -> list[int]:
    """The numbers of words; any word without spaces can be encoded.  ``size``: for a model that has
    the first so many words of the vocabulary."""
    known = numbers()
    end = len(known) if size is None else size
    out: list[int] = []
    for word in words:
        number = known.get(word)
        if number is None or not _FIRST_BYTE + 256 <= number < end:
            out += [SPELL, *(_FIRST_BYTE + byte for byte in word.encode()), SPELLED]
        else:
            out.append(number)
    return out


def decode(ids: Sequence[int]) -> list[str]:
    """The words of numbers; control tokens (``<bos>`` ...) are left out.

    Raises EncodeError SX0545 for an invalid number, or a word that is spelled badly.
    """
    words = vocabulary()
    out: list[str] = []
    at = 0
    while at < len(ids):
        n = ids[at]
        at += 1
        if n == SPELL:
            end = at
            while end < len(ids) and ids[end] != SPELLED:
                end += 1
            data = [i - _FIRST_BYTE for i in ids[at:end]]
            if end == len(ids) or not all(0 <= b < 256 for b in data):
                raise EncodeError("SX0545", "a word that is spelled badly")
            try:
                out.append(bytes(data).decode())
            except UnicodeDecodeError:
                raise EncodeError("SX0545", "a word that is spelled badly") from None
            at = end + 1
        elif not 0 <= n < len(words) or SPELL < n < _FIRST_BYTE + 256:
            raise EncodeError("SX0545", f"{n} is not a word")
        elif n > EOS:
            out.append(words[n])
    return out


def example(prompt: Iterable[str], answer: Iterable[str]) -> tuple[list[int], int]:
    """The numbers of a training example, and the length of its question."""
    question = [BOS, *encode(prompt), ANSWER]
    return [*question, *encode(answer), EOS], len(question)


def digest(words: Iterable[str]) -> str:
    """The digest of a vocabulary."""
    return hashlib.blake2b("\n".join(words).encode(), digest_size=16).hexdigest()


@cache
def digest_of_size(size: int) -> str:
    """The digest of the vocabulary's first so many words."""
    return digest(vocabulary()[:size])


def size_of(known: str) -> int | None:
    """The number of words of the vocabulary with this digest; None if it is no version of ours."""
    return next((size for size in VERSIONS if digest_of_size(size) == known), None)


__all__ = [
    "ANSWER", "BOS", "EOS", "PAD", "VERSIONS", "decode", "digest", "digest_of_size", "encode",
    "example", "numbers", "size_of", "vocabulary",
]  # fmt: skip

"""The words that may continue a number."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, TypeAlias

from sassxlate.llm.language.tokenizer import numbers
from sassxlate.lowering.region.numbers import SMALL, Bits

Ids: TypeAlias = tuple[int, ...]

_BYTES: Final = tuple(f"b{n:02x}" for n in range(256))


@cache
def word_id(word: str) -> int:
    """The number of a word."""
    return numbers()[word]


# --- numbers ---------------------------------------------------------------------------------


def _reach(head: str, given: bytes, count: int, bits: int, low: int, high: int) -> bool:
    """Whether a number with this beginning can lie in [``low``, ``high``], both signed."""
    shift = 8 * (bits // 8 - count) if head == "f" else 0
    left = count - len(given)
    first = int.from_bytes(given, "big") << 8 * left
    last = first + (1 << 8 * left) - 1
    first, last, step = first << shift, last << shift, 1 << shift
    for offset in (0, 1 << bits):
        a, b = max(first, low + offset), min(last, high + offset)
        half = (0, (1 << bits - 1) - 1) if offset == 0 else (1 << bits - 1, (1 << bits) - 1)
        a, b = max(a, half[0]), min(b, half[1])
        if a <= b and -(-a // step) * step <= b:
            return True
    return False


@dataclass(slots=True)
class Number:
    """A number under construction: its words so far, and its range."""

    bits: Bits
    low: int
    high: int
    forced: tuple[str, ...] = ()
    words: list[str] = field(default_factory=list[str])

    @property
    def left(self) -> int:
        """The number of missing bytes."""
        if not self.words or self.words[0][0] not in "xf":
            return 0
        return int(self.words[0][1:]) + 1 - len(self.words)

    def next(self) -> Ids:
        """The bytes that may follow."""
        if self.forced:
            return (word_id(self.forced[len(self.words)]),)
        head, count = self.words[0][0], int(self.words[0][1:])
        given = bytes(int(w[1:], 16) for w in self.words[1:])
        return _next(head, given, count, self.bits, self.low, self.high)


@cache
def _byte_ids() -> Ids:
    return tuple(map(word_id, _BYTES))


@lru_cache(maxsize=1 << 12)
def _next(head: str, given: bytes, count: int, bits: Bits, low: int, high: int) -> Ids:
    """The bytes that may follow the beginning of a number in [``low``, ``high``]."""
    ids = _byte_ids()
    if -low == 1 << bits - 1 == high + 1:
        return ids
    left = 8 * (count - len(given))
    first = int.from_bytes(given, "big") << left
    if head == "x" and low <= first and first + (1 << left) - 1 <= min(high, (1 << bits - 1) - 1):
        return ids
    return tuple(
        ids[n] for n in range(256) if _reach(head, given + bytes((n,)), count, bits, low, high)
    )


ANY32: Final = (-(1 << 31), (1 << 31) - 1)

ANY64: Final = (-(1 << 63), (1 << 63) - 1)


@cache
def starts(low: int, high: int) -> Ids:
    """The words with which a number in [``low``, ``high``] may begin."""
    small = [word_id(f"#{n}") for n in SMALL if low <= n <= high]
    heads = [(h, n) for h, most in (("x", 4), ("f", 3)) for n in range(1, most + 1)]
    return (*small, *(word_id(f"{h}{n}") for h, n in heads if _reach(h, b"", n, 32, low, high)))

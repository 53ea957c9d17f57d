"""Memory as ordered effects: the loads, stores and atomics of each side, their addresses and
conditions.

Loads and stores are compared word by word, so that one side may split or merge them.  A loaded word
is a free value that both sides share by its place in the order.  The contents of memory are not
modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sassxlate.domain.interface import Domain

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Access(Generic[T]):
    """One word, or part of one, or an atomic: its address (64 or 32 bits), its condition, its
    data.

    ``what`` is "load", "store" or an atomic's operation and type, as RDNA3 names them.
    """

    space: str  # global, flat, ds, scratch; c[n] for a constant bank; rule: a tested rule's own
    what: str
    size: int  # bytes, at most 4 for a load or store
    when: T
    address: T
    data: tuple[T, ...] = ()

    def __str__(self) -> str:
        return f"{self.space} {self.what} of {self.size} bytes"


@dataclass(frozen=True, slots=True)
class Fence:
    """Before access number ``at``, all earlier accesses are done, or a cache is emptied."""

    at: int
    what: str  # done, gl0, gl1


class Memory(Generic[T]):
    """The accesses of one side, in order."""

    def __init__(self, d: Domain[T], free: Callable[[str, int], T]) -> None:
        self.d = d
        self.free = free
        self.accesses: list[Access[T]] = []
        self.fences: list[Fence] = []
        self._loads = 0

    def _words(self, size: int) -> list[tuple[int, int]]:
        """(offset, size) of the words of an access."""
        return [(0, size)] if size < 4 else [(at, 4) for at in range(0, size, 4)]

    def _at(self, address: T, at: int) -> T:
        d = self.d
        return d.add(address, d.const(at, d.width(address))) if at else address

    def _came(self, width: int) -> T:
        self._loads += 1
        return self.free(f"load{self._loads - 1}", width)

    def load(self, space: str, size: int, signed: bool, when: T, address: T) -> list[T]:
        """The loaded words; a part of a word is extended."""
        d = self.d
        out: list[T] = []
        for at, part in self._words(size):
            self.accesses.append(Access(space, "load", part, when, self._at(address, at)))
            value = self._came(8 * part)
            out.append(value if part == 4 else d.sext(value, 32) if signed else d.zext(value, 32))
        return out

    def store(self, space: str, size: int, when: T, address: T, data: Sequence[T]) -> None:
        d = self.d
        for n, (at, part) in enumerate(self._words(size)):
            value = d.extract(data[n], 0, 8 * part) if part < 4 else data[n]
            where = self._at(address, at)
            self.accesses.append(Access(space, "store", part, when, where, (value,)))

    def atomic(
        self, space: str, what: str, words: int, when: T, address: T, data: Sequence[T]
    ) -> list[T]:
        """The words that memory held before."""
        self.accesses.append(Access(space, what, 4 * words, when, address, tuple(data)))
        return [self._came(32) for _ in range(words)]

    def fence(self, *what: str) -> None:
        self.fences += [Fence(len(self.accesses), w) for w in what]

    def tested(self, name: str, when: T) -> None:
        """The effect of a tested rule on memory, as a whole."""
        self.accesses.append(Access("rule", name, 0, when, self.d.const(0, 32)))

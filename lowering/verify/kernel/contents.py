"""Memory as contents: the words that one lane finds, after the stores that it made.

Stores are kept in order, each with its condition, which includes that of the way that leads to it;
ways exclude each other, so their stores may stand one after the other.  A load looks through them.
Before the first store a word is a function of its space and address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sassxlate.domain.interface import Domain, is_zero
from sassxlate.lowering.verify.memory import Memory
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")
SPACES = ("global", "ds")
MOST = 20_000  # stores that the loads of one side look through, together


@dataclass(frozen=True, slots=True)
class Touched(Generic[T]):
    """An access to part of a word: its condition, address, bytes, and data for a store."""

    space: str
    when: T
    address: T
    size: int
    data: T | None = None


class Contents(Memory[T]):
    """The memory of one side.  ``path`` is the condition of the way that is followed."""

    def __init__(
        self,
        d: Domain[T],
        free: Callable[[str, int], T],
        initial: Callable[[str, T], T],
    ) -> None:
        super().__init__(d, free)
        self.initial = initial
        self.path = d.const(1, 1)
        self.touched: list[Touched[T]] = []
        # Of accesses by a whole wave: the condition of the way, and whether a lane is active then.
        self.woken: list[tuple[T, T]] = []
        self.fenced = False
        self._looked = 0

    def word(self, space: str, address: T) -> T:
        """What a word holds now; ``address`` is a multiple of four."""
        d = self.d
        value = self.initial(space, address)
        for one in self.touched:
            if one.space != space or one.data is None:
                continue
            self._looked += 1
            if self._looked > MOST:
                raise Undecided("too many loads after stores")
            here = d.and_(one.when, d.eq(self._place(one.address), address))
            value = d.select(here, self._with(value, one), value)
        return value

    def _place(self, address: T) -> T:
        d = self.d
        return d.and_(address, d.const(-4, d.width(address)))

    def _shift(self, address: T) -> T:
        """Bits below a part of its word."""
        d = self.d
        low = d.extract(address, 0, 32) if d.width(address) > 32 else address
        return d.shl(d.and_(low, d.const(3, 32)), d.const(3, 32))

    def _with(self, value: T, store: Touched[T]) -> T:
        d = self.d
        assert store.data is not None
        if store.size == 4:
            return store.data
        by = self._shift(store.address)
        mask = d.shl(d.const((1 << 8 * store.size) - 1, 32), by)
        data = d.shl(d.zext(store.data, 32), by)
        return d.or_(d.and_(value, d.not_(mask)), data)

    def _check(self, space: str) -> None:
        if space not in SPACES:
            raise Undecided(f"an access to {space}")

    def load(self, space: str, size: int, signed: bool, when: T, address: T) -> list[T]:
        self._check(space)
        d, out = self.d, list[T]()
        when = d.and_(self.path, when)
        for at, part in self._words(size):
            where = self._at(address, at)
            self.touched.append(Touched(space, when, where, part))
            place = self._place(where)
            value = self.word(space, d.select(when, place, d.const(0, d.width(place))))
            if part < 4:
                value = d.extract(d.lshr(value, self._shift(where)), 0, 8 * part)
                value = d.sext(value, 32) if signed else d.zext(value, 32)
            out.append(value)
        return out

    def load_for_all(self, space: str, size: int, address: T, mask: T) -> list[T]:
        """Words at one address by a wave with the lanes of ``mask``, whose lowest bit is the lane's
        own.  It makes the access if it is active; if not, an active lane does, for which the
        same is asked, and what that finds is any value here."""
        d, own = self.d, self.d.extract(mask, 0, 1)
        words = self.load(space, size, False, own, address)
        for n, word in enumerate(words):
            theirs = self.free(f"woken{len(self.woken)}.{n}", 32)
            words[n] = d.select(own, word, theirs)
        self.woken.append((self.path, d.not_(is_zero(d, mask))))
        return words

    def store(self, space: str, size: int, when: T, address: T, data: Sequence[T]) -> None:
        self._check(space)
        d = self.d
        when = d.and_(self.path, when)
        for n, (at, part) in enumerate(self._words(size)):
            value = d.extract(data[n], 0, 8 * part) if part < 4 else data[n]
            self.touched.append(Touched(space, when, self._at(address, at), part, value))

    def atomic(
        self, space: str, what: str, words: int, when: T, address: T, data: Sequence[T]
    ) -> list[T]:
        raise Undecided("an atomic operation")

    def tested(self, name: str, when: T) -> None:
        raise Undecided(name)


__all__ = ["SPACES", "Contents", "Touched"]

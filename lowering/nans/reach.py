"""Which makers come into the places where paths meet, without a set for each place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sassxlate.cfg.dominators import components


class Reach:
    """Of a graph of such places, what can be reached, each part of it looked at once.

    ``inputs`` has what comes into a place, a negative number: makers, which are not negative, and
    other places.  Makers in ``left_out`` do not count.  The places of a cycle reach the same makers
    and are merged; a place with a single input is replaced by that input; places with equal inputs
    are merged.  What is left branches everywhere, so that a search soon finds several makers.
    """

    def __init__(self, inputs: Mapping[int, Collection[int]], left_out: Collection[int]) -> None:
        self._inputs = inputs
        self._left_out = left_out
        self._heads: dict[int, int | None] = {}
        self._below: dict[int, frozenset[int]] = {}
        self._same: dict[frozenset[int], int] = {}
        self._found: dict[frozenset[int], tuple[frozenset[int], int]] = {}

    def head(self, maker: int) -> int | None:
        """What stands for a maker or a place: one that reaches the same; None if it reaches no
        maker that counts."""
        if maker >= 0:
            return None if maker in self._left_out else maker
        if maker not in self._heads:
            self._reduce(maker)
        return self._heads[maker]

    def any(self, makers: Iterable[int]) -> bool:
        """Whether a maker that counts is among them or comes into one of them."""
        return any(self.head(maker) is not None for maker in makers)

    def all(self, makers: Iterable[int]) -> set[int]:
        """Every maker that is among them or comes into one of them."""
        return set(self._walk(self._start(makers), {}, -1)[0])

    def lighter(
        self, makers: Iterable[int], weights: Mapping[int, int], limit: int
    ) -> tuple[frozenset[int], int] | None:
        """As :meth:`all`, with the sum of their weights, which are positive.  None where they are
        several whose sum is ``limit`` or more, which is found without looking at all of them."""
        start = self._start(makers)
        found = self._found.get(start)
        if found is None:
            found = self._walk(start, weights, limit)
            if len(found[0]) < 2 or found[1] < limit:
                self._found[start] = found
        return found if len(found[0]) < 2 or found[1] < limit else None

    def _start(self, makers: Iterable[int]) -> frozenset[int]:
        heads = [self.head(maker) for maker in makers]
        return frozenset([head for head in heads if head is not None])

    def _walk(
        self, start: frozenset[int], weights: Mapping[int, int], limit: int
    ) -> tuple[frozenset[int], int]:
        """The makers and the sum of their weights; of several only until the sum is ``limit``,
        if that is not negative."""
        seen = set(start)
        work = sorted(start)  # makers are taken before places
        found: list[int] = []
        total = 0
        while work:
            one = work.pop()
            if one >= 0:
                found.append(one)
                if limit >= 0:
                    total += weights[one]
                    if total >= limit and len(found) > 1:
                        break
                continue
            new = self._below[one] - seen
            seen |= new
            work += sorted(new)
        return frozenset(found), total

    def _reduce(self, root: int) -> None:
        """Finds what stands for a place and all that come into it."""
        places: dict[int, list[int]] = {}
        work = [root]
        while work:
            node = work.pop()
            if node not in places:
                new = [one for one in self._inputs[node] if one < 0 and one not in self._heads]
                places[node] = new
                work += new
        for part in components(places, places):
            self._close(part)

    def _close(self, members: frozenset[int]) -> None:
        """Finds what stands for the places of a cycle, or a place alone."""
        found: set[int] = set()
        for member in members:
            for one in self._inputs[member]:
                if one not in members:
                    head = self.head(one)
                    if head is not None:
                        found.add(head)
        stands: int | None = None
        if len(found) == 1:
            (stands,) = found
        elif found:
            key = frozenset(found)
            stands = self._same.setdefault(key, min(members))
            self._below[stands] = key
        for member in members:
            self._heads[member] = stands


__all__ = ["Reach"]

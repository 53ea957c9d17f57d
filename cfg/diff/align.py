"""Finds the blocks of two graphs that are the same code, despite other register names, another
block order and other constants.

1. Two blocks are as similar as the fingerprints of their instructions (:mod:`.fingerprint`; cosine,
   features that few blocks have weigh more) and, for some rounds, as their neighbours.
2. Two orders are tried as a whole: by address, and by when control first reaches a block.  The best
   chain of pairs that keeps an order gets a bonus in proportion to how well it fits.
3. The most similar pairs are taken first, each block once.  A pair raises the score of its
   neighbours, so copies of a block fall into place.
4. Pairs swap partners where that improves the similarity of the blocks and of their arcs.
5. Left-over blocks become a pair if all their neighbours are paired: they are in the same place.

The order of instructions inside a pair is left to :func:`lines`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from sassxlate.cfg.diff.fingerprint import fingerprint, is_call, normal_form
from sassxlate.cfg.view.picture import Node, Picture

_ROUNDS = 4
_NEIGHBOURS = 0.4  # weight of the neighbours in a round's score
_CHAIN = 0.12  # bonus of a pair for an order that fits completely
_ARC = 0.16  # bonus for an arc to a pair, and for one from a pair
_LEAST = 0.42  # least score of a pair
_FEW = 8  # initial candidates per block
_MOST = 4_000_000  # up to this product of two blocks' lengths, all lines are compared

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """Two blocks by index, and their similarity from 0 to 1: 1 if they differ in nothing but
    names, block order and values."""

    left: int
    right: int
    alike: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs in the order of the left graph, and the blocks without a partner."""

    pairs: tuple[BlockMatch, ...]
    only_left: tuple[int, ...]
    only_right: tuple[int, ...]

    @property
    def alike(self) -> float:
        """The share of both graphs' blocks that is paired, weighted by similarity."""
        count = 2 * len(self.pairs) + len(self.only_left) + len(self.only_right)
        return 2 * sum(p.alike for p in self.pairs) / count if count else 1.0


def align(left: Picture, right: Picture) -> Alignment:
    """The pairs of two graphs of the same instruction set."""
    n, m = len(left.nodes), len(right.nodes)
    if _equal(left, right):
        return Alignment(tuple(BlockMatch(i, i, 1.0) for i in range(n)), (), ())
    partner = _Matching(left, right).partner if n and m else {}
    pairs = [
        BlockMatch(i, j, alike(left.nodes[i], right.nodes[j])) for i, j in sorted(partner.items())
    ]
    taken = set(partner.values())
    return Alignment(
        tuple(pairs),
        tuple(i for i in range(n) if i not in partner),
        tuple(j for j in range(m) if j not in taken),
    )


def _equal(left: Picture, right: Picture) -> bool:
    return [(a.src, a.dst, a.kind) for a in left.arcs] == [
        (a.src, a.dst, a.kind) for a in right.arcs
    ] and [[t.text for t in x.lines] for x in left.nodes] == [
        [t.text for t in x.lines] for x in right.nodes
    ]


class _Side:
    """A graph's arcs: for each block the outgoing and incoming ones, with their kinds.

    The block after a call is its successor, whatever the callee does in between.
    """

    def __init__(self, picture: Picture) -> None:
        count = len(picture.nodes)
        self.out: list[dict[int, str]] = [{} for _ in range(count)]
        self.into: list[dict[int, str]] = [{} for _ in range(count)]
        for arc in picture.arcs:
            self._add(arc.src, arc.dst, arc.kind)
        for node in picture.nodes[:-1]:
            if node.lines and is_call(node.lines[-1].text):
                self._add(node.index, node.index + 1, "over")

    def _add(self, src: int, dst: int, kind: str) -> None:
        self.out[src].setdefault(dst, kind)
        self.into[dst].setdefault(src, kind)

    def reached(self) -> list[int]:
        """Blocks in the order in which control first reaches them (fall-through before taken
        branches); unreachable blocks come last."""
        rank = {"over": 0, "fall": 0, "jump": 1, "taken": 1, "case": 2, "call": 3, "return": 4}
        seen: dict[int, None] = {}
        work = [0]
        while work:
            at = work.pop()
            if at in seen:
                continue
            seen[at] = None
            ways = sorted((rank.get(kind, 1), to) for to, kind in self.out[at].items())
            work += [to for _, to in reversed(ways) if to not in seen]
        return [*seen, *(i for i in range(len(self.out)) if i not in seen)]


class _Matching:
    """The search for pairs; ``partner`` is the result, left to right."""

    def __init__(self, left: Picture, right: Picture) -> None:
        self.a, self.b = _Side(left), _Side(right)
        self.own = _own(left.nodes, right.nodes)
        score = self.own
        for _ in range(_ROUNDS):
            around = _around(self.a, self.b, score)
            score = ((1 - _NEIGHBOURS) * self.own + _NEIGHBOURS * around).astype(np.float32)
        n, m = score.shape
        natural = ([*range(n)], [*range(m)])
        self.score = score.copy()
        for x, y in (natural, (self.a.reached(), self.b.reached())):
            self._gain(score, x, y)
        # Entries are paired with each other, whatever code they hold.
        self.score[0, 0] = 2.0
        self.partner: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self._take()
        for _ in range(4):
            if not self._exchange():
                break
        self._fill()

    def _gain(self, score: Scores, x: Sequence[int], y: Sequence[int]) -> None:
        """Adds the bonus of the best chain of an order to its pairs."""
        turned = score[np.ix_(x, y)]
        found = _chain(np.maximum(turned - 0.3, 0))
        if not found:
            return
        best = turned.max(axis=1).sum() if len(x) <= len(y) else turned.max(axis=0).sum()
        fits = float(sum(turned[i, j] for i, j in found) / max(float(best), 1e-6))
        for i, j in found:
            self.score[x[i], y[j]] += _CHAIN * fits**2

    def _arcs(self, i: int, j: int) -> float:
        """How well the arcs of a pair fit those of the pairs around it."""
        total = 0.0
        for ours, theirs in ((self.a.out[i], self.b.out[j]), (self.a.into[i], self.b.into[j])):
            fits = 0.0
            for to, kind in ours.items():
                other = self.partner.get(to)
                if to == i:
                    other = j
                if other is not None and other in theirs:
                    fits += 1.0 if theirs[other] == kind else 0.7
            total += fits / max(len(ours), len(theirs), 1)
        return _ARC * total

    def _worth(self, i: int, j: int) -> float:
        return float(self.score[i, j]) + self._arcs(i, j)

    def _starts(self) -> Iterator[tuple[int, int]]:
        n, m = self.score.shape
        few = min(_FEW, m)
        for i in range(n):
            for j in np.argpartition(-self.score[i], few - 1)[:few]:
                yield i, int(j)
        few = min(_FEW, n)
        for j in range(m):
            for i in np.argpartition(-self.score[:, j], few - 1)[:few]:
                yield int(i), j

    def _pair(self, i: int, j: int) -> None:
        self.partner[i], self.back[j] = j, i

    def _take(self) -> None:
        self.near: dict[int, set[int]] = defaultdict(set)
        for i, j in self._starts():
            self.near[i].add(j)
        heap = [(-float(self.score[i, j]), i, j) for i, some in self.near.items() for j in some]
        heapify(heap)
        while heap:
            worth, i, j = heappop(heap)
            if i in self.partner or j in self.back or -worth < _LEAST:
                continue
            self._pair(i, j)
            for ours, theirs in ((self.a.out[i], self.b.out[j]), (self.a.into[i], self.b.into[j])):
                for x in ours:
                    for y in theirs:
                        self.near[x].add(y)
                        if x not in self.partner and y not in self.back:
                            heappush(heap, (-self._worth(x, y), x, y))

    def _exchange(self) -> bool:
        """Swaps partners, or gives a block a free partner, where that raises the total score."""
        changed = False
        for i in range(len(self.a.out)):
            j = self.partner.get(i)
            for y in sorted(self.near[i]):
                j = self.partner.get(i)
                if y == j:
                    continue
                x = self.back.get(y)
                before = self._around_worth(i, x)
                self._swap(i, j, x, y)
                if self._around_worth(i, x) > before + 1e-4 and self._allowed(i, x):
                    changed = True
                else:
                    self._undo(i, j, x, y)
        return changed

    def _allowed(self, i: int, x: int | None) -> bool:
        return all(
            k is None or k not in self.partner or self._worth(k, self.partner[k]) >= _LEAST
            for k in (i, x)
        )

    def _around_worth(self, i: int, x: int | None) -> float:
        total = 0.0
        for k in {i, x} - {None}:
            assert k is not None
            if k in self.partner:
                j = self.partner[k]
                # An arc is counted at both of its ends.
                total += float(self.score[k, j]) + 2 * self._arcs(k, j)
        return total

    def _swap(self, i: int, j: int | None, x: int | None, y: int) -> None:
        """i gives up j for y; x, which had y, gets j."""
        if j is not None:
            del self.partner[i], self.back[j]
        if x is not None:
            del self.partner[x], self.back[y]
            if j is not None:
                self._pair(x, j)
        self._pair(i, y)

    def _undo(self, i: int, j: int | None, x: int | None, y: int) -> None:
        del self.partner[i], self.back[y]
        if x is not None:
            if j is not None:
                del self.partner[x], self.back[j]
            self._pair(x, y)
        if j is not None:
            self._pair(i, j)

    def _fill(self) -> None:
        """Pairs left-over blocks that are in the same place between pairs."""
        grown = True
        while grown:
            grown = False
            for i in range(len(self.a.out)):
                if i in self.partner:
                    continue
                found = [j for j in self._places(i) if j not in self.back]
                found = [j for j in found if self.own[i, j] > 0.02 and self._between(i, j)]
                if found:
                    self._pair(i, max(found, key=lambda j: (self._worth(i, j), -j)))
                    grown = True

    def _places(self, i: int) -> list[int]:
        found: set[int] = set()
        for to in self.a.out[i]:
            if to in self.partner:
                found |= self.b.into[self.partner[to]].keys()
        for source in self.a.into[i]:
            if source in self.partner:
                found |= self.b.out[self.partner[source]].keys()
        return sorted(found)

    def _between(self, i: int, j: int) -> bool:
        """Whether all arcs of two blocks lead to pairs, equally many on both sides."""
        for ours, theirs in ((self.a.out[i], self.b.out[j]), (self.a.into[i], self.b.into[j])):
            if len(ours) != len(theirs):
                return False
            if not all(to == i or self.partner.get(to) in theirs for to in ours):
                return False
        return bool(self.a.out[i] or self.a.into[i])


def _own(left: Sequence[Node], right: Sequence[Node]) -> Scores:
    """Similarity of the blocks by themselves, left by right."""
    nodes = [*left, *right]
    known: dict[str, int] = {}
    rows: list[Counter[int]] = []
    weights: list[float] = []
    for node in nodes:
        bag: Counter[int] = Counter()
        for line in node.lines:
            for word, much in fingerprint(line.text):
                number = known.setdefault(word, len(known))
                if number == len(weights):
                    weights.append(much)
                bag[number] += 1
        rows.append(bag)
    if not known:
        return np.zeros((len(left), len(right)), np.float32)
    out = np.zeros((len(nodes), len(known)), np.float32)
    for i, bag in enumerate(rows):
        out[i, list(bag)] = np.sqrt(list(bag.values()))
    seen = (out > 0).sum(axis=0)
    out *= np.array(weights, np.float32) * np.log(1 + len(nodes) / seen).astype(np.float32)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    out /= np.where(length > 0, length, 1)
    return (out[: len(left)] @ out[len(left) :].T).astype(np.float32)


def _around(a: _Side, b: _Side, score: Scores) -> Scores:
    """Similarity of successors and of predecessors: for each neighbour of the left block the best
    match on the right, averaged.  Two blocks without any count as similar."""
    total = np.zeros_like(score)
    for ours, theirs in ((a.out, b.out), (a.into, b.into)):
        best = np.zeros((score.shape[1], score.shape[0]), np.float32)  # right by left
        turned = np.ascontiguousarray(score.T)
        for j, some in enumerate(theirs):
            if some:
                best[j] = turned[list(some)].max(axis=0)
        best = np.ascontiguousarray(best.T)
        alone = np.array([not some for some in theirs])
        for i, some in enumerate(ours):
            total[i] += best[list(some)].mean(axis=0) if some else alone
    return (total / 2).astype(np.float32)


def _chain(score: Scores) -> list[tuple[int, int]]:
    """The pairs that keep their order and have the greatest sum (Needleman-Wunsch alignment with
    no gap penalty)."""
    n, m = score.shape
    best = np.zeros((n + 1, m + 1), np.float32)
    for i in range(n):
        row = best[i + 1]
        np.maximum(best[i, 1:], best[i, :-1] + score[i], out=row[1:])
        np.maximum.accumulate(row, out=row)
    found: list[tuple[int, int]] = []
    i, j = n, m
    while i and j:
        here = best[i, j]
        if here == best[i - 1, j]:
            i -= 1
        elif here == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            found.append((i, j))
    return found[::-1]


def _common(x: Sequence[str], y: Sequence[str]) -> list[tuple[int, int]]:
    """A longest common subsequence, as pairs of positions."""
    if len(x) * len(y) > _MOST:
        found = SequenceMatcher(None, x, y, autojunk=False).get_matching_blocks()
        return [(m.a + k, m.b + k) for m in found for k in range(m.size)]
    first = 0
    while first < min(len(x), len(y)) and x[first] == y[first]:
        first += 1
    known: dict[str, int] = {}
    ours, theirs = (
        np.array([known.setdefault(text, len(known)) for text in some[first:]], np.int64)
        for some in (x, y)
    )
    rest = _chain((ours[:, None] == theirs[None, :]).astype(np.float32))
    return [*((k, k) for k in range(first)), *((first + i, first + j) for i, j in rest)]


def alike(a: Node, b: Node) -> float:
    """Similarity of two blocks, given the order of their instructions."""
    x, y = [normal_form(t.text) for t in a.lines], [normal_form(t.text) for t in b.lines]
    return 1.0 if x == y else 2 * len(_common(x, y)) / (len(x) + len(y))


@dataclass(frozen=True, slots=True)
class AlignedLine:
    """A line of a pair: on the left, on the right, or on both; ``same`` if only names and values
    differ."""

    left: int | None
    right: int | None
    same: bool


def lines(a: Node, b: Node) -> list[AlignedLine]:
    """The instructions of two blocks side by side."""
    x, y = [normal_form(t.text) for t in a.lines], [normal_form(t.text) for t in b.lines]
    out: list[AlignedLine] = []
    i = j = 0
    for k, m in [*_common(x, y), (len(x), len(y))]:
        out += [AlignedLine(n, None, False) for n in range(i, k)]
        out += [AlignedLine(None, n, False) for n in range(j, m)]
        if k < len(x):
            out.append(AlignedLine(k, m, True))
        i, j = k + 1, m + 1
    return out

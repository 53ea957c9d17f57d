"""Which blocks of two graphs are the same code, though registers have other names, blocks another
order and constants other values.

1. Blocks are alike as far as what is said about their instructions is (:mod:`.fingerprint`; cosine,
   what few blocks have weighs more), and, for some rounds, as far as their neighbours are.
2. Two orders are tried as a whole, that of addresses and that in which control first comes to
   blocks: the best chain of pairs that keeps the order gains, as far as it fits.
3. Pairs are taken the most alike first, each block once; a pair draws its neighbours along, so
   copies of a block fall into their places.
4. Pairs change partners where that is better for what they are and for the arcs between them.
5. Blocks that are left over are a pair if all their neighbours are: the same place.

The order of instructions inside a pair is :func:`lines`' concern.
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
_NEIGHBOURS = 0.4  # how much of a round's score neighbours make
_CHAIN = 0.12  # what a pair gains by an order that fits wholly
_ARC = 0.16  # by an arc to a pair, and from one
_LEAST = 0.42  # how good a pair is at least
_FEW = 8  # candidates that a block has for a start
_MOST = 4_000_000  # products of two blocks' lengths up to which lines are compared all with all

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """Two blocks by index, and how alike they are: from 0 to 1, 1 where nothing differs but
    names, order of blocks and values."""

    left: int
    right: int
    alike: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs in the order of the left graph, and the blocks that have no other."""

    pairs: tuple[BlockMatch, ...]
    only_left: tuple[int, ...]
    only_right: tuple[int, ...]

    @property
    def alike(self) -> float:
        """Of both graphs' blocks the share that is paired, each as far as it is alike."""
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
    """A graph's arcs: of each block those that leave it and those that come, with their kinds.

    A block behind a call follows it, whatever the function does in between.
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
        """Blocks in the order in which control first comes to them, past branches before along
        them; those that it does not come to at the end."""
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
    """The search for pairs; ``partner`` is what it found, left to right."""

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
        # The entries are the entries, whatever stands in them.
        self.score[0, 0] = 2.0
        self.partner: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self._take()
        for _ in range(4):
            if not self._exchange():
                break
        self._fill()

    def _gain(self, score: Scores, x: Sequence[int], y: Sequence[int]) -> None:
        """What pairs of the best chain of an order gain."""
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
        """Lets pairs change partners, or a block take a free one, where it is better in all."""
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
        """i leaves j for y; x, who had y, gets j."""
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
        """Blocks that are left over, in the same place between pairs."""
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
        """Whether the arcs of two blocks lead to pairs, as many as there are."""
        for ours, theirs in ((self.a.out[i], self.b.out[j]), (self.a.into[i], self.b.into[j])):
            if len(ours) != len(theirs):
                return False
            if not all(to == i or self.partner.get(to) in theirs for to in ours):
                return False
        return bool(self.a.out[i] or self.a.into[i])


def _own(left: Sequence[Node], right: Sequence[Node]) -> Scores:
    """How alike blocks are by themselves, left by right."""
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
    """How alike successors and predecessors are: for each block of the left's the best of the
    right's, their mean.  Two blocks without any count as alike."""
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
    """The pairs that keep their order and have the greatest sum (as Needleman and Wunsch's
    alignments, gaps for nothing)."""
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
    """A longest common subsequence, as pairs of places."""
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
    """How alike two blocks are, in the order of their instructions."""
    x, y = [normal_form(t.text) for t in a.lines], [normal_form(t.text) for t in b.lines]
    return 1.0 if x == y else 2 * len(_common(x, y)) / (len(x) + len(y))


@dataclass(frozen=True, slots=True)
class AlignedLine:
    """A line of a pair: on the left, on the right, or on both; ``same`` but for names and
    values."""

    left: int | None
    right: int | None
    same: bool


def lines(a: Node, b: Node) -> list[AlignedLine]:
    """The instructions of two blocks beside each other."""
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

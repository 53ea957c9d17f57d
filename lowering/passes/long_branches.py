"""Branches longer than 128 KiB: they go from island to island.

A branch reaches 32,767 dwords.  If one does not reach its label, islands are inserted at
regular distances, each with a branch over it; an island has a branch for each label that is
out of reach of a branch before or after it.  This needs no register, and changes no state on
the way.

Islands have a size, too: a kernel with thousands of labels that are far away has islands of many
KiB, and every hop over one is that much longer.  Ways are therefore chosen again with the sizes
that the islands came to, until no island grows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from sassxlate.disasm.rdna3 import Encoded
from sassxlate.disasm.rdna3.codec.assemble import GETPC, in_reach, is_branch
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label, LabelRef
from sassxlate.lowering.codeobject.source_map import ISLAND

REACH = 4 * 0x7FFF  # most bytes that a branch spans, in either direction
APART = 96 << 10  # bytes of code between two islands
_CLOSEST = (
    16 << 10
)  # islands are put closer together where they are large, but not closer than this
_WORD = 4  # bytes of a branch
_ISLAND = InstOrigin(ISLAND)


def expand_long_branches(
    program: Encoded, reach: int = REACH, apart: int = APART, limit: int | None = None
) -> Encoded:
    """The program with all branches in reach; unchanged if they already are.

    ``limit``: most bytes that a branch may span without islands; by default the encoding's limit.
    Where more labels are far away than islands can have branches for (about 15,000 across one
    place), a branch stays too long, and resolve_labels raises SX0511.
    """
    found = find_islands(program, reach, apart, limit)
    return program if found is None else found.into(program)


def find_islands(
    program: Encoded, reach: int = REACH, apart: int = APART, limit: int | None = None
) -> Islands | None:
    """The islands that :func:`expand_long_branches` puts into a program; None if it puts none."""
    starts_at = program.offsets()
    if starts_at[-1] <= (REACH if limit is None else limit):
        return None
    branches = _branches(program, starts_at)
    if all(
        in_reach(b.at, b.goal) if limit is None else abs(b.goal - b.at) <= limit for b in branches
    ):
        return None
    while True:
        islands = Islands.found(program, starts_at, branches, reach, apart)
        if islands is not None:
            return islands
        if apart // 2 < min(_CLOSEST, reach // 4):
            return None
        apart //= 2


class _Branch(NamedTuple):
    """A branch to a label: the items' numbers and, without islands, offsets."""

    number: int
    at: int
    label: str
    goes_to: int
    goal: int


def _branches(program: Encoded, offsets: Sequence[int]) -> list[_Branch]:
    """The branches to labels of the program."""
    indices = {item.name: n for n, item in program.placed() if isinstance(item, Label)}
    return [
        _Branch(n, offsets[n], label, to, offsets[to])
        for n, item in program.placed()
        if (label := _target(item)) is not None and (to := indices.get(label)) is not None
    ]


def _target(item: Item) -> str | None:
    """The label that a branch goes to."""
    if not isinstance(item, Inst) or not item.args:
        return None
    last = item.args[-1]
    return last.name if is_branch(item) and isinstance(last, LabelRef) else None


def _nothing_after(program: Encoded) -> set[int]:
    """Items after which no island may stand: labels, and an instruction that reads its address, on
    which the code after it relies."""
    return {n for n, item in program.placed() if isinstance(item, Label) or item.op == GETPC}


class _OutOfReach(Exception):
    """No island is near enough to hop to."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where islands of these sizes begin, and by how much they move the code after them."""

    before: tuple[int, ...]  # per island, the index of the item after it
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    moved: tuple[int, ...]  # bytes of the islands before item n, for n up to each island's item

    @classmethod
    def of(cls, before: Sequence[int], offsets: Sequence[int], sizes: Sequence[int]) -> _Layout:
        moved = tuple(accumulate(sizes, initial=0))
        begins = tuple(offsets[n] + m for n, m in zip(before, moved, strict=False))
        ends = tuple(b + s for b, s in zip(begins, sizes, strict=True))
        return cls(tuple(before), begins, ends, moved)

    def at(self, item: int, offset: int) -> int:
        """The offset of an item that was at ``offset`` without islands."""
        return offset + self.moved[bisect_right(self.before, item)]


@dataclass(frozen=True, slots=True)
class Islands:
    """The labels that each island has a branch for, and where every branch goes.  ``before``: of
    each island, the index of the item that it stands before."""

    before: tuple[int, ...]
    wanted: tuple[tuple[str, ...], ...]
    goals: Mapping[int, str]  # by the index of a branch, where it does not go to its label
    onward: Mapping[tuple[int, str], str]  # where an island's branch for a label goes

    @classmethod
    def found(
        cls,
        program: Encoded,
        offsets: Sequence[int],
        branches: Sequence[_Branch],
        reach: int,
        apart: int,
    ) -> Islands | None:
        """None where a hop is too long with islands this far apart."""
        before: list[int] = []
        never = _nothing_after(program)
        n, end = 0, len(program.sizes)
        while (n := bisect_left(offsets, apart * (len(before) + 1), n + 1, end)) < end:
            while n < end and n - 1 in never:
                n += 1
            if n < end:
                before.append(n)
        wanted: list[set[str]] = [set() for _ in before]
        sizes = [0] * len(before)
        while True:
            layout = _Layout.of(before, offsets, sizes)
            near = reach - layout.moved[-1]  # in reach, whatever islands are between
            far = [b for b in branches if abs(b.goal - b.at) > near]
            try:
                goals, onward = _routes(layout, far, wanted, reach)
            except _OutOfReach:
                return None
            grown = [_WORD * (len(w) + 1) if w else 0 for w in wanted]
            if grown == sizes:
                kept = tuple(tuple(sorted(w)) for w in wanted)
                return cls(layout.before, kept, goals, onward)
            sizes = grown

    def places(self) -> list[tuple[int, int]]:
        """Of each island, the index of the item that it stands before, and how many items it
        has."""
        counts = [2 * len(some) + 2 if some else 0 for some in self.wanted]
        return list(zip(self.before, counts, strict=True))

    def into(self, program: Encoded) -> Encoded:
        """The program with the islands."""
        offsets = program.offsets()
        data = bytearray()
        sizes = array("H")
        marked: list[Item] = []
        indices = array("I")
        items: list[Item] = []
        own = program.placed()
        following = next(own, None)
        start = 0
        for number, end in enumerate((*self.before, len(program.sizes))):
            moved = len(sizes) - start
            data += program.data[offsets[start] : offsets[end]]
            sizes += program.sizes[start:end]
            items += program.items[start:end]
            while following is not None and following[0] < end:
                n, item = following
                if n in self.goals and isinstance(item, Inst):
                    item = item.with_args((*item.args[:-1], LabelRef(self.goals[n])))
                    if items:
                        items[n + moved] = item
                marked.append(item)
                indices.append(n + moved)
                following = next(own, None)
            for item in self._island(number) if number < len(self.before) else ():
                marked.append(item)
                indices.append(len(sizes))
                sizes.append(_WORD * isinstance(item, Inst))
                data += bytes(_WORD * isinstance(item, Inst))
                if program.items:
                    items.append(item)
            start = end
        return Encoded(bytes(data), sizes, tuple(marked), indices, tuple(items))

    def _island(self, number: int) -> list[Item]:
        if not self.wanted[number]:
            return []
        skip = f"Lisland_{number}"
        out: list[Item] = [Inst("s_branch", (LabelRef(skip),), origin=_ISLAND)]
        for label in self.wanted[number]:
            out.append(Label(_entry(label, number)))
            onward = LabelRef(self.onward[number, label])
            out.append(Inst("s_branch", (onward,), origin=_ISLAND))
        return [*out, Label(skip)]


def _routes(
    layout: _Layout, branches: Sequence[_Branch], wanted: list[set[str]], reach: int
) -> tuple[dict[int, str], dict[tuple[int, str], str]]:
    """Where branches and islands' branches go; adds to ``wanted``.

    Raises:
        _OutOfReach: no island is near enough.
    """

    places = {b.label: layout.at(b.goes_to, b.goal) for b in branches}

    def hop(first: int, last: int, label: str) -> int | None:
        """The island to go to from code between two offsets; None: the label itself."""
        goal = places[label]
        if max(last, goal) - min(first, goal) <= reach:
            return None
        if goal > last:
            island = bisect_right(layout.ends, first + reach) - 1
            near = island >= 0 and layout.begins[island] > last
        else:
            island = bisect_left(layout.begins, last - reach)
            near = island < len(layout.begins) and layout.ends[island] < last
        if not near:
            raise _OutOfReach
        wanted[island].add(label)
        return island

    goals: dict[int, str] = {}
    for b in branches:
        at = layout.at(b.number, b.at)
        island = hop(at, at, b.label)
        if island is not None:
            goals[b.number] = _entry(b.label, island)
    onward: dict[tuple[int, str], str] = {}
    todo = [(island, label) for island, labels in enumerate(wanted) for label in labels]
    while todo:
        here, label = todo.pop()
        if (here, label) in onward:
            continue
        island = hop(layout.begins[here], layout.ends[here], label)
        onward[here, label] = label if island is None else _entry(label, island)
        if island is not None:
            todo.append((island, label))
    return goals, onward


def _entry(label: str, island: int) -> str:
    return f"{label}_by{island}"


__all__ = ["Islands", "expand_long_branches", "find_islands"]

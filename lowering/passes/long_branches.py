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

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sassxlate.disasm.rdna3 import Encoded
from sassxlate.disasm.rdna3.codec.assemble import in_reach, is_branch
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
    starts_at = program.offsets()
    if _all_reach(program, starts_at, limit):
        return program
    while True:
        ways = _Ways.found(program, starts_at, reach, apart)
        if ways is not None:
            return ways.taken()
        if apart // 2 < min(_CLOSEST, reach // 4):
            return program
        apart //= 2


def _target(item: Item) -> str | None:
    """The label that a branch goes to."""
    if not isinstance(item, Inst) or not item.args:
        return None
    last = item.args[-1]
    return last.name if is_branch(item) and isinstance(last, LabelRef) else None


def _all_reach(program: Encoded, offsets: Sequence[int], limit: int | None) -> bool:
    size = offsets[-1]
    if size <= (4 * 0x7FFF if limit is None else limit):
        return True
    places = {
        item.name: at
        for item, at in zip(program.items, offsets, strict=False)
        if isinstance(item, Label)
    }
    for item, at in zip(program.items, offsets, strict=False):
        target = places.get(_target(item) or "")
        if target is None:
            continue
        if not (in_reach(at, target) if limit is None else abs(target - at) <= limit):
            return False
    return True


def _may_stand(before: Item) -> bool:
    """Not between an instruction that reads its address and the code that relies on it."""
    return isinstance(before, Inst) and before.op != "s_getpc_b64"


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
class _Ways:
    """The labels that each island has a branch for, and where every branch goes."""

    program: Encoded
    before: tuple[int, ...]
    wanted: tuple[tuple[str, ...], ...]
    goals: Mapping[int, str]  # by the index of a branch, where it does not go to its label
    onward: Mapping[tuple[int, str], str]  # where an island's branch for a label goes

    @classmethod
    def found(
        cls, program: Encoded, offsets: Sequence[int], reach: int, apart: int
    ) -> _Ways | None:
        """None where a hop is too long with islands this far apart."""
        items = program.items
        before: list[int] = []
        for n, at in enumerate(offsets[:-1]):
            if at >= apart * (len(before) + 1) and _may_stand(items[n - 1]):
                before.append(n)
        indices = {item.name: n for n, item in enumerate(items) if isinstance(item, Label)}
        branches = [
            (n, label)
            for n, item in enumerate(items)
            if (label := _target(item)) is not None and label in indices
        ]
        wanted: list[set[str]] = [set() for _ in before]
        sizes = [0] * len(before)
        while True:
            layout = _Layout.of(before, offsets, sizes)
            places = {name: layout.at(n, offsets[n]) for name, n in indices.items()}
            try:
                goals, onward = _routes(layout, places, offsets, branches, wanted, reach)
            except _OutOfReach:
                return None
            grown = [_WORD * (len(w) + 1) if w else 0 for w in wanted]
            if grown == sizes:
                kept = tuple(tuple(sorted(w)) for w in wanted)
                return cls(program, layout.before, kept, goals, onward)
            sizes = grown

    def taken(self) -> Encoded:
        """The program with the islands."""
        out: list[Item] = []
        code: list[bytes] = []
        islands = dict(zip(self.before, range(len(self.before)), strict=True))
        for n, (item, data) in enumerate(zip(self.program.items, self.program.code, strict=True)):
            if n in islands:
                island = self._island(islands[n])
                out += island
                code += [bytes(_WORD * isinstance(i, Inst)) for i in island]
            if n in self.goals and isinstance(item, Inst):
                item = item.with_args((*item.args[:-1], LabelRef(self.goals[n])))
            out.append(item)
            code.append(data)
        return Encoded(tuple(out), tuple(code))

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
    layout: _Layout,
    places: Mapping[str, int],
    offsets: Sequence[int],
    branches: Sequence[tuple[int, str]],
    wanted: list[set[str]],
    reach: int,
) -> tuple[dict[int, str], dict[tuple[int, str], str]]:
    """Where branches and islands' branches go; adds to ``wanted``.

    Raises:
        _OutOfReach: no island is near enough.
    """

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
    for n, label in branches:
        at = layout.at(n, offsets[n])
        island = hop(at, at, label)
        if island is not None:
            goals[n] = _entry(label, island)
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


__all__ = ["expand_long_branches"]

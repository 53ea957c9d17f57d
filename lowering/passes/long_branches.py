"""Branches of more than 128 KiB: they go from island to island.

A branch reaches 32,767 dwords.  In code that is longer, islands stand every so often, which what
comes along jumps over; an island has a branch for each label that lies beyond the reach of a branch
before or behind it.  No register is needed, and the state of no unit changes on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sassxlate.disasm.rdna3 import encode, info
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, LabelRef, Origin
from sassxlate.lowering.codeobject.source_map import ISLAND

REACH = 120 << 10  # bytes that a branch may go; the rest is for the islands themselves
APART = 96 << 10  # bytes between two islands
_ISLAND = Origin(ISLAND)
_BRANCHES = ("s_call_b64",)


def _target(item: Item) -> str | None:
    """The label that a branch goes to."""
    if not isinstance(item, Inst) or not item.args:
        return None
    last = item.args[-1]
    branches = info(item.op).kind == "branch" or item.op in _BRANCHES
    return last.name if branches and isinstance(last, LabelRef) else None


def _size(item: Item) -> int:
    if isinstance(item, Label):
        return 0
    if any(isinstance(arg, LabelRef) for arg in item.args):
        return 4 if _target(item) is not None else 8
    return len(encode(item))


def expand_long_branches(
    items: Sequence[Item], reach: int = REACH, apart: int = APART
) -> list[Item]:
    """The program with branches that reach; as it was where all do."""
    at = 0
    offsets: list[int] = []
    places: dict[str, int] = {}
    islands: list[tuple[int, int]] = []  # (index of the item behind it, offset)
    for n, item in enumerate(items):
        if at >= apart * (len(islands) + 1) and _may_stand(items[n - 1]):
            islands.append((n, at))
        offsets.append(at)
        if isinstance(item, Label):
            places[item.name] = at
        at += _size(item)
    wanted: list[set[str]] = [set() for _ in islands]
    starts = [offset for _, offset in islands]

    def way(source: int, label: str) -> str:
        """The label to branch to from ``source``, on the way to ``label``."""
        goal = places[label]
        if abs(goal - source) <= reach:
            return label
        if goal > source:
            hop = max(i for i, s in enumerate(starts) if source < s <= source + reach)
        else:
            hop = min(i for i, s in enumerate(starts) if source - reach <= s < source)
        if label not in wanted[hop]:
            wanted[hop].add(label)
            way(starts[hop], label)
        return _entry(label, hop)

    out: list[Item] = []
    parts: list[int] = []  # where each island begins in ``out``
    behind = {n: i for i, (n, _) in enumerate(islands)}
    for n, item in enumerate(items):
        if n in behind:
            parts.append(len(out))
        label = _target(item)
        if label is not None and label in places and isinstance(item, Inst):
            goal = way(offsets[n], label)
            if goal != label:
                item = replace(item, args=(*item.args[:-1], LabelRef(goal)))
        out.append(item)
    for i in range(len(islands) - 1, -1, -1):
        if wanted[i]:
            out[parts[i] : parts[i]] = _island(i, sorted(wanted[i]), starts[i], way)
    return out


def _may_stand(before: Item) -> bool:
    """Not between an instruction that reads its address and what counts on that."""
    return isinstance(before, Inst) and before.op != "s_getpc_b64"


def _entry(label: str, island: int) -> str:
    return f"{label}_by{island}"


def _island(
    number: int, labels: Sequence[str], offset: int, way: Callable[[int, str], str]
) -> list[Item]:
    skip = f"Lisland_{number}"
    out: list[Item] = [Inst("s_branch", (LabelRef(skip),), origin=_ISLAND)]
    for label in labels:
        out.append(Label(_entry(label, number)))
        out.append(Inst("s_branch", (LabelRef(way(offset, label)),), origin=_ISLAND))
    return [*out, Label(skip)]


__all__ = ["expand_long_branches"]

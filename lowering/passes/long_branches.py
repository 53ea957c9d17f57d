"""Branches longer than 128 KiB: they go from island to island.

A branch reaches 32,767 dwords.  If one does not reach its label, islands are inserted at
regular distances, each with a branch over it; an island has a branch for each label that is
out of reach of a branch before or after it.  This needs no register, and changes no state on
the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sassxlate.disasm.rdna3 import Encoded
from sassxlate.disasm.rdna3.codec.assemble import in_reach, is_branch
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label, LabelRef
from sassxlate.lowering.codeobject.source_map import ISLAND

REACH = 120 << 10  # most bytes that a branch spans; the rest is for the islands themselves
APART = 96 << 10  # bytes between two islands
_ISLAND = InstOrigin(ISLAND)


def _target(item: Item) -> str | None:
    """The label that a branch goes to."""
    if not isinstance(item, Inst) or not item.args:
        return None
    last = item.args[-1]
    return last.name if is_branch(item) and isinstance(last, LabelRef) else None


def expand_long_branches(
    program: Encoded, reach: int = REACH, apart: int = APART, limit: int | None = None
) -> Encoded:
    """The program with all branches in reach; unchanged if they already are.

    ``limit``: most bytes that a branch may span without islands; by default the encoding's limit.
    """
    starts_at = program.offsets()
    if _all_reach(program, starts_at, limit):
        return program
    items = program.items
    places = {i.name: at for i, at in zip(items, starts_at, strict=False) if isinstance(i, Label)}
    islands: list[tuple[int, int]] = []  # (index of the item after it, offset)
    for n, at in enumerate(starts_at[:-1]):
        if at >= apart * (len(islands) + 1) and _may_stand(items[n - 1]):
            islands.append((n, at))
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
    code = list(program.code)
    parts: list[int] = []  # start of each island in ``out``
    index_of = {n: i for i, (n, _) in enumerate(islands)}
    for n, item in enumerate(items):
        if n in index_of:
            parts.append(len(out))
        label = _target(item)
        if label is not None and label in places and isinstance(item, Inst):
            goal = way(starts_at[n], label)
            if goal != label:
                item = replace(item, args=(*item.args[:-1], LabelRef(goal)))
        out.append(item)
    for i in range(len(islands) - 1, -1, -1):
        if wanted[i]:
            island = _island(i, sorted(wanted[i]), starts[i], way)
            out[parts[i] : parts[i]] = island
            code[parts[i] : parts[i]] = [bytes(4 * isinstance(j, Inst)) for j in island]
    return Encoded(tuple(out), tuple(code))


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

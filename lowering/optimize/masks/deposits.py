"""Lanes that are left waiting before it is known which.

Where some lanes leave a block, the rules add them to those that wait at a point; the others come
there later and find them.  All of the running lanes may be added instead, if none of them ends or
goes elsewhere before: what is in EXEC at the point anyway may be in the mask of those that wait,
too.  For an if that is EXEC saved once; for a loop it is done once, before it, instead of in each
round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sassxlate.cfg.graph import label_of
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, S
from sassxlate.lowering.codeobject.source_map import NEXT
from sassxlate.lowering.optimize.masks.edges import Part
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.target import EXEC
from sassxlate.lowering.verify.masks.operations import Jump
from sassxlate.lowering.verify.masks.proof import Walk
from sassxlate.lowering.verify.masks.rows import Row, row

Change = list[Row]


def of_loops(
    rows: Sequence[Row], walk: Walk, part: Sequence[Part], regs: RegisterMap
) -> Iterator[Change]:
    """For each loop and each point where its lanes wait that leave it: the rows with one addition
    before the loop and none in it."""
    places = {one.label: n for n, one in enumerate(rows) if one.label}
    seen: set[tuple[int, S]] = set()
    for n in sorted(walk.taken):
        what = rows[n].was
        if not isinstance(what, Jump) or places[what.label] >= n or part[n] != "edge":
            continue
        head = places[what.label]
        for key, slot in regs.ready.items():  # of points after the loop
            if key <= 0 or not isinstance(slot, S) or places.get(label_of(key), 0) < n:
                continue
            inside = [m for m in range(head, n) if part[m] == "edge" and _adds(rows[m], slot)]
            if inside and (head, slot) not in seen:
                seen.add((head, slot))
                yield _before_loop(rows, head, inside, slot)


def _before_loop(rows: Sequence[Row], head: int, inside: Sequence[int], slot: S) -> Change:
    out = [one.other(None) if n in inside else one for n, one in enumerate(rows)]
    every = Inst("s_or_b32", (slot, slot, EXEC), origin=InstOrigin(NEXT))
    out.insert(head, row(None, every))
    return out


def of_branches(
    rows: Sequence[Row], part: Sequence[Part], regs: RegisterMap
) -> Iterator[tuple[int, Row]]:
    """Each addition of some lanes to those that wait at a point, with one of all that run."""
    slots = {slot for key, slot in regs.ready.items() if key > 0 and isinstance(slot, S)}
    for n, one in enumerate(rows):
        slot = one.old.args[0] if one.old is not None and one.old.args else None
        if part[n] != "edge" or not isinstance(slot, S) or slot not in slots:
            continue
        if _adds(one, slot) and one.old is not None and one.old.args[2] != EXEC:
            yield n, one.other(replace(one.old, args=(slot, slot, EXEC)))


def _adds(one: Row, slot: S) -> bool:
    old = one.old
    return old is not None and old.op == "s_or_b32" and old.args[:2] == (slot, slot)


__all__ = ["of_branches", "of_loops"]

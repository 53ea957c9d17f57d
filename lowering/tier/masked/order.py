"""The order in which a wave comes to the blocks of a kernel, as loops in loops.

In each turn of a loop the wave comes to each of its blocks once, and a block is run if lanes wait
there.  So the order of blocks decides how often a loop is run, and not what a lane does; the flow
of control between blocks is data (:mod:`.blocks`), and only these loops are LLVM's.  Each cycle of
the graph is in a loop, whatever its shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from sassxlate.cfg import Cfg
from sassxlate.cfg.build import is_conditional
from sassxlate.cfg.dominators import components

Item: TypeAlias = "int | Loop"


@dataclass(frozen=True, slots=True)
class Loop:
    """``blocks``: all inside, by index; ``again``: those that lanes may come to from a block that
    is not before them, so that another turn is needed."""

    items: tuple[Item, ...]
    blocks: frozenset[int]
    again: tuple[int, ...]


def ways(cfg: Cfg) -> list[list[int]]:
    """By block index, where lanes go on after it."""
    out: list[list[int]] = []
    for block in cfg.blocks:
        skips = is_conditional(block.last)  # a guarded call
        to = {e.dst for e in cfg.successors[block.index] if e.kind != "back" or skips}
        section = cfg.collectives.by_sync.get(block.last.offset)
        if section is not None:
            to.add(cfg.by_start[cfg.collectives.leader(section.sync).sync + 16])
        section = cfg.collectives.by_end.get(block.last.offset)
        if section is not None:
            to |= {cfg.by_start[s.target] for s in cfg.collectives.members(section.sync)}
        out.append(sorted(to))
    return out


def arranged(after: Sequence[Sequence[int]]) -> Loop:
    """All blocks, the first of which is the entry, as the items of an outermost loop."""
    every = frozenset(range(len(after)))
    items = _items(every, every, after)
    place = {n: at for at, n in enumerate(_flat(items))}
    return _closed(items, every, after, place)


def _items(
    nodes: frozenset[int], free: frozenset[int], after: Sequence[Sequence[int]]
) -> list[Item]:
    """The blocks ``nodes`` in order; edges to others than ``free`` do not count."""
    edges = [[to for to in some if to in free] for some in after]
    parts = components(nodes, edges)
    part_of = {n: at for at, part in enumerate(parts) for n in part}
    missing = [0] * len(parts)
    for n in nodes:
        for to in edges[n]:
            if to in part_of and part_of[to] != part_of[n]:
                missing[part_of[to]] += 1
    ready = [(min(part), at) for at, part in enumerate(parts) if not missing[at]]
    heapify(ready)
    out: list[Item] = []
    while ready:
        _, at = heappop(ready)
        part = parts[at]
        first = min(part)
        if len(part) > 1 or first in edges[first]:
            head = _entry(part, nodes, after)
            inside: list[Item] = [head, *_items(part - {head}, free - {head}, after)]
            out.append(Loop(tuple(inside), part, ()))
        else:
            out.append(first)
        for n in part:
            for to in edges[n]:
                if to in part_of and part_of[to] != at:
                    missing[part_of[to]] -= 1
                    if not missing[part_of[to]]:
                        heappush(ready, (min(parts[part_of[to]]), part_of[to]))
    return out


def _entry(part: frozenset[int], nodes: Iterable[int], after: Sequence[Sequence[int]]) -> int:
    """The first of the blocks by which lanes come into a loop."""
    entered = {to for n in range(len(after)) if n not in part for to in after[n]} & part
    return min(entered or part)


def _flat(items: Iterable[Item]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Loop):
            yield from _flat(item.items)
        else:
            yield item


def _closed(
    items: Iterable[Item], blocks: frozenset[int], after: Sequence[Sequence[int]],
    place: dict[int, int],
) -> Loop:  # fmt: skip
    inside = tuple(
        _closed(i.items, i.blocks, after, place) if isinstance(i, Loop) else i for i in items
    )
    again = {to for n in blocks for to in after[n] if to in blocks and place[to] <= place[n]}
    return Loop(inside, blocks, tuple(sorted(again)))


__all__ = ["Item", "Loop", "arranged", "ways"]

"""Dominators, post-dominators and natural loops of a control-flow graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sassxlate.cfg.dominators import immediate_dominators
from sassxlate.cfg.graph import Cfg
from sassxlate.disasm.sass.traits import traits

EXIT = -1


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: all blocks that reach ``latches`` without leaving through ``header``."""

    header: int
    latches: tuple[int, ...]
    body: frozenset[int]


@dataclass(frozen=True, slots=True)
class Structure:
    """Immediate dominators by block index (the entry's is itself); EXIT is a virtual last block."""

    idom: Mapping[int, int]
    ipdom: Mapping[int, int]
    loops: tuple[Loop, ...]

    def depth(self, block: int) -> int:
        """The number of loops around the block."""
        return sum(block in loop.body for loop in self.loops)

    def dominates(self, a: int, b: int) -> bool:
        while b != a:
            up = self.idom.get(b, b)
            if up == b:
                return False
            b = up
        return True


def structure(cfg: Cfg) -> Structure:
    """Dominators, and loops from the back edges."""
    if not cfg.blocks:
        return Structure({}, {}, ())
    # Without "back": the path through the callee exists as call and ret edges.
    ways = dict.fromkeys((e.src, e.dst) for e in cfg.edges if e.kind != "back")
    after, before = _lists(ways)
    idom = immediate_dominators(after, 0)
    leaves = [
        b.index
        for b in cfg.blocks
        if traits(b.last).transfer == "exit" or not cfg.successors[b.index]
    ]
    ipdom = immediate_dominators({**before, EXIT: leaves}, EXIT)
    return Structure(idom, ipdom, natural_loops(ways, idom))


def _lists(ways: Iterable[tuple[int, int]]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Each node's successors and predecessors."""
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for source, target in ways:
        after.setdefault(source, []).append(target)
        before.setdefault(target, []).append(source)
    return after, before


def natural_loops(ways: Collection[tuple[int, int]], idom: Mapping[int, int]) -> tuple[Loop, ...]:
    """The loops of a graph, given by its arcs, by header.  ``idom`` has the nodes that can be
    reached; others, such as what follows the call of a function that does not return, are in no
    loop."""
    order = _preorder(idom)
    _, before = _lists(ways)
    latches: dict[int, list[int]] = {}
    for src, dst in ways:
        if src not in order:
            continue
        first, last = order[dst]
        if first <= order[src][0] <= last:  # dst dominates src
            latches.setdefault(dst, []).append(src)
    loops: list[Loop] = []
    for header, ends in sorted(latches.items()):
        body = {header}
        work = list(ends)
        while work:
            b = work.pop()
            if b not in body:
                body.add(b)
                work.extend(p for p in before.get(b, ()) if p in order)
        loops.append(Loop(header, tuple(sorted(ends)), frozenset(body)))
    return tuple(loops)


def _preorder(idom: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """First and last number of each node's subtree of the dominator tree: a node dominates another
    if and only if the other's first number lies in its range."""
    kids: dict[int, list[int]] = {n: [] for n in idom}
    roots: list[int] = []
    for node, up in idom.items():
        (roots if up == node else kids[up]).append(node)
    first: dict[int, int] = {}
    out: dict[int, tuple[int, int]] = {}
    work = [(r, False) for r in roots]
    while work:
        node, done = work.pop()
        if done:
            out[node] = (first[node], len(first) - 1)
            continue
        first[node] = len(first)
        work.append((node, True))
        work += [(k, False) for k in kids[node]]
    return out


def shape_of(
    count: int, ways: Sequence[tuple[int, int]]
) -> tuple[frozenset[int], tuple[Loop, ...], frozenset[tuple[int, int]]]:
    """Of ``count`` nodes with arcs between them: the nodes reachable from node 0, natural loops
    and back edges."""
    if not count:
        return frozenset(), (), frozenset()
    arcs = dict.fromkeys(ways)
    after, _ = _lists(arcs)
    idom = immediate_dominators(after, 0)
    found = natural_loops(arcs, idom)
    back = frozenset((latch, loop.header) for loop in found for latch in loop.latches)
    return frozenset(idom), found, back

"""Dominators, post-dominators and natural loops of a control-flow graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

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


def _graph(cfg: Cfg) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(cfg.blocks)))
    for e in cfg.edges:
        if e.kind != "back":  # the path through the callee exists as call and ret edges
            graph.add_edge(e.src, e.dst)
    return graph


def structure(cfg: Cfg) -> Structure:
    """Dominators by networkx (Cooper, Harvey, Kennedy); loops from the back edges."""
    if not cfg.blocks:
        return Structure({}, {}, ())
    graph = _graph(cfg)
    idom = dict(nx.immediate_dominators(graph, 0))
    idom[0] = 0
    reverse = graph.reverse(copy=True)
    reverse.add_node(EXIT)
    for block in cfg.blocks:
        leaves = traits(block.last).transfer == "exit" or not cfg.successors[block.index]
        if leaves:
            reverse.add_edge(EXIT, block.index)
    ipdom = dict(nx.immediate_dominators(reverse, EXIT))
    ipdom[EXIT] = EXIT
    return Structure(idom, ipdom, natural_loops(graph, idom))


def natural_loops(graph: nx.DiGraph[int], idom: Mapping[int, int]) -> tuple[Loop, ...]:
    """The loops of a graph, by header.  ``idom`` has the nodes that can be reached; others, such as
    what follows the call of a function that does not return, are in no loop."""
    order = _preorder(idom)
    latches: dict[int, list[int]] = {}
    for src, dst in graph.edges:
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
                work.extend(p for p in graph.predecessors(b) if p in order)
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
    to: list[list[int]] = [[] for _ in range(count)]
    for source, target in ways:
        to[source].append(target)
    reached, work = {0}, [0]
    while work:
        new = [n for n in dict.fromkeys(to[work.pop()]) if n not in reached]
        reached.update(new)
        work += new
    part: nx.DiGraph[int] = nx.DiGraph()
    part.add_nodes_from(sorted(reached))
    for source, target in ways:
        if source in reached:
            part.add_edge(source, target)
    idom = dict(nx.immediate_dominators(part, 0)) | {0: 0}
    found = natural_loops(part, idom)
    back = frozenset((latch, loop.header) for loop in found for latch in loop.latches)
    return frozenset(reached), found, back

"""Immediate dominators and strongly connected components of a graph of numbered nodes.

Written out, because importing networkx takes a sixth of a command's or the service's start; it is
the witness of the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Successors = Mapping[int, Iterable[int]]


def immediate_dominators(after: Successors, start: int) -> dict[int, int]:
    """By node that can be reached from ``start``, its immediate dominator; the start's is itself.

    ``after`` has each node's successors; a node that it lacks has none.  By Cooper, Harvey and
    Kennedy, "A Simple, Fast Dominance Algorithm".
    """
    order = _postorder(after, start)
    number = {node: n for n, node in enumerate(order)}
    before: dict[int, list[int]] = {node: [] for node in order}
    for node in order:
        for to in after.get(node, ()):
            before[to].append(node)
    idom = {start: start}
    changed = True
    while changed:
        changed = False
        for node in reversed(order):
            if node == start:
                continue
            # One at least is known: the node from which the search came here.
            found, *others = (n for n in before[node] if n in idom)
            for other in others:
                while found != other:
                    if number[found] < number[other]:
                        found = idom[found]
                    else:
                        other = idom[other]
            if node not in idom or idom[node] != found:
                idom[node] = found
                changed = True
    return idom


def _postorder(after: Successors, start: int) -> list[int]:
    seen, order = {start}, list[int]()
    work = [(start, iter(after.get(start, ())))]
    while work:
        node, rest = work[-1]
        for to in rest:
            if to not in seen:
                seen.add(to)
                work.append((to, iter(after.get(to, ()))))
                break
        else:
            order.append(node)
            work.pop()
    return order


def components(
    nodes: Iterable[int], after: Sequence[Iterable[int]] | Mapping[int, Iterable[int]]
) -> list[frozenset[int]]:
    """The strongly connected components of the graph that ``nodes`` and the edges between them
    are, each after those that it leads to.  By Tarjan."""
    inside = sorted(set(nodes))
    among = set(inside)
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []  # visited nodes whose component is not known yet
    done: set[int] = set()
    found: list[frozenset[int]] = []
    for first in inside:
        if first in number:
            continue
        work = [(first, iter(among.intersection(after[first])))]
        number[first] = low[first] = len(number)
        path.append(first)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in number:
                    number[to] = low[to] = len(number)
                    path.append(to)
                    work.append((to, iter(among.intersection(after[to]))))
                    break
                if to not in done:
                    low[node] = min(low[node], number[to])
            else:
                work.pop()
                if work:
                    up = work[-1][0]
                    low[up] = min(low[up], low[node])
                if low[node] == number[node]:
                    part = _cut(path, node)
                    done |= part
                    found.append(part)
    return found


def _cut(path: list[int], node: int) -> frozenset[int]:
    """The end of a path from a node on, which leaves it."""
    at = len(path) - 1
    while path[at] != node:
        at -= 1
    part = frozenset(path[at:])
    del path[at:]
    return part


__all__ = ["components", "immediate_dominators"]

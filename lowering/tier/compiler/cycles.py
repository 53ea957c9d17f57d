"""Cycles of a module's functions that have several entries.

LLVM's code generation for AMD puts a block of choices before such a cycle (FixIrreducible).
Where a block of the cycle goes to its header or to another of its entries, LLVM 22 loses what the
other entry's phis take from that block: they become poison, a branch on them anything.  Neither its
verifier nor its assertions notice.  So no such module is compiled (paths_s15_0048 of the random
kernels was wrong beside an H200; `test_cycles.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sassxlate.cfg.dominators import immediate_dominators
from sassxlate.lowering.tier.compiler.ssa import LABEL, NAME

_TO: Final = re.compile(rf"label ({NAME})")


def _graphs(text: str) -> Iterator[dict[str, list[str]]]:
    """Of each function, the blocks that come after each block; the first block's name is ""."""
    after: dict[str, list[str]] | None = None
    block = ""
    for line in text.splitlines():
        if line.startswith("define "):
            after, block = {}, ""
            after[block] = []
        elif after is None:
            continue
        elif line == "}":
            yield after
            after = None
        elif label := LABEL.match(line):
            block = "%" + label[1]
            if list(after) == [""] and not after[""]:
                after[""] = [block]  # the first block has a name
            after[block] = []
        elif "label %" in line:
            after[block] += _TO.findall(line)


def _cycle(after: dict[str, list[str]]) -> str | None:
    numbers = {block: n for n, block in enumerate(after)}
    graph = {numbers[block]: [numbers[to] for to in ends] for block, ends in after.items()}
    above = immediate_dominators(graph, 0)
    # In the order of a search each edge backwards must go to a block that all ways come through.
    for at, to in _backwards(graph):
        while above[at] != at and at != to:
            at = above[at]
        if at != to:
            return next(block for block, n in numbers.items() if n == to)
    return None


def _backwards(graph: dict[int, list[int]]) -> Iterator[tuple[int, int]]:
    """The edges of a depth-first search from node 0 to a node that it has not left yet."""
    inside, seen = {0}, {0}
    work = [(0, iter(graph[0]))]
    while work:
        node, rest = work[-1]
        for to in rest:
            if to in inside:
                yield node, to
            elif to not in seen:
                seen.add(to)
                inside.add(to)
                work.append((to, iter(graph[to])))
                break
        else:
            inside.remove(node)
            work.pop()


def several_entries(text: str) -> str | None:
    """An entry of a cycle that has another one, by the block's name; None if there is none."""
    return next((found for after in _graphs(text) if (found := _cycle(after)) is not None), None)


__all__ = ["several_entries"]

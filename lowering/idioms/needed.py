"""Registers that later code needs, where a call needs what its function's results depend on.

`cfg.liveness` takes a function to read what any of its instructions reads; nvcc's functions read
registers under guards that never use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sassxlate.cfg import Cfg, Liveness
from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.idioms.expressions import Expressions
from sassxlate.lowering.idioms.states import NoExpression, State, through

Refs = frozenset[RegRef]
Needs = Mapping[RegRef, Refs]  # for each register that a function writes, what it depends on
_INSIDE = ("taken", "fall", "sync")


def summary(cfg: Cfg, entry: int) -> Needs | None:
    """What the results of a function depend on; None if it is more than expressions."""
    graph = Expressions()
    of: dict[int, RegRef] = {}

    def given(ref: RegRef) -> int:
        width = 32 if ref.file in ("R", "UR") else 1
        n = graph.leaf("given", width, ord(ref.file[0]), len(ref.file), ref.index)
        of[n] = ref
        return n

    try:
        end = through(cfg, entry, State(graph, given))
    except NoExpression:
        return None

    @cache
    def inputs(n: int) -> Refs:
        if n in of:
            return frozenset([of[n]])
        return frozenset[RegRef]().union(*(inputs(a) for a in graph.args[n]))

    return {ref: inputs(n) for ref, n in end.registers.items()}


def needed(cfg: Cfg, live: Liveness, functions: Mapping[int, Needs]) -> list[Refs]:
    """By block index, what is needed on entry to it.  ``functions``: summaries by the index of the
    first block; other calls need what ``live`` says."""
    into: list[Refs] = [frozenset()] * len(cfg.blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(cfg.blocks):
            edges = cfg.successors[block.index]
            called = [e.dst for e in edges if e.kind == "call"]
            known = called and all(n in functions for n in called)
            out = frozenset[RegRef]().union(*(into[e.dst] for e in edges if e.kind in _INSIDE))
            if (called and not known) or any(e.kind == "ret" for e in edges):
                out |= live.live_out[block.index]
            elif called:
                after = frozenset[RegRef]().union(*(into[e.dst] for e in edges if e.kind == "back"))
                for n in called:
                    needs = functions[n]
                    out |= after - needs.keys()
                    out |= frozenset[RegRef]().union(*(needs[r] for r in after & needs.keys()))
            for ins in reversed(block.instructions):
                out = live_before(ins, out)
            if out != into[block.index]:
                into[block.index] = out
                changed = True
    return into


__all__ = ["needed", "summary"]

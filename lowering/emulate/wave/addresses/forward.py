"""What is known of VGPRs at the start of each block, followed forward until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sassxlate.cfg.rdna3_flow import Flow
from sassxlate.disasm.rdna3.instruction import Inst

_F = TypeVar("_F")


def at_starts(
    flow: Flow,
    first: dict[int, _F],
    step: Callable[[Inst, dict[int, _F]], None],
    meet: Callable[[dict[int, _F], dict[int, _F]], dict[int, _F]],
) -> dict[int, dict[int, _F]]:
    """By block: facts by register, ``first`` at the entry.  ``step`` changes facts by one
    instruction; ``meet`` gives what two ways into a block have in common, and must only lose."""
    before = {flow.entry: first}
    work = [flow.entry]
    while work:
        start = work.pop()
        block, facts = flow.blocks[start], dict(before[start])
        for one in block.steps:
            step(one.inst, facts)
        for succ in block.succs:
            if succ not in flow.blocks:
                continue
            old = before.get(succ)
            new = dict(facts) if old is None else meet(old, facts)
            if new != old:
                before[succ] = new
                work.append(succ)
    return before


__all__ = ["at_starts"]

"""Arms of a branch that is taken where no lane is active, as straight code.

Where EXEC is 0, a vector operation without memory changes nothing but scalar registers, which get
back what they had.  A host that runs a few such operations for nothing takes less time than one
that foresees a branch wrongly, and a block's registers are put together once, not three times.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow, MachineBlock
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.emulate.wave import alu
from sassxlate.lowering.emulate.wave.straight import NOTHING

LONGEST = 16  # instructions of an arm


@dataclass(frozen=True, slots=True)
class Arm:
    """The steps that ``s_cbranch_execz`` skips, without a jump at their end; ``next`` is the block
    where both ways go on, ``alone`` whether nothing else leads there."""

    block: int
    steps: tuple[DecodedStep, ...]
    next: int
    alone: bool


def _harmless(inst: Inst) -> bool:
    if inst.op in NOTHING:
        return not inst.op.endswith("_mode")
    return not inst.dpp and inst.op.startswith(("v_", "s_")) and alu.lookup(inst.op) is not None


def _arm(flow: Flow, block: MachineBlock, leading: Mapping[int, set[int]]) -> Arm | None:
    last = block.steps[-1]
    if last.inst.op != "s_cbranch_execz" or len(block.succs) != 2:
        return None
    after, start = block.succs
    if start != last.next or start in flow.cuts or leading[start] != {block.start}:
        return None
    arm = flow.blocks[start]
    if arm.succs != (after,) or after in (block.start, start):
        return None
    steps = tuple(s for s in arm.steps if s.inst.op != "s_branch")
    if len(steps) > LONGEST or not all(_harmless(s.inst) for s in steps):
        return None
    alone = leading[after] == {block.start, start}
    return Arm(start, steps, after, alone)


def heads(found: Mapping[int, Arm]) -> dict[int, int]:
    """By block the one whose code it is a part of, if that is not its own."""
    into = {arm.block: start for start, arm in found.items()}
    into |= {arm.next: start for start, arm in found.items() if arm.alone}

    def first(block: int) -> int:
        while block in into:
            block = into[block]
        return block

    return {block: first(block) for block in into}


def arms(flow: Flow, without: Set[int] = frozenset()) -> dict[int, Arm]:
    """By the block that the branch ends; not of blocks ``without`` code."""
    leading: dict[int, set[int]] = {start: set() for start in flow.blocks}
    for start, block in flow.blocks.items():
        for succ in block.succs:
            leading[succ].add(start)
    for start in (flow.entry, *flow.indirect):
        leading.setdefault(start, set()).add(-1)
    found = {start: _arm(flow, block, leading) for start, block in flow.blocks.items()}
    return {
        start: arm
        for start, arm in found.items()
        if arm is not None and without.isdisjoint((start, arm.block, arm.next))
    }


__all__ = ["LONGEST", "Arm", "arms", "heads"]

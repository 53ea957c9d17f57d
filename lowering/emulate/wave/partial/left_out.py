"""Host code of what runs: blocks that no wave has entered are left out.

Where a wave goes on with such a block, it leaves the compiled code for good: its registers go to a
buffer, and the library goes on with the baseline tier's code of that block (`SxRuntime.leave`).
Both tiers' blocks are the same, and so is what they keep in memory: LDS, scratch, fuel, counters.

Registers that no block from there on reads are not stored.  A way out costs code, too, for each
vector as much as for an instruction; so only a part that is more than its ways in is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sassxlate.cfg.rdna3_flow import Flow, MachineBlock
from sassxlate.disasm.rdna3.reads_writes import FIRST, SGPR_BITS, effects, keeps_part
from sassxlate.lowering.emulate.wave import indexed
from sassxlate.lowering.emulate.wave.masks.every_lane import EveryLane

LEAST = 1000  # instructions of a kernel of which something may be left out
_WAY_OUT = 8  # instructions that a way out is worth beside its registers
_SCALARS = 4  # as many, or one VGPR, are worth one (measured: 0.9 for a VGPR)
SCC = 1 << FIRST["scc"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """``blocks`` are left out; ``live`` says what is read from those on that a block of the rest
    leads to, a set of state (`reads_writes.FIRST`) by the block's start."""

    blocks: frozenset[int]
    live: Mapping[int, int]

    def vgprs(self) -> dict[int, int]:
        """The VGPRs that are read from such a block on, one bit each."""
        return {block: live >> FIRST["v"] for block, live in self.live.items()}


NOTHING = LeftOut(frozenset(), {})


def left_out(flow: Flow, numbers: Iterable[int] | None, every: EveryLane) -> LeftOut:
    """What to leave out of a kernel of whose blocks, by their addresses, those with these numbers
    have been entered; None: all."""
    if numbers is None or not may_be_partial(flow):
        return NOTHING
    starts = sorted(flow.blocks)
    compiled = _reached(flow, {starts[n] for n in numbers if n < len(starts)} | {flow.entry})
    live = _live(flow, every)
    out = set[int]()
    for part in _parts(flow, compiled):
        ways = _ways_in(flow, compiled, part)
        size = sum(len(flow.blocks[start].steps) for start in part)
        if size > sum(_worth(live[start]) for start in ways):
            out |= part
    ways = _ways_in(flow, flow.blocks.keys() - out, out)
    return LeftOut(frozenset(out), {start: live[start] for start in ways})


def may_be_partial(flow: Flow) -> bool:
    """Whether blocks may be left out: of a kernel that is not small, and names its registers."""
    steps = [step for block in flow.blocks.values() for step in block.steps]
    return len(steps) >= LEAST and not any(s.inst.op in indexed.EMITTERS for s in steps)


def _reached(flow: Flow, entered: set[int]) -> set[int]:
    """Those that the entry leads to by way of others of them."""
    seen, work = {flow.entry}, [flow.entry]
    while work:
        for succ in flow.blocks[work.pop()].succs:
            if succ in entered and succ not in seen:
                seen.add(succ)
                work.append(succ)
    return seen


def _parts(flow: Flow, compiled: set[int]) -> list[set[int]]:
    """The other blocks, in parts that no jumps connect."""
    near: dict[int, set[int]] = {start: set() for start in flow.blocks if start not in compiled}
    for start, others in near.items():
        for succ in flow.blocks[start].succs:
            if succ in near:
                others.add(succ)
                near[succ].add(start)
    parts: list[set[int]] = []
    seen = set[int]()
    for start in near:
        if start in seen:
            continue
        part, work = {start}, [start]
        while work:
            new = near[work.pop()] - part
            part |= new
            work += new
        seen |= part
        parts.append(part)
    return parts


def _ways_in(flow: Flow, compiled: Iterable[int], part: set[int]) -> set[int]:
    return {s for start in compiled for s in flow.blocks[start].succs if s in part}


def _worth(live: int) -> float:
    """Of the way to a block, in instructions."""
    vectors, scalars = (live >> FIRST["v"]).bit_count(), (live & SGPR_BITS).bit_count()
    return _WAY_OUT + vectors + scalars / _SCALARS


def _live(flow: Flow, every: EveryLane) -> dict[int, int]:
    """What is read from a block's start on.  A write to a VGPR leaves the lanes that are not
    active, so it ends what was there only where all are."""
    used, new = dict[int, int](), dict[int, int]()
    kept = sum(1 << FIRST["v"] + i for i in every.kept)
    for start, block in flow.blocks.items():
        used[start], new[start] = _of_block(block, every, kept)
    before: dict[int, list[int]] = {start: [] for start in flow.blocks}
    for start, block in flow.blocks.items():
        for succ in block.succs:
            before[succ].append(start)
    live, work = dict(used), list(flow.blocks)
    while work:
        here = work.pop()
        for pred in before[here]:
            more = live[here] & ~new[pred] & ~live[pred]
            if more:
                live[pred] |= more
                work.append(pred)
    return live


def _of_block(block: MachineBlock, every: EveryLane, kept: int) -> tuple[int, int]:
    used = new = 0
    for step in block.steps:
        found = effects(step.inst)
        used |= found.read_bits & ~new
        written = found.write_bits
        if step.pc not in every.at or keeps_part(step.inst):
            written &= SGPR_BITS | SCC
        new |= written & ~kept
    return used, new


__all__ = ["LEAST", "NOTHING", "SCC", "LeftOut", "left_out", "may_be_partial"]

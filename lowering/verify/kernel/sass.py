"""One lane of a kernel of SASS, through all of its ways at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from sassxlate.cfg import Cfg
from sassxlate.cfg.build import conditions, is_state_test
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.verify.kernel.contents import Contents
from sassxlate.lowering.verify.sass.lane import SassLane
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")
# A lane's registers and memory do not change where it waits for others of its warp.
_PASSED = frozenset({"BSYNC", "WARPSYNC", "NOP"})
_ENDS = frozenset({"BRA", "EXIT", *_PASSED})


def order(cfg: Cfg) -> list[int]:
    """The blocks, each after all that lead to it.  Raises Undecided for a loop."""
    left = {b.index: len(cfg.predecessors[b.index]) for b in cfg.blocks}
    ready = [b.index for b in cfg.blocks if not left[b.index]]
    out: list[int] = []
    while ready:
        at = ready.pop()
        out.append(at)
        for edge in cfg.successors[at]:
            left[edge.dst] -= 1
            if not left[edge.dst]:
                ready.append(edge.dst)
    if len(out) != len(cfg.blocks):
        raise Undecided("a loop")
    return out


def run(cfg: Cfg, together: Sequence[bool], lane: SassLane[T], memory: Contents[T]) -> None:
    """Follows the kernel from its entry.  ``together``: of each block, whether all lanes of a warp
    are there; only there may a register that they share be written.  Raises Undecided."""
    d = lane.d
    arriving: dict[int, list[tuple[T, Mapping[RegRef, T]]]] = {0: [(d.const(1, 1), {})]}
    for index in order(cfg):
        path, values = _joined(lane, arriving.get(index, []))
        lane.values, memory.path = values, path
        block = cfg.blocks[index]
        last = block.last if traits(block.last).ends_block else None
        for ins in block.instructions:
            if ins is not last:
                _check(ins, together[index])
                lane.run(ins)
        taken = d.const(0, 1) if last is None else _leaves(lane, last)
        for edge in cfg.successors[index]:
            if edge.kind not in ("taken", "fall", "sync"):
                raise Undecided(f"{block.last.mnemonic}: {edge.kind}")
            goes = taken if edge.kind == "taken" else d.not_(taken)
            way = (d.and_(path, goes), dict(lane.values))
            arriving.setdefault(edge.dst, []).append(way)


def _check(ins: Instruction, together: bool) -> None:
    t = traits(ins)
    if t.order == "memory":
        raise Undecided(f"{ins.mnemonic}: the order of accesses")
    if any(m in ins.modifiers for m in ("STRONG", "MMIO")):
        raise Undecided("an access with an order")
    if ins.mnemonic == "R2UR":
        raise Undecided("R2UR")
    if not together and any(ref.file in ("UR", "UP") for ref in ins.writes):
        raise Undecided("a shared register that is written where lanes run apart")


def _leaves(lane: SassLane[T], last: Instruction) -> T:
    """Whether the lane takes the branch, or ends."""
    d = lane.d
    if last.mnemonic not in _ENDS or is_state_test(last):
        raise Undecided(f"{last.mnemonic} at the end of a block")
    if last.mnemonic in _PASSED:
        return d.const(0, 1)
    out = d.const(1, 1)
    for pred in conditions(last):
        if pred.index == 7:
            holds = d.const(int(not pred.inv), 1)
        else:
            value = lane.get(RegRef(pred.file, pred.index))
            holds = d.not_(value) if pred.inv else value
        out = d.and_(out, holds)
    return out


def _joined(
    lane: SassLane[T], arriving: list[tuple[T, Mapping[RegRef, T]]]
) -> tuple[T, dict[RegRef, T]]:
    d = lane.d
    if not arriving:
        return d.const(0, 1), {}
    path, values = arriving[0][0], dict(arriving[0][1])
    for other, theirs in arriving[1:]:
        for ref in {*values, *theirs}:
            mine, yours = (v.get(ref) for v in (values, theirs))
            if mine is None or yours is None:
                lane.values = {}
                never = lane.get(ref)  # what the register held at the start
                mine, yours = never if mine is None else mine, never if yours is None else yours
            values[ref] = mine if mine is yours else d.select(other, yours, mine)
        path = d.or_(path, other)
    return path, values


__all__ = ["order", "run"]

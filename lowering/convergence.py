"""The convergence machine's plan: where lanes may wait, and in what order they are resumed.

Lanes of a wave that are not running wait at *points*: the head of a block that a divergent branch
left them at, or a sync point (BSYNC, WARPSYNC, BAR) whose other lanes are still missing.  Each
point has a ready mask.  Running lanes go on in layout order; where EXEC becomes empty, the next
point in layout order takes over, and behind the last one a scan resumes the first point that can go
on.  So the lowest waiting block runs first, which brings diverged lanes together again as early as
the layout allows; the sync points alone decide what must wait for what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sassxlate.cfg import Block, Cfg, Liveness, Region, Uniformity, regions
from sassxlate.cfg.build import SIZE, is_conditional
from sassxlate.disasm.sass.ir import Imm, Instruction, Label, Reg, RegRef
from sassxlate.errors import LoweringError, Where

SyncKind: TypeAlias = Literal["bsync", "warpsync", "barrier"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place where lanes may wait.  ``key``: a block's offset, or a sync instruction's plus 1."""

    key: int
    block: int
    sync: SyncKind | None = None

    @property
    def label(self) -> str:
        return f"Lsync_{self.key - 1:04x}" if self.sync else f"L_{self.key:04x}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What the emission of control flow needs to know about one kernel."""

    cfg: Cfg
    uniformity: Uniformity
    regions: tuple[Region, ...]
    sync_region: Mapping[int, int]
    points: tuple[Point, ...]  # in layout order
    heads: frozenset[int]  # byte offsets of blocks that are points
    syncs: Mapping[int, Point]  # block index -> its sync point
    pending_live: frozenset[RegRef]

    def next_point(self, block: int, *, behind_sync: bool = True) -> Point | None:
        """The first point in layout order behind block ``block``'s body (behind its sync point)."""
        for point in self.points:
            if point.block > block or (
                point.block == block and point.sync and not behind_sync
            ):
                return point
        return None


def branch_target(ins: Instruction) -> int:
    label = ins.get("target")
    if not isinstance(label, Label):
        raise LoweringError(
            "SX0412", "branch without a target", Where(offset=ins.offset, inst=ins.text)
        )
    return label.target


def is_state_test(ins: Instruction) -> bool:
    """BRA.DIV and BRA.CONV: all running lanes go the same way."""
    return ins.mnemonic == "BRA" and (ins.has("DIV") or ins.has("CONV"))


def sync_kind(ins: Instruction) -> SyncKind | None:
    match ins.mnemonic:
        case "BSYNC":
            return "bsync"
        case "WARPSYNC":
            return "warpsync"
        case "BAR" if ins.has("SYNC"):
            return "barrier"
        case _:
            return None


def needs_sync_point(block: Block, uniformity: Uniformity) -> bool:
    """A sync instruction in a converged block has nobody to wait for (folded away)."""
    return sync_kind(block.last) is not None and not uniformity.converged[block.index]


def make_plan(cfg: Cfg, live: Liveness, uniformity: Uniformity) -> Plan:
    """Finds all points; grows the set of waiting blocks until no jump needs a new one."""
    found, sync_region = regions(cfg)
    heads: set[int] = set()
    changed = True
    while changed:
        before = len(heads)
        for block in cfg.blocks:
            heads |= _deposits(cfg, block, uniformity, heads)
        changed = len(heads) != before
    points: list[Point] = []
    syncs: dict[int, Point] = {}
    for block in cfg.blocks:
        if block.start in heads:
            points.append(Point(block.start, block.index))
        if needs_sync_point(block, uniformity):
            point = Point(block.last.offset + 1, block.index, sync_kind(block.last))
            points.append(point)
            syncs[block.index] = point
    waiting: set[RegRef] = set()
    for point in points:
        if point.sync is None:
            waiting |= live.live_in[point.block]
        else:
            waiting |= live.live_out[point.block] | cfg.blocks[point.block].last.reads
    return Plan(
        cfg,
        uniformity,
        found,
        sync_region,
        tuple(points),
        frozenset(heads),
        syncs,
        frozenset(waiting),
    )


def _deposits(cfg: Cfg, block: Block, uniformity: Uniformity, heads: set[int]) -> set[int]:
    """Byte offsets of blocks in which this block's end may leave lanes waiting."""
    last = block.last
    match last.mnemonic:
        case "BRA" | "JMP":
            target = branch_target(last)
            forward = target > last.offset
            if is_state_test(last):
                return set()
            if not is_conditional(last):
                between = any(last.offset < h < target for h in heads)
                return {target} if forward and between else set()
            if uniformity.uniform_branch[block.index]:
                return set()
            return {target} if forward else {block.end}
        case "BRX" | "BRXU" | "RET" | "JMX":
            out = {cfg.blocks[e.dst].start for e in cfg.successors[block.index]}
            return out
        case "CALL" if not last.guard.is_true:
            return {block.end}
        case _:
            return set()


def warpsync_mask(ins: Instruction) -> int | Reg:
    """The lanes WARPSYNC waits for: a constant, or a register."""
    if ins.has("ALL"):
        return 0xFFFFFFFF
    mask = ins.get("Ra")
    if isinstance(mask, Imm):
        return mask.value
    if isinstance(mask, Reg):
        return mask
    raise LoweringError(
        "SX0412", "WARPSYNC without a mask", Where(offset=ins.offset, inst=ins.text)
    )


__all__ = ["SIZE", "Plan", "Point", "branch_target", "is_state_test", "make_plan", "sync_kind"]

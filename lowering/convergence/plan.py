"""The convergence machine's plan: the points where lanes may wait, and the order in which they are
resumed.

Lanes of a wave that are not running wait at *points*: the head of a block where a divergent branch
left them, or a sync point (BSYNC, WARPSYNC, BAR) whose other lanes are still missing.  Each
point has a ready mask.  Running lanes continue in layout order; when EXEC becomes empty, the next
point in layout order takes over, and after the last one a scan resumes the first point that can
continue.  So the lowest waiting block runs first, which reconverges diverged lanes as early as
the layout allows; only the sync points decide what must wait for what.

The lanes that a BSYNC waits for are one mask per region if the code arms barriers plainly, and one
mask per lane and barrier register if BMOV saves and restores them (recursion, callees that keep
B6).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from sassxlate.cfg import Block, Cfg, Liveness, Region, Uniformity
from sassxlate.cfg.build import is_conditional, is_state_test
from sassxlate.cfg.graph import SIZE, label_of
from sassxlate.cfg.regions import barrier_of, moves_barrier
from sassxlate.cfg.register_sets import bits_of, of_files, refs_of
from sassxlate.cfg.spin_loops import recursive
from sassxlate.disasm.sass.instruction import Imm, Instruction, Label, Reg, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.errors import LoweringError, Where

SyncKind: TypeAlias = Literal["bsync", "warpsync", "collective", "barrier"]

# Keys of masks and counters that belong to no point.
RESULT, SPIN_COUNT, SPIN_EXEC, SOFT, SWEPT = -1, -2, -3, -4, -5
# Per-lane words after the sixteen barriers': the section that a lane arrived at, its mask.
ORIGIN, WANTED = 16, 17


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """A place where lanes may wait.  ``key``: a block's offset, or a sync instruction's plus 1."""

    key: int
    block: int
    sync: SyncKind | None = None

    @property
    def label(self) -> str:
        return f"Lsync_{self.key - 1:04x}" if self.sync else label_of(self.key)


@dataclass(frozen=True)
class ConvergencePlan:
    """The facts about one kernel that the emission of control flow needs."""

    cfg: Cfg
    uniformity: Uniformity
    regions: tuple[Region, ...]
    sync_region: Mapping[int, int]
    points: tuple[ResumePoint, ...]  # in layout order
    heads: frozenset[int]  # byte offsets of blocks that are points
    syncs: Mapping[int, ResumePoint]  # block index -> its sync point
    pending_live: frozenset[RegRef]
    latches: frozenset[int]  # blocks whose back edge gives other lanes a turn
    barriers: tuple[int, ...]  # convergence barriers kept as per-lane masks
    reduces: bool  # BAR.RED or B2R occurs
    polled: bool  # a barrier other than the whole block's own, in shared memory

    @property
    def slots(self) -> tuple[int, ...]:
        """The keys of all masks that the kernel needs."""
        keys = [p.key for p in self.points]
        if any(p.sync for p in self.points):
            keys.append(SWEPT)
        if self.latches:
            keys += [SPIN_COUNT, SPIN_EXEC]
        if self.softens:
            keys.append(SOFT)
        if self.reduces:
            keys.append(RESULT)
        return tuple(keys)

    @property
    def lane_words(self) -> tuple[int, ...]:
        """The per-lane words: barriers' masks by number, and the two words of collective sections
        that lanes reach from more than one place."""
        several = any(len(some) > 1 for some in self.cfg.collectives.classes.values())
        return (*self.barriers, *((ORIGIN, WANTED) if several else ()))

    @cached_property
    def softens(self) -> bool:
        """Whether a BSYNC of the kernel may release lanes while others spin."""
        return bool(self.latches) and any(
            p.sync == "bsync" and self.is_soft(self.cfg.blocks[p.block].last) for p in self.points
        )

    @property
    def comes_apart(self) -> bool:
        """Whether an NVIDIA GPU may run lanes of several levels of a recursion together, because
        the levels save barriers and wait at one BSYNC; per-lane masks keep the levels apart."""
        return bool(self.barriers) and recursive(self.cfg)

    @property
    def relenting(self) -> tuple[ResumePoint, ...]:
        """The BSYNCs that may release lanes while others of the region wait at a WARPSYNC."""
        state = self.uniformity
        apart = {
            b
            for b in self.syncs
            if not state.converged[b]
            or (is_conditional(self.cfg.blocks[b].last) and not state.uniform_branch[b])
        }
        return tuple(p for p in self.points if p.sync == "bsync" and apart & self._waits(p))

    def _waits(self, point: ResumePoint) -> set[int]:
        region = self.sync_region.get(self.cfg.blocks[point.block].last.offset, -1)
        return set(self.regions[region].waits) if region >= 0 else set()

    @property
    def alone(self) -> bool:
        """Whether no lane ever waits and the live mask is never read: the running lanes are
        live."""
        return (
            not self.points
            and not self.barriers
            and not any(
                traits(i).barrier in ("move", "leave") or is_state_test(i)
                for block in self.cfg.blocks
                for i in block.instructions
            )
        )

    def is_soft(self, sync: Instruction) -> bool:
        region = self.sync_region.get(sync.offset, -1)
        return region < 0 or self.regions[region].soft

    def next_point(self, block: int) -> ResumePoint | None:
        """The first point in layout order after block ``block``'s body and sync point."""
        return next((p for p in self.points if p.block > block), None)


def branch_target(ins: Instruction) -> int:
    label = ins.get("target")
    if not isinstance(label, Label):
        raise LoweringError(
            "SX0412", "branch without a target", Where(offset=ins.offset, inst=ins.text)
        )
    return label.target


def sync_kind(ins: Instruction) -> SyncKind | None:
    match ins.mnemonic:
        case "BSYNC":
            return "bsync"
        case "WARPSYNC":
            return "collective" if ins.has("COLLECTIVE") else "warpsync"
        case "BAR":
            return "barrier"
        case _:
            return None


def needs_sync_point(block: Block, uniformity: Uniformity) -> bool:
    """Whether a sync instruction needs a point.  In a converged block it waits for no lane and is
    folded away, unless its lanes diverge: a guard, or per-lane masks that must go one by one."""
    if sync_kind(block.last) is None:
        return False
    if not uniformity.converged[block.index]:
        return True
    if is_conditional(block.last) and not uniformity.uniform_branch[block.index]:
        return True
    serial = block.last.has("EXCLUSIVE") or block.last.has("COLLECTIVE")
    return serial and isinstance(warpsync_mask(block.last), Reg)


def is_plain_barrier(ins: Instruction) -> bool:
    """The whole block's barrier 0."""
    barrier, count = ins.get("barrier"), ins.get("count")
    if isinstance(count, Reg) and not count.is_zero:
        return False
    zero = count is None or isinstance(count, Reg) or (isinstance(count, Imm) and count.value == 0)
    return zero and isinstance(barrier, Imm) and barrier.value == 0 and not ins.has("ARV")


def make_plan(cfg: Cfg, live: Liveness, uniformity: Uniformity) -> ConvergencePlan:
    """Finds all points; grows the set of waiting blocks until no jump needs a new one."""
    found, sync_region = uniformity.regions, uniformity.sync_region
    latches = frozenset(b for b in uniformity.spins.latches if not uniformity.converged[b])
    heads: set[int] = set()
    changed = True
    ordered: list[int] = []  # the same, sorted
    while changed:
        before = len(heads)
        for block in cfg.blocks:
            new = _deposits(cfg, block, uniformity, ordered, latches)
            for head in new | _collective_targets(cfg, block):
                if head not in heads:
                    heads.add(head)
                    insort(ordered, head)
        changed = len(heads) != before
    points: list[ResumePoint] = []
    syncs: dict[int, ResumePoint] = {}
    ends = {b.last.offset: b.index for b in cfg.blocks}
    for block in cfg.blocks:
        if block.start in heads:
            points.append(ResumePoint(block.start, block.index))
        members = cfg.collectives.members(block.last.offset)
        if any(needs_sync_point(cfg.blocks[ends[s.sync]], uniformity) for s in members):
            leader = members[0].sync
            home = ends[leader]
            syncs[block.index] = point = ResumePoint(leader + 1, home, "collective")
            if home == block.index:
                points.append(point)
        elif not members and needs_sync_point(block, uniformity):
            syncs[block.index] = point = ResumePoint(
                block.last.offset + 1, block.index, sync_kind(block.last)
            )
            points.append(point)
    waiting = 0
    for point in points:
        if point.sync is None:
            waiting |= live.in_bits[point.block]
    for index in syncs:
        waiting |= live.out_bits[index] | bits_of(cfg.blocks[index].last.reads)
    every = [i for b in cfg.blocks for i in b.instructions]
    bars = [i for i in every if i.mnemonic == "BAR"]
    saved = any(moves_barrier(i) for i in every)
    named = {n for i in every if (n := barrier_of(i)) is not None}
    return ConvergencePlan(
        cfg,
        uniformity,
        found,
        sync_region,
        tuple(points),
        frozenset(heads),
        syncs,
        refs_of(waiting & ~of_files("B")),
        latches,
        tuple(sorted(named)) if saved else (),
        any(i.has("RED") for i in bars) or any(i.mnemonic == "B2R" for i in every),
        not all(map(is_plain_barrier, bars)),
    )


def _collective_targets(cfg: Cfg, block: Block) -> set[int]:
    """The targets of the lanes of a class with several sections, when the section ends."""
    here = cfg.collectives.by_end.get(block.last.offset)
    members = cfg.collectives.members(here.sync) if here is not None else ()
    return {s.target for s in members} if len(members) > 1 else set()


def _deposits(
    cfg: Cfg, block: Block, uniformity: Uniformity, heads: list[int], latches: frozenset[int]
) -> set[int]:
    """Byte offsets of blocks in which this block's end may leave lanes waiting; ``heads``: those
    that are known, sorted."""
    last = block.last
    name, transfer = last.mnemonic, traits(last).transfer
    if transfer in ("indirect", "return"):
        return {cfg.blocks[e.dst].start for e in cfg.successors[block.index]}
    if transfer == "wait":
        guarded = is_conditional(last) and needs_sync_point(block, uniformity)
        return {block.end} if guarded else set()
    match name:
        case "BRA" | "JMP":
            target = branch_target(last)
            forward = target > last.offset
            spin = {target} if block.index in latches else set[int]()
            if is_state_test(last):
                return set()
            if not is_conditional(last):
                first = bisect_right(heads, last.offset)
                between = first < len(heads) and heads[first] < target
                return {target} if forward and between else spin
            if uniformity.uniform_branch[block.index] and not spin:
                return set()
            return {target} if forward else {block.end} | spin
        case "CALL":
            callees = {
                cfg.blocks[e.dst].start
                for e in cfg.successors[block.index]
                if e.kind == "call" and last.get("target") is None
            }
            return callees if not is_conditional(last) else callees | {block.end}
        case _:
            return set()


def warpsync_mask(ins: Instruction) -> int | Reg:
    """The lanes that WARPSYNC waits for: a constant, or a register."""
    if ins.has("ALL"):
        return 0xFFFFFFFF
    mask = ins.get("Ra")
    if isinstance(mask, Imm):
        return mask.value
    if isinstance(mask, Reg):
        return 0 if mask.is_zero else mask
    raise LoweringError(
        "SX0412", "WARPSYNC without a mask", Where(offset=ins.offset, inst=ins.text)
    )


__all__ = ["SIZE", "ConvergencePlan", "ResumePoint", "branch_target", "make_plan", "sync_kind"]

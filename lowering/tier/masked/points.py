"""The places where lanes wait for others: BSYNC, WARPSYNC, BAR and collective sections.

What `lowering/convergence/sync_points.py` writes as machine code for the rules is written here as
IR, from the same plan: the masks decide which lanes pass.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.cfg.build import conditions
from sassxlate.cfg.graph import SIZE, Block
from sassxlate.disasm.sass.instruction import Instruction, Reg
from sassxlate.lowering.convergence.plan import (
    ORIGIN,
    WANTED,
    ConvergencePlan,
    ResumePoint,
    warpsync_mask,
)
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.masked.masks import ZERO, Masks
from sassxlate.lowering.tier.masked.registers import BarrierRegisters
from sassxlate.lowering.tier.refusal import FLOW, TOGETHER, refused

PATIENCE = 4  # turns that spinning lanes yield before a BSYNC releases its waiting lanes
TURNS, SWEPT, LOST = "turns", "swept", "lost"


def ready(start: int) -> str:
    """The name of the mask of lanes that wait for a block to be run."""
    return f"ready.{start:x}"


def held(point: ResumePoint) -> str:
    """The name of the mask of lanes that wait at a sync point."""
    return f"held.{point.key:x}"


class Points(BarrierRegisters):
    """Writes the sync points of a kernel.  ``released`` writes what the lanes do that pass."""

    def __init__(
        self, masks: Masks, plan: ConvergencePlan, released: Callable[[Instruction], None]
    ) -> None:
        super().__init__(masks, plan)
        self._released = released
        self.relenting = plan.relenting
        self._number = {p.key: p for p in plan.points if p.sync}
        # The points of collective sections, by the start of the section that the lanes run.
        self.sections = {p.key - 1 + SIZE: p for p in plan.points if p.sync == "collective"}

    def to(self, start: int, lanes: Val) -> None:
        """Lanes go on at a block."""
        self.m.add(ready(start), lanes)

    # -- arrivals ---------------------------------------------------------------------------------

    def arrive(self, block: Block) -> None:
        """The end of a block that waits, for the lanes that run it."""
        m, lane, ins = self.m, self.lane, block.last
        lane.ins = ins
        point = self.plan.syncs.get(block.index)
        condition = lane.holds(*conditions(ins))
        if ins.has("COLLECTIVE"):
            if condition is not None or ins.offset not in self.plan.cfg.collectives.by_sync:
                raise refused(FLOW, "a guarded or open collective section", ins)
            self._at_section(ins, point)
            return
        arriving = m.lanes(m.running, condition)
        if condition is not None:
            self.to(block.end, m.without(m.running, arriving))
            m.run_only(arriving)
        if point is not None:
            m.add(held(point), arriving)
        elif condition is None:  # no lane is missing
            self._pass(block, arriving)
        else:
            with m.some(arriving):
                self._pass(block, arriving)

    def _at_section(self, ins: Instruction, point: ResumePoint | None) -> None:
        """WARPSYNC.COLLECTIVE: the lanes of one mask run the leader's section together, from
        whichever section of its class they come."""
        m = self.m
        members = self.plan.cfg.collectives.members(ins.offset)
        mask = warpsync_mask(ins)
        if len(members) > 1:
            number = next(n for n, s in enumerate(members) if s.sync == ins.offset)
            self.set_words(f"word{ORIGIN}", m.running, const(number, 32))
            if isinstance(mask, Reg):
                self.set_words(f"word{WANTED}", m.running, self.lane.word("Ra"))
        if point is None:
            self.to(self.plan.cfg.collectives.leader(ins.offset).sync + SIZE, m.running)
        else:
            m.add(held(point), m.running)

    def _pass(self, block: Block, lanes: Val) -> None:
        """Lanes go on after a sync instruction."""
        m, ins = self.m, block.last
        m.write(SWEPT, ZERO)
        m.run_only(lanes)
        if ins.mnemonic == "BSYNC":
            self.disarm(ins)
        else:
            self._released(ins)
        self.to(block.end, lanes)

    # -- points -----------------------------------------------------------------------------------

    def attempt(self, block: Block) -> None:
        """After a block: the lanes that wait at its end pass if none is missing."""
        point = self.plan.syncs.get(block.index)
        if point is None or point.sync == "collective":
            return
        m, lane, ins = self.m, self.lane, block.last
        lane.ins = ins
        with m.some(m.read(held(point))):
            going = self._going(ins, point)
            with m.some(going):
                m.remove(held(point), going)
                self._pass(block, going)

    def attempt_section(self, start: int) -> None:
        """Before the first block of a collective section: the lanes that wait for it begin it if
        none is missing."""
        point = self.sections.get(start)
        if point is None:
            return
        m, lane = self.m, self.lane
        ins = lane.ins = self.plan.cfg.blocks[point.block].last
        with m.some(m.read(held(point))):
            several = len(self.plan.cfg.collectives.members(ins.offset)) > 1
            mask = warpsync_mask(ins)
            if several and isinstance(mask, Reg):
                going = self._one_group(ins, point, m.read(f"word{WANTED}"))
            elif isinstance(mask, Reg) and mask.file == "R":
                going = self._one_group(ins, point, lane.word("Ra"))
            else:
                lanes = lane.word("Ra") if isinstance(mask, Reg) else const(mask, 32)
                going = self._whole(ins, point, lanes)
            with m.some(going):
                m.write(SWEPT, ZERO)
                m.remove(held(point), going)
                self.to(start, going)

    def _going(self, ins: Instruction, point: ResumePoint) -> Val:
        """The lanes that may pass a point; none if lanes are missing."""
        if point.sync == "bsync" and self.plan.barriers:
            return self._one_group(ins, point, self.m.read(self.word(ins)))
        if point.sync == "warpsync":
            mask = warpsync_mask(ins)
            if not isinstance(mask, Reg):
                return self._whole(ins, point, const(mask, 32))
            words = self.lane.word("Ra")
            if mask.file != "R":
                return self._whole(ins, point, words)
            if ins.has("EXCLUSIVE"):
                return self._one_group(ins, point, words)
            return self._all_groups(point, words)
        return self._whole(ins, point, const(-1, 32))

    def _whole(self, ins: Instruction, point: ResumePoint, mask: Val) -> Val:
        """All waiting lanes once no lane of the one mask is missing."""
        m, d = self.m, self.lane.d
        waiting = m.read(held(point))
        if point.sync == "bsync":
            missing = self.missing_of_region(ins)
        else:
            missing = m.without(d.and_(m.live, mask), waiting)
        if point.sync == "barrier":
            missing = d.or_(missing, m.read(LOST))
        go = m.none(missing)
        if point.sync == "bsync" and self._soft(ins):
            enough = self._patient(d.not_(go))
            go = d.or_(go, enough)
        return d.select(go, waiting, ZERO)

    def _soft(self, ins: Instruction) -> bool:
        return self.plan.softens and self.plan.is_soft(ins)

    def _patient(self, asked: Val) -> Val:
        """Whether spinning lanes have yielded often enough; they start anew if so, and ``asked``
        holds."""
        m, d = self.m, self.lane.d
        turns = m.read(TURNS)
        enough = d.and_(asked, d.not_(d.ult(turns, const(PATIENCE, 32))))
        m.write(TURNS, d.select(enough, ZERO, turns))
        return enough

    def missing_of_region(self, ins: Instruction) -> Val:
        """The lanes for which a BSYNC waits that do not wait there."""
        m, d = self.m, self.lane.d
        index = self.plan.sync_region.get(ins.offset, -1)
        if index < 0:
            raise refused(FLOW, "BSYNC that no BSSY reaches", ins)
        out = d.and_(m.live, m.read(f"region{index}"))
        for sync in self.plan.regions[index].syncs:
            if sync + 1 in self._number:
                out = m.without(out, m.read(held(self._number[sync + 1])))
        return out

    def _all_groups(self, point: ResumePoint, words: Val) -> Val:
        """The lanes of each mask once all of them wait here with that mask; of all masks that are
        complete at once."""
        m, d = self.m, self.lane.d
        m.write("going", ZERO)
        with m.groups(m.read(held(point)), words) as (first, same):
            missing = m.without(d.and_(first, m.live), same)
            m.add("going", d.select(m.none(missing), same, ZERO))
        return m.read("going")

    def _one_group(self, ins: Instruction, point: ResumePoint, words: Val) -> Val:
        """The lanes of one mask, once none of them is missing."""
        m, d = self.m, self.lane.d
        m.write("going", ZERO)
        waiting = m.read(held(point))
        with m.groups(waiting, words) as (first, same):
            missing = m.without(d.and_(first, m.live), same)
            good = d.and_(m.none(missing), m.none(m.read("going")))
            m.write("going", d.select(good, same, m.read("going")))
        if point.sync == "bsync" and self._soft(ins):
            with m.when(self._patient(m.none(m.read("going")))):
                # The missing lanes do not wait for these any more when they come.
                self.leave_words(self.word(ins), waiting)
                m.write("going", waiting)
        return m.read("going")

    # -- where no lane can go on ------------------------------------------------------------------

    def stuck(self) -> None:
        """All live lanes wait: BSYNCs that wait in vain let theirs go; otherwise all are lost."""
        m = self.m
        m.write("changed", ZERO)
        self._forget()
        self._relent()
        with m.when(m.none(m.read("changed"))):
            m.add(LOST, m.live)

    def _forget(self) -> None:
        """A BSYNC no longer waits for lanes that left its region by a branch without BREAK, and
        wait where they can no longer reach it."""
        m, d = self.m, self.lane.d
        if self.plan.barriers:
            return
        for index, region in enumerate(self.plan.regions):
            points = [p for p in self.plan.points if p.sync and p.block in region.left]
            if not points or not self.has_points(index):
                continue
            gone = ZERO
            for point in points:
                gone = d.or_(gone, m.read(held(point)))
            first = m.none(m.read("changed"))
            gone = d.select(first, d.and_(gone, m.read(f"region{index}")), ZERO)
            m.remove(f"region{index}", gone)
            m.add("changed", gone)

    def _relent(self) -> None:
        """A BSYNC releases its lanes if those that it misses all wait at a WARPSYNC, because the
        BSYNC holds back the lanes that they wait for."""
        m, d = self.m, self.lane.d
        if self.relenting and self.plan.barriers:
            raise refused(TOGETHER, "a BSYNC with saved masks that may have to let its lanes go")
        for point in self.relenting:
            others = ZERO
            for other in self.plan.points:
                if other.sync in ("warpsync", "collective"):
                    others = d.or_(others, m.read(held(other)))
            block = self.plan.cfg.blocks[point.block]
            waiting = m.read(held(point))
            missing = m.without(self.missing_of_region(block.last), others)
            good = d.and_(m.none(missing), m.none(m.read("changed")))
            going = d.select(good, waiting, ZERO)
            with m.some(going):
                m.add("changed", going)
                m.remove(held(point), going)
                self._pass(block, going)


__all__ = ["LOST", "SWEPT", "TURNS", "Points", "held", "ready"]

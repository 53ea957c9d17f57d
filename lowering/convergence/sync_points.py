"""Emits sync points: BSYNC, WARPSYNC and BAR, and the scan for lanes that can continue."""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.cfg import Block
from sassxlate.cfg.build import is_conditional
from sassxlate.cfg.graph import SIZE, label_of
from sassxlate.cfg.regions import barrier_of
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import Instruction, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.codeobject.source_map import SCHEDULER, added
from sassxlate.lowering.convergence.barrier_registers import BarrierRegisters
from sassxlate.lowering.convergence.barriers import Barriers
from sassxlate.lowering.convergence.lane_masks import END, SCAN, TRAP_STUCK, LaneMasks
from sassxlate.lowering.convergence.plan import (
    ORIGIN,
    SOFT,
    SWEPT,
    WANTED,
    ResumePoint,
    warpsync_mask,
)
from sassxlate.lowering.target import EXEC, ZERO

PATIENCE = 4  # turns that spinning lanes yield before a BSYNC releases its waiting lanes


class Syncs(BarrierRegisters):
    """Emits the sync points of a kernel."""

    def __init__(self, machine: LaneMasks) -> None:
        super().__init__(machine)
        self.relenting = self.plan.relenting
        self.barriers = Barriers(machine)

    def sync(self, c: RuleEmitter, block: Block) -> None:
        """The end of a block with a sync instruction."""
        ins = block.last
        point = self.plan.syncs.get(block.index)
        arriving = self.m.condition(c, ins)
        if ins.has("COLLECTIVE"):
            if arriving is not None or ins.offset not in self.plan.cfg.collectives.by_sync:
                raise c.refuse("guarded or open collective section", "SX0423")
            self._come_together(c, block)
            return
        if point is None:
            if arriving is not None:  # all lanes are present and agree
                c.raw(Inst("s_cmp_lg_u32", (arriving, ZERO)))
                c.branch("s_cbranch_scc0", label_of(block.end))
            self._released(c, ins)
            return
        if arriving is None:
            self.m.deposit_exec(c, point.key)
        else:
            passing = c.stemp()
            c.raw(Inst("s_and_not1_b32", (passing, EXEC, arriving)))
            self.m.deposit(c, point.key, arriving)
            self.m.deposit(c, block.end, passing)
        c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
        c.mark(point.label)
        self._point(c, block, point)
        if point in self.relenting:
            c.mark(_relented(point))
        self.m.write(c, SWEPT, None)
        self._released(c, ins)

    def _released(self, c: RuleEmitter, ins: Instruction) -> None:
        """The effects on the running lanes once they are released."""
        match ins.mnemonic:
            case "BAR":
                self.barriers.arrive(c, ins)
            case "BSYNC":
                self._disarm(c, ins)
            case _:
                pass

    # --- points ----------------------------------------------------------------------------------

    def _point(self, c: RuleEmitter, block: Block, point: ResumePoint) -> None:
        """Sets EXEC to the lanes that may pass, or goes to the next point."""
        ins = block.last
        blocked = self.m.next_label(block)
        if point.sync == "bsync" and self.plan.barriers:
            barrier = barrier_of(ins)
            assert barrier is not None
            held = V(self.k.regs.barriers[barrier])
            self._by_group(c, ins, point, lambda: held, blocked)
            return
        if point.sync == "warpsync":
            mask = warpsync_mask(ins)
            if isinstance(mask, Reg):
                if self._a_word_a_lane(mask) and ins.has("EXCLUSIVE"):
                    self._by_group(c, ins, point, lambda: c.to_v(c.value(mask)), blocked)
                elif self._a_word_a_lane(mask):
                    self._all_groups(c, point, mask, blocked)
                else:
                    self._together(c, ins, point, blocked, c.value(mask))
                return
            self._together(c, ins, point, blocked, I(mask))
            return
        self._together(c, ins, point, blocked, I(0xFFFFFFFF))

    def _a_word_a_lane(self, reg: Reg) -> bool:
        """Whether a register may differ between lanes."""
        return reg.file == "R" or reg.index in self.k.regs.ur_lanes

    def _together(
        self, c: RuleEmitter, ins: Instruction, point: ResumePoint, blocked: str, mask: Arg
    ) -> None:
        """All waiting lanes pass once no lane of the one mask is missing."""
        m = self.m
        waiting = m.read(c, point.key)
        c.raw(Inst("s_cmp_eq_u32", (waiting, ZERO)))
        c.branch("s_cbranch_scc1", blocked)
        missing = c.stemp()
        live = self.k.regs.live
        if point.sync == "bsync":
            self._missing_of_region(c, ins, missing)
        else:
            c.raw(Inst("s_and_b32", (missing, live, mask)))
            c.raw(Inst("s_and_not1_b32", (missing, missing, waiting)))
        if point.sync == "bsync" and self._soft(ins):
            go = self.k.label("Lgo")
            c.raw(Inst("s_cmp_eq_u32", (missing, ZERO)))
            c.branch("s_cbranch_scc1", go)
            self._impatient(c, blocked)
            c.mark(go)
        else:
            last = self.k.items[-1]
            said = isinstance(last, Inst) and last.op == "s_and_not1_b32"
            if not (said and isinstance(last, Inst) and last.args[0] == missing):
                c.raw(Inst("s_cmp_lg_u32", (missing, ZERO)))
            c.branch("s_cbranch_scc1", blocked)
        c.raw(Inst("s_mov_b32", (EXEC, waiting)))
        m.write(c, point.key, None)

    def _soft(self, ins: Instruction) -> bool:
        return self.plan.softens and self.plan.is_soft(ins)

    def _impatient(self, c: RuleEmitter, blocked: str) -> None:
        """Passes only after spinning lanes have yielded often enough."""
        turns = self.m.read(c, SOFT)
        c.raw(Inst("s_cmp_lt_u32", (turns, I(PATIENCE))))
        c.branch("s_cbranch_scc1", blocked)
        self.m.write(c, SOFT, None)

    def _missing_of_region(self, c: RuleEmitter, ins: Instruction, out: S) -> None:
        index = self.plan.sync_region.get(ins.offset, -1)
        if index < 0:
            raise c.refuse("BSYNC that no BSSY reaches", "SX0425")
        with c.scope():
            armed = c.read_slot(self.k.regs.regions[index])
            c.raw(Inst("s_and_b32", (out, self.k.regs.live, armed)))
        for sync in self.plan.regions[index].syncs:
            if sync + 1 in self.k.regs.ready:
                with c.scope():
                    c.raw(Inst("s_and_not1_b32", (out, out, self.m.read(c, sync + 1))))

    def _all_groups(self, c: RuleEmitter, point: ResumePoint, mask: Reg, blocked: str) -> None:
        """Per-lane masks: the lanes of each mask pass once all of its lanes wait here with that
        mask; all masks that are complete at once.

        Other lanes may wait here with another mask: in a function that all shuffles call (-G), the
        lanes of an inner call and those of the outer one.
        """
        m = self.m
        left, first, same, going = (c.stemp() for _ in range(4))
        again, done = self.k.label("Lgroup"), self.k.label("Lgroups")
        with c.scope():
            c.raw(Inst("s_mov_b32", (left, m.read(c, point.key))))
        c.raw(Inst("s_mov_b32", (going, ZERO)))
        c.mark(again)
        c.raw(Inst("s_mov_b32", (EXEC, left)))
        c.branch("s_cbranch_execz", done)
        masks = c.to_v(c.value(mask))
        c.raw(Inst("v_readfirstlane_b32", (first, masks)))
        c.emit("v_cmp_eq_u32", same, first, masks)
        c.raw(Inst("s_and_not1_b32", (left, left, same)))
        c.raw(Inst("s_and_b32", (first, first, self.k.regs.live)))
        c.raw(Inst("s_and_not1_b32", (first, first, same)))
        c.branch("s_cbranch_scc1", again)
        c.raw(Inst("s_or_b32", (going, going, same)))
        c.branch("s_branch", again)
        c.mark(done)
        with c.scope():
            waiting = m.read(c, point.key)
            c.raw(Inst("s_and_not1_b32", (waiting, waiting, going)))
            m.write(c, point.key, waiting)
        c.raw(Inst("s_mov_b32", (EXEC, going)))
        c.branch("s_cbranch_execz", blocked)

    def _by_group(
        self,
        c: RuleEmitter,
        ins: Instruction,
        point: ResumePoint,
        fetch: Callable[[], V],
        blocked: str,
    ) -> None:
        """Per-lane masks: the lanes of one mask pass together, once none of them is missing.

        ``fetch`` gives the running lanes' masks (a spilled register is loaded for them).
        """
        m = self.m
        left, first, same = c.stemp(), c.stemp(), c.stemp()
        missing = c.stemp()
        again, go, none = (self.k.label(x) for x in ("Lgroup", "Lgo", "Lnone"))
        with c.scope():
            c.raw(Inst("s_mov_b32", (left, m.read(c, point.key))))
        c.mark(again)
        c.raw(Inst("s_mov_b32", (EXEC, left)))
        soft = point.sync == "bsync" and self._soft(ins)
        c.branch("s_cbranch_execz", none if soft else blocked)
        masks = fetch()
        c.raw(Inst("v_readfirstlane_b32", (first, masks)))
        c.emit("v_cmp_eq_u32", same, first, masks)
        c.raw(Inst("s_and_not1_b32", (left, left, same)))
        c.raw(Inst("s_and_b32", (missing, first, self.k.regs.live)))
        c.raw(Inst("s_and_not1_b32", (missing, missing, same)))
        c.raw(Inst("s_cmp_lg_u32", (missing, ZERO)))
        c.branch("s_cbranch_scc1", again)
        if soft:
            c.branch("s_branch", go)
            c.mark(none)
            with c.scope():
                c.raw(Inst("s_mov_b32", (same, m.read(c, point.key))))
            c.raw(Inst("s_cmp_eq_u32", (same, ZERO)))
            c.branch("s_cbranch_scc1", blocked)
            self._impatient(c, blocked)
            # The missing lanes do not wait for these any more when they come.
            c.raw(Inst("s_mov_b32", (EXEC, same)))
            with c.scope():
                self._break_masks(c, fetch())
            c.mark(go)
        c.raw(Inst("s_mov_b32", (EXEC, same)))
        with c.scope():
            waiting = m.read(c, point.key)
            c.raw(Inst("s_and_not1_b32", (waiting, waiting, same)))
            m.write(c, point.key, waiting)

    # --- collective sections ---------------------------------------------------------------------

    def _come_together(self, c: RuleEmitter, block: Block) -> None:
        """WARPSYNC.COLLECTIVE: the lanes of one mask run the leader's section together, from
        whichever section of its class they arrive at."""
        ins = block.last
        m = self.m
        sections = self.plan.cfg.collectives
        members = sections.members(ins.offset)
        body = label_of(members[0].sync + SIZE)
        point = self.plan.syncs.get(block.index)
        mask = warpsync_mask(ins)
        wanted = mask if isinstance(mask, Reg) and self._a_word_a_lane(mask) else None
        if len(members) > 1:
            number = next(n for n, s in enumerate(members) if s.sync == ins.offset)
            c.raw(Inst("v_mov_b32", (V(self.k.regs.barriers[ORIGIN]), I(number))))
            if isinstance(mask, Reg):
                held = V(self.k.regs.barriers[WANTED])
                c.raw(Inst("v_mov_b32", (held, c.value(mask))))
        if point is None:
            c.branch("s_branch", body)
            return
        m.deposit_exec(c, point.key)
        c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
        if point.block != block.index:
            c.branch("s_branch", point.label)
            return
        c.mark(point.label)
        blocked = m.next_label(block)
        if len(members) > 1 and isinstance(mask, Reg):
            held = V(self.k.regs.barriers[WANTED])
            self._by_group(c, ins, point, lambda: held, blocked)
        elif wanted is not None:
            self._by_group(c, ins, point, lambda: c.to_v(c.value(wanted)), blocked)
        else:
            lanes = c.value(mask) if isinstance(mask, Reg) else I(mask)
            self._together(c, ins, point, blocked, lanes)
        m.write(c, SWEPT, None)
        c.branch("s_branch", body)

    # --- the scan --------------------------------------------------------------------------------

    def scan(self, c: RuleEmitter) -> None:
        """After the last block: resume the first head with lanes, or try each sync point once, or
        end the wave."""
        m = self.m
        c.mark(SCAN)
        if self.plan.alone:
            last = self.plan.cfg.blocks[-1].last
            if last.mnemonic != "EXIT" or is_conditional(last):
                c.raw(Inst("s_trap", (), imm=TRAP_STUCK))
            c.mark(END)
            self.barriers.depart(c)
            c.raw(Inst("s_endpgm"))
            return
        c.raw(Inst("s_cmp_lg_u32", (self.k.regs.live, ZERO)))
        c.branch("s_cbranch_scc0", END)
        for point in self.plan.points:
            if point.sync is None:
                with c.scope():
                    c.raw(Inst("s_cmp_lg_u32", (m.read(c, point.key), ZERO)))
                c.branch("s_cbranch_scc1", point.label)
        first = next((p for p in self.plan.points if p.sync), None)
        if first is not None:
            swept = m.read(c, SWEPT)
            stuck = self.k.label("Lstuck")
            c.raw(Inst("s_cmp_lg_u32", (swept, ZERO)))
            c.branch("s_cbranch_scc1", stuck)
            one = c.stemp()
            c.raw(Inst("s_mov_b32", (one, I(1))))
            m.write(c, SWEPT, one)
            c.branch("s_branch", first.label)
            c.mark(stuck)
            self._forget(c, first)
            self._relent(c)
        c.raw(Inst("s_trap", (), imm=TRAP_STUCK))
        c.mark(END)
        self.barriers.depart(c)
        c.raw(Inst("s_endpgm"))

    def _forget(self, c: RuleEmitter, first: ResumePoint) -> None:
        """If no point can continue: a BSYNC no longer waits for lanes that left its region by a
        branch without BREAK, and wait where they can no longer reach it.

        nvcc writes no BREAK if it takes the branch for one of all lanes; on the hardware, the next
        BSSY of the barrier register, which arms it anew, then removes those lanes.
        """
        if self.plan.barriers:
            return
        for index, region in enumerate(self.plan.regions):
            points = [p for p in self.plan.points if p.sync and p.block in region.left]
            if not points or not any(sync + 1 in self.k.regs.ready for sync in region.syncs):
                continue
            if self.k.take is not None and len(self.k.items) >= self.k.part:
                added(self.k.items, 0, SCHEDULER)  # what was before has its origin
                self.k.take(self.k)
            kept = self.k.label("Lkept")
            with c.scope():
                gone = c.stemp()
                c.raw(Inst("s_mov_b32", (gone, ZERO)))
                for point in points:
                    with c.scope():
                        c.raw(Inst("s_or_b32", (gone, gone, self.m.read(c, point.key))))
                slot = self.k.regs.regions[index]
                armed = c.read_slot(slot)
                c.raw(Inst("s_and_b32", (gone, gone, armed)))
                c.branch("s_cbranch_scc0", kept)
                c.raw(Inst("s_and_not1_b32", (armed, armed, gone)))
                c.write_slot(slot, armed)
            c.branch("s_branch", first.label)
            c.mark(kept)

    def _relent(self, c: RuleEmitter) -> None:
        """Deadlock breaker: a BSYNC releases its lanes if those that it misses all wait at a
        WARPSYNC, because the BSYNC holds back the lanes that they wait for."""
        m, points = self.m, self.relenting
        if not points:
            return
        others = c.stemp()
        c.raw(Inst("s_mov_b32", (others, ZERO)))
        for point in self.plan.points:
            if point.sync in ("warpsync", "collective"):
                with c.scope():
                    c.raw(Inst("s_or_b32", (others, others, m.read(c, point.key))))
        for point in points:
            held = self.k.label("Lheld")
            if self.plan.barriers:
                self._relent_group(c, point, others, held)
                c.branch("s_branch", _relented(point))
                c.mark(held)
                continue
            with c.scope():
                waiting, missing = m.read(c, point.key), c.stemp()
                c.raw(Inst("s_cmp_eq_u32", (waiting, ZERO)))
                c.branch("s_cbranch_scc1", held)
                self._missing_of_region(c, self.plan.cfg.blocks[point.block].last, missing)
                c.raw(Inst("s_and_not1_b32", (missing, missing, others)))
                c.branch("s_cbranch_scc1", held)
                c.raw(Inst("s_mov_b32", (EXEC, waiting)))
                m.write(c, point.key, None)
            c.branch("s_branch", _relented(point))
            c.mark(held)

    def _relent_group(self, c: RuleEmitter, point: ResumePoint, others: S, held: str) -> None:
        """The same with per-lane masks: of the lanes at a BSYNC those of one mask continue, and no
        lane waits for them any more."""
        m = self.m
        barrier = barrier_of(self.plan.cfg.blocks[point.block].last)
        assert barrier is not None
        masks = V(self.k.regs.barriers[barrier])
        with c.scope():
            left, first, same, missing = (c.stemp() for _ in range(4))
            again = self.k.label("Lgroup")
            with c.scope():
                c.raw(Inst("s_mov_b32", (left, m.read(c, point.key))))
            c.mark(again)
            c.raw(Inst("s_mov_b32", (EXEC, left)))
            c.branch("s_cbranch_execz", held)
            c.raw(Inst("v_readfirstlane_b32", (first, masks)))
            c.emit("v_cmp_eq_u32", same, first, masks)
            c.raw(Inst("s_and_not1_b32", (left, left, same)))
            c.raw(Inst("s_and_b32", (missing, first, self.k.regs.live)))
            c.raw(Inst("s_and_not1_b32", (missing, missing, same)))
            c.raw(Inst("s_and_not1_b32", (missing, missing, others)))
            c.branch("s_cbranch_scc1", again)
            with c.scope():
                waiting = m.read(c, point.key)
                c.raw(Inst("s_and_not1_b32", (waiting, waiting, same)))
                m.write(c, point.key, waiting)
            c.raw(Inst("s_mov_b32", (EXEC, same)))
            self._break_masks(c, masks)
            c.raw(Inst("s_mov_b32", (EXEC, same)))


def _relented(point: ResumePoint) -> str:
    """The label where lanes continue that a BSYNC releases without the others."""
    return f"Lrelented_{point.key - 1:04x}"

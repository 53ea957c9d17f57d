"""Emits the instructions that arm and change convergence barriers: BSSY, BREAK, BMOV."""

from __future__ import annotations

from sassxlate.cfg.regions import barrier_of, moves_barrier
from sassxlate.disasm.rdna3.instruction import Inst, V
from sassxlate.disasm.sass.instruction import BReg, Instruction, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.convergence.lane_masks import LaneMasks
from sassxlate.lowering.convergence.plan import (
    ConvergencePlan,
)
from sassxlate.lowering.target import EXEC, ZERO


class BarrierRegisters:
    """The lanes of each convergence barrier of a kernel."""

    def __init__(self, machine: LaneMasks) -> None:
        self.m = machine
        self.k = machine.k
        self.plan: ConvergencePlan = machine.plan

    def arm(self, c: RuleEmitter, ins: Instruction) -> None:
        """BSSY: the running lanes join their region."""
        if self.plan.barriers:
            c.raw(Inst("v_mov_b32", (self._masks(c, ins), EXEC)))
            return
        index = next(i for i, r in enumerate(self.plan.regions) if ins.offset in r.arms)
        if not any(sync + 1 in self.k.regs.ready for sync in self.plan.regions[index].syncs):
            return  # every BSYNC of the region is folded away
        slot = self.k.regs.regions[index]
        armed = c.read_slot(slot)
        c.raw(Inst("s_or_b32", (armed, armed, EXEC)))
        c.write_slot(slot, armed)

    def _masks(self, c: RuleEmitter, ins: Instruction) -> V:
        barrier = barrier_of(ins)
        if barrier is None:
            raise c.refuse("no convergence barrier", "SX0412")
        return V(self.k.regs.barriers[barrier])

    def _disarm(self, c: RuleEmitter, ins: Instruction) -> None:
        """Clears the barrier of the running lanes, which passed BSYNC."""
        if self.plan.barriers:
            c.raw(Inst("v_mov_b32", (self._masks(c, ins), ZERO)))
            return
        index = self.plan.sync_region.get(ins.offset, -1)
        if index >= 0:
            self._leave_region(c, index)

    def _leave_region(self, c: RuleEmitter, index: int) -> None:
        if not any(sync + 1 in self.k.regs.ready for sync in self.plan.regions[index].syncs):
            return
        with c.scope():
            slot = self.k.regs.regions[index]
            armed = c.read_slot(slot)
            c.raw(Inst("s_and_not1_b32", (armed, armed, EXEC)))
            c.write_slot(slot, armed)

    def break_out(self, c: RuleEmitter, ins: Instruction) -> None:
        """BREAK: the running lanes leave the region of their barrier register."""
        if ins.get("B") is None or barrier_of(ins) is None:
            raise c.refuse("BREAK of this barrier")
        narrowed = self.m.condition(c, ins)
        save = c.stemp()
        c.raw(Inst("s_mov_b32", (save, EXEC)))
        if narrowed is not None:
            c.raw(Inst("s_mov_b32", (EXEC, narrowed)))
        if self.plan.barriers:
            self._break_masks(c, self._masks(c, ins))
        else:
            for index, region in enumerate(self.plan.regions):
                if ins.offset in region.breaks:
                    self._leave_region(c, index)
        c.raw(Inst("s_mov_b32", (EXEC, save)))

    def _break_masks(self, c: RuleEmitter, masks: V) -> None:
        """Removes the running lanes from the masks of all lanes that were armed with them."""
        left, first, same, hit = (c.stemp() for _ in range(4))
        again, done = self.k.label("Lbreak"), self.k.label("Lbroken")
        c.raw(Inst("s_mov_b32", (left, EXEC)))
        c.mark(again)
        c.raw(Inst("s_mov_b32", (EXEC, left)))
        c.branch("s_cbranch_execz", done)
        c.raw(Inst("v_readfirstlane_b32", (first, masks)))
        c.emit("v_cmp_eq_u32", same, first, masks)
        c.raw(Inst("s_and_not1_b32", (left, left, same)))
        c.raw(Inst("s_mov_b32", (EXEC, self.k.regs.live)))
        c.emit("v_cmp_eq_u32", hit, first, masks)
        c.raw(Inst("s_and_not1_b32", (first, first, same)))
        c.raw(Inst("s_mov_b32", (EXEC, hit)))
        c.raw(Inst("v_mov_b32", (masks, first)))
        c.raw(Inst("s_mov_b32", (EXEC, same)))
        c.raw(Inst("v_mov_b32", (masks, ZERO)))
        c.branch("s_branch", again)
        c.mark(done)

    def move(self, c: RuleEmitter, ins: Instruction) -> None:
        """BMOV: saves, restores or clears a barrier's mask; reads the state of the warp."""
        target = ins.get("Rd")
        if not isinstance(target, Reg):
            self._restore(c, ins)
            return
        if barrier_of(ins) is None:
            self._state(c, ins)
            return
        if moves_barrier(ins):
            c.emit("v_mov_b32", c.dst_last("Rd"), self._masks(c, ins))
        if not ins.has("CLEAR"):
            return
        if self.plan.barriers:
            c.raw(Inst("v_mov_b32", (self._masks(c, ins), ZERO)))
        else:
            for index, region in enumerate(self.plan.regions):
                if ins.offset in region.breaks:
                    self._leave_region(c, index)

    def _restore(self, c: RuleEmitter, ins: Instruction) -> None:
        if barrier_of(ins) is None:
            raise c.refuse("write to the state of a thread", "SX0427")
        masks = self._masks(c, ins)
        c.raw(Inst("v_mov_b32", (masks, c.value(c.operand("Ra")))))

    def _state(self, c: RuleEmitter, ins: Instruction) -> None:
        """Thread state: the running and the ended lanes are known here, the rest is the
        driver's."""
        state = ins.get("B")
        name = state.name if isinstance(state, BReg) else ""
        value = c.stemp()
        match name:
            case "MACTIVE":
                c.raw(Inst("s_mov_b32", (value, EXEC)))
            case "MEXITED":
                c.raw(Inst("s_not_b32", (value, self.k.regs.live)))
            case _:
                raise c.refuse(f"thread state {name}", "SX0427")
        if ins.has("CLEAR"):
            raise c.refuse(f"clearing of {name}", "SX0427")
        c.give_scalar("Rd", value)

"""Instructions that arm and change convergence barriers: BSSY, BREAK, BMOV."""

from __future__ import annotations

from sassxlate.cfg.regions import barrier_of, moves_barrier
from sassxlate.disasm.sass.instruction import BReg, Instruction, Reg
from sassxlate.lowering.convergence.plan import ConvergencePlan
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.masked.masks import ZERO, Masks
from sassxlate.lowering.tier.refusal import FLOW, FORM, refused


class BarrierRegisters:
    """The lanes of each convergence barrier of a kernel: a mask for each region, or, where BMOV
    saves and restores them, a word of each lane for each barrier."""

    def __init__(self, masks: Masks, plan: ConvergencePlan) -> None:
        self.m, self.lane, self.plan = masks, masks.lane, plan
        self.waits = {p.key for p in plan.points}

    def has_points(self, region: int) -> bool:
        """Whether lanes wait at some BSYNC of a region."""
        return any(sync + 1 in self.waits for sync in self.plan.regions[region].syncs)

    def word(self, ins: Instruction) -> str:
        """The name of the lanes' words for the barrier of an instruction."""
        barrier = barrier_of(ins)
        if barrier is None:
            raise refused(FLOW, "no convergence barrier", ins)
        return f"barrier{barrier}"

    def set_words(self, name: str, lanes: Val, value: Val) -> None:
        """The words of some lanes."""
        d = self.lane.d
        self.m.write(name, d.select(self.m.inside(lanes), value, self.m.read(name)))

    def arm(self, ins: Instruction) -> None:
        """BSSY: the running lanes join their region."""
        m = self.m
        running = m.lanes(m.running, self.lane.holds(ins.guard))
        if self.plan.barriers:
            self.set_words(self.word(ins), running, running)
            return
        region = next(i for i, r in enumerate(self.plan.regions) if ins.offset in r.arms)
        if self.has_points(region):
            m.add(f"region{region}", running)

    def disarm(self, ins: Instruction) -> None:
        """The running lanes passed a BSYNC."""
        if self.plan.barriers:
            self.set_words(self.word(ins), self.m.running, ZERO)
            return
        region = self.plan.sync_region.get(ins.offset, -1)
        if region >= 0:
            self._leave(region, self.m.running)

    def _leave(self, region: int, lanes: Val) -> None:
        if self.has_points(region):
            self.m.remove(f"region{region}", lanes)

    def break_out(self, ins: Instruction, lanes: Val) -> None:
        """BREAK: lanes leave the region of their barrier."""
        if self.plan.barriers:
            self.leave_words(self.word(ins), lanes)
            return
        for index, region in enumerate(self.plan.regions):
            if ins.offset in region.breaks:
                self._leave(index, lanes)

    def leave_words(self, name: str, lanes: Val) -> None:
        """Takes lanes out of the words of all lanes that were armed with them."""
        m, d = self.m, self.lane.d
        words = m.read(name)
        with m.groups(lanes, words) as (first, same):
            hit = m.lanes(m.live, d.eq(m.read(name), first))
            self.set_words(name, hit, m.without(first, same))
            self.set_words(name, same, ZERO)

    def move(self, ins: Instruction) -> None:
        """BMOV: saves, restores or clears a barrier's mask; reads the state of the warp."""
        m, lane = self.m, self.lane
        lane.ins = ins
        running = m.lanes(m.running, lane.holds(ins.guard))
        target = ins.get("Rd")
        if not isinstance(target, Reg):
            if barrier_of(ins) is None:
                raise refused(FLOW, "a write to the state of a thread", ins)
            if not self.plan.barriers:
                raise refused(FLOW, "a barrier of another kind", ins)
            self.set_words(self.word(ins), running, lane.word("Ra"))
            return
        if target.file != "R":
            raise refused(FORM, "the destination Rd", ins)
        if barrier_of(ins) is None:
            self._state(ins, running)
            return
        if moves_barrier(ins):
            lane.give("Rd", [m.read(self.word(ins))], m.inside(running))
        if not ins.has("CLEAR"):
            return
        if self.plan.barriers:
            self.set_words(self.word(ins), running, ZERO)
        else:
            self.break_out(ins, running)

    def _state(self, ins: Instruction, running: Val) -> None:
        state = ins.get("B")
        name = state.name if isinstance(state, BReg) else ""
        if ins.has("CLEAR") or name not in ("MACTIVE", "MEXITED"):
            raise refused(FLOW, f"thread state {name}", ins)
        value = running if name == "MACTIVE" else self.lane.d.xor(self.m.live, const(-1, 32))
        self.lane.give("Rd", [value], self.m.inside(running))


__all__ = ["BarrierRegisters"]

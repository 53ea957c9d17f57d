"""BAR.RED of the whole block, and B2R, which reads its result.

As in the rules' code (`lowering/convergence/barriers.py`): each warp adds its count to a word of
shared memory after the kernel's own, waits, reads the sum, waits again, and takes its count away.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.cfg import Cfg
from sassxlate.disasm.sass.instruction import Instruction, Pred, Reg
from sassxlate.lowering.convergence.barriers import AREA, PADDING, SUM0
from sassxlate.lowering.convergence.plan import is_plain_barrier
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.lane import Guard, Lane, Place
from sassxlate.lowering.tier.numbers import stand_ins
from sassxlate.lowering.tier.others import ballot, first_lane
from sassxlate.lowering.tier.refusal import FORM, refused

SHARED_BYTES = AREA + PADDING  # after the kernel's own shared memory


def reduces(ins: Instruction) -> bool:
    """Whether it is a reduction over the whole block."""
    return ins.mnemonic == "BAR" and ins.has("RED") and is_plain_barrier(ins)


class Reductions:
    """Those of one kernel."""

    def __init__(self, lane: Lane, cfg: Cfg) -> None:
        self.lane = lane
        every = [i for b in cfg.blocks for i in b.instructions if reduces(i)]
        self.counts = all(i.has("POPC") for i in every)
        self.cfg = cfg
        self.place: Place | None = None

    def _at(self) -> str:
        """The address of the sum: after static and dynamic shared memory."""
        lane, d = self.lane, self.lane.d
        dynamic = lane.layout.dynamic_shared
        if dynamic is None:
            raise refused(FORM, "barriers in shared memory on this architecture", lane.ins)
        fixed = -(-lane.kernel.shared_size // PADDING) * PADDING
        end = d.add(lane.constant_word(0, dynamic), const(fixed + PADDING - 1, 32))
        at = d.add(d.and_(end, const(-PADDING, 32)), const(SUM0, 32))
        return lane.fn.emit(f"inttoptr i32 {at.ref} to ptr addrspace(3)")

    def _result(self) -> Place:
        """Where the result is; the sum is cleared before the kernel begins."""
        lane = self.lane
        if self.place is None:
            fn = lane.fn
            lane.shared_after = SHARED_BYTES
            self.place = Place(fn, "%reduced")
            fn.entry.append("  %reduced = alloca i32, align 4, addrspace(5)")
            lines, memo = fn.lines, fn.memo
            fn.lines, fn.memo = [], {}
            self.place.store(const(0, 32))
            fn.do(f"store i32 0, ptr addrspace(3) {self._at()}, align 4")
            wait(lane)
            fn.entry += fn.lines
            fn.lines, fn.memo = lines, memo
        return self.place

    def meet(self, ins: Instruction, lanes: Callable[[Guard], Val]) -> None:
        """BAR.RED where all live lanes are.  ``lanes``: those of them for which a condition
        holds."""
        lane, d, fn = self.lane, self.lane.d, self.lane.fn
        lane.ins = ins
        told = ins.get("Pp")
        if not isinstance(told, Pred):
            raise refused(FORM, "a reduction without a predicate", ins)
        truth = lane.truth(told)
        place = self._result()
        votes = d.popcount(lanes(d.not_(truth) if ins.has("AND") else truth))
        here, at = ballot(lane, const(1, 1)), self._at()
        one = d.eq(d.ctz(here), lane.lane_number())
        self._add(one, "add", votes, at)
        wait(lane)
        ref = fn.emit_new(f"load volatile i32, ptr addrspace(3) {at}, align 4")
        total = first_lane(lane, Val(ref, 32, False))
        wait(lane)
        self._add(one, "sub", votes, at)
        if ins.has("POPC"):
            place.store(total)
        else:
            none = d.eq(total, const(0, 32))
            place.store(d.zext(none if ins.has("AND") else d.not_(none), 32))

    def _add(self, one: Val, how: str, votes: Val, at: str) -> None:
        def once() -> None:
            self.lane.fn.emit_new(
                f"atomicrmw {how} ptr addrspace(3) {at}, i32 {votes.ref} "
                'syncscope("workgroup") monotonic, align 4'
            )

        self.lane.under(one, once)

    def result(self, ins: Instruction, guard: Guard) -> None:
        """B2R.RESULT: the last reduction's, as a number or a predicate."""
        lane, target = self.lane, ins.get("Rd")
        if not ins.has("RESULT"):
            raise refused(FORM, "this form of B2R", ins)
        number = isinstance(target, Reg) and not target.is_zero
        if number and not self.counts and not self._counted(ins):
            raise refused(FORM, "a register for the result of AND or OR", ins)
        value = self._result().load()
        lane.give("Rd", [value], guard)
        lane.give_pred("Pu", lane.d.not_(lane.d.eq(value, const(0, 32))), guard)

    def _counted(self, ins: Instruction) -> bool:
        """Whether the last reduction before an instruction was a count, on the one way there."""
        cfg = self.cfg
        n = next(b.index for b in cfg.blocks if any(i.offset == ins.offset for i in b.instructions))
        for _ in cfg.blocks:
            if len(cfg.predecessors[n]) != 1:
                return False
            n = cfg.predecessors[n][0].src
            last = cfg.blocks[n].last
            if last.mnemonic == "BAR" and last.has("RED"):
                return last.has("POPC")
        return False


def wait(lane: Lane) -> None:
    """The barrier of the workgroup."""
    lane.module.declare("void @llvm.amdgcn.s.barrier()")
    lane.fn.do('fence syncscope("workgroup") release')
    if lane.drains and lane.target.instructions == "RDNA3":
        stand_ins.drain(lane.fn)
    lane.fn.do("call void @llvm.amdgcn.s.barrier()")
    lane.fn.do('fence syncscope("workgroup") acquire')


__all__ = ["SHARED_BYTES", "Reductions", "reduces", "wait"]

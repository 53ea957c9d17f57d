"""Barriers of a workgroup: s_barrier for the plain one, counters in shared memory for the others.

s_barrier ignores EXEC and there is one per workgroup, so it serves barrier 0 over the whole block,
once per wave.  Named and counted barriers, and all barriers of a kernel whose barrier numbers come
from registers, are records in shared memory after the kernel's own, polled with s_sleep.  A wave
counts as 32 threads, as a warp does.

A record (32 bytes per barrier): threads arrived; generation, which changes when the barrier opens;
two sums of reductions, used in turn; waves that still have to read the last sum.  After the
records: threads whose waves ended, for barriers over the whole block; the sum of barrier 0's
reductions.  Then the records of a block's warpgroups, if its warps meet.
"""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import Imm, Instruction, Pred, Reg
from sassxlate.disasm.sass.semantics.warpgroups import FIRST, WARPS, is_meeting
from sassxlate.lowering.abi.reserved_shared import KILOBYTE, SIZE, reserved
from sassxlate.lowering.builder.lane_id import wave_in_group
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.convergence.lane_masks import LaneMasks
from sassxlate.lowering.convergence.plan import RESULT, ConvergencePlan, is_plain_barrier
from sassxlate.lowering.target import ALL_ONES, EXEC, LANES, NULL, ZERO

RECORD, BARRIERS = 32, 16
ARRIVED, GENERATION, READERS, SUMS = 0, 4, 8, 16  # byte offsets in a record; two sums
GONE, SUM0 = RECORD * BARRIERS, RECORD * BARRIERS + 4
AREA = 5 * 128  # size of the records in bytes; five stores of a wave clear it
MEETINGS = 2 * 128  # after it: the records of a block's warpgroups, eight, numbered from FIRST on
PADDING = 16  # the area starts at a multiple of this, after dynamic shared memory


def shared_bytes(plan: ConvergencePlan) -> int:
    """Bytes of shared memory that a kernel needs after its own: its barriers' records, and what
    CUDA's headers use where it is at the end."""
    needed = record_bytes(plan)
    if reserved(plan.cfg) == "end":
        needed += SIZE
    return needed + PADDING if needed else 0


def record_bytes(plan: ConvergencePlan) -> int:
    """Bytes of the barriers' records."""
    every = [i for b in plan.cfg.blocks for i in b.instructions if i.mnemonic == "BAR"]
    if not plan.polled and not any(i.has("RED") for i in every):
        return 0
    return AREA + (MEETINGS if any(map(is_meeting, every)) else 0)


class Barriers:
    """Emits the BAR and B2R of one kernel."""

    def __init__(self, machine: LaneMasks) -> None:
        self.m = machine
        self.k = machine.k
        every = [i for b in machine.plan.cfg.blocks for i in b.instructions if i.mnemonic == "BAR"]
        # A number from a register may be 0, so barrier 0 must be a record like the others.
        self.records_all = any(not isinstance(i.get("barrier"), Imm) for i in every)
        self.whole = [i for i in every if self._is_polled(i) and not self._has_count(i)]
        self.sums = any(i.has("RED") and self._is_polled(i) for i in every)
        self.area = max(shared_bytes(machine.plan) - PADDING, 0)
        self.begin = SIZE if reserved(machine.plan.cfg) == "begin" else 0
        self.least = KILOBYTE if self.begin else 0

    @staticmethod
    def _has_count(ins: Instruction) -> bool:
        count = ins.get("count")
        return isinstance(count, Imm) and count.value != 0

    def _is_polled(self, ins: Instruction) -> bool:
        return self.records_all or not is_plain_barrier(ins)

    # --- pieces ----------------------------------------------------------------------------------

    def _base(self, c: RuleEmitter) -> S:
        """The address of the area: after static and dynamic shared memory."""
        at = self.k.layout.dynamic_shared
        if at is None:
            raise c.refuse("barriers in shared memory on this architecture", "SX0424")
        base = c.stemp()
        fixed = (max(self.k.shared_size, self.least) + PADDING - 1) & ~(PADDING - 1)
        c.raw(Inst("s_add_u32", (base, c.constant_word(0, at), I(fixed + PADDING - 1))))
        c.raw(Inst("s_and_b32", (base, base, I(-PADDING & 0xFFFFFFFF))))
        return base

    def _drain(self, c: RuleEmitter) -> None:
        # All memory traffic of the wave is done before it reports its arrival.
        c.raw(Inst("s_waitcnt", (), imm=0, fence=True))
        c.raw(Inst("s_waitcnt_vscnt", (NULL,), imm=0, fence=True))

    def _load(self, c: RuleEmitter, address: V, offset: int) -> S:
        got, out = c.vtemp(), c.stemp()
        c.raw(Inst("ds_load_b32", (got, address), imm=offset))
        c.raw(Inst("v_readfirstlane_b32", (out, got)))
        return out

    def _store(self, c: RuleEmitter, address: V, value: Arg, offset: int) -> None:
        c.raw(Inst("ds_store_b32", (address, c.to_v(value)), imm=offset))

    def _add(self, c: RuleEmitter, address: V, value: Arg, offset: int) -> None:
        c.raw(Inst("ds_add_u32", (address, c.to_v(value)), imm=offset))

    def prologue(self, c: RuleEmitter) -> None:
        """Clears the area, and what CUDA's headers use at the beginning; every wave does so, and
        none continues before it is done."""
        if not self.area and not self.begin:
            return
        save = c.stemp()
        c.raw(Inst("s_mov_b32", (save, EXEC)))
        c.raw(Inst("s_mov_b32", (EXEC, ALL_ONES)))
        base = self._base(c) if self.area else None
        at = c.vtemp()
        c.emit("v_mbcnt_lo_u32_b32", at, ALL_ONES, ZERO)
        c.emit("v_lshlrev_b32", at, I(2), at)
        for offset in range(0, self.begin, 128):
            self._store(c, at, ZERO, offset)
        if base is not None:
            c.emit("v_add_nc_u32", at, base, at)
        for offset in range(0, self.area, 128):
            self._store(c, at, ZERO, offset)
        self._drain(c)
        c.raw(Inst("s_barrier"))
        c.raw(Inst("s_mov_b32", (EXEC, save)))

    def depart(self, c: RuleEmitter) -> None:
        """The wave ends: barriers over the whole block no longer count it."""
        if not self.whole:
            return
        c.raw(Inst("s_mov_b32", (EXEC, I(1))))
        self._drain(c)
        self._add(c, c.to_v(self._base(c)), I(LANES), GONE)
        self._drain(c)

    # --- arrivals --------------------------------------------------------------------------------

    def arrive(self, c: RuleEmitter, ins: Instruction) -> None:
        """BAR, for all live lanes of the wave."""
        if not any(ins.has(kind) for kind in ("SYNC", "ARV", "RED")):
            raise c.refuse("this kind of barrier", "SX0424")
        if self._is_polled(ins):
            self._polled(c, ins)
            return
        if ins.has("RED"):
            self._reduce_plain(c, ins)
            return
        self._drain(c)
        c.raw(Inst("s_barrier"))

    def _votes(self, c: RuleEmitter, ins: Instruction) -> S:
        """The wave's contribution to a reduction: its lanes with a true predicate (AND: a false
        one)."""
        pred = ins.get("Pp")
        if not isinstance(pred, Pred):
            raise c.refuse("reduction without a predicate", "SX0412")
        count = c.stemp()
        op = "s_and_not1_b32" if ins.has("AND") else "s_and_b32"
        c.raw(Inst(op, (count, EXEC, c.mask(pred))))
        c.raw(Inst("s_bcnt1_i32_b32", (count, count)))
        return count

    def _keep(self, c: RuleEmitter, ins: Instruction, total: S) -> None:
        """The result for B2R: the count, or 1 and 0."""
        if ins.has("POPC"):
            self.m.write(c, RESULT, total)
            return
        one = c.stemp()
        c.raw(Inst("s_cmp_eq_u32" if ins.has("AND") else "s_cmp_lg_u32", (total, ZERO)))
        c.raw(Inst("s_cselect_b32", (one, I(1), ZERO)))
        self.m.write(c, RESULT, one)

    def _reduce_plain(self, c: RuleEmitter, ins: Instruction) -> None:
        """Barrier 0: every wave adds its part, s_barrier, reads, s_barrier, subtracts its part."""
        votes, save = self._votes(c, ins), c.stemp()
        c.raw(Inst("s_mov_b32", (save, EXEC)))
        c.raw(Inst("s_mov_b32", (EXEC, I(1))))
        at = c.to_v(self._base(c))
        self._add(c, at, votes, SUM0)
        self._drain(c)
        c.raw(Inst("s_barrier"))
        total = self._load(c, at, SUM0)
        c.raw(Inst("s_barrier"))
        c.raw(Inst("s_sub_u32", (votes, ZERO, votes)))
        self._add(c, at, votes, SUM0)
        c.raw(Inst("s_mov_b32", (EXEC, save)))
        self._keep(c, ins, total)

    def _number_and_count(self, c: RuleEmitter, ins: Instruction) -> tuple[Arg, Arg]:
        """The barrier's number and the number of threads it waits for (0: the whole block).

        One register for both holds the number in bits 3:0 and the count in bits 27:16 (nvcc 13.0
        builds it so in the collective sections of barrier.sync, sm_90).
        """
        barrier, count = ins.get("barrier"), ins.get("count")
        number: Arg
        threads: Arg = ZERO
        if is_meeting(ins):
            group = wave_in_group(c)
            c.raw(Inst("s_lshr_b32", (group, group, I(WARPS.bit_length() - 1))))
            c.raw(Inst("s_add_u32", (group, group, I(FIRST))))
            return group, I(LANES * WARPS)
        if isinstance(barrier, Imm):
            number = I(barrier.value)
        elif isinstance(barrier, Reg):
            number = c.to_s(c.value(barrier))
        else:
            raise c.refuse("barrier without a number", "SX0412")
        packed = isinstance(barrier, Reg) and isinstance(count, Reg) and not count.is_zero
        if packed and isinstance(barrier, Reg) and isinstance(count, Reg):
            if barrier.index != count.index or barrier.file != count.file:
                raise c.refuse("barrier with two registers", "SX0424")
            low, high = c.stemp(), c.stemp()
            c.raw(Inst("s_and_b32", (low, number, I(15))))
            c.raw(Inst("s_bfe_u32", (high, number, I(12 << 16 | 16))))
            return low, high
        if isinstance(count, Imm):
            threads = I(count.value)
        elif isinstance(count, Reg) and not count.is_zero:
            threads = c.to_s(c.value(count))
        return number, threads

    def _threads(self, c: RuleEmitter, count: Arg) -> S:
        """The number of threads that must arrive; for the whole block, rounded up to waves."""
        out = c.stemp()
        lay = self.k.layout
        c.raw(Inst("s_mov_b32", (out, count)))
        if isinstance(count, I) and count.value:
            return out
        with c.scope():
            block = c.stemp()
            c.raw(Inst("s_mov_b32", (block, c.constant_word(0, lay.block_dim))))
            for at in (lay.block_dim + 4, lay.block_dim + 8):
                with c.scope():
                    c.raw(Inst("s_mul_i32", (block, block, c.constant_word(0, at))))
            c.raw(Inst("s_add_u32", (block, block, I(LANES - 1))))
            c.raw(Inst("s_and_b32", (block, block, I(-LANES & 0xFFFFFFFF))))
            c.raw(Inst("s_cmp_eq_u32", (out, ZERO)))
            c.raw(Inst("s_cselect_b32", (out, block, out)))
        return out

    def _polled(self, c: RuleEmitter, ins: Instruction) -> None:
        """A barrier in shared memory.  The last wave to arrive opens it, or a waiting wave that
        finds that waves have ended."""
        number, count = self._number_and_count(c, ins)
        red = ins.has("RED")
        votes = self._votes(c, ins) if red else None
        save, total, old = c.stemp(), c.stemp(), c.stemp()
        opened, poll, done = (self.k.label(x) for x in ("Lopen", "Lpoll", "Ldone"))
        threads = self._threads(c, count)
        whole = self._is_whole(count)
        c.raw(Inst("s_mov_b32", (save, EXEC)))
        c.raw(Inst("s_mov_b32", (EXEC, I(1))))
        base, record = self._base(c), c.stemp()
        c.raw(Inst("s_lshl_b32", (record, number, I(5))))
        c.raw(Inst("s_add_u32", (record, record, base)))
        at, area, slot = c.to_v(record), c.to_v(base), c.vtemp()
        self._drain(c)
        if self.sums:
            self._wait_for_readers(c, at)
        generation = self._load(c, at, GENERATION)
        if votes is not None:
            self._sum_slot(c, slot, record, generation, 0)
            self._add(c, slot, votes, SUMS)
        arrived = c.vtemp()
        c.raw(Inst("ds_add_rtn_u32", (arrived, at, c.to_v(I(LANES))), imm=ARRIVED))
        c.raw(Inst("v_readfirstlane_b32", (old, arrived)))
        c.raw(Inst("s_add_u32", (total, old, I(LANES))))
        # --- which wave opens it
        c.mark(poll)
        need = c.stemp()
        c.raw(Inst("s_mov_b32", (need, total)))
        if whole:
            with c.scope():
                gone = self._load(c, area, GONE)
                self._if_whole(c, count, gone)
                c.raw(Inst("s_add_u32", (need, need, gone)))
        c.raw(Inst("s_cmp_ge_u32", (need, threads)))
        c.branch("s_cbranch_scc1", opened)
        if ins.has("ARV"):
            c.branch("s_branch", done)
        else:
            c.raw(Inst("s_sleep", (), imm=1))
            with c.scope():
                now = self._load(c, at, GENERATION)
                c.raw(Inst("s_cmp_lg_u32", (now, generation)))
            c.branch("s_cbranch_scc1", done)
            if whole:
                with c.scope():
                    c.raw(Inst("s_mov_b32", (total, self._load(c, at, ARRIVED))))
            c.branch("s_branch", poll)
        self._open(c, at, slot, record, generation, (total, opened, done), red)
        c.mark(done)
        if red:
            self._read_sum(c, ins, at, slot, record, generation)
        c.raw(Inst("s_mov_b32", (EXEC, save)))

    @staticmethod
    def _is_whole(count: Arg) -> bool:
        return not (isinstance(count, I) and count.value)

    @staticmethod
    def _if_whole(c: RuleEmitter, count: Arg, gone: S) -> None:
        """Zeroes ``gone``, the count of ended waves, unless the barrier is over the whole block."""
        if isinstance(count, I):
            return
        c.raw(Inst("s_cmp_eq_u32", (count, ZERO)))
        c.raw(Inst("s_cselect_b32", (gone, gone, ZERO)))

    def _sum_slot(self, c: RuleEmitter, out: V, record: S, generation: S, ahead: int) -> None:
        """The address whose SUMS word holds the sum of generation + ``ahead``."""
        with c.scope():
            turn = c.stemp()
            c.raw(Inst("s_add_u32", (turn, generation, I(ahead))))
            c.raw(Inst("s_and_b32", (turn, turn, I(1))))
            c.raw(Inst("s_lshl_b32", (turn, turn, I(2))))
            c.raw(Inst("s_add_u32", (turn, turn, record)))
            c.emit("v_mov_b32", out, turn)

    def _wait_for_readers(self, c: RuleEmitter, at: V) -> None:
        again, fine = self.k.label("Lreaders"), self.k.label("Lfine")
        with c.scope():
            c.mark(again)
            readers = self._load(c, at, READERS)
            c.raw(Inst("s_cmp_eq_u32", (readers, ZERO)))
            c.branch("s_cbranch_scc1", fine)
            c.raw(Inst("s_sleep", (), imm=1))
            c.branch("s_branch", again)
            c.mark(fine)

    def _open(
        self,
        c: RuleEmitter,
        at: V,
        slot: V,
        record: S,
        generation: S,
        state: tuple[S, str, str],
        red: bool,
    ) -> None:
        """Opens the barrier, unless another wave was faster: the wave that clears the arrivals
        opens it.  Each opening turns to the other sum, which holds that of the last time."""
        total, opened, done = state
        c.mark(opened)
        with c.scope():
            seen, taken = c.vtemp(), c.stemp()
            c.raw(Inst("ds_cmpstore_rtn_b32", (seen, at, c.to_v(ZERO), c.to_v(total)), imm=ARRIVED))
            c.raw(Inst("v_readfirstlane_b32", (taken, seen)))
            c.raw(Inst("s_cmp_lg_u32", (taken, total)))
            lost = self.k.label("Llost")
            c.branch("s_cbranch_scc1", lost)
            if red:
                waves = c.stemp()
                c.raw(Inst("s_lshr_b32", (waves, total, I(5))))
                self._store(c, at, waves, READERS)
            if self.sums:  # whether this was a reduction or not: the next may be one
                self._sum_slot(c, slot, record, generation, 1)
                self._store(c, slot, ZERO, SUMS)
            self._add(c, at, I(1), GENERATION)
            c.branch("s_branch", done)
            c.mark(lost)
            # Another wave opens it, or a later arrival will: wait for the generation to change.
            c.raw(Inst("s_sleep", (), imm=1))
            now = self._load(c, at, GENERATION)
            c.raw(Inst("s_cmp_eq_u32", (now, generation)))
            c.branch("s_cbranch_scc1", lost)

    def _read_sum(
        self, c: RuleEmitter, ins: Instruction, at: V, slot: V, record: S, generation: S
    ) -> None:
        self._sum_slot(c, slot, record, generation, 0)
        result = self._load(c, slot, SUMS)
        self._add(c, at, ALL_ONES, READERS)
        self._keep(c, ins, result)

    # --- results ---------------------------------------------------------------------------------

    def result(self, c: RuleEmitter, ins: Instruction) -> None:
        """B2R.RESULT: the last reduction's result, as a number or a predicate."""
        if not ins.has("RESULT"):
            raise c.refuse("this form of B2R", "SX0426")
        value = self.m.read(c, RESULT)
        target = ins.get("Rd")
        if isinstance(target, Reg) and not target.is_zero:
            kinds = {
                "POPC" if i.has("POPC") else "other"
                for b in self.m.plan.cfg.blocks
                for i in b.instructions
                if i.mnemonic == "BAR" and i.has("RED")
            }
            last = self._last_reduction(ins)
            if "other" in kinds and (last is None or not last.has("POPC")):
                raise c.refuse("a register for the result of AND or OR", "SX0426")
            c.give_scalar("Rd", value)
        if c.wants_pred("Pu"):
            mask = c.stemp()
            c.raw(Inst("s_cmp_lg_u32", (value, ZERO)))
            c.raw(Inst("s_cselect_b32", (mask, ALL_ONES, ZERO)))
            c.pred_commit("Pu", mask)

    def _last_reduction(self, ins: Instruction) -> Instruction | None:
        """The reduction that ends the only predecessor of this instruction's block, if any."""
        cfg = self.m.plan.cfg
        block = next(b for b in cfg.blocks if ins in b.instructions)
        for _ in range(len(cfg.blocks)):
            before = cfg.predecessors[block.index]
            if len(before) != 1:
                return None
            block = cfg.blocks[before[0].src]
            if block.last.mnemonic == "BAR" and block.last.has("RED"):
                return block.last
        return None


__all__ = ["Barriers", "record_bytes", "shared_bytes"]

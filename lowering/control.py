"""Writes control flow: branches, calls, exits, sync points and the scan for waiting lanes."""

from __future__ import annotations

from sassxlate.cfg import Block
from sassxlate.cfg.build import SIZE
from sassxlate.disasm.rdna3.ir import I, Inst, S
from sassxlate.disasm.sass.ir import Imm, Instruction, Label, Pred, Reg

from .context import ALL_ONES, EXEC, NULL, ZERO, Ctx, KernelState
from .convergence import Plan, Point, branch_target, is_state_test, warpsync_mask
from .rules.integer import is_zero

END, SCAN, STUCK = "Lend", "Lscan", "Lstuck"
TRAP_STUCK = 0x51  # trap id: no lane can go on (divergent barriers that never meet)
TRAP_COLLECTIVE = 0x53  # trap id: WARPSYNC.COLLECTIVE, not translated, was reached
TRAP_TOKEN = 0x52  # trap id: a return or indirect branch to an address the cubin does not list


def label_of(offset: int) -> str:
    return f"L_{offset:04x}"


class Control:
    """Emits the end of each block.  One instance a kernel."""

    def __init__(self, k: KernelState, plan: Plan) -> None:
        self.k = k
        self.plan = plan

    # --- small pieces -----------------------------------------------------------------------------

    def next_label(self, block: Block, *, behind_sync: bool = True) -> str:
        point = self.plan.next_point(block.index, behind_sync=behind_sync)
        return point.label if point else SCAN

    def deposit(self, c: Ctx, offset: int, mask: S) -> None:
        """Leaves the lanes of ``mask`` waiting at block ``offset``."""
        slot = self.k.regs.ready[offset]
        old = c.read_slot(slot)
        if old == slot:
            c.raw(Inst("s_or_b32", (old, old, mask)))
        else:
            c.raw(Inst("s_or_b32", (old, old, mask)))
            c.write_slot(slot, old)

    def deposit_exec(self, c: Ctx, offset: int) -> None:
        temp = c.stemp()
        c.raw(Inst("s_mov_b32", (temp, EXEC)))
        self.deposit(c, offset, temp)

    def head(self, c: Ctx, block: Block) -> None:
        """Takes the waiting lanes in, and goes on to the next point when there is nobody at all."""
        slot = self.k.regs.ready[block.start]
        waiting = c.read_slot(slot)
        c.raw(Inst("s_or_b32", (EXEC, EXEC, waiting)))
        c.write_slot(slot, ZERO)
        c.branch("s_cbranch_execz", self.next_after_head(block))

    def next_after_head(self, block: Block) -> str:
        points = self.plan.points
        here = next(i for i, p in enumerate(points) if p.block == block.index and p.sync is None)
        return points[here + 1].label if here + 1 < len(points) else SCAN

    # --- ends of blocks ---------------------------------------------------------------------------

    def end(self, c: Ctx, block: Block, following: Block | None) -> None:
        """The transfer of control at the end of ``block``; ``following`` is next in the layout."""
        last = block.last
        match last.mnemonic:
            case "BRA" | "JMP":
                self._branch(c, block)
            case "EXIT" | "KILL":
                self._exit(c, block)
            case "BSYNC" | "WARPSYNC" | "BAR":
                self._sync(c, block)
            case "CALL":
                self._call(c, block)
            case "RET":
                self._indirect(c, block, self._return_base(last))
            case "BRX" | "JMX" | "BRXU":
                self._indirect(c, block, self._branch_base(last))
            case _:
                pass
        falls = any(e.kind in ("fall", "sync") for e in self.plan.cfg.successors[block.index])
        if falls and (following is None or following.start != block.end):
            c.branch("s_branch", label_of(block.end))

    def condition(self, c: Ctx, ins: Instruction) -> S | None:
        """The running lanes that take the branch (guard and second predicate); None: all."""
        preds = [p for p in (ins.guard, ins.get("Pp")) if isinstance(p, Pred) and not p.is_true]
        if not preds:
            return None
        taken = c.stemp()
        c.raw(Inst("s_and_b32", (taken, EXEC, c.mask(preds[0]))))
        for p in preds[1:]:
            c.raw(Inst("s_and_b32", (taken, taken, c.mask(p))))
        return taken

    def _branch(self, c: Ctx, block: Block) -> None:
        ins = block.last
        target = branch_target(ins)
        forward = target > ins.offset
        if is_state_test(ins):
            self._state_test(c, block, target)
            return
        taken = self.condition(c, ins)
        if taken is None:
            if forward and target in self.plan.heads and self._skips_points(ins, target):
                self.deposit_exec(c, target)
                c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
                c.branch("s_branch", self.next_label(block))
            else:
                c.branch("s_branch", label_of(target))
            return
        if self.plan.uniformity.uniform_branch[block.index]:
            c.raw(Inst("s_cmp_lg_u32", (taken, ZERO)))
            c.branch("s_cbranch_scc1", label_of(target))
            return
        if forward:
            self.deposit(c, target, taken)
            c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, taken)))
            c.branch("s_cbranch_execz", self.next_label(block))
            return
        stay = c.stemp()
        c.raw(Inst("s_and_not1_b32", (stay, EXEC, taken)))
        self.deposit(c, block.end, stay)
        c.raw(Inst("s_mov_b32", (EXEC, taken)))
        c.branch("s_cbranch_execnz", label_of(target))

    def _skips_points(self, ins: Instruction, target: int) -> bool:
        return any(ins.offset < h < target for h in self.plan.heads)

    def _state_test(self, c: Ctx, block: Block, target: int) -> None:
        """BRA.DIV jumps when lanes of its mask are missing, BRA.CONV when none is."""
        ins = block.last
        mask = ins.get("Ra")
        missing = c.stemp()
        lanes = c.to_s(c.value(mask)) if isinstance(mask, Reg | Imm) else ALL_ONES
        if isinstance(mask, Reg) and mask.inv:
            c.raw(Inst("s_not_b32", (missing, lanes)))
            lanes = missing
        c.raw(Inst("s_and_b32", (missing, self.k.regs.live, lanes)))
        c.raw(Inst("s_and_not1_b32", (missing, missing, EXEC)))
        taken = self.condition(c, ins)
        # The guard is the same for all lanes that belong together: it only says whether to test.
        c.raw(Inst("s_cmp_lg_u32", (missing, ZERO)))
        if taken is None:
            c.branch("s_cbranch_scc1" if ins.has("DIV") else "s_cbranch_scc0", label_of(target))
            return
        flag = c.stemp()
        one, zero = (ALL_ONES, ZERO) if ins.has("DIV") else (ZERO, ALL_ONES)
        c.raw(Inst("s_cselect_b32", (flag, one, zero)))
        c.raw(Inst("s_and_b32", (flag, flag, taken)))
        c.branch("s_cbranch_scc1", label_of(target))

    def _exit(self, c: Ctx, block: Block) -> None:
        live = self.k.regs.live
        leaving = self.condition(c, block.last)
        if leaving is None:
            c.raw(Inst("s_and_not1_b32", (live, live, EXEC)))
            c.branch("s_cbranch_scc0", END)
            c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
            c.branch("s_branch", self.next_label(block))
            return
        c.raw(Inst("s_and_not1_b32", (live, live, leaving)))
        c.branch("s_cbranch_scc0", END)
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, leaving)))
        c.branch("s_cbranch_execz", self.next_label(block))

    def _call(self, c: Ctx, block: Block) -> None:
        ins = block.last
        # A call that never comes back is the compiler's far jump: its edge is "taken".
        if not any(e.kind in ("call", "taken") for e in self.plan.cfg.successors[block.index]):
            raise c.refuse("call of a function outside the kernel", "SX0420")
        target = branch_target(ins)
        called = self.condition(c, ins)
        if called is None:
            c.branch("s_branch", label_of(target))
            return
        stay = c.stemp()
        c.raw(Inst("s_and_not1_b32", (stay, EXEC, called)))
        self.deposit(c, block.end, stay)
        c.raw(Inst("s_mov_b32", (EXEC, called)))
        c.branch("s_cbranch_execnz", label_of(target))

    @staticmethod
    def _return_base(ins: Instruction) -> int:
        """What is added to a RET's register to get a byte offset in the kernel."""
        label, disp = ins.get("target"), ins.get("disp")
        if isinstance(label, Label):
            return label.target
        if ins.has("ABS"):
            return 0
        if isinstance(disp, Imm):
            return (disp.value + ins.offset + SIZE) & 0xFFFFFFFF
        return 0

    _branch_base = _return_base

    def _indirect(self, c: Ctx, block: Block, base: int) -> None:
        """Leaves each lane waiting at the block its register names.

        The candidates are known: the return sites of the function's calls, or the jump table's
        targets.  A lane that names none of them traps.
        """
        ins = block.last
        token = c.to_v(c.src("Ra"))
        targets = sorted(
            self.plan.cfg.blocks[e.dst].start
            for e in self.plan.cfg.successors[block.index]
            if e.kind in ("ret", "taken")
        )
        if not targets:
            raise c.refuse("no known target", "SX0421")
        moving = self.condition(c, ins)
        rest, hit = c.stemp(), c.stemp()
        c.raw(Inst("s_mov_b32", (rest, moving if moving is not None else EXEC)))
        for target in targets:
            c.emit("v_cmp_eq_u32", hit, I((target - base) & 0xFFFFFFFF), token)
            c.raw(Inst("s_and_b32", (hit, hit, rest)))
            self.deposit(c, target, hit)
            c.raw(Inst("s_and_not1_b32", (rest, rest, hit)))
        c.raw(Inst("s_cmp_lg_u32", (rest, ZERO)))
        self._trap_if(c, "s_cbranch_scc0", TRAP_TOKEN)
        first = label_of(targets[0])
        if moving is None:
            c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
            c.branch("s_branch", first)
            return
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, moving)))
        c.branch("s_cbranch_execz", first)

    def _trap_if(self, c: Ctx, skip: str, trap: int) -> None:
        fine = self.k.label("Lfine")
        c.branch(skip, fine)
        c.raw(Inst("s_trap", (), imm=trap))
        c.mark(fine)

    # --- sync points ------------------------------------------------------------------------------

    def _sync(self, c: Ctx, block: Block) -> None:
        ins = block.last
        point = self.plan.syncs.get(block.index)
        if ins.has("COLLECTIVE"):
            # The slow path of a shuffle whose warp came apart.  Stopping there is loud; going on
            # would need the collective section's own rules.
            c.raw(Inst("s_trap", (), imm=TRAP_COLLECTIVE))
        if ins.mnemonic == "BAR" and not ins.has("SYNC"):
            raise c.refuse("barrier reductions are not translated yet", "SX0422")
        if ins.mnemonic == "BAR":
            self._check_barrier(c, ins)
        if not ins.guard.is_true:
            raise c.refuse("guarded synchronisation is not translated yet", "SX0423")
        if point is None:
            if ins.mnemonic == "BAR":
                self._barrier(c)
            elif ins.mnemonic == "BSYNC":
                region = self.plan.sync_region.get(ins.offset, -1)
                if region >= 0:
                    c.write_slot(self.k.regs.regions[region], ZERO)
            return
        slot = self.k.regs.ready[point.key]
        self.deposit_key(c, point)
        c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
        c.mark(point.label)
        blocked = self.next_label(block)
        if point.sync == "warpsync" and isinstance(warpsync_mask(ins), Reg):
            self._take_by_register(c, ins, point, blocked)
            return
        missing = self.missing(c, ins, point)
        c.raw(Inst("s_cmp_lg_u32", (missing, ZERO)))
        c.branch("s_cbranch_scc1", blocked)
        waiting = c.read_slot(slot)
        c.raw(Inst("s_mov_b32", (EXEC, waiting)))
        c.write_slot(slot, ZERO)
        c.branch("s_cbranch_execz", blocked)
        if point.sync == "bsync":
            self._release(c, ins)
        if point.sync == "barrier":
            self._barrier(c)

    def deposit_key(self, c: Ctx, point: Point) -> None:
        temp = c.stemp()
        c.raw(Inst("s_mov_b32", (temp, EXEC)))
        self.deposit(c, point.key, temp)

    def _check_barrier(self, c: Ctx, ins: Instruction) -> None:
        barrier, count = ins.get("barrier"), ins.get("count")
        zero = isinstance(barrier, Imm) and barrier.value == 0
        if not zero or not (count is None or is_zero(count)):
            raise c.refuse("named and counted barriers are not translated yet", "SX0424")

    def _barrier(self, c: Ctx) -> None:
        # All memory traffic of the wave is done before it reports its arrival (memory table).
        c.raw(Inst("s_waitcnt", (), imm=0))
        c.raw(Inst("s_waitcnt_vscnt", (NULL,), imm=0))
        c.raw(Inst("s_barrier"))

    def _release(self, c: Ctx, ins: Instruction) -> None:
        region = self.plan.sync_region[ins.offset]
        slot = self.k.regs.regions[region]
        armed = c.read_slot(slot)
        c.raw(Inst("s_and_not1_b32", (armed, armed, EXEC)))
        c.write_slot(slot, armed)

    def missing(self, c: Ctx, ins: Instruction, point: Point) -> S:
        """The lanes that this point still waits for."""
        out = c.stemp()
        live = self.k.regs.live
        ready = self.k.regs.ready
        if point.sync == "bsync":
            region = self.plan.sync_region.get(ins.offset, -1)
            if region < 0:
                raise c.refuse("BSYNC that no BSSY reaches", "SX0425")
            armed = c.read_slot(self.k.regs.regions[region])
            c.raw(Inst("s_and_b32", (out, live, armed)))
            for sync in self.plan.regions[region].syncs:
                if sync + 1 in ready:
                    at = c.read_slot(ready[sync + 1])
                    c.raw(Inst("s_and_not1_b32", (out, out, at)))
            return out
        mask = warpsync_mask(ins) if point.sync == "warpsync" else 0xFFFFFFFF
        assert isinstance(mask, int)
        c.raw(Inst("s_and_b32", (out, live, I(mask))))
        at = c.read_slot(ready[point.key])
        c.raw(Inst("s_and_not1_b32", (out, out, at)))
        return out

    def _take_by_register(self, c: Ctx, ins: Instruction, point: Point, blocked: str) -> None:
        """WARPSYNC with a register: a lane goes on when all live lanes of its own mask are here."""
        slot = self.k.regs.ready[point.key]
        waiting, gone, go = c.stemp(), c.stemp(), c.stemp()
        c.raw(Inst("s_mov_b32", (waiting, c.read_slot(slot))))
        c.raw(Inst("s_mov_b32", (EXEC, waiting)))
        c.branch("s_cbranch_execz", blocked)
        c.raw(Inst("s_and_not1_b32", (gone, self.k.regs.live, waiting)))
        lost = c.vtemp()
        c.emit("v_and_b32", lost, gone, c.to_v(c.src("Ra")))
        c.emit("v_cmp_eq_u32", go, ZERO, lost)
        c.raw(Inst("s_and_not1_b32", (waiting, waiting, go)))
        c.write_slot(slot, waiting)
        c.raw(Inst("s_and_b32", (EXEC, EXEC, go)))
        c.branch("s_cbranch_execz", blocked)

    def scan(self, make: Ctx) -> None:
        """Behind the last block: resume the first point that can go on, or end the wave."""
        c = make
        c.mark(SCAN)
        c.raw(Inst("s_cmp_lg_u32", (self.k.regs.live, ZERO)))
        c.branch("s_cbranch_scc0", END)
        for point in self.plan.points:
            block = self.plan.cfg.blocks[point.block]
            slot = self.k.regs.ready[point.key]
            inner = Ctx(self.k, block.last, converged=True)
            waiting = inner.read_slot(slot)
            inner.raw(Inst("s_cmp_lg_u32", (waiting, ZERO)))
            if point.sync is None:
                inner.branch("s_cbranch_scc1", point.label)
                continue
            skip = self.k.label("Lskip")
            inner.branch("s_cbranch_scc0", skip)
            self._scan_sync(inner, block, point)
            inner.mark(skip)
        c.raw(Inst("s_trap", (), imm=TRAP_STUCK))
        c.mark(END)
        c.raw(Inst("s_endpgm"))

    def _scan_sync(self, c: Ctx, block: Block, point: Point) -> None:
        ins = block.last
        if point.sync == "warpsync" and isinstance(warpsync_mask(ins), Reg):
            waiting, gone, go = c.stemp(), c.stemp(), c.stemp()
            c.raw(Inst("s_mov_b32", (waiting, c.read_slot(self.k.regs.ready[point.key]))))
            c.raw(Inst("s_mov_b32", (EXEC, waiting)))
            c.raw(Inst("s_and_not1_b32", (gone, self.k.regs.live, waiting)))
            lost = c.vtemp()
            c.emit("v_and_b32", lost, gone, c.to_v(c.src("Ra")))
            c.emit("v_cmp_eq_u32", go, ZERO, lost)
            c.raw(Inst("s_and_b32", (go, go, EXEC)))
            c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
            c.raw(Inst("s_cmp_lg_u32", (go, ZERO)))
            c.branch("s_cbranch_scc1", point.label)
            return
        missing = self.missing(c, ins, point)
        c.raw(Inst("s_cmp_eq_u32", (missing, ZERO)))
        c.branch("s_cbranch_scc1", point.label)


def arms(c: Ctx, k: KernelState, plan: Plan, ins: Instruction) -> None:
    """BSSY: the running lanes join their region."""
    region = next(i for i, r in enumerate(plan.regions) if ins.offset in r.arms)
    if not any(sync + 1 in k.regs.ready for sync in plan.regions[region].syncs):
        return  # every BSYNC of the region is folded away
    slot = k.regs.regions[region]
    armed = c.read_slot(slot)
    c.raw(Inst("s_or_b32", (armed, armed, EXEC)))
    c.write_slot(slot, armed)


def breaks(c: Ctx, k: KernelState, plan: Plan, ins: Instruction) -> None:
    """BREAK: the running lanes leave the region that their barrier register stands for."""
    for index, region in enumerate(plan.regions):
        if ins.offset in region.breaks:
            slot = k.regs.regions[index]
            armed = c.read_slot(slot)
            c.raw(Inst("s_and_not1_b32", (armed, armed, EXEC)))
            c.write_slot(slot, armed)

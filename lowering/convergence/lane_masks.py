"""Instructions on the masks of the convergence machine: lanes are left at points and resumed."""

from __future__ import annotations

from dataclasses import replace

from sassxlate.cfg import Block
from sassxlate.cfg.build import conditions
from sassxlate.disasm.rdna3.instruction import Arg, Inst, S, Sp
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.convergence.plan import ConvergencePlan
from sassxlate.lowering.regalloc.register_map import Slot
from sassxlate.lowering.target import EXEC, ZERO

END, SCAN = "Lend", "Lscan"
TRAP_STUCK = 0x51  # trap id: no lane can go on (divergent barriers that are never reached together)
TRAP_TOKEN = 0x52  # trap id: a return or indirect branch to an address the cubin does not list
TRAP_LEFT_OUT = 0x57  # trap id: a call through a pointer, in a kernel whose callees were left out


class LaneMasks:
    """Shared by the ends of blocks and the sync points.  One instance per kernel."""

    def __init__(self, k: KernelBuilder, plan: ConvergencePlan) -> None:
        self.k = k
        self.plan = plan

    def slot(self, key: int) -> Slot:
        return self.k.regs.ready[key]

    def read(self, c: RuleEmitter, key: int) -> S:
        """The mask (or counter) of a key; a temporary if it is kept in a VGPR lane."""
        return c.read_slot(self.slot(key))

    def write(self, c: RuleEmitter, key: int, value: S | None) -> None:
        """Sets the mask of a key; None is 0."""
        c.write_slot(self.slot(key), ZERO if value is None else value)

    def next_label(self, block: Block) -> str:
        """The label where control continues when no lane is left to run here."""
        point = self.plan.next_point(block.index)
        return point.label if point else SCAN

    def deposit(self, c: RuleEmitter, key: int, mask: S | Sp) -> None:
        """Leaves the lanes of ``mask`` waiting at a point."""
        slot = self.slot(key)
        with c.scope():
            old = c.read_slot(slot)
            c.raw(Inst("s_or_b32", (old, old, mask)))
            c.write_slot(slot, old)

    def deposit_exec(self, c: RuleEmitter, key: int) -> None:
        self.deposit(c, key, EXEC)

    def leave(self, c: RuleEmitter, block: Block) -> None:
        """Continues at the next point, with no lane running."""
        c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
        c.branch("s_branch", self.next_label(block))

    def head(self, c: RuleEmitter, block: Block) -> None:
        """Merges the lanes waiting here into EXEC; if EXEC is still zero, goes to the next
        point."""
        slot = self.slot(block.start)
        waiting = c.read_slot(slot)
        c.raw(Inst("s_or_b32", (EXEC, EXEC, waiting)))
        c.write_slot(slot, ZERO)
        points = self.plan.points
        here = next(i for i, p in enumerate(points) if p.block == block.index and p.sync is None)
        following = points[here + 1].label if here + 1 < len(points) else SCAN
        c.branch("s_cbranch_execz", following)

    def condition(self, c: RuleEmitter, ins: Instruction) -> S | None:
        """The running lanes whose guard and named predicates hold for ``ins``, and in SCC whether
        there are any; None: all running lanes."""
        preds = [p for p in conditions(ins) if not p.is_true]
        if not preds:
            return None
        taken = c.stemp()
        self._narrow(c, taken, EXEC, preds[0])
        for p in preds[1:]:
            self._narrow(c, taken, taken, p)
        return taken

    def _narrow(self, c: RuleEmitter, to: S, lanes: Arg, pred: Pred) -> None:
        """to = lanes & pred; SCC: whether any lane is left."""
        if pred.inv and pred.index != 7:
            c.raw(Inst("s_and_not1_b32", (to, lanes, c.mask(replace(pred, inv=False)))))
        else:
            c.raw(Inst("s_and_b32", (to, lanes, c.mask(pred))))

    def split(self, c: RuleEmitter, block: Block, taken: S) -> bool:
        """If one predicate decides a jump, with its lanes in ``taken``: leaves the other lanes
        waiting after the block instead, and narrows EXEC to ``taken``.  False if several predicates
        do."""
        preds = [p for p in conditions(block.last) if not p.is_true]
        if len(preds) != 1 or preds[0].index == 7:
            return False
        last = self.k.items.pop()  # drop this S_AND, use the inverted predicate
        assert isinstance(last, Inst)
        assert last.args[0] == taken
        self._narrow(c, taken, EXEC, replace(preds[0], inv=not preds[0].inv))
        self.deposit(c, block.end, taken)
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, taken)))
        return True

    def trap_if(self, c: RuleEmitter, skip: str, trap: int) -> None:
        """Emits a trap that the branch ``skip`` jumps over."""
        fine = self.k.label("Lfine")
        c.branch(skip, fine)
        c.raw(Inst("s_trap", (), imm=trap))
        c.mark(fine)

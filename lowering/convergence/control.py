"""Emits control flow: branches, calls, exits and collective sections at the ends of blocks."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.cfg import Block
from sassxlate.cfg.build import conditions, is_conditional, is_state_test
from sassxlate.cfg.graph import SIZE, label_of
from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.disasm.sass.instruction import Imm, Instruction, Label, Reg
from sassxlate.disasm.sass.semantics.warpgroups import GROUP
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.convergence.lane_masks import END, TRAP_LEFT_OUT, TRAP_TOKEN, LaneMasks
from sassxlate.lowering.convergence.plan import (
    ORIGIN,
    SOFT,
    SPIN_COUNT,
    SPIN_EXEC,
    ConvergencePlan,
    branch_target,
)
from sassxlate.lowering.convergence.sync_points import Syncs
from sassxlate.lowering.target import ALL_ONES, EXEC, ZERO

_SOFT = frozenset({"RECONVERGENT", "RELIABLE"})  # hints of sm_100 and later
# The modifiers that are handled here, or change nothing that a program can see; any other one
# refuses the instruction.  (INC and DEC count the depth of calls for the driver.)
KNOWN: Mapping[str, frozenset[str]] = {
    "B2R": frozenset({"RESULT"}),
    "BAR": frozenset({"SYNC", "ARV", "RED", "POPC", "AND", "OR", "DEFER_BLOCKING", GROUP}),
    "BMOV": frozenset({"32", "CLEAR"}),
    "BRA": frozenset({"U", "ANY", "DIV", "CONV"}),
    "BREAK": _SOFT,
    "BSSY": _SOFT,
    "BSYNC": _SOFT,
    "CALL": frozenset({"REL", "ABS", "NOINC"}),
    "EXIT": frozenset({"KEEPREFCOUNT", "NO_ATEXIT"}),
    "RET": frozenset({"REL", "ABS", "NODEC"}),
    "WARPSYNC": frozenset({"ALL", "COLLECTIVE", "EXCLUSIVE"}),
}
TURN = 64  # rounds of a spin loop with unchanged EXEC before waiting lanes get a turn


def _check_modifiers(c: RuleEmitter, ins: Instruction) -> None:
    unknown = [m for m in ins.modifiers if m not in KNOWN.get(ins.mnemonic, frozenset())]
    if unknown:
        raise c.refuse(f"modifier {unknown[0]} of {ins.mnemonic}")


class Control:
    """Emits the end of each block.  One instance per kernel."""

    def __init__(self, k: KernelBuilder, plan: ConvergencePlan) -> None:
        self.k = k
        self.plan = plan
        self.machine = LaneMasks(k, plan)
        self.syncs = Syncs(self.machine)

    def head(self, c: RuleEmitter, block: Block) -> None:
        self.machine.head(c, block)

    def scan(self, c: RuleEmitter) -> None:
        self.syncs.scan(c)

    def prologue(self, c: RuleEmitter) -> None:
        self.syncs.barriers.prologue(c)

    def state(self, c: RuleEmitter, ins: Instruction) -> None:
        """An instruction that acts on barriers, not on data."""
        if ins.mnemonic != "B2R":  # which has its own case
            _check_modifiers(c, ins)
        match ins.mnemonic:
            case "BSSY":
                self.syncs.arm(c, ins)
            case "BREAK":
                self.syncs.break_out(c, ins)
            case "BMOV":
                self.syncs.move(c, ins)
            case _:
                self.syncs.barriers.result(c, ins)

    def end(self, c: RuleEmitter, block: Block, following: Block | None) -> None:
        """The transfer of control at the end of ``block``; ``following`` is next in the layout."""
        last = block.last
        name, transfer = last.mnemonic, traits(last).transfer
        if transfer:
            _check_modifiers(c, last)
        if transfer in ("indirect", "return"):
            self._indirect(c, block, ("ret", "taken"))
        elif transfer == "wait":
            self.syncs.sync(c, block)
        else:
            match name:
                case "BRA":
                    self._branch(c, block)
                case "EXIT":
                    self._exit(c, block)
                case "JMP" | "KILL":  # JMP has an absolute address, KILL ends a pixel
                    raise c.refuse(f"no rule for {name}", "SX0403")
                case "CALL":
                    self._call(c, block)
                case "ENDCOLLECTIVE":
                    self._end_collective(c, block)
                case _:
                    pass
        cfg = self.plan.cfg
        falls = any(
            e.kind in ("fall", "sync") and cfg.blocks[e.dst].start == block.end
            for e in cfg.successors[block.index]
        )
        if falls and (following is None or following.start != block.end):
            c.branch("s_branch", label_of(block.end))

    # --- branches --------------------------------------------------------------------------------

    def _branch(self, c: RuleEmitter, block: Block) -> None:
        ins = block.last
        m = self.machine
        target = branch_target(ins)
        forward = target > ins.offset
        if is_state_test(ins):
            self._state_test(c, target)
            return
        taken = m.condition(c, ins)
        spin = block.index in self.plan.latches
        if taken is None:
            if forward and target in self.plan.heads and self._skips_points(ins, target):
                m.deposit_exec(c, target)
                m.leave(c, block)
            elif spin:
                self._turn(c, block, target)
            else:
                c.branch("s_branch", label_of(target))
            return
        if self.plan.uniformity.uniform_branch[block.index] and not spin:
            c.branch("s_cbranch_scc1", label_of(target))  # .ANY: all lanes follow if one takes it
            return
        if ins.has("ANY"):
            raise c.refuse("BRA.U.ANY as the back edge of a loop that may wait for other lanes")
        if forward:
            m.deposit(c, target, taken)
            c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, taken)))
            c.branch("s_cbranch_execz", m.next_label(block))
            return
        if not spin and m.split(c, block, taken):
            c.branch("s_cbranch_execnz", label_of(target))
            return
        stay = c.stemp()
        c.raw(Inst("s_and_not1_b32", (stay, EXEC, taken)))
        m.deposit(c, block.end, stay)
        c.raw(Inst("s_mov_b32", (EXEC, taken)))
        if not spin:
            c.branch("s_cbranch_execnz", label_of(target))
            return
        done = self.k.label("Lspun")
        c.branch("s_cbranch_execz", done)
        self._turn(c, block, target)
        c.mark(done)

    def _turn(self, c: RuleEmitter, block: Block, target: int) -> None:
        """The back edge of a loop that may wait for other lanes: after some rounds in which no lane
        left it, the running lanes wait at its head while the others get a turn."""
        m = self.machine
        count, last = m.read(c, SPIN_COUNT), m.read(c, SPIN_EXEC)
        c.raw(Inst("s_add_u32", (count, count, I(1))))
        c.raw(Inst("s_cmp_eq_u32", (EXEC, last)))
        c.raw(Inst("s_cselect_b32", (count, count, ZERO)))
        m.write(c, SPIN_COUNT, count)
        c.raw(Inst("s_mov_b32", (last, EXEC)))
        m.write(c, SPIN_EXEC, last)
        c.raw(Inst("s_cmp_lt_u32", (count, I(TURN))))
        c.branch("s_cbranch_scc1", label_of(target))
        m.write(c, SPIN_COUNT, None)
        if self.plan.softens:
            turns = m.read(c, SOFT)
            c.raw(Inst("s_add_u32", (turns, turns, I(1))))
            m.write(c, SOFT, turns)
        m.deposit_exec(c, target)
        m.leave(c, block)

    def _skips_points(self, ins: Instruction, target: int) -> bool:
        return any(ins.offset < h < target for h in self.plan.heads)

    def _state_test(self, c: RuleEmitter, target: int) -> None:
        """BRA.CONV jumps if the lanes of its mask are all present and pass its guard, BRA.DIV if
        not.  The compiler's guard ensures that the lanes' masks are all equal."""
        ins = c.ins
        mask = ins.get("Ra")
        here, wanted = c.stemp(), c.stemp()
        lanes = c.to_s(c.value(mask)) if isinstance(mask, Reg | Imm) else ALL_ONES
        if isinstance(mask, Reg) and mask.inv:
            c.raw(Inst("s_not_b32", (wanted, lanes)))
            lanes = wanted
        c.raw(Inst("s_and_b32", (wanted, self.k.regs.live, lanes)))
        passing = self.machine.condition(c, ins)
        c.raw(Inst("s_mov_b32", (here, EXEC if passing is None else passing)))
        c.raw(Inst("s_cmp_lg_u32", (here, wanted)))
        c.branch("s_cbranch_scc1" if ins.has("DIV") else "s_cbranch_scc0", label_of(target))

    # --- exits and calls -------------------------------------------------------------------------

    def _exit(self, c: RuleEmitter, block: Block) -> None:
        live = self.k.regs.live
        if self.plan.alone:
            self._end_alone(c, block)
            return
        leaving = self.machine.condition(c, block.last)
        if leaving is None:
            c.raw(Inst("s_and_not1_b32", (live, live, EXEC)))
            c.branch("s_cbranch_scc0", END)
            self.machine.leave(c, block)
            return
        c.raw(Inst("s_and_not1_b32", (live, live, leaving)))
        c.branch("s_cbranch_scc0", END)
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, leaving)))
        c.branch("s_cbranch_execz", self.machine.next_label(block))

    def _end_alone(self, c: RuleEmitter, block: Block) -> None:
        """EXIT in a kernel where no lane can wait: the wave ends with its last running lane."""
        preds = [p for p in conditions(block.last) if not p.is_true]
        if not preds:
            if block is not self.plan.cfg.blocks[-1]:  # otherwise the end is next
                c.branch("s_branch", END)
            return
        leaving = self.machine.condition(c, block.last) if len(preds) > 1 else c.mask(preds[0])
        assert leaving is not None
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, leaving)))
        c.branch("s_cbranch_execz", END)

    def _call(self, c: RuleEmitter, block: Block) -> None:
        ins = block.last
        if ins.get("target") is None and not self.plan.cfg.successors[block.index]:
            self._nowhere(c)
            return
        # A call that never returns is the compiler's far jump: its edge is "taken".
        if not any(e.kind in ("call", "taken") for e in self.plan.cfg.successors[block.index]):
            raise c.refuse("call of a function outside the kernel", "SX0420")
        if ins.get("target") is None:
            self._indirect(c, block, ("call",))
            return
        target = branch_target(ins)
        called = self.machine.condition(c, ins)
        if called is None:
            c.branch("s_branch", label_of(target))
            return
        stay = c.stemp()
        c.raw(Inst("s_and_not1_b32", (stay, EXEC, called)))
        self.machine.deposit(c, block.end, stay)
        c.raw(Inst("s_mov_b32", (EXEC, called)))
        c.branch("s_cbranch_execnz", label_of(target))

    def _nowhere(self, c: RuleEmitter) -> None:
        """A call through a register in a module that takes no function's address, or in a kernel
        whose callees were left out.

        In the first the compiler's code gets here only with a pointer that was set (it tests for
        NULL before), and no pointer can have been set: it traps.
        """
        c.raw(Inst("s_trap", (), imm=TRAP_LEFT_OUT if self.k.left_out else TRAP_TOKEN))
        c.branch("s_branch", END)

    @staticmethod
    def _base(ins: Instruction) -> int:
        """The offset to add to an indirect transfer's register to get a byte offset in the
        kernel."""
        label, disp = ins.get("target"), ins.get("disp")
        if isinstance(label, Label):
            return label.target
        if ins.has("ABS") or ins.mnemonic.startswith("JMX"):
            return disp.value & 0xFFFFFFFF if isinstance(disp, Imm) else 0
        if isinstance(disp, Imm):
            return (disp.value + ins.offset + SIZE) & 0xFFFFFFFF
        return 0

    def _indirect(self, c: RuleEmitter, block: Block, kinds: tuple[str, ...]) -> None:
        """Leaves each lane waiting at the block that its register names.

        The candidates are known: the return sites of the function's calls, the functions whose
        address is taken, or the jump table's targets.  A lane whose register names none of them
        traps.
        """
        ins = block.last
        m = self.machine
        base = self._base(ins)
        token = c.to_v(c.src("Ra"))
        targets = sorted(
            self.plan.cfg.blocks[e.dst].start
            for e in self.plan.cfg.successors[block.index]
            if e.kind in kinds
        )
        if not targets:
            raise c.refuse("no known target", "SX0421")
        moving = m.condition(c, ins)
        rest, hit = c.stemp(), c.stemp()
        c.raw(Inst("s_mov_b32", (rest, moving if moving is not None else EXEC)))
        for target in targets:
            with c.scope():
                c.emit("v_cmp_eq_u32", hit, I((target - base) & 0xFFFFFFFF), token)
                c.raw(Inst("s_and_b32", (hit, hit, rest)))
                m.deposit(c, target, hit)
                c.raw(Inst("s_and_not1_b32", (rest, rest, hit)))
        c.raw(Inst("s_cmp_lg_u32", (rest, ZERO)))
        calls = self.k.left_out and "call" in kinds
        m.trap_if(c, "s_cbranch_scc0", TRAP_LEFT_OUT if calls else TRAP_TOKEN)
        first = label_of(targets[0])
        if moving is None:
            c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
            c.branch("s_branch", first)
            return
        # Lanes that skip a guarded call wait at the return site of the others.
        if "call" in kinds:
            stay = c.stemp()
            c.raw(Inst("s_and_not1_b32", (stay, EXEC, moving)))
            m.deposit(c, block.end, stay)
            c.raw(Inst("s_mov_b32", (EXEC, ZERO)))
            c.branch("s_branch", first)
            return
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, moving)))
        c.branch("s_cbranch_execz", first)

    # --- collective sections ---------------------------------------------------------------------

    def _end_collective(self, c: RuleEmitter, block: Block) -> None:
        """The lanes continue after the sections in which they arrived."""
        sections = self.plan.cfg.collectives
        here = sections.by_end[block.last.offset]
        members = sections.members(here.sync)
        m = self.machine
        if is_conditional(block.last):
            raise c.refuse("guarded end of a collective section", "SX0423")
        if len(members) == 1:
            if here.target != block.end:
                c.branch("s_branch", label_of(here.target))
            return
        origin = V(self.k.regs.barriers[ORIGIN])
        first, same = c.stemp(), c.stemp()
        apart = self.k.label("Lapart")
        c.raw(Inst("v_readfirstlane_b32", (first, origin)))
        c.emit("v_cmp_eq_u32", same, first, origin)
        c.raw(Inst("s_cmp_lg_u32", (same, EXEC)))
        c.branch("s_cbranch_scc1", apart)
        for number, site in enumerate(members):
            c.raw(Inst("s_cmp_eq_u32", (first, I(number))))
            c.branch("s_cbranch_scc1", label_of(site.target))
        c.mark(apart)
        rest = c.stemp()  # each lane goes to exactly one of them, whatever the comparisons give
        c.raw(Inst("s_mov_b32", (rest, EXEC)))
        for number, site in enumerate(members[:-1]):
            with c.scope():
                theirs = c.stemp()
                c.emit("v_cmp_eq_u32", theirs, I(number), origin)
                c.raw(Inst("s_and_b32", (theirs, theirs, rest)))
                m.deposit(c, site.target, theirs)
                c.raw(Inst("s_and_not1_b32", (rest, rest, theirs)))
        m.deposit(c, members[-1].target, rest)
        m.leave(c, block)


__all__ = ["Control"]

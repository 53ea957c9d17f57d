"""Builds the LLVM IR of one kernel's wave function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from sassxlate.cfg.rdna3_flow import (
    INDIRECT,
    DecodedStep,
    Flow,
    MachineBlock,
    ModeBits,
    modes,
    step_mode,
)
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target
from sassxlate.disasm.rdna3.instruction import I, Inst
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO, VGPRS
from sassxlate.domain.interface import is_zero
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate import strict_hazards
from sassxlate.lowering.emulate.image.abi import (
    RUNTIME_STOP,
    DeviceFault,
    Rt,
    WaveLayout,
    trap_fault,
)
from sassxlate.lowering.emulate.wave import (
    alu,
    indexed,
    run,
    trace_points,
    turns,
)
from sassxlate.lowering.emulate.wave.access import limits, memory_helpers
from sassxlate.lowering.emulate.wave.addresses import (
    adjacent_loads,
    lane_patterns,
    lane_strides,
    threads,
)
from sassxlate.lowering.emulate.wave.addresses.pairs import Pairs
from sassxlate.lowering.emulate.wave.context import Context, Isa
from sassxlate.lowering.emulate.wave.known_registers import entered, only_before
from sassxlate.lowering.emulate.wave.masks import every_lane, short_arms
from sassxlate.lowering.emulate.wave.packs import loop
from sassxlate.lowering.emulate.wave.packs import runs as packed
from sassxlate.lowering.emulate.wave.partial import left_out, ways_out
from sassxlate.lowering.emulate.wave.registers import State
from sassxlate.lowering.emulate.wave.straight import emit_straight
from sassxlate.lowering.emulate.wave.system import emit_system
from sassxlate.lowering.emulate.wave.undefined_values import Shadow
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Function, Module, Val, const

if TYPE_CHECKING:
    from sassxlate.lowering.emulate.options import CompileOptions


def _reads_row(inst: Inst) -> bool:
    """Whether an instruction looks like one that takes threadIdx.y out of v0, ten bits from bit 10
    on.  The answer decides about speed alone."""
    return inst.op == "v_bfe_u32" and inst.args[2:] == (I(10), I(10))


class WaveBuilder:
    """Emits a flow's blocks into one function."""

    def __init__(self, flow: Flow, options: CompileOptions, isa: Isa, attrs: str):
        self.flow = flow
        self.module = Module()
        self.runs = run.wanted(flow, options)
        given = "ptr %first" if self.runs else "ptr %w"
        self.fn = Function(self.module, f"void @wave({given})", attrs)
        if self.runs:
            self.fn.around = run.around(self.fn)
        d = LlvmDomain(self.fn, avx512=isa == "avx512", seed_offset=int(WaveLayout.STRICT_SEED))
        self.initial = ModeBits(options.float_mode | options.dx10_clamp << 8 | options.ieee << 9)
        mode = self.initial.mode()
        assert mode is not None
        self.c = Context(
            self.module, self.fn, d, State(self.fn, d), options.align, options.strict, mode
        )
        self.c.scratch = options.scratch
        self.c.state.workgroup = options.workgroup
        # The first block is entered once: nothing jumps to it.
        self.once = flow.entry not in entered(flow)
        if not options.strict:
            self.c.kernarg = options.kernarg
        self.c.rows = any(_reads_row(s.inst) for b in flow.blocks.values() for s in b.steps)
        self.strides = lane_strides.strides(flow)
        # Not where an access has to be at its own place in the order of all.
        alone = options.strict or options.turns or options.trace is not None
        self.mates = {} if alone else adjacent_loads.mates(flow, self.strides)
        patterns = isa == "avx512" and not alone
        self.patterns = lane_patterns.patterns(flow, self.strides) if patterns else {}
        self.c.vgprs = min(options.vgprs, VGPRS)
        self.c.state.poison = options.strict and options.poison
        # Not where values are to live no longer than a block.
        self.c.state.views = not alone and not options.quick
        if isa == "avx512" and self.c.state.views:
            self.c.state.pairs = Pairs(self.fn)
            d.arrived = self.c.state.pairs.whole
        self.before = only_before(flow) if self.c.state.views else {}
        self.every = every_lane.every_lane(flow) if self.c.state.views else every_lane.EveryLane()
        numbers = options.entered if self.c.state.views else None
        self.left = left_out.left_out(flow, numbers, self.every)
        self.arms = short_arms.arms(flow, self.left.blocks) if self.c.state.views else {}
        self.c.state.kept = self.every.kept
        self.heads = short_arms.heads(self.arms)
        packs = isa == "avx512" and self.c.state.views and options.align == "natural"
        self.packs = packed.runs(flow, self.strides) if packs else {}
        self.traced = options.trace is not None
        self.turns = options.turns
        self.points = trace_points.by_pc(options.trace or ())
        self.numbers: dict[int, int] = {}
        if options.counts:
            self.numbers = {start: n for n, start in enumerate(sorted(flow.blocks))}
        d.perturbed = options.strict
        self.count = 0
        self.findings: dict[int, strict_hazards.Finding] = {}
        self.shadow: Shadow | None = None
        if options.strict:
            self.shadow = Shadow(self.c, flow.entry, options.sgprs, options.uniform)
            for found in strict_hazards.findings(flow, options.fences, options.target):
                self.findings.setdefault(found.pc, found)

    def build(self) -> Module:
        before = modes(self.flow, self.initial)
        self.fn.entry += ["  %executed = alloca i64", "  store i64 0, ptr %executed"]
        self.fn.do(f"br label %b{self.flow.entry}")
        self.modes = before
        for start in sorted(self.flow.blocks):
            if start not in self.heads and start not in self.left.blocks:
                self._block(self.flow.blocks[start], before.get(start, self.initial))
        self.c.state.finish(self._successors(), self.left.vgprs())
        ways_out.emit(self.c.state, self.fn, self.module, self.left, self.flow.entry)
        if self.runs:
            limits.finish(self.c)
            threads.finish(self.c)
            run.finish(self.fn, self.c.state.workgroup)
        self.fn.finish("wave")
        return self.module

    def _successors(self) -> dict[int, tuple[int, ...]]:
        """Where the code that begins with a block goes on."""
        out: dict[int, tuple[int, ...]] = {}
        for start, block in self.flow.blocks.items():
            while (arm := self.arms.get(block.start)) is not None and arm.alone:
                block = self.flow.blocks[arm.next]
            arm = self.arms.get(block.start)
            out[start] = block.succs if arm is None else (arm.next,)
        return {start: succs for start, succs in out.items() if start not in self.heads}

    def _refuse(self, found: strict_hazards.Finding) -> None:
        """Stops the wave here, with its first active lane in the report; the code after it is
        dead."""
        c, name, lane = self.c, memory_helpers.fault(self.module), self._first_lane()
        code = found.code(self.flow.entry)
        self.fn.do(
            f"call void {name}(ptr %w, i32 {int(DeviceFault.STRICT)}, i32 {c.pc}, i32 {lane.ref}, "
            f"i64 {code})"
        )

    def _first_lane(self) -> Val:
        """The lowest active lane; 0 if there is none."""
        d = self.c.d
        return d.and_(d.ctz(self.c.state.exec_mask()), const(31, 32))

    # -- blocks ---------------------------------------------------------------------------

    def _block(self, block: MachineBlock, bits: ModeBits) -> None:
        self.fn.label(f"b{block.start}")
        c = self.c
        c.floats.clear()
        before = self.before.get(block.start)
        c.state.start_block(block.start, None if before is None else self.heads.get(before, before))
        c.state.starting = self.once and block.start == self.flow.entry
        while (arm := self.arms.get(block.start)) is not None:
            bits = self._steps(block.start, block.steps[:-1], len(block.steps), bits)
            self._arm(arm, bits)
            source = self.flow.blocks[arm.block].steps[-1].pc
            if not arm.alone:
                c.state.flush()
                self._goto(arm.next, source)
                return
            self._turn(arm.next, source)
            block = self.flow.blocks[arm.next]
            bits = self.modes.get(block.start, self.initial)
        self._last = block.steps[-1]
        self._steps(block.start, block.steps, len(block.steps), bits)
        last = block.steps[-1]
        if not self._ends(last.inst.op):
            c.state.flush()
            if last.next in self.flow.cuts:
                self._stop(last.pc)  # a condition opaque to LLVM keeps the blocks separate
            self._goto(last.next, last.pc)

    def _steps(
        self, start: int, steps: Sequence[DecodedStep], length: int, bits: ModeBits
    ) -> ModeBits:
        """A block's instructions, of which it has ``length``; MODE after them."""
        c = self.c
        self._execute(str(length))
        if start in self.numbers:
            self._count(self.numbers[start])
        if self.traced:
            c.pc = self._pc(start)
            trace_points.emit_budget(c, length)
        if self.shadow is not None:
            self.shadow.start_block()
        before: list[ModeBits] = []  # each instruction
        for step in steps:
            before.append(bits)
            bits = step_mode(bits, step.inst)
        runs = {one.first: one for one in self.packs.get(start, ())}
        at = 0
        while at < len(steps):
            one = runs.get(at)
            if one is not None and self._packed(steps, before, one):
                at = one.end
                continue
            self._step(steps[at], before[at])
            at += 1
        c.state.every = start in self.every.ends
        return bits

    def _packed(
        self, steps: Sequence[DecodedStep], bits: Sequence[ModeBits], run: packed.Run
    ) -> bool:
        modes_at = {step.pc: one for step, one in zip(steps, bits, strict=True)}
        count = self.count

        def whole(step: DecodedStep) -> None:
            self._step(step, modes_at[step.pc])

        def each(step: DecodedStep) -> None:
            self.c.pc = self._pc(step.pc)
            self.c.state.every = step.pc in self.every.at
            self.count += 1
            row = alu.lookup(step.inst.op)
            if row is not None:
                self._set_mode(step.inst, row.mode, modes_at[step.pc])

        done = loop.emit(self.c, steps, run, each, whole)
        if not done:
            self.count = count
        return done

    def _arm(self, arm: short_arms.Arm, bits: ModeBits) -> None:
        """Steps that a branch skips if no lane is active."""
        d, state, length = self.c.d, self.c.state, len(self.flow.blocks[arm.block].steps)
        goes = d.not_(is_zero(d, state.exec_mask()))
        times = d.zext(goes, 64)
        self._execute(d.mul(times, const(length, 64)).ref)
        if arm.block in self.numbers:
            self._count(self.numbers[arm.block], times.ref)
        state.begin_arm(goes)
        before = state.every
        for step in arm.steps:
            self._step(step, bits)
        state.end_arm()
        state.every = before and arm.block in self.every.ends

    def _execute(self, instructions: str) -> None:
        """Adds to the wave's executed count, in a host register at almost no cost."""
        old = self.fn.emit_new("load i64, ptr %executed")
        new = self.fn.emit_new(f"add i64 {old}, {instructions}")
        self.fn.do(f"store i64 {new}, ptr %executed")

    def _count(self, number: int, times: str = "1") -> None:
        """Counts an entry of a wave into this block; atomic, since other threads count, too."""
        fn = self.fn
        p = fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.COUNTS)}")
        table = fn.emit_new(f"load ptr, ptr {p}")
        word = fn.emit_new(f"getelementptr i64, ptr {table}, i64 {number}")
        fn.emit_new(f"atomicrmw add ptr {word}, i64 {times} monotonic")

    @staticmethod
    def _ends(op: str) -> bool:
        return op in _TERMINATORS or op in INDIRECT or op.startswith("s_cbranch_")

    def _step(self, step: DecodedStep, bits: ModeBits) -> None:
        c, inst = self.c, step.inst
        c.pc, c.dpp_enable = self._pc(step.pc), None
        c.lane_stride, c.mate = self.strides.get(step.pc), self.mates.get(step.pc)
        c.pattern = self.patterns.get(step.pc)
        c.loaded = c.held.pop(step.pc, None)
        c.state.every = step.pc in self.every.at
        self.count += 1
        if self.shadow is not None:
            self.shadow.before(step)
            if step is self._last:
                self.shadow.flush()
        if step.pc in self.findings:
            self._refuse(self.findings[step.pc])
        for point in self.points[0].get(c.pc, ()):
            trace_points.emit(c, point)
        if self.turns and turns.ends_turn(inst.op):
            turns.emit(c)
        try:
            self._instruction(step, bits)
        except EmulatorError as e:
            raise e.at(offset=c.pc, inst=inst.op) from e
        if not self._ends(inst.op):
            for point in self.points[1].get(c.pc, ()):
                trace_points.emit(c, point)

    def _instruction(self, step: DecodedStep, bits: ModeBits) -> None:
        c, inst = self.c, step.inst
        op = inst.op
        row = alu.lookup(op)
        if row is not None:
            self._set_mode(inst, row.mode, bits)
        whole = None if bits.mode() is None else bits.value
        if emit_straight(c, inst) or emit_system(c, inst, whole):
            return
        if op in indexed.EMITTERS:
            indexed.EMITTERS[op](c, inst)
        elif op in self._CONTROL:
            self._CONTROL[op](self, step)
        elif op.startswith("s_cbranch_"):
            self._conditional(step)
        else:
            raise c.error(inst, "this instruction is not supported")

    def _set_mode(self, inst: Inst, needed: bool, bits: ModeBits) -> None:
        mode = bits.mode()
        if mode is None:
            if needed or inst.clamp or inst.omod:
                raise self.c.error(
                    inst, "the rounding or denormal mode is not known here", "SX0622"
                )
            return
        self.c.mode = mode

    def _pc(self, pc: int) -> int:
        """An offset in the code as errors report it: from the kernel's entry."""
        return pc - self.flow.entry

    # -- control --------------------------------------------------------------------------

    def _goto(self, target: int, source: int) -> None:
        """Jumps to a block; a back edge of a loop that reads memory uses up fuel."""
        fn = self.fn
        if target not in self.flow.blocks:
            self._fault(DeviceFault.ILLEGAL, source)
            return
        self._turn(target, source)
        fn.do(f"br label %{'leave' if target in self.left.live else 'b'}{target}")

    def _turn(self, target: int, source: int) -> None:
        """What a way back takes that may be a loop's."""
        if target <= source:
            if self.flow.reads_memory(target, source):
                self._fuel(source)
            else:
                self._stop(source)

    def _fuel(self, pc: int) -> None:
        fn = self.fn
        p = fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.FUEL)}")
        old = fn.emit_new(f"load i64, ptr {p}")
        new = fn.emit_new(f"sub i64 {old}, 1")
        fn.do(f"store i64 {new}, ptr {p}")
        self._give_way(fn.emit_new(f"icmp sle i64 {new}, 0"), pc)

    def _stop(self, pc: int) -> None:
        """A loop that does not wait for other waves needs no fuel, but must be stoppable."""
        fn = self.fn
        p = fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.RT)}")
        table = fn.emit_new(f"load ptr, ptr {p}")
        word = fn.emit_new(f"getelementptr ptr, ptr {table}, i64 {RUNTIME_STOP}")
        told = fn.emit_new(f"load volatile i32, ptr {word}")
        self._give_way(fn.emit_new(f"icmp ne i32 {told}, 0"), pc)

    def _give_way(self, when: str, pc: int) -> None:
        """Calls SxRuntime.yield if the condition holds, which is rare."""
        fn, name = self.fn, "give_way"
        if name not in self.module.functions:
            self.module.functions[name] = (
                f"define internal void @{name}(ptr %w, i32 %pc) noinline cold nounwind {{\n"
                + memory_helpers.runtime_call(Rt.YIELD, "void", "ptr %w, i32 %pc")
                + "  ret void\n}\n"
            )
        now, go = fn.fresh("now"), fn.fresh("go")
        fn.do(f"br i1 {when}, label %{now}, label %{go}")
        fn.label(now)
        fn.do(f"call void @{name}(ptr %w, i32 {self._pc(pc)})")
        fn.do(f"br label %{go}")
        fn.label(go)

    def _fault(self, kind: DeviceFault, pc: int, addr: str = "0", lane: str = "0") -> None:
        name = memory_helpers.fault(self.module)
        where = f"i32 {self._pc(pc)}, i32 {lane}, i64 {addr}"
        self.fn.do(f"call void {name}(ptr %w, i32 {int(kind)}, {where})")
        self.fn.do("unreachable")

    def _conditional(self, step: DecodedStep) -> None:
        c, st, d = self.c, self.c.state, self.c.d
        what = step.inst.op.removeprefix("s_cbranch_")
        if what in ("scc0", "scc1"):
            cond = st.read_scc() if what == "scc1" else d.not_(st.read_scc())
        elif what in ("vccz", "vccnz", "execz", "execnz"):
            zero = is_zero(d, st.read_s(VCC_LO if what.startswith("vcc") else EXEC_LO))
            cond = zero if what.endswith("cz") else d.not_(zero)
        else:
            raise c.error(step.inst, "this branch is not supported")
        st.flush()
        target = branch_target(step.inst, step.pc)
        yes = self.fn.fresh("taken")
        no = self.fn.fresh("next")
        self.fn.do(f"br i1 {cond.ref}, label %{yes}, label %{no}")
        self.fn.label(yes)
        self._goto(target, step.pc)
        self.fn.label(no)
        self._goto(step.next, step.pc)

    def _branch(self, step: DecodedStep) -> None:
        self.c.state.flush()
        self._goto(branch_target(step.inst, step.pc), step.pc)

    def _end(self, step: DecodedStep) -> None:
        fn = self.fn
        if self.runs:
            fn.do("br label %ended")
            return
        done = fn.emit_new("load i64, ptr %executed")
        p = fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.EXECUTED)}")
        fn.do(f"store i64 {done}, ptr {p}")
        fn.do("ret void")

    def _illegal(self, step: DecodedStep) -> None:
        self._fault(DeviceFault.ILLEGAL, step.pc)

    def _trap(self, step: DecodedStep) -> None:
        number = step.inst.imm & 0xFF
        self._fault(trap_fault(number), step.pc, str(number), self._first_lane().ref)

    # -- code addresses -------------------------------------------------------------------

    def _code_base(self) -> Val:
        p = self.fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.CODE_BASE)}")
        return Val(self.fn.emit_new(f"load i64, ptr {p}"), 64, False)

    def _getpc(self, step: DecodedStep) -> None:
        pc = self.c.d.add(self._code_base(), const(step.next, 64))
        self.c.write64(step.inst, step.inst.args[0], pc)

    def _call(self, step: DecodedStep) -> None:
        self._getpc(step)
        self._branch(step)

    def _indirect(self, step: DecodedStep) -> None:
        c, inst = self.c, step.inst
        target = c.d.sub(c.read64(inst, inst.args[-1]), self._code_base())
        if inst.op == "s_swappc_b64":
            self._getpc(step)
        if not self.flow.indirect:
            raise c.error(inst, "the targets of this jump are not known", "SX0625")
        c.state.flush()
        lost = self.fn.fresh("lost")
        cases: list[tuple[int, str]] = []
        for pc in self.flow.indirect:
            if pc in self.flow.blocks:
                cases.append((pc, self.fn.fresh("to")))
        text = " ".join(f"i64 {pc}, label %{to}" for pc, to in cases)
        self.fn.do(f"switch i64 {target.ref}, label %{lost} [ {text} ]")
        for pc, to in cases:
            self.fn.label(to)
            self._goto(pc, step.pc)
        self.fn.label(lost)
        self._fault(DeviceFault.ILLEGAL, step.pc, target.ref)

    _last: DecodedStep | None = None

    _CONTROL: ClassVar[dict[str, Callable[[WaveBuilder, DecodedStep], None]]] = {
        "s_branch": _branch,
        "s_endpgm": _end,
        "s_endpgm_saved": _end,
        "s_code_end": _illegal,
        "s_trap": _trap,
        "s_getpc_b64": _getpc,
        "s_call_b64": _call,
        "s_setpc_b64": _indirect,
        "s_swappc_b64": _indirect,
    }


_TERMINATORS = frozenset(
    {"s_branch", "s_endpgm", "s_endpgm_saved", "s_code_end", "s_trap", "s_call_b64"}
)


def build(flow: Flow, options: CompileOptions, isa: Isa, attributes: str) -> tuple[Module, int]:
    """(the module with the function @wave, number of RDNA3 instructions in it)."""
    builder = WaveBuilder(flow, options, isa, attributes)
    return builder.build(), builder.count

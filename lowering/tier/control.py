"""Blocks and branches of a kernel as those of one LLVM function; called functions are copied to
their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sassxlate.cfg import Cfg
from sassxlate.cfg.build import conditions, is_state_test
from sassxlate.cfg.graph import SIZE, Block
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Label, RegRef
from sassxlate.disasm.sass.semantics import evaluate, semantics_table
from sassxlate.disasm.sass.semantics.memory.atomic import SPACES as ATOMIC_SPACES
from sassxlate.disasm.sass.semantics.memory.memory import SPACES
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.traits import (
    INLINE_QUOTIENTS,
    INTEGER_QUOTIENTS,
    QUOTIENTS,
    acquires,
    traits,
)
from sassxlate.lowering.abi.hostcalls import MNEMONIC
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.nans.reads import WIDE, Nan, made
from sassxlate.lowering.tier import atomics, memory, others, quotients
from sassxlate.lowering.tier.gathered import gathered
from sassxlate.lowering.tier.host import assertions
from sassxlate.lowering.tier.lane import LINE, Guard, Lane
from sassxlate.lowering.tier.matrices import moves
from sassxlate.lowering.tier.matrices.products import hmma
from sassxlate.lowering.tier.numbers import integer_quotients, stand_ins
from sassxlate.lowering.tier.old_values import after, unread
from sassxlate.lowering.tier.refusal import FLOW, FORM, refused
from sassxlate.lowering.tier.warp.reductions import Reductions, reduces, wait
from sassxlate.lowering.tier.warp.together import Together
from sassxlate.lowering.tier.wide import compares, sums

WHOLE = ("LDSM", "STSM", "MOVM", "HMMA")
_ARITHMETIC = ("sum", "product")
_DEPTH, _BLOCKS = 8, 4000  # most nested calls, and blocks with copies

# Of these the semantics themselves ask whether a result is NVIDIA's NaN.
_READ_NAN = ("RELU", "XORSIGN", "IS_A")


@dataclass(slots=True)
class _Frame:
    """A copy of a function: the prefix of its labels, and where each of its returns may go."""

    entry: int
    prefix: str
    back: int | None  # offset of the return site, None in the kernel
    label: str  # of that site
    stack: tuple[int, ...]  # functions that are being copied


class Blocks:
    """Writes all blocks into the lane's function."""

    def __init__(
        self, lane: Lane, cfg: Cfg, facts: Together, tested: frozenset[int] = frozenset()
    ) -> None:
        """``tested``: the branches, by offset, that trap unless all lanes go one way."""
        self.nans = lane.found.nans
        self.acquires = frozenset(o for b in cfg.blocks for o in acquires(b.instructions))
        repaired = {at: [ref for ref, _ in refs] for at, refs in self.nans.before.items()}
        cfg = gathered(cfg, repaired, ordered_shared=facts.ordered_shared)
        self.lane, self.cfg, self.facts = lane, cfg, facts
        self.unread = lane.found.unread
        self.old_unread = unread(cfg)
        self.wide = compares.pairs(cfg)
        self.sums = sums.sums(cfg)
        self.below = sums.terms(self.sums.values())
        self.words: dict[int, dict[str, Val]] = {}  # the terms of sums of low words, by offset
        self.tested = tested
        self.reductions = Reductions(lane, cfg)
        self.again: frozenset[int] = frozenset()  # loads that LLVM must not leave out
        self.copies = 0
        self.blocks = 0
        self.traps = False
        self.whole = False  # whether all lanes are known to be there
        self.lines: list[int] = []  # for each line of the function, its place in SASS

    def write(self) -> None:
        first = _Frame(self.cfg.functions[0], "", None, "", (self.cfg.functions[0],))
        work = [first]
        while work:
            work += self._function(work.pop())
        self.lane.fn.label("done")
        self.lane.fn.do("ret void")
        if self.traps:
            self.lane.module.declare("void @llvm.trap()")
            self.lane.fn.label("lost")
            self.lane.fn.do("call void @llvm.trap()")
            self.lane.fn.do("unreachable")
        self._mark(0)

    def _mark(self, offset: int) -> None:
        """The lines since the last call are of the instruction at an offset."""
        more = len(self.lane.fn.lines) - len(self.lines)
        self.lines += [offset // LINE + 1] * more

    def _function(self, frame: _Frame) -> list[_Frame]:
        blocks = [b for b in self.cfg.blocks if b.function == frame.entry]
        self.blocks += len(blocks)
        if self.blocks > _BLOCKS or len(frame.stack) > _DEPTH:
            raise refused(FLOW, "too many copies of functions")
        out: list[_Frame] = []
        for block in blocks:
            self.lane.fn.label(self._label(frame, block.start))
            self.whole = False
            ends = traits(block.last).ends_block
            self._body(block.instructions[:-1] if ends else block.instructions)
            if ends:
                self._before(block.last)
                out += self._end(frame, block)
            else:
                self.lane.branch(self._label(frame, block.end))
            self._mark(block.last.offset)
        return out

    def _label(self, frame: _Frame, start: int) -> str:
        inside = self.cfg.by_start.get(start)
        if inside is None or self.cfg.blocks[inside].function != frame.entry:
            raise refused(FLOW, "functions that share code")
        return f"{frame.prefix}b{start:x}"

    # --- straight-line code ----------------------------------------------------------------------

    def _body(self, instructions: Sequence[Instruction]) -> None:
        """Runs of instructions under one guard are in a block of their own if one of them accesses
        memory; in others the guard chooses between values."""
        at = 0
        while at < len(instructions):
            end = self._run(instructions, at)
            some = instructions[at:end]
            guard = some[0].guard
            if len(some) > 1 and sum(traits(i).memory is not None for i in some) > 1:
                lost = after(self.old_unread, some)
                self.lane.under(self.lane.holds(guard), partial(self._each, some), lost)
                self._only_here(some)
            else:
                for ins in some:
                    self._before(ins)
                    self._step(ins, self.lane.holds(ins.guard))
                    self._mark(ins.offset)
            at = end

    def _only_here(self, some: Sequence[Instruction]) -> None:
        """Forgets values of an arm, which are not there after it."""
        for ins in some:
            self.words.pop(ins.offset, None)

    def _each(self, some: Sequence[Instruction]) -> None:
        for ins in some:
            self._before(ins)
            self._step(ins, None)
            self._mark(ins.offset)

    @staticmethod
    def _run(instructions: Sequence[Instruction], at: int) -> int:
        """The end of the run of instructions with this guard; only its last may change it."""
        guard, end = instructions[at].guard, at + 1
        if guard.index == 7:
            return end
        ref = RegRef(guard.file, guard.index)
        while (
            end < len(instructions)
            and instructions[end].guard == guard
            and ref not in instructions[end - 1].writes
            and not traits(instructions[end]).lanes
        ):
            end += 1
        return end

    def _before(self, ins: Instruction) -> None:
        """Repairs the NaN of registers whose bits the instruction reads."""
        lane = self.lane
        for ref, kind in self.nans.before.get(ins.offset, ()):
            guard = lane.holds(ins.guard)
            if ref.file not in ("R", "UR"):
                raise refused(FORM, "the NaN of a predicate", ins)
            old = lane.reg(ref.file, ref.index)
            lane.write(ref, self._repaired(old, kind), guard)

    def _repaired(self, old: Val, kind: Nan) -> Val:
        d = self.lane.d
        if kind is Nan.SINGLE:
            return d.canonical(old)
        if kind is not Nan.HALVES:
            raise refused(FORM, f"a NaN of kind {kind}", self.lane.ins)
        return stand_ins.canonical_halves(d.fn, old)

    def _step(self, ins: Instruction, guard: Guard) -> None:
        lane, t, name = self.lane, traits(ins), ins.mnemonic
        lane.ins, lane.ticks = ins, None
        lane.lost = after(self.old_unread, (ins,)) if guard is not None else frozenset()
        if ins.offset in self.facts.agreed:
            self._agree(self.facts.agreed[ins.offset])
            return
        if ins.guard.is_false or ins.offset in self.unread:
            return
        if ins.offset in self.facts.exchanges:
            memory.ordered(lane)
        if name in ("MEMBAR", "CCTL"):
            lane.under(guard, lambda: memory.fence(lane, ins))
        elif t.barrier == "result":
            self.reductions.result(ins, guard)
        elif name == "FENCE":
            raise refused(FORM, name, ins)
        elif ins.offset in self.acquires:
            memory.acquired(lane)
        elif t.order or t.barrier:
            return
        elif name in WHOLE:
            self._matrix(ins, guard)
        elif name in SPACES:
            again = ins.offset in self.again
            memory.access(lane, ins, guard, self.facts.volatile, again)
        elif name == "LDGSTS":
            memory.copy(lane, ins, guard, volatile=self.facts.volatile)
        elif (
            t.reaches(("load",), "constant") and getattr(ins.get("src"), "index", None) is not None
        ):
            self._constant(ins, guard)
        elif name in QUOTIENTS:
            self._quotient(ins)
        elif name in INTEGER_QUOTIENTS:
            integer_quotients.step(lane, ins)
        elif name in INLINE_QUOTIENTS:
            integer_quotients.step32(lane, ins)
        elif name == "QSPC":
            memory.space_of(lane, ins, guard)
        elif name in ATOMIC_SPACES:
            atomics.atomic(lane, ins, guard)
        elif name in ("LEPC", "ULEPC"):
            self._code_address(ins, guard)
        elif name == MNEMONIC:
            assertions.call(lane, ins, guard)
        elif name == "BPT" and set(ins.modifiers) == {"TRAP"}:
            assertions.trap(lane, guard)
        elif t.lanes:
            others.step(lane, ins, guard)
        elif name in semantics_table():
            self._compute(ins, guard)
        else:
            raise refused(FORM, name, ins)

    def _matrix(self, ins: Instruction, guard: Guard) -> None:
        """An instruction of a whole warp, which traps if lanes are missing."""
        if guard is not None:
            raise refused(FORM, "a guard of an instruction of a whole warp", ins)
        if not self.whole:
            self.whole = self.traps = True
            self._or_lost(others.whole(self.lane))
        volatile = self.facts.volatile
        if ins.mnemonic == "LDSM":
            moves.ldsm(self.lane, ins, volatile=volatile)
        elif ins.mnemonic == "STSM":
            moves.stsm(self.lane, ins, volatile=volatile)
        elif ins.mnemonic == "MOVM":
            moves.movm(self.lane, ins)
        else:
            hmma(self.lane, ins)

    def _or_lost(self, good: Val) -> None:
        on = self.lane.fn.fresh("on")
        self.lane.fn.do(f"br i1 {good.ref}, label %{on}, label %lost")
        self.lane.fn.label(on, keep=True)

    def _code_address(self, ins: Instruction, guard: Guard) -> None:
        """LEPC: a code address is an offset here, as by the rules."""
        label = ins.get("target")
        place = label.target if isinstance(label, Label) else ins.offset
        self.lane.give("Rd", [const(place, 32), const(0, 32)], guard)

    def _constant(self, ins: Instruction, guard: Guard) -> None:
        source = ins.get("src")
        assert isinstance(source, Const)
        grid = source.bank == 0 and ins.arch >= 100 and source.offset in self.lane.grid
        if source.index is None or source.index.is_zero or grid:
            self._compute(ins, guard)
        else:
            memory.indexed_constant(self.lane, ins, guard)

    def _compute(self, ins: Instruction, guard: Guard) -> None:
        """An instruction by its semantics."""
        d = self.lane.d
        kind = made(ins, tier=True)
        exact = ins.offset in self.nans.exact
        if kind & WIDE:
            d.any_nan, d.payloads = not exact, exact
        else:
            read = any(ins.has(modifier) for modifier in _READ_NAN)
            d.any_nan = bool(kind) and ins.offset not in self.nans.after and not read
        if d.flushes:
            self._check_flushing(ins)
        low, both = self.wide.get(ins.offset), self.sums.get(ins.offset)
        if ins.offset in self.below:
            self.words[ins.offset] = sums.words(self.lane, ins, self.below[ins.offset])
        try:
            if low is not None:
                written = compares.compared(self.lane, ins, low)
            elif both is not None and (below := self.words.get(both.low.offset)) is not None:
                written = sums.total(self.lane, ins, both, below)
            else:
                written = evaluate(d, semantics_table()[ins.mnemonic], ins, self.lane)
        except NoSemantics as none:
            raise refused(FORM, str(none), ins) from none
        finally:
            d.any_nan, d.payloads = False, True
        for ref, value in written.items():
            self.lane.write(ref, value, guard)

    def _quotient(self, ins: Instruction) -> None:
        d = self.lane.d
        d.any_nan = ins.offset not in self.nans.after
        try:
            quotients.step(self.lane, ins)
        finally:
            d.any_nan = False

    def _check_flushing(self, ins: Instruction) -> None:
        """Refuses operations on binary32 that keep denormal numbers, in a function whose mode
        flushes them, but sums and products, for which the mode can be changed.  Of conversions to
        halves the domain says whether the mode matters."""
        t = traits(ins)
        if t.subnormals in _ARITHMETIC and not ins.has("SAT"):
            return
        if t.converts and ins.modifiers[:1] in (("F16",), ("BF16",)):
            return
        reads = t.number == "f32" or (t.converts and ins.has("F32"))
        if reads and not (ins.has("FTZ") or ins.has("FMZ")) and t.subnormals != "fixed":
            raise refused(FORM, "operations with and without .FTZ in one kernel", ins)

    # --- transfers of control --------------------------------------------------------------------

    def _end(self, frame: _Frame, block: Block) -> list[_Frame]:
        lane, last = self.lane, block.last
        lane.ins = last
        t, edges = traits(last), self.cfg.successors[block.index]
        starts = {kind: [self.cfg.blocks[e.dst].start for e in edges if e.kind == kind]
                  for kind in ("taken", "fall", "sync", "call", "back")}  # fmt: skip
        go = [self._label(frame, s) for s in (*starts["sync"], *starts["fall"])]
        if t.transfer == "wait":
            self._meet(last)
            self._to(go, last)
        elif t.transfer == "exit":
            if last.mnemonic != "EXIT":
                raise refused(FLOW, last.mnemonic, last)
            self._choose(last, "done", go)
        elif t.transfer == "jump" and is_state_test(last):
            raise refused(FLOW, "a test of the warp", last)
        elif t.transfer == "jump":
            if last.mnemonic != "BRA" or last.has("ANY"):
                raise refused(FLOW, last.text, last)
            self._choose(last, self._label(frame, starts["taken"][0]), go)
        elif t.transfer == "return":
            self._return(frame, last, go)
        elif t.transfer == "indirect":
            self._indirect(frame, last, starts["taken"], go)
        elif t.transfer == "call":
            return self._call(frame, last, starts, go)
        else:
            raise refused(FLOW, last.mnemonic, last)
        return []

    def _agree(self, test: Instruction) -> None:
        """All lanes trap if the masks of some do not agree."""
        self.traps = True
        lane = self.lane
        lane.ins = test
        self._or_lost(others.agree(lane, test))

    def _to(self, labels: Sequence[str], ins: Instruction) -> None:
        if len(set(labels)) != 1:
            raise refused(FLOW, "control may go to several places", ins)
        self.lane.branch(labels[0])

    def _choose(self, ins: Instruction, taken: str, otherwise: Sequence[str]) -> None:
        condition = self.lane.holds(*conditions(ins))
        if condition is None or not otherwise:
            self.lane.branch(taken)
        else:
            if ins.offset in self.tested:
                self.traps = True
                condition, alike = others.one_way(self.lane, condition)
                self._or_lost(alike)
            self.lane.fn.do(f"br i1 {condition.ref}, label %{taken}, label %{otherwise[0]}")

    def _meet(self, ins: Instruction) -> None:
        if ins.mnemonic == "WARPSYNC":
            memory.ordered(self.lane)
        elif reduces(ins):
            self.reductions.meet(ins, self._here)
        elif ins.mnemonic == "BAR":
            wait(self.lane)

    def _here(self, condition: Guard) -> Val:
        """The lanes that are here and for which a condition holds."""
        return others.ballot(self.lane, condition or const(1, 1))

    def _token(self, ins: Instruction) -> tuple[Val, int]:
        """The register of an indirect transfer, and what is added to it for an offset in the
        code."""
        disp, label = ins.get("disp"), ins.get("target")
        token = self.lane.word("Ra")
        if isinstance(label, Label):
            return token, label.target
        add = disp.value if isinstance(disp, Imm) else 0
        if not (ins.has("ABS") or ins.mnemonic.startswith("JMX")):
            add += ins.offset + SIZE
        return token, add & 0xFFFFFFFF

    def _switch(self, ins: Instruction, places: dict[int, str], otherwise: Sequence[str]) -> None:
        """To the place that the register names; elsewhere the lane traps."""
        self.traps = True
        condition = self.lane.holds(*conditions(ins))
        if condition is not None:
            if not otherwise:
                raise refused(FLOW, "a condition without a way on", ins)
            jump = self.lane.fn.fresh("jump")
            self.lane.fn.do(f"br i1 {condition.ref}, label %{jump}, label %{otherwise[0]}")
            self.lane.fn.label(jump, keep=True)
        token, add = self._token(ins)
        cases = " ".join(
            f"i32 {const(start - add, 32).ref}, label %{label}" for start, label in places.items()
        )
        self.lane.fn.do(f"switch i32 {token.ref}, label %lost [ {cases} ]")

    def _return(self, frame: _Frame, ins: Instruction, go: Sequence[str]) -> None:
        if frame.back is None:
            raise refused(FLOW, "RET in the kernel", ins)
        self._switch(ins, {frame.back: frame.label}, go)

    def _indirect(
        self, frame: _Frame, ins: Instruction, targets: Sequence[int], go: Sequence[str]
    ) -> None:
        if not targets:
            raise refused(FLOW, "an indirect branch without known targets", ins)
        self._switch(ins, {t: self._label(frame, t) for t in targets}, go)

    def _call(
        self, frame: _Frame, ins: Instruction, starts: dict[str, list[int]], go: Sequence[str]
    ) -> list[_Frame]:
        if starts["taken"]:  # a far jump
            self._choose(ins, self._label(frame, starts["taken"][0]), go)
            return []
        back = [*starts["back"], *starts["fall"]]
        if not starts["call"] or not back:
            raise refused(FLOW, "a call without a known function", ins)
        out: list[_Frame] = []
        places: dict[int, str] = {}
        for start in starts["call"]:
            callee = self.cfg.blocks[self.cfg.by_start[start]].function
            if callee != start or callee in frame.stack:
                raise refused(FLOW, "recursion, or a call into a function", ins)
            self.copies += 1
            prefix = f"f{self.copies}."
            out.append(_Frame(callee, prefix, back[0], self._label(frame, back[0]),
                              (*frame.stack, callee)))  # fmt: skip
            places[start] = f"{prefix}b{start:x}"
        if ins.get("target") is not None and len(places) == 1:
            self._choose(ins, next(iter(places.values())), go)
        else:
            self._switch(ins, places, go)
        return out


def flushes(cfg: Cfg) -> bool:
    """Whether most sums and products of binary32 flush denormal numbers: then the function's mode
    does.  Those of pairs of bf16, which do not, are two each."""
    count = 0
    for block in cfg.blocks:
        for ins in block.instructions:
            t = traits(ins)
            if t.subnormals in _ARITHMETIC:
                count += 1 if ins.has("FTZ") or ins.has("FMZ") else -1
            elif t.number == "f16" and (ins.has("BF16_V2") or ins.has("BF16")):
                count -= 2
    return count > 0


__all__ = ["Blocks", "flushes"]

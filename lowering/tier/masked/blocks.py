"""All blocks of a kernel with the masks of the convergence machine: a wave comes to the blocks in
one order (:mod:`.order`), and runs each with the lanes that wait there.

At its end a block leaves its lanes waiting for the blocks where they go on.  Calls are jumps, as in
SASS: a function is written once, and a return goes to where its lanes' registers say.
"""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.cfg.build import conditions, is_conditional, is_state_test
from sassxlate.cfg.graph import Block
from sassxlate.disasm.sass.instruction import Imm, Instruction, Reg, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.convergence.plan import (
    ORIGIN,
    ConvergencePlan,
    branch_target,
    is_plain_barrier,
)
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.control import Blocks
from sassxlate.lowering.tier.lane import Guard, Lane
from sassxlate.lowering.tier.masked.bodies import SHARED, Bodies, kind
from sassxlate.lowering.tier.masked.masks import ZERO, Masks
from sassxlate.lowering.tier.masked.order import Item, Loop, arranged, ways
from sassxlate.lowering.tier.masked.points import LOST, SWEPT, TURNS, Points, ready
from sassxlate.lowering.tier.refusal import FLOW, FORM, refused
from sassxlate.lowering.tier.warp.reductions import reduces
from sassxlate.lowering.tier.warp.together import Together

_LINES = 200_000  # of the function, for which LLVM takes about a minute
TURN = 64  # turns of a spin loop with the same lanes before other lanes get theirs
_YIELDING = "yielding"


class MaskedBlocks(Blocks):
    """Writes all blocks into the wave's function."""

    def __init__(self, lane: Lane, plan: ConvergencePlan, facts: Together) -> None:
        super().__init__(lane, plan.cfg, facts)
        self.old_unread = frozenset(o for o in self.old_unread if o[1].file not in SHARED)
        if any(ref.file in SHARED for some in self.nans.before.values() for ref, _ in some):
            raise refused(FORM, "the NaN of a register of the warp")
        self.sums, self.below = {}, {}  # the two words' lanes are in branches of their own
        # Strict mode follows all ways, and some lead from any store to any barrier.
        lane.drains = True
        self.plan = plan
        self.m = Masks(lane)
        self.points = Points(self.m, plan, self._meet)
        self.bodies = Bodies(self.m, self._body, self._apart)
        self.loops = 0
        self.stale: set[RegRef] = set()  # written since they were last forgotten

    def write(self) -> None:
        m, lane, d = self.m, self.lane, self.lane.d
        every = arranged(ways(self.cfg))
        self.again = self._reloads(every)
        first = self.cfg.blocks[0].start
        m.begin(ready(first))
        lane.fn.label(f"b{first:x}")
        lane.branch("pass")
        lane.fn.label("pass")
        m.write(_YIELDING, ZERO)
        self._items(every.items)
        pending = self._pending(every)
        none = m.none(pending)
        with m.when(d.and_(none, d.not_(m.none(m.read(SWEPT))))):
            self.points.stuck()
        swept = d.select(none, const(1, 32), ZERO)
        m.write(SWEPT, d.select(m.none(m.read("changed")), swept, ZERO))
        m.write("changed", ZERO)
        goes_on = d.and_(d.not_(m.none(m.live)), m.none(m.read(LOST)))
        m.go(goes_on, "pass", "over")
        lane.fn.label("over")
        m.go(m.none(m.read(LOST)), "done", "lost")
        lane.fn.label("done")
        lane.fn.do("ret void")
        lane.module.declare("void @llvm.trap()")
        lane.fn.label("lost")
        lane.fn.do("call void @llvm.trap()")
        lane.fn.do("unreachable")
        self._mark(0)

    def _reloads(self, loop: Loop) -> frozenset[int]:
        """The loads in loops that may wait for another lane: it may store in each turn."""
        out = frozenset[int]()
        for inner in loop.items:
            if not isinstance(inner, Loop) or not inner.blocks & self.plan.latches:
                continue
            inside = (i for n in inner.blocks for i in self.cfg.blocks[n].instructions)
            out |= {i.offset for i in inside if traits(i).reaches(("load",), "generic", "global")}
        return out

    # --- loops -----------------------------------------------------------------------------------

    def _items(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Loop):
                self._loop(item)
            else:
                self._block(self.cfg.blocks[item])

    def _pending(self, loop: Loop) -> Val:
        """The lanes that wait for another turn of a loop."""
        out = ZERO
        for n in loop.again:
            out = self.lane.d.or_(out, self.m.read(ready(self.cfg.blocks[n].start)))
        return out

    def _loop(self, loop: Loop) -> None:
        """Turns until no lane waits for another one; a loop that may wait for lanes outside is left
        after some turns with the same lanes."""
        m, d, fn = self.m, self.lane.d, self.lane.fn
        again, over = fn.fresh("loop"), fn.fresh("over")
        for n in loop.blocks:
            for ins in self.cfg.blocks[n].instructions:
                self.stale |= ins.writes
        self.lane.branch(again)
        fn.label(again)
        self._items(loop.items)
        pending = self._pending(loop)
        goes_on = d.not_(m.none(pending))
        if loop.blocks & self.plan.latches:
            self.loops += 1
            rounds, lanes = f"rounds{self.loops}", f"lanes{self.loops}"
            same = d.eq(pending, m.read(lanes))
            count = d.select(same, d.add(m.read(rounds), const(1, 32)), ZERO)
            tired = d.not_(d.ult(count, const(TURN, 32)))
            m.write(lanes, pending)
            m.write(rounds, d.select(tired, ZERO, count))
            yields = d.and_(goes_on, tired)
            m.add(_YIELDING, d.zext(yields, 32))
            if self.plan.softens:
                m.write(TURNS, d.add(m.read(TURNS), d.zext(yields, 32)))
            goes_on = d.and_(goes_on, m.none(m.read(_YIELDING)))
            goes_on = d.and_(goes_on, m.none(m.read(LOST)))
        m.go(goes_on, again, over)
        fn.label(over)
        self._mark(self.cfg.blocks[min(loop.blocks)].start)

    # --- blocks ----------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        m = self.m
        self.points.attempt_section(block.start)
        waiting = m.read(ready(block.start))
        with m.some(waiting):
            m.run_only(waiting)
            m.write(ready(block.start), ZERO)
            self._forget(block)
            self._mark(block.start)
            ends = traits(block.last).ends_block
            self.bodies.write(block.instructions[:-1] if ends else block.instructions)
            self._mark(block.last.offset)
            if ends:
                self.lane.ins = block.last
                self._transfer(block)
            else:
                self.points.to(block.end, m.running)
        self.points.attempt(block)
        self._mark(block.last.offset)
        if len(self.lane.fn.lines) > _LINES:
            raise refused(FLOW, "too long for masks of lanes")

    def _forget(self, block: Block) -> None:
        """Where all live lanes are, no other value than those that are live there is read again."""
        if self.plan.uniformity.converged[block.index] and not self.cfg.collectives.by_sync:
            lost = {r for r in self.stale - self.lane.found.live.live_in[block.index]
                    if r.file in ("R", "P")}  # fmt: skip
            self.lane.forget(lost)
            self.stale -= lost
        for ins in block.instructions:
            self.stale |= ins.writes

    def _meet(self, ins: Instruction) -> None:
        plain = reduces(ins) or (ins.has("SYNC") and is_plain_barrier(ins))
        if ins.mnemonic == "BAR" and not plain:
            raise refused(FORM, "this kind of BAR", ins)
        super()._meet(ins)

    def _here(self, condition: Guard) -> Val:
        return self.m.lanes(self.m.running, condition)

    def _apart(self, ins: Instruction) -> None:
        """An instruction that not only the lanes run."""
        self.lane.ins = ins
        what = kind(ins)
        if what == "state":
            self._state(ins)
        elif what == "trap":
            self._lose(self.m.lanes(self.m.running, self.lane.holds(ins.guard)))
        elif what == "whole":
            m, d = self.m, self.lane.d
            self._lose(d.select(d.eq(m.running, const(-1, 32)), ZERO, m.running))
            self.whole = True
            with m.run(m.running):
                self._each([ins])
        else:
            self._step(ins, self.lane.holds(ins.guard))
        self._mark(ins.offset)

    def _lose(self, lanes: Val) -> None:
        """Lanes run no more; the launch ends with an error."""
        self.m.add(LOST, lanes)
        self.m.run_only(self.m.without(self.m.running, lanes))

    def _state(self, ins: Instruction) -> None:
        match ins.mnemonic:
            case "BSSY":
                self.points.arm(ins)
            case "BREAK":
                m = self.m
                self.points.break_out(ins, m.lanes(m.running, self.lane.holds(*conditions(ins))))
            case _:
                self.points.move(ins)

    # --- the ends of blocks ----------------------------------------------------------------------

    def _transfer(self, block: Block) -> None:
        last, m, p = block.last, self.m, self.points
        transfer = traits(last).transfer
        taken = m.lanes(m.running, self.lane.holds(*conditions(last)))
        stay = m.without(m.running, taken)
        if transfer in ("indirect", "return"):
            self._targets(block, ("ret", "taken"), taken)
            p.to(block.end, stay)
        elif transfer == "wait":
            p.arrive(block)
        elif last.mnemonic == "BRA":
            if is_state_test(last):
                taken = self._state_test(taken)
            elif last.has("ANY"):
                taken = self.lane.d.select(m.none(taken), ZERO, m.running)
            p.to(branch_target(last), taken)
            p.to(block.end, m.without(m.running, taken))
        elif last.mnemonic == "EXIT":
            m.remove("live", taken)
            p.to(block.end, stay)
        elif transfer == "call":
            self._called(block, taken)
            p.to(block.end, stay)
        elif last.mnemonic == "ENDCOLLECTIVE":
            self._end_collective(block)
        else:
            raise refused(FLOW, last.mnemonic, last)

    def _state_test(self, passing: Val) -> Val:
        """BRA.CONV jumps if the lanes of its mask are all here and pass its guard, BRA.DIV if
        not."""
        m, d, lane = self.m, self.lane.d, self.lane
        ins = lane.ins
        assert ins is not None
        mask = ins.get("Ra")
        wanted = m.live
        if isinstance(mask, Reg):
            word = ZERO if mask.is_zero else lane.reg(mask.file, mask.index)
            if mask.file == "R":
                word = m.first(word, m.running)
            wanted = d.and_(wanted, d.not_(word) if mask.inv else word)
        elif isinstance(mask, Imm):
            wanted = d.and_(wanted, const(mask.value, 32))
        same = d.eq(passing, wanted)
        return d.select(d.not_(same) if ins.has("DIV") else same, m.running, ZERO)

    def _called(self, block: Block, called: Val) -> None:
        ins, edges = block.last, self.cfg.successors[block.index]
        if ins.get("target") is None and not edges:
            self._lose(called)  # no function's address is taken
        elif not any(e.kind in ("call", "taken") for e in edges):
            raise refused(FLOW, "a call without a known function", ins)
        elif ins.get("target") is None:
            self._targets(block, ("call",), called)
        else:
            self.points.to(branch_target(ins), called)

    def _targets(self, block: Block, kinds: Sequence[str], moving: Val) -> None:
        """Each lane goes on at the block that its register names; one that names none of them is
        lost."""
        m, d, ins = self.m, self.lane.d, block.last
        found = {self.cfg.blocks[e.dst].start for e in self.cfg.successors[block.index]
                 if e.kind in kinds}  # fmt: skip
        if not found:
            raise refused(FLOW, "an indirect branch without known targets", ins)
        token, add = self._token(ins)
        for target in sorted(found):
            hit = m.lanes(moving, d.eq(token, const(target - add, 32)))
            self.points.to(target, hit)
            moving = m.without(moving, hit)
        self._lose(moving)

    def _end_collective(self, block: Block) -> None:
        """The lanes go on after the sections at which they came."""
        m, d = self.m, self.lane.d
        here = self.cfg.collectives.by_end[block.last.offset]
        members = self.cfg.collectives.members(here.sync)
        if is_conditional(block.last):
            raise refused(FLOW, "the guarded end of a collective section", block.last)
        rest = m.running
        origin = m.read(f"word{ORIGIN}")
        for number, site in enumerate(members[:-1]):
            theirs = m.lanes(rest, d.eq(origin, const(number, 32)))
            self.points.to(site.target, theirs)
            rest = m.without(rest, theirs)
        self.points.to(members[-1].target, rest)


__all__ = ["MaskedBlocks"]

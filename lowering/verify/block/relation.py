"""Runs both sides of a block from the same start, and collects what must agree at its end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import (
    TYPE_CHECKING,
    Generic,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.rdna3 import RRef, info
from sassxlate.disasm.rdna3.instruction import V
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.disasm.sass.instruction import Instruction, Reg, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.domain.interface import Domain, is_nan
from sassxlate.lowering.nans.reads import Nan, made, numeric
from sassxlate.lowering.nans.values import ANY, Bounds, float_result
from sassxlate.lowering.verify.block.block import BlockPair, Obligation
from sassxlate.lowering.verify.block.effects import accesses
from sassxlate.lowering.verify.block.places import fixed, placed, registers
from sassxlate.lowering.verify.block.rule_evidence import rule_evidence
from sassxlate.lowering.verify.nans import LOOSE, alike, as_sass, pure, puts_right, tight, written
from sassxlate.lowering.verify.rdna3.execute import Placed, execute
from sassxlate.lowering.verify.rdna3.registers import INITIAL_MODE, Registers
from sassxlate.lowering.verify.sass.lane import CONVERGENCE, SassLane
from sassxlate.lowering.verify.sass.memory import is_access
from sassxlate.lowering.verify.verdict import Defective, Undecided

if TYPE_CHECKING:
    from sassxlate.lowering.verify.block.trusted_instructions import Cut

T = TypeVar("T")


@runtime_checkable
class TellsNan(Protocol):
    """A domain that may distinguish NaN or not."""

    payloads: bool


Same: TypeAlias = Callable[[int, T, T, bool], "T | None"]


@dataclass(frozen=True, slots=True)
class SideOutcome(Generic[T]):
    pairs: tuple[Obligation[T], ...]
    uniform: bool  # whether a value was assumed equal in all lanes


def run(
    block: BlockPair,
    d: Domain[T],
    free: Callable[[str, int], T],
    *,
    active: bool,
    done: frozenset[int] = frozenset(),
    same: Same[T] | None = None,
    cuts: Mapping[int, Cut] | None = None,
    stepwise: bool = False,
) -> SideOutcome[T]:
    """Runs both sides.  An active lane must get SASS's results, an inactive one must keep its
    values: two runs, since terms without that choice inside are easier to compare.

    ``free`` makes the value of a name, the same one each time.  ``done`` are the places of waits
    that leave nothing outstanding.  ``same`` gets the value that each instruction wrote on both
    sides and whether it is a uniform predicate, and may return one value for both to continue with;
    for runs without it, on numbers, see :meth:`Sides.alike`.  ``stepwise``: the returned value is
    new and unconstrained.  ``cuts`` are the instructions that are passed over.  Raises Undecided,
    with the number of the instruction.
    """
    sides = Sides(block, d, free, active, done)
    for n, (ins, code) in enumerate(zip(block.sass, block.rdna, strict=True)):
        try:
            here = cuts.get(n) if cuts else None
            if here is not None:
                sides.cut(n, ins, here)
                continue
            sides.step(ins, code)
            if same is None:
                sides.alike()
            elif active and code:  # no code: its results are never read
                sides.unify(n, ins, same, stepwise)
        except Undecided as reason:
            raise Undecided(str(reason), n if reason.at is None else reason.at) from None
    return sides.outcome()


class Sides(Generic[T]):
    """A lane of SASS and a lane of RDNA3, stepped through a block together."""

    def __init__(
        self,
        block: BlockPair,
        d: Domain[T],
        free: Callable[[str, int], T],
        active: bool,
        done: frozenset[int],
    ) -> None:
        self.block, self.d, self.active = block, d, active
        target = block.regs.target
        self.lane = SassLane(d, block.layout, free, active, target)
        self.machine = Registers(d, free, target)
        placed(block.regs, self.lane, self.machine)
        self.before = dict(self.lane.values)
        self.loose: dict[RegRef, Nan] = {}
        for ref, kind in block.loose.items():
            where = self.table(ref)
            if where is None:
                continue
            table, at = where
            if not kind & LOOSE:
                self.lane.values[ref] = table[at] = tight(d, table[at], kind)
                self.before[ref] = table[at]
            else:
                self.lane.values[ref] = self._sass(ref, table[at], kind)
                self.loose[ref] = kind
        self.fixed = fixed(block.regs, self.machine)
        self.machine.word, self.machine.tables = self.lane.word, block.tables
        self.machine.done = done
        self.machine.entered = active
        self.machine.absent = frozenset(self.lane.windows)
        self.mask = self.machine.mask_of(d.const(int(active), 1))
        self.machine.write_scalar(EXEC_LO, self.mask)
        # A register that SASS writes before reading it need not be equal in all lanes.
        live = _live(block)
        for index, place in block.regs.up.items():
            ref = RegRef("UP", index)
            if ref in live:
                self.machine.put_mask(place.index, self.mask_of(ref, self.lane.get(ref)))
        self._alike = {place.index: self.machine.s[place.index] for place in block.regs.up.values()}
        self.machine.own = frozenset(
            [
                *block.regs.r.values(),
                *block.regs.ur_lanes.values(),
                *block.regs.barriers.values(),
                block.regs.tid.index,
            ]
        )
        self.pairs: list[Obligation[T]] = []

    def _sass(self, ref: RegRef, value: T, kind: Nan, at: str = "") -> T:
        """SASS's side of a loose register."""
        bits = iter(range(32))

        def free(width: int) -> T:
            return self.lane.free(f"nan.{ref.file}{ref.index}{at}.{next(bits)}", width)

        return as_sass(self.d, value, kind, free)

    def mask_of(self, ref: RegRef, value: T, at: int | None = None) -> T:
        """A lane's predicate as a mask; a uniform one is the same in all active lanes.  ``at``: the
        instruction it follows, so that the bits of inactive lanes have one name."""
        d, machine = self.d, self.machine
        if ref.file != "UP" or not self.active:
            return machine.mask_of(value)
        here = d.extract(self.mask, 1, 31)
        others = machine.fresh(31) if at is None else machine.free(f"other.UP{ref.index}.{at}", 31)
        mine = d.and_(d.sext(value, 31), here)
        return d.concat(d.or_(mine, d.and_(others, d.not_(here))), value)

    def step(self, ins: Instruction, code: Sequence[Placed]) -> None:
        # An inactive lane computes nothing; its memory accesses are checked all the same.
        self._tell(ins)
        with self._payloads(ins):
            if self.active or is_access(ins):
                self.lane.run(ins)
            self.machine = execute(code, self.machine)
        self._claimed(ins)
        self.machine.uniform |= any(ref.file == "UP" for ref in ins.reads)
        self._armed(ins)
        counts = len(self.lane.memory.accesses), len(self.machine.memory.accesses)
        if code and counts[0] != counts[1] and rule_evidence(ins) is not None:
            # A sequence that implements one access, and that was tested.
            raise Undecided(f"{counts[0]} accesses and {counts[1]} after {ins.mnemonic}")

    @contextmanager
    def _payloads(self, ins: Instruction) -> Generator[None]:
        """Distinguishes the NaN of doubles in code that must give SASS's to the bit."""
        tells = self.d if isinstance(self.d, TellsNan) and ins.offset in self.block.exact else None
        if tells is None:
            yield
            return
        tells.payloads = True
        try:
            yield
        finally:
            tells.payloads = False

    def _tell(self, ins: Instruction) -> None:
        """R2UR assumes its source equal in all lanes: it must hold SASS's value exactly."""
        self.machine.claims = []
        if ins.mnemonic == "R2UR" and self.active:
            places = self.block.regs.r
            refs = [r for r in ins.reads if r.file == "R" and r.index in places]
            self.machine.told = {places[r.index]: self.lane.get(r) for r in refs}
        else:
            self.machine.told = {}

    def _claimed(self, ins: Instruction) -> None:
        d, none = self.d, self.d.const(0, 32)
        for when, told, value in self.machine.claims:
            if value is not told:
                title = f"what {ins.mnemonic} /*{ins.offset:04x}*/ reads from all lanes"
                sides = d.select(when, told, none), d.select(when, value, none)
                self.pairs.append(Obligation(title, *sides))

    def _armed(self, ins: Instruction) -> None:
        """The barrier masks of BSSY and BREAK belong to the convergence machine."""
        if traits(ins).barrier in CONVERGENCE:
            for index, place in self.block.regs.barriers.items():
                self.lane.values[RegRef("B", index)] = self.machine.v[place]

    def unify(self, n: int, ins: Instruction, same: Same[T], stepwise: bool) -> None:
        """Continues with one value for both sides, if they are equal; for a loose register, with
        one whose NaN may differ."""
        loose = written(ins, self.loose)
        for ref in sorted(ins.writes, key=lambda r: (r.file, r.index)):
            here = self.table(ref)
            self.loose.pop(ref, None)
            kind = loose.get(ref, Nan(0))
            if here is not None and kind & LOOSE and not self._put_right(n, here):
                self._unify_loose(n, ref, kind, same, stepwise)
            elif here is not None:
                table, at = here
                value = same(n, self.lane.get(ref), table[at], False)
                if value is not None:
                    self.lane.values[ref] = table[at] = value
            elif ref.file in ("P", "UP"):
                regs = self.block.regs
                index = (regs.p if ref.file == "P" else regs.up)[ref.index].index
                mine = self.machine.mask(index)
                value = same(n, self.lane.get(ref), mine, ref.file == "UP")
                if value is not None:
                    self.lane.values[ref] = value
                    self.machine.put_mask(index, self.mask_of(ref, value, n))

    def _put_right(self, n: int, place: tuple[dict[int, T], int]) -> bool:
        """Whether the code of an instruction repairs the NaN of its result."""
        if place[0] is not self.machine.v:
            return False
        return any(
            puts_right(step.inst) and step.inst.args[0] == V(place[1])
            for step in self.block.rdna[n]
        )

    def _unify_loose(self, n: int, ref: RegRef, kind: Nan, same: Same[T], stepwise: bool) -> None:
        place = self.table(ref)
        assert place is not None
        table, at = place
        d, mine = self.d, self.lane.get(ref)
        if pure(kind):
            other = self._sass(ref, table[at], kind)
            found = same(n, mine, other, False)
        else:
            found = same(n, d.const(1, 1), alike(d, mine, table[at], kind), False)
            if found is not None and stepwise:
                found = self.machine.free(f"loose.{ref.file}{ref.index}.{n}", 32)
        if found is None:
            return
        self.loose[ref] = kind
        if stepwise:
            table[at] = found
            self.lane.values[ref] = self._sass(ref, found, kind, f".{n}")

    def alike(self) -> None:
        """All active lanes get this lane's bit of the uniform predicates that were written.

        For numbers, which prove nothing about other lanes: a wave whose lanes agree can exist.
        Arbitrary bits in the other lanes would refute correct code, with a wave in which a uniform
        value differs between lanes.
        """
        if not self.active:
            return
        d, machine = self.d, self.machine
        here = d.extract(self.mask, 1, 31)
        for place in self.block.regs.up.values():
            at = place.index
            now = machine.s[at]
            if now is self._alike[at] or at in machine.even or not machine.is_mask(place):
                continue
            mine = d.extract(now, 0, 1)
            elsewhere = d.and_(d.extract(now, 1, 31), d.not_(here))
            machine.put_mask(at, d.concat(d.or_(d.and_(d.sext(mine, 31), here), elsewhere), mine))
            self._alike[at] = machine.s[at]

    def table(self, ref: RegRef) -> tuple[dict[int, T], int] | None:
        """The place of a register's value on the RDNA3 side."""
        regs, machine = self.block.regs, self.machine
        if ref.file == "R" and ref.index in regs.r:
            return machine.v, regs.r[ref.index]
        if ref.file == "R" and ref.index in regs.spilled:
            return machine.slots, regs.spilled[ref.index]
        if ref.file == "B" and ref.index in regs.barriers:
            return machine.v, regs.barriers[ref.index]
        if ref.file == "UR" and ref.index in regs.ur:
            return machine.s, regs.ur[ref.index]
        if ref.file == "UR" and ref.index in regs.ur_lanes:
            return machine.v, regs.ur_lanes[ref.index]
        return None

    def bit(self, ref: RegRef) -> T:
        """The lane's bit of a predicate."""
        regs = self.block.regs
        return self.machine.mask((regs.p if ref.file == "P" else regs.up)[ref.index].index)

    # -- cuts -----------------------------------------------------------------------------

    def cut(self, n: int, ins: Instruction, here: Cut) -> None:
        """Passes over an instruction whose sources agree, with free results for both sides."""
        d, lane = self.d, self.lane
        self.machine = execute(here.parts.opening, self.machine)
        machine, told = self.machine, lane.told(ins)
        when, actual = d.and_(told, lane.active), machine.active()
        label = f"before {ins.mnemonic} /*{ins.offset:04x}*/"
        if machine.bits != INITIAL_MODE:
            raise Undecided(f"MODE is changed {label}")
        self.pairs.append(Obligation(f"EXEC {label}", when, actual))
        if self.active:
            self._agree(ins, when, label)
        self._unchanged(label)
        if here.releases:
            lane.memory.fence("done")
            if self._released(here):
                machine.memory.fence("done")
        if here.memory:
            lane.memory.tested(here.name, when)
            machine.memory.tested(here.name, actual)
        kept = {r: machine.sgpr(r.number) for r in here.frame.written if r.kind == "s"}
        self._havoc(n, here.frame.written)
        machine.s[EXEC_LO] = kept.get(RRef("s", EXEC_LO), machine.sgpr(EXEC_LO))
        for ref in sorted(ins.writes, key=lambda r: (r.file, r.index)):
            # Under a per-lane guard other lanes may execute it, and this one sees their result.
            shared = ref.file in ("UR", "UP") and ins.guard.file == "P" and self.active
            self._result(n, ins, ref, d.const(1, 1) if shared else when, kept)
        self.machine = execute(here.parts.closing, machine)

    def _released(self, here: Cut) -> bool:
        """Whether all earlier accesses are waited for before the code's first effect."""
        for step in chain(here.parts.opening, here.parts.core):
            if step.pc in self.machine.done:
                return True
            if info(step.inst.op).atomic:
                break
        return False

    def _agree(self, ins: Instruction, when: T, label: str) -> None:
        """The operands of the instruction are equal on both sides, if it is executed."""
        d = self.d
        for ref in sorted(ins.reads, key=lambda r: (r.file, r.index)):
            mine = self.lane.get(ref)
            place = self.table(ref)
            if place is not None:
                other = place[0][place[1]]
            elif ref.file in ("P", "UP"):
                other = self.bit(ref)
            else:
                raise Undecided(f"{ref.file}{ref.index} has no place")
            if kind := self._numbers_of(ins).get(ref):
                mine, other = d.const(1, 1), alike(d, mine, other, kind)
            none = d.const(0, d.width(mine))
            self.pairs.append(
                Obligation(f"{ref.file}{ref.index} {label}", d.select(when, mine, none),
                     d.select(when, other, none))
            )  # fmt: skip

    def _numbers_of(self, ins: Instruction) -> dict[RegRef, Nan]:
        """The loose registers that an instruction reads only as numbers."""
        roles, blind = numeric(ins)
        read = {
            RegRef(operand.file, operand.index + i)
            for role in roles
            if isinstance(operand := ins.get(role), Reg)
            for i in range(operand.width)
        }
        return {
            ref: kind & LOOSE
            for ref, kind in self.loose.items()
            if ref in read and not kind & LOOSE & ~blind
        }

    def _unchanged(self, label: str) -> None:
        """The kernel's reserved values are in their places here, too."""
        now = fixed(self.block.regs, self.machine)
        for name, value in self.fixed.items():
            if value is not now[name]:
                self.pairs.append(Obligation(f"{name} {label}", value, now[name]))
        for (bank, offset), place in self.block.regs.consts.items():
            value, found = self.lane.word(bank, offset), self.machine.sgpr(place.index)
            if value is not found:
                self.pairs.append(Obligation(f"c[{bank:#x}][{offset:#x}] {label}", value, found))

    def _havoc(self, n: int, written: frozenset[RRef]) -> None:
        """Temporaries hold anything; destinations are set by :meth:`_result`."""
        machine = self.machine
        for reg in written:
            if reg.kind == "v" and reg.number >= self.block.regs.vtemp_base:
                machine.v[reg.number] = machine.free(f"left{n}.v{reg.number}", 32)
            elif reg.kind == "s":
                machine.write_scalar(reg.number, machine.free(f"left{n}.s{reg.number}", 32))
        machine.flag = machine.free(f"left{n}.scc", 1)

    def _result(self, n: int, ins: Instruction, ref: RegRef, when: T, kept: dict[RRef, T]) -> None:
        """A free value if the instruction is executed, otherwise the old one."""
        d, lane, machine = self.d, self.lane, self.machine
        name = f"{ref.file}{ref.index}.{n}"
        place = self.table(ref)
        if place is not None:
            value = lane.free(name, 32)
            if _number(ins):
                value = d.select(is_nan(d, value), d.const(0, 32), value)
            kind = made(ins) & LOOSE
            sass = self._sass(ref, value, kind, f".{n}") if kind else value
            lane.values[ref] = d.select(when, sass, lane.get(ref))
            loose = written(ins, self.loose)
            self.loose.pop(ref, None)
            if ref in loose:
                self.loose[ref] = loose[ref]
            table, at = place
            old = kept.get(RRef("s", at), table[at]) if table is machine.s else table[at]
            table[at] = d.select(when, value, old)
        elif ref.file in ("P", "UP"):
            regs = self.block.regs
            index = (regs.p if ref.file == "P" else regs.up)[ref.index].index
            old_mask = kept.get(RRef("s", index), machine.sgpr(index))
            value = lane.free(name, 1)
            lane.values[ref] = d.select(when, value, lane.get(ref))
            old = d.extract(old_mask, 0, 1)
            if self.active or ref in self.block.merged:
                machine.put_mask(index, self.mask_of(ref, d.select(when, value, old)))
            else:  # still a mask, with any bit for this lane
                machine.put_mask(index, machine.mask_of(machine.fresh(1)))
        else:
            raise Undecided(f"{ref.file}{ref.index} has no place")

    # -- the end --------------------------------------------------------------------------

    def outcome(self) -> SideOutcome[T]:
        d, lane, machine = self.d, self.lane, self.machine
        if machine.bits != INITIAL_MODE:
            raise Defective("MODE is not restored at the end")
        pairs = [*self.pairs, *registers(self.block, lane, self.before, machine, self.active)]
        pairs += accesses(d, lane.memory, machine.memory)
        pairs.append(Obligation("EXEC", self.mask, machine.sgpr(EXEC_LO)))
        now = fixed(self.block.regs, machine)
        pairs += [Obligation(name, value, now[name]) for name, value in self.fixed.items()]
        return SideOutcome(tuple(pairs), machine.uniform)


def _live(block: BlockPair) -> frozenset[RegRef]:
    """The registers read in the block or after it, with their values before it."""
    every = frozenset(RegRef("UP", index) for index in block.regs.up)
    live = every if block.live_out is None else block.live_out
    for ins in reversed(block.sass):
        live = live_before(ins, live)
    return live


def _number(ins: Instruction) -> bool:
    """Whether a result is binary32 and never NaN."""
    size = float_result(ins, Bounds())
    return size is not None and size < ANY


__all__ = ["BlockPair", "Obligation", "SideOutcome", "Sides", "run"]

"""Checks what happens to a lane in hand-written code that narrows EXEC, branches or loops.

Rules for calls of the driver, compare-and-swap loops, votes and copies write EXEC themselves, and
no solver covers them.  One lane is enough to show what every such sequence must do: whatever its
comparisons give, and whichever way the wave goes, EXEC holds the lane at the end if and only if it
did at the start, and in between no comparison that the lane took no part in decides for it.

So the code is walked for one lane at a time, present or absent, with every outcome of every
comparison and every branch that the wave may take with that lane in it.  Equal states are merged,
so loops terminate.  The lane's bits of scalar registers are those of bits.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sassxlate.disasm.rdna3 import info, reads, writes
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, LabelRef, S, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO, VCC_LO
from sassxlate.lowering.lane_checks.bits import (
    ABSENT,
    DROPPED,
    NO,
    YES,
    both,
    either,
    negated,
    without,
)
from sassxlate.lowering.regalloc.register_map import RegisterMap

_HERE, _PASSED, _AWAY = range(3)  # executes it; present, but its guard is false; waits elsewhere
MOST = 50_000  # states of one sequence; more count as unknown
# Done by all lanes of the wave together, or by one for all, whichever of them are running.
HELPED = frozenset({"UBLKCP", "UTMALDG", "UTMASTG", "UTMAREDG"})
_ALL = 0xFFFFFFFF
_CHOOSES = ("v_cndmask_b32", "v_add_co_ci_u32", "v_sub_co_ci_u32", "v_subrev_co_ci_u32")
# These read what other lanes hold, or write a lane by its number.
_ACROSS = frozenset({"v_readlane_b32", "v_writelane_b32"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What a sequence does wrong to a lane: the index of the item, and a description."""

    item: int
    text: str


@dataclass(frozen=True, slots=True)
class _Lane:
    """A lane at one place: its initial state, whether it runs now, the temporaries that it has
    written (one bit each), and its bits of scalar registers."""

    start: int  # _HERE, _PASSED by the guard, _AWAY
    runs: bool
    written: int
    bits: tuple[tuple[int, int], ...]

    @property
    def there(self) -> bool:
        return self.start == _HERE

    def bit(self, register: int) -> int | None:
        return next((b for r, b in self.bits if r == register), None)

    def put(self, register: int, bit: int | None) -> _Lane:
        """The lane with another bit of a register; None: either."""
        kept = [(r, b) for r, b in self.bits if r != register]
        if bit is not None:
            kept = sorted([*kept, (register, bit)])
        return _Lane(self.start, self.runs, self.written, tuple(kept))

    def running(self, runs: bool) -> _Lane:
        return _Lane(self.start, runs, self.written, self.bits)


@dataclass(frozen=True, slots=True)
class _Step:
    """One instruction, as far as it affects a lane."""

    inst: Inst
    target: int | None  # of a branch; -1 if it leaves the code
    reads: int  # temporaries, a bit each
    writes: int
    given: bool  # whether it writes a vector register of the program
    copy: bool  # whether that is a lane's copy of a uniform register
    memory: bool
    scalars: tuple[int, ...]  # scalar registers that it writes
    asked: tuple[int, ...]  # scalar registers whose bits decide something for a lane
    useful: frozenset[int]  # scalar registers used from here on
    read_later: int  # temporaries read from here on


def is_sequence(items: Sequence[Item]) -> bool:
    """Whether the code handles lanes or control itself: it writes EXEC, or branches."""
    return any(isinstance(item, Label) or _own_ways(item) for item in items)


def _own_ways(inst: Inst) -> bool:
    if inst.op.startswith("s_"):  # a quick test: it runs for every translated instruction
        to = inst.args[0] if inst.args else None
        named = isinstance(to, LabelRef | Sp) and (
            _branches(inst.op) or EXEC_LO in _touches(inst)[0]
        )
        return named or inst.op.endswith("_saveexec_b32")
    return inst.op.startswith("v_cmpx")


def faults(items: Sequence[Item], regs: RegisterMap, *, helps: bool = False) -> tuple[Fault, ...]:
    """What the code of one SASS instruction, without the EXEC of its guard, does wrong to some
    lane; empty if it is right for every lane.

    ``helps``: absent lanes may take part (a whole wave copies, one lane acts for all), as long
    as they write only temporaries.
    """
    walk = _Walk(_steps(items, regs), regs, helps)
    for start in (_HERE, _PASSED, _AWAY):
        walk.go(0, _Lane(start, start == _HERE, 0, ()))
    walk.run()
    return tuple(walk.found.values())


def _branches(op: str) -> bool:
    return op.startswith(("s_cbranch_", "s_branch"))


_Numbers = frozenset[int]


@lru_cache(maxsize=8192)
def _touches(inst: Inst) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Scalar registers written, vector registers read, vector registers written."""
    r, w = reads(inst), writes(inst)
    return (
        frozenset(x.number for x in w if x.kind == "s"),
        frozenset(x.number for x in r if x.kind == "v"),
        frozenset(x.number for x in w if x.kind == "v"),
    )


def _steps(items: Sequence[Item], regs: RegisterMap) -> tuple[_Step, ...]:
    base, copies = regs.vtemp_base, frozenset(regs.ur_lanes.values())
    barriers = frozenset(regs.barriers.values())  # BREAK changes them for waiting lanes
    places: dict[str, int] = {}
    code: list[Inst] = []
    for item in items:
        if isinstance(item, Label):
            places[item.name] = len(code)
        else:
            code.append(item)
    targets = [places.get(_label(i), -1) if _branches(i.op) else None for i in code]
    asked = [tuple(r for a in _deciding(i) if (r := _register(a)) is not None) for i in code]
    end = len(code)
    useful: list[frozenset[int]] = [frozenset()] * (end + 1)
    later = [0] * (end + 1)
    changed = True
    while changed:
        changed = False
        for at in range(end - 1, -1, -1):
            inst, to = code[at], targets[at]
            nexts = [at + 1] if to is None else [to] if inst.op == "s_branch" else [to, at + 1]
            live = frozenset[int]().union(*(useful[n] for n in nexts if n >= 0))
            written, read, _ = _touches(inst)
            new = live - written
            if inst.op.startswith(_CHOOSES) or not written.isdisjoint(live | {EXEC_LO}):
                new |= {*asked[at]} - {EXEC_LO}
            vectors = _bits(read, base)
            for n in nexts:
                vectors |= later[n] if n >= 0 else 0
            if (new, vectors) != (useful[at], later[at]):
                useful[at], later[at], changed = new, vectors, True
    out: list[_Step] = []
    for at, inst in enumerate(code):
        scalars, read, written = _touches(inst)
        if inst.dpp:  # a lane whose source lane is off keeps its value; not so in a full quad
            read -= written
        given = frozenset(v for v in written if v < base) - barriers
        out.append(
            _Step(
                inst,
                targets[at],
                0 if inst.op in _ACROSS else _bits(read, base),
                _bits(written, base),
                bool(given),
                given <= copies,
                info(inst.op).kind in ("global", "flat", "scratch", "lds"),
                tuple(sorted(scalars - {EXEC_LO + 1, VCC_LO + 1})),
                asked[at],
                useful[at],
                later[at],
            )
        )
    return tuple(out)


def _bits(vectors: frozenset[int], base: int) -> int:
    out = 0
    for v in vectors:
        if v >= base:
            out |= 1 << (v - base)
    return out


def _label(inst: Inst) -> str:
    label = inst.args[-1]
    assert isinstance(label, LabelRef)
    return label.name


def _register(arg: Arg) -> int | None:
    if isinstance(arg, S):
        return arg.index
    return ALIASES.get(arg.name) if isinstance(arg, Sp) else None


class _Walk:
    """All states of a lane at all places of the code."""

    def __init__(self, steps: tuple[_Step, ...], regs: RegisterMap, helps: bool) -> None:
        self.steps = steps
        self.regs = regs
        self.helps = helps
        self.masks = frozenset(s.index for s in (*regs.p.values(), *regs.up.values()))
        self.live, self.save = regs.live.index, regs.save_exec.index
        self.seen: set[tuple[int, _Lane]] = set()
        self.work: list[tuple[int, _Lane]] = []
        self.found: dict[tuple[int, str], Fault] = {}

    def run(self) -> None:
        while self.work:
            if len(self.seen) > MOST:
                self._fault(0, "has more states than can be checked")
                return
            at, lane = self.work.pop()
            if at < len(self.steps):
                self._step(at, lane)
            elif lane.runs != lane.there:
                self._fault(at, "ends without a lane" if lane.there else "ends with a new lane")

    def _fault(self, at: int, text: str) -> None:
        self.found.setdefault((at, text), Fault(at, text))

    def go(self, at: int, lane: _Lane) -> None:
        """The lane reaches instruction ``at``; drops state that is not used from there on."""
        if at < len(self.steps):
            step = self.steps[at]
            bits = lane.bits
            if bits:
                bits = tuple((r, b) for r, b in bits if r in step.useful)
            lane = _Lane(lane.start, lane.runs, lane.written & step.read_later, bits)
        if (at, lane) not in self.seen:
            self.seen.add((at, lane))
            self.work.append((at, lane))

    # --- one instruction -------------------------------------------------------------------------

    def _step(self, at: int, lane: _Lane) -> None:
        step = self.steps[at]
        if step.target is not None:
            self._branch(at, step, lane)
            return
        for register in step.asked:  # not read before: try both bits
            if register in step.useful and lane.bit(register) is None:
                for bit in self._first(register, lane):
                    self._step(at, lane.put(register, bit))
                return
        if lane.runs:
            self._registers(at, step, lane)
            lane = _Lane(lane.start, True, lane.written | step.writes, lane.bits)
        if not step.scalars:
            self._choice(at, step, lane)
            self.go(at + 1, lane)
        elif step.inst.op.startswith("v_"):
            self._choice(at, step, lane)
            self._vector(at, step, lane)
        else:
            self._scalar(at, step, lane)

    def _first(self, register: int, lane: _Lane) -> tuple[int, ...]:
        """What a register may hold for the lane before the code has written it."""
        here = lane.start != _AWAY
        if register == self.save:
            return (YES,) if here else (NO,)
        if register == self.live and here:
            return (YES,)
        if here or register not in self.masks:
            return (NO, YES)
        return (DROPPED,)  # predicates mean nothing for lanes that are elsewhere

    def _branch(self, at: int, step: _Step, lane: _Lane) -> None:
        to, op = step.target, step.inst.op
        if to is None or to < 0:
            self._fault(at, "is left by a branch")
            return
        # EXEC is 0 only if no lane runs, this one included.
        if not (op == "s_cbranch_execz" and lane.runs):
            self.go(to, lane)
        if op != "s_branch" and not (op == "s_cbranch_execnz" and lane.runs):
            self.go(at + 1, lane)

    def _registers(self, at: int, step: _Step, lane: _Lane) -> None:
        """Temporaries are read only after a write; registers of absent lanes are not written."""
        if step.reads & ~lane.written:
            self._fault(at, "reads a temporary that a present lane has not written")
        if lane.there:
            return
        if step.memory and not self.helps:
            self._fault(at, "accesses memory for an absent lane")
        # A uniform register belongs to all present lanes.
        if step.given and not (step.copy and lane.start == _PASSED):
            self._fault(at, "writes a register of an absent lane")

    def _choice(self, at: int, step: _Step, lane: _Lane) -> None:
        if lane.runs and step.asked and step.inst.op.startswith(_CHOOSES):
            bits = {lane.bit(register) for register in step.asked}
            if bits & {ABSENT, DROPPED}:
                self._fault(at, "selects by a comparison that the lane took no part in")

    def _vector(self, at: int, step: _Step, lane: _Lane) -> None:
        op = step.inst.op
        number = op.startswith("v_readfirstlane") or op in _ACROSS
        for register in step.scalars:
            if number:  # not a mask: any bit
                lane = lane.put(register, None)
            elif register == EXEC_LO:  # v_cmpx
                self.go(at + 1, lane.running(False))
            else:
                if lane.runs:
                    self.go(at + 1, lane.put(register, NO))
                lane = lane.put(register, YES if lane.runs else ABSENT)
        self.go(at + 1, lane)

    # --- whole masks -----------------------------------------------------------------------------

    def _scalar(self, at: int, step: _Step, lane: _Lane) -> None:
        for bits in self._mask(step.inst, lane):
            after = lane
            for register in step.scalars:
                bit = bits.get(register)
                if register != EXEC_LO:
                    after = after.put(register, bit)
                    continue
                if bit == DROPPED:
                    self._fault(at, "drops a lane by a comparison that it took no part in")
                if bit is None:
                    self.go(at + 1, after.running(True))
                after = after.running(bit == YES)
            self.go(at + 1, after)

    def _value(self, arg: Arg, lane: _Lane) -> int | None:
        """The lane's bit of an operand; None if it may be either."""
        if isinstance(arg, I):
            value = arg.value & _ALL
            return NO if value == 0 else YES if value == _ALL else None
        register = _register(arg)
        if register is None:
            return None
        return int(lane.runs) if register == EXEC_LO else lane.bit(register)

    def _mask(self, inst: Inst, lane: _Lane) -> list[dict[int, int]]:
        """The lane's bit of each register that a scalar instruction writes, one dict per case; a
        register missing from it may hold either bit."""
        target = _register(inst.args[0]) if inst.args else None
        if target is None:
            return [{}]
        sources = [self._value(arg, lane) for arg in inst.args[1:]]
        run = int(lane.runs)
        match inst.op, sources:
            case "s_mov_b32" | "s_mov_b64", [a]:
                return _given(target, a)
            case "s_not_b32", [a]:
                return _given(target, negated(a))
            case "s_and_b32", [a, b]:
                return _given(target, both(a, b))
            case "s_or_b32", [a, b]:
                return _given(target, either(a, b))
            case "s_and_not1_b32", [a, b]:
                return _given(target, without(a, b))
            case "s_cselect_b32", [a, b]:
                return [*_given(target, a), *_given(target, b)]
            case "s_and_saveexec_b32", [a]:
                return [{target: run, **c} for c in _given(EXEC_LO, both(run, a))]
            case "s_and_not0_saveexec_b32", [a]:
                return [{target: run, **c} for c in _given(EXEC_LO, without(run, a))]
            case _:
                return [{}]


def _deciding(inst: Inst) -> tuple[Arg, ...]:
    """Operands whose bit decides something for that one lane."""
    if inst.op.startswith(_CHOOSES):
        return inst.args[-1:]
    if inst.op in ("s_and_saveexec_b32", "s_and_not0_saveexec_b32", "s_and_b32", "s_or_b32",
                   "s_and_not1_b32", "s_mov_b32", "s_not_b32", "s_cselect_b32"):  # fmt: skip
        return inst.args[1:]
    return ()


def _given(register: int, bit: int | None) -> list[dict[int, int]]:
    return [{}] if bit is None else [{register: bit}]


__all__ = ["HELPED", "Fault", "faults", "is_sequence"]

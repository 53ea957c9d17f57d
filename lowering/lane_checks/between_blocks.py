"""Checks where each lane of a wave is, around the code of the convergence machine.

Between blocks a lane is in one place: it runs (EXEC), waits at one point (a ready mask), or has
ended (it is not in the live mask).  Branches, calls, exits and sync points move lanes between these
places, and the scan picks them up.  So their code is followed for one lane, from every place where
it may be and along every path: at each end of the code it must be in one place again.  No lane may
be lost, duplicated, revived, ended except by EXIT, or moved to another waiting point; and no lane
may run where the next point or the scan takes over.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sassxlate.cfg.graph import LABEL
from sassxlate.disasm.rdna3 import writes
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.convergence.lane_masks import END, SCAN
from sassxlate.lowering.convergence.plan import ConvergencePlan, ResumePoint
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
from sassxlate.lowering.lane_checks.handwritten import Fault
from sassxlate.lowering.regalloc.register_map import LaneSlot as Place
from sassxlate.lowering.regalloc.register_map import RegisterMap, Slot

_RUNNING, _ENDED, _ELSEWHERE = -1, -2, -3  # otherwise the number of the point where the lane waits
MOST = 20_000  # states of one piece of code
_ALL = 0xFFFFFFFF
_WORDS = 1024  # numbers from here on are lanes of VGPRs
_OPS = {"s_and_b32": both, "s_or_b32": either, "s_and_not1_b32": without}


@dataclass(frozen=True, slots=True)
class _At:
    """A lane at one instruction: where it came from, whether it runs, the required value of SCC
    (None: either), and its bits."""

    start: int
    runs: bool
    scc: bool | None
    bits: tuple[tuple[int, int | None], ...]


def nobody_runs(label: str) -> bool:
    """Whether no lane runs at a label: sync points and the scan, which look for waiting lanes."""
    return label.startswith("Lsync_") or label == SCAN


def misplaced(
    items: Sequence[Item],
    regs: RegisterMap,
    points: Sequence[ResumePoint],
    *,
    ends: bool = False,
    following: str = "",
) -> tuple[Fault, ...]:
    """What the code between two blocks, or after the last one, does wrong to some lane.

    ``ends``: this is an EXIT's code.  ``following`` is the label after it, unless a block's.
    Labels of points and of the scan inside the code are entries, too.
    """
    walk = _Walk(items, regs, points, ends, following)
    if 0 not in walk.entries.values():
        walk.enter(0, every=True)
    for name, at in walk.entries.items():
        walk.enter(at, every=not nobody_runs(name))
    walk.run()
    return tuple(walk.found.values())


def moves(items: Sequence[Item], regs: RegisterMap) -> bool:
    """Whether code between blocks does more than branch to a block."""
    slots = {slot.index for slot in regs.ready.values() if isinstance(slot, S)}
    words = {slot.vgpr for slot in regs.ready.values() if isinstance(slot, Place)}
    masks = {*slots, regs.live.index, EXEC_LO}
    for item in items:
        if isinstance(item, Label) or not item.args:
            continue
        to = item.args[0]
        if isinstance(to, LabelRef):
            if nobody_runs(to.name) or to.name == END:
                return True
        elif isinstance(to, V):
            if to.index in words:
                return True
        elif _scalar(to) in masks:
            return True
    return False


def check(
    c: RuleEmitter,
    items: Sequence[Item],
    plan: ConvergencePlan,
    *,
    ends: bool = False,
    following: str = "",
) -> None:
    """Raises SX0431 if the code between the blocks treats a lane wrongly."""
    if plan.alone:  # no lane ever waits: EXEC alone holds the live lanes
        return
    if not moves(items, c.k.regs):
        return
    found = misplaced(items, c.k.regs, plan.points, ends=ends, following=following)
    if found:
        what = "; ".join(f.text for f in found[:3])
        raise c.refuse(f"the code after it {what}", "SX0431")


class _Walk:
    def __init__(
        self, items: Sequence[Item], regs: RegisterMap, points: Sequence[ResumePoint], ends: bool,
        following: str,
    ) -> None:  # fmt: skip
        self.following = following
        self.code: list[Inst] = []
        self.labels: dict[str, int] = {}
        for item in items:
            if isinstance(item, Label):
                self.labels[item.name] = len(self.code)
            else:
                self.code.append(item)
        public = ("Lsync_", "Lrelented_", LABEL, SCAN)
        self.entries = {n: at for n, at in self.labels.items() if n.startswith(public)}
        self.live = regs.live.index
        touched = {r for inst in self.code for r in _named(inst)}
        slots = [_number(regs.ready[p.key]) for p in points if p.key in regs.ready]
        self.slots = [s for s in slots if s in touched]
        self.masks = frozenset(s.index for s in (*regs.p.values(), *regs.up.values()))
        self.ends = ends
        self.useful = self._relevant()
        self.seen: set[tuple[int, _At]] = set()
        self.work: list[tuple[int, _At]] = []
        self.found: dict[str, Fault] = {}

    def enter(self, at: int, *, every: bool) -> None:
        for start in (*([_RUNNING] if every else []), _ENDED, _ELSEWHERE, *range(len(self.slots))):
            bits: dict[int, int | None] = {s: NO for s in self.slots}
            bits[self.live] = NO if start == _ENDED else YES
            if start >= 0:
                bits[self.slots[start]] = YES
            self._go(at, _At(start, start == _RUNNING, None, tuple(sorted(bits.items()))))

    def run(self) -> None:
        while self.work:
            if len(self.seen) > MOST:
                self._fault(0, "has more states than can be checked")
                return
            at, lane = self.work.pop()
            self._step(at, lane)

    def _fault(self, at: int, text: str) -> None:
        self.found.setdefault(text, Fault(at, text))

    def _go(self, at: int, lane: _At) -> None:
        if at == len(self.code):
            self._leave(at, self.following, lane)
            return
        useful = self.useful[at]
        if any(r not in useful for r, _ in lane.bits):
            bits = tuple(pair for pair in lane.bits if pair[0] in useful)
            lane = _At(lane.start, lane.runs, lane.scc, bits)
        if (at, lane) not in self.seen:
            self.seen.add((at, lane))
            self.work.append((at, lane))

    def _relevant(self) -> list[frozenset[int]]:
        """The registers that EXEC, the masks of places and branches depend on, at each place."""
        always = frozenset([*self.slots, self.live])
        end = len(self.code)
        out = [always] * (end + 1)
        flows = [_flow_of(inst) for inst in self.code]
        nexts = [self._nexts(at, inst) for at, inst in enumerate(self.code)]
        changed = True
        while changed:
            changed = False
            for at in range(end - 1, -1, -1):
                to, sources = flows[at]
                new = always.union(*(out[n] for n in nexts[at]))
                if to is None or to == EXEC_LO or to in new:
                    new = new.union(sources)
                if to is not None and to not in always and to not in sources:
                    new -= {to}
                if new != out[at]:
                    out[at], changed = new, True
        return out

    def _nexts(self, at: int, inst: Inst) -> list[int]:
        if not inst.op.startswith(("s_cbranch_", "s_branch")):
            return [at + 1]
        to = self.labels.get(_label(inst), len(self.code))
        return [to] if inst.op == "s_branch" else [to, at + 1]

    def _flow(self, at: int, lane: _At) -> None:
        """To the next instruction, which may carry the label of another entry."""
        for name in (n for n, place in self.entries.items() if place == at):
            self._leave(at, name, lane)
            return
        if self.labels.get(END) == at:
            self._leave(at, END, lane)
            return
        self._go(at, lane)

    def _leave(self, at: int, label: str, lane: _At) -> None:
        """Control goes to ``label`` ("": the next block): checks that the lane is in one place."""
        bits = dict(lane.bits)
        waits = [n for n, s in enumerate(self.slots) if bits[s] == YES]
        if any(bits[r] == DROPPED for r in (*self.slots, self.live)):
            self._fault(at, "decides for a lane by a comparison that it took no part in")
            return
        if any(bits[r] is None for r in (*self.slots, self.live)):
            self._fault(at, "writes a number into a lane mask")
            return
        elsewhere = lane.start == _ELSEWHERE
        places = lane.runs + len(waits) + elsewhere
        if bits[self.live] != YES:
            if label == END:  # the end of the wave, whatever runs
                places = elsewhere
            if places - elsewhere or lane.start not in (_ENDED, _RUNNING):
                self._fault(at, "ends a lane that runs or waits")
            elif lane.start == _RUNNING and not self.ends:
                self._fault(at, "ends a lane")
            return
        if lane.start == _ENDED:
            self._fault(at, "revives an ended lane")
        elif places != 1:
            self._fault(at, "has a lane in two places" if places else "loses a lane")
        elif lane.start >= 0 and not lane.runs and waits != [lane.start]:
            self._fault(at, "moves a lane to another point")
        elif lane.runs and nobody_runs(label):
            self._fault(at, "goes on to the next point while a lane runs")
        elif label == END:
            self._fault(at, "ends the wave while a lane is alive")

    # --- one instruction -------------------------------------------------------------------------

    def _step(self, at: int, lane: _At) -> None:
        inst = self.code[at]
        op = inst.op
        if op.startswith(("s_cbranch_", "s_branch")):
            self._branch(at, inst, lane)
        elif op == "s_trap" or op == "s_endpgm":
            return  # the wave ends with a message
        elif op == "v_readlane_b32" and isinstance(inst.args[2], I):
            word = _word(inst.args[1], inst.args[2])
            self._give(at, inst.args[0], [self._bit(word, lane)], lane)
        elif op == "v_writelane_b32" and isinstance(inst.args[2], I):
            word = _word(inst.args[0], inst.args[2])
            self._put(at, word, self._values(inst.args[1], lane), lane, scc=lane.scc)
        elif op.startswith("v_"):
            self._vector(at, inst, lane)
        else:
            self._scalar(at, inst, lane)

    def _branch(self, at: int, inst: Inst, lane: _At) -> None:
        label, op = _label(inst), inst.op
        taken, falls = True, op != "s_branch"
        if op in ("s_cbranch_execz", "s_cbranch_execnz"):
            zero = op.endswith("execz")
            taken, falls = not (zero and lane.runs), falls and (zero or not lane.runs)
        elif op in ("s_cbranch_scc0", "s_cbranch_scc1") and lane.scc is not None:
            taken = lane.scc == op.endswith("1")
            falls = not taken
        if taken:
            to = self.labels.get(label)
            if to is None or label in self.entries or label == END:
                self._leave(at, label, lane)
            else:
                self._go(to, lane)
        if falls:
            self._flow(at + 1, lane)

    def _vector(self, at: int, inst: Inst, lane: _At) -> None:
        targets = [r.number for r in writes(inst) if r.kind == "s" and r.number != EXEC_LO + 1]
        if not targets:
            self._flow(at + 1, lane)
            return
        if inst.op.startswith(("v_readfirstlane", "v_readlane")):
            self._put(at, targets[0], [None], lane, scc=lane.scc)
            return
        outcomes: list[int | None] = [NO, YES] if lane.runs else [ABSENT]
        self._put(at, targets[0], outcomes, lane, scc=lane.scc)

    def _scalar(self, at: int, inst: Inst, lane: _At) -> None:
        op, args = inst.op, inst.args
        if op in ("s_cmp_lg_u32", "s_cmp_eq_u32"):
            self._compare(at, inst, lane)
            return
        targets = [r for r in writes(inst) if r.kind in ("s", "scc")]
        if not any(r.kind == "s" for r in targets):
            scc = None if targets else lane.scc
            self._flow(at + 1, _At(lane.start, lane.runs, scc, lane.bits))
            return
        sets_scc = any(r.kind == "scc" for r in targets)
        if op == "s_mov_b32":
            self._give(at, args[0], self._values(args[1], lane), lane)
        elif op == "s_not_b32":
            made = [negated(a) for a in self._values(args[1], lane)]
            self._give(at, args[0], made, lane, sets_scc)
        elif op in _OPS:
            made = [
                _OPS[op](a, b)
                for a in self._values(args[1], lane)
                for b in self._values(args[2], lane)
            ]
            self._give(at, args[0], made, lane, sets_scc)
        elif op == "s_cselect_b32":
            made = [*self._values(args[1], lane), *self._values(args[2], lane)]
            self._give(at, args[0], made, lane)
        else:
            scc = None if sets_scc else lane.scc
            for number in (r.number for r in targets if r.kind == "s"):
                lane = _put(lane, number, None)
            self._flow(at + 1, _At(lane.start, lane.runs, scc, lane.bits))

    def _compare(self, at: int, inst: Inst, lane: _At) -> None:
        """Masks that differ in this lane's bit are unequal; otherwise the result is unknown."""
        a, b = (self._values(arg, lane) for arg in inst.args)
        scc: bool | None = None
        if len(a) == len(b) == 1 and None not in (*a, *b) and (a == [YES]) != (b == [YES]):
            scc = inst.op == "s_cmp_lg_u32"
        self._flow(at + 1, _At(lane.start, lane.runs, scc, lane.bits))

    # --- bits ------------------------------------------------------------------------------------

    def _bit(self, register: int, lane: _At) -> int | None:
        for number, bit in lane.bits:
            if number == register:
                return bit
        return None

    def _values(self, arg: Arg, lane: _At) -> list[int | None]:
        """The bits that an operand may have for the lane."""
        if isinstance(arg, I):
            value = arg.value & _ALL
            return [NO] if value == 0 else [YES] if value == _ALL else [NO, YES]
        register = _scalar(arg)
        if register is None:
            return [None]
        if register == EXEC_LO:
            return [YES if lane.runs else NO]
        known = [bit for number, bit in lane.bits if number == register]
        if known and known[0] is not None:
            return known
        if not known and register in self.masks and not lane.runs and lane.start != _RUNNING:
            return [DROPPED]  # a predicate is meaningless for absent lanes
        return [NO, YES]

    def _give(
        self, at: int, to: Arg, bits: Sequence[int | None], lane: _At, sets_scc: bool = False
    ) -> None:
        register = _scalar(to)
        if register is None:
            self._flow(at + 1, lane)
            return
        self._put(at, register, bits, lane, scc=lane.scc, sets_scc=sets_scc)

    def _put(
        self, at: int, register: int, bits: Sequence[int | None], lane: _At, *,
        scc: bool | None, sets_scc: bool = False,
    ) -> None:  # fmt: skip
        """The lane after an instruction, once for each possible bit of its result."""
        for bit in dict.fromkeys(bits):
            now = (True if bit == YES else None) if sets_scc else scc
            after = _At(lane.start, lane.runs, now, lane.bits)
            if register != EXEC_LO:
                self._flow(at + 1, _put(after, register, bit))
                continue
            if bit == DROPPED:
                self._fault(at, "decides for a lane by a comparison that it took no part in")
            for runs in (True, False) if bit is None else (bit == YES,):
                self._flow(at + 1, _At(lane.start, runs, now, lane.bits))


def _put(lane: _At, register: int, bit: int | None) -> _At:
    kept = [(r, b) for r, b in lane.bits if r != register]
    bits = tuple(sorted([*kept, (register, bit)], key=lambda pair: pair[0]))
    return _At(lane.start, lane.runs, lane.scc, bits)


def _scalar(arg: Arg) -> int | None:
    if isinstance(arg, S):
        return arg.index
    return ALIASES.get(arg.name) if isinstance(arg, Sp) else None


def _label(inst: Inst) -> str:
    label = inst.args[-1]
    assert isinstance(label, LabelRef)
    return label.name


def _flow_of(inst: Inst) -> tuple[int | None, tuple[int, ...]]:
    """The mask result of an instruction (None: SCC), and the masks that it is computed from."""
    op, args = inst.op, inst.args
    if op in ("v_readlane_b32", "v_writelane_b32") and isinstance(args[2], I):
        reads = op == "v_readlane_b32"
        word = _word(args[0 if not reads else 1], args[2])
        other = _scalar(args[1 if not reads else 0])
        if reads:
            return other, (word,)
        return word, () if other is None else (other,)
    sources = tuple(r for r in map(_scalar, args[1:]) if r is not None and r != EXEC_LO)
    if op in ("s_cmp_lg_u32", "s_cmp_eq_u32"):
        return None, tuple(r for r in map(_scalar, args) if r is not None and r != EXEC_LO)
    if op in _OPS or op in ("s_mov_b32", "s_not_b32", "s_cselect_b32"):
        return _scalar(args[0]), sources
    to = next((r.number for r in writes(inst) if r.kind == "s"), None)
    return (-1 if to is None else to), ()


def _word(v: Arg, lane: Arg) -> int:
    assert isinstance(v, V)
    assert isinstance(lane, I)
    return _WORDS + 32 * v.index + lane.value


def _number(slot: Slot) -> int:
    return _WORDS + 32 * slot.vgpr + slot.lane if isinstance(slot, Place) else slot.index


def _named(inst: Inst) -> Collection[int]:
    """Scalar registers and lanes of VGPRs that an instruction names."""
    if inst.op in ("v_readlane_b32", "v_writelane_b32") and isinstance(inst.args[2], I):
        return [_word(inst.args[1 if inst.op == "v_readlane_b32" else 0], inst.args[2])]
    return [r for r in map(_scalar, inst.args) if r is not None]


__all__ = ["check", "misplaced", "moves", "nobody_runs"]

"""Guarded writes after which nothing reads the register's old value, where the guard is false.

``@P0 LDG R2`` keeps R2 in lanes without P0.  If R2 is then only read under P0, while P0 has the
same value, these lanes may have any number in it: no choice between the old and the new value is
made.  A backward analysis of what each lane reads: for each register, under which conditions its
value is still read, as a set of predicates with their signs of which one must hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sassxlate.cfg import Cfg
from sassxlate.cfg.build import conditions, is_state_test
from sassxlate.cfg.graph import Block
from sassxlate.cfg.liveness import kept
from sassxlate.disasm.sass.instruction import Instruction, Pred, RegRef
from sassxlate.disasm.sass.traits import traits

# Bits: P0 to P6, UP0 to UP6, and their negations 16 bits further; ALWAYS for no condition.
Conditions: TypeAlias = int
_FILES: Final = {"P": 0, "UP": 8}
_NEGATED: Final = 16
ALWAYS: Final[Conditions] = 1 << 32
Reads: TypeAlias = dict[RegRef, Conditions]


@dataclass(frozen=True, slots=True)
class _Step:
    """What the analysis needs of an instruction; only registers that it follows."""

    ins: Instruction
    holds: Conditions  # its guard, ALWAYS without one
    fails: Conditions  # the guard's negation
    reads: tuple[RegRef, ...]
    always: tuple[RegRef, ...]  # of these, those that lanes without the guard read, too
    writes: tuple[RegRef, ...]
    changed: Conditions  # conditions on the predicates that it writes


def condition(p: Pred) -> Conditions:
    """That a predicate operand holds."""
    if p.is_true:
        return ALWAYS
    return 1 << _FILES[p.file] + p.index + _NEGATED * p.inv


def negated(one: Conditions) -> Conditions:
    """The negation of a single condition; 0, which never holds, of ALWAYS."""
    if one == ALWAYS:
        return 0
    return one >> _NEGATED if one >> _NEGATED else one << _NEGATED


def where(some: Conditions, one: Conditions) -> Conditions:
    """Where a condition holds: no condition but that if there was none, and not its negation."""
    if one == ALWAYS:
        return some
    return one if some & ALWAYS else some & ~negated(one)


def _either(one: Conditions, other: Conditions) -> Conditions:
    return ALWAYS if (one | other) & ALWAYS else one | other


def unread(cfg: Cfg) -> frozenset[tuple[int, RegRef]]:
    """The writes, by offset and register, whose old value need not be kept."""
    guarded = [i for b in cfg.blocks for i in b.instructions if not i.guard.is_true and i.writes]
    followed = frozenset(r for i in guarded for r in i.writes)
    if not followed:
        return frozenset()
    steps = [[_step(i, followed) for i in b.instructions] for b in cfg.blocks]
    before: list[Reads] = [{} for _ in cfg.blocks]
    stale = [True] * len(cfg.blocks)
    while any(stale):
        for n in range(len(cfg.blocks) - 1, -1, -1):
            if not stale[n]:
                continue
            stale[n] = False
            now = _before(steps[n], _after(cfg, cfg.blocks[n], before))
            # Joined with what was found before: `where` may give another condition for a larger
            # set, so that sets would not only grow.
            for ref, some in before[n].items():
                now[ref] = _either(now.get(ref, 0), some)
            if now != before[n]:
                before[n] = now
                for edge in cfg.predecessors[n]:
                    stale[edge.src] = True
    out: set[tuple[int, RegRef]] = set()
    for block, inside in zip(cfg.blocks, steps, strict=True):
        reads = _after(cfg, block, before)
        for step in reversed(inside):
            _forget(step, reads)
            if step.fails:
                lost = [r for r in step.writes if not where(reads.get(r, 0), step.fails)]
                out.update((step.ins.offset, r) for r in lost if r not in kept(step.ins))
            _pass(step, reads)
    return frozenset(out)


def _step(ins: Instruction, followed: frozenset[RegRef]) -> _Step:
    guard = condition(ins.guard)
    changed = 0
    for ref in ins.writes:
        if ref.file in _FILES and ref.index < 7:
            bit = 1 << _FILES[ref.file] + ref.index
            changed |= bit | bit << _NEGATED
    tested = conditions(ins) if traits(ins).transfer else (ins.guard,)
    own = {RegRef(p.file, p.index) for p in tested}
    reads = (ins.reads | kept(ins)) & followed
    return _Step(
        ins, guard, negated(guard), tuple(reads), tuple(reads & own),
        tuple(ins.writes & followed), changed,
    )  # fmt: skip


def _after(cfg: Cfg, block: Block, before: list[Reads]) -> Reads:
    """What is read after a block, by the conditions of its branch."""
    out: Reads = {}
    for edge in cfg.successors[block.index]:
        taken = _of_edge(block.last, edge.kind)
        for ref, some in before[edge.dst].items():
            here = where(some, taken)
            if here:
                out[ref] = _either(out.get(ref, 0), here)
    return out


def _of_edge(last: Instruction, kind: str) -> Conditions:
    """What holds in the lanes that take an edge, if that is one condition."""
    needed = [p for p in conditions(last) if not p.is_true]
    if len(needed) != 1 or is_state_test(last) or traits(last).transfer not in ("jump", "exit"):
        return ALWAYS
    one = condition(needed[0])
    return one if kind == "taken" else negated(one) if kind == "fall" else ALWAYS


def _before(steps: list[_Step], reads: Reads) -> Reads:
    for step in reversed(steps):
        _forget(step, reads)
        _pass(step, reads)
    return reads


def _forget(step: _Step, reads: Reads) -> None:
    """Conditions on a predicate's new value say nothing before it is written."""
    if step.changed:
        for ref, some in reads.items():
            if some & step.changed:
                reads[ref] = ALWAYS


def _pass(step: _Step, reads: Reads) -> None:
    for ref in step.writes:
        here = where(reads.get(ref, 0), step.fails) if step.fails else 0
        if here:
            reads[ref] = here
        else:
            reads.pop(ref, None)
    for ref in step.reads:
        reads[ref] = _either(reads.get(ref, 0), step.holds)
    for ref in step.always:
        reads[ref] = ALWAYS


def after(found: frozenset[tuple[int, RegRef]], some: Sequence[Instruction]) -> frozenset[RegRef]:
    """The registers of which nothing reads the old value after a run under one guard."""
    return frozenset(r for i in some for r in i.writes if (i.offset, r) in found)


__all__ = ["after", "unread"]

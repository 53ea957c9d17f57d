"""Uniform registers with one value between two events, whichever lanes write it.

SASS has one such register for a warp, the tier's code one for each lane.  If lanes run apart, but
all that write a register between two events (`turns.py`) write the same value, computed from
constants alone, then a lane that reads it there has this value in both ways: if it wrote the
register after the event itself, or the register had this value at the event.

A value is what computes it: the instruction, with the values of its sources.  Constant banks do not
change while a kernel runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from sassxlate.cfg import Cfg
from sassxlate.cfg.graph import Block
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Pred, Reg, RegRef, Special
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.tier.warp.turns import between_events

_UNIFORM = ("UR", "UP")
_RESULTS = frozenset({"Rd", "Pu", "Pv"})
_SPECIALS = frozenset({"SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z", "SRZ"})
_State: TypeAlias = Mapping[RegRef, Hashable]


def _value(ins: Instruction, state: _State) -> Hashable | None:
    """What an instruction computes of constants; None if it is anything else."""
    t = traits(ins)
    if not ins.guard.is_true or t.lanes or (t.memory is not None and t.memory.space != "constant"):
        return None
    parts: list[Hashable] = []
    read: set[RegRef] = set()
    for role, operand in sorted(ins.operands.items()):
        if role in _RESULTS:
            continue
        if isinstance(operand, Reg) and not operand.is_zero:
            refs = [RegRef(operand.file, operand.index + i) for i in range(max(1, operand.width))]
            if not all(r in state for r in refs):
                return None
            read.update(refs)
            signs = operand.neg, operand.abs, operand.inv, operand.select
            parts.append((role, signs, tuple(state[r] for r in refs)))
        elif isinstance(operand, Pred) and operand.index != 7:
            ref = RegRef(operand.file, operand.index)
            if ref not in state:
                return None
            read.add(ref)
            parts.append((role, operand.inv, state[ref]))
        elif isinstance(operand, Const):
            if operand.index is not None or operand.ur is not None:
                return None
            parts.append((role, operand))
        elif isinstance(operand, Special):
            if operand.name not in _SPECIALS:
                return None
            parts.append((role, operand.name))
        elif isinstance(operand, Imm | Reg | Pred):
            parts.append((role, operand))
        else:
            return None
    return None if ins.reads - read else (ins.mnemonic, ins.modifiers, tuple(parts))


def _after(block: Block, state: _State) -> tuple[_State, dict[RegRef, set[Hashable | None]]]:
    """The values at a block's end, and all that it writes."""
    now = dict(state)
    wrote: dict[RegRef, set[Hashable | None]] = {}
    for ins in block.instructions:
        mine = sorted(
            (w for w in ins.writes if w.file in _UNIFORM), key=lambda w: (w.file, w.index)
        )
        value = _value(ins, now) if mine else None
        for n, ref in enumerate(mine):
            found = None if value is None else (n, value)
            wrote[ref] = {found}  # SASS may run a block with no other lanes in between
            if found is None:
                now.pop(ref, None)
            else:
                now[ref] = found
    return now, wrote


def _common(states: Iterable[_State]) -> _State:
    some = list(states)
    return {r: v for r, v in some[0].items() if all(r in s and s[r] == v for s in some[1:])}


def _called(cfg: Cfg) -> dict[int, set[RegRef]]:
    """What the functions may write that blocks call, directly or not, by the block's index."""
    calls = [(cfg.blocks[e.src].function, e) for e in cfg.edges if e.kind == "call"]
    writes: dict[int, set[RegRef]] = {}
    for block in cfg.blocks:
        mine = writes.setdefault(block.function, set())
        mine.update(w for i in block.instructions for w in i.writes if w.file in _UNIFORM)
    size = -1
    while size != (size := sum(map(len, writes.values()))):
        for caller, edge in calls:
            writes[caller] |= writes[cfg.blocks[edge.dst].function]
    out: dict[int, set[RegRef]] = {}
    for _, edge in calls:
        out.setdefault(edge.src, set()).update(writes[cfg.blocks[edge.dst].function])
    return out


def constants(cfg: Cfg, converged: Sequence[bool]) -> list[_State]:
    """By block index, the registers with such a value at its start, with that."""
    spans = [(begun, inside, reached) for begun, inside, reached in between_events(cfg, converged)]
    into: list[_State | None] = [None for _ in cfg.blocks]
    into[0] = {}
    lost = _called(cfg)
    changed = True
    while changed:
        changed = False
        ends = [None if s is None else _after(b, s) for b, s in zip(cfg.blocks, into, strict=True)]
        new: list[_State | None] = []
        for n, old in enumerate(into):
            before = [
                {r: v for r, v in end[0].items() if r not in lost.get(e.src, ())}
                if e.kind == "back" else end[0]
                for e in cfg.predecessors[n]
                if e.kind != "ret" and (end := ends[e.src]) is not None
            ]  # fmt: skip
            kinds = {e.kind for e in cfg.predecessors[n]}
            if n == 0 or ("ret" in kinds and "back" not in kinds):
                before.append({})
            if old is not None:
                before.append(old)
            new.append(_common(before) if before else None)
        for begun, inside, reached in spans:
            wrote: dict[RegRef, set[Hashable | None]] = {}
            for n in inside:
                end = ends[n]
                for ref, values in end[1].items() if end is not None and n != begun else ():
                    wrote.setdefault(ref, set()).update(values)
            for n in (inside - {begun}) | reached:
                state = new[n]
                if state is not None:
                    new[n] = {r: v for r, v in state.items() if wrote.get(r, {v}) == {v}}
        changed = new != into
        into = new
    return [{} if state is None else state for state in into]


__all__ = ["constants"]

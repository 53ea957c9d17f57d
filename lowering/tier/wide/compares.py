"""Comparisons of 64-bit integers, which nvcc makes of two: ISETP of the low words, unsigned, and
ISETP.EX of the high words, which takes the first one's result where the high words are equal.

``hi < hi' or (hi == hi' and lo < lo')`` is ``hi:lo < hi':lo'``; for <=, > and >= the same, with the
high words' strict comparison; ``hi == hi' and lo == lo'`` and ``hi != hi' or lo != lo'`` likewise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sassxlate.cfg import Cfg
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Operand, Pred, Reg, RegRef
from sassxlate.disasm.sass.semantics.arithmetic.compare import INTEGER, results
from sassxlate.disasm.sass.semantics.rows import View
from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.tier.lane import Lane

_NAMES = frozenset({"ISETP", "UISETP"})
_LOW = frozenset({*INTEGER, "U32", "AND"})
_HIGH = frozenset({*_LOW, "EX", "OR", "XOR"})


def _relation(ins: Instruction) -> str:
    return next((m for m in ins.modifiers if m in INTEGER), "")


def _plain(operand: Operand | None) -> bool:
    """Whether an operand is a word without a sign, which is read alone."""
    if isinstance(operand, Const):
        indexed = operand.index is not None or operand.ur is not None
        return not (indexed or operand.neg or operand.abs or operand.inv)
    if isinstance(operand, Reg):
        return not (operand.neg or operand.abs or operand.inv)
    return isinstance(operand, Imm)


def _words(ins: Instruction) -> bool:
    return all(_plain(ins.get(role)) for role in ("Ra", "Rb"))


def _low(ins: Instruction, target: Pred, guard: Pred) -> bool:
    """Whether an instruction writes only the comparison of low words to a predicate."""
    written, opposite, joined = ins.get("Pu"), ins.get("Pv"), ins.get("Pp")
    return (
        ins.mnemonic in _NAMES
        and ins.has("U32")
        and _LOW.issuperset(ins.modifiers)
        and isinstance(written, Pred)
        and (written.file, written.index) == (target.file, target.index)
        and isinstance(opposite, Pred)
        and opposite.index == 7
        and isinstance(joined, Pred)
        and joined.is_true
        and ins.guard == guard
        and _words(ins)
    )


def _of_block(some: Sequence[Instruction], at: int) -> Instruction | None:
    """The low comparison of the instruction at a place in a block, if it is such a pair."""
    high = some[at]
    taken = high.get("Pq")
    if not (high.mnemonic in _NAMES and high.has("EX") and _relation(high) and _words(high)):
        return None
    if not _HIGH.issuperset(high.modifiers) or not isinstance(taken, Pred) or taken.inv:
        return None
    changed: set[RegRef] = set()
    for ins in reversed(some[:at]):
        if RegRef(taken.file, taken.index) in ins.writes:
            if not _low(ins, taken, high.guard) or _relation(ins) != _relation(high):
                return None
            # The words that it compared, and who executes, are as they were.
            own = set(ins.reads) | {RegRef(high.guard.file, high.guard.index)}
            return None if (changed | set(ins.writes)) & own else ins
        changed |= ins.writes
    return None


def pairs(cfg: Cfg) -> Mapping[int, Instruction]:
    """The low comparisons, by the offsets of those of the high words."""
    out: dict[int, Instruction] = {}
    for block in cfg.blocks:
        for at, ins in enumerate(block.instructions):
            if ins.has("EX"):
                low = _of_block(block.instructions, at)
                if low is not None:
                    out[ins.offset] = low
    return out


def compared(lane: Lane, high: Instruction, low: Instruction) -> dict[RegRef, Val]:
    """What the comparison of the high words writes: one of 64 bits, joined with Pp."""
    d = lane.d
    view, below = View(d, high, lane), View(d, low, lane)
    a, b = (d.concat(view.integer(r, 32), below.integer(r, 32)) for r in ("Ra", "Rb"))
    less = d.ult if high.has("U32") else d.slt
    hit = {
        "LT": lambda: less(a, b),
        "GT": lambda: less(b, a),
        "LE": lambda: d.not_(less(b, a)),
        "GE": lambda: d.not_(less(a, b)),
        "EQ": lambda: d.eq(a, b),
        "NE": lambda: d.not_(d.eq(a, b)),
    }[_relation(high)]()
    out: dict[RegRef, Val] = {}
    for role, value in results(d, view, hit).items():
        target = high.get(role) if isinstance(role, str) else None
        if isinstance(target, Pred) and target.index != 7:
            out[RegRef(target.file, target.index)] = value
    return out


__all__ = ["compared", "pairs"]

"""Sums of 64-bit integers, which nvcc makes of two: IADD3 or LEA of the low words, with a carry,
and IADD3.X, IMAD.X or LEA.HI.X of the high words, which adds it.

LLVM makes comparisons of the carry and does not find the 64-bit sum again, nor that an address is
one.  So the second instruction is written as one sum of 64 bits, which gives both words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from sassxlate.cfg import Cfg
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Operand, Pred, Reg, RegRef
from sassxlate.disasm.sass.semantics.rows import View
from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.tier.lane import Lane

_ROLES = ("Ra", "Rb", "Rc")


@dataclass(frozen=True, slots=True)
class Sum:
    """The instruction of the low words, and the roles of the terms of both; the last ones are
    subtracted if ``minus``.  ``shift``: the first term of both is shifted by this; its high word is
    the low one's sign if ``signed``.  ``kept``: the register of the low word still has it then."""

    low: Instruction
    below: tuple[str, ...]
    above: tuple[str, ...]
    kept: bool
    minus: bool = False
    shift: int = 0
    signed: bool = False


def _flags(operand: Operand | None) -> set[str] | None:
    """What is done to the bits of an operand; None if it is no word."""
    if isinstance(operand, Reg | Const | Imm):
        return {flag for flag in ("neg", "abs", "inv") if getattr(operand, flag, False)}
    return None


def _zero(operand: Operand | None) -> bool:
    none = isinstance(operand, Reg) and operand.is_zero
    return not _flags(operand) and (none or (isinstance(operand, Imm) and operand.value == 0))


def _terms(
    ins: Instruction, roles: Sequence[str], minus: str
) -> tuple[tuple[str, ...], bool] | None:
    """The roles that are not zero, the one with the flag ``minus`` last, and whether one has it.
    None if they have other flags, or two have that."""
    plain: list[str] = []
    turned: list[str] = []
    for role in roles:
        operand = ins.get(role)
        flags = _flags(operand)
        if flags is None or flags - {minus}:
            return None
        if not _zero(operand):
            (turned if flags else plain).append(role)
    return ((*plain, *turned), bool(turned)) if len(turned) < 2 else None


def _is_pred(operand: Operand | None) -> bool:
    return isinstance(operand, Pred) and operand.index != 7


def _same(a: Operand | None, b: Operand | None) -> bool:
    """Whether a predicate, or register, that is written is what is read."""
    if isinstance(a, Pred) and isinstance(b, Pred):
        return (a.file, a.index) == (b.file, b.index) and not b.inv
    if isinstance(a, Reg) and isinstance(b, Reg):
        return (a.file, a.index) == (b.file, b.index) and not (_flags(a) or _flags(b))
    return False


def _false(operand: Operand | None) -> bool:
    return operand is None or (isinstance(operand, Pred) and operand.is_false)


def _high_roles(ins: Instruction) -> tuple[str, ...] | None:
    """The terms of a sum of high words; None if it is another."""
    modifiers = set(ins.modifiers)
    if ins.mnemonic == "IADD3" and modifiers == {"X"}:
        return _ROLES
    if ins.mnemonic == "IMAD" and not modifiers - {"X", "U32"}:
        one = ins.get("Rb")
        if any(_zero(ins.get(role)) for role in ("Ra", "Rb")):
            return ("Rc",)
        if isinstance(one, Imm) and one.value == 1:
            return ("Ra", "Rc")
    return None


def _plain_sum(low: Instruction, high: Instruction, kept: bool) -> Sum | None:
    roles = _high_roles(high)
    if roles is None or low.mnemonic != "IADD3" or low.modifiers:
        return None
    lows, highs = _terms(low, _ROLES, "neg"), _terms(high, roles, "inv")
    if lows is None or highs is None or lows[1] != highs[1]:
        return None
    (below, minus), (above, _) = lows, highs
    two = len(below) > 2  # there may be a second carry
    if two != _is_pred(low.get("Pv")):
        return None
    if not (_same(low.get("Pv"), high.get("Pq")) if two else _false(high.get("Pq"))):
        return None
    return Sum(low, below, above, kept, minus)


def _shifted(low: Instruction, high: Instruction, kept: bool) -> Sum | None:
    """Of LEA.HI.X: its first source is the low word that is shifted."""
    signed = high.has("SX32")
    shift = high.get("shift")
    if set(high.modifiers) - {"HI", "X", "SX32"} or not isinstance(shift, Imm):
        return None
    above = ("Rb",) if signed else ("Rc", "Rb")
    if any(_flags(high.get(role)) != set() for role in ("Ra", *above)):
        return None
    if low.mnemonic == "LEA" and not low.modifiers:
        other = low.get("shift")
        roles = ["Ra", "Rb"]
        count = shift.value & 31
        if not isinstance(other, Imm) or other.value & 31 != count:
            return None
    elif low.mnemonic == "IADD3" and not low.modifiers and signed and shift.value == 1:
        count = 0  # the upper word of twice a number is its sign
        roles = [role for role in _ROLES if not _zero(low.get(role))]
        roles.sort(key=lambda role: not _same(low.get(role), high.get("Ra")))
        if _is_pred(low.get("Pv")):
            return None
    else:
        return None
    if len(roles) != 2 or any(_flags(low.get(role)) != set() for role in roles):
        return None
    if not _same(low.get(roles[0]), high.get("Ra")):
        return None
    return Sum(low, tuple(roles), above, kept, False, count, signed)


def _of_block(some: Sequence[Instruction], at: int) -> Sum | None:
    """The sum of the low words for the instruction at a place in a block, if it is such a pair."""
    high = some[at]
    carry = high.get("Pp")
    if not isinstance(carry, Pred) or carry.index == 7 or _is_pred(high.get("Pu")):
        return None
    changed = set[RegRef]()
    for low in reversed(some[:at]):
        if RegRef(carry.file, carry.index) not in low.writes:
            changed |= low.writes
            continue
        target = low.get("Rd")
        if low.guard != high.guard or not _same(low.get("Pu"), carry):
            return None
        if not isinstance(target, Reg):
            return None
        own = RegRef(target.file, target.index)
        kept = not target.is_zero and own not in changed | high.writes
        shifted = high.mnemonic == "LEA"
        found = (_shifted if shifted else _plain_sum)(low, high, kept)
        if found is None:
            return None
        # The guard, the second carry and what is shifted are as they were.
        still = [low.guard, low.get("Pv"), high.get("Ra") if shifted else None]
        since = changed | (low.writes if shifted else frozenset[RegRef]())
        refs = {RegRef(o.file, o.index) for o in still if isinstance(o, Pred | Reg)}
        return None if refs & since else found
    return None


def sums(cfg: Cfg) -> Mapping[int, Sum]:
    """The pairs, by the offsets of the sums of high words."""
    out: dict[int, Sum] = {}
    for block in cfg.blocks:
        for at, ins in enumerate(block.instructions):
            if ins.has("X") and (found := _of_block(block.instructions, at)) is not None:
                out[ins.offset] = found
    return out


def terms(found: Iterable[Sum]) -> dict[int, tuple[str, ...]]:
    """The roles of the terms of the sums of low words, by offset.  Several sums of high words may
    take a carry, each with an order of its own."""
    out: dict[int, tuple[str, ...]] = {}
    for one in found:
        known = out.get(one.low.offset, ())
        out[one.low.offset] = (*known, *(role for role in one.below if role not in known))
    return out


def words(lane: Lane, ins: Instruction, roles: Sequence[str]) -> dict[str, Val]:
    """The words that are added, by role, without signs."""
    view = View(lane.d, ins, lane)
    return {role: view.whole(role, 32) for role in roles}


def total(lane: Lane, high: Instruction, of: Sum, low: Mapping[str, Val]) -> dict[RegRef, Val]:
    """What the sum of high words writes, and the low word again."""
    d = lane.d
    below = [low[role] for role in of.below]
    above = tuple(words(lane, high, of.above).values())
    if high.mnemonic == "LEA":
        if of.signed:
            above = d.ashr(below[0], d.const(31, 32)), *above
        out = d.shl(d.concat(above[0], below[0]), d.const(of.shift, 64))
        out = d.add(out, d.concat(above[1], below[1]))
    else:
        plus = slice(0, -1 if of.minus else None)
        none, out = d.const(0, 32), d.const(0, 64)
        for word, up in zip_longest(below[plus], above[plus], fillvalue=none):
            out = d.add(out, d.concat(up, word))
        if of.minus:
            out = d.sub(out, d.concat(above[-1], below[-1]))
    written: dict[RegRef, Val] = {}
    for ins, lo, wanted in ((of.low, 0, of.kept), (high, 32, True)):
        target = ins.get("Rd")
        if wanted and isinstance(target, Reg) and not target.is_zero:
            written[RegRef(target.file, target.index)] = d.extract(out, lo, 32)
    return written


__all__ = ["Sum", "sums", "terms", "total", "words"]

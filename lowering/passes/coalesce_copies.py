"""Removes moves from temporaries: a result is computed in the destination of the move.

Rules compute into temporaries if the destination may still be a source, and the registers of a
pair are moved one by one.  Within the code of one SASS instruction a temporary's whole live range
is known: it ends with the instruction.  So if a value is computed into temporaries only to be
moved, and nothing in between reads, writes or relies on the destination, it is computed there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sassxlate.disasm.rdna3 import can_encode, effects, info, keeps_part
from sassxlate.disasm.rdna3.instruction import Inst, Item, S, V, sgprs, vgprs
from sassxlate.disasm.rdna3.reads_writes import FIRST
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.regalloc.register_map import RegisterMap

_V: Final = FIRST["v"]  # registers are the numbers of their bits
_S: Final = FIRST["s"]
_EXEC: Final = 1 << _S + EXEC_LO
# Results whose registers must not overlap the sources: the unit reads while it writes.
_APART: Final = frozenset({"v_mad_u64_u32", "v_mad_i64_i32"})
_MASKS: Final = ("v_add_co_", "v_sub_co_", "v_subrev_co_")
_MOVES: Final = frozenset({"v_mov_b32", "s_mov_b32"})
_NO_MOVE: Final = (-1, -1)


def coalesce_copies(items: Sequence[Item], regs: RegisterMap) -> list[Item]:
    """The items of one SASS instruction without unneeded moves.  Code with labels or branches is
    left unchanged: there a temporary may have several live ranges at once."""
    if len(items) < 2 or not _has_moves(items):  # like most
        return list(items)
    code: list[Inst] = []
    for item in items:
        if not isinstance(item, Inst) or _jumps(item):
            return list(items)
        code.append(item)
    at = len(code) - 1
    while at > 0:
        if code[at].op in _MOVES:
            at = min(at, _without(code, at, regs))
        at -= 1
    return _in_pairs(code)


@dataclass(frozen=True, slots=True)
class Shorter:
    """The spans that lost moves, in order: where each began and ended, and how many items it and
    those before it have lost."""

    firsts: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])
    lost: list[int] = field(default_factory=list[int])

    def moved(self, indices: array[int]) -> array[int]:
        """The new indices, as :meth:`Walk.to` has them, of some in order."""
        if not self.ends:
            return indices
        walk = Walk(self)
        made = array("I")
        for at in range(0, len(indices), _PART):  # a list takes ten times the memory of an array
            made.extend([walk.to(index) for index in indices[at : at + _PART]])
        return made


_PART: Final = 1 << 12


class Walk:
    """Finds where the items of a program are without its unneeded moves."""

    def __init__(self, shorter: Shorter) -> None:
        self.shorter = shorter
        self.passed = 0  # spans that end at the last index or before it
        self.lost = 0  # their items
        self.last = 0

    def to(self, index: int) -> int:
        """The new index of the item at ``index``, or of the program's end; of an item in a span
        that lost moves the new index of the span's first.  Fast for indices in order."""
        ends = self.shorter.ends
        if index < self.last:
            self.passed = self.lost = 0
        self.last = index
        while self.passed < len(ends) and ends[self.passed] <= index:
            self.lost = self.shorter.lost[self.passed]
            self.passed += 1
        if self.passed < len(ends) and self.shorter.firsts[self.passed] < index:
            return self.shorter.firsts[self.passed] - self.lost
        return index - self.lost


def coalesce_spans(
    items: tuple[Item, ...], spans: Iterable[tuple[int, int]], regs: RegisterMap
) -> tuple[tuple[Item, ...], Shorter]:
    """A program in which each span ``items[first:end]``, the code of one SASS instruction, has no
    unneeded moves, and the spans that lost some.  Spans are in order and do not overlap."""
    out: list[Item] = []
    shorter = Shorter()
    at = lost = 0
    for first, end in spans:
        if not _has_moves_in(items, first, end):  # like most
            continue
        made = coalesce_copies(items[first:end], regs)
        if len(made) == end - first:
            continue
        out += items[at:first]
        out += made
        at = end
        lost += end - first - len(made)
        shorter.firsts.append(first)
        shorter.ends.append(end)
        shorter.lost.append(lost)
    if not out and not at:
        return items, shorter
    out += items[at:]
    return tuple(out), shorter


def _has_moves_in(items: tuple[Item, ...], first: int, end: int) -> bool:
    if end - first < 2:
        return False
    for at in range(first, end):
        item = items[at]
        if isinstance(item, Inst) and item.op in _MOVES:
            return True
    return False


def _has_moves(items: Sequence[Item]) -> bool:
    for item in items:  # noqa: SIM110  (`any` and a generator would take twice as long)
        if isinstance(item, Inst) and item.op in _MOVES:
            return True
    return False


def _in_pairs(code: list[Inst]) -> list[Item]:
    """Moves of the two halves of a pair of SGPRs merged into one."""
    out: list[Item] = []
    for inst in code:
        before = out[-1] if out else None
        if isinstance(before, Inst) and before.op == inst.op == "s_mov_b32":
            (to, low), (high_to, high) = before.args, inst.args
            if isinstance(to, S) and isinstance(low, S) and isinstance(high, S):
                whole = high_to == S(to.index + 1) and high == S(low.index + 1)
                if whole and to.index % 2 == low.index % 2 == 0:
                    pair = (S(to.index, 2), S(low.index, 2))
                    out[-1] = before.with_own("s_mov_b64", pair, before.imm, before.origin)
                    continue
        out.append(inst)
    return out


def _jumps(inst: Inst) -> bool:
    return info(inst.op).kind in ("branch", "jump", "end", "barrier", "message")


def _plain_move(inst: Inst) -> tuple[int, int]:
    """(destination, source) of a move between registers of one file; else -1 for both."""
    if inst.op not in _MOVES or inst.dpp or inst.y or inst.neg or inst.abs:
        return _NO_MOVE
    if inst.clamp or inst.omod:
        return _NO_MOVE
    to, source = inst.args[0], inst.args[1]
    if inst.op == "v_mov_b32":
        if isinstance(to, V) and isinstance(source, V):
            return _V + to.index, _V + source.index
    elif isinstance(to, S) and isinstance(source, S):
        return _S + to.index, _S + source.index
    return _NO_MOVE


def _result(inst: Inst, source: int) -> int:
    """Index of the operand whose result contains this register: the first, or the second if a lane
    mask is a second result (carries); -1 if none does."""
    for which in range(2 if inst.op.startswith(_MASKS) else 1):
        arg = inst.args[which]
        first = _first(arg) if isinstance(arg, V | S) else -1
        if isinstance(arg, V | S) and first <= source < first + arg.n:
            return which
    return -1


def _first(arg: V | S) -> int:
    return (_V if isinstance(arg, V) else _S) + arg.index


def _temporary(register: int, regs: RegisterMap) -> bool:
    if register >= _V:
        return register - _V >= regs.vtemp_base
    return register - _S in regs.stemps


def _without(code: list[Inst], at: int, regs: RegisterMap) -> int:
    """Removes the move at ``at``, and those of the same result's other words, if that changes
    nothing but temporaries.  Returns the index to continue from."""
    to, source = _plain_move(code[at])
    if source < 0 or not _temporary(source, regs) or _temporary(to, regs):
        return at
    moved = 1 << source
    maker = at - 1
    while maker >= 0 and not effects(code[maker]).write_bits & moved:
        maker -= 1
    if maker < 0:
        return at
    made = code[maker]
    which = _result(made, source)
    if which < 0:
        return at
    result = made.args[which]
    assert isinstance(result, V | S)
    first = _first(result)
    place = first + to - source  # of the result's first word
    vector = isinstance(result, V)
    if place < (_V if vector else _S):
        return at
    moves = _moves(code, maker, first, place, result.n, regs)
    words = (1 << result.n) - 1 << first
    places = (1 << result.n) - 1 << place
    if not moves or not _may_write(made, words, places, result.n):
        return at
    if not vector and result.n > 1 and (place - _S) % min(result.n, 4):
        return at
    last = moves[-1]
    for i in range(maker + 1, last):
        if i in moves:
            continue
        found = effects(code[i])
        if (found.read_bits | found.write_bits) & (words | places) or found.write_bits & _EXEC:
            return at
    args = list(made.args)
    args[which] = vgprs(place - _V, result.n) if vector else sgprs(place - _S, result.n)
    other = made.with_args(tuple(args))
    # An operand that is both read and written would be found here.
    if can_encode(other) is not None:
        return at
    before, after = effects(made), effects(other)
    if after.read_bits != before.read_bits:
        return at
    if after.write_bits != before.write_bits & ~words | places:
        return at
    code[maker] = other
    for i in reversed(moves):
        del code[i]
    return moves[0]


def _moves(
    code: list[Inst], maker: int, first: int, place: int, n: int, regs: RegisterMap
) -> list[int]:
    """The moves of a result's ``n`` words from ``first`` on to ``place`` and what follows, in
    order: each moved once, to its place, and not read otherwise.  Empty if it is not so."""
    words = (1 << n) - 1 << first
    found: list[int] = []
    seen = 0
    for i in range(maker + 1, len(code)):
        done = effects(code[i])
        read = done.read_bits & words
        if read:
            to, source = _plain_move(code[i])
            if source < 0 or read != 1 << source or read & seen or to - source != place - first:
                return []
            seen |= read
            found.append(i)
        if done.write_bits & words:
            return []  # a second live range of a word: rare, and not worth handling
    if seen != words:
        return []
    for i in range(n):
        if _temporary(place + i, regs):
            return []
    return found


def _may_write(inst: Inst, words: int, places: int, n: int) -> bool:
    """Whether the ``n`` words of an instruction's result may be put in other registers."""
    row = info(inst.op)
    if keeps_part(inst) or inst.dpp or inst.y is not None:
        return False
    for operand in row.args:
        if operand.role == "rw":
            return False  # it accumulates into its destination
    found = effects(inst)
    if row.kind == "smem" or row.atomic or words & ~found.write_bits:
        return False
    if not found.read_bits & places:
        return True
    return n == 1 and inst.op not in _APART


__all__ = ["Shorter", "Walk", "coalesce_copies", "coalesce_spans"]

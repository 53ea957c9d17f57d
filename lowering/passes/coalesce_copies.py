"""Removes moves from temporaries: a result is computed in the destination of the move.

Rules compute into temporaries if the destination may still be a source, and the registers of a
pair are moved one by one.  Within the code of one SASS instruction a temporary's whole live range
is known: it ends with the instruction.  So if a value is computed into temporaries only to be
moved, and nothing in between reads, writes or relies on the destination, it is computed there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sassxlate.disasm.rdna3 import RRef, can_encode, effects, info, keeps_part, reads, writes
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, S, V, sgprs, vgprs
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.regalloc.register_map import RegisterMap

_EXEC = RRef("s", EXEC_LO)
# Results whose registers must not overlap the sources: the unit reads while it writes.
_APART = frozenset({"v_mad_u64_u32", "v_mad_i64_i32"})
_MASKS = ("v_add_co_", "v_sub_co_", "v_subrev_co_")
_MOVES = {"v_mov_b32": "v", "s_mov_b32": "s"}


def coalesce_copies(items: Sequence[Item], regs: RegisterMap) -> list[Item]:
    """The items of one SASS instruction without unneeded moves.  Code with labels or branches is
    left unchanged: there a temporary may have several live ranges at once."""
    for item in items:
        if isinstance(item, Inst) and item.op in _MOVES:
            break
    else:  # most have no moves
        return list(items)
    if len(items) < 2 or any(isinstance(i, Label) or _jumps(i) for i in items):
        return list(items)
    code = [i for i in items if isinstance(i, Inst)]
    at = len(code) - 1
    while at > 0:
        if code[at].op in _MOVES:
            at = min(at, _without(code, at, regs))
        at -= 1
    return _in_pairs(code)


def coalesce_spans(
    items: Sequence[Item], spans: Iterable[tuple[int, int]], regs: RegisterMap
) -> tuple[list[Item], Sequence[int]]:
    """A program in which each span ``items[first:end]``, the code of one SASS instruction, has no
    unneeded moves.  Spans are in order and do not overlap.

    The second result maps each index from 0 to ``len(items)`` to its new index; an index inside a
    span maps to the start of the span.
    """
    out: list[Item] = []
    places = array("I")
    at = 0
    for first, end in spans:
        places.extend(range(len(out), len(out) + first - at))
        out += items[at:first]
        places.extend([len(out)] * (end - first))
        out += coalesce_copies(items[first:end], regs)
        at = end
    places.extend(range(len(out), len(out) + len(items) - at + 1))
    out += items[at:]
    return out, places


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
                    out[-1] = replace(before, op="s_mov_b64", args=pair)
                    continue
        out.append(inst)
    return out


def _jumps(inst: Inst) -> bool:
    return info(inst.op).kind in ("branch", "jump", "end", "barrier", "message")


def _plain_move(inst: Inst) -> tuple[RRef, RRef] | None:
    """(destination, source) of a move between registers of one file."""
    kind = _MOVES.get(inst.op)
    if kind is None or inst.dpp or inst.y or inst.neg or inst.abs or inst.clamp or inst.omod:
        return None
    made = V if kind == "v" else S
    to, source = inst.args[0], inst.args[1]
    if not isinstance(to, made) or not isinstance(source, made):
        return None
    return RRef(kind, to.index), RRef(kind, source.index)


def _result(inst: Inst, source: RRef) -> int | None:
    """Index of the operand whose result contains this register: the first, or the second if a lane
    mask is a second result (carries)."""
    for which in (0, 1)[: 2 if inst.op.startswith(_MASKS) else 1]:
        arg = inst.args[which]
        if isinstance(arg, V | S):
            kind = "v" if isinstance(arg, V) else "s"
            if source.kind == kind and arg.index <= source.number < arg.index + arg.n:
                return which
    return None


def _temporary(ref: RRef, regs: RegisterMap) -> bool:
    return ref.number >= regs.vtemp_base if ref.kind == "v" else ref.number in regs.stemps


def _without(code: list[Inst], at: int, regs: RegisterMap) -> int:
    """Removes the move at ``at``, and those of the same result's other words, if that changes
    nothing but temporaries.  Returns the index to continue from."""
    move = _plain_move(code[at])
    if move is None or not _temporary(move[1], regs) or _temporary(move[0], regs):
        return at
    kind, source = move[1].kind, move[1]
    maker = next((i for i in range(at - 1, -1, -1) if source in writes(code[i])), None)
    if maker is None:
        return at
    which = _result(code[maker], source)
    if which is None:
        return at
    result = code[maker].args[which]
    assert isinstance(result, V | S)
    words = [RRef(kind, result.index + i) for i in range(result.n)]
    shift = move[0].number - source.number
    places = [RRef(kind, word.number + shift) for word in words]
    moves = _moves(code, maker, dict(zip(words, places, strict=True)), regs)
    if moves is None or not _may_write(code[maker], words, places):
        return at
    if kind == "s" and result.n > 1 and places[0].number % min(result.n, 4):
        return at
    last = max(moves)
    for i in range(maker + 1, last):
        if i in moves:
            continue
        found = effects(code[i])
        if found.touched & {*words, *places} or _EXEC in found.writes:
            return at
    made = vgprs if isinstance(result, V) else sgprs
    target = made(places[0].number, result.n)
    args = list(code[maker].args)
    args[which] = target
    other = code[maker].with_args(tuple(args))
    # An operand that is both read and written would be found here.
    if can_encode(other) is not None or reads(other) != reads(code[maker]):
        return at
    if writes(other) != frozenset((writes(code[maker]) - set(words)) | set(places)):
        return at
    code[maker] = other
    for i in sorted(moves, reverse=True):
        del code[i]
    return min(moves)


def _moves(
    code: list[Inst], maker: int, wanted: dict[RRef, RRef], regs: RegisterMap
) -> list[int] | None:
    """The moves of a result's words: each moved once, to its place, and not read otherwise."""
    found: dict[RRef, int] = {}
    for i in range(maker + 1, len(code)):
        for word in wanted.keys() & reads(code[i]):
            move = _plain_move(code[i])
            if word in found or move != (wanted[word], word):
                return None
            found[word] = i
        if wanted.keys() & writes(code[i]):
            return None  # a second live range of a word: rare, and not worth handling
    if len(found) != len(wanted) or any(_temporary(p, regs) for p in wanted.values()):
        return None
    return list(found.values())


def _may_write(inst: Inst, words: list[RRef], places: list[RRef]) -> bool:
    """Whether the result of the instruction may be put in other registers."""
    row = info(inst.op)
    if keeps_part(inst) or inst.dpp or inst.y is not None:
        return False
    if any("r" in operand.role and "w" in operand.role for operand in row.args):
        return False  # it accumulates into its destination
    if row.kind == "smem" or row.atomic or not set(words) <= writes(inst):
        return False
    if not reads(inst) & set(places):
        return True
    return len(words) == 1 and inst.op not in _APART


__all__ = ["coalesce_copies", "coalesce_spans"]

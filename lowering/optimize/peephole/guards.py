"""Guards as selections, and selections of nearly equal results; learnt from LLVM's code."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sassxlate.disasm.rdna3 import MACRO, OPS, RRef, keeps_part
from sassxlate.disasm.rdna3.instruction import Arg, Inst, S, Sp, V
from sassxlate.lowering.optimize.cost import instruction
from sassxlate.lowering.optimize.draft import Draft, legal, line, moved, plain, source
from sassxlate.lowering.region.subset import guard

_MOST: Final = 12  # most instructions under a guard


def two_way(d: Draft) -> None:
    """A guard that switches from one predicate's lanes to the others: all of it runs in all lanes,
    and the live results are selected."""
    n = 0
    while n < len(d.lines):
        found = guard(d.lines[n].inst, d.regs)
        if found is not None and found[0] == ".pred":
            _merge(d, n)
        n += 1


def _merge(d: Draft, first: int) -> None:
    end = first
    mask: S | None = None
    inverted = switched = False
    made: list[tuple[Inst, int]] = []
    free = list(d.free_vectors())
    masks: set[RRef] = set()
    for end in range(first, min(first + _MOST, len(d.lines))):
        at = d.lines[end]
        found = guard(at.inst, d.regs)
        if found is not None:
            if found[0] == ".endpred":
                break
            switched |= found[0] == ".switch"
            _, inverted, mask = found
            if mask is None:
                return
            masks |= source(mask)
            continue
        new = _selected(d, at.inst, mask, inverted, free)
        if mask is None or new is None:
            return
        made += [(inst, at.group) for inst in new]
    else:
        return
    if not switched or not made or any(masks & d.lines[m].writes for m in range(first, end)):
        return
    if not all(legal(inst) for inst, _ in made):
        return
    before = sum(instruction(d.lines[m].inst) for m in range(first, end + 1))
    if sum(instruction(inst) for inst, _ in made) >= before + 2 * 18:  # later changes save more
        return
    d.join([d.lines[first].group, d.lines[end].group])
    d.lines[first : end + 1] = [line(inst, group) for inst, group in made]
    d.changed = True
    d.settle()


def _selected(
    d: Draft, inst: Inst, mask: S | None, inverted: bool, free: list[V]
) -> list[Inst] | None:
    to = inst.args[0] if inst.args else None
    if (
        mask is None
        or inst.op == MACRO
        or OPS[inst.op].kind != "valu"
        or not isinstance(to, V)
        or to.n != 1
    ):
        return None
    if keeps_part(inst) or OPS[inst.op].args[0].role != "w" or len(OPS[inst.op].writes) > 0:
        return None
    if any("w" in a.role for a in OPS[inst.op].args[1:]):
        return None
    if d.temporary(RRef("v", to.index)):
        return [inst]
    found = moved(inst)
    if found is not None and not isinstance(found[1], Sp):
        return [_choice(to, found[1], mask, inverted)]
    if not free:
        return None
    temp = free.pop(0)
    return [replace(inst, args=(temp, *inst.args[1:])), _choice(to, temp, mask, inverted)]


def _choice(to: V, new: Arg, mask: S, inverted: bool) -> Inst:
    return Inst("v_cndmask_b32", (to, new, to, mask) if inverted else (to, to, new, mask))


def overlaid(d: Draft) -> None:
    """Merges a selection of a selection by the same predicate."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        if inst.op != "v_cndmask_b32" or not plain(inst):
            continue
        for i in (1, 2):
            value = inst.args[i]
            if not isinstance(value, V) or inst.args[3 - i] == value:
                continue
            (ref,) = source(value)
            m = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
            if m is None or not d.reaches(m, n):
                continue
            other = d.lines[m].inst
            if other.op != inst.op or not plain(other) or other.args[3] != inst.args[3]:
                continue
            inner = other.args[i]
            # The first line may overwrite its sources.
            same = frozenset[RRef]() if other.args[0] == inner else source(inner)
            if inner == other.args[0] or not d.unchanged(same | source(inst.args[3]), m, n):
                continue
            args = list(inst.args)
            args[i] = inner
            made = replace(inst, args=tuple(args))
            if legal(made):
                d.join([d.lines[m].group, at.group])
                d.put(n, made)
                inst = made


_SAME: Final = {
    "v_add_nc_u32": (1, 2), "v_sub_nc_u32": (2, 1), "v_and_b32": (1, 2), "v_or_b32": (1, 2),
    "v_xor_b32": (1, 2), "v_lshlrev_b32": (2,), "v_lshrrev_b32": (2,), "v_min_u32": (1, 2),
    "v_max_u32": (1, 2), "v_min_i32": (1, 2), "v_max_i32": (1, 2),
}  # fmt: skip


def nearly_same(d: Draft) -> None:
    """Selection between two results that differ in one operand: selects the operand."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op == "v_cndmask_b32" and plain(inst):
            _select_operand(d, n, inst)
        n += 1


def _maker(d: Draft, n: int, value: Arg) -> int | None:
    """The line that makes a word that only line ``n`` reads."""
    if not isinstance(value, V):
        return None
    (ref,) = source(value)
    m = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
    if m is None or d.uses(m, ref) != [n] or d.lines[m].region != d.lines[n].region:
        return None
    return m if plain(d.lines[m].inst) and len(d.lines[m].inst.args) == 3 else None


def _select_operand(d: Draft, n: int, inst: Inst) -> None:
    to, no, yes, mask = inst.args
    a, b = _maker(d, n, no), _maker(d, n, yes)
    if a is None or b is None or a == b:
        return
    one, two = d.lines[a].inst, d.lines[b].inst
    if one.op != two.op:
        return
    for i in _SAME.get(one.op, ()):
        other = 3 - i
        both = {*one.args[1:]} & {*two.args[1:]} if i == 1 and 2 in _SAME[one.op] else set[Arg]()
        x, y = one.args[i], two.args[i]
        if one.args[other] == two.args[other]:
            common = one.args[other]
        elif len(both) == 1 and one.op not in ("v_sub_nc_u32",):  # the operands' order is free
            (common,) = both
            x = one.args[2] if one.args[1] == common else one.args[1]
            y = two.args[2] if two.args[1] == common else two.args[1]
            other = 3 - i
        else:
            continue
        refs = source(x) | source(y) | source(common)
        if not d.unchanged(refs, min(a, b), n):
            continue
        own = [v for v in (no, yes) if isinstance(v, V) and d.temporary(RRef("v", v.index))]
        place = own[0] if own else to
        if place == common:
            continue
        chosen = Inst("v_cndmask_b32", (place, x, y, mask))
        args: list[Arg] = [to, to, to]
        args[i], args[other] = place, common
        made = [chosen, Inst(one.op, tuple(args))]
        before = sum(instruction(k) for k in (inst, one, two))
        if all(map(legal, made)) and sum(map(instruction, made)) < before:
            groups = [d.lines[k].group for k in (a, b, n)]
            d.join(groups)
            d.lines[n : n + 1] = [line(k, d.lines[n].group) for k in made]
            d.remove([a, b])
            return


GUARDS: Final = (two_way, overlaid, nearly_same)
__all__ = ["GUARDS", "nearly_same", "overlaid", "two_way"]

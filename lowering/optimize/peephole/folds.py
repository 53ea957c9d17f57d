"""Changes learnt from LLVM's code for the same blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from sassxlate.disasm.rdna3 import OPS, RRef, keeps_part
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.optimize.draft import (
    Draft,
    instead,
    legal,
    line,
    moved,
    plain,
    put_with,
    source,
    substituted,
)
from sassxlate.lowering.optimize.peephole.addresses import addresses, near_addresses
from sassxlate.lowering.optimize.peephole.guards import GUARDS
from sassxlate.lowering.optimize.peephole.scalars import moved_scalar
from sassxlate.lowering.region.subset import guard

_ALL: Final = 0xFFFFFFFF
_SCC: Final = RRef("scc")
_NOT: Final = {
    "lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq",
}  # fmt: skip
_NOT_FLOAT: Final = {
    "lt": "nlt", "nlt": "lt", "gt": "ngt", "ngt": "gt", "le": "nle", "nle": "le", "ge": "nge",
    "nge": "ge", "eq": "neq", "neq": "eq", "lg": "nlg", "nlg": "lg", "u": "o", "o": "u",
}  # fmt: skip


def constant_masks(d: Draft) -> None:
    """Folds masks with known values: combinations with no or all lanes, comparisons of numbers."""
    for n, at in enumerate(d.lines):
        made = _folded_mask(at.inst)
        if made is not None and legal(made):
            d.put(n, made)


_COMBINED: Final[Mapping[str, Callable[[int, int], int]]] = {
    "s_and_b32": lambda a, b: a & b, "s_or_b32": lambda a, b: a | b,
    "s_xor_b32": lambda a, b: a ^ b, "s_and_not1_b32": lambda a, b: a & ~b,
    "s_or_not1_b32": lambda a, b: a | ~b, "s_nand_b32": lambda a, b: ~(a & b),
    "s_nor_b32": lambda a, b: ~(a | b), "s_xnor_b32": lambda a, b: ~(a ^ b),
}  # fmt: skip


def _folded_mask(inst: Inst) -> Inst | None:
    if inst.op.startswith("v_cmp_u_f") and inst.abs == 0 and inst.neg == 0:
        to, a, b = inst.args
        if isinstance(a, I) and isinstance(b, I) and not (_is_nan(inst, a) or _is_nan(inst, b)):
            return Inst("s_mov_b32", (to, I(0)))
        return None
    how = _COMBINED.get(inst.op)
    if how is None:
        return None
    to, a, b = inst.args
    if isinstance(a, I) and isinstance(b, I):
        value = how(a.value, b.value) & _ALL
        return Inst("s_mov_b32", (to, I(value - (value >> 31 << 32))))
    known, other = (a, b) if isinstance(a, I) else (b, a)
    if not isinstance(known, I) or known.value & _ALL not in (0, _ALL):
        return None
    # As a function of the other's bit.
    bits = [how(known.value, v) if known is a else how(v, known.value) for v in (0, -1)]
    low, high = (v & 1 for v in bits)
    if low == high:
        return Inst("s_mov_b32", (to, I(-low)))
    return Inst("s_mov_b32" if high else "s_not_b32", (to, other))


def _is_nan(inst: Inst, arg: I) -> bool:
    exponent, bits = {"f16": (0x7C00, 16), "f32": (0x7F800000, 32)}.get(
        inst.op[-3:], (0x7FF0000000000000, 64)
    )
    return arg.value & ((1 << bits - 1) - 1) > exponent


def inverted(d: Draft) -> None:
    """Folds a NOT of a mask into its users, or inverts the comparison that produced it."""
    n = 0
    while n < len(d.lines):
        if d.lines[n].inst.op != "s_not_b32" or not (_read_inverted(d, n) or _opposite(d, n)):
            n += 1


def _read_inverted(d: Draft, n: int) -> bool:
    to, mask = d.lines[n].inst.args
    if not isinstance(to, S) or to.n != 1 or not isinstance(mask, S):
        return False
    (ref,) = source(to)
    uses = d.uses(n, ref)
    if not uses or not d.temporary(ref):
        return False
    made: dict[int, Inst] = {}
    for m in uses:
        inst = d.lines[m].inst
        if not d.unchanged(source(mask), n, m) or guard(inst, d.regs) is not None:
            return False
        other = _taking_inverse(inst, to, mask)
        if other is None or not legal(other):
            return False
        made[m] = other
    d.join([d.lines[n].group, *(d.lines[m].group for m in uses)])
    for m, other in made.items():
        d.put(m, other)
    d.remove([n])
    return True


_WITH_NOT: Final = {"s_and_b32": "s_and_not1_b32", "s_or_b32": "s_or_not1_b32",
                    "s_xor_b32": "s_xnor_b32", "s_xnor_b32": "s_xor_b32"}  # fmt: skip
_WITHOUT_NOT: Final = {"s_and_not1_b32": "s_and_b32", "s_or_not1_b32": "s_or_b32"}


def _taking_inverse(inst: Inst, old: S, mask: S) -> Inst | None:
    """The instruction rewritten to read ``mask`` instead of its inverse ``old``."""
    args = inst.args
    if args.count(old) != 1 or args[0] == old:
        return None
    if inst.op == "v_cndmask_b32" and args[3] == old:
        neg = (inst.neg & 1) << 1 | inst.neg >> 1 & 1
        size = (inst.abs & 1) << 1 | inst.abs >> 1 & 1
        return replace(inst, args=(args[0], args[2], args[1], mask), neg=neg, abs=size)
    if len(args) != 3:
        return None
    other = args[2] if args[1] == old else args[1]
    if args[2] == old and inst.op in _WITHOUT_NOT:
        return Inst(_WITHOUT_NOT[inst.op], (args[0], other, mask))
    if inst.op in _WITH_NOT:
        return Inst(_WITH_NOT[inst.op], (args[0], other, mask))
    return None


def _opposite(d: Draft, n: int) -> bool:
    to, mask = d.lines[n].inst.args
    if not isinstance(mask, S) or not isinstance(to, S) or to.n != 1:
        return False
    (ref,) = source(mask)
    maker = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
    if maker is None or not d.temporary(ref) or d.uses(maker, ref) != [n]:
        return False
    inst = d.lines[maker].inst
    opposite = opposite_of(inst.op)
    touched = source(to)
    between = d.lines[maker + 1 : n]
    if opposite is None or any(touched & (at.reads | at.writes) for at in between):
        return False
    if d.lines[maker].region != d.lines[n].region or d.guarded(n):
        return False
    made = replace(inst, op=opposite, args=(to, *inst.args[1:]))
    if not legal(made):
        return False
    d.join([d.lines[maker].group, d.lines[n].group])
    d.put(maker, made)
    d.remove([n])
    return True


def opposite_of(op: str) -> str | None:
    """The opposite of a comparison."""
    if not op.startswith("v_cmp_"):
        return None
    _, _, relation, kind = op.split("_", 3)
    other = (_NOT_FLOAT if kind.startswith("f") else _NOT).get(relation)
    return f"v_cmp_{other}_{kind}" if other is not None else None


def landed(d: Draft) -> None:
    """Results that are then moved: computed in the destination at once."""
    n = 0
    while n < len(d.lines):
        if not _land(d, n) and not _land_pair(d, n):
            n += 1


def _land(d: Draft, n: int) -> bool:
    found = moved(d.lines[n].inst)
    if found is None or not isinstance(found[1], type(found[0])):
        return False
    to, value = found
    assert isinstance(value, V | S)
    return value.n == 1 and _relocate(d, [n], to, value)


def _land_pair(d: Draft, n: int) -> bool:
    low = moved(d.lines[n].inst)
    high = moved(d.lines[n + 1].inst) if n + 1 < len(d.lines) else None
    if low is None or high is None:
        return False
    (to, value), (above, other) = low, high
    if not isinstance(value, V) or not isinstance(to, V) or not isinstance(other, V):
        return False
    if above != V(to.index + 1) or other != V(value.index + 1):
        return False
    return _relocate(d, [n, n + 1], V(to.index, 2), V(value.index, 2))


def _relocate(d: Draft, moves: list[int], to: V | S, value: V | S) -> bool:
    """Lets the instruction that makes a temporary write to the destination of the move."""
    refs = source(value)
    if not all(d.temporary(r) for r in refs):
        return False
    first = moves[0]
    maker = next((m for m in range(first - 1, -1, -1) if refs & d.lines[m].writes), None)
    if maker is None:
        return False
    at = d.lines[maker]
    inst = at.inst
    if not inst.args or inst.args[0] != value or not inst.op.startswith(("v_", "s_")):
        return False
    if at.region != d.lines[first].region or inst.op == "v_readfirstlane_b32":
        return False
    if keeps_part(inst):
        return False
    places = source(to)
    if any(places & (b.reads | b.writes) for b in d.lines[maker + 1 : first]):
        return False
    if not refs <= at.writes or OPS[inst.op].args[0].role != "w" or _writes_twice(inst, to):
        return False
    made: dict[int, Inst] = {maker: replace(inst, args=(to, *inst.args[1:]))}
    for ref, word in zip(sorted(refs), sorted(places), strict=True):
        uses = d.uses(maker, ref)
        if uses is None:
            return False
        for m in uses:
            if m in moves:
                continue
            old, new = type(value)(ref.number), type(to)(word.number)
            before = made.get(m, d.lines[m].inst)
            whole = substituted(before, value, to) if value.n > 1 else None
            other = whole if whole is not None else substituted(before, old, new)
            if other is None and ref not in source_refs(before):
                continue
            if other is None or not d.unchanged(frozenset({word}), moves[-1], m):
                return False
            made[m] = other
    saved = _out_of_the_way(d, made[maker])
    if saved is not None and len(moves) > 1:
        made[maker] = saved[1]
    if not all(map(legal, made.values())):
        return False
    d.join([d.lines[m].group for m in (*made, *moves)])
    for m, changed in made.items():
        d.put(m, changed)
    d.remove(moves)
    if saved is not None and len(moves) > 1:
        d.lines.insert(maker, line(saved[0], d.lines[maker].group))
        d.settle()
    return True


def _out_of_the_way(d: Draft, inst: Inst) -> tuple[Inst, Inst] | None:
    """A wide product that would overwrite one of its sources, and the move that saves it."""
    if inst.op not in ("v_mad_i64_i32", "v_mad_u64_u32"):
        return None
    to, carry, *words_, base = inst.args
    over = {w for w in words_ if source(w) & source(to)}
    temp = next(d.free_vectors(), None)
    if len(over) != 1 or source(base) & source(to) or temp is None:
        return None
    (word,) = over
    args = (to, carry, *(temp if w == word else w for w in words_), base)
    return Inst("v_mov_b32", (temp, word)), replace(inst, args=args)


def source_refs(inst: Inst) -> frozenset[RRef]:
    return frozenset[RRef]().union(*(source(a) for a in inst.args[1:]))


def _writes_twice(inst: Inst, to: V | S) -> bool:
    """Whether another result occupies the new place of this one."""
    return len(inst.args) > 1 and inst.args[1] == to


def words(d: Draft) -> None:
    """Bits of one or two words, by the simplest instruction."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if plain(inst):
            made = _plainest(inst)
            if made is not None and legal(made):
                d.put(n, made)
            elif inst.op == "s_add_u32" and I(0) in inst.args[1:] and d.dead_at(n + 1, _SCC):
                to, a, b = inst.args
                instead(d, n, [Inst("s_mov_b32", (to, b if a == I(0) else a))])
            elif inst.op == "v_readfirstlane_b32":
                _scalar_sum(d, n, inst)
            elif inst.op in ("v_lshrrev_b64", "v_lshlrev_b64"):
                _funnel(d, n, inst)
            elif inst.op == "v_alignbit_b32":
                _sign_shift(d, n, inst)
        n += 1


def _plainest(inst: Inst) -> Inst | None:
    match inst:
        case Inst(op="v_bfi_b32", args=(to, x, I(value=v), c)) if v & _ALL == _ALL:
            return Inst("v_or_b32", (to, x, c)) if c != I(-1) else None
        case Inst(op="v_bfi_b32", args=(to, x, I(value=0), I(value=v))) if v & _ALL == _ALL:
            return Inst("v_not_b32", (to, x))
        case Inst(op="v_bfi_b32", args=(to, x, y, I(value=0))):
            return Inst("v_and_b32", (to, x, y))
        case Inst(op="v_lshl_add_u32", args=(to, I(value=0), _, c)):
            return Inst("v_mov_b32", (to, c))
        case Inst(op="v_lshl_or_b32", args=(to, I(value=0), _, c)):
            return Inst("v_mov_b32", (to, c))
        case Inst(op="v_and_or_b32", args=(to, I(value=0), _, c) | (to, _, I(value=0), c)):
            return Inst("v_mov_b32", (to, c))
        case Inst(op="v_lshlrev_b32" | "v_lshrrev_b32" | "v_ashrrev_i32", args=(to, I(value=0), x)):
            return Inst("v_mov_b32", (to, x))
        case Inst(op="v_alignbit_b32", args=(to, I(value=0), x, I(value=k))):
            return Inst("v_lshrrev_b32", (to, I(k & 31), x))
        case _:
            return None


def _scalar_sum(d: Draft, n: int, inst: Inst) -> None:
    """A shifted scalar and a sum that are read back as a scalar."""
    to, value = inst.args
    if not isinstance(value, V) or not isinstance(to, S):
        return
    (ref,) = source(value)
    m = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
    if m is None or d.lines[m].inst.op != "v_lshl_add_u32" or not d.temporary(ref):
        return
    _, x, count, y = d.lines[m].inst.args
    if isinstance(y, V) and (known := moved_scalar(d, m, y)) is not None:
        y = known
    temp = next(d.free_scalars(), None)
    scalar = isinstance(x, S) and isinstance(count, I) and isinstance(y, S | I)
    if not scalar or temp is None or d.lines[m].region != d.lines[n].region:
        return
    if d.unchanged(source(x) | source(y), m, n) and d.dead_at(n, _SCC):
        d.join([d.lines[m].group, d.lines[n].group])
        made = [Inst("s_lshl_b32", (temp, x, count)), Inst("s_add_u32", (to, temp, y))]
        instead(d, n, made)


def _funnel(d: Draft, n: int, inst: Inst) -> None:
    """One word of a shifted pair: a funnel shift of two adjacent words."""
    to, count, value = inst.args
    if not isinstance(to, V) or not isinstance(value, V):
        return
    right = inst.op == "v_lshrrev_b64"
    read, other = (to.index, to.index + 1) if right else (to.index + 1, to.index)
    if not d.dead_at(n + 1, RRef("v", other)):
        return
    low, high = V(value.index), V(value.index + 1)
    if isinstance(count, I):
        k = count.value & 63
        if not 0 < k < 32:
            return
        instead(d, n, [Inst("v_alignbit_b32", (V(read), high, low, I(k if right else 32 - k)))])
    elif right and (maker := _below_32(d, n, count)) is not None:
        d.join([d.lines[maker].group, d.lines[n].group])
        instead(d, n, [Inst("v_alignbit_b32", (V(read), high, low, count))])


def _below_32(d: Draft, n: int, count: Arg) -> int | None:
    """The line that makes a number below 32."""
    refs = source(count)
    for m in range(n - 1, -1, -1):
        if refs & d.lines[m].writes:
            inst = d.lines[m].inst
            small = inst.op in ("v_and_b32", "s_and_b32") and I(31) in inst.args[1:]
            return m if small and d.reaches(m, n) else None
    return None


def _sign_shift(d: Draft, n: int, inst: Inst) -> None:
    """A word paired with its sign, shifted: an arithmetic shift."""
    to, high, low, count = inst.args
    if not isinstance(high, V) or not isinstance(count, I):
        return
    (ref,) = source(high)
    maker = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
    if maker is None or not d.reaches(maker, n):
        return
    sign = d.lines[maker].inst
    if sign.op != "v_ashrrev_i32" or sign.args[1:] != (I(31), low) or not plain(sign):
        return
    if not d.unchanged(source(low), maker, n):
        return
    made = Inst("v_ashrrev_i32", (to, I(count.value & 31), low))
    if legal(made):
        d.join([d.lines[maker].group, d.lines[n].group])
        d.put(n, made)


def scalar_products(d: Draft) -> None:
    """Products of scalars on the scalar unit, which is four times as fast."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        op = {"v_mul_lo_u32": "s_mul_i32", "v_mul_hi_u32": "s_mul_hi_u32",
              "v_mul_hi_i32": "s_mul_hi_i32"}.get(inst.op)  # fmt: skip
        if op is None or not plain(inst) or not isinstance(inst.args[0], V):
            continue
        if not all(isinstance(a, S | I) for a in inst.args[1:]):
            continue
        to = inst.args[0]
        temp = next(d.free_scalars(), None)
        if temp is None or not legal(made := Inst(op, (temp, *inst.args[1:]))):
            continue
        (ref,) = source(to)
        uses = d.uses(n, ref)
        others = [substituted(d.lines[m].inst, to, temp) for m in uses or ()]
        if not uses or not d.temporary(ref) or any(o is None for o in others):
            instead(d, n, [made, Inst("v_mov_b32", (to, temp))])
            continue
        put_with(d, n, made, dict(zip(uses, others, strict=True)))


def counted(d: Draft) -> None:
    """An increment if a comparison holds: a sum with its mask as carry-in."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        if inst.op != "v_cndmask_b32" or not plain(inst):
            continue
        to, no, yes, mask = inst.args
        maker = _one_more(d, n, no, yes)
        inverse = maker is None
        if maker is None:
            maker = _one_more(d, n, yes, no)
        if maker is None or not isinstance(mask, S | Sp):
            continue
        made = mask
        if inverse and not _invert(d, n, mask):
            continue
        value = yes if inverse else no
        sum_ = Inst("v_add_co_ci_u32", (to, Sp("null"), I(0), value, made))
        if legal(sum_):
            d.join([d.lines[maker].group, at.group])
            d.put(n, sum_)


def _one_more(d: Draft, n: int, value: Arg, more: Arg) -> int | None:
    """The line that makes the temporary ``more`` from ``value``."""
    if not isinstance(value, V) or not isinstance(more, V):
        return None
    (ref,) = source(more)
    maker = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
    if maker is None or not d.temporary(ref) or d.uses(maker, ref) != [n]:
        return None
    inst = d.lines[maker].inst
    one = inst.op == "v_add_nc_u32" and plain(inst) and set(inst.args[1:]) == {I(1), value}
    kept = d.unchanged(source(value), maker, n) and d.reaches(maker, n)
    return maker if one and kept else None


def _invert(d: Draft, n: int, mask: S | Sp) -> bool:
    """Inverts a mask that only line ``n`` reads, at the comparison that makes it."""
    (ref,) = source(mask)
    maker = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
    if maker is None or d.uses(maker, ref) != [n] or ref in d.live:
        return False
    opposite = opposite_of(d.lines[maker].inst.op)
    if opposite is None or d.lines[maker].region != d.lines[n].region:
        return False
    made = replace(d.lines[maker].inst, op=opposite)
    if not legal(made):
        return False
    d.join([d.lines[maker].group, d.lines[n].group])
    d.put(maker, made)
    return True


FOLDS: Final = (
    *GUARDS, constant_masks, inverted, words, scalar_products, near_addresses, landed, addresses,
    counted,
)  # fmt: skip

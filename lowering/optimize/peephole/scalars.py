"""Changes that move computations on scalars to the scalar unit."""

from __future__ import annotations

from sassxlate.disasm.rdna3 import RRef, reads
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.optimize.draft import (  # fmt: skip
    Draft,
    apart,
    instead,
    legal,
    moved,
    plain,
    put_with,
    renamed,
    source,
    substituted,
)
from sassxlate.lowering.region.subset import guard

_SCC = RRef("scc")

# VALU instructions on scalars alone, and the SALU's: with the order of the operands.
_SCALAR = {
    "v_mov_b32": ("s_mov_b32", "a"),
    "v_add_nc_u32": ("s_add_u32", "ab"),
    "v_sub_nc_u32": ("s_sub_u32", "ab"),
    "v_mul_lo_u32": ("s_mul_i32", "ab"),
    "v_mul_hi_u32": ("s_mul_hi_u32", "ab"),
    "v_mul_hi_i32": ("s_mul_hi_i32", "ab"),
    "v_and_b32": ("s_and_b32", "ab"),
    "v_or_b32": ("s_or_b32", "ab"),
    "v_xor_b32": ("s_xor_b32", "ab"),
    "v_not_b32": ("s_not_b32", "a"),
    "v_lshlrev_b32": ("s_lshl_b32", "ba"),
    "v_lshrrev_b32": ("s_lshr_b32", "ba"),
    "v_ashrrev_i32": ("s_ashr_i32", "ba"),
    "v_min_i32": ("s_min_i32", "ab"),
    "v_min_u32": ("s_min_u32", "ab"),
    "v_max_i32": ("s_max_i32", "ab"),
    "v_max_u32": ("s_max_u32", "ab"),
    "v_bfrev_b32": ("s_brev_b32", "a"),
}
_SHIFTED = {1: "s_lshl1_add_u32", 2: "s_lshl2_add_u32", 3: "s_lshl3_add_u32", 4: "s_lshl4_add_u32"}


def scalars(d: Draft) -> None:
    """Results computed from scalars alone and read back as a scalar, on the scalar unit."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op == "v_readfirstlane_b32" and isinstance(inst.args[1], V):
            _scalar(d, n)
        n += 1


def _scalar(d: Draft, n: int) -> None:
    """Follows a v_readfirstlane to the line that computed its operand."""
    to, value = d.lines[n].inst.args
    (ref,) = source(value)
    maker = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
    if maker is None or not d.temporary(ref) or d.lines[maker].region != d.lines[n].region:
        return
    made = _on_scalars(d, maker, to)
    if made is None or not _scc_free(d, n):
        return
    sources = frozenset[RRef]().union(*(source(a) for a in made.args[1:]))
    if not d.unchanged(sources, maker, n) or not legal(made):
        return
    d.join([d.lines[maker].group, d.lines[n].group])
    d.put(n, made)


def _on_scalars(d: Draft, n: int, to: Arg) -> Inst | None:
    """The scalar instruction for line ``n``, with its operands converted."""
    inst = d.lines[n].inst
    if not plain(inst) or not isinstance(inst.args[0], V) or inst.args[0].n != 1:
        return None
    args: list[Arg] = []
    for arg in inst.args[1:]:
        if isinstance(arg, V):
            known = moved_scalar(d, n, arg)
            if known is None:
                return None
            arg = known
        args.append(arg)
    named = dict(zip("abc", args, strict=False))
    found = _SCALAR.get(inst.op)
    if found is not None:
        return Inst(found[0], (to, *(named[k] for k in found[1])))
    if inst.op == "v_lshl_add_u32" and isinstance(args[1], I) and args[1].value in _SHIFTED:
        return Inst(_SHIFTED[args[1].value], (to, args[0], args[2]))
    if inst.op in ("v_bfe_u32", "v_bfe_i32") and all(isinstance(a, I) for a in args[1:]):
        at, width = (a.value for a in args[1:] if isinstance(a, I))
        return Inst(f"s_{inst.op[2:]}", (to, args[0], I((at & 31) | (width & 31) << 16)))
    return None


def moved_scalar(d: Draft, n: int, arg: V) -> Arg | None:
    """The scalar that a move before line ``n`` wrote to a VGPR."""
    (ref,) = source(arg)
    for m in range(n - 1, -1, -1):
        if ref in d.lines[m].writes:
            found = moved(d.lines[m].inst)
            if found is None or isinstance(found[1], V) or not d.reaches(m, n):
                return None
            return found[1] if d.unchanged(source(found[1]), m, n) else None
    return None


def _scc_free(d: Draft, n: int) -> bool:
    """Whether SCC may be written before line ``n``."""
    return d.dead_at(n, _SCC)


def chains(d: Draft) -> None:
    """Chains of values computed from scalars: in scalar temporaries."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        to = inst.args[0] if inst.args else None
        if not inst.op.startswith("v_") or not isinstance(to, V) or to.n != 1:
            continue
        (ref,) = source(to)
        if not d.temporary(ref) or moved(inst) is not None:
            continue
        uses = d.uses(n, ref)
        if not uses or not all(_takes_scalar(d, m, to) for m in uses):
            continue
        temp = next(d.free_scalars(), None)
        made = _on_scalars(d, n, temp) if temp is not None else None
        if made is None or temp is None or not legal(made) or not _scc_free(d, n):
            continue
        others = [substituted(d.lines[m].inst, to, temp) for m in uses]
        if any(o is None for o in others):
            continue
        put_with(d, n, made, dict(zip(uses, others, strict=True)))


def _takes_scalar(d: Draft, n: int, arg: V) -> bool:
    """Whether an instruction would be scalar if this operand were."""
    inst = d.lines[n].inst
    if inst.op == "v_readfirstlane_b32":
        return True
    others = [a for a in inst.args[1:] if a != arg]
    known = inst.op in _SCALAR or inst.op == "v_lshl_add_u32"
    return known and all(isinstance(a, S | I) for a in others)


def same_scalar(d: Draft) -> None:
    """A scalar that is read back as a scalar."""
    for n, at in enumerate(d.lines):
        if at.inst.op == "v_readfirstlane_b32" and isinstance(at.inst.args[1], S):
            d.put(n, Inst("s_mov_b32", at.inst.args))


def pair_copies(d: Draft) -> None:
    """Removes copies of scalar pairs whose source can be read instead, whole or by words."""
    n = 0
    while n < len(d.lines):
        if not _copied_pair(d, n):
            n += 1


def _copied_pair(d: Draft, n: int) -> bool:
    inst = d.lines[n].inst
    if inst.op != "s_mov_b64" or not plain(inst):
        return False
    to, value = inst.args
    if not isinstance(to, S) or not isinstance(value, S):
        return False
    known = [d.uses(n, ref) for ref in sorted(source(to))]
    uses = sorted({m for some in known if some is not None for m in some})
    if None in known or not uses:
        return False
    made: dict[int, Inst] = {}
    for m in uses:
        other = _read_there(d.lines[m].inst, to, value)
        if other is None or not d.reaches(n, m) or guard(other, d.regs) is not None:
            return False
        if not d.unchanged(source(value), n, m):
            return False
        made[m] = other
    d.join([d.lines[n].group, *(d.lines[m].group for m in uses)])
    for m, other in made.items():
        d.put(m, other)
    d.remove([n])
    return True


def _read_there(inst: Inst, to: S, value: S) -> Inst | None:
    """An instruction that reads a pair, or words of it, where these were copied from."""
    made = inst
    for k, n in ((0, 2), (0, 1), (1, 1)):
        other = substituted(made, S(to.index + k, n), S(value.index + k, n))
        made = made if other is None else other
    return None if reads(made) & source(to) else made


def told_again(d: Draft) -> None:
    """A uniform value in a vector register, read as a scalar by vector instructions alone: they
    read the vector register."""
    n = 0
    while n < len(d.lines):
        if not _told(d, n):
            n += 1


def _told(d: Draft, n: int) -> bool:
    inst = d.lines[n].inst
    if inst.op != "v_readfirstlane_b32" or not inst.uniform:
        return False
    to, value = inst.args
    if not isinstance(value, V) or not isinstance(to, S):
        return False
    (ref,) = source(to)
    uses = d.uses(n, ref)
    if not uses or not all(d.lines[m].region == d.lines[n].region for m in uses):
        return False
    made: dict[int, Inst | None] = {}
    for m in uses:
        at = d.lines[m].inst
        vector = at.op.startswith("v_") and at.op != "v_readfirstlane_b32"
        other = substituted(at, to, value) if vector else None
        if other is None or not d.unchanged(source(value), n, m):
            return False
        made[m] = other
    d.join([d.lines[n].group, *(d.lines[m].group for m in uses)])
    for m, other in made.items():
        if other is not None:
            d.put(m, other)
    d.remove([n])
    return True


def choices(d: Draft) -> None:
    """A selection by a uniform predicate that is read back as a scalar: on the scalar unit."""
    uniform = {place.index for place in d.regs.up.values()}
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op == "v_readfirstlane_b32" and isinstance(inst.args[1], V):
            (ref,) = source(inst.args[1])
            maker = next((m for m in range(n - 1, -1, -1) if ref in d.lines[m].writes), None)
            if maker is not None and d.lines[maker].region == d.lines[n].region:
                _choose(d, n, maker, uniform)
        n += 1


def _choose(d: Draft, n: int, maker: int, uniform: set[int]) -> None:
    made = d.lines[maker].inst
    if made.op != "v_cndmask_b32" or not plain(made):
        return
    mask = made.args[3]
    sides = [moved_scalar(d, maker, a) if isinstance(a, V) else a for a in made.args[1:3]]
    temp = next(d.free_scalars(), None)
    if not isinstance(mask, S) or mask.index not in uniform or temp is None:
        return
    no, yes = sides
    if no is None or yes is None or not _scc_free(d, n):
        return
    if not d.unchanged(source(no) | source(yes) | source(mask), maker, n):
        return
    d.join([d.lines[maker].group, d.lines[n].group])
    asked = Inst("s_and_b32", (temp, mask, Sp("exec_lo")))
    chosen = Inst("s_cselect_b32", (d.lines[n].inst.args[0], yes, no))
    instead(d, n, [asked, chosen])


def loads(d: Draft) -> None:
    """Two adjacent words in the kernarg segment: one load."""
    n = 0
    while n < len(d.lines):
        if d.lines[n].inst.op == "s_load_b32":
            for m in range(n + 1, len(d.lines)):
                other = d.lines[m].inst
                if other.op == "s_load_b32" and _load_both(d, n, m):
                    break
        n += 1


def _load_both(d: Draft, n: int, m: int) -> bool:
    one, two = d.lines[n].inst, d.lines[m].inst
    low, high = (one, two) if one.imm < two.imm else (two, one)
    if one.args[1:] != two.args[1:] or high.imm - low.imm != 4:
        return False
    places = (one.args[0], two.args[0])
    pair = apart(d, S(0, 2))
    if pair is None or not all(d.temporary(r) for p in places for r in source(p)):
        return False
    if not d.unchanged(source(one.args[1]), n, m):
        return False
    changes: dict[int, Inst] = {}
    for at, inst in ((n, one), (m, two)):
        old = inst.args[0]
        new = S(pair.index + (inst is high))
        found = renamed(d, at, old, new, changes) if isinstance(old, S) else None
        if found is None:
            return False
        changes |= found
    d.join([d.lines[k].group for k in (n, m, *changes)])
    for k, changed in changes.items():
        d.put(k, changed)
    d.put(n, Inst("s_load_b64", (pair, *one.args[1:]), imm=low.imm))
    d.remove([m])
    return True


__all__ = [
    "chains", "choices", "loads", "moved_scalar", "pair_copies", "same_scalar", "scalars",
    "told_again",
]  # fmt: skip

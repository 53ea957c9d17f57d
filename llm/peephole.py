"""Changes that make code cheaper, each of which is proved where it was made.

Every change is a function of a draft that makes what it finds and says nothing; they are repeated
until none finds anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sassxlate.disasm.rdna3 import OPS, RRef, keeps_part
from sassxlate.disasm.rdna3.ir import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.operand import VCC_LO
from sassxlate.lowering.allocate import RegisterMap

from .language import guard
from .rewrite import Draft, legal, line, plain, pure, source, substituted

_MOVES = ("v_mov_b32", "s_mov_b32")
_SCC = RRef("scc")


def unused(d: Draft) -> None:
    """Results that nobody reads."""
    gone: list[int] = []
    live: set[RRef] = set(d.live)
    for n in range(len(d.lines) - 1, -1, -1):
        at = d.lines[n]
        places = {r for r in at.writes if r.kind in ("v", "s", "scc")}
        if pure(at.inst) and places and not places & live:
            gone.append(n)
            continue
        if at.region % 2 == 0 and not keeps_part(at.inst):
            live -= places
        live |= at.reads
    if gone:
        d.remove(gone)


def copies(d: Draft) -> None:
    """Moves, where what is moved can be read from where it was."""
    n = 0
    while n < len(d.lines):
        if not _copied(d, n) and not _copied_pair(d, n):
            n += 1


def _move(inst: Inst) -> tuple[V | S, Arg] | None:
    if inst.op not in _MOVES or not plain(inst):
        return None
    to, value = inst.args
    return (to, value) if isinstance(to, V | S) and to.n == 1 else None


def _copied(d: Draft, n: int) -> bool:
    found = _move(d.lines[n].inst)
    if found is None:
        return False
    to, value = found
    (ref,) = source(to)
    uses = d.uses(n, ref)
    if uses is None or not uses:
        return False
    made: list[tuple[int, Inst]] = []
    for m in uses:
        inst = d.lines[m].inst
        kept = d.unchanged(source(value), n, m)
        if not kept or not d.reaches(n, m) or guard(inst, d.regs) is not None:
            return False
        other = substituted(inst, to, value)
        if other is None:
            return False
        made.append((m, other))
    d.join([d.lines[n].group, *(d.lines[m].group for m in uses)])
    for m, inst in made:
        d.put(m, inst)
    d.remove([n])
    return True


def _copied_pair(d: Draft, n: int) -> bool:
    """Two moves that make a pair which can be read where its halves come from."""
    low = _move(d.lines[n].inst)
    if low is None:
        return False
    for k in range(n + 1, min(n + 4, len(d.lines))):
        high = _move(d.lines[k].inst)
        if high is not None and high[0] == type(low[0])(low[0].index + 1):
            break
    else:
        return False
    whole = _pair(low[1], high[1])
    if whole is None or d.lines[n].region != d.lines[k].region:
        return False
    pair = type(low[0])(low[0].index, 2)
    first, second = (d.uses(at, ref) for at, ref in zip((n, k), sorted(source(pair)), strict=True))
    if first is None or first != second or not first:
        return False
    made: list[tuple[int, Inst]] = []
    for m in first:
        inst = d.lines[m].inst
        if not d.unchanged(source(low[1]), n, m) or not d.unchanged(source(high[1]), k, m):
            return False
        other = substituted(inst, pair, whole)
        if other is None or not d.reaches(n, m) or m < k:
            return False
        made.append((m, other))
    d.join([d.lines[n].group, *(d.lines[m].group for m in first)])
    for m, inst in made:
        d.put(m, inst)
    d.remove([n, k])
    return True


def _pair(low: Arg, high: Arg) -> Arg | None:
    if isinstance(low, V) and isinstance(high, V):
        return V(low.index, 2) if high.index == low.index + 1 else None
    if isinstance(low, S) and isinstance(high, S):
        even = low.index % 2 == 0
        return S(low.index, 2) if even and high.index == low.index + 1 else None
    if isinstance(low, I) and isinstance(high, I):
        value = (high.value & 0xFFFFFFFF) << 32 | (low.value & 0xFFFFFFFF)
        return I(value - (value >> 63 << 64))
    return None


# A result that is read once, by an instruction that can do both: (first, second): (both, where
# the operands come from).  a, b are the first's, c the second's other; r says that order counts:
# the first's result is the second's operand of that number.
_COMMUTE = frozenset("v_add_nc_u32 v_or_b32 v_xor_b32 v_and_b32 v_min_i32 v_min_u32 v_max_i32 "
                     "v_max_u32".split())  # fmt: skip
_FUSED = {
    ("v_add_nc_u32", "v_add_nc_u32"): ("v_add3_u32", "abc"),
    ("v_lshlrev_b32", "v_add_nc_u32"): ("v_lshl_add_u32", "bac"),
    ("v_xor_b32", "v_add_nc_u32"): ("v_xad_u32", "abc"),
    ("v_and_b32", "v_or_b32"): ("v_and_or_b32", "abc"),
    ("v_or_b32", "v_or_b32"): ("v_or3_b32", "abc"),
    ("v_xor_b32", "v_xor_b32"): ("v_xor3_b32", "abc"),
    ("v_lshlrev_b32", "v_or_b32"): ("v_lshl_or_b32", "bac"),
    ("v_min_i32", "v_min_i32"): ("v_min3_i32", "abc"),
    ("v_min_u32", "v_min_u32"): ("v_min3_u32", "abc"),
    ("v_max_i32", "v_max_i32"): ("v_max3_i32", "abc"),
    ("v_max_u32", "v_max_u32"): ("v_max3_u32", "abc"),
    ("v_max_i32", "v_min_i32"): ("v_maxmin_i32", "abc"),
    ("v_max_u32", "v_min_u32"): ("v_maxmin_u32", "abc"),
    ("v_min_i32", "v_max_i32"): ("v_minmax_i32", "abc"),
    ("v_min_u32", "v_max_u32"): ("v_minmax_u32", "abc"),
}


def fused(d: Draft) -> None:
    """Two instructions as one."""
    n = 0
    while n < len(d.lines):
        if not _fuse(d, n):
            n += 1


def _fuse(d: Draft, n: int) -> bool:
    first = d.lines[n].inst
    if not first.op.startswith("v_") or not plain(first) or len(first.args) != 3:
        return False
    to = first.args[0]
    if not isinstance(to, V) or to.n != 1:
        return False
    (ref,) = source(to)
    uses = d.uses(n, ref)
    if uses is None or len(uses) != 1:
        return False
    m = uses[0]
    second = d.lines[m].inst
    if not plain(second) or len(second.args) != 3 or d.lines[n].region != d.lines[m].region:
        return False
    if not all(d.unchanged(source(a), n, m) for a in first.args[1:]):
        return False
    made = _both(first, second, to)
    if made is None or not legal(made):
        return False
    d.join([d.lines[n].group, d.lines[m].group])
    d.put(m, made)
    d.remove([n])
    return True


def _both(first: Inst, second: Inst, to: V) -> Inst | None:
    (a, b), (result, x, y) = first.args[1:], second.args
    if (x == to) == (y == to):
        return None
    c = y if x == to else x
    found = _FUSED.get((first.op, second.op))
    if found is not None and (second.op in _COMMUTE):
        op, order = found
        named = {"a": a, "b": b, "c": c}
        return Inst(op, (result, *(named[k] for k in order)))
    if (first.op, second.op) == ("v_add_nc_u32", "v_lshlrev_b32") and y == to:
        return Inst("v_add_lshl_u32", (result, a, b, c))
    if (first.op, second.op) == ("v_lshrrev_b32", "v_and_b32"):
        mask = c.value & 0xFFFFFFFF if isinstance(c, I) else 0
        if mask and mask & (mask + 1) == 0 and mask != 0xFFFFFFFF:
            return Inst("v_bfe_u32", (result, b, a, I(mask.bit_length())))
    if first.op == "v_not_b32" and second.op == "v_and_b32":
        return Inst("v_bfi_b32", (result, a, I(0), c))
    return None


def products(d: Draft) -> None:
    """Products with constants as shifts and sums."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op == "v_mul_lo_u32" and plain(inst):
            _product(d, n, inst)
        elif inst.op in ("v_mad_i64_i32", "v_mad_u64_u32") and plain(inst):
            _narrow_product(d, n, inst)
        n += 1


def _product(d: Draft, n: int, inst: Inst) -> None:
    to, x, y = inst.args
    if isinstance(x, I):
        x, y = y, x
    if not isinstance(y, I) or isinstance(x, I):
        return
    k = y.value & 0xFFFFFFFF
    made: list[Inst] = []
    if k and k & (k - 1) == 0:
        made = [Inst("v_lshlrev_b32", (to, I(k.bit_length() - 1), x))]
    elif k > 2 and (k - 1) & (k - 2) == 0:
        made = [Inst("v_lshl_add_u32", (to, x, I((k - 1).bit_length() - 1), x))]
    elif k.bit_count() == 2:
        low = (k & -k).bit_length() - 1
        temp = next(d.free_vectors(), None)
        if temp is not None:
            made = [
                Inst("v_lshlrev_b32", (temp, I(low), x)),
                Inst("v_lshl_add_u32", (to, x, I(k.bit_length() - 1), temp)),
            ]
    elif k > 3 and k & (k + 1) == 0:
        temp = next(d.free_vectors(), None)
        if temp is not None:
            made = [
                Inst("v_lshlrev_b32", (temp, I(k.bit_length()), x)),
                Inst("v_sub_nc_u32", (to, temp, x)),
            ]
    _instead(d, n, made)


def _instead(d: Draft, n: int, made: list[Inst]) -> None:
    """Other instructions in the place of one, if all can be encoded."""
    if not made or not all(map(legal, made)):
        return
    group, region = d.lines[n].group, d.lines[n].region
    new = [line(inst, group) for inst in made]
    for at in new:
        at.region = region
    d.lines[n : n + 1] = new
    d.changed = True


def _narrow_product(d: Draft, n: int, inst: Inst) -> None:
    """A wide product of which only the low word is read, with a power of two."""
    to, carry, x, y, z = inst.args
    if not isinstance(to, V) or not isinstance(carry, S | Sp):
        return
    high = RRef("v", to.index + 1)
    if not d.dead_at(n + 1, high) or (isinstance(carry, S) and not _unread(d, n, carry)):
        return
    if isinstance(x, I):
        x, y = y, x
    low = V(to.index)
    addend: Arg = (
        I(z.value & 0xFFFFFFFF)
        if isinstance(z, I)
        else (type(z)(z.index) if isinstance(z, V | S) else z)
    )
    if not isinstance(y, I):
        return
    k = y.value & 0xFFFFFFFF
    if k == 0 or k & (k - 1):
        return
    shift = I(k.bit_length() - 1)
    if addend == I(0):
        _instead(d, n, [Inst("v_lshlrev_b32", (low, shift, x))])
    else:
        _instead(d, n, [Inst("v_lshl_add_u32", (low, x, shift, addend))])


def _unread(d: Draft, n: int, mask: S) -> bool:
    return d.dead_at(n + 1, RRef("s", mask.index))


def carries(d: Draft) -> None:
    """Sums whose carry nobody reads."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        plainer = {"v_add_co_u32": "v_add_nc_u32", "v_sub_co_u32": "v_sub_nc_u32"}.get(inst.op)
        if plainer is None or not plain(inst):
            continue
        mask = inst.args[1]
        unread = (
            _unread(d, n, mask)
            if isinstance(mask, S)
            else mask == Sp("vcc_lo") and d.dead_at(n + 1, RRef("s", VCC_LO))
        )
        made = Inst(plainer, (inst.args[0], *inst.args[2:]))
        if unread and legal(made):
            d.put(n, made)


# VALU instructions on scalars alone, and the SALU's: with the order of operands.
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
    """What is computed from scalars alone and read back as one, on the scalar unit."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op == "v_readfirstlane_b32" and isinstance(inst.args[1], V):
            _scalar(d, n)
        n += 1


def _scalar(d: Draft, n: int) -> None:
    """Follows a v_readfirstlane to what computed its operand."""
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
    """The scalar instruction that computes what line ``n`` does, its operands brought over."""
    inst = d.lines[n].inst
    if not plain(inst) or not isinstance(inst.args[0], V) or inst.args[0].n != 1:
        return None
    args: list[Arg] = []
    for arg in inst.args[1:]:
        if isinstance(arg, V):
            known = _moved_scalar(d, n, arg)
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


def _moved_scalar(d: Draft, n: int, arg: V) -> Arg | None:
    """The scalar that a VGPR was loaded with by a move before line ``n``."""
    (ref,) = source(arg)
    for m in range(n - 1, -1, -1):
        if ref in d.lines[m].writes:
            found = _move(d.lines[m].inst)
            if found is None or isinstance(found[1], V) or not d.reaches(m, n):
                return None
            return found[1] if d.unchanged(source(found[1]), m, n) else None
    return None


def _scc_free(d: Draft, n: int) -> bool:
    """Whether SCC may be written in front of line ``n``."""
    return d.dead_at(n, _SCC)


def chains(d: Draft) -> None:
    """Values that are computed from scalars for others which are: in scalar temporaries."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        to = inst.args[0] if inst.args else None
        if not inst.op.startswith("v_") or not isinstance(to, V) or to.n != 1:
            continue
        (ref,) = source(to)
        if not d.temporary(ref) or _move(inst) is not None:
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
        d.join([at.group, *(d.lines[m].group for m in uses)])
        d.put(n, made)
        for m, other in zip(uses, others, strict=True):
            if other is not None:
                d.put(m, other)


def _takes_scalar(d: Draft, n: int, arg: V) -> bool:
    """Whether an instruction would be one on scalars if this operand were."""
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


def selections(d: Draft) -> None:
    """A guard around moves, or around one instruction: a selection."""
    n = 0
    while n < len(d.lines):
        found = guard(d.lines[n].inst, d.regs)
        if found is not None and found[0] == ".pred" and found[2] is not None:
            end = next(
                (m for m in range(n + 1, len(d.lines)) if guard(d.lines[m].inst, d.regs)),
                len(d.lines),
            )
            closed = end < len(d.lines) and guard(d.lines[end].inst, d.regs)
            if closed and closed[0] == ".endpred":
                _select(d, n, end, found[2], found[1])
        n += 1


def _select(d: Draft, first: int, end: int, mask: S, inverted: bool) -> None:
    inner = d.lines[first + 1 : end]
    made: list[tuple[Inst, int]] = []
    computed = 0
    for at in inner:
        inst = at.inst
        to = inst.args[0] if inst.args else None
        row = OPS[inst.op]
        if row.kind != "valu" or not isinstance(to, V) or to.n != 1 or keeps_part(inst):
            return
        if any(r.kind != "v" for r in at.writes) or RRef("s", mask.index) in at.writes:
            return
        (ref,) = source(to)
        if d.temporary(ref):
            made.append((inst, at.group))  # harmless in other lanes
            continue
        move = _move(inst)
        if move is None or isinstance(move[1], Sp):
            temp = next(
                (t for t in d.free_vectors() if all(t not in i.args for i, _ in made)), None
            )
            if temp is None:
                return
            made.append((replace(inst, args=(temp, *inst.args[1:])), at.group))
            computed += 1
            new: Arg = temp
        else:
            new = move[1]
        args = (to, new, to, mask) if inverted else (to, to, new, mask)
        made.append((Inst("v_cndmask_b32", args), at.group))
    # A guard is two scalar instructions; a result that is no move takes one more.
    if not made or computed > 1 or not all(legal(i) for i, _ in made):
        return
    d.join([d.lines[first].group, d.lines[end].group])
    d.lines[first : end + 1] = [line(inst, group) for inst, group in made]
    d.changed = True
    d.settle()


def modes(d: Draft) -> None:
    """MODE set back and forth with nothing in between that it decides."""
    n = 0
    while n < len(d.lines):
        inst = d.lines[n].inst
        if inst.op in ("s_denorm_mode", "s_round_mode"):
            for m in range(n + 1, len(d.lines)):
                other = d.lines[m].inst
                if other.op == inst.op:
                    before = _setting(d, n, inst.op)
                    if other.imm == before:
                        d.join([d.lines[n].group, d.lines[m].group])
                        d.remove([n, m])
                        n -= 1
                    break
                if _decided(other, d.regs):
                    break
        n += 1


def _setting(d: Draft, n: int, op: str) -> int:
    """What a mode is in front of line ``n``."""
    for m in range(n - 1, -1, -1):
        if d.lines[m].inst.op == op:
            return d.lines[m].inst.imm
    return 15 if op == "s_denorm_mode" else 0


def _decided(inst: Inst, regs: RegisterMap) -> bool:
    """Whether MODE may change what an instruction gives."""
    row = OPS[inst.op]
    if inst.op in ("s_denorm_mode", "s_round_mode") or guard(inst, regs) is not None:
        return False
    if row.kind != "valu":
        return row.atomic
    return "f" in "".join(a.type for a in row.args) or "_f" in inst.op


def again(d: Draft) -> None:
    """What was computed before from the same operands, or loaded from the same constant."""
    n = 0
    while n < len(d.lines):
        _again(d, n)
        n += 1


def _again(d: Draft, n: int) -> None:
    at = d.lines[n]
    inst = at.inst
    to = inst.args[0] if inst.args else None
    row = OPS[inst.op]
    if d.guarded(n) or not isinstance(to, V | S) or not pure(inst) or row.writes:
        return
    if not all(d.temporary(r) for r in at.writes) or inst.op == "v_readfirstlane_b32":
        return
    if set(row.reads) - {"exec", "mode"} or any(r.kind == "mode" for r in at.reads):
        return
    sources = frozenset[RRef]().union(*(source(a) for a in inst.args[1:]))
    twins: list[int] = []
    for m in range(n + 1, len(d.lines)):
        other = d.lines[m]
        if other.inst.op == inst.op and other.inst.args[1:] == inst.args[1:]:
            mine = other.inst.args[0]
            same = replace(other.inst, args=inst.args, comment="", uniform=False)
            if same == replace(inst, comment="", uniform=False) and type(mine) is type(to):
                twins.append(m)
        if other.writes & sources:
            break
    twins = [m for m in twins if all(d.temporary(r) for r in d.lines[m].writes)]
    if not twins:
        return
    temp = _apart(d, to)
    if temp is None:
        return
    changes: dict[int, Inst] = {}
    gone: list[int] = []
    for m in [n, *twins]:
        mine = d.lines[m].inst.args[0]
        assert isinstance(mine, V | S)
        found = _renamed(d, m, mine, temp, changes)
        if found is None:
            if m == n:
                return
            continue
        changes |= found
        if m != n:
            gone.append(m)
    if not gone:
        return
    d.join([d.lines[m].group for m in (n, *gone, *changes)])
    changes[n] = replace(inst, args=(temp, *inst.args[1:]))
    for m, changed in changes.items():
        d.put(m, changed)
    d.remove(gone)


def _apart(d: Draft, like: V | S) -> V | S | None:
    """Temporaries that nothing else touches."""
    if isinstance(like, V):
        return next(d.free_vectors(), None) if like.n == 1 else None
    free = {s.index for s in d.free_scalars()}
    for index in sorted(free):
        run = {index + i for i in range(like.n)}
        if run <= free and (like.n == 1 or index % min(like.n, 4) == 0):
            return S(index, like.n)
    return None


def _renamed(
    d: Draft, n: int, old: V | S, new: V | S, changes: dict[int, Inst]
) -> dict[int, Inst] | None:
    """The readers of line ``n``'s result, reading another register."""
    readers: set[int] = set()
    for ref in source(old):
        uses = d.uses(n, ref)
        if uses is None:
            return None
        readers.update(uses)
    out: dict[int, Inst] = {}
    for m in readers:
        inst = changes.get(m, d.lines[m].inst)
        for i in range(old.n):  # words of a wide one are read one by one
            one = substituted(inst, type(old)(old.index + i), type(new)(new.index + i))
            inst = one if one is not None else inst
        whole = substituted(inst, old, new)
        inst = whole if whole is not None else inst
        left = frozenset[RRef]().union(*(source(a) for a in inst.args[1:]))
        if left & source(old) or not d.reaches(n, m):
            return None
        out[m] = inst
    return out


CHANGES: tuple[Callable[[Draft], None], ...] = (
    unused, products, copies, scalars, chains, same_scalar, fused, selections, modes, carries,
    again, unused,
)  # fmt: skip


def shortened(d: Draft, most: int = 8) -> None:
    """All changes until none is left, or so many times."""
    for _ in range(most):
        d.changed = False
        for change in CHANGES:
            change(d)
            d.settle()
        if not d.changed:
            return


__all__ = ["CHANGES", "shortened"]

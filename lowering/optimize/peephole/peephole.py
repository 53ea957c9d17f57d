"""Changes that make code cheaper, each proved where it was made.

Every change is a function that edits a draft in place and returns nothing; they are repeated
until none applies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sassxlate.disasm.rdna3 import MACRO, OPS, RRef, keeps_part
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.tables.operand_codes import VCC_LO
from sassxlate.disasm.sass.instruction import Const, Imm, Instruction, Reg, RegRef
from sassxlate.lowering.optimize.draft import (  # fmt: skip
    Draft,
    apart,
    legal,
    line,
    moved,
    plain,
    pure,
    renamed,
    source,
    substituted,
)
from sassxlate.lowering.optimize.peephole.combine import fused, is_unread, products
from sassxlate.lowering.optimize.peephole.enumerate_windows import one_for_several
from sassxlate.lowering.optimize.peephole.folds import FOLDS
from sassxlate.lowering.optimize.peephole.scalars import (
    chains,
    choices,
    loads,
    pair_copies,
    same_scalar,
    scalars,
    told_again,
)
from sassxlate.lowering.optimize.peephole.short_encodings import shortest
from sassxlate.lowering.optimize.rewrites.match import rewritten
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import place_of
from sassxlate.lowering.region.subset import guard


def unused(d: Draft) -> None:
    """Removes results that are never read."""
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
    """Removes moves whose source can be read instead."""
    n = 0
    while n < len(d.lines):
        if not _copied(d, n) and not _copied_pair(d, n):
            n += 1


def _copied(d: Draft, n: int) -> bool:
    found = moved(d.lines[n].inst)
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
    """Two moves that make a pair, if the pair can be read at its source."""
    low = moved(d.lines[n].inst)
    if low is None:
        return False
    for k in range(n + 1, min(n + 4, len(d.lines))):
        high = moved(d.lines[k].inst)
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


def carries(d: Draft) -> None:
    """Sums whose carry is never read."""
    for n, at in enumerate(d.lines):
        inst = at.inst
        plainer = {"v_add_co_u32": "v_add_nc_u32", "v_sub_co_u32": "v_sub_nc_u32"}.get(inst.op)
        if plainer is None or not plain(inst):
            continue
        mask = inst.args[1]
        unread = (
            is_unread(d, n, mask)
            if isinstance(mask, S)
            else mask == Sp("vcc_lo") and d.dead_at(n + 1, RRef("s", VCC_LO))
        )
        made = Inst(plainer, (inst.args[0], *inst.args[2:]))
        if unread and legal(made):
            d.put(n, made)


_BYTES = {"S8": 1, "U8": 0}


def dots(d: Draft) -> None:
    """Sums of four products of bytes."""
    for number, ins in enumerate(d.sass):
        if ins.mnemonic != "IDP" or not ins.has("4A") or len(ins.modifiers) != 3:
            continue
        args = [_operand(d, ins, role) for role in ("Rd", "Ra", "Rb", "Rc")]
        signs = [_BYTES.get(m, -1) for m in ins.modifiers[1:]]
        mine = [n for n, at in enumerate(d.lines) if at.group == number]
        mine = [n for n in mine if guard(d.lines[n].inst, d.regs) is None]
        if None in args or -1 in signs or len(mine) < 3:
            continue
        if d.lines[mine[0]].region != d.lines[mine[-1]].region:
            continue
        neg = signs[0] | signs[1] << 1
        made = Inst("v_dot4_i32_iu8", tuple(a for a in args if a is not None), neg=neg)
        if legal(made):
            d.put(mine[-1], made)
            d.remove(mine[:-1])


def _operand(d: Draft, ins: Instruction, role: str) -> Arg | None:
    """The place of a plain operand of SASS."""
    operand = ins.get(role)
    if isinstance(operand, Reg) and not (operand.neg or operand.inv or operand.select):
        if operand.is_zero:
            return I(0) if role != "Rd" else None
        kind, at = place_of(RegRef(operand.file, operand.index), d.regs)
        return V(at) if kind in "vl" else S(at)
    if isinstance(operand, Imm) and not (operand.neg or operand.inv):
        return I(operand.value)
    if isinstance(operand, Const) and operand.index is None and not operand.neg:
        place = d.regs.consts.get((operand.bank, operand.place))
        return None if place is None else S(place.index)
    return None


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
        if inst.op == MACRO:
            return
        row = OPS[inst.op]
        if row.kind != "valu" or not isinstance(to, V) or to.n != 1 or keeps_part(inst):
            return
        if any(r.kind != "v" for r in at.writes) or RRef("s", mask.index) in at.writes:
            return
        (ref,) = source(to)
        if d.temporary(ref):
            made.append((inst, at.group))  # harmless in other lanes
            continue
        move = moved(inst)
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
    # A guard is two scalar instructions; a result that is not a move takes one more.
    if not made or computed > 1 or not all(legal(i) for i, _ in made):
        return
    d.join([d.lines[first].group, d.lines[end].group])
    d.lines[first : end + 1] = [line(inst, group) for inst, group in made]
    d.changed = True
    d.settle()


def modes(d: Draft) -> None:
    """Removes changes of MODE with nothing in between that depends on it."""
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
    """The value of a mode before line ``n``."""
    for m in range(n - 1, -1, -1):
        if d.lines[m].inst.op == op:
            return d.lines[m].inst.imm
    return 15 if op == "s_denorm_mode" else 0


def _decided(inst: Inst, regs: RegisterMap) -> bool:
    """Whether MODE may change the result of an instruction."""
    if inst.op == MACRO:
        return True
    row = OPS[inst.op]
    if inst.op in ("s_denorm_mode", "s_round_mode") or guard(inst, regs) is not None:
        return False
    if row.kind != "valu":
        return row.atomic
    return "f" in "".join(a.type for a in row.args) or "_f" in inst.op


def again(d: Draft) -> None:
    """Reuses results computed before from the same operands, or loaded from the same constant."""
    n = 0
    while n < len(d.lines):
        _again(d, n)
        n += 1


def _again(d: Draft, n: int) -> None:
    at = d.lines[n]
    inst = at.inst
    to = inst.args[0] if inst.args else None
    if d.guarded(n) or not isinstance(to, V | S) or not pure(inst):
        return
    row = OPS[inst.op]
    if row.writes:
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
            same = replace(other.inst, args=inst.args, origin=None, uniform=False)
            if same == replace(inst, origin=None, uniform=False) and type(mine) is type(to):
                twins.append(m)
        if other.writes & sources:
            break
    twins = [m for m in twins if all(d.temporary(r) for r in d.lines[m].writes)]
    if not twins:
        return
    temp = apart(d, to)
    if temp is None:
        return
    changes: dict[int, Inst] = {}
    gone: list[int] = []
    for m in [n, *twins]:
        mine = d.lines[m].inst.args[0]
        assert isinstance(mine, V | S)
        found = renamed(d, m, mine, temp, changes)
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


def by_table(d: Draft) -> None:
    """The rewrites of the table, each proved for all operands."""
    d.applied += rewritten(d)


CHANGES: tuple[Callable[[Draft], None], ...] = (
    dots, unused, products, copies, pair_copies, scalars, chains, choices, same_scalar, told_again,
    loads, fused, selections, modes, carries, again, *FOLDS, by_table, unused,
)  # fmt: skip


def shortened(d: Draft, most: int = 8) -> None:
    """Applies all changes until none applies, up to a limit of rounds."""
    for _ in range(most):
        d.changed = False
        for change in CHANGES:
            change(d)
            d.settle()
        if not d.changed:
            one_for_several(d)
            d.settle()
        if not d.changed:
            break
    shortest(d)


__all__ = ["CHANGES", "shortened"]

"""Canonical names of the places that a block touches, in order of first use.

===== ==================================================== ==============
name  contents                                             place
===== ==================================================== ==============
v     a general register R                                 VGPR
l     a uniform register, one copy per lane                VGPR
u     a uniform register                                   SGPR
c     a word of a constant bank, loaded before; read only  SGPR
p     a predicate: a mask of lanes                         SGPR
q     a uniform predicate: a mask of lanes                 SGPR
t     a temporary                                          VGPR
s     a temporary; pairs are even                          SGPR
===== ==================================================== ==============

``v1`` is certain to be next to ``v0`` only if the block's SASS names both as one operand: those
registers are renamed together, in order, and of scalar ones an even name is an even register.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.disasm.sass.instruction import Const, Instruction, Mem, Operand, Pred, Reg, RegRef
from sassxlate.errors import EncodeError
from sassxlate.lowering.regalloc.register_map import RegisterMap

CLASSES: Final[Mapping[str, int]] = {
    "v": 128, "l": 32, "u": 64, "c": 64, "p": 7, "q": 7, "t": 32, "s": 20,
}  # fmt: skip
VECTOR: Final = frozenset("vlt")
FIXED: Final = ("kern", "gid.x", "gid.y", "gid.z", "live", "save", "tid")
VTEMPS: Final = 24  # temporaries of the subset: any kernel has that many

Place = tuple[str, int]  # class, VGPR or SGPR


@dataclass(frozen=True, slots=True)
class Names:
    """Names and places, both ways.  ``words`` are the registers of SASS by place."""

    place: Mapping[str, V | S]
    name: Mapping[V | S, str]

    def register(self, name: str, n: int = 1) -> V | S:
        """``n`` registers from a name on.  EncodeError SX0541 if they are not adjacent."""
        first = self.place.get(name)
        if first is None:
            raise EncodeError("SX0541", f"{name} is not a register of this block")
        if n > 1 and not (n == 2 and name == "kern"):
            kind, number = _split(name)
            for i in range(1, n):
                if self.place.get(f"{kind}{number + i}") != _beside(first, i):
                    raise EncodeError("SX0541", f"{name} and {n - 1} more are not a tuple here")
        return type(first)(first.index, n)

    def of(self, arg: V | S) -> str:
        """The name of a tuple's first register.  EncodeError SX0541 if it has none."""
        name = self.name.get(type(arg)(arg.index))
        if name is None or self.register(name, arg.n) != arg:
            raise EncodeError("SX0541", f"{arg} has no name in this block")
        return name


def _split(name: str) -> tuple[str, int]:
    return (name[0], int(name[1:])) if name[1:].isdigit() else (name, 0)


def _beside(first: V | S, i: int) -> V | S:
    return type(first)(first.index + i)


def place_of(ref: RegRef, regs: RegisterMap) -> Place:
    """The place of a SASS register.  EncodeError SX0541 for one that has no VGPR or SGPR."""
    index = ref.index
    if ref.file == "R" and index in regs.r:
        return "v", regs.r[index]
    if ref.file == "UR" and index in regs.ur:
        return "u", regs.ur[index]
    if ref.file == "UR" and index in regs.ur_lanes:
        return "l", regs.ur_lanes[index]
    if ref.file == "P" and index in regs.p:
        return "p", regs.p[index].index
    if ref.file == "UP" and index in regs.up:
        return "q", regs.up[index].index
    raise EncodeError("SX0541", f"{ref.file}{index} has no name in this block")


def registers_of(operand: Operand, regs: RegisterMap) -> list[list[Place]]:
    """The places that an operand names, in order; each list is one operand."""
    match operand:
        case Reg():
            if operand.is_zero:
                return []
            words = range(operand.index, operand.index + operand.width)
            return [[place_of(RegRef(operand.file, i), regs) for i in words]]
        case Pred():
            if operand.index == 7:
                return []
            return [[place_of(RegRef(operand.file, operand.index), regs)]]
        case Mem():
            parts = [r for r in (operand.base, operand.ureg) if r is not None]
            return [p for r in parts for p in registers_of(r, regs)]
        case Const():
            if operand.index is not None:
                return registers_of(operand.index, regs)
            found = [regs.consts.get((operand.bank, w)) for w in words_of(operand)]
            return [[("c", s.index) for s in found if s is not None]]
        case _:
            return []


def words_of(operand: Const) -> list[int]:
    """The byte offsets of a constant operand's words."""
    return [(operand.place & ~3) + 4 * i for i in range(operand.width)]


def named(ins: Instruction) -> Iterable[Operand]:
    """The operands in the order of the text; the guard first."""
    yield ins.guard
    yield from ins.operands.values()


def canonical_names(
    sass: Sequence[Instruction], regs: RegisterMap, lent: frozenset[int] = frozenset()
) -> Names:
    """The names of everything that a block touches; ``lent`` are SGPRs that are not temporaries.

    Raises EncodeError SX0541 for a register without a place or a name.
    """
    order: list[Place] = []
    group: dict[Place, Place] = {}

    def root(place: Place) -> Place:
        while group[place] != place:
            place = group[place]
        return place

    for ins in sass:
        for operand in named(ins):
            for places in registers_of(operand, regs):
                for place in places:
                    if place not in group:
                        group[place] = place
                        order.append(place)
                for a, b in pairwise(places):
                    if a[0] == b[0] and b[1] == a[1] + 1:
                        group[root(b)] = root(a)
    members: dict[Place, list[int]] = {}
    for place in group:
        members.setdefault(root(place), []).append(place[1])
    found: dict[str, V | S] = {}
    taken: dict[str, int] = {}
    done: set[Place] = set()
    for first in order:
        head = root(first)
        if head in done:
            continue
        done.add(head)
        kind = head[0]
        run = sorted(members[head])
        base = taken.get(kind, 0)
        if kind in "uc" and len(run) > 1:
            step = 2 if len(run) == 2 else 4
            base += (run[0] - base) % step
        taken[kind] = base + len(run)
        if taken[kind] > CLASSES[kind]:
            raise EncodeError("SX0541", f"more than {CLASSES[kind]} registers {kind}")
        made = V if kind in VECTOR else S
        found |= {f"{kind}{base + i}": made(at) for i, at in enumerate(run)}
    fixed, fixed_names = _fixed_names(regs)
    if lent:
        fixed = {n: at for n, at in fixed.items() if isinstance(at, V) or at.index not in lent}
        fixed_names = {at: n for n, at in fixed.items()}
    called: dict[V | S, str] = {at: word for word, at in found.items()}
    return Names({**found, **fixed}, {**called, **fixed_names})


_last: list[tuple[RegisterMap, dict[str, V | S], dict[V | S, str]]] = []


def _fixed_names(regs: RegisterMap) -> tuple[dict[str, V | S], dict[V | S, str]]:
    """:func:`_fixed`, both ways; cached for the last map, since the blocks of one kernel are
    processed one after another."""
    if not _last or _last[0][0] is not regs:
        found = _fixed(regs)
        _last[:] = [(regs, found, {at: name for name, at in found.items()})]
    return _last[0][1], _last[0][2]


def _fixed(regs: RegisterMap) -> dict[str, V | S]:
    """Names that mean the same in all blocks of a kernel: temporaries, and registers with a fixed
    use."""
    target = regs.target
    out: dict[str, V | S] = {
        f"t{i}": V(regs.vtemp_base + i)
        for i in range(CLASSES["t"])
        if regs.vtemp_base + i < target.vgprs
    }
    for i, index in enumerate(sorted(regs.stemps)[: CLASSES["s"]]):
        out[f"s{i}"] = S(index)
    out["live"], out["save"], out["tid"] = regs.live, regs.save_exec, regs.tid
    out |= {f"gid.{d}": S(at.index) for d, at in zip("xyz", target.group_id, strict=True)}
    out["kern"] = S(target.kernarg.index)
    return out


__all__ = ["CLASSES", "FIXED", "VTEMPS", "Names", "canonical_names", "place_of"]

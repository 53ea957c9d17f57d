"""Code that may be changed: a region's instructions, and queries on them.

Changes are proposed if they look right, and proved afterwards: an error here costs time, never
correctness.  Each change names the SASS instructions that it joins: between those the code no
longer keeps every register in its place, and they are proved together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sassxlate.disasm.rdna3 import (
    MACRO,
    OPS,
    RRef,
    can_encode,
    keeps_part,
    reads,
    registers,
    writes,
)
from sassxlate.disasm.rdna3.instruction import Arg, Inst, S, V
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.errors import SassxlateError
from sassxlate.lowering.passes.hazards import check_mad
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.places import VTEMPS, place_of
from sassxlate.lowering.region.subset import guard
from sassxlate.lowering.region.text import RegionText
from sassxlate.lowering.verify.steps.prover import Code

_EXEC = RRef("s", EXEC_LO)
_MOVES = ("v_mov_b32", "s_mov_b32")


@dataclass(slots=True)
class DraftLine:
    """An instruction, and the number of the SASS instruction that it implements."""

    inst: Inst
    group: int
    reads: frozenset[RRef]
    writes: frozenset[RRef]
    region: int = 0  # numbered by changes of EXEC; regions without a guard are even


def line(inst: Inst, group: int) -> DraftLine:
    return DraftLine(inst, group, reads(inst), writes(inst))


@dataclass(slots=True)
class Draft:
    """The code while it is changed."""

    lines: list[DraftLine]
    regs: RegisterMap
    count: int
    live: frozenset[RRef]  # registers read after the region, or to be preserved
    sass: tuple[Instruction, ...]
    joined: set[int] = field(default_factory=set[int])  # no step ends before these groups
    bound: list[frozenset[int]] = field(default_factory=list[frozenset[int]])  # changed together
    changed: bool = False
    # Rewrites of the table that were applied, by name, and what each saved.
    applied: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    @classmethod
    def of(cls, code: Code, here: RegionText) -> Draft:
        lines = [line(inst, n) for n, group in enumerate(code) for inst in group]
        written = frozenset[RegRef]().union(*(i.writes for i in here.block.instructions))
        masks = frozenset(r for r in here.block.merged if r.file in ("P", "UP"))
        live: set[RRef] = set()
        for ref in written & (here.live_out | masks):
            kind, at = place_of(ref, here.regs)
            live.add(RRef("v" if kind in "vl" else "s", at))
        out = cls(
            lines, here.regs, len(here.block.instructions), frozenset(live), here.block.instructions
        )
        out.settle()
        return out

    def settle(self) -> None:
        """Numbers the regions of EXEC."""
        region, opened = 0, False
        for at in self.lines:
            at.region = 2 * region + opened
            found = guard(at.inst, self.regs)
            if found is not None:
                region, opened = region + 1, found[0] != ".endpred"

    def code(self) -> list[list[Inst]]:
        out: list[list[Inst]] = [[] for _ in range(self.count)]
        for at in self.lines:
            out[at.group].append(at.inst)
        return out

    # --- asking ------------------------------------------------------------------------------

    def temporary(self, ref: RRef) -> bool:
        return (
            ref.number >= self.regs.vtemp_base
            if ref.kind == "v"
            else (ref.kind == "s" and ref.number in self.regs.stemps)
        )

    def guarded(self, n: int) -> bool:
        """Whether line ``n`` runs under a guard."""
        return self.lines[n].region % 2 == 1

    def uses(self, n: int, ref: RRef) -> list[int] | None:
        """All lines that read the value that line ``n`` writes to a register; None if unknown: it
        is read after the region, or only partly overwritten."""
        mine = self.lines[n].region
        out: list[int] = []
        for m in range(n + 1, len(self.lines)):
            at = self.lines[m]
            if ref in at.reads:
                out.append(m)
            if ref in at.writes:
                whole = at.region == mine or at.region % 2 == 0
                if not whole or keeps_part(at.inst):
                    return None
                return out
        return None if ref in self.live else out

    def unchanged(self, refs: frozenset[RRef], first: int, last: int) -> bool:
        """Whether no line strictly between two writes any of the registers."""
        return not any(self.lines[m].writes & refs for m in range(first + 1, last))

    def reaches(self, first: int, last: int) -> bool:
        """Whether all lanes that run line ``last`` ran ``first``."""
        a, b = self.lines[first].region, self.lines[last].region
        return a == b or a % 2 == 0

    def dead_at(self, n: int, ref: RRef) -> bool:
        """Whether a register is dead at line ``n``: written in full before any read."""
        for m in range(n, len(self.lines)):
            at = self.lines[m]
            if ref in at.reads:
                return False
            if ref in at.writes and at.region % 2 == 0:
                return True
        return ref not in self.live

    def free_scalars(self) -> Iterator[S]:
        """Scalar temporaries that the region does not touch."""
        used = {r.number for at in self.lines for r in at.reads | at.writes if r.kind == "s"}
        for index in self.regs.stemps:
            if index not in used:
                yield S(index)

    def free_vectors(self) -> Iterator[V]:
        """Vector temporaries that the region does not touch, the last ones first."""
        used = {r.number for at in self.lines for r in at.reads | at.writes if r.kind == "v"}
        base = self.regs.vtemp_base
        for index in range(min(base + VTEMPS, self.regs.target.vgprs) - 1, base - 1, -1):
            if index not in used:
                yield V(index)

    # --- changing ----------------------------------------------------------------------------

    def join(self, groups: Sequence[int]) -> None:
        """Prevents steps from ending between the groups."""
        self.joined.update(range(min(groups) + 1, max(groups) + 1))
        self.bound.append(frozenset(groups))

    def put(self, n: int, inst: Inst) -> None:
        """Replaces line ``n`` by another instruction."""
        self.lines[n] = replace_line(self.lines[n], inst)
        self.changed = True

    def remove(self, places: Sequence[int]) -> None:
        for n in sorted(set(places), reverse=True):
            del self.lines[n]
        self.changed = True
        self.settle()


def replace_line(old: DraftLine, inst: Inst) -> DraftLine:
    return DraftLine(inst, old.group, reads(inst), writes(inst), old.region)


def legal(inst: Inst) -> bool:
    """Whether RDNA3 has an encoding for it, and allows its destination."""
    try:
        check_mad(inst)
        return can_encode(inst) is None
    except SassxlateError:
        return False


def pure(inst: Inst) -> bool:
    """Whether an instruction does nothing but write its results: no memory, EXEC or MODE."""
    if inst.op == MACRO:
        return False
    row = OPS[inst.op]
    if row.kind not in ("valu", "salu") and not inst.op.startswith("s_load_b"):
        return False
    return not any(r.kind == "mode" or r == _EXEC for r in writes(inst))


def plain(inst: Inst) -> bool:
    """Whether an instruction has no signs, clamps and the like."""
    return not (
        inst.neg or inst.abs or inst.clamp or inst.omod or inst.op_sel or inst.dpp or inst.y
        or inst.neg_hi or inst.op_sel_hi != 7
    )  # fmt: skip


def source(arg: Arg) -> frozenset[RRef]:
    """The registers that an operand names."""
    return frozenset(registers(arg))


def substituted(inst: Inst, old: Arg, new: Arg) -> Inst | None:
    """Replaces an operand wherever it is read; None if it is not read as exactly that."""
    if inst.op == MACRO:  # its code stays as it is
        return None
    row = OPS[inst.op]
    args = list(inst.args)
    found = False
    for i, arg in enumerate(args):
        role = row.args[i].role if i < len(row.args) and len(row.args) == len(args) else None
        if role is None:
            return None
        if arg == old and role == "r":
            args[i] = new
            found = True
        elif source(arg) & source(old):
            if role == "w" and arg == old:
                continue
            return None
    if not found:
        return None
    made = replace(inst, args=tuple(args))
    return made if legal(made) else None


def moved(inst: Inst) -> tuple[V | S, Arg] | None:
    """(destination, source) of a plain move of one register."""
    if inst.op not in _MOVES or not plain(inst):
        return None
    to, value = inst.args
    return (to, value) if isinstance(to, V | S) and to.n == 1 else None


def instead(d: Draft, n: int, made: list[Inst]) -> None:
    """Replaces one instruction by others, if all can be encoded."""
    if not made or not all(map(legal, made)):
        return
    group, region = d.lines[n].group, d.lines[n].region
    new = [line(inst, group) for inst in made]
    for at in new:
        at.region = region
    d.lines[n : n + 1] = new
    d.changed = True


def put_with(d: Draft, n: int, made: Inst, readers: Mapping[int, Inst | None]) -> None:
    """Replaces line ``n`` by an instruction, and its readers by theirs (None: unchanged);
    all belong to one step from then on."""
    d.join([d.lines[n].group, *(d.lines[m].group for m in readers)])
    d.put(n, made)
    for m, reader in readers.items():
        if reader is not None:
            d.put(m, reader)


def apart(d: Draft, like: V | S) -> V | S | None:
    """Temporaries that no other line touches."""
    if isinstance(like, V):
        return next(d.free_vectors(), None) if like.n == 1 else None
    free = {s.index for s in d.free_scalars()}
    for index in sorted(free):
        run = {index + i for i in range(like.n)}
        if run <= free and (like.n == 1 or index % min(like.n, 4) == 0):
            return S(index, like.n)
    return None


def renamed(
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
        for i in range(old.n):  # words of a wide operand are read one by one
            one = substituted(inst, type(old)(old.index + i), type(new)(new.index + i))
            inst = one if one is not None else inst
        whole = substituted(inst, old, new)
        inst = whole if whole is not None else inst
        left = frozenset[RRef]().union(*(source(a) for a in inst.args[1:]))
        if left & source(old) or not d.reaches(n, m):
            return None
        out[m] = inst
    return out


__all__ = [
    "Draft", "DraftLine", "apart", "instead", "legal", "line", "moved", "plain", "pure", "put_with",
    "renamed", "replace_line", "source", "substituted",
]  # fmt: skip

"""RDNA3's data hazards that software must handle in waves of 32: their causes, what mitigates them.

Sources: LLVM's GCNHazardRecognizer (feature list 11_0_Common) and Mesa ACO's README-ISA.

VALUTransUse   a transcendental's result read by a VALU within 5 VALUs and 1 transcendental
               -> s_waitcnt_depctr va_vdst(0) before the reader
VcmpxPermlane  v_cmpx, then v_permlane* with no VALU between -> v_mov_b32 of a register to itself
WMMA           a matrix multiply whose A or B overlaps the previous one's D -> v_nop
MADIntraFwd    v_mad_u64_u32, v_mad_i64_i32 whose destination overlaps a source -> an error
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sassxlate.disasm.rdna3 import OPS, RRef, depctr_imm, effects, info, reads, writes
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label, V
from sassxlate.disasm.rdna3.reads_writes import FIRST, bits_of
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.codeobject.source_map import HAZARD, sass_text
from sassxlate.lowering.target import DEFAULT, Target

_HAZARD: Final = InstOrigin(HAZARD)
_NO_VGPR: Final = (1 << FIRST["v"]) - 1
_ENDS: Final = frozenset({"branch", "jump", "end"})
_WAITS: Final = frozenset({"lds", "flat", "global", "scratch"})  # for the VALU, themselves


class Hazards:
    """A program that is given in parts, in order, with all four hazards mitigated, and what is in
    flight."""

    def __init__(self, target: Target) -> None:
        self.out: list[Item] = []
        self.most_valu = target.hazards.trans_valu
        self.most_trans = target.hazards.trans_trans
        # Transcendental results: the registers, VALUs and transcendentals issued since.
        self.results: list[tuple[int, int, int]] = []
        self.late = 0  # the registers of all of them
        self.after_cmpx = False
        self.matrix = 0  # the result of the matrix multiply just before

    def settle(self) -> None:
        """No transcendental result is late after it."""
        if self.results:
            wait = Inst("s_waitcnt_depctr", (), imm=depctr_imm(va_vdst=0), origin=_HAZARD)
            self.out.append(wait)
            self.forget()

    def forget(self) -> None:
        self.results.clear()
        self.late = 0

    def step(self, is_trans: bool) -> None:
        """A VALU instruction is issued."""
        kept: list[tuple[int, int, int]] = []
        self.late = 0
        for registers, valu, trans in self.results:
            valu += 1
            trans += is_trans
            if valu <= self.most_valu and trans <= self.most_trans:
                kept.append((registers, valu, trans))
                self.late |= registers
        self.results = kept

    def vector(self, inst: Inst) -> None:
        """One VALU instruction, with what must precede it."""
        row = OPS.get(inst.op) or info(inst.op)
        check_mad(inst)
        if self.late and effects(inst).read_bits & self.late:
            self.settle()
        if self.after_cmpx and is_permlane(inst.op):
            some = next((a for a in inst.args if isinstance(a, V)), V(0))
            self.out.append(Inst("v_mov_b32", (V(some.index), V(some.index)), origin=_HAZARD))
        is_wmma = row.is_wmma
        if is_wmma and self.matrix & _factors(inst):
            self.out.append(Inst("v_nop", origin=_HAZARD))
        self.out.append(inst)
        is_trans = row.is_trans
        if self.results:
            self.step(is_trans)
        if is_trans:
            made = effects(inst).write_bits & ~_NO_VGPR
            if made:
                self.results.append((made, 0, 0))
                self.late |= made
        self.after_cmpx = inst.op.startswith("v_cmpx")
        self.matrix = effects(inst).write_bits if is_wmma else 0

    def through(self, items: Iterable[Item]) -> list[Item]:
        """The next part of the program, with what keeps its instructions apart."""
        for item in items:
            if isinstance(item, Label):
                self.settle()
                self.after_cmpx, self.matrix = False, 0
                self.out.append(item)
                continue
            kind = (OPS.get(item.op) or info(item.op)).kind
            if kind == "valu":
                self.vector(item)
                continue
            if kind in _ENDS:
                self.settle()
            elif kind in _WAITS:
                self.forget()
            self.out.append(item)
        made, self.out = self.out, []
        return made


def is_permlane(op: str) -> bool:
    return op.startswith("v_permlane")


def check_mad(inst: Inst) -> None:
    """LoweringError SX0430 for the forbidden overlap."""
    if inst.op not in ("v_mad_u64_u32", "v_mad_i64_i32"):
        return
    mine = {r for r in writes(inst) if r.kind == "v"}
    if mine & reads(inst):
        where = Where(inst=None if inst.origin is None else sass_text(inst.origin))
        raise LoweringError("SX0430", f"{inst.op} writes over its own source", where)


def insert_hazards(items: Iterable[Item], target: Target = DEFAULT) -> list[Item]:
    """The program with all four hazards mitigated, and none left open at a label or branch."""
    return Hazards(target).through(items)


def _factors(inst: Inst) -> int:
    """The registers of A and B of a matrix multiply."""
    return bits_of(
        RRef("v", a.index + i) for a in inst.args[1:3] if isinstance(a, V) for i in range(a.n)
    )

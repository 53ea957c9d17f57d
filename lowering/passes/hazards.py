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
from dataclasses import dataclass, field

from sassxlate.disasm.rdna3 import OPS, RRef, depctr_imm, info, reads, writes
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label, V
from sassxlate.errors import LoweringError, Where
from sassxlate.lowering.codeobject.source_map import HAZARD, sass_text
from sassxlate.lowering.target import DEFAULT, HazardWindows, Target

_HAZARD = InstOrigin(HAZARD)


@dataclass(slots=True)
class _Trans:
    """Transcendental results in flight: by register, VALUs and transcendentals issued since."""

    window: HazardWindows
    since: dict[RRef, tuple[int, int]] = field(default_factory=dict[RRef, tuple[int, int]])

    def step(self, is_trans: bool) -> None:
        kept: dict[RRef, tuple[int, int]] = {}
        for reg, (valu, trans) in self.since.items():
            now = (valu + 1, trans + is_trans)
            if now[0] <= self.window.trans_valu and now[1] <= self.window.trans_trans:
                kept[reg] = now
        self.since = kept


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
    out: list[Item] = []
    trans = _Trans(target.hazards)
    after_cmpx = False
    matrix: frozenset[RRef] = frozenset()

    def settle() -> None:
        out.append(Inst("s_waitcnt_depctr", (), imm=depctr_imm(va_vdst=0), origin=_HAZARD))
        trans.since.clear()

    for item in items:
        if isinstance(item, Label):
            if trans.since:
                settle()
            after_cmpx, matrix = False, frozenset[RRef]()
            out.append(item)
            continue
        row = OPS.get(item.op) or info(item.op)
        if row.kind in ("branch", "jump", "end") and trans.since:
            settle()
        if row.kind in ("lds", "flat", "global", "scratch"):
            trans.since.clear()  # these wait for the VALU themselves
        if row.kind != "valu":
            out.append(item)
            continue
        check_mad(item)
        if trans.since and any(r in trans.since for r in reads(item)):
            settle()
        if after_cmpx and is_permlane(item.op):
            some = next((a for a in item.args if isinstance(a, V)), V(0))
            out.append(Inst("v_mov_b32", (V(some.index), V(some.index)), origin=_HAZARD))
        if row.is_wmma and matrix & _factors(item):
            out.append(Inst("v_nop", origin=_HAZARD))
        out.append(item)
        if trans.since:
            trans.step(row.is_trans)
        if row.is_trans:
            for reg in writes(item):
                if reg.kind == "v":
                    trans.since[reg] = (0, 0)
        after_cmpx = item.op.startswith("v_cmpx")
        matrix = frozenset(writes(item)) if row.is_wmma else frozenset()
    return out


def _factors(inst: Inst) -> frozenset[RRef]:
    """The registers of A and B of a matrix multiply."""
    return frozenset(
        RRef("v", a.index + i) for a in inst.args[1:3] if isinstance(a, V) for i in range(a.n)
    )

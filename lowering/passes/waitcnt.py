"""Inserts s_waitcnt before a register with a pending load is read or written.

vmcnt counts loads in order; lgkmcnt counts LDS in order and scalar loads out of order, so mixed
traffic waits for all (RDNA3 ISA, 5.6).  At labels and branches all outstanding loads are waited
for, so no path into a block carries pending loads.  Stores are waited for only by the fences
that the rules write themselves.  A fence's wait is left out where nothing that it waits for is
outstanding: no load at all, no store since the last wait for stores.  Before the first of these
in a block there may be stores of earlier blocks: proofs are of one block, which may assume no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sassxlate.disasm.rdna3 import (
    OPS,
    RRef,
    counters,
    effects,
    info,
    waitcnt_fields,
    waitcnt_imm,
    writes,
)
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label
from sassxlate.lowering.codeobject.source_map import WAIT
from sassxlate.lowering.target import DEFAULT, NULL, Counters, Target


@dataclass(slots=True)
class _Outstanding:
    """Loads in issue order, each by the registers it fills; LDS and scalar loads apart."""

    most: Counters
    vm: list[frozenset[RRef]] = field(default_factory=list[frozenset[RRef]])
    lgkm: list[frozenset[RRef]] = field(default_factory=list[frozenset[RRef]])
    scalar: bool = False  # a scalar load (or a flat access) is among ``lgkm``
    stores: bool = True  # there may be stores

    def needed(self, touched: frozenset[RRef]) -> tuple[int, int]:
        """(vmcnt, lgkmcnt) to wait for before ``touched`` may be used; the most is no wait."""
        vm, lgkm = self.most.vm, self.most.lgkm
        for i, regs in enumerate(self.vm):
            if regs & touched:
                vm = len(self.vm) - 1 - i
        for i, regs in enumerate(self.lgkm):
            if regs & touched:
                lgkm = 0 if self.scalar else len(self.lgkm) - 1 - i
        return vm, lgkm

    def done(self, vm: int, lgkm: int) -> None:
        if vm < len(self.vm):
            self.vm = self.vm[len(self.vm) - vm :]
        if lgkm < len(self.lgkm):
            self.lgkm = self.lgkm[len(self.lgkm) - lgkm :]
        if not self.lgkm:
            self.scalar = False

    def idle(self, inst: Inst) -> bool:
        """Whether a wait that the rules wrote has nothing to wait for."""
        if inst.op == "s_waitcnt_vscnt":
            return not self.stores and inst.args == (NULL,) and inst.imm == 0
        vm, lgkm, _ = waitcnt_fields(inst.imm)
        return vm >= len(self.vm) and lgkm >= len(self.lgkm)


_WAIT = InstOrigin(WAIT)
# Kinds that a counter counts.
_COUNTED = frozenset({"lds", "smem", "message", "inv", "flat", "global", "scratch", "buffer"})
_SPARE = 3  # that a counter is kept below its most


def insert_waitcnt(items: Iterable[Item], target: Target = DEFAULT) -> list[Item]:
    """The program with the waits that it needs; before it has those of its fences alone, each for
    a counter's zero."""
    out: list[Item] = []
    most = target.counters
    state = _Outstanding(most)

    def wait(vm: int, lgkm: int) -> None:
        if vm < most.vm or lgkm < most.lgkm:
            out.append(Inst("s_waitcnt", (), imm=waitcnt_imm(vm, lgkm), origin=_WAIT))
            state.done(vm, lgkm)

    for item in items:
        if isinstance(item, Label):
            wait(0 if state.vm else most.vm, 0 if state.lgkm else most.lgkm)
            state.stores = True
            out.append(item)
            continue
        row = OPS.get(item.op) or info(item.op)
        if row.kind in ("branch", "jump", "end", "barrier"):
            wait(0 if state.vm else most.vm, 0 if state.lgkm else most.lgkm)
            state.stores |= row.kind != "barrier"
            out.append(item)
            continue
        if item.op in ("s_waitcnt", "s_waitcnt_vscnt"):
            if state.idle(item):
                continue
            if item.op == "s_waitcnt":
                vm, lgkm, _ = waitcnt_fields(item.imm)
                state.done(vm, lgkm)
            elif item.imm == 0:
                state.stores = False
            out.append(item)
            continue
        if state.vm or state.lgkm:
            wait(*state.needed(effects(item).touched))
        out.append(item)
        if row.kind not in _COUNTED:
            continue
        counted = counters(item)
        state.stores |= "vs" in counted
        if counted & {"vm", "lgkm"}:
            fills = frozenset(r for r in writes(item) if r.kind in ("v", "s"))
            if "vm" in counted:
                state.vm.append(fills)
            if "lgkm" in counted:
                state.lgkm.append(fills)
                state.scalar |= row.kind != "lds"
            # Counters saturate; stay below.
            if len(state.vm) > most.vm - _SPARE or len(state.lgkm) > most.lgkm - _SPARE:
                wait(0, 0)
    return out

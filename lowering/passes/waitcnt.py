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
from typing import Final, Literal

from sassxlate.disasm.rdna3 import OPS, counters, effects, info, waitcnt_fields, waitcnt_imm
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label
from sassxlate.disasm.rdna3.reads_writes import OTHER_BITS
from sassxlate.lowering.codeobject.source_map import WAIT
from sassxlate.lowering.target import DEFAULT, NULL, Target

_WAIT: Final = InstOrigin(WAIT)
_SPARE: Final = 3  # that a counter is kept below its most


class Waits:
    """A program that is given in parts, in order, with the waits that it needs.

    It keeps the loads in issue order, each by the registers that it fills, as an integer; LDS and
    scalar loads apart."""

    def __init__(self, target: Target) -> None:
        self.out: list[Item] = []
        self.most_vm = target.counters.vm
        self.most_lgkm = target.counters.lgkm
        self.vm: list[int] = []
        self.lgkm: list[int] = []
        self.filled = 0  # the registers of all of them
        self.scalar = False  # a scalar load (or a flat access) is among ``lgkm``
        self.stores = True  # there may be stores

    def needed(self, touched: int) -> None:
        """Waits for what is necessary before these registers may be used."""
        if not self.filled & touched:
            return
        vm, lgkm = self.most_vm, self.most_lgkm
        for i, regs in enumerate(self.vm):
            if regs & touched:
                vm = len(self.vm) - 1 - i
        for i, regs in enumerate(self.lgkm):
            if regs & touched:
                lgkm = 0 if self.scalar else len(self.lgkm) - 1 - i
        self.wait(vm, lgkm)

    def all(self) -> None:
        """Waits for all loads."""
        self.wait(
            0 if self.vm else self.most_vm,
            0 if self.lgkm else self.most_lgkm,
        )

    def wait(self, vm: int, lgkm: int) -> None:
        """Waits until as many are left; the most is no wait."""
        if vm < self.most_vm or lgkm < self.most_lgkm:
            self.out.append(Inst("s_waitcnt", (), imm=waitcnt_imm(vm, lgkm), origin=_WAIT))
            self.done(vm, lgkm)

    def done(self, vm: int, lgkm: int) -> None:
        """No more than as many are left."""
        if vm < len(self.vm):
            self.vm = self.vm[len(self.vm) - vm :]
        if lgkm < len(self.lgkm):
            self.lgkm = self.lgkm[len(self.lgkm) - lgkm :]
        if not self.lgkm:
            self.scalar = False
        self.filled = 0
        for regs in self.vm:
            self.filled |= regs
        for regs in self.lgkm:
            self.filled |= regs

    def idle(self, inst: Inst) -> bool:
        """Whether a wait that the rules wrote has nothing to wait for."""
        if inst.op == "s_waitcnt_vscnt":
            return not self.stores and inst.args == (NULL,) and inst.imm == 0
        vm, lgkm, _ = waitcnt_fields(inst.imm)
        return vm >= len(self.vm) and lgkm >= len(self.lgkm)

    def asked(self, inst: Inst) -> None:
        """A wait that the rules wrote."""
        if self.idle(inst):
            return
        if inst.op == "s_waitcnt":
            vm, lgkm, _ = waitcnt_fields(inst.imm)
            self.done(vm, lgkm)
        elif inst.imm == 0:
            self.stores = False
        self.out.append(inst)

    def issued(self, inst: Inst) -> None:
        """An instruction that a counter counts, after it."""
        counted = counters(inst)
        self.stores = self.stores or "vs" in counted
        if "vm" not in counted and "lgkm" not in counted:
            return
        fills = effects(inst).write_bits & ~OTHER_BITS
        self.filled |= fills
        if "vm" in counted:
            self.vm.append(fills)
        if "lgkm" in counted:
            self.lgkm.append(fills)
            self.scalar = self.scalar or _way(inst.op) != "lds"
        # Counters saturate; stay below.
        if len(self.vm) > self.most_vm - _SPARE or len(self.lgkm) > self.most_lgkm - _SPARE:
            self.wait(0, 0)

    def through(self, items: Iterable[Item]) -> list[Item]:
        """The next part of the program, with its waits."""
        for item in items:
            if isinstance(item, Label):
                self.all()
                self.stores = True
                self.out.append(item)
                continue
            way = _way(item.op)
            if way == "wait":
                self.asked(item)
                continue
            if way == "end" or way == "barrier":
                self.all()
                self.stores = self.stores or way == "end"
                self.out.append(item)
                continue
            if self.filled:
                found = effects(item)
                self.needed(found.read_bits | found.write_bits)
            self.out.append(item)
            if way:
                self.issued(item)
        made, self.out = self.out, []
        return made


# What an instruction is to this pass: nothing, the end of straight-line code, a barrier, a wait, or
# counted (LDS apart).
_Way = Literal["", "end", "barrier", "wait", "counted", "lds"]
_KINDS: Final[dict[str, _Way]] = {
    "branch": "end", "jump": "end", "end": "end", "barrier": "barrier", "lds": "lds",
    "smem": "counted", "message": "counted", "inv": "counted", "flat": "counted",
    "global": "counted", "scratch": "counted", "buffer": "counted",
}  # fmt: skip
_WAYS: Final[dict[str, _Way]] = {"s_waitcnt": "wait", "s_waitcnt_vscnt": "wait"}


def _way(op: str) -> _Way:
    known = _WAYS.get(op)
    if known is None:
        row = OPS.get(op) or info(op)
        known = _WAYS[op] = _KINDS.get(row.kind, "")
    return known


def insert_waitcnt(items: Iterable[Item], target: Target = DEFAULT) -> list[Item]:
    """The program with the waits that it needs; before it has those of its fences alone, each for
    a counter's zero."""
    return Waits(target).through(items)

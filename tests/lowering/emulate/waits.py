"""A second model of the waits that a kernel needs: one path at a time, with real queues.

It shares the table of registers with the analysis in ``lowering.emulate.strict`` and nothing else.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass, field
from typing import TypeAlias

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow
from sassxlate.disasm.rdna3 import RRef, counters, info, reads, waitcnt_fields, writes
from sassxlate.disasm.rdna3.instruction import Inst

NOP = bytes.fromhex("000080bf")
WAITS = frozenset({"s_waitcnt", "s_waitcnt_vscnt", "s_waitcnt_depctr"})


@dataclass(frozen=True, slots=True)
class Effect:
    """The reads, writes and counters of one instruction."""

    op: str
    kind: str
    trans: bool
    reads: frozenset[RRef]
    used: frozenset[RRef]
    fills: frozenset[RRef]
    counted: frozenset[str]


@functools.lru_cache(maxsize=20000)
def effect(inst: Inst) -> Effect:
    row, read, written = info(inst.op), reads(inst), writes(inst)
    fills = frozenset(r for r in written if r.kind in ("v", "s"))
    return Effect(inst.op, row.kind, row.is_trans, read, read | written, fills, counters(inst))


_Fills: TypeAlias = list[frozenset[RRef]]


@dataclass(slots=True)
class Wave:
    """Pending operations, the oldest first, each with the registers that it will fill."""

    vm: _Fills = field(default_factory=_Fills)
    vs: int = 0
    lds: _Fills = field(default_factory=_Fills)
    scalar: _Fills = field(default_factory=_Fills)
    valus: list[Effect] = field(default_factory=list[Effect])

    def wait(self, step: DecodedStep) -> None:
        inst = step.inst
        if inst.op == "s_waitcnt":
            vm, lgkm, _ = waitcnt_fields(inst.imm & 0xFFFF)
            self.vm = self.vm[max(0, len(self.vm) - vm) :]
            self.lds = self.lds[max(0, len(self.lds) - lgkm) :]
            if lgkm == 0:
                self.scalar = []
        elif inst.op == "s_waitcnt_vscnt":
            self.vs = min(self.vs, inst.imm)
        elif inst.imm >> 12 & 15 == 0:
            self.valus = []

    def wrong(self, e: Effect) -> bool:
        """Whether the instruction needs a result that is not ready."""
        mine = e.reads if e.kind in ("global", "scratch") and "vm" in e.counted else e.used
        if any(regs & mine for regs in self.vm) or any(regs & e.used for regs in self.scalar):
            return True
        if any(regs & (e.reads if e.kind == "lds" else e.used) for regs in self.lds):
            return True
        if e.op == "s_barrier" and self.busy:
            return True
        if e.op.startswith("buffer_gl") and (self.vm or self.vs):
            return True
        return e.kind == "valu" and self._too_soon(e.reads)

    @property
    def busy(self) -> bool:
        """Whether a memory access is pending."""
        return bool(self.vm or self.vs or self.lds)

    def _too_soon(self, read: frozenset[RRef]) -> bool:
        """A transcendental's result within 5 VALUs and 1 transcendental."""
        trans = 0
        for valus, old in enumerate(reversed(self.valus)):
            if valus > 5 or trans > 1:
                break
            if old.trans and old.fills & read:
                return True
            read -= old.fills  # written again since
            trans += old.trans
        return False

    def issue(self, e: Effect) -> None:
        if "vm" in e.counted:
            self.vm.append(e.fills)
        self.vs += "vs" in e.counted
        if "lgkm" in e.counted:
            (self.lds if e.kind in ("lds", "flat") else self.scalar).append(e.fills)
        if e.kind in ("lds", "flat", "global", "scratch"):
            self.valus = []
        elif e.kind == "valu":
            self.valus = [*self.valus[-8:], e]


def walk(flow: Flow, fences: frozenset[int], rng: random.Random, steps: int) -> int | None:
    """The place of the first wrong instruction on a random path, if there is one.

    At `fences`, counted from the kernel's entry, nothing may be pending.
    """
    wave, block, done = Wave(), flow.blocks[flow.entry], 0
    while done < steps:
        for step in block.steps:
            done += 1
            if step.inst.op in WAITS:
                wave.wait(step)
                continue
            now = effect(step.inst)
            if wave.wrong(now) or (step.pc - flow.entry in fences and wave.busy):
                return step.pc
            wave.issue(now)
        if not block.succs:
            break
        block = flow.blocks[rng.choice(block.succs)]
    return None

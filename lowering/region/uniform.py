"""Finds each v_readfirstlane that reads a value shared by all active lanes.

For a v_readfirstlane marked ``uniform``, the verifier assumes that all active lanes hold one
value, for it models one lane.  A model must not set the mark; it is derived from the block
itself: uniform registers, constants, and values computed from them since EXEC last changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.rdna3 import MACRO, OPS, RRef, keeps_part, registers, writes
from sassxlate.disasm.rdna3.instruction import I, Inst, S
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.subset import EXEC

_EXEC = RRef("s", EXEC_LO)


_BITWISE = frozenset(
    f"s_{op}_b32" for op in "mov not and or xor nand nor xnor and_not1 or_not1".split()
)


class _Known:
    """Values shared by all active lanes so far: in VGPRs, and the bits of masks in SGPRs."""

    def __init__(self, sass: Sequence[Instruction], regs: RegisterMap, lasting: bool) -> None:
        # Copies of a register that SASS does not read before writing may hold anything: earlier
        # code may have used the place, or left out a result that is never read.
        live = frozenset[RegRef]()
        for ins in reversed(sass):
            live = live_before(ins, live)
        lanes, masks = regs.ur_lanes.items(), regs.up.items()
        self.copies = {RRef("v", v) for i, v in lanes if RegRef("UR", i) in live}
        self.up = {RRef("s", at.index) for i, at in masks if RegRef("UP", i) in live}
        self.here = self.copies | self.up
        self.lasting = lasting
        self.all: set[RRef] = set()  # shared by all of the block's lanes, written since the start
        self.save = regs.save_exec
        self.narrowed = False
        self.saved = False  # whether save_exec holds the EXEC of the start

    def shares(self, inst: Inst, told: frozenset[RRef]) -> bool:
        """Whether the results are the same in all active lanes: computed from nothing else."""
        if inst.op == MACRO:
            return False
        row = OPS[inst.op]
        if row.kind == "salu":
            sources = [a for a in inst.args[1:] if not isinstance(a, I)]
            constants = [a.value & 0xFFFFFFFF for a in inst.args if isinstance(a, I)]
            fixed = set(constants) <= {0, 0xFFFFFFFF}
            masks = all(isinstance(a, S) and RRef("s", a.index) in self.here for a in sources)
            return inst.op in _BITWISE and fixed and masks
        if row.kind != "valu" or inst.op.startswith("v_mbcnt") or keeps_part(inst):
            return False
        if set(row.reads) - {"mode", "exec"} or inst.dpp or inst.y is not None:
            return False
        for operand, arg in zip(row.args, inst.args, strict=True):
            if "r" not in operand.role:
                continue
            for ref in registers(arg):
                mask = operand.type == "mask"
                if (ref.kind == "v" or mask) and ref not in self.here and ref not in told:
                    return False
        return True

    def step(self, inst: Inst, told: frozenset[RRef]) -> None:
        written = writes(inst)
        if RRef("s", self.save.index) in written:
            opens = _EXEC in written and inst.op.endswith("_saveexec_b32")
            self.saved = opens and not self.narrowed
        if _EXEC in written:
            # Values that only some lanes computed may be missing in others.
            restores = inst.op == "s_mov_b32" and inst.args == (EXEC, self.save)
            self.narrowed = not (restores and self.saved)
            self.here &= self.copies | self.up | self.all
            return
        places = {r for r in written if r.kind in ("v", "s")}
        # A number that all lanes read is not a mask with equal bits.
        shared = inst.op != "v_readfirstlane_b32" and self.shares(inst, told)
        if not shared or self.narrowed:
            self.copies -= places
            self.up -= places
            self.all -= places
        elif self.lasting:
            self.all |= places
        self.here = self.here | places if shared else self.here - places


def with_uniform(
    code: Iterable[Sequence[Inst]],
    sass: Sequence[Instruction],
    regs: RegisterMap,
    *,
    lasting: bool = False,
) -> tuple[tuple[Inst, ...], ...]:
    """The code with the mark where it is justified.  ``lasting``: also after a guard, for values
    written before the guard by all lanes."""
    known = _Known(sass, regs, lasting)
    changed: set[RRef] = set()  # by the code, or by SASS
    out: list[tuple[Inst, ...]] = []
    for ins, group in zip(sass, code, strict=True):
        told = _told(ins, regs)
        made: list[Inst] = []
        for inst in group:
            # A place need not hold SASS's value.  The verifier checks that for a v_readfirstlane
            # itself, not for its other readers.
            sure = told - changed
            if inst.op == "v_readfirstlane_b32":
                refs = frozenset(registers(inst.args[1]))
                made.append(replace(inst, uniform=refs <= known.here | told))
            else:
                made.append(inst)
            known.step(inst, sure)
            changed |= writes(inst)
        changed |= {RRef("v", regs.r[r.index]) for r in ins.writes if _in_vgpr(r, regs)}
        out.append(tuple(made))
    return tuple(out)


def _in_vgpr(ref: RegRef, regs: RegisterMap) -> bool:
    return ref.file == "R" and ref.index in regs.r


def _told(ins: Instruction, regs: RegisterMap) -> frozenset[RRef]:
    """The registers that the instruction itself assumes equal in all lanes: R2UR's source, if it
    is executed."""
    if ins.mnemonic != "R2UR" or not ins.guard.is_true:
        return frozenset()
    return frozenset(RRef("v", regs.r[r.index]) for r in ins.reads if _in_vgpr(r, regs))


__all__ = ["with_uniform"]

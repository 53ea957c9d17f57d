"""A selection rule's view of the kernel: operands by role, temporaries, and emission.

A rule turns one SASS instruction into RDNA3 instructions.  The guard is already in EXEC (or, for
the uniform datapath, applied when the result is committed); waits and hazards are handled later.
Sources are read with ``src`` and its relatives; results go to the registers that ``dst``,
``dst_last`` and ``pred_out`` return.  Temporaries live until the end of the instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.cfg.register_sets import FIRST, bits_of
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V, sgprs, vgprs
from sassxlate.disasm.sass.instruction import (
    RZ,
    Instruction,
    Operand,
    Pred,
    Reg,
    RegRef,
)
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.builder.sources import SourceReader
from sassxlate.lowering.regalloc.register_map import LaneSlot, Slot
from sassxlate.lowering.target import ALL_ONES, EXEC, ZERO


class RuleEmitter(SourceReader):
    """The view of one instruction.  All public methods may append instructions."""

    def outline(self, label: str, write: Callable[[RuleEmitter], None]) -> None:
        """Places the code that ``write`` emits after the kernel, under ``label``, once."""

        def routine(k: KernelBuilder, ins: Instruction) -> None:
            write(RuleEmitter(k, ins, converged=True))

        self.k.outlined.setdefault(label, routine)

    # --- results ---------------------------------------------------------------------------------

    def _overlaps_sources(self, index: int, width: int) -> bool:
        mine = (1 << min(width, RZ - index)) - 1 << FIRST["R"] + index
        return bits_of(self.ins.reads) & mine != 0

    def dst(self, role: str = "Rd") -> V:
        """VGPRs for the result, safe to write before all sources have been read."""
        reg = self.reg(role)
        if reg.file == "UR":
            return self._uniform_vdst(reg)
        if not reg.is_zero and self._overlaps_sources(reg.index, reg.width):
            return self._written_back(reg)
        return self.dst_last(role)

    def dst_last(self, role: str = "Rd") -> V:
        """VGPRs for the result, written only by the last instruction, which reads every source."""
        reg = self.reg(role)
        if reg.file == "UR":
            return self._uniform_vdst(reg)
        if reg.is_zero:
            return self.vtemp(reg.width)
        place = self._together(reg.index, reg.width)
        return vgprs(place, reg.width) if place >= 0 else self._written_back(reg)

    def _written_back(self, reg: Reg) -> V:
        """Temporaries that are moved to a register at the end."""
        temp = self.vtemp(reg.width)
        self._commits.append(lambda: self.write_back(reg, temp))
        return temp

    def write_back(self, reg: Reg, temp: V) -> None:
        """Writes VGPRs to a register that may be spilled, at once."""
        for i in range(reg.width):
            word = vgprs(temp.index + i)
            if reg.index + i in self.k.regs.spilled:
                self._scratch("scratch_store_b32", word, reg.index + i)
            else:
                self.raw(Inst("v_mov_b32", (vgprs(self.k.regs.r[reg.index + i]), word)))

    def spilled_changed(self, index: int, change: Callable[[V], None]) -> None:
        """Changes a register that lives in scratch, at once."""
        temp = self.vtemp()
        self._scratch("scratch_load_b32", temp, index)
        change(temp)
        self._scratch("scratch_store_b32", temp, index)

    def _uniform_vdst(self, reg: Reg) -> V:
        temp = self.vtemp(reg.width)

        def commit() -> None:
            for i in range(reg.width):
                scalar = self.to_s(vgprs(temp.index + i))
                self._write_ur(reg, i, scalar)

        self._commits.append(commit)
        return temp

    def _write_ur(self, reg: Reg, i: int, value: Arg) -> None:
        if not reg.is_zero:
            self.uniform_changed(reg.index + i, value)

    def uniform_changed(self, index: int, value: Arg) -> None:
        """Writes a scalar to a uniform register, at once, if any lane executes."""
        m = self.k.regs
        guarded = not self.ins.guard.is_true
        if index in m.ur_lanes:
            self._write_copies(vgprs(m.ur_lanes[index]), value)
            return
        target = sgprs(m.ur[index])
        if not guarded:
            self.raw(Inst("s_mov_b32", (target, value)))
            return
        # EXEC is narrowed to the guard's lanes: a scalar write happens if any lane is left.
        self.raw(Inst("s_cmp_lg_u32", (EXEC, ZERO)))
        self.raw(Inst("s_cselect_b32", (target, value, target)))

    @property
    def _narrowed(self) -> bool:
        """Whether some lanes that share a uniform register may be outside EXEC."""
        return not self.ins.guard.is_true and self.ins.guard.file == "P"

    def _write_copies(self, target: V, value: Arg) -> None:
        """Writes the per-lane copies of a uniform register, in all present lanes, if any
        executes."""
        if not self._narrowed:
            self.raw(Inst("v_mov_b32", (target, value)))
            return
        mine = self.stemp()
        self.raw(Inst("s_mov_b32", (mine, EXEC)))
        self.raw(Inst("s_cmp_lg_u32", (EXEC, ZERO)))
        self.raw(Inst("s_cselect_b32", (EXEC, self.k.regs.save_exec, EXEC)))
        self.raw(Inst("v_mov_b32", (target, value)))
        self.raw(Inst("s_mov_b32", (EXEC, mine)))

    def write_uniform(self, reg: Reg, word: int, value: Arg) -> None:
        """Writes a scalar to word ``word`` of a UR destination at the end of the instruction."""
        self._commits.append(lambda: self._write_ur(reg, word, value))

    def give_scalar(self, role: str, value: Arg) -> None:
        """Writes one scalar to an R (all active lanes) or UR destination."""
        reg = self.reg(role)
        if reg.file == "UR":
            self.write_uniform(reg, 0, value)
        else:
            self.emit("v_mov_b32", self.dst_last(role), value)

    # --- predicates ------------------------------------------------------------------------------

    def pred(self, role: str) -> Arg:
        """A source predicate as a lane mask: an SGPR, or 0, or all ones.  Bits of lanes outside
        EXEC are undefined."""
        return self.mask(self.operand(role))

    def mask(self, operand: Operand) -> Arg:
        if not isinstance(operand, Pred):
            raise self.refuse(f"{operand} is not a predicate", "SX0412")
        if operand.index == 7:
            return ZERO if operand.inv else ALL_ONES
        regs = self.k.regs.up if operand.file == "UP" else self.k.regs.p
        place = regs[operand.index]
        if not operand.inv:
            return place
        temp = self.stemp()
        self.raw(Inst("s_not_b32", (temp, place)))
        return temp

    def mask_reg(self, role: str) -> S:
        """Like ``pred``, but always an SGPR (for v_cndmask_b32 and carry inputs)."""
        got = self.pred(role)
        return got if isinstance(got, S) else self._to_sgpr(got)

    def wants_pred(self, role: str) -> bool:
        """Whether a predicate destination is a register (not PT)."""
        operand = self.ins.get(role)
        return isinstance(operand, Pred) and operand.index != 7

    def pred_out(self, role: str) -> S:
        """An SGPR for a predicate result, never a source's register; ``pred_commit`` is next."""
        return self.stemp()

    def pred_commit(self, role: str, mask: Arg, clean: bool = False) -> None:
        """Writes lane mask ``mask`` to predicate ``role``.  ``clean``: 0 outside EXEC."""
        self._considered.add((role, "pred"))
        operand = self.operand(role)
        if not isinstance(operand, Pred) or operand.index == 7:
            return
        regs = self.k.regs.up if operand.file == "UP" else self.k.regs.p
        target = regs[operand.index]

        def commit() -> None:
            if operand.file == "UP" and self._narrowed:  # the result belongs to all present lanes
                here, new = self.stemp(), self.stemp()
                self.raw(Inst("s_cmp_lg_u32", (EXEC, ZERO)))
                self.raw(Inst("s_cselect_b32", (here, self.k.regs.save_exec, ZERO)))
                self.raw(Inst("s_and_b32", (new, mask, here)))
                self.raw(Inst("s_and_not1_b32", (target, target, here)))
                self.raw(Inst("s_or_b32", (target, target, new)))
                return
            guarded = not self.ins.guard.is_true
            keep = guarded or RegRef(operand.file, operand.index) in self.k.merge
            if not (keep and (guarded or not self.converged)):
                self.raw(Inst("s_mov_b32", (target, mask)))
                return
            mine = mask
            if not clean:
                temp = self.stemp()
                self.raw(Inst("s_and_b32", (temp, mask, EXEC)))
                mine = temp
            self.raw(Inst("s_and_not1_b32", (target, target, EXEC)))
            self.raw(Inst("s_or_b32", (target, target, mine)))

        self._commits.append(commit)

    # --- masks of the convergence machine --------------------------------------------------------

    def read_slot(self, slot: Slot) -> S:
        if isinstance(slot, S):
            return slot
        temp = self.stemp()
        self.raw(Inst("v_readlane_b32", (temp, vgprs(slot.vgpr), I(slot.lane))))
        return temp

    def write_slot(self, slot: Slot, value: Arg) -> None:
        if isinstance(slot, LaneSlot):
            self.raw(Inst("v_writelane_b32", (vgprs(slot.vgpr), value, I(slot.lane))))
        elif slot != value:
            self.raw(Inst("s_mov_b32", (slot, value)))

    def finish(self) -> None:
        """Runs the deferred writes of results, in the order of their requests, and records which of
        the builder's items belong to this instruction."""
        for commit in self._commits:
            commit()
        self._commits.clear()
        self.k.spans.add(self.ins, self._first, len(self.k.items))

    def begin(self) -> None:
        """The instruction's own code starts here: earlier items belong to its guard."""
        self._first = len(self.k.items)

"""Instructions with semantics, over the LLVM domain."""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst
from sassxlate.disasm.rdna3.semantics import Mode, Semantics
from sassxlate.disasm.rdna3.semantics.apply import apply, immediate, lookup
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.emulate.wave import cross_lane as lanes
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.masks import decided
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.target import EXEC

_NAN = 0x7FFFFFFF  # NVIDIA's result of any operation that has none


@dataclass(frozen=True, slots=True)
class _Machine:
    """The wave function under construction as a ``Machine[Val]``."""

    c: Context

    @property
    def d(self) -> LlvmDomain:
        return self.c.d

    @property
    def mode(self) -> Mode:
        return self.c.mode

    def error(self, inst: Inst, message: str) -> Exception:
        return self.c.error(inst, message)

    def read32(self, inst: Inst, arg: Arg) -> Val:
        return self.c.read32(inst, arg)

    def read64(self, inst: Inst, arg: Arg) -> Val:
        return self.c.read64(inst, arg)

    def write32(self, inst: Inst, arg: Arg, value: Val) -> None:
        if arg == EXEC:
            value = self._exec(value)
        self.c.write32(inst, arg, value)

    def write64(self, inst: Inst, arg: Arg, value: Val) -> None:
        self.c.write64(inst, arg, value)

    def scalar_index(self, inst: Inst, arg: Arg) -> int:
        return self.c.scalar_index(inst, arg)

    def write_scalar(self, index: int, value: Val) -> None:
        self.c.state.write_s(index, self._exec(value) if index == EXEC_LO else value)

    def _exec(self, value: Val) -> Val:
        return decided.exec_mask(self.c, value) if self.c.state.starting else value

    def scc(self) -> Val:
        return self.c.state.read_scc()

    def write_scc(self, value: Val) -> None:
        self.c.state.write_scc(value)

    def exec_mask(self) -> Val:
        return self.c.state.exec_mask()

    def mask(self, index: int) -> Val:
        return self.c.state.read_mask(index)

    def write_mask(self, index: int, value: Val) -> None:
        self.c.state.write_mask(index, value)

    def lanes_of(self, mask: Val) -> Val:
        return self.c.d.lanes_of(mask)

    def mask_of(self, lanes: Val) -> Val:
        return self.c.d.mask_of(lanes)

    def float_result(self, value: Val, kept: bool = False) -> Val:
        if value.vec:
            self.c.floats.append(value)
        return value

    def lane_number(self) -> Val:
        return self.c.state.lane_numbers()

    def immediate(self, inst: Inst) -> Val:
        if self.c.immediates:
            return self.c.d.extract(self.c.immediates[0], 0, 32)
        return self.c.d.const(immediate(inst), 32)

    def permuted(self, inst: Inst, arg: Arg) -> Val:
        return lanes.dpp(self.c, inst, arg)

    def kept(self, inst: Inst, arg: Arg, value: Val) -> Val:
        return lanes.dpp_keep(self.c, inst, arg, value)


def _canonical(c: Context, inst: Inst) -> bool:
    """A maximum that only replaces NaNs by NVIDIA's, as a comparison with itself, where neither
    denormals nor signalling NaNs are special; LLVM does not find it in what the maximum means."""
    nan, fp = I(_NAN), c.mode.f32
    if inst.op != "v_max3_f32" or inst.args[1] != nan or inst.args[3] != nan:
        return False
    if inst != Inst(inst.op, inst.args) or c.mode.ieee or fp.flush_in or fp.flush_out:
        return False
    value = c.read32(inst, inst.args[2])
    c.write32(inst, inst.args[0], c.d.select(c.d.fcmp("uno", value, value), const(_NAN, 32), value))
    return True


def emit(c: Context, inst: Inst, row: Semantics) -> None:
    """One instruction, or both halves of a dual one: all sources are read before any write."""
    if _canonical(c, inst):
        return
    apply(_Machine(c), inst, row)


__all__ = ["emit", "immediate", "lookup"]

"""State shared by the emitters of a wave function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.semantics import Mode
from sassxlate.disasm.rdna3.tables.operand_codes import ALIASES, EXEC_LO, VCC_LO, VGPRS
from sassxlate.errors import EmulatorError, Where
from sassxlate.lowering.emulate.image.abi import PRIVATE_APERTURE_HI, SHARED_APERTURE_HI
from sassxlate.lowering.emulate.wave.addresses.adjacent_loads import Mate
from sassxlate.lowering.emulate.wave.registers import State
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Function, Module, Val, const

Isa = Literal["avx512", "avx2"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Between which values, inclusive, the first lane of a vector has to be, for all accesses that
    are made of it; ``sane``: whether there are any.  `access/limits.py`."""

    name: str
    lo: Val
    hi: Val
    sane: Val


@dataclass(frozen=True, slots=True)
class Arms:
    """Two ways of a condition that have met in the block ``join``: the places of their branch, of
    their ends, in the blocks ``blocks``, and of the values of both, before ``after``.
    `access/arms.py`."""

    cond: str
    join: str
    branch: int
    ends: tuple[int, int]
    blocks: tuple[str, str]
    after: int
    phis: int


@dataclass(slots=True)
class Context:
    """The function under construction and the instruction that is being compiled."""

    module: Module
    fn: Function
    d: LlvmDomain
    state: State
    align: Literal["natural", "unaligned"]
    strict: bool
    mode: Mode
    vgprs: int = VGPRS  # that a wave has
    scratch: int = 0  # bytes per lane, a lower bound for every launch
    # The SGPR pair that holds the arguments' address at first, and the bytes that are there.
    kernarg: tuple[int, int] | None = None
    rows: bool = True  # a wave may be two rows of a block: accesses are checked in halves
    pc: int = 0  # offset of the instruction, in bytes from the kernel's entry
    lane_stride: int | None = None  # of the access that is compiled, see `lane_strides`
    pattern: tuple[int, ...] | None = None  # the same, see `lane_patterns`
    mate: Mate | None = None  # the load that it may be done together with
    # What earlier loads found for their mates, by the mate's place: the dwords, and whether they
    # are there; and the same for the load that is compiled.
    held: dict[int, tuple[Val, Val]] = field(default_factory=dict[int, tuple[Val, Val]])
    loaded: tuple[Val, Val] | None = None
    spans: dict[int, Val] = field(default_factory=dict[int, Val])  # `Mate.first`: all are inside
    # Vectors that floating-point operations made since the last branch, see `arms`.
    floats: list[Val] = field(default_factory=list[Val])
    # Of accesses, by the vector that their addresses are made of.
    limits: dict[str, Limits] = field(default_factory=dict[str, Limits])
    arms: Arms | None = None  # the last ones, in a function that runs several waves
    # Lanes of vectors made of the threads' numbers, by their names: `addresses/threads.py`.
    lanes: dict[str, tuple[Val, int]] = field(default_factory=dict[str, tuple[Val, int]])
    dpp_enable: Val | None = None  # the lanes that an instruction with DPP writes
    # The immediates of an instruction that is compiled for all their values (`stencils`).
    immediates: tuple[Val, ...] = ()
    symbolic_pc: str = ""  # the same of `pc`, as an i32

    def error(self, inst: Inst, message: str, code: str = "SX0620") -> EmulatorError:
        return EmulatorError(code, message, Where(offset=self.pc, inst=inst.op))

    def displacement(self, inst: Inst, width: int, which: int = 0, unit: int = 1) -> Val:
        """The offset of a memory instruction in bytes, or its second one; `unit` scales both."""
        if self.immediates:
            whole = self.immediates[which]  # of 64 bits
            return whole if width == 64 else self.d.extract(whole, 0, width)
        return const((inst.imm2 if which else inst.imm) * unit, width)

    @property
    def pc_ref(self) -> str:
        """`pc` in LLVM IR, an i32."""
        return self.symbolic_pc or str(self.pc)

    # -- operands -------------------------------------------------------------------------

    def read32(self, inst: Inst, arg: Arg, part: int = 0) -> Val:
        """The `part`-th 32-bit register of an operand; a constant's bits."""
        st = self.state
        if isinstance(arg, V):
            return st.read_v(arg.index + part)
        if isinstance(arg, S):
            return st.read_s(arg.index + part)
        if isinstance(arg, I):
            return const(arg.value >> 32 * part, 32)
        if isinstance(arg, Sp):
            return self._special(inst, arg.name, part)
        raise self.error(inst, "a label is not an operand")

    def _special(self, inst: Inst, name: str, part: int) -> Val:
        st, d = self.state, self.d
        if name == "scc":
            return d.zext(st.read_scc(), 32)
        if name in ("vccz", "execz"):
            register = st.read_s(VCC_LO if name == "vccz" else EXEC_LO)
            return d.zext(d.eq(register, const(0, 32)), 32)
        if name.startswith("src_"):
            high = SHARED_APERTURE_HI if "shared" in name else PRIVATE_APERTURE_HI
            if name.endswith("limit"):
                return const(high if part else 0xFFFFFFFF, 32)
            return const(high if part else 0, 32)
        if name == "off":
            return const(0, 32)
        code = ALIASES.get(name)
        if code is None:
            raise self.error(inst, f"the operand {name} is not supported")
        return st.read_s(code + part)

    def read64(self, inst: Inst, arg: Arg) -> Val:
        if isinstance(arg, I):
            return const(arg.value, 64)
        return self.d.concat(self.read32(inst, arg, 1), self.read32(inst, arg, 0))

    def scalar_index(self, inst: Inst, arg: Arg) -> int:
        """The operand code of a scalar register."""
        if isinstance(arg, S):
            return arg.index
        if isinstance(arg, Sp) and arg.name in ALIASES:
            return ALIASES[arg.name]
        raise self.error(inst, "a scalar register is expected")

    def vgpr(self, inst: Inst, arg: Arg) -> int:
        if isinstance(arg, V):
            return arg.index
        raise self.error(inst, "a VGPR is expected")

    def write32(self, inst: Inst, arg: Arg, value: Val, part: int = 0) -> None:
        if isinstance(arg, V):
            self.state.write_v(arg.index + part, value)
            return
        if value.vec:
            raise self.error(inst, "a scalar destination would take a vector")
        self.state.write_s(self.scalar_index(inst, arg) + part, value)

    def write64(self, inst: Inst, arg: Arg, value: Val) -> None:
        self.write32(inst, arg, self.d.extract(value, 0, 32), 0)
        self.write32(inst, arg, self.d.extract(value, 32, 32), 1)


def is_off(arg: Arg) -> bool:
    return isinstance(arg, Sp) and arg.name in ("off", "null")

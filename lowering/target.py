"""The target: a processor whose code is written, with its registers, limits and entry state.

A target is one value of :class:`Target`.  All here run waves of 32 lanes in CU mode.  Those with
RDNA3's instructions share the tables of `sassxlate.disasm.rdna3`, to which the operands below
belong; for the others (``instructions``) only LLVM writes code (`lowering/tier`).

Sources: LLVM's AMDGPUUsage and the subtarget features in AMDGPU.td, which tests compare with what
clang's register allocator says (tests/lowering/test_target.py); RDNA3 ISA, 3.3 and 5.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from sassxlate.disasm.amdgpu_machines import (
    GENERIC,
    GENERIC_SHIFT,
    RDNA2,
    RDNA4,
    machine_number,
    parted,
    spelled,
)
from sassxlate.disasm.rdna3.instruction import I, S, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import SGPRS, VGPRS
from sassxlate.errors import LoweringError

# Operands of the instruction set in waves of 32 lanes: a mask of lanes is one scalar register.
LANES: Final = 32
EXEC: Final = Sp("exec_lo")
VCC: Final = Sp("vcc_lo")
NULL: Final = Sp("null")
OFF: Final = Sp("off")
ALL_ONES: Final = I(0xFFFFFFFF)
ZERO: Final = I(0)
_FIRST_PAIR: Final = S(0, 2)
Family: TypeAlias = Literal["RDNA2", "RDNA3", "RDNA4"]

Matrix = Literal["exact", "fast"]


@dataclass(frozen=True, slots=True)
class Counters:
    """The largest numbers of s_waitcnt and s_waitcnt_vscnt, which wait for nothing."""

    vm: int = 63
    lgkm: int = 63
    vs: int = 63
    exp: int = 7

    @property
    def largest(self) -> int:
        """The largest of those that count accesses to memory."""
        return max(self.vm, self.lgkm, self.vs)


@dataclass(frozen=True, slots=True)
class HazardWindows:
    """VALUs and transcendentals after which a transcendental's result can be read without a wait
    (LLVM's GCNHazardRecognizer, VALUTransUse; feature list 11_0_Common)."""

    trans_valu: int = 5
    trans_trans: int = 1


@dataclass(frozen=True, slots=True)
class Target:
    """A processor.  Sizes are of a compute unit, on which the whole of a block runs.

    ``vgprs_of_simd`` are 32-bit registers per lane that a SIMD has for all its waves, given to a
    wave in steps of ``vgpr_step``.  ``language`` is the first word of a region's text: that of the
    instruction set, which a model was trained on.  ``cpu_of_llvm`` is the processor that LLVM is
    asked for where the optimising tier writes the code; empty: the target itself.
    ``instructions`` are the family's; ``like`` names the target of RDNA3 with as many registers,
    whose rules decide about a kernel's arguments and largest block.
    """

    name: str
    vgprs_of_simd: int
    vgpr_step: int
    language: str = "gfx1100"
    cpu_of_llvm: str = ""
    matrix: Matrix = "exact"  # HMMA as NVIDIA computes it, or by v_wmma (rules/warp/matrix_fast.py)
    instructions: Family = "RDNA3"
    like: str = ""
    lanes: int = field(default=LANES, init=False)  # of a wave: the operands above are of 32
    simds: int = 2
    waves: int = 16  # that a SIMD holds
    workgroups: int = 16  # that a compute unit holds, of more than one wave: they need barriers
    threads: int = 1024  # of a workgroup
    vgprs: int = VGPRS  # that an instruction can name
    vgpr_granule: int = 8  # of the number in a kernel descriptor
    sgprs: int = SGPRS  # without VCC; every wave has all of them
    lds: int = 64 << 10  # bytes, all of which a workgroup can have
    lds_step: int = 512  # bytes in which it is given out
    kernarg_align: int = 8  # bytes
    # At entry: the kernel arguments' address, and the workgroup's x, y and z.  The ids follow
    # the user SGPRs, which are padded so that both together are 16 (UserSGPRInit16Bug of gfx1100
    # and gfx1102; the others do not mind).
    kernarg: S = _FIRST_PAIR
    user_sgprs: int = 13
    counters: Counters = field(default_factory=Counters)
    hazards: HazardWindows = field(default_factory=HazardWindows)

    @property
    def machine(self) -> int:
        """EF_AMDGPU_MACH of its code objects."""
        return machine_number(self.name)

    @property
    def generic_version(self) -> int:
        """The version of a processor that stands for a family; 0 for another."""
        return GENERIC[self.name][0] if self.name in GENERIC else 0

    @property
    def flags(self) -> int:
        """e_flags of its code objects: the machine and the generic version; all else is 0."""
        return self.machine | self.generic_version << GENERIC_SHIFT

    @property
    def code_object_version(self) -> int:
        """5, which ROCm 5.4 loads; 6 where e_flags have a generic version."""
        return 6 if self.generic_version else 5

    @property
    def cpu(self) -> str:
        """The processor whose code LLVM writes for it."""
        return self.cpu_of_llvm or self.name

    @property
    def end_program(self) -> bytes:
        """s_endpgm."""
        return bytes.fromhex("000081bf" if self.instructions == "RDNA2" else "0000b0bf")

    @property
    def has_rules(self) -> bool:
        """Whether the rules write code for it; for the others the optimising tier does."""
        return self.instructions == "RDNA3"

    @property
    def of_rules(self) -> Target:
        """The target whose rules' code the optimising tier begins with."""
        return TARGETS[self.like] if self.like else self

    @property
    def isa(self) -> str:
        """Its name in a code object's metadata (``amdhsa.target``)."""
        return f"amdgcn-amd-amdhsa--{self.name}"

    @property
    def group_id(self) -> tuple[S, S, S]:
        """The scalar registers with the workgroup's x, y and z at entry."""
        return S(self.user_sgprs), S(self.user_sgprs + 1), S(self.user_sgprs + 2)

    def given(self, vgprs: int) -> int:
        """Registers that a wave is given where its code uses so many VGPRs."""
        return -(-max(vgprs, 1) // self.vgpr_step) * self.vgpr_step

    def waves_of_simd(self, vgprs: int) -> int:
        """Waves that a SIMD holds of a kernel with so many VGPRs."""
        return min(self.waves, self.vgprs_of_simd // self.given(vgprs))

    def most_threads(self, vgprs: int) -> int:
        """Threads of a block that a compute unit has room for, of a kernel with so many VGPRs.

        AMD's library does not look; the hardware would never begin a larger block.
        """
        return self.simds * self.waves_of_simd(vgprs) * self.lanes


# 1.5 times the registers of others: LLVM's Feature1_5xVGPRs.
GFX1100: Final = Target("gfx1100", vgprs_of_simd=1536, vgpr_step=24)
GFX1101: Final = Target("gfx1101", vgprs_of_simd=1536, vgpr_step=24)
GFX1102: Final = Target("gfx1102", vgprs_of_simd=1024, vgpr_step=16)
GFX1103: Final = Target("gfx1103", vgprs_of_simd=1024, vgpr_step=16)
# What each of the family has.
GFX11_GENERIC: Final = Target("gfx11-generic", vgprs_of_simd=1024, vgpr_step=16)
# LLVM would write instructions that gfx1100 lacks.
_GFX115 = partial(Target, cpu_of_llvm=GFX11_GENERIC.name)
GFX1150: Final = _GFX115("gfx1150", vgprs_of_simd=1024, vgpr_step=16)
GFX1151: Final = _GFX115("gfx1151", vgprs_of_simd=1536, vgpr_step=24)
GFX1152: Final = _GFX115("gfx1152", vgprs_of_simd=1024, vgpr_step=16)
GFX1153: Final = _GFX115("gfx1153", vgprs_of_simd=1024, vgpr_step=16)
_RDNA4 = partial(Target, instructions="RDNA4", like="gfx1100", vgprs_of_simd=1536, vgpr_step=24)
_RDNA2 = partial(Target, instructions="RDNA2", like="gfx1102", vgprs_of_simd=1024, vgpr_step=16)

TARGETS: Final[Mapping[str, Target]] = MappingProxyType({
    target.name: target
    for target in (
        GFX1100, GFX1101, GFX1102, GFX1103, GFX1150, GFX1151, GFX1152, GFX1153, GFX11_GENERIC,
        *map(_RDNA4, RDNA4), *map(_RDNA2, RDNA2),
    )
})  # fmt: skip
DEFAULT: Final = GFX1100


def target_named(name: str) -> Target:
    """The target of a name, like gfx1100, or gfx1100:matrix-fast with products by v_wmma.

    Raises:
        LoweringError: SX0416, no such target.
    """
    alone, matrix = parted(name)
    found = TARGETS.get(alone)
    if found is not None and matrix == "fast":
        return replace(found, matrix="fast")
    if found is None or spelled(alone, matrix) != alone:
        raise LoweringError("SX0416", f"no target {name!r}: {', '.join(TARGETS)}")
    return found

"""The target: its registers, limits and entry state."""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import I, S, Sp

KERNARG = S(0, 2)

GROUP_ID = (S(13), S(14), S(15))

EXEC = Sp("exec_lo")

VCC = Sp("vcc_lo")

NULL = Sp("null")

OFF = Sp("off")

ALL_ONES = I(0xFFFFFFFF)

ZERO = I(0)

# A CU of RDNA3, on which the whole of a block runs: its SIMDs, the waves and VGPRs per lane of each
# SIMD, and the granularity of VGPR allocation (LLVM's AMDGPUUsage; 1,536 are gfx1100's).
SIMDS, WAVES, REGISTERS, STEP = 2, 16, 1536, 24

LANES = 32


def most_threads(vgprs: int) -> int:
    """Most threads of a block that fit in a CU, for a kernel with that many VGPRs.

    AMD's library does not check; the hardware would never start a larger block.
    """
    given = -(-max(vgprs, 1) // STEP) * STEP
    return SIMDS * min(WAVES, REGISTERS // given) * LANES

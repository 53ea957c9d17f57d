"""A wave's registers in memory, as stencils see them; native/hip/stencils.h has the same numbers.

A frame begins with an SxWave, whose scalar registers are the wave's: the one with operand code n is
dword n, EXEC included.  Then SCC and the buffers of out-of-line helpers, the VGPRs of 128 bytes
each, and the constants of the kernel, which an instruction reads as it reads scalar registers.
"""

from __future__ import annotations

from typing import Final

from sassxlate.lowering.emulate.image.abi import WAVE_SIZE, WaveLayout
from sassxlate.lowering.target import LANES

SGPR: Final = int(WaveLayout.SGPR)
SCC: Final = WAVE_SIZE  # a dword, 0 or 1
TARGET: Final = SCC + 8  # 64 bits: where a jump to an address in registers goes, in the code
LANE_MASK: Final = 0x340  # AVX2: EXEC as 32 dwords, 0 or -1
OUTER: Final = 0x3C0  # the library's SxWave
BUFFERS: Final = {
    "addr": (0x400, 256),
    "data": (0x500, 512),
    "lanes": (0x700, 128),
    "index": (0x780, 128),
    "pushed": (0x800, 128),
    "wide0": (0x900, 256),
    "wide1": (0xA00, 256),
    "wide2": (0xB00, 256),
}
VGPR: Final = 0xC00
VGPR_BYTES: Final = 4 * LANES
CONSTANTS: Final = VGPR + 256 * VGPR_BYTES

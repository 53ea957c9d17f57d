"""The contract with the native library; runtime_shim/native/abi.h has the same numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

IMAGE_MAGIC: Final = 0x42485853
IMAGE_VERSION: Final = 2
HEADER_SIZE: Final = 4096
HEADER_FORMAT: Final = "<IIQQQQII256s"  # SxImageHeader

SHARED_APERTURE_HI: Final = 0x00010000
PRIVATE_APERTURE_HI: Final = 0x00020000

FLAG_STRICT: Final = 1
FLAG_COUNTS: Final = 2
FLAG_TURNS: Final = 4
FLAG_QUICK: Final = 8
FLAG_RUNS: Final = 16
FLAG_PARTIAL: Final = 32
ISA_AVX2: Final = 0
ISA_AVX512: Final = 1


class DeviceFault(IntEnum):
    """SxFault: why a wave stopped."""

    ADDRESS = 1
    MISALIGNED = 2
    TRAP = 3
    LDS = 4
    SCRATCH = 5
    ILLEGAL = 6
    STRICT = 7
    TRACED = 8


TRAP_MISALIGNED: Final = 16  # the number of s_trap that stands for CUDA's error 716


def trap_fault(number: int) -> DeviceFault:
    """What s_trap of a number is.  Code whose accesses are not the SASS's one by one checks their
    alignment itself, and tells so."""
    return DeviceFault.MISALIGNED if number == TRAP_MISALIGNED else DeviceFault.TRAP


class Access(IntEnum):
    """SxAccess, an argument of SxRuntime.resolve."""

    READ = 1
    WRITE = 2
    ATOMIC = 4


class Rt(IntEnum):
    """Index of a function pointer in SxRuntime."""

    BARRIER = 0
    YIELD = 1
    RESOLVE = 2
    FAULT = 3
    CLOCK = 4
    MESSAGE = 5
    FIND = 7
    LEAVE = 8


RUNTIME_STOP: Final = 6  # the slot of SxRuntime.stop, a number
RUNTIME_SLOTS: Final = 16
TURN: Final = 0x80000000  # SX_TURN, in YIELD's pc


class WaveLayout(IntEnum):
    """Byte offsets of SxWave's members."""

    SGPR = 0x000
    FOLLOWS = 0x1C0
    MORE = 0x1C4
    STEP = 0x1C8
    ROWS = 0x1D0
    MOST_X = 0x1D4
    MOST_Y = 0x1D8
    MOST_Z = 0x1DC
    V0 = 0x200
    EXEC = 0x280
    LDS_SIZE = 0x284
    LDS = 0x288
    SCRATCH = 0x290
    SCRATCH_SIZE = 0x298
    ARENA_BASE = 0x2A0
    ARENA_SIZE = 0x2A8
    RT = 0x2B0
    FUEL = 0x2B8
    HOST = 0x2C0
    STRICT_SEED = 0x2C8
    CODE_BASE = 0x2D0
    COUNTS = 0x2D8
    EXECUTED = 0x2E0
    TRACE = 0x2E8
    TRACED = 0x2F0
    ARGUMENTS = 0x2F8


WAVE_SIZE: Final = 0x300


class LeftLayout(IntEnum):
    """Byte offsets of SxLeft's members."""

    SCALARS = 0x000
    STORED = 0x200
    VGPR = 0x240

"""The number of warps or waves of a kernel that fit on a multiprocessor or compute unit at once.

An upper bound from the sizes of a kernel alone, as the vendors' own calculators give it; the
occupancy that a program reaches depends on its grid, too.

NVIDIA (CUDA C++ Programming Guide, technical specifications by compute capability, and the
calculator in cuda_occupancy.h): registers are given to a warp in steps of 256, from four parts of
16,384 each; shared memory in steps of 128 bytes, and from compute capability 8.0 on a block takes
1 KiB more for the driver.

AMD (LLVM's AMDGPUUsage and AMDGPUBaseInfo, waves of 32 in CU mode): a compute unit has SIMDs that
hold so many waves and VGPRs, LDS in steps, and room for so many workgroups that need barriers; the
numbers are the target's.  SGPRs do not count: each wave has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sassxlate.lowering.target import Target

WARP = 32
USUAL = 256  # threads of a block assumed if their number is unknown


@dataclass(frozen=True, slots=True)
class Occupancy:
    """``resident`` of ``most`` warps or waves, in ``blocks`` blocks of ``threads``; ``limit`` names
    the resource that limits the number."""

    resident: int
    most: int
    blocks: int
    threads: int
    limit: str

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.resident / self.most


@dataclass(frozen=True, slots=True)
class _Sm:
    warps: int
    blocks: int
    shared: int  # KiB per multiprocessor
    step: int = 128  # granularity of shared memory, bytes
    taken: int = 1024  # bytes taken by the driver per block


_SMS: Final[Mapping[int, _Sm]] = {
    75: _Sm(32, 16, 64, 256, 0),
    80: _Sm(64, 32, 164),
    86: _Sm(48, 16, 100),
    87: _Sm(48, 16, 164),
    89: _Sm(48, 24, 100),
    90: _Sm(64, 32, 228),
    100: _Sm(64, 32, 228),
    103: _Sm(64, 32, 228),
    110: _Sm(48, 24, 228),
    120: _Sm(48, 24, 100),
    121: _Sm(48, 24, 100),
}
_PARTS, _PART = 4, 16384  # of the register file of a multiprocessor


def of_sm(
    arch: int, registers: int, shared: int, threads: int, dynamic: int = 0
) -> Occupancy | None:
    """For a kernel on sm_``arch``; None if the architecture's sizes are not known here.

    ``shared`` is as the cubin has it: from sm_90 on with the driver's KiB.
    """
    sm = _SMS.get(arch)
    if sm is None or threads < 1:
        return None
    warps = -(-threads // WARP)
    each = -(-max(registers, 1) * WARP // 256) * 256
    used = shared + dynamic + (sm.taken if arch < 90 else 0)
    used = max(-(-used // sm.step) * sm.step, sm.taken)
    limits = {
        "warps": sm.warps // warps,
        "blocks": sm.blocks,
        "registers": _PART // each * _PARTS // warps,
        "shared memory": (sm.shared << 10) // used if used else sm.blocks,
    }
    return _least(limits, warps, sm.warps, threads)


def of_cu(target: Target, vgprs: int, lds: int, threads: int, dynamic: int = 0) -> Occupancy | None:
    """Of a kernel on a compute unit of the target, static and dynamic LDS in bytes."""
    if threads < 1:
        return None
    waves = -(-threads // target.lanes)
    used = -(-(lds + dynamic) // target.lds_step) * target.lds_step
    most = target.simds * target.waves
    limits = {
        "waves": most // waves,
        "workgroups": target.workgroups if waves > 1 else most,
        "VGPRs": target.simds * target.waves_of_simd(vgprs) // waves,
        "LDS": target.lds // used if used else most,
    }
    return _least(limits, waves, most, threads)


def _least(limits: Mapping[str, int], each: int, most: int, threads: int) -> Occupancy:
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    return Occupancy(blocks * each, most, blocks, threads, limit)


__all__ = ["USUAL", "Occupancy", "of_cu", "of_sm"]

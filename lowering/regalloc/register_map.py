"""The place of each SASS register."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sassxlate.disasm.rdna3.instruction import S, V
from sassxlate.lowering.target import Target


@dataclass(frozen=True, slots=True)
class LaneSlot:
    """A mask kept in one lane of a VGPR."""

    vgpr: int
    lane: int


Slot = S | LaneSlot


@dataclass(frozen=True, slots=True)
class RegisterMap:
    """Every fixed place of a kernel; temporaries start at ``vtemp_base`` and in ``stemps``."""

    target: Target
    r: Mapping[int, int]  # R index -> VGPR
    spilled: Mapping[int, int]  # R index -> byte offset in scratch
    ur: Mapping[int, int]  # UR index -> SGPR
    ur_lanes: Mapping[int, int]  # UR index -> VGPR, one copy per lane
    p: Mapping[int, S]
    up: Mapping[int, S]
    live: S
    save_exec: S
    ready: Mapping[int, Slot]  # byte offset of a pending point -> its mask
    regions: tuple[Slot, ...]
    consts: Mapping[tuple[int, int], S]  # preloaded words: (bank, byte offset) -> SGPR
    stemps: tuple[int, ...]
    tid: V
    vtemp_base: int
    lane_vgprs: tuple[int, ...]
    scratch_spill: int  # bytes of spill slots per lane
    barriers: Mapping[int, int] = field(default_factory=dict[int, int])  # B index -> VGPR of masks

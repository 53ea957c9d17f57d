"""Names of the special registers that S2R and CS2R read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

# number -> (first generation, name) entries, oldest first
_NAMES: Mapping[int, str] = {
    0: "SR_LANEID", 1: "SR_CLOCK", 2: "SR_VIRTCFG", 3: "SR_VIRTID", 15: "SR_ORDERING_TICKET",
    16: "SR_PRIM_TYPE", 17: "SR_INVOCATION_ID", 18: "SR_Y_DIRECTION", 19: "SR_THREAD_KILL",
    20: "SM_SHADER_TYPE", 21: "SR_DIRECTCBEWRITEADDRESSLOW", 22: "SR_DIRECTCBEWRITEADDRESSHIGH",
    23: "SR_DIRECTCBEWRITEENABLED", 25: "SR_MACHINE_ID_1", 26: "SR_MACHINE_ID_2",
    27: "SR_MACHINE_ID_3", 28: "SR_AFFINITY", 29: "SR_INVOCATION_INFO",
    30: "SR_WSCALEFACTOR_XY", 31: "SR_WSCALEFACTOR_Z", 32: "SR_TID", 33: "SR_TID.X",
    34: "SR_TID.Y", 35: "SR_TID.Z", 37: "SR_CTAID.X", 38: "SR_CTAID.Y", 39: "SR_CTAID.Z",
    40: "SR_NTID", 41: "SR_CirQueueIncrMinusOne", 42: "SR_NLATC", 44: "SR_SM_SPA_VERSION",
    45: "SR_MULTIPASSSHADERINFO", 46: "SR_LWINHI", 47: "SR_SWINHI", 48: "SR_SWINLO",
    49: "SR_SWINSZ", 50: "SR_SMEMSZ", 51: "SR_SMEMBANKS", 52: "SR_LWINLO", 53: "SR_LWINSZ",
    54: "SR_LMEMLOSZ", 55: "SR_LMEMHIOFF", 56: "SR_EQMASK", 57: "SR_LTMASK", 58: "SR_LEMASK",
    59: "SR_GTMASK", 60: "SR_GEMASK", 61: "SR_REGALLOC", 62: "SR_BARRIERALLOC",
    64: "SR_GLOBALERRORSTATUS", 66: "SR_WARPERRORSTATUS", 67: "SR_VIRTUALSMID",
    68: "SR_VIRTUALENGINEID", 80: "SR_CLOCKLO", 81: "SR_CLOCKHI", 82: "SR_GLOBALTIMERLO",
    83: "SR_GLOBALTIMERHI", 84: "SR_ESR_PC", 85: "SR_ESR_PC_HI", 96: "SR_HWTASKID",
    97: "SR_CIRCULARQUEUEENTRYINDEX", 98: "SR_CIRCULARQUEUEENTRYADDRESSLOW",
    99: "SR_CIRCULARQUEUEENTRYADDRESSHIGH", 132: "SR_VARIABLE_RATE", 133: "__HIR0X000",
    255: "SRZ",
    **{100 + i: f"SR_PM{'_HI' if i & 1 else ''}{i >> 1}" for i in range(16)},
    **{116 + i: f"SR_SNAP_PM{'_HI' if i & 1 else ''}{i >> 1}" for i in range(16)},
}  # fmt: skip

# Registers that only some generations have: number -> (first, last, name).
_LATER: Mapping[int, tuple[tuple[int, int, str], ...]] = {
    24: ((75, 75, "SR_MACHINE_ID_0"), (80, 999, "SR_SW_SCRATCH")),
    65: ((90, 999, "SR_CGAERRORSTATUS"),),
    134: ((90, 90, "SR_WARPGROUP_INFO"),),
    135: ((90, 90, "SR_WARPGROUPID"),),
    136: ((90, 999, "SR_CgaCtaId"),),
    137: ((90, 999, "SR_GpcLocalCgaId"),),
    138: ((100, 999, "SR_CgaSize"),),
    139: ((90, 999, "SR_CTARegPoolSz"),),
    141: ((100, 999, "SR_TMemSz"),),
    142: ((120, 999, "SR_CONTEXT_SAVE_ADDR_LO"),),
    143: ((120, 999, "SR_CONTEXT_SAVE_ADDR_HI"),),
}


def special_name(number: int, generation: int) -> str:
    """nvdisasm's name of a special register; ``SR<n>`` if it has none."""
    for first, last, name in _LATER.get(number, ()):
        if first <= generation <= last:
            return name
    return _NAMES.get(number, f"SR{number}")


@cache
def special_numbers(generation: int) -> Mapping[str, int]:
    """The inverse of :func:`special_name`."""
    return {special_name(number, generation): number for number in reversed(range(256))}

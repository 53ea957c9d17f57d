"""The processors of AMD's code objects: the machine numbers in their ELF files.

The one table of their names.  Source: LLVM's AMDGPUUsage, "AMDGPU Machine Types".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MACHINE_MASK: Final = 0xFF  # EF_AMDGPU_MACH, in e_flags
# EF_AMDGPU_MACH_AMDGCN_*: those that a message may have to name.
MACHINES: Final[Mapping[int, str]] = MappingProxyType({
    0x2A: "gfx803", 0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x33: "gfx1010",
    0x35: "gfx1012", 0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032", 0x39: "gfx1033",
    0x3D: "gfx1035", 0x3E: "gfx1034", 0x3F: "gfx90a", 0x41: "gfx1100", 0x43: "gfx1150",
    0x44: "gfx1103", 0x45: "gfx1036", 0x46: "gfx1101", 0x47: "gfx1102", 0x48: "gfx1200",
    0x4A: "gfx1151", 0x4C: "gfx942", 0x4E: "gfx1201", 0x4F: "gfx950", 0x53: "gfx10-3-generic",
    0x54: "gfx11-generic", 0x55: "gfx1152", 0x58: "gfx1153", 0x59: "gfx12-generic",
})  # fmt: skip
# Those whose instructions are RDNA3's, which the tables of `sassxlate.disasm.rdna3` hold; the first
# is the one that a text means where it names none.  Those from gfx1150 on have more instructions,
# which our code does not use and no table holds.
RDNA3: Final = ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152",
                "gfx1153", "gfx11-generic")  # fmt: skip
# Those whose instructions are others, for which code is written by LLVM alone, and not read.
RDNA4: Final = ("gfx1200", "gfx1201", "gfx12-generic")
RDNA2: Final = ("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036",
                "gfx10-3-generic")  # fmt: skip
CODE_FOR: Final = (*RDNA3, *RDNA4, *RDNA2)
CODE_FOR_TEXT: Final = f"{', '.join(RDNA3)}; by LLVM alone {', '.join((*RDNA4, *RDNA2))}"
# Processors whose code runs on all of a family: the version that e_flags must have at least (their
# code objects are of version 6), and the processor of the family whose place they take where
# hardware is described.
GENERIC: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {
        "gfx10-3-generic": (1, "gfx1030"),
        "gfx11-generic": (1, "gfx1100"),
        "gfx12-generic": (1, "gfx1200"),
    }
)
GENERIC_SHIFT: Final = 24  # EF_AMDGPU_GENERIC_VERSION_OFFSET, in e_flags
# A card of each: the identifier of its PCI device (pci.ids, vendor 1002).
PCI_DEVICES: Final[Mapping[str, int]] = MappingProxyType(
    {"gfx1100": 0x744C, "gfx1101": 0x747E, "gfx1102": 0x7480, "gfx1103": 0x15BF,
     "gfx1150": 0x150E, "gfx1151": 0x1586, "gfx11-generic": 0x744C}
)  # fmt: skip
RDNA3_TEXT: Final = f"{', '.join(RDNA3[:-1])} or {RDNA3[-1]}"  # for messages
_MATRIX: Final = ":matrix-"


def spelled(name: str, matrix: str = "exact") -> str:
    """What :func:`sassxlate.lowering.target.target_named` takes for a processor and a way for
    products of matrices."""
    return name if matrix == "exact" else f"{name}{_MATRIX}{matrix}"


def parted(name: str) -> tuple[str, str]:
    """The two that :func:`spelled` was given."""
    alone, _, matrix = name.partition(_MATRIX)
    return alone, matrix or "exact"


def machine_number(name: str) -> int:
    """EF_AMDGPU_MACH of a processor of :data:`MACHINES`; KeyError for another."""
    return {known: number for number, known in MACHINES.items()}[name]


def gfx_version(name: str) -> int:
    """major * 10000 + minor * 100 + stepping of a processor such as gfx1103, as the kernel driver
    counts (drivers/gpu/drm/amd/amdkfd/kfd_device.c); of a generic one, that of its stand-in."""
    name = GENERIC[name][1] if name in GENERIC else name
    major, minor, stepping = name[3:-2], name[-2], name[-1]
    return int(major) * 10000 + int(minor, 16) * 100 + int(stepping, 16)


def machine_name(flags: int) -> str:
    """The processor that an ELF file's e_flags name, or what they say instead of a known one."""
    number = flags & MACHINE_MASK
    return MACHINES.get(number, f"machine {number:#x}")


def bundle_machine(entry: str) -> str:
    """The processor in the name of an offload bundle's entry, such as
    ``hipv4-amdgcn-amd-amdhsa--gfx1100:xnack-``; empty for the host's."""
    if "amdgcn" not in entry.split("-"):
        return ""
    last = entry.partition(":")[0].rsplit("--", 1)[-1]
    return last if last.startswith("gfx") else last.rsplit("-", 1)[-1]

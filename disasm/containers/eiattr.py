"""The EIATTR records of .nv.info sections: their numbers, NVIDIA's names, and their layout.

A record is u8 format, u8 id, then by format: 1 (NVAL) u16 unused, 2 (BVAL) u8 value and u8 unused,
3 (HVAL) u16 value, 4 (SVAL) u16 length and that many bytes.  The names were read off cuobjdump 13.1
by giving it a cubin with each number in turn; a test repeats that where cuobjdump is found.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Literal

from sassxlate.disasm.containers.elf import fail
from sassxlate.disasm.containers.values import Attribute

# Names by number, from 0.  None: cuobjdump 13.1 prints "unknown".
_NAMES: tuple[str | None, ...] = (
    "ERROR", "PAD", "IMAGE_SLOT", "JUMPTABLE_RELOCS", "CTAIDZ_USED", "MAX_THREADS",
    "IMAGE_OFFSET", "IMAGE_SIZE", "TEXTURE_NORMALIZED", "SAMPLER_INIT", "PARAM_CBANK",
    "SMEM_PARAM_OFFSETS", "CBANK_PARAM_OFFSETS", "SYNC_STACK", "TEXID_SAMPID_MAP", "EXTERNS",
    "REQNTID", "FRAME_SIZE", "MIN_STACK_SIZE", "SAMPLER_FORCE_UNNORMALIZED",
    "BINDLESS_IMAGE_OFFSETS", "BINDLESS_TEXTURE_BANK", "BINDLESS_SURFACE_BANK", "KPARAM_INFO",
    "SMEM_PARAM_SIZE", "CBANK_PARAM_SIZE", "QUERY_NUMATTRIB", "MAXREG_COUNT",
    "EXIT_INSTR_OFFSETS", "S2RCTAID_INSTR_OFFSETS", "CRS_STACK_SIZE", "NEED_CNP_WRAPPER",
    "NEED_CNP_PATCH", "EXPLICIT_CACHING", "ISTYPEP_USED", "MAX_STACK_SIZE", "SUQ_USED",
    "LD_CACHEMOD_INSTR_OFFSETS", "LOAD_CACHE_REQUEST", "ATOM_SYS_INSTR_OFFSETS",
    "COOP_GROUP_INSTR_OFFSETS", "COOP_GROUP_MASK_REGIDS", "SW1850030_WAR", "WMMA_USED",
    "HAS_PRE_V10_OBJECT", "ATOMF16_EMUL_INSTR_OFFSETS", "ATOM16_EMUL_INSTR_REG_MAP", "REGCOUNT",
    "SW2393858_WAR", "INT_WARP_WIDE_INSTR_OFFSETS", "SHARED_SCRATCH", "STATISTICS",
    "INDIRECT_BRANCH_TARGETS", "SW2861232_WAR", "SW_WAR", "CUDA_API_VERSION", "NUM_MBARRIERS",
    "MBARRIER_INSTR_OFFSETS", "COROUTINE_RESUME_ID_OFFSETS", "SAM_REGION_STACK_SIZE",
    "PER_REG_TARGET_PERF_STATS", "CTA_PER_CLUSTER", "EXPLICIT_CLUSTER", "MAX_CLUSTER_RANK",
    "INSTR_REG_MAP", "RESERVED_SMEM_USED", "RESERVED_SMEM_0_SIZE", "UCODE_SECTION_DATA",
    "UNUSED_LOAD_BYTE_OFFSET", "KPARAM_INFO_V2", "SYSCALL_OFFSETS",
    "SW_WAR_MEMBAR_SYS_INSTR_OFFSETS", "GRAPHICS_GLOBAL_CBANK", "SHADER_TYPE",
    "VRC_CTA_INIT_COUNT", "TOOLS_PATCH_FUNC", "NUM_BARRIERS", "TEXMODE_INDEPENDENT",
    "PERF_STATISTICS", "AT_ENTRY_FRAGMENTS", "SPARSE_MMA_MASK", "TCGEN05_1CTA_USED",
    "TCGEN05_2CTA_USED", "GEN_ERRBAR_AT_EXIT", "REG_RECONFIG", "ANNOTATIONS", None,
    "STACK_CANARY_TRAP_OFFSETS", "STUB_FUNCTION_KIND", "LOCAL_CTA_ASYNC_STORE_OFFSETS",
    "MERCURY_FINALIZER_OPTIONS", "BLOCKS_ARE_CLUSTERS", "SANITIZE", "SYSCALLS_FALLBACK",
    "CUDA_REQ", "MERCURY_ISA_VERSION", None, "RTCORE_ENTRY",
)  # fmt: skip

NAMES: tuple[str, ...] = tuple(
    f"EIATTR_{name}" if name else f"EIATTR_{number:#04x}" for number, name in enumerate(_NAMES)
)
IDS: dict[str, int] = {name: number for number, name in enumerate(NAMES)}

_NVAL, _BVAL, _HVAL, _SVAL = 1, 2, 3, 4
_FORMATS: Mapping[int, Literal["NVAL", "BVAL", "HVAL", "SVAL"]] = {
    _NVAL: "NVAL", _BVAL: "BVAL", _HVAL: "HVAL", _SVAL: "SVAL",
}  # fmt: skip


def attribute_name(number: int) -> str:
    """NVIDIA's name, or ``EIATTR_0x56`` for a number without a known one."""
    return NAMES[number] if number < len(NAMES) else f"EIATTR_{number:#04x}"


def parse_attributes(data: memoryview, offset: int, section: str) -> tuple[Attribute, ...]:
    """The records of one .nv.info section; ``offset`` is the section's in the file.

    Raises ContainerError SX0123.
    """
    found: list[Attribute] = []
    at, end = 0, len(data)
    while at < end:
        if end - at < 4:
            if not any(data[at:]):
                break  # padding
            raise fail("SX0123", f"{section} ends within a record", offset + at)
        form, number = data[at], data[at + 1]
        (half,) = struct.unpack_from("<H", data, at + 2)
        if form == _NVAL:
            value, step = b"", 4
        elif form == _BVAL:
            value, step = bytes(data[at + 2 : at + 3]), 4
        elif form == _HVAL:
            value, step = bytes(data[at + 2 : at + 4]), 4
        elif form == _SVAL:
            if half > end - at - 4:
                raise fail(
                    "SX0123", f"a record of {section} is longer than the section", offset + at
                )
            value, step = bytes(data[at + 4 : at + 4 + half]), 4 + half
        else:
            raise fail("SX0123", f"{section} has a record of unknown format {form}", offset + at)
        found.append(Attribute(number, attribute_name(number), value, _FORMATS[form]))
        at += step
    return tuple(found)


def words(attribute: Attribute, count: int | None = None) -> tuple[int, ...]:
    """The value as 32-bit words; ``count``: exactly that many.  Raises ContainerError SX0124."""
    size = len(attribute.value)
    if size % 4 or (count is not None and size != 4 * count):
        raise fail("SX0124", f"{attribute.name} has {size} bytes")
    return struct.unpack(f"<{size // 4}I", attribute.value)


def scalar(attribute: Attribute) -> int:
    """The value as one unsigned number of 0 to 4 bytes.  Raises ContainerError SX0124."""
    if len(attribute.value) > 4:
        raise fail("SX0124", f"{attribute.name} has {len(attribute.value)} bytes")
    return int.from_bytes(attribute.value, "little")


def branch_targets(attribute: Attribute) -> dict[int, tuple[int, ...]]:
    """INDIRECT_BRANCH_TARGETS: branch -> its targets, all as bytes from the section's start.

    A list of {u32 offset, u16 and u16 (not understood, 0), u32 n, n * u32 target}.
    Raises ContainerError SX0124.
    """
    data = words(attribute)
    found: dict[int, tuple[int, ...]] = {}
    at = 0
    while at < len(data):
        if len(data) - at < 3 or data[at + 2] > len(data) - at - 3:
            raise fail("SX0124", f"{attribute.name} ends within a list of targets")
        count = data[at + 2]
        found[data[at]] = data[at + 3 : at + 3 + count]
        at += 3 + count
    return found


def found_targets(
    listed: dict[int, tuple[int, ...]], table: bytes, size: int
) -> dict[int, tuple[int, ...]]:
    """The targets, with those of branches for which only zeros are listed, as ptxas 11.8 does for
    some of sm_90: all offsets of instructions among the words of ``table``, the kernel's own
    constants, where nvcc keeps the tables of such branches.  ``size``: of the code, in bytes."""
    numbers = struct.unpack_from(f"<{len(table) // 4}I", table)
    possible = tuple(sorted({n for n in numbers if n % 16 == 0 and 0 < n < size}))
    return {
        at: possible if possible and not any(targets) else targets for at, targets in listed.items()
    }

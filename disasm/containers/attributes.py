"""The records of .nv.info as values, by a table with one row per kind of payload.

The layouts were read off what cuobjdump 13.1 prints for each number with known contents.  A record
whose layout is not known keeps its bytes; one that contradicts its layout is an error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sassxlate.disasm.containers import eiattr
from sassxlate.disasm.containers.elf import SHT_SYMTAB, Elf, Section, fail
from sassxlate.disasm.containers.values import Attribute
from sassxlate.errors import ContainerError

Value: TypeAlias = "int | str | bool | list[Value] | dict[str, Value]"
Names: TypeAlias = Callable[[int], str]

_STATISTICS = (
    "instructions", "loops", "non_divergent_branches", "divergent_branches", "local_spill_bytes",
    "frame_spill_bytes", "local_loads", "local_stores", "global_loads", "global_stores",
    "texture_reads", "surface_reads", "surface_writes", "shared_loads", "shared_stores",
)  # fmt: skip


# Names of the records of .nv.compat by number, from 0; None: not seen.
_COMPATIBILITY = (
    "ERROR", "PAD", "ISA_CLASS", "INST_TENSORMAP_V1", "INST_TCGEN05_MMA_DEPRECATED",
    "INST_TCGEN05_MMA", "ENABLE_OPPORTUNISTIC_FINALIZATION", "MERCURY_ISA_MAJOR_MINOR_VERSION",
    "MERCURY_ISA_PATCH_VERSION", "CUDA_ACCELERATOR_TARGET", None, "CAN_FASTPATH_FINALIZE",
)  # fmt: skip
COMPATIBILITY = ".nv.compat"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a section, with its payload read; ``value`` is hexadecimal text if unread."""

    section: str
    attribute: Attribute
    value: Value
    known: bool


def _symbol_value(key: str) -> Callable[[Attribute, Names], Value]:
    def read(record: Attribute, names: Names) -> Value:
        symbol, value = eiattr.words(record, 2)
        # -1: no bound is known, as for recursion
        return {"function": names(symbol), key: value if value < 1 << 31 else "unknown"}

    return read


def _symbols(record: Attribute, names: Names) -> Value:
    return [names(number) for number in eiattr.words(record)]


def _offsets(record: Attribute, names: Names) -> Value:
    return list(eiattr.words(record))


def _dimensions(record: Attribute, names: Names) -> Value:
    x, y, z = eiattr.words(record, 3)
    return {"x": x, "y": y, "z": z}


def _pairs(first: str, second: str) -> Callable[[Attribute, Names], Value]:
    def read(record: Attribute, names: Names) -> Value:
        data = eiattr.words(record)
        if len(data) % 2:
            raise fail("SX0124", f"{record.name} has {len(record.value)} bytes")
        pairs = zip(data[::2], data[1::2], strict=True)
        return [{first: a, second: b} for a, b in pairs]

    return read


def _one_pair(first: str, second: str) -> Callable[[Attribute, Names], Value]:
    def read(record: Attribute, names: Names) -> Value:
        a, b = eiattr.words(record, 2)
        return {first: a, second: b}

    return read


def _parameter(record: Attribute, names: Names) -> Value:
    index, place, shape = eiattr.words(record, 3)
    return {
        "index": index,
        "ordinal": place & 0xFFFF,
        "offset": place >> 16,
        "size": shape >> 18,
        "log_alignment": shape & 0xFF,
        "space": shape >> 8 & 0xF,
        "cbank": shape >> 12 & 0x1F,
    }


def _parameter_v2(record: Attribute, names: Names) -> Value:
    if len(record.value) != 12:
        raise fail("SX0124", f"{record.name} has {len(record.value)} bytes")
    index, ordinal, offset, size, rest = struct.unpack("<IHHHH", record.value)
    return {
        "index": index,
        "ordinal": ordinal,
        "offset": offset,
        "size": size,
        "log_alignment": rest & 0xFF,
        "space": rest >> 8 & 0xF,
    }


def _parameter_bank(record: Attribute, names: Names) -> Value:
    symbol, place = eiattr.words(record, 2)
    return {"section": names(symbol), "offset": place & 0xFFFF, "size": place >> 16}


def _branches(record: Attribute, names: Names) -> Value:
    return [
        {"offset": at, "targets": list(targets)}
        for at, targets in eiattr.branch_targets(record).items()
    ]


def _barriers(record: Attribute, names: Names) -> Value:
    data = eiattr.words(record)
    if len(data) % 4:
        raise fail("SX0124", f"{record.name} has {len(record.value)} bytes")
    return [
        {"offset": at, "register": register, "displacement": displacement, "kind": kind}
        for at, register, displacement, kind in zip(*(data[i::4] for i in range(4)), strict=True)
    ]


def _statistics(record: Attribute, names: Names) -> Value:
    data = eiattr.words(record)
    if len(data) > len(_STATISTICS):
        raise fail("SX0124", f"{record.name} has {len(record.value)} bytes")
    return dict(zip(_STATISTICS, data, strict=False))


def _version(record: Attribute, names: Names) -> Value:
    """CUDA_API_VERSION counts tens: 130 is 13.0."""
    number = eiattr.scalar(record)
    return f"{number // 10}.{number % 10}"


def _isa_version(record: Attribute, names: Names) -> Value:
    number = eiattr.scalar(record)
    return f"{number >> 8}.{number & 0xFF}"


def _scalar(record: Attribute, names: Names) -> Value:
    return eiattr.scalar(record)


_READERS: Mapping[str, Callable[[Attribute, Names], Value]] = {
    "REGCOUNT": _symbol_value("registers"),
    "FRAME_SIZE": _symbol_value("bytes"),
    "MIN_STACK_SIZE": _symbol_value("bytes"),
    "MAX_STACK_SIZE": _symbol_value("bytes"),
    "SAM_REGION_STACK_SIZE": _symbol_value("bytes"),
    "LOAD_CACHE_REQUEST": _symbol_value("on"),
    "EXTERNS": _symbols,
    **dict.fromkeys(
        (
            "EXIT_INSTR_OFFSETS", "S2RCTAID_INSTR_OFFSETS", "LD_CACHEMOD_INSTR_OFFSETS",
            "ATOM_SYS_INSTR_OFFSETS", "COOP_GROUP_INSTR_OFFSETS", "COOP_GROUP_MASK_REGIDS",
            "ATOMF16_EMUL_INSTR_OFFSETS", "INT_WARP_WIDE_INSTR_OFFSETS", "SYSCALL_OFFSETS",
            "SW_WAR_MEMBAR_SYS_INSTR_OFFSETS", "STACK_CANARY_TRAP_OFFSETS",
            "LOCAL_CTA_ASYNC_STORE_OFFSETS", "UNUSED_LOAD_BYTE_OFFSET", "SW2861232_WAR",
            "BINDLESS_IMAGE_OFFSETS", "JUMPTABLE_RELOCS", "SMEM_PARAM_OFFSETS",
            "CBANK_PARAM_OFFSETS",
        ),
        _offsets,
    ),
    **dict.fromkeys(("MAX_THREADS", "REQNTID", "CTA_PER_CLUSTER"), _dimensions),
    "KPARAM_INFO": _parameter,
    "KPARAM_INFO_V2": _parameter_v2,
    "PARAM_CBANK": _parameter_bank,
    "INDIRECT_BRANCH_TARGETS": _branches,
    "MBARRIER_INSTR_OFFSETS": _barriers,
    "ATOM16_EMUL_INSTR_REG_MAP": _pairs("offset", "register"),
    "INSTR_REG_MAP": _pairs("offset", "register"),
    "COROUTINE_RESUME_ID_OFFSETS": _pairs("id", "offset"),
    "SHARED_SCRATCH": _one_pair("offset", "bytes"),
    "STATISTICS": _statistics,
    "CUDA_API_VERSION": _version,
    "MERCURY_ISA_VERSION": _isa_version,
    **dict.fromkeys(
        (
            "CRS_STACK_SIZE", "SW_WAR", "NUM_MBARRIERS", "NUM_BARRIERS", "MAXREG_COUNT",
            "MAX_CLUSTER_RANK", "CBANK_PARAM_SIZE", "SMEM_PARAM_SIZE", "VRC_CTA_INIT_COUNT",
            "RESERVED_SMEM_0_SIZE", "SHADER_TYPE", "SPARSE_MMA_MASK", "TOOLS_PATCH_FUNC",
            "STUB_FUNCTION_KIND", "GRAPHICS_GLOBAL_CBANK", "TEXMODE_INDEPENDENT",
            "REG_RECONFIG",
        ),
        _scalar,
    ),
}  # fmt: skip


def read(record: Attribute, names: Names) -> tuple[Value, bool]:
    """(the record's value, whether its layout is known).  Raises ContainerError SX0124."""
    if not record.value:
        return True, True  # a flag: the presence of the record is its value
    reader = _READERS.get(record.name.removeprefix("EIATTR_"))
    if reader is None:
        if record.format in ("BVAL", "HVAL"):
            return eiattr.scalar(record), True
        return record.value.hex(), False
    return reader(record, names), True


def _compatibility(section: Section) -> Iterator[Record]:
    """The records of .nv.compat: their own numbers, the same layout."""
    for record in eiattr.parse_attributes(section.data, section.offset, section.name):
        known = _COMPATIBILITY[record.id] if record.id < len(_COMPATIBILITY) else None
        name = f"EICOMPAT_ATTR_{known}" if known else f"EICOMPAT_ATTR_{record.id:#04x}"
        scalar = record.format != "SVAL"
        value = int.from_bytes(record.value, "little") if scalar else record.value.hex()
        yield Record(section.name, replace(record, name=name), value, scalar)


def records(elf: Elf) -> tuple[tuple[Record, ...], tuple[ContainerError, ...]]:
    """Every record of .nv.compat, .nv.info and .nv.info.<function>, and errors.

    Records that contradict their layout keep their bytes.  Raises ContainerError
    SX0123 if a section cannot be read.
    """
    table = next((s for s in elf.sections if s.type == SHT_SYMTAB), None)
    symbols: Sequence[str] = [
        s.name or (elf.sections[s.shndx].name if 0 < s.shndx < len(elf.sections) else "")
        for s in (elf.symbols(table) if table else ())
    ]

    def name(number: int) -> str:
        if number >= len(symbols):
            raise fail("SX0124", f"a record names symbol {number} of {len(symbols)}")
        return symbols[number]

    found: list[Record] = []
    errors: list[ContainerError] = []
    compat = elf.section(COMPATIBILITY)
    if compat is not None:
        found += _compatibility(compat)
    for section in elf.sections:
        if section.name != ".nv.info" and not section.name.startswith(".nv.info."):
            continue
        for record in eiattr.parse_attributes(section.data, section.offset, section.name):
            try:
                value, known = read(record, name)
            except ContainerError as error:
                value, known = record.value.hex(), False
                message = f"{error.message} (in {section.name})"
                errors.append(fail(error.code, message, section.offset))
            found.append(Record(section.name, record, value, known))
    return tuple(found), tuple(errors)

"""The kernel descriptor: 64 bytes that tell the command processor how to start a kernel.

One table of the words and bits for gfx11, functions that pack them, and the assembler directives
that give the same bytes.  Source: LLVM's AMDGPUUsage, "Kernel Descriptor" (the tables "Kernel
Descriptor", "compute_pgm_rsrc1", "compute_pgm_rsrc2" and "compute_pgm_rsrc3 for GFX11") and "AMDHSA
Kernel Directives", whose names the fields have here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sassxlate.errors import EncodeError

SIZE: Final = 64
ENTRY: Final = "kernel_code_entry_byte_offset"
RSRC1, RSRC2, RSRC3 = "compute_pgm_rsrc1", "compute_pgm_rsrc2", "compute_pgm_rsrc3"
PROPERTIES: Final = "kernel_code_properties"
PRELOAD: Final = "kernarg_preload"
VGPRS: Final = "granulated_workitem_vgpr_count"  # granules allocated, less one
_SGPRS_FREE: Final = 8  # LLVM's value where RSRC1 has no such field, as on gfx10 and later


@dataclass(frozen=True, slots=True)
class Word:
    """``size`` bytes from ``offset``, little-endian; the bytes of no word are reserved, and 0."""

    name: str
    offset: int
    size: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """``width`` bits from ``lo`` of a word; the bits of no field are reserved, and 0."""

    name: str
    word: str
    lo: int
    width: int = 1


WORDS: Final = {
    word.name: word
    for word in (
        Word("group_segment_fixed_size", 0, 4),  # bytes of LDS per workgroup
        Word("private_segment_fixed_size", 4, 4),  # bytes of scratch per lane
        Word("kernarg_size", 8, 4),
        Word(ENTRY, 16, 8, signed=True),  # relative to the descriptor's address
        Word(RSRC3, 44, 4),
        Word(RSRC1, 48, 4),
        Word(RSRC2, 52, 4),
        Word(PROPERTIES, 56, 2),
        Word(PRELOAD, 58, 2),  # of gfx90a and gfx12.5; reserved on gfx11
    )
}
# In the order in which LLVM prints their directives.
FIELDS: Final = {
    field.name: field
    for field in (
        Field("inst_pref_size", RSRC3, 4, 6),
        Field(VGPRS, RSRC1, 0, 6),
        Field("float_round_mode_32", RSRC1, 12, 2),
        Field("float_round_mode_16_64", RSRC1, 14, 2),
        Field("float_denorm_mode_32", RSRC1, 16, 2),
        Field("float_denorm_mode_16_64", RSRC1, 18, 2),
        Field("dx10_clamp", RSRC1, 21),
        Field("ieee_mode", RSRC1, 23),
        Field("fp16_overflow", RSRC1, 26),
        Field("workgroup_processor_mode", RSRC1, 29),
        Field("memory_ordered", RSRC1, 30),
        Field("forward_progress", RSRC1, 31),
        Field("enable_private_segment", RSRC2, 0),
        Field("user_sgpr_count", RSRC2, 1, 5),
        Field("system_sgpr_workgroup_id_x", RSRC2, 7),
        Field("system_sgpr_workgroup_id_y", RSRC2, 8),
        Field("system_sgpr_workgroup_id_z", RSRC2, 9),
        Field("system_sgpr_workgroup_info", RSRC2, 10),
        Field("system_vgpr_workitem_id", RSRC2, 11, 2),
        Field("exception_fp_ieee_invalid_op", RSRC2, 24),
        Field("exception_fp_denorm_src", RSRC2, 25),
        Field("exception_fp_ieee_div_zero", RSRC2, 26),
        Field("exception_fp_ieee_overflow", RSRC2, 27),
        Field("exception_fp_ieee_underflow", RSRC2, 28),
        Field("exception_fp_ieee_inexact", RSRC2, 29),
        Field("exception_int_div_zero", RSRC2, 30),
        Field("user_sgpr_dispatch_ptr", PROPERTIES, 1),
        Field("user_sgpr_queue_ptr", PROPERTIES, 2),
        Field("user_sgpr_kernarg_segment_ptr", PROPERTIES, 3),
        Field("user_sgpr_dispatch_id", PROPERTIES, 4),
        Field("user_sgpr_private_segment_size", PROPERTIES, 6),
        Field("wavefront_size32", PROPERTIES, 10),
        Field("uses_dynamic_stack", PROPERTIES, 11),
    )
}


def words(data: bytes) -> dict[str, int]:
    """Word to value.

    Raises:
        EncodeError: SX0533, fewer than 64 bytes.
    """
    if len(data) < SIZE:
        raise EncodeError("SX0533", f"a kernel descriptor of {len(data)} bytes, not {SIZE}")
    return {
        w.name: int.from_bytes(data[w.offset : w.offset + w.size], "little", signed=w.signed)
        for w in WORDS.values()
    }


def value(of: Mapping[str, int], field: Field) -> int:
    """A field of the words."""
    return of[field.word] >> field.lo & (1 << field.width) - 1


def pack(values: Mapping[str, int]) -> bytes:
    """The 64 bytes with these words and fields, and zeros elsewhere; KeyError for other names.

    Raises:
        EncodeError: SX0530, a value that its word or field has no room for.
    """
    of = dict.fromkeys(WORDS, 0)
    for name, number in values.items():
        field = FIELDS.get(name) or Field(name, name, 0, 8 * WORDS[name].size)
        top = (1 << field.width) - 1
        least = -(1 << field.width - 1) if WORDS[field.word].signed else 0
        if not least <= number <= (top >> 1 if least else top):
            raise EncodeError("SX0530", f"{number} as {name}: it has {field.width} bits")
        of[field.word] |= number << field.lo
    out = bytearray(SIZE)
    for w in WORDS.values():
        out[w.offset : w.offset + w.size] = of[w.name].to_bytes(w.size, "little", signed=w.signed)
    return bytes(out)


def fields(data: bytes) -> dict[str, int]:
    """Directive (without ``.amdhsa_``) to value, in LLVM's order.

    Raises:
        EncodeError: SX0533, not 64 bytes, or bits that no directive of gfx11 sets.
    """
    if len(data) != SIZE:
        raise EncodeError("SX0533", f"a kernel descriptor of {len(data)} bytes, not {SIZE}")
    of = words(data)
    found = {name: value(of, field) for name, field in FIELDS.items()}
    sizes = {name: of[name] for name in WORDS if name.endswith("_size")}
    if pack({**sizes, ENTRY: of[ENTRY], **found}) != data:
        raise EncodeError("SX0533", "the kernel descriptor sets bits that gfx11 reserves")
    granule = 8 if found["wavefront_size32"] else 4
    out = dict(sizes)
    for name, number in found.items():
        if name == VGPRS:
            vgprs = (number + 1) * granule
            out |= {"next_free_vgpr": vgprs, "reserve_vcc": 0, "next_free_sgpr": _SGPRS_FREE}
        else:
            out[name] = number
    return out


def text(name: str, data: bytes) -> list[str]:
    """The lines of ``.amdhsa_kernel NAME``.

    Raises:
        EncodeError: SX0533, as fields().
    """
    body = [f"\t.amdhsa_{key} {number}" for key, number in fields(data).items()]
    return [f".amdhsa_kernel {name}", *body, ".end_amdhsa_kernel"]

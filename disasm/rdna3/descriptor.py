"""Kernel descriptors as assembler directives, so that assembling them gives the same 64 bytes.

Layout and directives: LLVM's AMDGPUUsage, "Kernel Descriptor" and "AMDHSA Kernel Directives", for
gfx11.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from sassxlate.errors import EncodeError

SIZE: Final = 64
_FORMAT: Final = struct.Struct("<IIIIq20sIIIHHI")
_RSRC3, _RSRC1, _RSRC2, _PROPERTIES = range(4)


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive: the field of ``width`` bits from ``lo`` of the register ``word``."""

    name: str
    word: int
    lo: int
    width: int = 1


# In the order in which LLVM prints them.
DIRECTIVES: Final = (
    Directive("inst_pref_size", _RSRC3, 4, 6),
    Directive("float_round_mode_32", _RSRC1, 12, 2),
    Directive("float_round_mode_16_64", _RSRC1, 14, 2),
    Directive("float_denorm_mode_32", _RSRC1, 16, 2),
    Directive("float_denorm_mode_16_64", _RSRC1, 18, 2),
    Directive("dx10_clamp", _RSRC1, 21),
    Directive("ieee_mode", _RSRC1, 23),
    Directive("fp16_overflow", _RSRC1, 26),
    Directive("workgroup_processor_mode", _RSRC1, 29),
    Directive("memory_ordered", _RSRC1, 30),
    Directive("forward_progress", _RSRC1, 31),
    Directive("enable_private_segment", _RSRC2, 0),
    Directive("user_sgpr_count", _RSRC2, 1, 5),
    Directive("system_sgpr_workgroup_id_x", _RSRC2, 7),
    Directive("system_sgpr_workgroup_id_y", _RSRC2, 8),
    Directive("system_sgpr_workgroup_id_z", _RSRC2, 9),
    Directive("system_sgpr_workgroup_info", _RSRC2, 10),
    Directive("system_vgpr_workitem_id", _RSRC2, 11, 2),
    Directive("exception_fp_ieee_invalid_op", _RSRC2, 24),
    Directive("exception_fp_denorm_src", _RSRC2, 25),
    Directive("exception_fp_ieee_div_zero", _RSRC2, 26),
    Directive("exception_fp_ieee_overflow", _RSRC2, 27),
    Directive("exception_fp_ieee_underflow", _RSRC2, 28),
    Directive("exception_fp_ieee_inexact", _RSRC2, 29),
    Directive("exception_int_div_zero", _RSRC2, 30),
    Directive("user_sgpr_dispatch_ptr", _PROPERTIES, 1),
    Directive("user_sgpr_queue_ptr", _PROPERTIES, 2),
    Directive("user_sgpr_kernarg_segment_ptr", _PROPERTIES, 3),
    Directive("user_sgpr_dispatch_id", _PROPERTIES, 4),
    Directive("user_sgpr_private_segment_size", _PROPERTIES, 6),
    Directive("wavefront_size32", _PROPERTIES, 10),
    Directive("uses_dynamic_stack", _PROPERTIES, 11),
)
_VGPRS: Final = (0, 6)  # of RSRC1: the number of allocated granules, less one
_SGPRS_FREE: Final = 8  # what LLVM writes where RSRC1 does not say, as on gfx10 and later


def fields(data: bytes) -> dict[str, int]:
    """Directive (without ``.amdhsa_``) to value, in LLVM's order.

    Raises:
        EncodeError: SX0533, not 64 bytes, or bits that no directive of gfx11 sets.
    """
    if len(data) != SIZE:
        raise EncodeError("SX0533", f"a kernel descriptor of {len(data)} bytes, not {SIZE}")
    group, private, kernarg, zero, _, zeros, rsrc3, rsrc1, rsrc2, props, preload, end = (
        _FORMAT.unpack(data)
    )
    words = (rsrc3, rsrc1, rsrc2, props)
    rest = [*words]
    for d in DIRECTIVES:
        rest[d.word] &= ~(((1 << d.width) - 1) << d.lo)
    rest[_RSRC1] &= ~((1 << _VGPRS[1]) - 1)
    if zero or end or preload or any(zeros) or any(rest):
        raise EncodeError("SX0533", "the kernel descriptor sets bits that gfx11 reserves")
    out = {
        "group_segment_fixed_size": group,
        "private_segment_fixed_size": private,
        "kernarg_size": kernarg,
    }
    granule = 8 if props >> 10 & 1 else 4
    vgprs = ((rsrc1 & (1 << _VGPRS[1]) - 1) + 1) * granule
    for d in DIRECTIVES:
        if d.name == "float_round_mode_32":
            out |= {"next_free_vgpr": vgprs, "reserve_vcc": 0, "next_free_sgpr": _SGPRS_FREE}
        out[d.name] = words[d.word] >> d.lo & (1 << d.width) - 1
    return out


def text(name: str, data: bytes) -> list[str]:
    """The lines of ``.amdhsa_kernel NAME``.

    Raises:
        EncodeError: SX0533, as fields().
    """
    body = [f"\t.amdhsa_{key} {value}" for key, value in fields(data).items()]
    return [f".amdhsa_kernel {name}", *body, ".end_amdhsa_kernel"]

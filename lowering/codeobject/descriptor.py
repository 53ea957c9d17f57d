"""The fields of a kernel descriptor, with the translator's names.

The 64 bytes and their fields: `sassxlate.disasm.rdna3.tables.kernel_descriptor`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sassxlate.disasm.rdna3.tables import kernel_descriptor as table
from sassxlate.errors import EncodeError
from sassxlate.lowering.target import Target

# MODE's byte, two bits each from bit 0 on.
_FLOAT_MODE: Final = (
    "float_round_mode_32", "float_round_mode_16_64", "float_denorm_mode_32",
    "float_denorm_mode_16_64",
)  # fmt: skip
_NUMBERS: Final = {  # names in Descriptor -> names in the table
    "group_segment_size": "group_segment_fixed_size",
    "private_segment_size": "private_segment_fixed_size",
    "kernarg_size": "kernarg_size",
    "entry": table.ENTRY,
    "user_sgpr_count": "user_sgpr_count",
    "workitem_id_dims": "system_vgpr_workitem_id",
}
_FLAGS: Final = {
    "dx10_clamp": "dx10_clamp",
    "ieee_mode": "ieee_mode",
    "wgp_mode": "workgroup_processor_mode",
    "memory_ordered": "memory_ordered",
    "forward_progress": "forward_progress",
    "enable_private_segment": "enable_private_segment",
    "enable_workgroup_id_x": "system_sgpr_workgroup_id_x",
    "enable_workgroup_id_y": "system_sgpr_workgroup_id_y",
    "enable_workgroup_id_z": "system_sgpr_workgroup_id_z",
    "enable_workgroup_info": "system_sgpr_workgroup_info",
    "enable_dispatch_ptr": "user_sgpr_dispatch_ptr",
    "enable_queue_ptr": "user_sgpr_queue_ptr",
    "enable_kernarg_ptr": "user_sgpr_kernarg_segment_ptr",
    "enable_dispatch_id": "user_sgpr_dispatch_id",
    "enable_private_segment_size": "user_sgpr_private_segment_size",
    "wave32": "wavefront_size32",
    "dynamic_stack": "uses_dynamic_stack",
}


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A kernel descriptor's fields; sizes in bytes, ``entry`` relative to the descriptor.

    ``vgprs`` is what is allocated, a multiple of the target's granule.  ``float_mode`` is MODE's
    byte: rounding of 32-bit and of 16/64-bit in bits 0-1 and 2-3, denormals in 4-5 and 6-7 (3:
    kept).
    ``workitem_id_dims``: 0 x, 1 x and y, 2 all, packed into v0 ten bits each.
    """

    group_segment_size: int
    private_segment_size: int
    kernarg_size: int
    entry: int
    vgprs: int
    user_sgpr_count: int
    float_mode: int = 0xF0
    dx10_clamp: bool = True
    ieee_mode: bool = False
    wgp_mode: bool = False
    memory_ordered: bool = True
    forward_progress: bool = True
    enable_private_segment: bool = False
    enable_workgroup_id_x: bool = True
    enable_workgroup_id_y: bool = True
    enable_workgroup_id_z: bool = True
    enable_workgroup_info: bool = False
    workitem_id_dims: int = 2
    enable_dispatch_ptr: bool = False
    enable_queue_ptr: bool = False
    enable_kernarg_ptr: bool = True
    enable_dispatch_id: bool = False
    enable_private_segment_size: bool = False
    wave32: bool = True
    dynamic_stack: bool = False

    def pack(self, target: Target) -> bytes:
        """The 64 bytes for a target.

        Raises:
            EncodeError: SX0530, a field out of its range.
        """
        ranges = (
            ("VGPRs", self.vgprs, target.vgprs),
            ("bytes of LDS", self.group_segment_size, target.lds),
            ("user SGPRs", self.user_sgpr_count, 16),
            ("bytes of scratch per lane", self.private_segment_size, 0xFFFFFFFF),
            ("bytes of kernel arguments", self.kernarg_size, 0xFFFFFFFF),
        )
        for what, value, top in ranges:
            if not 0 <= value <= top:
                raise EncodeError("SX0530", f"{value} {what}: the limit is {top}")
        values = {table.VGPRS: max(1, -(-self.vgprs // target.vgpr_granule)) - 1}
        for place, name in enumerate(_FLOAT_MODE):
            values[name] = self.float_mode >> 2 * place & 3
        for ours, name in (_NUMBERS | _FLAGS).items():
            values[name] = int(getattr(self, ours))
        return table.pack(values)


def unpack(data: bytes, target: Target) -> Descriptor:
    """The descriptor in 64 bytes of a code object for a target.

    Raises:
        EncodeError: SX0533, truncated, or not of a wave32 kernel for gfx11.
    """
    words = table.words(data)

    def value(name: str) -> int:
        field = table.FIELDS.get(name)
        return words[name] if field is None else table.value(words, field)

    if not value("wavefront_size32"):
        raise EncodeError("SX0533", "a wave64 kernel: only wave32 is supported")
    # AMD's compilers write gfx9's number of SGPRs too, which gfx10 and later ignore.
    if words[table.PRELOAD]:
        raise EncodeError("SX0533", "the kernel descriptor is not a gfx11 one")
    values: dict[str, Any] = {ours: value(name) for ours, name in _NUMBERS.items()}
    values |= {ours: bool(value(name)) for ours, name in _FLAGS.items()}
    return Descriptor(
        vgprs=(value(table.VGPRS) + 1) * target.vgpr_granule,
        float_mode=sum(value(name) << 2 * place for place, name in enumerate(_FLOAT_MODE)),
        **values,
    )

"""The kernel descriptor: 64 bytes that tell the command processor how to start a kernel.

Layout and register bits: LLVM's AMDGPUUsage, "Kernel Descriptor", for gfx11 in wave32.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from sassxlate.errors import EncodeError

SIZE: Final = 64
_FORMAT: Final = struct.Struct("<III4xq20xIIIHH4x")
_VGPR_GRANULE: Final = 8  # VGPRs a wave32 are allocated in eights
_MAX_VGPRS: Final = 256
MAX_LDS: Final = 65536


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A kernel descriptor's fields; sizes in bytes, ``entry`` relative to the descriptor.

    ``vgprs`` is what is allocated (a multiple of 8).  ``float_mode`` is MODE's byte: rounding of
    32-bit and of 16/64-bit in bits 0-1 and 2-3, denormals in 4-5 and 6-7 (3: kept).
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
    rsrc3: int = 0

    @property
    def rsrc1(self) -> int:
        """COMPUTE_PGM_RSRC1."""
        granules = max(1, -(-self.vgprs // _VGPR_GRANULE)) - 1
        bits = (
            (self.dx10_clamp, 21),
            (self.ieee_mode, 23),
            (self.wgp_mode, 29),
            (self.memory_ordered, 30),
            (self.forward_progress, 31),
        )
        return granules | self.float_mode << 12 | sum(on << place for on, place in bits)

    @property
    def rsrc2(self) -> int:
        """COMPUTE_PGM_RSRC2 (the LDS size is the packet's)."""
        bits = (
            (self.enable_private_segment, 0),
            (self.enable_workgroup_id_x, 7),
            (self.enable_workgroup_id_y, 8),
            (self.enable_workgroup_id_z, 9),
            (self.enable_workgroup_info, 10),
        )
        low = self.user_sgpr_count << 1 | self.workitem_id_dims << 11
        return low | sum(on << place for on, place in bits)

    @property
    def properties(self) -> int:
        """KERNEL_CODE_PROPERTIES."""
        bits = (
            (self.enable_dispatch_ptr, 1),
            (self.enable_queue_ptr, 2),
            (self.enable_kernarg_ptr, 3),
            (self.enable_dispatch_id, 4),
            (self.enable_private_segment_size, 6),
            (self.wave32, 10),
            (self.dynamic_stack, 11),
        )
        return sum(on << place for on, place in bits)

    def pack(self) -> bytes:
        """The 64 bytes.

        Raises:
            EncodeError: SX0530, a field out of its range.
        """
        ranges = (
            ("VGPRs", self.vgprs, _MAX_VGPRS),
            ("bytes of LDS", self.group_segment_size, MAX_LDS),
            ("user SGPRs", self.user_sgpr_count, 16),
            ("bytes of scratch a lane", self.private_segment_size, 0xFFFFFFFF),
            ("bytes of kernel arguments", self.kernarg_size, 0xFFFFFFFF),
        )
        for what, value, top in ranges:
            if not 0 <= value <= top:
                raise EncodeError("SX0530", f"{value} {what}: the limit is {top}")
        return _FORMAT.pack(
            self.group_segment_size,
            self.private_segment_size,
            self.kernarg_size,
            self.entry,
            self.rsrc3,
            self.rsrc1,
            self.rsrc2,
            self.properties,
            0,
        )


def unpack(data: bytes) -> Descriptor:
    """The descriptor in 64 bytes.

    Raises:
        EncodeError: SX0533, truncated, or of a kernel that is not wave32 for gfx11.
    """
    if len(data) < SIZE:
        raise EncodeError("SX0533", f"a kernel descriptor of {len(data)} bytes, not {SIZE}")
    group, private, kernarg, entry, rsrc3, rsrc1, rsrc2, props, preload = _FORMAT.unpack_from(data)

    def bit(word: int, place: int) -> bool:
        return bool(word >> place & 1)

    if not bit(props, 10):
        raise EncodeError("SX0533", "a wave64 kernel: only wave32 is supported")
    if preload or rsrc1 >> 6 & 15:
        raise EncodeError("SX0533", "the kernel descriptor is not one of gfx11")
    return Descriptor(
        group_segment_size=group,
        private_segment_size=private,
        kernarg_size=kernarg,
        entry=entry,
        vgprs=((rsrc1 & 63) + 1) * _VGPR_GRANULE,
        user_sgpr_count=rsrc2 >> 1 & 31,
        float_mode=rsrc1 >> 12 & 0xFF,
        dx10_clamp=bit(rsrc1, 21),
        ieee_mode=bit(rsrc1, 23),
        wgp_mode=bit(rsrc1, 29),
        memory_ordered=bit(rsrc1, 30),
        forward_progress=bit(rsrc1, 31),
        enable_private_segment=bit(rsrc2, 0),
        enable_workgroup_id_x=bit(rsrc2, 7),
        enable_workgroup_id_y=bit(rsrc2, 8),
        enable_workgroup_id_z=bit(rsrc2, 9),
        enable_workgroup_info=bit(rsrc2, 10),
        workitem_id_dims=rsrc2 >> 11 & 3,
        enable_dispatch_ptr=bit(props, 1),
        enable_queue_ptr=bit(props, 2),
        enable_kernarg_ptr=bit(props, 3),
        enable_dispatch_id=bit(props, 4),
        enable_private_segment_size=bit(props, 6),
        dynamic_stack=bit(props, 11),
        rsrc3=rsrc3,
    )

"""Minimal gfx1100 code objects for the tests of the emulated device.

The instructions in them do not matter here: the tests bring their own host images.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, cast

MACHINE_AMDGPU = 224
FLAGS_GFX1100 = 0x41


def pack(value: Any) -> bytes:
    """MessagePack of None, bool, int, str, list and dict."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if 0 <= value < 0x80:
            return bytes([value])
        if value < 0:
            return b"\xd3" + struct.pack(">q", value)
        return struct.pack(">BQ", 0xCF, value) if value >> 32 else struct.pack(">BI", 0xCE, value)
    if isinstance(value, str):
        text = value.encode()
        return (
            bytes([0xA0 | len(text)]) if len(text) < 32 else b"\xda" + struct.pack(">H", len(text))
        ) + text
    if isinstance(value, list):
        entries = cast("list[Any]", value)
        return b"\xdc" + struct.pack(">H", len(entries)) + b"".join(map(pack, entries))
    items = b"".join(pack(k) + pack(v) for k, v in value.items())
    return b"\xde" + struct.pack(">H", len(value)) + items


@dataclass(frozen=True)
class Arg:
    offset: int
    size: int
    kind: str = "by_value"


@dataclass(frozen=True)
class Kernel:
    """The contents of a kernel's descriptor and metadata; sizes in bytes."""

    name: str
    kernarg_size: int = 64
    group_size: int = 0
    private_size: int = 0
    dimensions: int = 1
    vgprs: int = 16
    max_threads: int = 1024
    properties: int = 0x408  # kernarg pointer, wave32
    args: tuple[Arg, ...] | None = None

    def descriptor(self, entry_offset: int) -> bytes:
        ids = (1 << self.dimensions) - 1
        # User and system SGPRs fill sixteen (UserSGPRInit16Bug).
        rsrc2 = (16 - self.dimensions) << 1 | ids << 7 | (self.dimensions - 1) << 11
        rsrc1 = (self.vgprs + 7) // 8 - 1 | 0xC02F0000
        return struct.pack(
            "<III4xq20xIIIHH4x",
            self.group_size,
            self.private_size,
            self.kernarg_size,
            entry_offset,
            0,
            rsrc1,
            rsrc2,
            self.properties,
            0,
        )

    def metadata(self) -> dict[str, Any]:
        args = self.args if self.args is not None else (Arg(0, self.kernarg_size),)
        return {
            ".name": self.name,
            ".symbol": self.name + ".kd",
            ".kernarg_segment_size": self.kernarg_size,
            ".kernarg_segment_align": 8,
            ".group_segment_fixed_size": self.group_size,
            ".private_segment_fixed_size": self.private_size,
            ".wavefront_size": 32,
            ".sgpr_count": 16,
            ".vgpr_count": self.vgprs,
            ".max_flat_workgroup_size": self.max_threads,
            ".args": [{".offset": a.offset, ".size": a.size, ".value_kind": a.kind} for a in args],
        }


@dataclass
class Layout:
    """Sections of the file being built, in order of their addresses (offset equals address)."""

    body: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes, align: int) -> int:
        self.body += bytes(-len(self.body) % align)
        offset = len(self.body)
        self.body += data
        return offset


def _note(kernels: list[Kernel]) -> bytes:
    described = pack(
        {
            "amdhsa.version": [1, 2],
            "amdhsa.target": "amdgcn-amd-amdhsa--gfx1100",
            "amdhsa.kernels": [k.metadata() for k in kernels],
        }
    )
    note = struct.pack("<III", 7, len(described), 32) + b"AMDGPU\0\0" + described
    return note + bytes(-len(note) % 4)


def build(
    kernels: list[Kernel],
    globals_: dict[str, bytes] | None = None,
    *,
    flags: int = FLAGS_GFX1100,
    machine: int = MACHINE_AMDGPU,
    abi_version: int = 3,
    apart: bool = False,
) -> bytes:
    """An ELF code object of these kernels and global variables; ``apart``: with a note of metadata
    for each kernel, as the linker leaves those of several objects."""
    out = Layout(bytearray(64 + 56 * 2))
    note = b"".join(map(_note, [[k] for k in kernels] if apart else [kernels]))
    note_at = out.add(note, 4)
    descriptors = out.add(bytes(64 * len(kernels)), 64)
    variables: dict[str, tuple[int, int]] = {}
    for name, data in (globals_ or {}).items():
        variables[name] = (out.add(data, 16), len(data))
    text = out.add(struct.pack("<I", 0xBFB00000) * 64, 256)  # s_endpgm
    strings = bytearray(b"\0")
    symbols = bytearray(24)

    def symbol(name: str, value: int, size: int, kind: int) -> None:
        symbols.extend(struct.pack("<IBBHQQ", len(strings), 1 << 4 | kind, 3, 1, value, size))
        strings.extend(name.encode() + b"\0")

    for i, kernel in enumerate(kernels):
        at = descriptors + 64 * i
        out.body[at : at + 64] = kernel.descriptor(text - at)
        symbol(kernel.name, text, 256, 2)
        symbol(kernel.name + ".kd", at, 64, 1)
    for name, (value, size) in variables.items():
        symbol(name, value, size, 1)
    symbols_at = out.add(bytes(symbols), 8)
    strings_at = out.add(bytes(strings), 1)
    end = len(out.body)
    sections = out.add(
        bytes(64)
        + struct.pack("<IIQQQQIIQQ", 0, 11, 2, symbols_at, symbols_at, len(symbols), 2, 1, 8, 24)
        + struct.pack("<IIQQQQIIQQ", 0, 3, 2, strings_at, strings_at, len(strings), 0, 0, 1, 0),
        8,
    )
    header = b"\x7fELF\x02\x01\x01\x40" + bytes([abi_version]) + bytes(7)
    header += struct.pack(
        "<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, sections, flags, 64, 56, 2, 64, 3, 0
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, 4096)
    notes = struct.pack("<IIQQQQQQ", 4, 4, note_at, note_at, note_at, len(note), len(note), 4)
    out.body[: 64 + 112] = header + load + notes
    return bytes(out.body)

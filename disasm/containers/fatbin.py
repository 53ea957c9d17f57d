"""The fatbin container: a header, then entries of machine code, PTX or LTO-IR."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from sassxlate.disasm.containers.elf import fail, printable
from sassxlate.disasm.containers.unpack import Budget, Packed
from sassxlate.disasm.containers.values import Fatbin, FatbinEntry
from sassxlate.errors import ContainerError

MAGIC = 0xBA55ED50
MAGIC_BYTES = struct.pack("<I", MAGIC)
_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
assert (_HEADER.size, _ENTRY.size) == (16, 64)

FLAG_LZ4 = 0x2000
FLAG_ZSTD = 0x8000
_FLAG_A, _FLAG_F = 0x100000, 0x200000

Kind = Literal["elf", "ptx", "ltoir", "other"]
_KINDS: dict[int, Kind] = {1: "ptx", 2: "elf", 8: "ltoir"}

# Nothing that a toolkit makes comes near: the largest cubins have some 10^8 bytes.
_MAX_PAYLOAD = 1 << 31
_LZ4_RATIO = 255  # the format cannot expand further
_ZSTD_FREE = 1 << 26  # any frame may expand to 64 MiB, a larger result needs a plausible ratio
_ZSTD_RATIO = 4096


def find_fatbins(data: bytes | memoryview, step: int = 8) -> Iterator[int]:
    """Offsets, multiples of ``step``, that look like the start of a container; contents
    unchecked."""
    raw = data if isinstance(data, bytes) else bytes(data)
    at = raw.find(MAGIC_BYTES)
    while at >= 0:
        following = at + 1
        if at % step == 0 and len(raw) - at >= _HEADER.size:
            _, version, header, size = _HEADER.unpack_from(raw, at)
            if version == 1 and header == _HEADER.size and size <= len(raw) - at - header:
                yield at
                following = at + header + size
        at = raw.find(MAGIC_BYTES, following)


def container_size(data: bytes | memoryview, at: int = 0) -> int:
    """The size in bytes of the container at ``at``, header included.

    Raises ContainerError SX0111 (no container), SX0112 (longer than the data).
    """
    view = memoryview(data)
    if at < 0 or len(view) - at < _HEADER.size:
        raise fail("SX0112", "the file ends within a fatbin header", at)
    magic, version, header, size = _HEADER.unpack_from(view, at)
    if magic != MAGIC:
        raise fail("SX0111", f"no fatbin: the magic number is {magic:#010x}", at)
    if version != 1 or header != _HEADER.size:
        raise fail("SX0111", f"a fatbin of unknown version {version} with a header of {header}", at)
    if size > len(view) - at - header:
        raise fail("SX0112", f"the fatbin's {size:#x} bytes reach past the end of the file", at)
    return int(header + size)


def parse_fatbin(
    data: bytes | memoryview,
    module: int = 0,
    offset: int = 0,
    section: str = "",
    budget: Budget | None = None,
) -> Fatbin:
    """One container at the start of ``data``; bytes after its declared length are ignored.

    ``offset`` is that of ``data`` in its file, for the result and for errors.
    ``budget`` is the file's: the bytes that its entries may take unpacked.
    Raises ContainerError SX0111, SX0112, SX0113 (an entry), SX0114 and SX0115 (compression).
    """
    budget = budget or Budget.of(len(data))
    try:
        view = memoryview(data)[: container_size(data)]
        entries: list[FatbinEntry] = []
        at = _HEADER.size
        while at < len(view):
            if len(view) - at < _ENTRY.size:
                if not any(view[at:]):
                    break  # padding
                raise fail("SX0113", "the fatbin ends within an entry's header", at)
            entry, at = _parse_entry(view, at, budget)
            entries.append(moved(entry, offset))
    except ContainerError as error:
        if offset and error.where.offset is not None:
            raise fail(error.code, error.message, offset + error.where.offset) from None
        raise
    return Fatbin(module, offset, tuple(entries), section)


def moved(entry: FatbinEntry, offset: int) -> FatbinEntry:
    """The entry as part of a container at ``offset`` of the file, for errors of unpacking."""
    return replace(entry, packed=replace(entry.packed, at=entry.offset + offset))


def _parse_entry(view: memoryview, at: int, budget: Budget) -> tuple[FatbinEntry, int]:
    (
        kind, version, header, stored, compressed, _options, _minor, _major, arch,
        name_at, name_size, flags, _reserved, plain,
    ) = _ENTRY.unpack_from(view, at)  # fmt: skip
    if version != 0x0101:
        raise fail("SX0113", f"an entry of unknown version {version:#x}", at)
    if not _ENTRY.size <= header <= len(view) - at:
        raise fail("SX0113", f"an entry's header of {header:#x} bytes", at)
    if stored > len(view) - at - header:
        raise fail("SX0113", f"an entry's {stored:#x} bytes reach past the end of the fatbin", at)
    if compressed > stored:
        raise fail("SX0113", f"{compressed:#x} compressed bytes in an entry of {stored:#x}", at)
    name = ""
    if name_size:
        if name_at > header or name_size > header - name_at:
            raise fail("SX0113", "an entry's name is outside its header", at)
        name = printable(bytes(view[at + name_at : at + name_at + name_size]).rstrip(b"\0"))
    raw = view[at + header : at + header + stored]
    packed = _packed(raw, flags, compressed, plain, at, budget)
    variant = "a" if flags & _FLAG_A else "f" if flags & _FLAG_F else ""
    found = FatbinEntry(_KINDS.get(kind, "other"), arch, flags, name, at, packed, stored, variant)
    return found, at + header + stored


def _packed(
    raw: memoryview, flags: int, compressed: int, plain: int, at: int, budget: Budget
) -> Packed:
    """The contents of an entry, still packed; its header's sizes are checked."""
    if not flags & (FLAG_LZ4 | FLAG_ZSTD):
        return Packed(raw, len(raw), "none", at)
    if flags & FLAG_LZ4 and flags & FLAG_ZSTD:
        raise fail("SX0114", "an entry claims two compressions at once", at)
    if compressed == 0:
        raise fail("SX0114", "a compressed entry without a compressed size", at)
    if plain > _MAX_PAYLOAD:
        raise fail("SX0115", f"an entry declares {plain} bytes decompressed", at)
    if flags & FLAG_LZ4:
        if plain > _LZ4_RATIO * compressed:
            raise fail("SX0115", f"{compressed} bytes of LZ4 cannot make {plain}", at)
        return Packed(raw[:compressed], plain, "lz4", at, budget)
    if plain > max(_ZSTD_FREE, _ZSTD_RATIO * compressed):
        raise fail("SX0115", f"{compressed} bytes of Zstandard for {plain}", at)
    return Packed(raw[:compressed], plain, "zstd", at, budget)

"""The segment with a translation, as ``native/common/carried.cpp`` reads it.

All numbers are little-endian.  A header of 96 bytes: ``SXCARRY1``, version (u32), zero (u32), the
segment's bytes, the index's offset and bytes, the number of entries, the bytes of the settings
(u64 each), zero (u64), BLAKE2b-128 of the index, zeros.  Then the files' contents.  The index has,
for each file in the order of the names, the place of its name in the text and that name's bytes,
its offset in the segment and its bytes (u64 each) and its BLAKE2b-128; then the text: the settings,
a line ``NAME VALUE`` each, and the names.

A file is called ``TARGET/AREA/NAME``; AREA is one of the cache's, or ``host-avx512`` and
``host-avx2`` for host code.  ``original`` is what `sassxlate unembed` needs.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from sassxlate.errors import ShimError

MAGIC = b"SXCARRY1"
VERSION = 1
HEADER = struct.Struct("<8sIIQQQQQQ16s16x")
_ENTRY = struct.Struct("<QQQQ16s")
_ALIGN = 64
ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class Carried:
    """What a segment holds: the files by name, and the settings."""

    files: dict[str, memoryview]
    settings: dict[str, str]


def write(files: Mapping[str, bytes], settings: Mapping[str, str]) -> bytearray:
    """The segment's bytes, a multiple of 64; more may follow them in it."""
    out = bytearray(HEADER.size)
    places: dict[bytes, int] = {}
    text = bytearray("".join(f"{k} {v}\n" for k, v in settings.items()).encode())
    told, rows = len(text), bytearray()
    for name in sorted(files, key=lambda one: one.encode()):
        content = files[name]
        digest = _digest(content)
        if digest not in places:
            out += bytes(-len(out) % _ALIGN)
            places[digest] = len(out)
            out += content
        key = name.encode()
        rows += _ENTRY.pack(len(text), len(key), places[digest], len(content), digest)
        text += key
    out += bytes(-len(out) % _ALIGN)
    index = bytes(rows + text)
    at = len(out)
    out += index
    out += bytes(-len(out) % _ALIGN)
    HEADER.pack_into(
        out, 0, MAGIC, VERSION, 0, len(out), at, len(index), len(files), told, 0, _digest(index)
    )
    return out


def read(segment: memoryview) -> Carried:
    """What a segment holds.

    Raises:
        ShimError: SX0791, it is damaged, or of another version.
    """
    if len(segment) < HEADER.size or bytes(segment[:8]) != MAGIC:
        raise _damaged("its header")
    _, version, _, total, at, size, count, told, _, digest = HEADER.unpack_from(segment)
    if version != VERSION:
        raise _damaged(f"it is of version {version}, this reads {VERSION}")
    if total > len(segment) or at > total or size > total - at or count * _ENTRY.size + told > size:
        raise _damaged("its index does not fit its size")
    index = segment[at : at + size]
    if _digest(index) != digest:
        raise _damaged("the checksum of its index")
    text = index[count * _ENTRY.size :]
    files: dict[str, memoryview] = {}
    for row in range(count):
        name, length, offset, content, checksum = _ENTRY.unpack_from(index, row * _ENTRY.size)
        if name + length > len(text) or offset > total or content > total - offset:
            raise _damaged("an entry does not fit its size")
        data = segment[offset : offset + content]
        key = bytes(text[name : name + length]).decode(errors="replace")
        if _digest(data) != checksum:
            raise _damaged(f"the checksum of {key}")
        files[key] = data
    lines = bytes(text[:told]).decode(errors="replace").splitlines()
    settings = dict(line.split(" ", 1) for line in lines if " " in line)
    return Carried(files, settings)


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _damaged(what: str) -> ShimError:
    return ShimError("SX0791", f"the translation that the file carries is damaged: {what}")


__all__ = ["MAGIC", "ORIGINAL", "Carried", "read", "write"]

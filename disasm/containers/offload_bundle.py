"""clang's offload bundles: the output of ``hipcc --genco``, and the contents of .hip_fatbin.

Layout: clang's documentation, "Clang Offload Bundler"; the compressed form is that of
``clang/lib/Driver/OffloadBundler.cpp``, versions 1 to 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import zstandard

from sassxlate.errors import EncodeError

MAGIC: Final = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC: Final = b"CCOB"
# Limits of unpacked bytes: for the bundles of a small file, and for each byte of a larger
# file: clang's ratio for machine code is 3 to 10.
_LEAST: Final = 1 << 28
_RATIO: Final = 16


def is_offload_bundle(data: bytes) -> bool:
    """Whether the bytes begin a bundle, compressed or not."""
    return data.startswith((MAGIC, COMPRESSED_MAGIC))


def _bad(message: str) -> EncodeError:
    return EncodeError("SX0532", message)


@dataclass(slots=True)
class Room:
    """Bytes that all bundles of one file may hold."""

    left: int

    @classmethod
    def of(cls, size: int) -> Room:
        """The room for a file of ``size`` bytes."""
        return cls(max(_LEAST, _RATIO * size))

    def take(self, size: int) -> None:
        """Takes ``size`` bytes from what is left; EncodeError SX0532 if that is too little."""
        if size > self.left:
            raise _bad(f"{size} bytes in a bundle, where {self.left} are left for the file")
        self.left -= size


def _slice(data: bytes, at: int, size: int, what: str) -> bytes:
    if at + size > len(data):
        raise _bad(f"the file ends inside {what}")
    return data[at : at + size]


def _decompress(data: bytes, room: Room) -> bytes:
    """The bundle inside a compressed one: versions 1 to 3 of clang's header, zstd."""
    version, method = struct.unpack("<HH", _slice(data, 4, 4, "the bundle's header"))
    layout = {1: "<IQ", 2: "<IIQ", 3: "<QQQ"}.get(version)
    if layout is None or method != 1:
        raise EncodeError("SX0531", f"a bundle of version {version}, compressed by method {method}")
    size = struct.calcsize(layout)
    *head, whole, _ = struct.unpack(layout, _slice(data, 8, size, "the bundle's header"))
    if head and head[0] > len(data):
        raise _bad("the file ends inside the compressed bundle")
    body = data[8 + size : head[0] if head else len(data)]
    room.take(whole)
    try:
        # The frame's own header may declare any size: it is not trusted.
        declared = zstandard.frame_content_size(body)
        if declared not in (-1, whole):
            raise _bad(f"the compressed bundle holds {declared} bytes, not {whole}")
        out = zstandard.ZstdDecompressor().decompress(body, max_output_size=whole)
    except zstandard.ZstdError as error:
        raise _bad(f"the compressed bundle is damaged: {error}") from None
    if len(out) != whole:
        raise _bad(f"the compressed bundle holds {len(out)} bytes, not {whole}")
    return out


def find_bundles(data: bytes) -> Iterator[bytes]:
    """The rest of ``data`` from each place where an offload bundle may begin, that is, from each of
    the two magic words.  All of the data is searched, not only a section .hip_fatbin."""
    for magic in (MAGIC, COMPRESSED_MAGIC):
        at = data.find(magic)
        while at >= 0:
            yield data[at:]
            at = data.find(magic, at + 1)


def unbundle(data: bytes, room: Room | None = None) -> tuple[tuple[str, bytes], ...]:
    """(target, code object) of every entry of an offload bundle; host code is left out.

    ``room`` is the remaining budget of all bundles of the file.

    Raises:
        EncodeError: SX0531, compressed in another way than zstd; SX0532, truncated or damaged, or
            larger than there is room for.
    """
    room = room or Room.of(len(data))
    if data[: len(COMPRESSED_MAGIC)] == COMPRESSED_MAGIC:
        data = _decompress(data, room)
        if data[: len(MAGIC)] != MAGIC:
            raise _bad("the compressed bundle holds no bundle")
    (count,) = struct.unpack("<Q", _slice(data, 24, 8, "the bundle's header"))
    at = 32
    out: list[tuple[str, bytes]] = []
    for _ in range(count):
        offset, size, length = struct.unpack("<QQQ", _slice(data, at, 24, "the bundle's header"))
        name = _slice(data, at + 24, length, "the bundle's header").decode("utf-8", "replace")
        at += 24 + length
        room.take(24 + length + size)  # entries may share their bytes
        if size and not name.startswith("host"):
            out.append((name, _slice(data, offset, size, "the bundle")))
    return tuple(out)

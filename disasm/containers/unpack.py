"""Entries of fat binaries, unpacked when they are needed, within one budget for their file."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import lz4.block
import zstandard

from sassxlate.disasm.containers.elf import fail

Compression: TypeAlias = Literal["none", "lz4", "zstd"]

# Limits of unpacked bytes: for a small file, and for each byte of a larger file: NVIDIA's
# compilers reach a ratio of 3 to 6 on machine code.  With the copies made when reading a cubin,
# this is less than 2 GiB.
LEAST = 1 << 28
RATIO = 16
_WINDOW = 1 << 27
_CHUNK = 1 << 20


@dataclass(slots=True, eq=False)
class Budget:
    """Bytes that all entries of one file may take unpacked; each is counted once."""

    limit: int
    _taken: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def of(cls, size: int) -> Budget:
        """The budget of a file of ``size`` bytes."""
        return cls(max(LEAST, RATIO * size))

    def take(self, at: int, size: int) -> None:
        """Counts the entry at file offset ``at``; ContainerError SX0115 if it is too much."""
        if at in self._taken:
            return
        left = self.limit - sum(self._taken.values())
        if size > left:
            text = f"an entry of {size} bytes unpacked, where {left} are left of {self.limit} for"
            raise fail("SX0115", f"{text} the file", at)
        self._taken[at] = size


@dataclass(frozen=True, slots=True)
class Packed:
    """The bytes of an entry as stored in the file, and how to unpack them.

    ``size`` is the size that the header declares; ``at`` is the entry's offset in the file.
    """

    body: memoryview
    size: int
    compression: Compression = "none"
    at: int = field(default=0, compare=False)
    budget: Budget | None = field(default=None, compare=False)

    def unpack(self) -> bytes:
        """The entry's ``size`` bytes.

        Raises ContainerError SX0114 (damaged), SX0115 (more than the file may hold), SX0116 (of
        another size).
        """
        if self.compression == "none":
            return bytes(self.body)
        if self.budget is not None:
            self.budget.take(self.at, self.size)
        unpack = _lz4 if self.compression == "lz4" else _zstd
        return unpack(self.body, self.size, self.at)


def _lz4(body: memoryview, plain: int, at: int) -> bytes:
    try:
        found = lz4.block.decompress(bytes(body), uncompressed_size=plain)
    except (lz4.block.LZ4BlockError, ValueError, OverflowError, MemoryError) as error:
        raise fail("SX0114", f"LZ4: {error}", at) from None
    if len(found) != plain:
        raise fail("SX0116", f"LZ4 made {len(found)} bytes of {plain}", at)
    return bytes(found)


def _zstd(body: memoryview, plain: int, at: int) -> bytes:
    size = 0
    try:
        out = memoryview(bytearray(plain + 1))  # pages that are not written cost nothing
        reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(
            io.BytesIO(body), read_across_frames=False
        )
        while size <= plain:
            part: int = reader.readinto(out[size : size + _CHUNK])  # pyright: ignore
            if not part:
                break
            size += part
        if size == plain:
            return bytes(out[:plain])
    except (zstandard.ZstdError, ValueError, MemoryError) as error:
        raise fail("SX0114", f"Zstandard: {error}", at) from None
    more = "more than" if size > plain else f"{size} bytes of"
    raise fail("SX0116", f"Zstandard made {more} {plain}", at)


__all__ = ["LEAST", "RATIO", "Budget", "Compression", "Packed"]

"""Memory of a launch: pieces of the device's address space, and arrays for shared and local memory.

Each is one flat array of bytes.  An address outside all pieces raises Outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Addresses: TypeAlias = NDArray[np.uint64]
Places: TypeAlias = NDArray[np.int64]

# High words of the windows through which generic addresses reach shared and local memory: equal to
# the emulated device's, so that stored pointers compare equal.
SHARED_WINDOW, LOCAL_WINDOW = 0x00010000, 0x00020000
NOBODY = -1
_ROOM = 32  # padding bytes after the last one


class Outside(Exception):
    """An access outside existing memory; ``number`` is the index among the accesses of the call."""

    def __init__(self, address: int, number: int) -> None:
        super().__init__(address, number)
        self.address = address
        self.number = number


class Flat:
    """Bytes; ``writer`` is the code offset of the last store to each word, ``thread`` its
    thread."""

    def __init__(self, size: int) -> None:
        self.bytes: Bytes = np.zeros((size + _ROOM) & ~15, np.uint8)
        self.words: NDArray[np.uint32] = self.bytes.view(np.uint32)
        self.writer: NDArray[np.int32] = np.full(len(self.words), NOBODY, np.int32)
        self.thread: NDArray[np.int64] = np.zeros(len(self.words), np.int64)

    def load(self, at: Places, size: int) -> Bytes:
        """(n, size) bytes at aligned places."""
        if size < 4:
            out: Bytes = self.bytes[at[:, None] + np.arange(size)]
        elif size == 4:
            out = self.words[at >> 2][:, None].view(np.uint8)
        else:
            out = self.words[(at >> 2)[:, None] + np.arange(size // 4)].view(np.uint8)
        return out

    def store(self, at: Places, data: Bytes, by: int, threads: NDArray[np.int64]) -> None:
        """Stores rows of bytes; of two stores to one address, the last wins."""
        size = data.shape[-1]
        first = at >> 2
        if size < 4:
            self.bytes[at[:, None] + np.arange(size)] = data
            self.writer[first] = by
            self.thread[first] = threads
            return
        words = np.ascontiguousarray(data).view(np.uint32)
        for i in range(size // 4):
            self.words[first + i] = words[:, i]
            self.writer[first + i] = by
            self.thread[first + i] = threads


class Rows(Flat):
    """An array of equal parts: shared memory of blocks, local memory of lanes."""

    def __init__(self, count: int, size: int) -> None:
        self.size = size
        self.stride = (size + _ROOM) & ~15
        super().__init__(count * self.stride)

    def places(self, row: Places, offset: Addresses, size: int) -> Places:
        """Places of offsets within parts; raises Outside for an offset beyond the part."""
        bad = offset + np.uint64(size) > np.uint64(self.size)
        if bad.any():
            number = int(np.flatnonzero(bad)[0])
            raise Outside(int(offset[number]), number)
        return row * self.stride + offset.astype(np.int64)

    def row(self, number: int) -> Bytes:
        """One part; a view."""
        return self.bytes[number * self.stride : number * self.stride + self.size]


@dataclass(frozen=True, slots=True)
class Piece:
    """``size`` bytes of device memory from address ``base`` on."""

    base: int
    size: int


class GlobalMemory(Flat):
    """The existing pieces of device memory."""

    def __init__(self, pieces: Sequence[tuple[int, Bytes]]) -> None:
        ordered = sorted(pieces, key=lambda p: p[0])
        places: list[int] = []
        total = 0
        for base, data in ordered:
            total = (total + 15 & ~15) + base % 16
            places.append(total)
            total += len(data)
        super().__init__(total)
        self.pieces = tuple(Piece(base, len(data)) for base, data in ordered)
        self._bases = np.array([p.base for p in self.pieces], np.uint64)
        self._sizes = np.array([p.size for p in self.pieces], np.uint64)
        self._at = np.array(places, np.int64)
        self._last = 0
        for (_, data), place in zip(ordered, places, strict=True):
            self.bytes[place : place + len(data)] = data

    def data(self, number: int) -> Bytes:
        """The bytes of a piece; a view."""
        place = int(self._at[number])
        return self.bytes[place : place + self.pieces[number].size]

    def writer_of(self, number: int, offset: int) -> tuple[int, int] | None:
        """For a byte of a piece: the code offset of the last store, and the number of its lane in
        the grid (32 per warp, from the first block on)."""
        word = int(self._at[number]) + offset >> 2
        by = int(self.writer[word])
        return None if by == NOBODY else (by, int(self.thread[word]))

    def places(self, addresses: Addresses, size: int) -> Places:
        """The places of accesses of ``size`` bytes; raises Outside if there is no memory."""
        if not len(self._bases):
            raise Outside(int(addresses[0]), 0)
        k = self._last
        inside = addresses - self._bases[k]
        room = self._sizes[k]
        if size <= room and (inside <= room - np.uint64(size)).all():
            near: Places = inside.astype(np.int64) + self._at[k]
            return near
        number = np.searchsorted(self._bases, addresses, side="right") - 1
        known = np.maximum(number, 0)
        inside = addresses - self._bases[known]
        room = self._sizes[known]
        bad = (number < 0) | (room < np.uint64(size)) | (inside > room - np.uint64(size))
        if bad.any():
            lane = int(np.flatnonzero(bad)[0])
            raise Outside(int(addresses[lane]), lane)
        self._last = int(known[0])
        out: Places = inside.astype(np.int64) + self._at[known]
        return out

    def read(self, address: int, size: int) -> Bytes:
        """``size`` bytes at an address; raises Outside if they do not exist."""
        at = int(self.places(np.array([address], np.uint64), size)[0])
        return self.bytes[at : at + size]

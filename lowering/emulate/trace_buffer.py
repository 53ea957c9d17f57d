"""Holds what the calls of :mod:`.wave.trace_points` record in a launch."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sassxlate.lowering.emulate.wave.trace_points import HEAD


class _Header(ctypes.Structure):
    _fields_ = [
        ("used", ctypes.c_uint64), ("room", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("budget", ctypes.c_int64),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """One pass of a wave over a point."""

    point: int
    wave: int
    mask: int
    exec: int
    values: NDArray[np.uint32]  # of the per-lane places, 32 each, then of the scalar ones


class Buffer:
    """Holds the records of one launch; ``budget`` counts RDNA3 instructions of waves."""

    def __init__(self, room: int, budget: int) -> None:
        size = max(room, 1) + mmap.PAGESIZE - 1 & -mmap.PAGESIZE
        self._map = mmap.mmap(-1, size)  # pages are allocated on first use
        self._view = (ctypes.c_char * size).from_buffer(self._map)
        self.header = _Header(0, size, ctypes.addressof(self._view), budget)

    @property
    def address(self) -> int:
        return ctypes.addressof(self.header)

    def words(self) -> NDArray[np.uint32]:
        """All records, one after another; a view."""
        return np.frombuffer(self._map, np.uint32, int(self.header.used) // 4)

    def records(self) -> Iterator[Record]:
        """In the order in which the waves passed the points."""
        words = self.words()
        at = 0
        while at < len(words):
            size, point, mask, exec_, low, high = (int(w) for w in words[at : at + HEAD])
            yield Record(point, low | high << 32, mask, exec_, words[at + HEAD : at + size])
            at += size


__all__ = ["Buffer", "Record"]

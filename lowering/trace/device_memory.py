"""Memory at the addresses that a recorded launch had."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sassxlate.errors import UsageError
from sassxlate.lowering.emulate.runner import EmulatedDevice
from sassxlate.lowering.trace.recording import Recorded

_SLACK = 64 << 20  # in addition to the recorded memory: arguments and the segments of code objects

_NORESERVE, _FIXED_NOREPLACE = 0x4000, 0x100000  # from <sys/mman.h>


class Memory(EmulatedDevice):
    """Device memory at the addresses that it had when the launches were recorded."""

    def __init__(self, launches: Sequence[Recorded]) -> None:
        pieces = {base: len(data) for launch in launches for base, data in launch.before.items()}
        pieces |= {base: len(data) for launch in launches for base, data in launch.after.items()}
        low = min(pieces) & -mmap.PAGESIZE
        end = max(base + size for base, size in pieces.items())
        self._start = -(-(end - low) // mmap.PAGESIZE) * mmap.PAGESIZE
        self.base, self.size = low, self._start + _SLACK
        self._next = self._start
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | _FIXED_NOREPLACE
        got = libc.mmap(low, self.size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if got != low:
            raise UsageError("SX0831", f"the recorded memory at {low:#x} is not free here")
        self._unmap = libc.munmap

    def close(self) -> None:
        self._unmap(self.base, self.size)

    def reset(self, pieces: Mapping[int, Any]) -> None:
        """Restores the memory at a launch's start; frees all allocations made here."""
        self._next = self._start
        for base, data in pieces.items():
            self.write(base, data.tobytes())

    def differences(self, pieces: Mapping[int, Any]) -> int:
        """The number of 32-bit words that differ from the record."""
        total = 0
        for base, data in pieces.items():
            here = np.frombuffer(self.read(base, len(data) & ~3), np.uint32)
            total += int(np.count_nonzero(here != data[: len(data) & ~3].view(np.uint32)))
        return total

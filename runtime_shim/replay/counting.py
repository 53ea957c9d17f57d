"""Reads the counts that ``SASSXLATE_COUNTS`` enables on the emulated device: how often the blocks
of kernels began.

``native/hip/counts.h`` has the format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sassxlate.errors import ShimError, Where

_MAGIC = b"sassxlate-counts 1"
_PAGE = 4096
_WORDS = 8  # 64-bit words before the blocks'


@dataclass(frozen=True, slots=True)
class Executions:
    """The counts of one image in one process.  ``key`` is :func:`.cache.keys.host_key`'s,
    ``threads`` the largest workgroup, ``shared`` the largest dynamic shared memory of one in bytes,
    ``blocks`` how often waves began each block of the image, in the order of addresses."""

    key: str
    kernel: str
    launches: int
    workgroups: int
    waves: int
    threads: int
    shared: int
    blocks: tuple[int, ...]

    def plus(self, other: Executions) -> Executions:
        """The sum with counts of the same image in another process, or loaded again."""
        return Executions(
            self.key,
            self.kernel,
            self.launches + other.launches,
            self.workgroups + other.workgroups,
            self.waves + other.waves,
            max(self.threads, other.threads),
            max(self.shared, other.shared),
            tuple(a + b for a, b in zip(self.blocks, other.blocks, strict=True)),
        )


def read(folder: Path) -> dict[str, Executions]:
    """All counts that a run left in a directory, by key.  ShimError SX0724 for a damaged file."""
    found: dict[str, Executions] = {}
    for path in sorted(folder.glob("counts-*")):
        for one in _one(path):
            found[one.key] = found[one.key].plus(one) if one.key in found else one
    return found


def _one(path: Path) -> Iterator[Executions]:
    data = path.read_bytes()
    head = data.partition(b"\0")[0]
    try:
        magic, key, size, kernel = head.split(b"\n", 3)
        count = int(size.removeprefix(b"blocks "))
        start = (len(head) // _PAGE + 1) * _PAGE
        words = struct.unpack_from(f"<{_WORDS + count}Q", data, start)
        if magic != _MAGIC or not key.startswith(b"key ") or not kernel.startswith(b"kernel "):
            raise ValueError(magic)
    except (ValueError, struct.error):
        text = "the counts of executions are damaged"
        raise ShimError("SX0724", text, Where(str(path))) from None
    name = kernel[7:].decode(errors="replace").rstrip("\n")
    launches, groups, waves, threads, shared = words[:5]
    blocks = tuple(words[_WORDS:])
    yield Executions(key[4:].decode(), name, launches, groups, waves, threads, shared, blocks)


__all__ = ["Executions", "read"]

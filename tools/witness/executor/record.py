"""A recorded dispatch (runtime_shim/native/kfd/record.cpp writes it)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
_MAGIC = b"SXDISP01"


class RecordError(Exception):
    """A file that is no recorded dispatch."""


@dataclass(frozen=True, slots=True)
class Range:
    """Addresses that the card may access, from ``begin`` up to ``end``."""

    begin: int
    end: int
    read_only: bool
    host_memory: bool


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch.

    ``address``: the packet's.  ``lds``: bytes per workgroup; ``scratch``: bytes per lane.
    ``before`` and ``changed``: pages of 4096 bytes by their addresses; those that are not in
    ``before`` are zero.
    """

    kernel: str
    address: int
    workgroup: tuple[int, int, int]
    grid: tuple[int, int, int]  # work-items
    descriptor: int
    kernarg: int
    lds: int
    scratch: int
    ranges: tuple[Range, ...]
    before: dict[int, bytes]
    changed: dict[int, bytes]

    @property
    def groups(self) -> tuple[int, int, int]:
        x, y, z = (n // by for n, by in zip(self.grid, self.workgroup, strict=True))
        return x, y, z

    def bytes_at(self, address: int, size: int) -> bytes:
        """Memory as it was before."""
        out = b""
        while len(out) < size:
            at = address + len(out)
            page = self.before.get(at & -PAGE, bytes(PAGE))
            out += page[at % PAGE :][: size - len(out)]
        return out


def read(path: Path) -> Dispatch:
    """The dispatch in a file.  Raises `RecordError` and OSError."""
    data = path.read_bytes()
    at = len(_MAGIC)

    def take(form: str) -> tuple[int, ...]:
        nonlocal at
        values = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return values

    def pages() -> dict[int, bytes]:
        nonlocal at
        found: dict[int, bytes] = {}
        for _ in range(take("<Q")[0]):
            (address,) = take("<Q")
            found[address] = data[at : at + PAGE]
            at += PAGE
        return found

    try:
        if data[:at] != _MAGIC:
            raise RecordError(f"{path}: not a recorded dispatch")
        (address,) = take("<Q")
        packet = take("<2H3HH3I2I4Q")
        lds, scratch, length = take("<IIQ")
        name = data[at : at + length].decode()
        at += length
        ranges = tuple(
            Range(begin, end, bool(flags & 1), bool(flags & 2))
            for begin, end, flags in (take("<3Q") for _ in range(take("<Q")[0]))
        )
        before, changed = pages(), pages()
    except (struct.error, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: a truncated record of a dispatch: {error}") from None
    if at != len(data):
        raise RecordError(f"{path}: {len(data) - at} bytes after a recorded dispatch")
    return Dispatch(
        name, address, (packet[2], packet[3], packet[4]), (packet[6], packet[7], packet[8]),
        packet[11], packet[12], lds, scratch, ranges, before, changed,
    )  # fmt: skip

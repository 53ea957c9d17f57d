"""The record that ``SASSXLATE_RECORD`` makes the emulated device write: launches and their memory.

``native/hip/record.h`` has the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from sassxlate.errors import ShimError, Where

Bytes = NDArray[np.uint8]
MAGIC = b"sassxlate-launches 1\n"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One launch.  ``before`` and ``after`` are the pieces of device memory by address; ``key`` is
    the key of the kernel's host code (:func:`.cache.keys.host_key`)."""

    number: int
    kernel: str
    key: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int  # dynamic, bytes
    cooperative: bool
    kernarg: bytes
    before: Mapping[int, Bytes]
    after: Mapping[int, Bytes]
    fault: int  # 0, or the kind of fault that stopped it


def read(path: Path, wanted: Callable[[str, str], bool] | None = None) -> Iterator[Recorded]:
    """The launches of a record, in the order in which they ran, whose kernel and key satisfy
    ``wanted``.  ShimError SX0723 for another file; an unfinished last launch is left out."""
    with open(path, "rb") as file:
        if file.readline() != MAGIC:
            raise ShimError("SX0723", "not a record of launches", Where(str(path)))
        try:
            yield from _launches(file, wanted or _every)
        except (ValueError, IndexError, KeyError):
            text = "the record of launches is damaged"
            raise ShimError("SX0723", text, Where(str(path))) from None


def _every(_kernel: str, _key: str) -> bool:
    return True


def _launches(file: BinaryIO, wanted: Callable[[str, str], bool]) -> Iterator[Recorded]:
    memory: dict[int, Bytes] = {}
    before: dict[int, Bytes] = {}
    head: list[str] = []
    kernarg, kept = b"", False
    number = 0
    while line := file.readline():
        if not line.endswith(b"\n"):
            return
        what, *rest = line.decode().rstrip("\n").split(" ")
        match what:
            case "piece":
                memory[int(rest[0])] = np.zeros(int(rest[1]), np.uint8)
            case "gone":
                del memory[int(rest[0])]
            case "page":
                address, size = int(rest[0]), int(rest[1])
                data = file.read(size)
                if len(data) < size:
                    return
                base = max(b for b in memory if b <= address)
                memory[base][address - base : address - base + size] = np.frombuffer(data, np.uint8)
            case "launch":
                head = rest
                kept = wanted(" ".join(rest[11:]), rest[0])
                before = {base: data.copy() for base, data in memory.items()} if kept else {}
                kernarg = file.read(int(rest[10]))
            case "end":
                if kept:
                    after = {base: data.copy() for base, data in memory.items()}
                    yield _recorded(number, head, kernarg, before, after, int(rest[0]))
                number += 1
            case _:
                raise ValueError(what)


def _recorded(
    number: int,
    head: list[str],
    kernarg: bytes,
    before: Mapping[int, Bytes],
    after: Mapping[int, Bytes],
    fault: int,
) -> Recorded:
    n = [int(text) for text in head[1:9]]
    return Recorded(
        number, " ".join(head[11:]), head[0], (n[0], n[1], n[2]), (n[3], n[4], n[5]), n[6],
        bool(n[7]), kernarg, before, after, fault,
    )  # fmt: skip

"""What a program or library registers with the CUDA runtime, as read from its file.

The libraries hand each image in as it lies in memory, which is as in the file, so that the keys are
the same; `native/cuda/capability.cpp` has the same rules for which code is for the device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from sassxlate.disasm.containers import host
from sassxlate.disasm.containers.elf import MAGIC as ELF_MAGIC
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.fatbin import MAGIC_BYTES, container_size, parse_fatbin
from sassxlate.disasm.containers.values import FatbinEntry
from sassxlate.runtime_shim.cache import runs
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.service import manifest

Place = tuple[int, int, tuple[int, ...], tuple[int, ...]]  # offset, size, architectures, PTX's
_MOST = 20_000  # images of one file
_OLDEST, NEWEST, _UNKNOWN = 75, 90, 80  # the newest that a device is unless it is asked for
_TEXT = ".text."


def images(path: Path) -> list[Place]:
    """The images of a host file, a fatbin or a cubin.

    Raises:
        ContainerError: it cannot be read, or is damaged.
    """
    data = host.read_file(os.fspath(path))
    loaded = host.load_bytes(data, os.fspath(path))
    if loaded.kind in ("cubin", "ptx"):
        return [(0, len(data), *_archs(loaded.fatbins[0].entries))]
    registered = {wrapper.container for wrapper in loaded.wrappers}
    return [
        (f.offset, container_size(data, f.offset), *_archs(f.entries))
        for f in loaded.fatbins[:_MOST]
        if not registered or f.offset in registered
    ]


def _archs(entries: Iterable[FatbinEntry]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    kinds: dict[str, set[int]] = {"elf": set(), "ptx": set()}
    for entry in entries:
        kinds.setdefault(entry.kind, set()).add(entry.arch)
    return tuple(sorted(kinds["elf"])), tuple(sorted(kinds["ptx"]))


def asked_capability(told: str = "") -> int:
    """The capability ``told`` ("8.0"), otherwise SASSXLATE_CC, as a number; 0 if there is none."""
    text = (told or os.environ.get("SASSXLATE_CC", "")).replace(".", "", 1)
    return int(text) if text.isdecimal() and 50 <= int(text) < 1000 else 0


def device_capability(places: Iterable[Place]) -> int:
    """What a device says that it is, for programs with these images."""
    elfs: set[int] = set()
    texts: set[int] = set()
    for _, _, machine, ptx in places:
        elfs.update(machine)
        texts.update(ptx)
    if best := _newest(elfs):
        return best
    return max(_UNKNOWN, _newest(texts)) if texts else _UNKNOWN


def capability_for(place: Place, device: int, asked: bool) -> int:
    """What an image is used for on a device: code for newer ones alone runs as such, unless the
    device was asked for."""
    _, _, elfs, texts = place
    found, oldest = (elfs, 0) if elfs else (texts, _OLDEST)
    fits = any(oldest <= arch <= device for arch in found)
    return device if asked or fits else _newest(found) or device


def _newest(found: Iterable[int]) -> int:
    return max((arch for arch in found if _OLDEST <= arch <= NEWEST), default=0)


def part(path: Path, offset: int, size: int) -> bytes:
    """Bytes of a file.  OSError."""
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(size)


def kernels(
    image: bytes,
    capability: int,
    supported: frozenset[int],
    wanted: Callable[[str], bool],
    *,
    ptx: bool,
) -> bool:
    """Whether there may be kernels whose names are wanted in the machine code that is chosen;
    cheaper than reading the image.  ``ptx``: the answer for PTX, whose names are known only when it
    is compiled."""
    payload: bytes | memoryview = image
    if image.startswith(MAGIC_BYTES):
        entry = manifest.choose(parse_fatbin(image), capability, supported)
        if entry is None:
            return ptx
        payload = entry.payload
    elif not image.startswith(ELF_MAGIC):
        return ptx
    sections = Elf(bytes(payload)).sections
    return any(s.name.startswith(_TEXT) and wanted(s.name[len(_TEXT) :]) for s in sections)


def recorded(cache: Cache, key: str) -> frozenset[str]:
    """The kernels' names in a record of a run; see :mod:`sassxlate.runtime_shim.cache.runs`."""
    path = runs.record_path(cache.root, key)
    return _recorded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _recorded(path: Path, _time: int) -> frozenset[str]:
    return runs.read_own(path).names()


__all__ = [
    "NEWEST",
    "Place",
    "asked_capability",
    "capability_for",
    "device_capability",
    "images",
    "kernels",
    "part",
    "recorded",
]

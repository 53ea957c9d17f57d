"""PTX as text: what it is for, and what no assembler need be started for."""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.disasm.containers.ptx import target_of
from sassxlate.disasm.containers.values import Fatbin, FatbinEntry
from sassxlate.errors import ShimError

SOURCE_MAX = 256 << 20  # bytes; NVIDIA's libraries carry modules of some 10 MB


@dataclass(frozen=True, slots=True)
class Source:
    """PTX text without the padding after it; its ``.target`` (90, "a"), None if it names none."""

    text: bytes
    target: tuple[int, str] | None


def read_source(data: bytes) -> Source:
    """The text of a module.

    Raises:
        ShimError: SX0742, a NUL byte within it, or more than ``SOURCE_MAX`` bytes.
    """
    text = data.rstrip(b"\0")
    if len(text) > SOURCE_MAX:
        raise ShimError("SX0742", f"{len(text)} bytes of PTX; at most {SOURCE_MAX} are taken")
    if (at := text.find(b"\0")) >= 0:
        raise ShimError("SX0742", f"a NUL byte at {at} of {len(text)} bytes of PTX")
    return Source(text, target_of(text))


def choose_ptx(fatbin: Fatbin, capability: int) -> FatbinEntry | None:
    """The PTX to compile where there is no SASS: the newest that is not newer than the device,
    otherwise the oldest, whose ``.target`` is then refused; None if there is none."""
    found = [e for e in fatbin.entries if e.kind == "ptx"]
    fitting = [e for e in found if e.arch <= capability]
    if fitting:
        return max(fitting, key=lambda e: (e.arch, e.variant == ""))
    return min(found, key=lambda e: e.arch, default=None)


__all__ = ["SOURCE_MAX", "Source", "choose_ptx", "read_source"]

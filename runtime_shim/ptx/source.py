"""PTX as text: what it is for, and what no assembler need be started for."""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.disasm.containers.ptx import target_of
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


__all__ = ["SOURCE_MAX", "Source", "read_source"]

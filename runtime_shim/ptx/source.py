"""PTX as text: what it is for, and what no assembler need be started for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sassxlate.errors import ShimError

SOURCE_MAX = 256 << 20  # bytes; NVIDIA's libraries carry modules of some 10 MB
_HEAD = 1 << 20  # bytes in which the directives must stand
_BLANK = re.compile(rb"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_VERSION = re.compile(rb"\.version\s+(\d{1,4})\.(\d{1,4})")
_TARGET = re.compile(rb"\.target\s+([^\n;]*)")
_SM = re.compile(rb"\bsm_(\d{1,4})([af]?)")


@dataclass(frozen=True, slots=True)
class Source:
    """PTX text without the padding after it; its ``.target`` (90, "a"), None if it names none."""

    text: bytes
    target: tuple[int, str] | None


def is_ptx(data: bytes) -> bool:
    """Whether a file starts as PTX does: ``.version`` after blanks and comments."""
    return _VERSION.match(data, _after_blanks(data)) is not None


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
    return Source(text, _target(text))


def _after_blanks(data: bytes) -> int:
    match = _BLANK.match(data, 0, _HEAD)
    return match.end() if match else 0


def _target(text: bytes) -> tuple[int, str] | None:
    version = _VERSION.match(text, _after_blanks(text))
    if version is None:
        return None  # ptxas says what is wrong
    blank = _BLANK.match(text, version.end(), version.end() + _HEAD)
    line = _TARGET.match(text, blank.end() if blank else version.end())
    found = _SM.search(line[1]) if line else None
    return (int(found[1]), found[2].decode()) if found else None


__all__ = ["SOURCE_MAX", "Source", "is_ptx", "read_source"]

"""PTX text: told from other files by its first directives."""

from __future__ import annotations

import re

_HEAD = 1 << 20  # the directives must be in the first bytes
_BLANK = re.compile(rb"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_VERSION = re.compile(rb"\.version\s+(\d{1,4})\.(\d{1,4})")
_TARGET = re.compile(rb"\.target\s+([^\n;]*)")
_SM = re.compile(rb"\bsm_(\d{1,4})([af]?)")


def is_ptx(data: bytes) -> bool:
    """Whether a file starts as PTX does: ``.version`` after blanks and comments."""
    return _VERSION.match(data, _after_blanks(data, 0)) is not None


def target_of(data: bytes) -> tuple[int, str] | None:
    """The ``.target`` as (90, "a"); None if the first two directives do not name one."""
    version = _VERSION.match(data, _after_blanks(data, 0))
    if version is None:
        return None
    line = _TARGET.match(data, _after_blanks(data, version.end()))
    found = _SM.search(line[1]) if line else None
    return (int(found[1]), found[2].decode()) if found else None


def _after_blanks(data: bytes, at: int) -> int:
    match = _BLANK.match(data, at, at + _HEAD)
    return match.end() if match else at


__all__ = ["is_ptx", "target_of"]

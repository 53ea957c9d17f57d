"""Kernels whose code is partly a model's, kept in the cache for programs that run later.

An entry belongs to the code object that the rules write: whoever translates a kernel by the rules
and gets the same bytes may take the entry's instead.  Every block in it was proved when it was
made, and both have one launch text.
"""

from __future__ import annotations

from pathlib import Path

from .cache import Cache, key_of
from .paths import write_whole

AREA = "kernel"
SUFFIX = ".hybrid"


def _name(rules: bytes) -> str:
    return f"{key_of(rules)}{SUFFIX}"


def find(cache: Cache, rules: bytes) -> bytes | None:
    """The code object to take for the rules' one; None where there is none."""
    return cache.read(AREA, _name(rules))


def keep(cache: Cache, rules: bytes, made: bytes) -> None:
    """Keeps ``made`` for the kernel that the rules translate to ``rules``, and puts it in the place
    of the rules' code where that is in the cache already.  OSError where there is no room."""
    cache.write(AREA, _name(rules), made)
    for path in sorted(cache.path(AREA, "").glob("*.hsaco")):
        if path.stat().st_size == len(rules) and path.read_bytes() == rules:
            write_whole(path, made)


def any_kept(root: Path, tag: str) -> bool:
    """Whether the cache has code of a model's."""
    return any((root / AREA / tag).glob(f"*{SUFFIX}"))


__all__ = ["any_kept", "find", "keep"]

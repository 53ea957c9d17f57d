"""Kernels whose code is partly a model's, stored in the cache for programs that run later.

An entry belongs to the code object and the launch text that the rules write, under the cache's tag,
which covers all deciding source code and the solver: if a kernel's translation by the rules gives
the same bytes, the entry's code may replace it.  Every block in it was proved when it was made.
The entry has the model that wrote it (the name has the digest of its weights) and the outcome of
each block, even if nothing was taken; of several models' code the cheapest is stored.

A file is the line ``sassxlate-hybrid 2``, the length of the report as eight bytes, the report
(JSON), and the code object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.runtime_shim.cache.store import SEAL_SIZE, Cache, key_of

AREA = "kernel"
SUFFIX = ".hybrid"
_MAGIC = b"sassxlate-hybrid 2\n"


@dataclass(frozen=True, slots=True)
class Kept:
    """A code object, and :meth:`sassxlate.llm.engine.report.EngineReport.as_dict` about
    it."""

    code: bytes
    report: Mapping[str, Any]


def _name(rules: bytes, launch: str) -> str:
    return f"{key_of(rules, launch.encode())}{SUFFIX}"


def find(cache: Cache, rules: bytes, launch: str) -> Kept | None:
    """The replacement for the rules' code object; None if there is none, or it is damaged."""
    data = cache.read(AREA, _name(rules, launch))
    return None if data is None else _parsed(data)


def _parsed(data: bytes) -> Kept | None:
    if not data.startswith(_MAGIC):
        return None
    body = data[len(_MAGIC) :]
    size = int.from_bytes(body[:8], "little")
    report: dict[str, Any] = json.loads(body[8 : 8 + size])
    return Kept(body[8 + size :], report)


def keep(cache: Cache, rules: bytes, launch: str, made: bytes, report: Mapping[str, Any]) -> None:
    """Stores ``made`` for the kernel that the rules translate to ``rules`` and ``launch``, and puts
    it in place of the rules' code, or another model's, if that is already in the cache;
    unless the stored code saves more.  OSError if there is no room."""
    before = find(cache, rules, launch)
    if before is not None and before.report.get("saved", 0) > report.get("saved", 0):
        return
    text = json.dumps(report).encode()
    body = len(text).to_bytes(8, "little") + text + made
    cache.write(AREA, _name(rules, launch), _MAGIC + body)
    others = [rules] if before is None else [rules, before.code]
    for path in sorted(cache.path(AREA, "").glob("*.hsaco")):
        size = path.stat().st_size - SEAL_SIZE
        if any(size == len(other) for other in others) and cache.read(AREA, path.name) in others:
            there = path.with_suffix(".launch")
            if cache.read(AREA, there.name) == launch.encode():
                cache.write(AREA, path.name, made)


def any_kept(root: Path, tag: str) -> bool:
    """Whether the cache has code for which a model was asked."""
    return any((root / AREA / tag).glob(f"*{SUFFIX}"))


__all__ = ["Kept", "any_kept", "find", "keep"]

"""Kernels whose code is partly not the rules', kept in the cache for programs that run later.

An entry belongs to the code object and the launch text that the rules write, under the cache's tag,
which covers all sources that affect code, and the solver: a kernel whose translation by the rules
has the same bytes may use the entry's code instead.  Every block in it was proved when it was made.
The entry says which engine wrote it (a model's name has the digest of its weights) and what became
of each block, also if none was taken.  Each engine has its own entry, keyed by all that its code
depends on; one more entry is a copy of the cheapest, which programs get.

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
    """A code object, and what :meth:`sassxlate.lowering.engine.report.EngineReport.as_dict`
    said of it."""

    code: bytes
    report: Mapping[str, Any]


def file_name(rules: bytes, launch: str, engine: str) -> str:
    """The name of the entry of an engine ("": the cheapest) for the rules' code object."""
    whose = f"-{key_of(engine.encode())[:16]}" if engine else ""
    return f"{key_of(rules, launch.encode())}{whose}{SUFFIX}"


def find(cache: Cache, rules: bytes, launch: str, engine: str = "") -> Kept | None:
    """What to take for the rules' code object, of one engine (its
    :attr:`~sassxlate.lowering.engine.engine.Engine.identity`) or the cheapest of all; None where
    there is nothing, or it is damaged."""
    data = cache.read(AREA, file_name(rules, launch, engine))
    return None if data is None else _parsed(data)


def _parsed(data: bytes) -> Kept | None:
    if not data.startswith(_MAGIC):
        return None
    body = data[len(_MAGIC) :]
    size = int.from_bytes(body[:8], "little")
    report: dict[str, Any] = json.loads(body[8 : 8 + size])
    return Kept(body[8 + size :], report)


def keep(
    cache: Cache, rules: bytes, launch: str, made: bytes, report: Mapping[str, Any], engine: str
) -> None:
    """Keeps an engine's ``made`` for the kernel that the rules translate to ``rules`` and
    ``launch``, and puts it in the place of the rules' code, or another engine's, where that is in
    the cache already; unless what is kept for it saves more.  OSError where there is no room."""
    text = json.dumps(report).encode()
    entry = _MAGIC + len(text).to_bytes(8, "little") + text + made
    cache.write(AREA, file_name(rules, launch, engine), entry)
    before = find(cache, rules, launch)
    if before is not None and before.report.get("saved", 0) > report.get("saved", 0):
        return
    cache.write(AREA, file_name(rules, launch, ""), entry)
    others = [rules] if before is None else [rules, before.code]
    for path in sorted(cache.path(AREA, "").glob("*.hsaco")):
        size = path.stat().st_size - SEAL_SIZE
        if any(size == len(other) for other in others) and cache.read(AREA, path.name) in others:
            there = path.with_suffix(".launch")
            if cache.read(AREA, there.name) == launch.encode():
                cache.write(AREA, path.name, made)


def any_kept(root: Path, tag: str) -> bool:
    """Whether an engine was asked for code in the cache."""
    return any((root / AREA / tag).glob(f"*{SUFFIX}"))


__all__ = ["Kept", "any_kept", "file_name", "find", "keep"]

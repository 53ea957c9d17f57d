"""Verdicts by content: the same block under the same map, judged by the same code, is proved once.

A file of the cache holds one verdict.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.place import place
from sassxlate.runtime_shim.cache.store import Cache, key_of, size_cap
from sassxlate.runtime_shim.cache.tag import decisive

if TYPE_CHECKING:
    from sassxlate.lowering.verify import BlockPair, Verdict

AREA = "verdict"


@cache
def verdict_tag() -> str:
    """A tag that changes with the source code that decides verdicts, and with the solver."""
    digest = hashlib.blake2b(importlib.metadata.version("z3-solver").encode(), digest_size=16)
    root = paths.package_root()
    for name in decisive(root):
        data = (root / name).read_bytes()
        digest.update(f"{name} {len(data)}\0".encode() + data)
    return digest.hexdigest()


def _sorted(items: Iterable[object]) -> str:
    return " ".join(sorted(map(repr, items)))


def _key(block: BlockPair, settings: object) -> str:
    """The key of everything that a verdict depends on, with the bytes of the code decoded."""
    regs = block.regs
    parts = [
        repr(settings),
        repr([(i.arch, i.offset, i.word) for i in block.sass]),
        repr([[(s.pc, s.next, s.inst, s.inst.uniform) for s in code] for code in block.rdna]),
        repr([(s.pc, s.next, s.inst) for s in block.tail]),
        # Instructions may have operands that are not in their words.
        repr([sorted(i.operands.items(), key=lambda o: o[0]) for i in block.sass]),
        *(f"{f.name} {getattr(regs, f.name)!r}" for f in fields(regs)),
        repr(block.layout),
        _sorted(block.merged),
        repr(sorted(block.tables.items())),
        repr(sorted(block.wide)),
        repr(sorted(block.exact)),
        "all" if block.live_out is None else _sorted(block.live_out),
        _sorted(block.loose.items()),
        _sorted((ref, sorted(kinds)) for ref, kinds in block.loose_out.items()),
    ]
    return key_of(*(p.encode() for p in parts))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on disk."""

    cache: Cache

    def key(self, block: BlockPair, settings: object) -> str:
        """The key of everything that a verdict depends on, with the bytes of the code decoded."""
        return _key(block, settings)

    def read(self, name: str) -> Verdict | None:
        data = self.cache.read(AREA, name)
        return None if data is None else _parsed(data)

    def write(self, name: str, verdict: Verdict) -> None:
        """Stores a verdict unless it depends on the speed of the machine."""
        from sassxlate.lowering.verify import Unknown

        if isinstance(verdict, Unknown):
            return
        body = json.dumps({"verdict": type(verdict).__name__, **asdict(verdict)}).encode()
        try:
            self.cache.write(AREA, name, body)
        except OSError:
            return  # no room: proved again next time


def verdicts() -> Verdicts | None:
    """The store in the environment's cache; None if others can write there."""
    root = place()
    return None if root is None else Verdicts(_cache(root, verdict_tag(), size_cap()))


@cache
def _cache(root: Path, tag: str, cap: int) -> Cache:
    # One per process: it measures the total size now and then.
    return Cache(root, tag, cap)


def _parsed(data: bytes) -> Verdict:
    from sassxlate.lowering.verify import Proved, Refuted

    fields: dict[str, Any] = json.loads(data)
    if fields.pop("verdict") == "Proved":
        return Proved(tuple(fields["modulo"]))
    return Refuted(**fields)

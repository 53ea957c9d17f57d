"""Another engine's code of a kernel that runs already, for its later launches.

The kernel has the rules' code, which was there first.  What the engine wrote, or why it did not, is
kept as `run --engine` keeps it, and takes the rules' place in the cache; the file ``.upgraded``
beside the code says that there is nothing more to come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sassxlate.runtime_shim.cache import hybrid
from sassxlate.runtime_shim.cache.store import Cache

UPGRADED = ".upgraded"


@dataclass(frozen=True, slots=True)
class Better:
    """A kernel by the rules and by an engine, with the launch text of either; ``report`` is what
    `EngineReport.as_dict` says, ``engine`` all that the code depends on."""

    rules: bytes
    made: bytes
    launch: str
    made_launch: str
    report: Mapping[str, Any]
    engine: str


def upgrade(
    cache: Cache,
    stem: str,
    found: Better,
    lined: Callable[[bytes], bytes],
    first: Callable[[bytes], object],
) -> None:
    """Puts the engine's code of a kernel, whose files are called ``stem``, into the cache.

    ``lined`` adds the lines that its module has, ``first`` is what has to be done with the code
    before a program may find it.  OSError where there is no room.
    """
    if found.launch == found.made_launch:
        hybrid.keep(cache, found.rules, found.launch, found.made, found.report, found.engine)
        if found.made != found.rules:
            code = lined(found.made)
            first(code)
            cache.write("kernel", f"{stem}.hsaco", code)
    settle(cache, stem)


def settle(cache: Cache, stem: str) -> None:
    """Says that there is nothing more to come."""
    cache.write("kernel", f"{stem}{UPGRADED}", b"")


__all__ = ["UPGRADED", "Better", "settle", "upgrade"]

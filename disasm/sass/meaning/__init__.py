"""What each SASS instruction means: one row a mnemonic, read by every consumer.

Read over :class:`sassxlate.vectors.Vectors` it is the reference interpreter, over z3 terms the
verifier's left side.  Each was confirmed on silicon, see ``fixtures/silicon``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from . import compare, convert, float, half, integer, logic, move, pack
from .rows import Env, Meaning, NoMeaning, View, evaluate

_CATEGORIES = (integer, logic, compare, float, half, convert, pack, move)


@cache
def meanings() -> Mapping[str, Meaning]:
    """Every row by mnemonic."""
    table: dict[str, Meaning] = {}
    for category in _CATEGORIES:
        for r in category.rows():
            if r.mnemonic in table:
                raise ValueError(f"two meanings of {r.mnemonic}")
            table[r.mnemonic] = r
    return table


@cache
def converts() -> frozenset[str]:
    """The mnemonics of those that convert between formats of numbers."""
    return frozenset(r.mnemonic for category in (convert, pack) for r in category.rows())


__all__ = ["Env", "Meaning", "NoMeaning", "View", "converts", "evaluate", "meanings"]

"""The semantics of each SASS instruction: one row per mnemonic, used by every consumer.

Evaluated over :class:`sassxlate.domain.numpy_lanes.Vectors` it is the reference interpreter, over
z3 terms the verifier's left side.  Each row was confirmed on hardware, see ``fixtures/silicon``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sassxlate.disasm.sass.semantics.arithmetic import (
    compare,
    convert,
    float,
    half,
    integer,
    logic,
    move,
    pack,
)
from sassxlate.disasm.sass.semantics.rows import Env, NoSemantics, Semantics, View, evaluate

_CATEGORIES = (integer, logic, compare, float, half, convert, pack, move)


@cache
def semantics_table() -> Mapping[str, Semantics]:
    """Every row by mnemonic."""
    table: dict[str, Semantics] = {}
    for category in _CATEGORIES:
        for r in category.rows():
            if r.mnemonic in table:
                raise ValueError(f"two meanings of {r.mnemonic}")
            table[r.mnemonic] = r
    return table


@cache
def converts() -> frozenset[str]:
    """The mnemonics that convert between number formats."""
    return frozenset(r.mnemonic for category in (convert, pack) for r in category.rows())


__all__ = ["Env", "NoSemantics", "Semantics", "View", "converts", "evaluate", "semantics_table"]

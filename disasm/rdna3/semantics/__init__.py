"""The semantics of each RDNA3 instruction: one row per opcode, used by every consumer.

Memory, branches and cross-lane operations are not here: their meaning is an effect, not a value.
"""

from __future__ import annotations

from functools import cache

from sassxlate.disasm.rdna3.semantics import (
    compare,
    convert,
    division,
    float,
    integer,
    logic,
    packed,
    scalar,
)
from sassxlate.disasm.rdna3.semantics.rows import Mode, Semantics, table

_CATEGORIES = (integer, logic, compare, float, convert, division, packed, scalar)


@cache
def semantics_table() -> dict[str, Semantics]:
    """Every row by LLVM's mnemonic without ``_e32``/``_e64``; v_dual ops have their own rows."""
    rows = table(r for category in _CATEGORIES for r in category.rows())
    return rows


__all__ = ["Mode", "Semantics", "semantics_table"]

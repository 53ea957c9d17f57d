"""Any instruction but control flow, over whole warps: the reference interpreter's one call.

::

    writes = evaluate_warp(ins, warp)        # does its memory accesses through ``warp``
    mask = executing(ins, warp)              # where R and P are written
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from sassxlate.vectors import Vectors

from ..ir import Instruction
from . import atomic, barrier, matrix, meanings, memory, warp
from .rows import NoMeaning, evaluate
from .state import Warp, WarpMeaning, WarpView, Written, executing, placed, warp_env

_CATEGORIES = (warp, memory, atomic, barrier, matrix)


@cache
def warp_meanings() -> Mapping[str, WarpMeaning]:
    """Every row of warp-wide instructions and memory, by mnemonic."""
    table: dict[str, WarpMeaning] = {}
    for category in _CATEGORIES:
        for row in category.rows():
            if row.mnemonic in table:
                raise ValueError(f"two meanings of {row.mnemonic}")
            table[row.mnemonic] = row
    return table


def has_meaning(mnemonic: str) -> bool:
    """Whether some form of it has a meaning; a form may still raise NoMeaning."""
    return mnemonic in warp_meanings() or mnemonic in meanings()


def evaluate_warp(ins: Instruction, warp: Warp) -> Written:
    """What an instruction writes: registers as uint32, predicates as bool; (..., 32), of uniform
    ones (..., 1).  R and P are to be written in the lanes of :func:`executing` alone, UR and UP
    in the warps where any lane executes.  Memory is accessed for those lanes, through ``warp``.

    Raises NoMeaning for a form that is not described, Fault where it traps.
    """
    row = warp_meanings().get(ins.mnemonic)
    if row is not None:
        for modifier in ins.modifiers:
            if modifier not in row.mods:
                raise NoMeaning(f"modifier {modifier}")
        return placed(ins, row.fn(WarpView(ins, warp)))
    meaning = meanings().get(ins.mnemonic)
    if meaning is None:
        raise NoMeaning(ins.mnemonic)
    lanes = executing(ins, warp).shape
    out: Written = {}
    for ref, value in evaluate(Vectors(), meaning, ins, warp_env(warp)).items():
        kind = np.uint32 if ref.file in ("R", "UR") else np.bool_
        once = ref.file in ("UR", "UP")
        shape = (*lanes[:-1], 1) if once else lanes
        out[ref] = np.broadcast_to(value.v.astype(kind), shape)
    return out


__all__ = ["evaluate_warp", "executing", "has_meaning", "warp_meanings"]

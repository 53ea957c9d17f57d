"""Any instruction except control flow, over whole warps: the reference interpreter's only entry
point.

::

    writes = evaluate_warp(ins, warp)        # does its memory accesses through ``warp``
    mask = executing(ins, warp)              # where R and P are written
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.semantics import semantics_table
from sassxlate.disasm.sass.semantics.memory import asynchronous, atomic, memory
from sassxlate.disasm.sass.semantics.rows import NoSemantics, evaluate
from sassxlate.disasm.sass.semantics.warp import matrix, warp, warpgroup
from sassxlate.disasm.sass.semantics.warp_state import (
    Warp,
    WarpMeaning,
    WarpView,
    Written,
    executing,
    placed,
    warp_env,
)
from sassxlate.domain.numpy_lanes import Vectors

_CATEGORIES = (warp, memory, atomic, asynchronous, matrix, warpgroup)


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
    """Whether some form of it has semantics; a form may still raise NoSemantics."""
    return mnemonic in warp_meanings() or mnemonic in semantics_table()


def evaluate_warp(ins: Instruction, warp: Warp) -> Written:
    """The results of an instruction: registers as uint32, predicates as bool; (..., 32), for
    uniform ones (..., 1).  R and P are to be written only in the lanes of :func:`executing`, UR and
    UP in the warps where any lane executes.  Memory is accessed for those lanes, through ``warp``.

    Raises NoSemantics for a form that is not described, SemanticsFault if it traps.
    """
    row = warp_meanings().get(ins.mnemonic)
    if row is not None:
        for modifier in ins.modifiers:
            if modifier not in row.mods:
                raise NoSemantics(f"modifier {modifier}")
        return placed(ins, row.fn(WarpView(ins, warp)))
    meaning = semantics_table().get(ins.mnemonic)
    if meaning is None:
        raise NoSemantics(ins.mnemonic)
    lanes = executing(ins, warp).shape
    out: Written = {}
    for ref, value in evaluate(Vectors(), meaning, ins, warp_env(warp)).items():
        kind = np.uint32 if ref.file in ("R", "UR") else np.bool_
        once = ref.file in ("UR", "UP")
        shape = (*lanes[:-1], 1) if once else lanes
        out[ref] = np.broadcast_to(value.v.astype(kind), shape)
    return out


__all__ = ["evaluate_warp", "executing", "has_meaning", "warp_meanings"]

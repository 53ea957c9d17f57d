"""Which code of a kernel moves lanes between blocks, and may be rewritten.

The code of other instructions stays: blocks are proved from their SASS by another verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from sassxlate.cfg import Cfg
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.codeobject.source_map import GUARD, NEXT, POINT, PROLOGUE, SCHEDULER
from sassxlate.lowering.verify.masks.rows import Row

_ADDED: Final = frozenset({POINT, NEXT, PROLOGUE, SCHEDULER})
_ARMING: Final = frozenset({"BSSY", "BREAK"})

# Between blocks; of an instruction that arms a barrier or leaves its region; of another.
Part: TypeAlias = Literal["edge", "region", ""]


def parts(rows: Sequence[Row], cfg: Cfg) -> list[Part]:
    """Per row what its old instruction belongs to."""
    ends = {block.last.offset for block in cfg.blocks if traits(block.last).ends_block}
    arming = {
        ins.offset for block in cfg.blocks for ins in block.instructions if ins.mnemonic in _ARMING
    }
    out: list[Part] = []
    for row in rows:
        out.append(_part(row.old, ends, arming, out[-1] if out else ""))
    return out


def _part(inst: Inst | None, ends: set[int], arming: set[int], before: Part) -> Part:
    origin = None if inst is None else inst.origin
    if origin is None:
        return ""
    if origin.offset is None:
        if origin.text == GUARD and before == "region":
            return "region"
        return "edge" if origin.text in _ADDED else ""
    return "edge" if origin.offset in ends else "region" if origin.offset in arming else ""


__all__ = ["Part", "parts"]

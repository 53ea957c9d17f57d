"""Where the four warps of a warpgroup meet.

Products of a warpgroup (wgmma) are one operation of four warps: they see what all four wrote to
shared memory before, and a thread that has waited for them may tell others that all four have read
their tiles.  An interpreter and a translation do each warp's part when the warp comes there, so the
warps meet before the first product and where one waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sassxlate.disasm.sass.instruction import Imm, Instruction, Pred

GROUP: Final = "WARPGROUP"  # the modifier of a barrier of one warpgroup
WARPS: Final = 4
FIRST: Final = 20  # barriers FIRST to FIRST + 7 are those of a block's warpgroups
_TRUE = Pred("P", 7)


def meeting(ins: Instruction) -> Instruction:
    """WARPGROUP.ARRIVE, .WAIT and .DEPBAR as a barrier of the warpgroup's threads; its number is
    that of the first group.  Other instructions are unchanged."""
    if ins.mnemonic != "WARPGROUP" or not ins.guard.is_true:
        return ins
    return replace(
        ins, mnemonic="BAR", modifiers=("SYNC", "DEFER_BLOCKING", GROUP), guard=_TRUE,
        operands={"barrier": Imm(FIRST, 32), "count": Imm(32 * WARPS, 32), "Pp": _TRUE},
    )  # fmt: skip


def is_meeting(ins: Instruction) -> bool:
    """Whether a barrier is one of :func:`meeting`."""
    return ins.mnemonic == "BAR" and ins.has(GROUP)


__all__ = ["FIRST", "WARPS", "is_meeting", "meeting"]

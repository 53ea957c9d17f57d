"""Barriers of a cluster, in a launch whose clusters are single blocks."""

from __future__ import annotations

from dataclasses import replace

from sassxlate.disasm.sass.instruction import Imm, Instruction, Pred

_TRUE = Pred("P", 7)


def alone(ins: Instruction) -> Instruction:
    """A cluster barrier as the instruction that nvcc writes for a launch without clusters: nothing
    at the arrival, BAR.SYNC 0 at the wait (nvcc 13.0, sm_90 and sm_120: ``barrier.cluster`` is
    compiled to both, and a word of constant bank 0 decides).  Other instructions, and guarded ones,
    are unchanged.

    A wait then ends when all of the block's threads wait, not when all have arrived.
    """
    if ins.mnemonic not in ("UCGABAR_ARV", "UCGABAR_WAIT") or not ins.guard.is_true:
        return ins
    if ins.mnemonic == "UCGABAR_ARV":
        return replace(ins, mnemonic="NOP", guard=_TRUE)
    return replace(
        ins, mnemonic="BAR", modifiers=("SYNC", "DEFER_BLOCKING"), guard=_TRUE,
        operands={"barrier": Imm(0, 32), "count": Imm(0, 32), "Pp": _TRUE},
    )  # fmt: skip


__all__ = ["alone"]

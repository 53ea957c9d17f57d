"""Tests of the warp by which nvcc asks whether the masks of a group's lanes agree.

Cooperative groups of a part of a warp shuffle with a mask of each lane's own.  nvcc writes for that
on sm_80::

    MATCH.ANY R5, R24              lanes with this lane's mask
    REDUX.OR UR4, R24              the lanes of all masks
    VOTEU.ANY UR5, UPT, PT         the lanes that are here
    LOP3.LUT P0, RZ, R24, UR5, R5, 0x40, !PT    a lane of my mask is here with another one
    @!P0 BRA.DIV UR4, SLOW

If all live lanes are here, SLOW is run only if the masks do not agree, or a mask leaves out its own
lane; CUDA leaves open what happens then.  (SLOW waits for the lanes of each mask.)  So the branch
is left out where all lanes are here, and a lane traps if the test would find something.
"""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.cfg import Cfg
from sassxlate.cfg.graph import Block
from sassxlate.disasm.sass.instruction import Imm, Instruction, Pred, Reg, RegFile, RegRef
from sassxlate.lowering.tier.refusal import FLOW, refused


def _plain(operand: object, file: RegFile) -> RegRef | None:
    """A register of a file that is read as it is."""
    if not isinstance(operand, Reg) or operand.file != file or operand.is_zero:
        return None
    if operand.neg or operand.abs or operand.inv:
        return None
    return RegRef(file, operand.index)


def _writer(some: Sequence[Instruction], end: int, ref: RegRef) -> int | None:
    """The place of the last write of a register before a place, if that is always done."""
    at = next((n for n in range(end - 1, -1, -1) if ref in some[n].writes), None)
    return at if at is not None and some[at].guard.is_true else None


def mask_of(block: Block) -> RegRef | None:
    """The register with each lane's mask, if a block ends with such a test."""
    last, some = block.last, block.instructions
    if last.guard.file != "P" or not last.guard.inv or last.guard.index == 7:
        return None
    also, union = last.get("Pp"), _plain(last.get("Ra"), "UR")
    if union is None or (isinstance(also, Pred) and not also.is_true):
        return None
    end = len(some) - 1
    differs = _writer(some, end, RegRef("P", last.guard.index))
    whole = _writer(some, end, union)
    if differs is None or whole is None:
        return None
    lop, redux = some[differs], some[whole]
    mask, here = _plain(lop.get("Ra"), "R"), _plain(lop.get("Rb"), "UR")
    alike = _plain(lop.get("Rc"), "R")
    lut, chained, told = lop.get("lut"), lop.get("Pp"), lop.get("Pu")
    if mask is None or here is None or alike is None or lop.mnemonic != "LOP3":
        return None
    if not isinstance(lut, Imm) or lut.value != 0x40 or told != Pred("P", last.guard.index):
        return None
    if not isinstance(chained, Pred) or not chained.is_false:
        return None
    if redux.mnemonic != "REDUX" or not redux.has("OR") or _plain(redux.get("Ra"), "R") != mask:
        return None
    match, vote = _writer(some, differs, alike), _writer(some, differs, here)
    if match is None or vote is None:
        return None
    if some[match].mnemonic != "MATCH" or some[match].modifiers != ("ANY",):
        return None
    voter = some[vote].get("Pp")
    all_vote = isinstance(voter, Pred) and voter.is_true
    if some[vote].mnemonic != "VOTEU" or not some[vote].has("ANY") or not all_vote:
        return None
    if _plain(some[match].get("Ra"), "R") != mask:
        return None
    first = min(whole, match, differs)
    return None if any(mask in i.writes for i in some[first:end]) else mask


def _copied(ins: Instruction) -> RegRef | None:
    """The register whose value an instruction copies."""
    product = ins.mnemonic == "IMAD" and ins.has("MOV")
    if not ins.guard.is_true or not (product or ins.mnemonic == "MOV"):
        return None
    return _plain(ins.get("Rc" if product else "Rb"), "R")


def waits_for(cfg: Cfg, start: int, mask: RegRef) -> bool:
    """Whether the code at an offset first waits for the lanes of a mask."""
    same = {mask}
    n = cfg.by_start[start]
    for _ in cfg.blocks:
        block = cfg.blocks[n]
        for ins in block.instructions:
            if ins.mnemonic == "WARPSYNC":
                plain = not ins.has("EXCLUSIVE") and not ins.has("COLLECTIVE")
                return plain and ins.guard.is_true and _plain(ins.get("Ra"), "R") in same
            copy = _copied(ins) in same
            same = same | ins.writes if copy else same - ins.writes
        ways = [e.dst for e in cfg.successors[n] if e.kind != "back"]
        if len(ways) != 1:
            return False
        (n,) = ways
    return False


def all_here(cfg: Cfg, step: Sequence[bool], tests: Sequence[int]) -> None:
    """Refuses such a test (by offset) where lanes may be elsewhere."""
    for block in cfg.blocks:
        for ins in block.instructions:
            if ins.offset in tests and not step[block.index]:
                raise refused(FLOW, "a test of the warp where lanes run apart", ins)


__all__ = ["all_here", "mask_of", "waits_for"]

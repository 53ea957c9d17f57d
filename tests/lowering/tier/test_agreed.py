"""Tests whether the masks of a group's lanes agree are made where all lanes are; refused in each
variant that asks something else, or asks where lanes may be missing."""

from __future__ import annotations

import pytest

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.tier.refusal import FLOW, TOGETHER, Refused
from sassxlate.lowering.tier.translate import by_tier
from sassxlate.lowering.tier.warp.tests_of_warp import replaced, settled
from sassxlate.lowering.tier.warp.together import together
from tests.lowering.emulated import check, load
from tests.lowering.tier.test_votes import ARCH, graph

# As nvcc writes a shuffle of cooperative groups' tiles of 16 lanes.
SHUFFLE = """
S2R R0, SR_TID.X
ISETP.GE.AND P1, PT, R0, 0x8, PT
BSSY B0, `(.MET)
@P1 BRA `(.SYNC)
IADD3 R7, R0, 0x1, RZ
.SYNC:
BSYNC B0
.MET:
MATCH.ANY R5, R24
REDUX.OR UR4, R24
VOTEU.ANY UR5, UPT, PT
LOP3.LUT P0, RZ, R24, UR5, R5, 0x40, !PT
@!P0 BRA.DIV UR4, `(.SLOW)
SHFL.DOWN PT, R4, R7, 0x1, 0x100f
.BACK:
STG.E [R2], R4
EXIT
.SLOW:
IMAD.MOV.U32 R9, RZ, RZ, R24
WARPSYNC R9
SHFL.DOWN PT, R4, R7, 0x1, 0x100f
BRA `(.BACK)
"""
JUMP = (
    ("@!P0 BRA.DIV UR4, `(.SLOW)\n", "@!P0 BRA.CONV UR4, `(.BACK)\nWARPSYNC R24\nEXIT\n"),
    ("SHFL.DOWN PT, R4, R7, 0x1, 0x100f\n", ""),
)


def _accepted(text: str) -> bool:
    kernel = load("divergent_if", ARCH).kernels[0]
    try:
        cfg, tests = replaced(graph(text), kernel)
        cfg, facts = settled(cfg, kernel, tests)
        found = together(cfg, facts, tests.votes, tests.agreed)
    except Refused as why:
        return why.code not in (FLOW, TOGETHER)
    mnemonics = [i.mnemonic for b in cfg.blocks for i in b.instructions]
    return "WARPSYNC" not in mnemonics and len(found.agreed) == 1


def _changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_a_shuffle_of_a_tile() -> None:
    assert _accepted(SHUFFLE)


def test_a_jump_over_a_wait() -> None:
    assert _accepted(_changed(SHUFFLE, *JUMP))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BSYNC B0\n.MET", ".MET"),  # lanes may be elsewhere
        ("R24, UR5, R5, 0x40", "R24, UR5, R5, 0xc0"),  # another question
        ("R24, UR5, R5, 0x40", "R5, UR5, R24, 0x40"),
        ("REDUX.OR UR4, R24", "REDUX.SUM UR4, R24"),
        ("REDUX.OR UR4, R24", "REDUX.OR UR4, R25"),
        ("MATCH.ANY R5, R24", "MATCH.ANY R5, R25"),
        ("VOTEU.ANY UR5, UPT, PT", "VOTEU.ANY UR5, UPT, P1"),
        ("REDUX.OR UR4, R24", "@P1 MOV R24, R25\nREDUX.OR UR4, R24"),  # the mask changes
        ("@!P0 BRA.DIV", "@P0 BRA.DIV"),
        ("R9, RZ, RZ, R24", "R9, RZ, RZ, R25"),  # waits for other lanes
        ("WARPSYNC R9", "WARPSYNC.EXCLUSIVE R9"),
    ],
)
def test_other_questions_are_refused(old: str, new: str) -> None:
    assert not _accepted(_changed(SHUFFLE, (old, new)))


def test_lanes_with_the_same_value() -> None:
    """MATCH.ANY: a turn of a loop for each value."""
    made = check(load("warp_match", ARCH), "warp_match", change=by_tier, strict=True)
    names = [i.op for i in made.items if isinstance(i, Inst)]
    assert names.count("v_readfirstlane_b32") < 8
    assert len(names) < 100

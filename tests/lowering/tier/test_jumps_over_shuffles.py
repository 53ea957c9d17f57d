"""BRA.CONV over a call of a function that waits and shuffles: all lanes meet and jump; refused in
each variant that breaks a condition."""

from __future__ import annotations

import pytest

from sassxlate.lowering.tier.refusal import FLOW, Refused
from sassxlate.lowering.tier.warp.tests_of_warp import replaced
from tests.lowering.emulated import load
from tests.lowering.tier.test_votes import ARCH, graph

# As nvcc writes a shuffle whose result is not used, after lanes ran apart.
SHUFFLE = """
S2R R0, SR_TID.X
ISETP.GE.AND P1, PT, R0, 0x8, PT
@P1 BRA `(.ON)
IADD3 R2, R2, 0x4, RZ
.ON:
BRA.CONV ~URZ, `(.OVER)
IMAD.MOV.U32 R7, RZ, RZ, -0x1
MOV R20, 0x90
MOV R21, 0x0
CALL.REL.NOINC `(.FUNCTION)
.OVER:
STG.E [R2], R0
EXIT
.FUNCTION:
WARPSYNC R7
SHFL.IDX PT, R9, R4, R5, R6
RET.REL.NODEC R20 `(.OVER)
"""


def _replaced(text: str) -> list[str]:
    cfg, tests = replaced(graph(text), load("divergent_if", ARCH).kernels[0])
    assert not tests.votes
    return [i.mnemonic for b in cfg.blocks for i in b.instructions]


def test_all_lanes_meet_and_jump() -> None:
    names = _replaced(SHUFFLE)
    assert names[-4:] == ["WARPSYNC", "BRA", "STG", "EXIT"]
    assert not {"CALL", "SHFL", "RET"} & set(names)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BRA.CONV ~URZ", "BRA.CONV URZ"),  # no lanes
        ("BRA.CONV", "@P1 BRA.CONV"),  # some lanes may not jump
        ("RZ, -0x1", "RZ, 0xff"),  # waits for some lanes
        ("MOV R21, 0x0", "MOV R7, 0x0"),
        ("MOV R21, 0x0", "STG.E [R2], R7"),
        ("WARPSYNC R7\n", "WARPSYNC R7\nSTG.E [R2], R7\n"),
        ("WARPSYNC R7\n", "MOV R7, R8\nWARPSYNC R7\n"),
        ("WARPSYNC R7\n", ""),  # nothing waits
        ("WARPSYNC R7\n", "BAR.SYNC.DEFER_BLOCKING 0x0\nWARPSYNC R7\n"),
        ("CALL.REL", "@P1 BRA `(.ON)\nCALL.REL"),  # another way out
    ],
)
def test_other_code_is_refused(old: str, new: str) -> None:
    assert old in SHUFFLE
    with pytest.raises(Refused) as why:
        _replaced(SHUFFLE.replace(old, new, 1))
    assert why.value.code == FLOW

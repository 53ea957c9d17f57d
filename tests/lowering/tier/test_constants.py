"""Uniform registers that lanes write apart from each other, with one value: accepted, and refused
in each variant in which a lane may read another value."""

from __future__ import annotations

import pytest

from sassxlate.cfg import analyse
from sassxlate.lowering.tier.refusal import TOGETHER, Refused
from sassxlate.lowering.tier.warp.together import together
from tests.lowering.tier.test_votes import graph

# Nothing brings the lanes together before the read.
READ = """
S2R R0, SR_TID.X
ISETP.GE.AND P0, PT, R0, 0x10, PT
ISETP.GE.AND P1, PT, R0, 0x8, PT
ULDC UR4, c[0x0][0x160]
UIADD3 UR4, UR4, 0x1, URZ
@P0 BRA `(.ON)
ULDC UR4, c[0x0][0x160]
IADD3 R2, R2, UR4, RZ
UIADD3 UR4, UR4, 0x1, URZ
.ON:
IADD3 R2, R2, 0x1, RZ
@P1 BRA `(.END)
IADD3 R2, R2, UR4, RZ
.END:
STG.E [R2], R0
EXIT
"""
HARMLESS = {
    "another register": ("IADD3 R2, R2, 0x1, RZ", "UMOV UR5, 0x7\nIADD3 R2, R2, UR5, RZ"),
    "another value, before all meet again":
        (".END:\nSTG", ".END:\nWARPSYNC 0xffffffff\nUMOV UR4, 0x9\nIADD3 R2, R2, UR4, RZ\nSTG"),
}  # fmt: skip
WRONG = {
    "another constant": ("0x1, URZ\n@P0", "0x2, URZ\n@P0"),
    "another word": ("ULDC UR4, c[0x0][0x160]\nUIADD3", "ULDC UR4, c[0x0][0x164]\nUIADD3"),
    "not written by the other lanes": ("UIADD3 UR4, UR4, 0x1, URZ\n@P0", "NOP\n@P0"),
    "a lane's own value": ("ULDC UR4, c[0x0][0x160]\nIADD3", "R2UR UR4, R0\nIADD3"),
    "written once more, later": (".END:\nSTG", ".END:\nUMOV UR4, 0x9\nIADD3 R2, R2, UR4, RZ\nSTG"),
    "counted": ("IADD3 R2, R2, 0x1, RZ", "UIADD3 UR4, UR4, 0x1, URZ\n@P1 BRA `(.ON)"),
    "under a predicate": ("UIADD3 UR4, UR4, 0x1, URZ\n.ON", "@UP0 UIADD3 UR4, UR4, 0x1, URZ\n.ON"),
}  # fmt: skip


def _accepted(text: str, *pairs: tuple[str, str]) -> bool:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    cfg = graph(text)
    try:
        together(cfg, analyse(cfg))
    except Refused as why:
        return why.code != TOGETHER
    return True


def test_one_value() -> None:
    assert _accepted(READ)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_change_it(name: str) -> None:
    assert _accepted(READ, HARMLESS[name])


@pytest.mark.parametrize("name", WRONG)
def test_several_values(name: str) -> None:
    assert not _accepted(READ, WRONG[name])

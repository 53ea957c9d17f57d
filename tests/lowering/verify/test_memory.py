"""Memory, constants, fences and cross-lane code as effects."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.verify import Proved, verify

from .one import block_of

CONTROL = "[B------:R-:W-:Y:S15] "


@pytest.mark.parametrize(
    "text",
    [
        # A negative index and an offset that compensates it: the sum has 32 bits.
        "LDC R10, c[0x3][R2+0x28]",
        "LDC.U8 R10, c[0x0][R2+0x3]",
        "LDG.E.128 R8, desc[UR4][R2.64+0x10]",
        "STG.E.U8 desc[UR4][R2.64+-0x1], R4",
        "ATOMG.E.ADD.STRONG.GPU PT, R10, desc[UR4][R2.64], R4",
        "ATOMG.E.MIN.S32.STRONG.GPU PT, R10, desc[UR4][R2.64+0x8], R4",
        "ATOMG.E.EXCH.64.STRONG.GPU PT, R10, desc[UR4][R2.64], R4",
        "ATOMG.E.CAS.STRONG.GPU PT, R10, [R2], R4, R5",
        "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R4",
        "REDG.E.XOR.STRONG.GPU desc[UR4][R2.64], R4",
        "ATOMS.ADD R10, [R2+0x4], R4",
        "ATOMS.CAS R10, [R2], R4, R5",
        "ATOMS.CAST.SPIN R10, [R2], R4, R5",
        "ATOMS.POPC.INC.32 RZ, [R2+URZ]",
        "MEMBAR.SC.GPU",
        "MEMBAR.ALL.CTA",
        "CCTL.IVALL",
        "S2R R10, SR_LANEID",
        "S2R R10, SR_LTMASK",
        "S2R R10, SR_GEMASK",
    ],
)
def test_proved(text: str) -> None:
    assert isinstance(verify(block_of(assemble(f"{CONTROL}{text} ;", 90))), Proved)

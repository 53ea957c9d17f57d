"""Forms that were refused once, by architecture: proved, in both surroundings."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, verify_word


@pytest.mark.parametrize(
    ("arch", "text"),
    [
        (75, "HADD2 R16, -RZ, R4.F32"),
        (75, "HADD2 R16, -RZ, -|R4|.F32"),
        (75, "HADD2 R16, -RZ, c[0x3] [0x10].F32"),
        (75, "HADD2.SAT R16, -RZ, R4.F32"),
        (75, "HSETP2.NE.AND P3, P4, R4.F32, |R5|.H1_H1, P0"),
        (75, "HSETP2.LT.OR P3, PT, -R4.H0_H0, -|R5|.F32, !P0"),
        (75, "HSET2.BF.GE.AND R16, R4.F32, R5, P0"),
        (75, "LDS.U.64 R16, [R4+0x10]"),
        (75, "PLOP3.LUT P3, P4, R4.SIGN, R5.SIGN, R6.SIGN, 0x2, 0x10"),
        (86, "PLOP3.LUT P3, PT, R4.SIGN, c[0x0] [0x164].SIGN, R6.SIGN, 0x8, 0x0"),
        (90, "PLOP3.LUT P3, PT, P0, R5.SIGN, !P1, 0x96, 0x0"),
        (90, "UPLOP3.LUT UP3, UPT, UR4.SIGN, UR5.SIGN, UR6.SIGN, 0x8, 0x0"),
        (80, "LDGSTS.E.128.ZFILL [R13], [R2.64+0x8]"),
        (80, "LDGSTS.E.64.ZFILL [R13], [R2.64+0x5], P0"),
        (90, "LDGSTS.E.BYPASS.128.ZFILL [R13+0x10], desc[UR8][R2.64], !P1"),
        (90, "LDGSTS.E.ZFILL [R13], [R2.U32+UR8+0x3]"),
        (90, "LDG.E.64 P3, R16, desc[UR8][R4.64+0x10]"),
        (90, "LDG.E.128 R16, desc[UR8][R16.64], !P1"),
        (90, "LD.E.U8 R16, desc[UR8][R4.64], P0"),
        (90, "ATOMG.E.ADD.STRONG.GPU P3, R16, desc[UR8][R4.64], R8"),
        (90, "UIADD3 UR16, -URZ, UR5, UR6"),
        (90, "FMNMX.NAN.XORSIGN R16, |R4|, -R5, P0"),
        (90, "HSETP2.LT.FTZ.AND P3, P4, R4, |R5|.H1_H1, P0"),
        (90, "DSETP.MIN.XOR P3, P4, -R4, |R6|, !P0"),
        (90, "I2F.F64.U64 R16, 0x21"),
        (90, "F2F.FTZ.BF16.F32 R16, -R4"),
        (90, "F2F.F16.BF16.RM R16, R4"),
        (90, "F2FP.SATFINITE.RELU.F16.F32.PACK_AB R16, R4, R5"),
        (90, "VABSDIFF4.ACC R16, P3, R4, R5, R6"),
        (90, "VIMNMX.S16x2.RELU R16, P3, P4, R4, R5, P0"),
        (120, "VIADD.S32.ISAT R16, R4, -R5"),
        (120, "VIADD.U8x4 R16, -R4, R5"),
        (120, "VIADD.U8x4 R16, -R4, -R5"),
        (120, "VIADD.16x2 R16, -R4, R5"),
        (120, "VIADD.16x2 R16, -R4, -R5"),
        (120, "UVIADD.U8x4 UR16, -UR4, UR5"),
        (120, "VIMNMX.S8x4 R16, R4, R5, !P0"),
        (120, "UVIMNMX.U8x4 UR16, UR4, UR5, UPT"),
        (120, "UVIMNMX.S8x4 UR16, UR4, 0x5a5a5a5a, UP0"),
        (120, "UVIMNMX.U16x2 UR16, UR4, UR5, !UP0"),
        (120, "UVIMNMX.S16x2.RELU UR16, UR4, UR5, !UPT"),
        (120, "UVIADD.16x2 UR16, UR4, -UR5"),
        (120, "UVIADD.U8x4 UR16, UR4, 0x80000003"),
    ],
)  # fmt: skip
def test_proved(arch: int, text: str) -> None:
    ins = decode(assemble(text + " ;", arch, 0), 0, arch)
    status, detail = verify_word(ins, RuleCheckSettings(arch=arch))
    assert status == "proved", f"{status}: {detail}"

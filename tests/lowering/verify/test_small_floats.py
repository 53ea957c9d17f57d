"""Rules of halves, bf16, bytes, packed integers and a few more: each of these forms is proved."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.lowering.verify import Proved, Unknown, verify
from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, verify_word

from .one import block_of

PROVED = """
HFMA2.BF16_V2 R10, -R4.H0_H0, R2, -R8.H1_H1
HADD2.BF16_V2 R10, R4, -R2
HMUL2.BF16_V2 R10, R4, |R2|.H1_H1
HMNMX2.BF16_V2 R10, R4, R2, PT
HMNMX2.BF16_V2 R10, R4, R2, !PT
VHMNMX R10, R4.H0_H0, R2.H1_H1, R8.H0_H0, !PT
HSET2.BF.GT.AND R10, R4, RZ.H0_H0, PT
HSET2.BF16_V2.LE.OR R10, R4, R2, P1
HSETP2.BF16_V2.LE.AND P3, P4, R4, R2, PT
F2F.BF16.F32 R10, R2
F2F.BF16.F32.RM R10, -R2
F2F.BF16.F32.RP R10, |R2|
F2F.F32.BF16 R10, -R2.H1
I2F.BF16 R10, R2
I2F.BF16.U16 R10, R2.H1
F2F.F64.BF16 R10, -R2.H1
F2F.BF16.F64 R10, -R2
F2F.BF16.F64.RP R10, R2
HMNMX2.BF16_V2.NAN R10, R4.H0_H0, R2, !PT
HFMA2.BF16_V2.RELU R10, R4.H0_H0, R2, R8.H0_H0
HFMA2.BF16_V2 R10, -RZ.H0_H0, RZ.H0_H0, 2.5, 2.5
IMAD.HI.U32 R10, P0, R4, 0x1, RZ
FRND.F16 R10, -R2.H1
FRND.BF16.FLOOR R10, R2
F2I.U32.BF16 R10, R2.H1
F2I.BF16.CEIL R10, R2
F2FP.RELU.F16.F32.PACK_AB R10, R4, R2
F2FP.RELU.BF16.F32.MERGE_C R10, R2, R8.H1
F2FP.F16.F32.MERGE_C R10, R2, R8
F2IP.U8.F32.NTZ R10, R4, R2, R8
F2IP.S8.F32.TRUNC.RELU R10, RZ, R2, R8.H1
I2IP.S8.S32.SAT R10, R4, R2, R8
I2IP.U8.S32 R10, R4, R2, R8.H1
I2IP.S4.S32.SAT R10, R4, R2, R8.24
I2IP.U16.S32.SAT R10, R4, R2, R8
I2I.U8.S32.SAT R10, R2
UP2UR UR10, UPR, UR4, 0x2a
UR2UP UPR, UR4, 0x15
F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C R10, R4, R2, R8
F2FP.RELU.E5M2.F32.PACK_AB_MERGE_C R10, R4, R2, R8.H1
F2FP.E4M3.F16.UNPACK_B_MERGE_C R10, R2, R8
F2FP.F16.E4M3.UNPACK_B R10, R2.H1
F2FP.F16.E4M3.UNPACK_B R10, c[0x0] [0x210]
MUFU.EX2.F16 R10, R2
MUFU.RCP.BF16 R10, -R2
VIMNMX3.U16x2 R10, R4, R2, R8, !PT
VIMNMX3.S16x2.RELU R10, R4, R2, R8, !PT
VIADDMNMX.S16x2.RELU R10, R4, -R2, R8, PT
""".strip().splitlines()

# Beyond the solver: compared on random inputs.
COMPARED = """
I2F.BF16.S64 R10, R2
I2F.BF16.U64.RZ R10, R2
I2F.F16.S64 R10, R2
F2F.F16.F64 R10, R2
F2F.F64.F16 R10, R2.H1
F2FP.SATFINITE.E4M3.F16.UNPACK_B_MERGE_C R10, c[0x0][0x210], R8
""".strip().splitlines()

# Denormal halves: flushing forms were translated like keeping ones, later refused.
FLUSHED = """
F2F.FTZ.F32.F16 R10, R2
F2F.FTZ.F16.F32 R10, R2
HADD2.F32.FTZ R10, -RZ, R2.H0_H0
F2I.FTZ.F16.CEIL R10, R2
""".strip().splitlines()
FLUSHED_PROVED = """
FRND.FTZ.BF16.CEIL R10, R2
HSET2.BF.GT.FTZ.AND R10, R4, R2, PT
I2F.BF16.S64 R10, 0x8
""".strip().splitlines()


def _word(text: str) -> int:
    code = assemble_listing([f"[B------:R-:W-:Y:S15] {text} ;"], 90)[""]
    return int.from_bytes(code[:16], "little")


@pytest.mark.parametrize("text", PROVED + FLUSHED_PROVED)
def test_proved(text: str) -> None:
    verdict = verify(block_of(_word(text)), timeout_ms=5000)
    assert isinstance(verdict, Proved), verdict


@pytest.mark.parametrize("text", COMPARED + FLUSHED)
def test_compared(text: str) -> None:
    verdict = verify(block_of(_word(text)), timeout_ms=500)
    assert isinstance(verdict, Unknown)
    assert "random inputs agree" in verdict.reason


def test_an_approximation_beside_numbers() -> None:
    """Its NaN may be another, so both values are compared, not only whether they are alike."""
    ins = decode(_word("MUFU.TANH R10, R2"), 0, 90)
    status, detail = verify_word(ins, RuleCheckSettings(vectors=1 << 12))
    assert status == "tested", detail


@pytest.mark.parametrize("text", ["MUFU.TANH R10, R2", "MUFU.TANH.F16 R10, |R2|"])
def test_two_approximations(text: str) -> None:
    """Ours is built from other functions: passed over if tested, never refuted."""
    block = block_of(_word(text))
    assert isinstance(verify(block), Unknown)
    verdict = verify(block, tested=True)
    assert isinstance(verdict, Proved)
    assert any(name.startswith("tested rule MUFU.TANH") for name in verdict.modulo)

"""Rules that reach other lanes or memory: whole waves against the semantics over 32 lanes."""

from __future__ import annotations

import shutil

import pytest

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.verify.rules.one_instruction import SURROUNDINGS, Surroundings
from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, verify_word
from sassxlate.lowering.verify.rules.warps import tried

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="needs a C++ compiler"
)


TEXTS = (
    "SHFL.BFLY P3, R16, R4, R8, R12",
    "VOTE.ALL R16, P3, !P0",
    "@P5 SHFL.UP P3, R4, R4, 0x3, 0x1c00",
    "MATCH.ANY R16, R4",
    "ATOMG.E.ADD.STRONG.GPU PT, R16, desc[UR4][R4.64], R8",
    "@P5 ATOMG.E.ADD.F64.RN.STRONG.GPU PT, R16, desc[UR4][R4.64], R8",
    "ATOM.E.ADD.F64.RN.STRONG.GPU P3, R16, desc[UR4][R4.64], R8",
    "@P5 LDGSTS.E.128 [R4], desc[UR4][R8.64], !P0",
    "ATOMS.CAS R16, [R4+0x10], R8, R12",
    "@P5 ATOMS.POPC.INC.32 R4, [R4+UR4+0x10]",
    "ATOMS.POPC.INC.32 R16, [UR4]",  # all lanes at one word
    "S2R R16, SR_LTMASK",
    "R2UR P3, UR16, R4",
    # Once wrong (VOTEU): present lanes whose guard was false kept the old uniform value.
    "@P5 VOTEU.ALL UR16, UP3, P0",
    "@!P5 VOTEU.ANY UR16, UP3, P0",
    "@P5 REDUX UR16, R4",
    "@P5 ELECT P3, UR16, P0",
    "HMMA.1688.F32 R16, -R4, R8, R12, !UP0",
    "HMMA.1684.F32.TF32 R4, R4, R8, RZ",
    "IMMA.8816.S8.U8.SAT R16, R4.ROW, R8.COL, R12",
    "BMMA.88128.AND.POPC R16, R4.ROW, R8.COL, R12",
    "@P5 DMMA.8x8x4.RP R16, -|R4|, R8, -R12",
    "DMMA.16x8x4 R16, R4, R8, -R12",
    "DMMA.16x8x16.RM R16, |R4|, -R8, R12, !UP0",
    "MOVM.16.MT88 R4, R4",
    "LDSM.16.M88.4 R16, [R4+UR4+0x10]",
    "LDSM.16.MT88.2 R4, [R4]",
    "STSM.16.MT88.4 [R4+UR4], R8",
)


@pytest.mark.parametrize(
    ("text", "surroundings"),
    [
        # One of the two for each, in turn, and both for what was once wrong; the sweep has all.
        pytest.param(text, at, marks=[] if i % 2 == j or "VOTEU" in text else [pytest.mark.sweep])
        for i, text in enumerate(TEXTS)
        for j, at in enumerate(SURROUNDINGS)
    ],
)
def test_waves(text: str, surroundings: Surroundings) -> None:
    ins = decode(assemble(text + " ;", 90, 0), 0, 90)
    assert tried(ins, surroundings, 24) is None


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        ("HMMA.1688.F32 R16, R4, R8, R12", 75),
        ("HMMA.1688.F16 R16, R4, -R8, R12", 75),
        ("HMMA.16816.F32.BF16 R16, R4, R8, R12, UP0", 100),
        ("HMMA.1688.F32.TF32 R16, R4, R8, R12", 120),
        ("IMMA.8832.U4.S4 R16, R4.ROW, R8.COL, R12", 75),
        ("IMMA.16864.S4.U4.SAT R16, R4.ROW, R8.COL, R12", 80),
        ("IMMA.16832.S4.S4 R16, R4.ROW, R8.COL, R12, !UP0", 86),
        ("BMMA.88128.XOR.POPC R16, R4.ROW, R8.COL, R12", 75),
        ("BMMA.168256.XOR.POPC R16, R4.ROW, R8.COL, R12", 80),
        pytest.param(
            "QMMA.16832.F32.E4M3.E5M2 R16, -R4.ROW, R8.COL, R12", 89, marks=pytest.mark.sweep
        ),
        ("QMMA.16816.F16.E4M3.E4M3 R16, R4.ROW, R8.COL, R12, UP0", 89),
        pytest.param("QMMA.16832.F32.E4M3.E4M3 R16, R4, R8, R12", 120, marks=pytest.mark.sweep),
        ("QMMA.16832.F16.E5M2.E4M3 R16, R4, R8, R12", 120),
    ],
)
def test_matrices_of_other_generations(text: str, arch: int) -> None:
    ins = decode(assemble(text + " ;", arch, 0), 0, arch)
    assert tried(ins, SURROUNDINGS[0], 24) is None


def test_two_words_of_a_nan() -> None:
    """The low word of a binary64 NaN is not a number of its own; an infinity is not a NaN."""
    word = 0xFDE00080E1F5800000008041079A2  # ATOM.E.ADD.EF.F64.RN PT, R16, [R4.64+UR24], R8
    found, _ = verify_word(decode(word, 0, 90, strict=False), RuleCheckSettings(vectors=1 << 12))
    assert found == "tested"

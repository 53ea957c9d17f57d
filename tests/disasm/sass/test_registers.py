"""Registers and predicates read and written: by hand for each kind, and against nvdisasm's
register life ranges for every instruction of the kept kernels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from sassxlate.disasm.sass import decode
from tools.witness.nvdisasm import registers
from tools.witness.nvdisasm import witness as sass_witness

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"

# Architecture, word, text, registers read, registers written.
BY_HAND = [
    (80, 0x000FC800078400062168C2350C067825, "IMAD.WIDE.U32 R6, P2, R12, 0x2168c235, R6",
     "R12 R6-7", "R6-7 P2"),
    (80, 0x000FC600078E00FF0000001105137227, "IMAD.HI.U32 R19, R5, R17, RZ", "R5 R17", "R19"),
    (80, 0x000FC600078E00200000001105137227, "IMAD.HI.U32 R19, R5, R17, R32", "R5 R17 R32-33",
     "R19"),
    (80, 0x000E220000000A0200805A000802762B, "DFMA R2, |R8|, -R2, c[0x2][0x168]", "R8-9 R2-3",
     "R2-3"),
    (80, 0x008EE200047024003FF000000800742A, "DSETP.EQ.OR P0, PT, R8, 1, !P0", "R8-9 P0", "P0"),
    (80, 0x020FE20000001814000000100C14723C, "HMMA.16816.F32 R20, R12, R16, R20",
     "R12-15 R16-17 R20-23", "R20-23"),
    (80, 0x0D0FF20000405C08000000100C087237,
     "IMMA.16832.S8.S8 R8, R12.reuse.ROW, R16.reuse.COL, R8", "R12-15 R16-17 R8-11", "R8-11"),
    (80, 0x0040640000000018000000201218723F, "DMMA.884 R24, R18, R32, R24",
     "R18-19 R32-33 R24-27", "R24-27"),
    (80, 0x0041E8000C101B06000008161A007986, "STG.E.64 [R26.64+0x8], R22",
     "R26-27 R22-23 UR6-7", ""),
    (80, 0x0002A800001EE506000000040A0673A9, "ATOMG.E.CAS.64.STRONG.GPU PT, R6, [R10], R4, R6",
     "R10-11 R4-5 R6-7", "R6-7"),
    (80, 0x00006200000E00080C00000900007389, "SHFL.BFLY PT, R0, R0, R9, R8", "R0 R9 R8", "R0"),
    (80, 0x000FC800040E01000000000000067806, "VOTE.ANY R6, PT, !P0", "P0", "R6"),
    (80, 0x000FE200000000000000000302007804, "R2P PR, R2, 0x3", "R2", "P0 P1"),
    (80, 0x002FC80000702310800000000400780C,
     "ISETP.EQ.AND.EX P0, PT, R4, -0x80000000, P0, P1", "R4 P0 P1", "P0"),
    (80, 0x000FC40000FFE4FF00005B0005097A10, "IADD3.X R9, R5, c[0x0][0x16c], RZ, P1, !PT",
     "R5 P1", "R9"),
    (80, 0x004E640000000200000000000204783B, "LDSM.16.M88.4 R4, [R2]", "R2", "R4-7"),
    (80, 0x001E2200001000000000000006107355, "BMOV.32.CLEAR R16, B6", "B6", "R16 B6"),
    (80, 0x01072200000E820000000000020273A1, "MATCH.ANY.U64 R2, R2", "R2-3", "R2"),
    (80, 0x000E6400002018000000000A00047310, "F2F.F64.F32 R4, R10", "R10", "R4-5"),
    (80, 0x0010A40000301C000000001E00227312, "I2F.F64.S64 R34, R30", "R30-31", "R34-35"),
    (80, 0x000FC800010FB4FF000000FF07077211, "LEA.HI.X R7, R7, RZ, RZ, 0x16, P2", "R7 P2", "R7"),
    (80, 0x000FE20000000A000000460000047AB9, "ULDC.64 UR4, c[0x0][0x118]", "", "UR4-5"),
    (80, 0x000BE80008141C44004000100A0D7FAE,
     "LDGSTS.E.BYPASS.128.ZFILL [R13+0x400], [R10.64+0x10], P0", "R13 R10-11 UR4-5 P0", ""),
    (80, 0x000FE2000001FF0000000000000E7805, "CS2R R14, SRZ", "", "R14-15"),
    (80, 0x000FEA00038000000000000000007941, "BSYNC B0", "B0", ""),
    (90, 0x000E220000000A0000008400FF087B82, "LDC.64 R8, c[0x0][0x210]", "", "R8-9"),
    (90, 0x000122000000000000000000150B73C4, "REDUX UR11, R21", "R21", "UR11"),
    (90, 0x000FE2000000000000000000043F72CA, "R2UR P0, URZ, R4", "R4", "P0"),
    (90, 0x000FEA000B8000000000000208B07947, "BRA.DIV UR8, 0x2d0", "UR8", ""),
    (120, 0x000FC400003FF0000000000000027402, "MOV.64 R2, 0x3ff0000000000000", "", "R2-3"),
    (120, 0x000FC600078E03000000001214027235, "IADD.64 R2, -R20, R18", "R20-21 R18-19", "R2-3"),
    (120, 0x000FC60003F162700000000A0800720C, "ISETP.GE.S64.AND P0, PT, R8, R10, PT",
     "R8-9 R10-11", "P0"),
    (120, 0x000FE400040000000000000212027607, "SEL.64 R2, R18, R2, !P0", "R18-19 R2-3 P0",
     "R2-3"),
    (120, 0x000FE200083FE45F306DC9C883047482, "UMOV.64 UR4, 0x3fe45f306dc9c883", "", "UR4-5"),
    # The guard is read.
    (80, 0x000FE200000000000000000302003804, "@P3 R2P PR, R2, 0x3", "R2 P3", "P0 P1"),
    (80, 0x000FE200000000000000000302008804, "@!P0 R2P PR, R2, 0x3", "R2 P0", "P0 P1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "word", "text", "reads", "writes"), BY_HAND, ids=[row[2] for row in BY_HAND]
)
def test_by_hand(arch: int, word: int, text: str, reads: str, writes: str) -> None:
    """Pairs, quads, carries, implicit predicates and guards."""
    inst = decode(word, 0, arch)
    assert inst.text == text
    assert {(r.file, r.index) for r in inst.reads} == registers.registers_named(reads)
    assert {(r.file, r.index) for r in inst.writes} == registers.registers_named(writes)


def test_zero_registers_are_no_registers() -> None:
    """RZ, URZ and PT are never among what is touched."""
    inst = decode(0x000FE200078E00FFFFFFFFFFFFFF7224, 0, 80)
    assert "RZ" in inst.text
    assert not inst.reads
    assert not inst.writes


# A few kernels that have the most forms between them; the others are for -m sweep.
FEW = (("carry_chains", 80), ("conversions", 90), ("global_atomics", 90), ("half_pairs", 80))


def _life_ranges(names: Iterable[str], least: int, witness: sass_witness.Witness) -> None:
    forms: set[tuple[str, int]] = set()
    wrong: list[str] = []
    for name in names:
        cubin = KERNELS / name
        wrong += [
            f"{cubin.name}: {difference}"
            for difference in registers.compare(witness, cubin, forms)
            if not registers.expected(difference)
        ]
    assert not wrong, "\n".join(wrong)
    assert len(forms) >= least


def test_life_ranges(witness: sass_witness.Witness) -> None:
    """Every instruction of some kept kernels accesses the registers that nvdisasm shows, apart from
    omissions."""
    _life_ranges((f"sm_{arch}/{name}.cubin" for name, arch in FEW), 45, witness)


@pytest.mark.sweep
def test_all_life_ranges(witness: sass_witness.Witness) -> None:
    """As above, all kept kernels."""
    paths = sorted(KERNELS.glob("sm_*/*.cubin"))
    _life_ranges((str(path.relative_to(KERNELS)) for path in paths), 180, witness)

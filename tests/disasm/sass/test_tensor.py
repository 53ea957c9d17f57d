"""Matrix products, tensor memory, clusters and small numbers: what their instructions touch, by
hand and, for the kernels in PTX beside, in text and registers against nvdisasm."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from tools.witness.nvdisasm import registers
from tools.witness.nvdisasm import witness as sass_witness

KERNELS = Path(__file__).resolve().parent / "kernels"
SCHEDULING = (1 << 17) - 1 << 105

# Architecture, word, text, registers read, registers written.
BY_HAND = [
    (100, 0x0013D80008080013001004060E0075EA,
     "UTCHMMA.WS gdesc[UR14], gdesc[UR6], tmem[UR19], tmem[UR4], idesc[UR5], UR16, UP0",
     "UR4-7 UR14-17 UR19 UP0", ""),
    (100, 0x0001EE000820030B00080406160075EA,
     "UTCQMMA.2CTA gdesc[UR22], gdesc[UR6], tmem[UR11], tmem[UR4], idesc[UR5], UR8, UP0",
     "UR4-15 UR22-23 UP0", ""),
    (100, 0x0001D8000800000BC00E04060A0079EA,
     "UTCOMMA tmem[UR10], gdesc[UR6], tmem[UR11], tmem[UR4], idesc[UR5], tmem[UR14], UP0",
     "UR4-7 UR10-11 UR14-15 UP0", ""),
    (100, 0x000F2200080A000000000004002879EE,
     "LDTM.16dp256bit.x2 R40, tmem[UR4]",
     "UR4", "R40-47"),
    (100, 0x000FE200081C000400000004000079ED,
     "STTM.x8 tmem[UR4], R4",
     "R4-11 UR4", ""),
    (103, 0x004E6200081C000000000004170C75EE,
     "LDTM.STAT.x8.MAX R23, R12, tmem[UR4]",
     "UR4", "R12-19 R23"),
    (100, 0x000E66000800080000000004000575E3,
     "UTCATOMSWS.FIND_AND_SET.ALIGN UP0, UR5, UR4",
     "UR4", "UR5 UP0"),
    (90, 0x000FE6000B800A1808209A0898187DF0,
     "HGMMA.SP.64x16x32.F32 R24, R152, gdesc[UR8], R24, UP0, R154, 0x0, gsb0",
     "R24-31 R152-155 UR8-11 UP0", "R24-31"),
    (90, 0x000FE6000B84101800600000081879F1,
     "IGMMA.64x16x32.S8.S8 R24, gdesc[UR8], R24, UP0, gsb0",
     "R24-31 UR8-11 UP0", "R24-31"),
    (120, 0x004FDE0000090008600006141408747F,
     "OMMA.SF.SP.168128.F32.E2M1.E2M1.E8 R8, R20, R20, R8, R6, R0, UR6, 0x0",
     "R0 R6-11 R20-23 UR6", "R8-11"),
    (80, 0x004FF60000005A0C00040508080C723C,
     "HMMA.SP.16832.F32 R12, R8, R8, R12, R5.reuse, 0x0",
     "R5 R8-15", "R12-15"),
    (100, 0x0001F4000810900000001608060075B4,
     "UTMALDG.2D.GATHER4 [UR8], [UR6], desc[UR22]",
     "UR6-14 UR22-23", ""),
    (100, 0x000FD8000800000000000000080073CA,
     "UGETNEXTWORKID.SELFCAST [UR8], [UR9]",
     "UR8-9", ""),
    (100, 0x0011E20008098A00000000080A007377,
     "USTGR.E.NA.64.MMIO.SYS [UR10], UR8",
     "UR8-11", ""),
    (100, 0x1C0FE200000220040000000C0D177223,
     "FHFMA.SAT R23, R13.reuse, R12.reuse, R4.reuse",
     "R4 R12-13", "R23"),
    (100, 0x100FE40000021000000000050416723E,
     "F2FP.BF16.F32.PACK_AB.RS R22, R4, R5, R0.reuse",
     "R0 R4-5", "R22"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arch", "word", "text", "reads", "writes"), BY_HAND, ids=[row[2] for row in BY_HAND]
)
def test_by_hand(arch: int, word: int, text: str, reads: str, writes: str) -> None:
    """Fragments, descriptors, pairs that the text names once; the text is read back."""
    inst = decode(word, 0, arch)
    assert inst.text == text
    assert {(r.file, r.index) for r in inst.reads} == registers.registers_named(reads)
    assert {(r.file, r.index) for r in inst.writes} == registers.registers_named(writes)
    assert not (assemble(text, arch) ^ word) & ~SCHEDULING


@pytest.mark.sweep
@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.ptx")), ids=lambda p: p.stem)
def test_kernels(path: Path, witness: sass_witness.Witness, tmp_path: Path) -> None:
    """Every instruction prints as in nvdisasm and accesses the registers that nvdisasm shows."""
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("ptxas is absent")
    target = re.search(r"\.target (\w+)", path.read_text())
    assert target
    cubin = tmp_path / f"{path.stem}.cubin"
    subprocess.run([ptxas, f"-arch={target[1]}", "-O1", str(path), "-o", str(cubin)], check=True)
    parsed = parse_cubin(cubin.read_bytes())
    for kernel in parsed.kernels:
        code = kernel.code
        words = [int.from_bytes(code[i : i + 16], "little") for i in range(0, len(code), 16)]
        wanted = witness.texts(parsed.arch, words, at_zero=True)
        for word, want in zip(words, wanted, strict=True):
            assert decode(word, 0, parsed.arch).text == want
    wrong = [
        str(difference)
        for difference in registers.compare(witness, cubin, set())
        if not registers.expected(difference)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("extra", range(8))
def test_what_a_register_count_given_back_ignores(extra: int) -> None:
    """Bits 81 to 83 hold a predicate where registers are taken; DEALLOC has none, and nvcc does not
    always leave PT there."""
    word = assemble("USETMAXREG.DEALLOC.CTAPOOL 0x28 ;", 90, 0) | extra << 81
    assert decode(word, 0, 90).text == "USETMAXREG.DEALLOC.CTAPOOL 0x28"

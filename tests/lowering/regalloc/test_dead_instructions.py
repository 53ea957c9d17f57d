"""Instructions whose results are never read have no code, whatever they compute."""

from __future__ import annotations

import pytest

from sassxlate.cfg import build
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.regalloc.allocate import dead_instructions


def idle_of(*lines: str) -> set[int]:
    words = [assemble(f"{line} ;", 90, 16 * n) for n, line in enumerate((*lines, "EXIT"))]
    found = dead_instructions(build("k", 90, [decode(w, 16 * n, 90) for n, w in enumerate(words)]))
    return {offset // 16 for offset in found}


@pytest.mark.parametrize(
    "line", ["MOV R0, R1", "LDC R0, c[0x0][0x28]", "FADD R0, R1, R2", "HFMA2 R0, R1, R2, R3",
             "ISETP.EQ.AND P0, PT, R1, R2, PT", "F2FP.F16.F32.PACK_AB R0, R1, R2"],
)  # fmt: skip
def test_what_only_computes(line: str) -> None:
    assert idle_of(line) == {0}
    assert idle_of(line, "STG.E desc[UR4][R2.64], R0", "@P0 NOP") == set()


@pytest.mark.parametrize(
    "line", ["LDG.E R0, desc[UR4][R2.64]", "ATOMS.ADD R0, [R1], R2", "SHFL.IDX PT, R0, R1, R2, R3",
             "CS2R R0, SR_CLOCKLO", "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x28", "NOP"],
)  # fmt: skip
def test_what_does_more(line: str) -> None:
    assert idle_of(line) == set()

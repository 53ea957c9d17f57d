"""Cluster barriers in a launch whose clusters are single blocks: BAR.SYNC 0 at the wait."""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.errors import LoweringError
from sassxlate.lowering.pipeline import translate_kernel
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code

# Each thread leaves 3 t in shared memory, and reads what the thread from the other end left there.
_KERNEL = """
ULDC.64 UR4, c[0x0][0x220] ;
ULDC.64 UR6, c[0x0][0x208] ;
S2R R0, SR_TID.X ;
IMAD R4, R0, 0x3, RZ ;
IMAD.SHL R5, R0, 0x4, RZ ;
STS [R5+0x400], R4 ;
UCGABAR_ARV ;
{guard}UCGABAR_WAIT ;
IADD3 R6, -R0, 0x5f, RZ ;
IMAD.SHL R6, R6, 0x4, RZ ;
LDS R8, [R6+0x400] ;
MOV R10, UR4 ;
MOV R11, UR5 ;
IMAD.WIDE.U32 R2, R0, 0x4, R10 ;
STG.E desc[UR6][R2.64], R8 ;
EXIT ;
"""


def _prepared(guard: str = "") -> Prepared:
    cubin = with_code(assembled(_KERNEL.format(guard=guard), 90), 90, 4 * 96)
    words = np.zeros(96, np.uint32)
    return Prepared(cubin, "divergent_if", (1, 1, 1), (96, 1, 1), (words, words, words), 96)


def test_a_wait_is_a_barrier_of_the_block() -> None:
    prepared = _prepared()
    want = 3 * np.arange(95, -1, -1)
    assert prepared.interpreted().tolist() == want.tolist()
    assert prepared.translated(strict=True).tolist() == want.tolist()


def test_a_guarded_one_is_refused() -> None:
    with pytest.raises(LoweringError, match="SX040"):
        translate_kernel(_prepared("@UP0 ").cubin, "divergent_if")

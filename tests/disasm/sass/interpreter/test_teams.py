"""Lanes that WARPSYNC.EXCLUSIVE or a collective section brings together, mask by mask: each mask's
lanes see each other alone in every order of the interpreter, as a tile's do on an NVIDIA GPU."""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.disasm.sass.interpreter import Order, ScheduleOptions
from tests.disasm.sass.interpreter import launches

THREADS = 64
_HEAD = """
S2R R0, SR_TID.X ;
S2R R20, SR_LANEID ;
ULDC.64 UR4, c[0x0][0x220] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
IMAD.WIDE R2, R0, 0x4, R2 ;
ULDC.64 UR6, c[0x0][0x208] ;
LOP3.LUT R4, R20, 0x1c, RZ, 0xc0, !PT ;
MOV R5, 0xf ;
SHF.L.U32 R7, R5, R4, RZ ;
"""
# A half of each tile comes later.
_LATE = """
LOP3.LUT R6, R20, 0x2, RZ, 0xc0, !PT ;
ISETP.NE.AND P3, PT, R6, RZ, PT ;
@P3 BRA `(.LATE) ;
NOP ;
.LATE:
"""
_MEETINGS = {
    "exclusive": """
BSSY B0, `(.J) ;
WARPSYNC.EXCLUSIVE R7 ;
VOTE.ANY R8, PT, PT ;
BSYNC B0 ;
.J:
""",
    "collective": """
BSSY B0, `(.J) ;
WARPSYNC.COLLECTIVE R7, `(.S) ;
VOTE.ANY R8, PT, PT ;
ENDCOLLECTIVE ;
.S:
BSYNC B0 ;
.J:
""",
}
_TAIL = """
STG.E desc[UR6][R2.64], R8 ;
EXIT ;
"""


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("late", ["", _LATE], ids=["together", "late"])
@pytest.mark.parametrize("meeting", _MEETINGS)
def test_each_tile_is_alone(meeting: str, late: str, order: Order) -> None:
    code = launches.assembled(_HEAD + late + _MEETINGS[meeting] + _TAIL, 90)
    words = np.zeros(THREADS, np.uint32)
    inputs = (words, words, np.full(THREADS, 0xABCD, np.uint32))
    cubin = launches.with_code(code, 90, 0)
    shape = (1, 1, 1), (THREADS, 1, 1)
    prepared = launches.Prepared(cubin, "divergent_if", *shape, inputs, THREADS)
    wanted = [0xF << (t % 32 // 4 * 4) for t in range(THREADS)]
    assert prepared.interpreted(ScheduleOptions(order)).tolist() == wanted

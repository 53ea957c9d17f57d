"""Lanes at a BSYNC that block others, in the interpreter and translated.

An H100 finishes if two lanes wait at a WARPSYNC for all and the others at the BSYNC after it
(``asked_join`` and ``asked_mask`` of ``tools/silicon/launches``), and hangs at two WARPSYNCs.
"""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.errors import EmulatorError, InterpretError
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
LEA R7, R0, 0x400, 0x2 ;
STS [R7], RZ ;
IMAD R8, R0, 0x7, RZ ;
MOV R9, RZ ;
MOV R10, RZ ;
MOV R11, RZ ;
BAR.SYNC.DEFER_BLOCKING 0x0 ;
"""
# The word that a lane left is read by the one beside it.
_EXCHANGE = """
STS [R7], R8 ;
{} ;
LOP3.LUT R6, R7, 0x4, RZ, 0x3c, !PT ;
LDS R6, [R6] ;
IMAD R9, R9, 0x3, R6 ;
"""
_TAIL = """
IADD3 R8, R8, R9, R11 ;
STG.E desc[UR6][R2.64], R8 ;
EXIT ;
"""


def _below(lanes: int) -> str:
    return f"ISETP.GE.AND P3, PT, R20, {lanes:#x}, PT ;\n"


def _prepared(text: str) -> launches.Prepared:
    code = launches.assembled(_HEAD + text, 90)
    words = np.zeros(THREADS, np.uint32)
    inputs = (words, words, np.full(THREADS, 0xABCD, np.uint32))
    cubin = launches.with_code(code, 90, 4 * THREADS)
    shape = (1, 1, 1), (THREADS, 1, 1)
    return launches.Prepared(cubin, "divergent_if", *shape, inputs, THREADS)


def _expected(lanes: int) -> list[int]:
    """The result if the first lanes of a warp add the word beside theirs."""
    return [7 * t + (7 * (t ^ 1) if t % 32 < lanes else 0) for t in range(THREADS)]


def _branch(wait: str, lanes: int = 2) -> str:
    exchange = _EXCHANGE.format(wait)
    return f"{_below(lanes)}BSSY B0, `(.J) ;\n@P3 BRA `(.J) ;\n{exchange}.J:\nBSYNC B0 ;\n"


_CALLED = f"""
MOV R31, RZ ;
{_below(2)}
BSSY B0, `(.J) ;
@P3 BRA `(.J) ;
MOV R30, `(.BACK) ;
CALL.REL.NOINC `(.F) ;
.BACK:
NOP ;
.J:
BSYNC B0 ;
{_TAIL}
.F:
{_EXCHANGE.format("WARPSYNC.ALL")}
RET.REL.NODEC R30 0x0 ;
"""
# Two regions, and after them a loop whose counter was set before: a lane that comes late counts
# again.
_NESTED = f"""
{_below(16)}
BSSY B1, `(.O) ;
@P3 BRA `(.O) ;
{_branch("WARPSYNC.ALL")}
.O:
BSYNC B1 ;
.LOOP:
IADD3 R10, R10, 0x1, RZ ;
IADD3 R11, R11, 0x5, RZ ;
ISETP.LT.AND P0, PT, R10, 0x4, PT ;
@P0 BRA `(.LOOP) ;
"""
# In the first round the lower half waits at the WARPSYNC, and in the second the upper one: there
# they meet, since the upper half goes on from the BSYNC.
_AGAIN = """
SHF.R.U32.HI R12, RZ, 0x4, R20 ;
.LOOP:
LOP3.LUT R13, R12, R10, RZ, 0x3c, !PT ;
ISETP.NE.AND P3, PT, R13, RZ, PT ;
BSSY B0, `(.J) ;
@P3 BRA `(.J) ;
STS [R7], R8 ;
WARPSYNC.ALL ;
LOP3.LUT R6, R7, 0x40, RZ, 0x3c, !PT ;
LDS R6, [R6] ;
IADD3 R9, R9, R6, RZ ;
.J:
BSYNC B0 ;
IADD3 R10, R10, 0x1, RZ ;
ISETP.LT.AND P0, PT, R10, 0x2, PT ;
@P0 BRA `(.LOOP) ;
"""
# Two regions, one of each half.  The upper half's last lanes wait for the lower one
# to end, which its BSYNC prevents; so they come to their own BSYNC, which need not yield.
_HALVES = """
LOP3.LUT R12, R20, 0xf, RZ, 0xc0, !PT ;
ISETP.LT.AND P3, PT, R12, 0xe, PT ;
ISETP.GE.AND P4, PT, R20, 0x10, PT ;
MOV R21, 0xffff ;
MOV R22, 0xc0003fff ;
@P4 BRA `(.U) ;
BSSY B0, `(.L) ;
@P3 BRA `(.L) ;
WARPSYNC R21 ;
.L:
BSYNC B0 ;
VOTE.ANY R8, PT, PT ;
BRA `(.E) ;
.U:
BSSY B0, `(.J) ;
@P3 BRA `(.J) ;
WARPSYNC R22 ;
.J:
BSYNC B0 ;
VOTE.ANY R8, PT, PT ;
.E:
"""
# As nvcc writes __syncwarp() in an arm, for sm_90 (``section_in_region`` of
# ``tools/silicon/convergence``, an H200).
_SECTION = f"""
{_below(2)}
MOV R21, 0xffffffff ;
BSSY B0, `(.J) ;
@P3 BRA `(.J) ;
STS [R7], R8 ;
BSSY B1, `(.IN) ;
WARPSYNC.COLLECTIVE R21, `(.AT) ;
NOP ;
ENDCOLLECTIVE ;
.AT:
BSYNC B1 ;
.IN:
LOP3.LUT R6, R7, 0x4, RZ, 0x3c, !PT ;
LDS R6, [R6] ;
IMAD R9, R9, 0x3, R6 ;
.J:
BSYNC B0 ;
"""
# A function that saves its caller's barrier, and uses it.
_SAVED = f"""
MOV R31, RZ ;
{_below(16)}
BSSY B0, `(.O) ;
MOV R30, `(.BACK) ;
CALL.REL.NOINC `(.F) ;
.BACK:
IADD3 R11, R11, 0x5, RZ ;
BSYNC B0 ;
.O:
{_TAIL}
.F:
BMOV.32.CLEAR R16, B0 ;
{_branch("WARPSYNC.ALL")}
BMOV.32 B0, R16 ;
RET.REL.NODEC R30 0x0 ;
"""
_FINISHED = {
    "section": (_SECTION + _TAIL, _expected(2)),
    "saved": (_SAVED, [x + 5 for x in _expected(2)]),
    "all": (_branch("WARPSYNC.ALL") + _TAIL, _expected(2)),
    "mask": ("MOV R21, 0xffffffff ;\n" + _branch("WARPSYNC R21") + _TAIL, _expected(2)),
    "guard": (
        f"{_below(2)}BSSY B0, `(.J) ;\n{_EXCHANGE.format('@!P3 WARPSYNC.ALL')}@P3 MOV R9, RZ ;\n"
        f".J:\nBSYNC B0 ;\n{_TAIL}",
        _expected(2),
    ),
    "called": (_CALLED, _expected(2)),
    "nested": (_NESTED + _TAIL, [x + 20 for x in _expected(2)]),
    "halves": (_HALVES + _TAIL, 2 * ([0x3FFF] * 14 + [0xC000] * 2 + [0xFFFF0000] * 16)),
    "again": (_AGAIN + _TAIL, [7 * t + 7 * (t ^ 16) for t in range(THREADS)]),
}
_ARM = "WARPSYNC.ALL ;\nIADD3 R8, R8, 0x1, RZ ;\n"
_STUCK = {
    "two": f"{_below(2)}BSSY B0, `(.J) ;\n@P3 BRA `(.E) ;\n{_ARM}BRA `(.J) ;\n.E:\n{_ARM}.J:\n"
           f"BSYNC B0 ;\n{_TAIL}",
    "later": _branch("WARPSYNC.ALL") + "WARPSYNC.ALL ;\n" + _TAIL,
    "barrier": _branch("WARPSYNC.ALL") + "BAR.SYNC.DEFER_BLOCKING 0x0 ;\n" + _TAIL,
}  # fmt: skip


@pytest.mark.parametrize("name", _FINISHED)
def test_lanes_at_a_bsync_go_on(name: str) -> None:
    text, expected = _FINISHED[name]
    prepared = _prepared(text)
    assert prepared.interpreted().tolist() == expected
    assert prepared.translated().tolist() == expected


@pytest.mark.parametrize("name", _STUCK)
def test_lanes_at_two_places_stay(name: str) -> None:
    prepared = _prepared(_STUCK[name])
    with pytest.raises(InterpretError, match="SX0214"):
        prepared.interpreted()
    with pytest.raises(EmulatorError, match="0x51"):
        prepared.translated()

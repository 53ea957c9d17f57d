"""The kernels whose slot a word is put into, written as SASS of sm_90 and assembled here.

They fill the code of ``fixtures/silicon/sm_90/template.cubin`` (a kernel of ours, nvcc 13.0.88, for
its sections and its eighteen registers).  Thread i reads vector i; where there are uniform
registers, each warp reads a vector of its own, and lane 0 of it stores.
"""

from __future__ import annotations

from pathlib import Path

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.codec.assembler import assemble_listing

CUBIN = Path(__file__).resolve().parents[2] / "fixtures" / "silicon" / "sm_90" / "template.cubin"
SLOT = "slot"
_NOP = "[B012345:R-:W-:Y:S15] NOP ;"

_HEAD = """
[B------:R-:W0:-:S07] S2R R0, SR_CTAID.X ;
[B------:R-:W1:-:S01] LDC.64 R2, c[0x0][0x210] ;
[B------:R-:W-:-:S01] ULDC.64 UR12, c[0x0][0x208] ;
[B------:R-:W2:-:S06] S2R R5, SR_TID.X ;
[B------:R-:W3:-:S01] LDC.64 R14, c[0x0][0x218] ;
"""
# Vector number to R0, address of the vector to R2.
_INDEX = """
[B012345:R-:W-:Y:S15] LEA R0, R0, R5, 0x8 ;
"""
_UNIFORM_INDEX = """
[B012345:R-:W-:Y:S15] LEA R0, R0, R5, 0x8 ;
[B012345:R-:W-:Y:S15] SHF.R.U32.HI R0, RZ, 0x5, R0 ;
"""
_LOAD = """
[B012345:R-:W-:Y:S15] IMAD R5, R0, 0x28, RZ ;
[B012345:R-:W-:Y:S15] IADD3 R12, P0, R2, R5, RZ ;
[B012345:R-:W-:Y:S15] IADD3.X R13, RZ, R3, RZ, P0, !PT ;
[B------:R-:W0:-:S04] LDG.E.64 R2, desc[UR12][R12.64+0x8] ;
[B------:R-:W1:-:S04] LDG.E.64 R4, desc[UR12][R12.64] ;
[B------:R-:W2:-:S04] LDG.E.64 R8, desc[UR12][R12.64+0x10] ;
[B------:R-:W3:-:S04] LDG.E.64 R10, desc[UR12][R12.64+0x18] ;
[B------:R-:W4:-:S02] LDG.E R6, desc[UR12][R12.64+0x20] ;
[B012345:R-:W-:Y:S15] R2P PR, R6, 0x7f ;
"""
_TO_UNIFORM = [
    *(f"[B012345:R-:W0:Y:S15] R2UR UR{i}, R{i} ;" for i in (2, 3, 4, 5, 8, 9, 10, 11, 6)),
    "[B012345:R-:W-:Y:S15] UR2UP UPR, UR6, 0x7f ;",
]
_FIRST_LANE = [
    "[B------:R-:W0:Y:S15] S2R R5, SR_TID.X ;",
    "[B012345:R-:W-:Y:S15] LOP3.LUT P0, RZ, R5, 0x1f, RZ, 0xc0, !PT ;",
]
_PREDICATES = "[B012345:R-:W-:Y:S15] P2R R7, PR, RZ, 0x7f ;"
_FROM_LANES = [_PREDICATES, "[B012345:R-:W-:Y:S15] ISETP.NE.AND P0, PT, RZ, RZ, PT ;"]
_FROM_UNIFORM = [
    "[B012345:R-:W-:Y:S15] UP2UR UR6, UPR, URZ, 0x7f ;",
    *(f"[B012345:R-:W-:Y:S15] MOV R{i}, UR{i} ;" for i in (10, 11)),
    "[B012345:R-:W-:Y:S15] MOV R7, UR6 ;",
    *_FIRST_LANE,
]
_FROM_BOTH = [_PREDICATES, *_FIRST_LANE]
PLACES = ("-", "U", "M")
_STORE = """
[B012345:R-:W-:Y:S15] IMAD R3, R0, 0xc, RZ ;
[B012345:R-:W-:Y:S15] IADD3 R12, P1, R14, R3, RZ ;
[B012345:R-:W-:Y:S15] IADD3.X R13, RZ, R15, RZ, P1, !PT ;
[B------:R-:W-:Y:S05] @!P0 STG.E desc[UR12][R12.64], R10 ;
[B------:R-:W-:Y:S05] @!P0 STG.E desc[UR12][R12.64+0x4], R11 ;
[B------:R-:W-:Y:S05] @!P0 STG.E desc[UR12][R12.64+0x8], R7 ;
[B------:R-:W-:Y:S05] EXIT ;
"""


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def listing(place: str) -> list[str]:
    """The instructions of a template, one per line, with SLOT where the slot is."""
    wide = place != "-"
    head = [*_lines(_HEAD), *_lines(_UNIFORM_INDEX if wide else _INDEX), *_lines(_LOAD)]
    before = _TO_UNIFORM if wide else []
    after = {"-": _FROM_LANES, "U": _FROM_UNIFORM, "M": _FROM_BOTH}[place]
    return [*head, *before, _NOP, SLOT, _NOP, _NOP, *after, *_lines(_STORE)]


def template(place: str) -> tuple[bytearray, int]:
    """The cubin, and where in the file its slot is."""
    data = CUBIN.read_bytes()
    (kernel,) = parse_cubin(data).kernels
    lines = listing(place)
    slot = 16 * lines.index(SLOT)
    code = assemble_listing([_NOP if line == SLOT else line for line in lines], 90)[""]
    assert len(code) <= len(kernel.code)
    nop = assemble_listing([_NOP], 90)[""]
    code += nop * ((len(kernel.code) - len(code)) // 16)
    at = data.index(kernel.code)
    return bytearray(data[:at] + code + data[at + len(code) :]), at + slot

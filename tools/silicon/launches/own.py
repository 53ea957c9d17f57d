"""Kernels in SASS for forms that nvcc rarely writes, or not in a place that shows their effect.

Threads, 128 per block, have one word of ``a`` in R8 and of ``b`` in R9, and leave R8 to R13.
"""

from __future__ import annotations

from collections.abc import Iterator

THREADS = 128
WORDS = 8  # of ``out`` a thread
_HEAD = """
S2R R0, SR_CTAID.X
S2R R3, SR_TID.X
ULDC UR4, c[0x0][0x0]
IMAD R0, R0, UR4, R3
LEA R7, R3, 0x400, 0x2
ULDC.64 UR4, c[0x0][0x210]
MOV R14, UR4
MOV R15, UR5
IMAD.WIDE R14, R0, 0x4, R14
ULDC.64 UR4, c[0x0][0x218]
MOV R16, UR4
MOV R17, UR5
IMAD.WIDE R16, R0, 0x4, R16
ULDC.64 UR4, c[0x0][0x220]
MOV R2, UR4
MOV R3, UR5
IMAD.WIDE R2, R0, 0x20, R2
ULDC.64 UR6, c[0x0][0x208]
LDG.E R8, desc[UR6][R14.64]
LDG.E R9, desc[UR6][R16.64]
MOV R10, R0
LOP3.LUT R11, R8, R9, RZ, 0x3c, !PT
IADD3 R12, R8, R9, R0
MOV R13, RZ
SHF.R.U32.HI R5, RZ, 0x5, R0
LOP3.LUT R5, R5, 0x3, RZ, 0xc0, !PT
ISETP.LT.AND P0, PT, R8, R9, PT
LOP3.LUT R6, R8, 0x7, RZ, 0xc0, !PT
ISETP.NE.AND P1, PT, R6, RZ, PT
LOP3.LUT R6, R9, 0x1, RZ, 0xc0, !PT
ISETP.EQ.AND P2, PT, R6, RZ, PT
ISETP.GE.AND P5, PT, R5, 0x2, PT
"""
_TAIL = """
STG.E desc[UR6][R2.64], R8
STG.E desc[UR6][R2.64+0x4], R9
STG.E desc[UR6][R2.64+0x8], R10
STG.E desc[UR6][R2.64+0xc], R11
STG.E desc[UR6][R2.64+0x10], R12
STG.E desc[UR6][R2.64+0x14], R13
EXIT
.END:
BRA `(.END)
"""


def _around(body: str) -> str:
    return "\n".join(line for line in (_HEAD + body + _TAIL).splitlines() if line)


def _exchange(bar: str, far: int) -> str:
    """Words go to other lanes through shared memory, between two barriers."""
    return f"""
STS [R7], R8
{bar}
LOP3.LUT R6, R7, {4 * far:#x}, RZ, 0x3c, !PT
LDS R6, [R6]
IMAD R8, R8, 0x3, R6
{bar}
"""


def _barriers(defer: str) -> str:
    """Every way to name a barrier and a count: the whole block, or the half that P5 tells."""
    name = f"BAR.SYNC{defer}"
    text = _exchange(f"{name} 0x0", 77)
    text += _exchange(f"{name} 0x1, 0x80", 45)
    text += "MOV R20, 0x80\n" + _exchange(f"{name} 0x2, R20", 99)
    text += "MOV R20, 0x3\n" + _exchange(f"{name} R20", 120)
    text += "MOV R20, 0x4\nSEL R20, R20, 0x5, P5\n" + _exchange(f"{name} R20, 0x40", 33)
    text += "MOV R20, 0x400006\nSHF.R.U32.HI R21, RZ, 0x1, R5\nIADD3 R20, R20, R21, RZ\n"
    return text + _exchange(f"{name} R20, R20", 63)


def _reduction(kind: str, defer: str) -> str:
    text, name = "MOV R20, 0x800008\nMOV R21, 0x80\nMOV R22, 0x9\n", f"BAR.RED.{kind}{defer}"
    for k, where in enumerate(("0x0", "0x7, R21", "R22", "R20, R20", "0xa, 0x80", "R22, 0x80")):
        for p in ("P0", "!P1", "P2", "PT", "!PT")[k % 2 :: 2]:
            target = "R6" if kind == "POPC" else "RZ"
            text += f"{name} {where}, {p}\nB2R.RESULT {target}, P3\nIMAD R8, R8, 0x5, R6\n"
            text += "SEL R6, R9, R10, P3\nIADD3 R11, R11, R6, RZ\n"
        text += f"{name} {where}, P1\nB2R.RESULT RZ, P4\nSEL R6, R9, R11, P4\n"
        text += "IADD3 R12, R12, R6, RZ\n"
    return text


def _arrivals(defer: str) -> str:
    """One half gives, the other takes, then the other way round."""
    text = "MOV R20, 0x3\nMOV R21, 0x80\nMOV R22, 0x800005\n"
    ways = ("0x1, 0x80", "R20, 0x80", "0x2, R21", "R22, R22")
    for k, where in enumerate(ways):
        giver, far = ("@P5", "@!P5")[:: (-1) ** k], 0x100
        text += f"{giver[0]} STS [R7], R8\n"
        text += f"{giver[0]} BAR.ARV {where}\n{giver[1]} BAR.SYNC{defer} {where}\n"
        text += f"LOP3.LUT R6, R7, {far:#x}, RZ, 0x3c, !PT\n{giver[1]} LDS R6, [R6]\n"
        text += f"{giver[1]} IMAD R8, R8, 0x3, R6\n"
        text += f"BAR.SYNC{defer} 0xf\n"
    return text


_WORDS = "".join(
    f"BAR.RED.{kind}.DEFER_BLOCKING 0x0, {p}\nB2R.RESULT R6, P3\nIMAD R8, R8, 0x5, R6\n"
    for kind in ("AND", "OR") for p in ("P0", "!P1", "PT", "!PT")
)  # fmt: skip
# The result of a load is used after a wait for its scoreboard that no wait mask repeats.
_NOTHING = "[B------:R-:W-:Y:S15]"
_SCOREBOARDS = f"""
[B------:R-:W2:Y:S15] LDG.E R20, desc[UR6][R14.64] ;
[B------:R-:W3:Y:S15] LDG.E R21, desc[UR6][R16.64] ;
{_NOTHING} DEPBAR.LE SB2, 0x0 ;
{_NOTHING} NOP ;
{_NOTHING} IMAD R10, R20, 0x3, R10 ;
{_NOTHING} DEPBAR.LE SB3, 0x0 ;
{_NOTHING} NOP ;
{_NOTHING} IMAD R11, R21, 0x5, R11 ;
[B------:R-:W4:Y:S15] LDG.E R22, desc[UR6][R16.64] ;
[B------:R-:W4:Y:S15] LDG.E R23, desc[UR6][R14.64] ;
{_NOTHING} DEPBAR.LE SB4, 0x0 ;
{_NOTHING} NOP ;
{_NOTHING} IMAD R12, R22, R23, R12 ;
"""
_SLEEPS = """
LOP3.LUT R20, R8, 0xff, RZ, 0xc0, !PT
BSSY B0, `(.JOIN)
@P0 BRA `(.OTHER)
NANOSLEEP R20
NANOSLEEP 0x64
@P1 NANOSLEEP 0x10
NANOSLEEP.SYNCS 0x64
IMAD R8, R8, 0x3, R9
YIELD
BRA `(.JOIN)
.OTHER:
@P2 YIELD
@!P1 NANOSLEEP.SYNCS 0x20
@!P2 NANOSLEEP R20
IMAD R9, R9, 0x5, R8
.JOIN:
BSYNC B0
"""
# Masks by halves: each half waits for itself alone.
_MASKS = """
S2R R20, SR_LANEID
ISETP.GE.AND P3, PT, R20, 0x10, PT
MOV R21, 0xffff
SEL R21, R21, 0xffff0000, !P3
BSSY B0, `(.JOIN)
@P3 BRA `(.UPPER)
STS [R7], R8
WARPSYNC R21
LOP3.LUT R6, R7, 0x1c, RZ, 0x3c, !PT
LDS R6, [R6]
IMAD R9, R9, 0x3, R6
WARPSYNC R21
BRA `(.JOIN)
.UPPER:
STS [R7], R9
@P0 IADD3 R9, R9, 0x1, RZ
WARPSYNC R21
LOP3.LUT R6, R7, 0x34, RZ, 0x3c, !PT
LDS R6, [R6]
IMAD R8, R8, 0x5, R6
WARPSYNC R21
.JOIN:
BSYNC B0
WARPSYNC.ALL
WARPSYNC.EXCLUSIVE R21
SHFL.BFLY PT, R6, R8, 0x3, 0x1f
IADD3 R10, R10, R6, RZ
WARPSYNC.ALL
BRA.U `(.ON)
MOV R8, RZ
.ON:
IADD3 R8, R8, 0x1, RZ
"""
# A branch that one arm of never comes back from, regions that some leave, ends inside.
_EXITS = """
BSSY B0, `(.JOIN)
@P0 BRA P1, `(.LEFT)
EXIT !P2
BSSY B1, `(.INNER)
BREAK P1, B1
@P1 BRA `(.JOIN)
IMAD R8, R8, 0x3, R9
LOP3.LUT R6, R8, 0x8, RZ, 0xc0, !PT
ISETP.NE.AND P4, PT, R6, RZ, PT
@P5 BREAK P4, B1
@!P5 BREAK P4, B1
BRA P4, `(.JOIN)
.INNER:
BSYNC B1
IADD3 R9, R9, 0x1, RZ
BRA `(.JOIN)
.LEFT:
IMAD R9, R8, R9, 0x7
@P2 EXIT P0
IADD3 R8, R8, 0x2, RZ
.JOIN:
BSYNC B0
VOTE.ANY R6, PT, P1
IADD3 R10, R10, R6, RZ
"""
# Lanes of one warp call two functions through a register and come back to two places.
_CALLS = """
MOV R20, `(.TWICE)
MOV R21, `(.MORE)
SEL R20, R20, R21, P0
MOV R21, RZ
MOV R22, `(.BACK)
MOV R23, RZ
BSSY B0, `(.BACK)
CALL.REL.NOINC R20 0x0
.TWICE:
IADD3 R8, R8, R8, RZ
@P1 RET.REL.NODEC R22 0x0
IADD3 R8, R8, 0x3, RZ
RET.REL.NODEC P2, R22 0x0
IADD3 R8, R8, 0x5, RZ
RET.REL.NODEC R22 0x0
.MORE:
IMAD R8, R8, R9, 0x7
@P2 CALL.REL.NOINC P1, `(.TWICE)
RET.REL.NODEC R22 0x0
.BACK:
BSYNC B0
VOTE.ALL R6, PT, P0
IADD3 R10, R10, R6, RZ
"""
# All four warps of a group; no product is under way.
_WARPGROUP = "".join(
    f"""
STS [R7], R8
WARPGROUP.ARRIVE
WARPGROUP.DEPBAR.LE gsb0, {left:#x}
BAR.SYNC.DEFER_BLOCKING 0x0
LOP3.LUT R6, R7, {4 * far:#x}, RZ, 0x3c, !PT
LDS R6, [R6]
IMAD R8, R8, 0x3, R6
WARPGROUP.DEPBAR.LE gsb0, 0x0
BAR.SYNC.DEFER_BLOCKING 0x0
"""
    for left, far in ((1, 77), (0, 44), (2, 101))
)
# As nvcc has it for sm_90 in arms that wait for the same.
_SECTION = """BSSY B1, `(.IN)
WARPSYNC.COLLECTIVE R21, `(.AT)
NOP
ENDCOLLECTIVE
.AT:
BSYNC B1
.IN:"""
# What CUDA leaves undefined and programs do: two lanes wait for the whole warp, the others do not.
# (The last one has not run on a device; section_in_region of tools/silicon/convergence has.)
_ASKED = {
    name: f"""
S2R R20, SR_LANEID
ISETP.GE.AND P3, PT, R20, 0x2, PT
MOV R21, 0xffffffff
{start}
STS [R7], R8
{wait}
LOP3.LUT R6, R7, 0x4, RZ, 0x3c, !PT
LDS R6, [R6]
IMAD R9, R9, 0x3, R6
{end}
"""
    for name, start, wait, end in (
        ("join", "BSSY B0, `(.JOIN)\n@P3 BRA `(.JOIN)", "WARPSYNC.ALL", ".JOIN:\nBSYNC B0"),
        ("exit", "@P3 EXIT", "WARPSYNC.ALL", ""),
        ("mask", "BSSY B0, `(.JOIN)\n@P3 BRA `(.JOIN)", "WARPSYNC R21", ".JOIN:\nBSYNC B0"),
        ("free", "@P3 BRA `(.JOIN)", "WARPSYNC.ALL", ".JOIN:"),
        ("section", "BSSY B0, `(.JOIN)\n@P3 BRA `(.JOIN)", _SECTION, ".JOIN:\nBSYNC B0"),
    )
}
_TRAP = """
ISETP.EQ.AND P3, PT, R0, 0x12345, PT
@P3 BPT.TRAP 0x1
"""
_TRAPPED = """
ISETP.EQ.AND P3, PT, R0, 0x23, PT
@P3 BPT.TRAP 0x1
"""


def kernels() -> Iterator[tuple[str, str]]:
    """(name, listing); of names with a dash at the end the launch ends in a trap."""
    for name, defer in (("", ".DEFER_BLOCKING"), ("_plain", "")):
        yield f"barriers{name}", _around(_barriers(defer))
        yield f"arrivals{name}", _around(_arrivals(defer))
        for kind in ("AND", "OR", "POPC"):
            yield f"reduction_{kind.lower()}{name}", _around(_reduction(kind, defer))
    bodies = {
        "scoreboards": _SCOREBOARDS, "sleeps": _SLEEPS, "masks": _MASKS, "exits": _EXITS,
        "calls": _CALLS, "reduction_words": _WORDS, "warpgroup": _WARPGROUP,
        "no_trap": _TRAP, "trap-": _TRAPPED,
    }  # fmt: skip
    bodies |= {f"asked_{name}": body for name, body in _ASKED.items()}
    for name, body in bodies.items():
        yield name, _around(body)

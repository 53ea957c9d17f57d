"""Loops that retry a compare-and-swap are no loops that wait; each variant of one that breaks a
condition is refused."""

from __future__ import annotations

import pytest

from sassxlate.cfg import Cfg, analyse, build
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.lowering.tier.refusal import WAITING, Refused
from sassxlate.lowering.tier.warp.together import together

ARCH = 80
RETRY = """
S2R R0, SR_TID.X
ISETP.GE.AND P1, PT, R0, 0x10, PT
@P1 EXIT
LDG.E R6, [R2.64]
.LOOP:
IADD3 R7, R6, R0, RZ
ATOMG.E.CAS.STRONG.GPU PT, R5, [R2], R6, R7
ISETP.NE.AND P0, PT, R5, R6, PT
MOV R6, R5
@P0 BRA `(.LOOP)
EXIT
"""
WIDE = """
S2R R0, SR_TID.X
ISETP.GE.AND P1, PT, R0, 0x10, PT
@P1 EXIT
LDG.E.64 R10, [R2.64]
.LOOP:
IADD3 R8, P0, R10, R0, RZ
IADD3.X R9, R11, RZ, RZ, P0, !PT
MOV R12, R10
MOV R13, R11
ATOMG.E.CAS.64.STRONG.GPU PT, R4, [R2], R12, R8
ISETP.NE.U32.AND P0, PT, R4, R10, PT
MOV R10, R4
ISETP.NE.AND.EX P0, PT, R5, R11, PT, P0
MOV R11, R5
@P0 BRA `(.LOOP)
EXIT
"""
READS = """
S2R R0, SR_TID.X
ISETP.GE.AND P1, PT, R0, 0x10, PT
@P1 EXIT
.LOOP:
LDS R6, [R2+0x8]
IADD3 R7, R6, R0, RZ
ATOMS.CAS R5, [R2+0x8], R6, R7
ISETP.EQ.AND P0, PT, R6, R5, PT
@!P0 BRA `(.LOOP)
EXIT
"""
# As nvcc writes atomicAdd of a float in shared memory.
TOLD = """
S2R R0, SR_TID.X
ISETP.GE.AND P1, PT, R0, 0x10, PT
@P1 EXIT
.LOOP:
LDS R4, [R2]
FADD R5, R4, 1
ATOMS.CAST.SPIN R5, [R2], R4, R5
ISETP.EQ.U32.AND P0, PT, R5, 0x1, PT
@!P0 BRA `(.LOOP)
EXIT
"""
TOLD_WIDE = """
S2R R0, SR_TID.X
ISETP.GE.AND P1, PT, R0, 0x10, PT
@P1 EXIT
.LOOP:
LDS.64 R4, [R2]
IADD3 R6, P0, R8, R4, RZ
IMAD.X R7, R9, 0x1, R5, P0
ATOMS.CAST.SPIN.64 R6, [R2], R4, R6
ISETP.EQ.U32.AND P0, PT, R6, 0x1, PT
ISETP.EQ.U32.AND.EX P0, PT, R7, RZ, PT, P0
@!P0 BRA `(.LOOP)
EXIT
"""
# From sm_90 on.
COPIED = TOLD.replace("LDS R4, [R2]", "LDS R4, [UR4]\nMOV R2, UR4")


def _graph(text: str) -> Cfg:
    lines = [line if line.startswith(".") else f"{line} ;" for line in text.split("\n") if line]
    code = assemble_listing(lines, ARCH)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    return build("k", ARCH, [decode(w, 16 * i, ARCH) for i, w in enumerate(words)])


def _accepted(text: str) -> bool:
    cfg = _graph(text)
    try:
        together(cfg, analyse(cfg))
    except Refused as why:
        return why.code != WAITING
    return True


def _changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    "text", [RETRY, WIDE, READS, TOLD, TOLD_WIDE, COPIED, COPIED.replace("UR4", "R3")]
)
def test_retries_are_accepted(text: str) -> None:
    assert _accepted(text)


def test_a_way_out_is_accepted() -> None:
    """As in a minimum by compare-and-swap: it ends, too, once memory has a lower value."""
    out = "ISETP.GE.AND P2, PT, R0, R6, PT\n@P2 EXIT\nATOMG"
    assert _accepted(_changed(RETRY, "ATOMG", out))


def test_one_in_another_loop() -> None:
    """The outer loop's condition does not come from memory; a lock there is refused."""
    head = ".OUTER:\nIADD3 R0, R0, 0x1, RZ\nISETP.GE.AND P1, PT, R0, 0x10, PT\n"
    around = _changed(RETRY, "ISETP.GE.AND P1, PT, R0, 0x10, PT\n", head)
    around = around[: around.rindex("EXIT")] + "BRA `(.OUTER)\n"
    assert _accepted(around)
    assert not _accepted(_changed(around, "MOV R6, R5\n", "MOV R6, RZ\n"))


BROKEN: dict[str, tuple[str, str, str]] = {
    "a lock: what it expects is its own": (RETRY, "MOV R6, R5\n", "MOV R6, RZ\n"),
    "it expects the first value for ever": (RETRY, "MOV R6, R5\n", ""),
    "it expects another value": (RETRY, "MOV R6, R5\n", "IADD3 R6, R5, 0x1, RZ\n"),
    "it expects it in some lanes": (RETRY, "MOV R6, R5\n", "@P1 MOV R6, R5\n"),
    "the expected value changes before":
        (RETRY, "IADD3 R7, R6, R0, RZ\n", "IADD3 R6, R6, R0, RZ\n"),
    "it goes on when the exchange was done": (RETRY, "@P0 BRA", "@!P0 BRA"),
    "it goes on while memory is larger": (RETRY, "ISETP.NE.AND", "ISETP.GT.AND"),
    "something else decides":
        (RETRY, "ISETP.NE.AND P0, PT, R5, R6, PT\n", "ISETP.NE.AND P0, PT, R5, RZ, PT\n"),
    "another condition joins it":
        (RETRY, "ISETP.NE.AND P0, PT, R5, R6, PT\n", "ISETP.NE.OR P0, PT, R5, R6, P1\n"),
    "the result changes before it is compared":
        (RETRY, "ISETP.NE.AND P0", "IADD3 R5, R5, 0x1, RZ\nISETP.NE.AND P0"),
    "the predicate changes":
        (RETRY, "MOV R6, R5\n", "MOV R6, R5\nISETP.NE.AND P0, PT, R5, RZ, PT\n"),
    "the address changes": (RETRY, "MOV R6, R5\n", "MOV R6, R5\nIADD3 R2, R2, 0x4, RZ\n"),
    "some lanes exchange": (RETRY, "ATOMG", "@P1 ATOMG"),
    "a second exchange":
        (RETRY, "ISETP.NE.AND P0", "ATOMG.E.CAS.STRONG.GPU PT, R8, [R2], R6, R7\nISETP.NE.AND P0"),
    "words of different turns": (WIDE, "MOV R11, R5\n", ""),
    "words change places": (WIDE, "MOV R11, R5\n", "MOV R11, R4\n"),
    "one word is compared": (WIDE, "ISETP.NE.AND.EX P0, PT, R5, R11, PT, P0\n", ""),
    "the first word is not counted":
        (WIDE, "ISETP.NE.AND.EX P0, PT, R5, R11, PT, P0", "ISETP.NE.AND P0, PT, R5, R11, PT"),
    "it is compared with a later value": (WIDE, "ISETP.NE.U32", "MOV R10, R8\nISETP.NE.U32"),
    "it reads elsewhere": (READS, "LDS R6, [R2+0x8]", "LDS R6, [R2+0xc]"),
    "it reads a part": (READS, "LDS R6", "LDS.U8 R6"),
    "it goes on when it stored": (TOLD, "@!P0 BRA", "@P0 BRA"),
    "it goes on if it did not store nothing": (TOLD, "ISETP.EQ", "ISETP.NE"),
    "it is compared with another number": (TOLD, "R5, 0x1, PT", "R5, 0x2, PT"),
    "what it told changes": (TOLD, "ISETP.EQ", "IADD3 R5, R5, 0x1, RZ\nISETP.EQ"),
    "another condition joins what it told": (TOLD, "R5, 0x1, PT", "R5, 0x1, P1"),
    "it reads elsewhere than it told": (TOLD, "LDS R4, [R2]", "LDS R4, [R2+0x4]"),
    "a lock that is told": (TOLD, "LDS R4, [R2]", "MOV R4, RZ"),
    "it is told in some lanes": (TOLD, "ATOMS", "@P1 ATOMS"),
    "the address is copied from another register": (COPIED, "MOV R2, UR4", "MOV R2, UR5"),
    "the address is copied in some lanes": (COPIED, "MOV R2, UR4", "@P1 MOV R2, UR4"),
    "the address is copied, and changes":
        (COPIED.replace("UR4", "R3"), "MOV R2, R3", "MOV R2, R3\nIADD3 R3, R3, 0x4, RZ"),
    "one word of what it told is compared":
        (TOLD_WIDE, "ISETP.EQ.U32.AND.EX P0, PT, R7, RZ, PT, P0\n", ""),
    "the first word of what it told is not counted":
        (TOLD_WIDE, "AND.EX P0, PT, R7, RZ, PT, P0", "AND P0, PT, R7, RZ, PT"),
    "it is told of one word": (TOLD_WIDE, "LDS.64 R4", "LDS R4"),
    "the predicate changes after it was told":
        (TOLD, "@!P0 BRA", "ISETP.EQ.U32.AND P0, PT, R4, 0x1, PT\n@!P0 BRA"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_condition_is_refused(name: str) -> None:
    assert not _accepted(_changed(*BROKEN[name]))

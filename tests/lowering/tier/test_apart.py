"""Uniform registers written where lanes run apart: accepted in sections, refused in each variant of
one that breaks a condition."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from sassxlate.cfg import Cfg, analyse, build
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.lowering.tier.refusal import TOGETHER, Refused
from sassxlate.lowering.tier.warp.apart import section, uniform_registers
from sassxlate.lowering.tier.warp.together import in_step, joined

ARCH = 80
# As in nvcc's sine of large angles: only some lanes run the loop, its address is in UR8.
LOOP = """
S2R R0, SR_TID.X
UMOV UR6, 0x5
IADD3 R3, R0, UR6, RZ
ISETP.GE.AND P0, PT, R0, 0x10, PT
ISETP.GE.AND P1, PT, R0, 0x8, PT
BSSY B0, `(.JOIN)
@P0 BRA `(.JOINS)
IMAD.MOV.U32 R10, RZ, RZ, RZ
ULDC.64 UR8, c[0x4][0x0]
.LOOP:
IADD3 R2, R2, UR8, RZ
UIADD3 UR8, UR8, 0x4, URZ
IADD3 R10, R10, 0x1, RZ
ISETP.NE.AND P6, PT, R10, 0x6, PT
@P6 BRA `(.LOOP)
IADD3 R2, R2, 0x1, RZ
@P1 BRA `(.JOINS)
IADD3 R2, R2, 0x2, RZ
.JOINS:
BSYNC B0
.JOIN:
IADD3 R4, R3, 0x1, RZ
EXIT
"""


def _graph(text: str) -> Cfg:
    lines = [line if line.startswith(".") else f"{line} ;" for line in text.split("\n") if line]
    code = assemble_listing(lines, ARCH)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    return build("k", ARCH, [decode(w, 16 * i, ARCH) for i, w in enumerate(words)])


def _accepted(text: str) -> bool:
    cfg = _graph(text)
    step = in_step(cfg, analyse(cfg))
    assert not all(step)
    try:
        uniform_registers(cfg, step, joined(cfg))
    except Refused as why:
        return why.code != TOGETHER
    return True


def test_the_section_of_a_loop_ends_with_a_branch_that_parts_its_lanes() -> None:
    cfg = _graph(LOOP)
    (head,) = [b.index for b in cfg.blocks if any(i.mnemonic == "ULDC" for i in b.instructions)]
    assert section(cfg, head) == {head, head + 1, head + 2}


def test_a_loop_of_lanes_that_stay_together_is_accepted() -> None:
    assert _accepted(LOOP)


# What is replaced, and by what.
HARMLESS = {
    "read where the section still is": ("R2, R2, 0x1, RZ", "R2, R2, UR8, RZ"),
    "a guard that all lanes share": ("IADD3 R2, R2, UR8", "@P6 IADD3 R2, R2, UR8"),
    "in step, after a write in step":
        ("IADD3 R4, R3, 0x1", "UMOV UR8, 0x7\nIADD3 R4, R3, UR8"),
    "written in step before, and not where lanes run apart":
        ("IADD3 R4, R3, 0x1", "IADD3 R4, R3, UR6"),
}  # fmt: skip
# Ways in which lanes leave the loop in different turns: the others go on.
TURNS = {
    "the counter starts at a lane's own value": ("R10, RZ, RZ, RZ", "R10, RZ, RZ, R0"),
    "the counter advances by a lane's own value": ("R10, R10, 0x1", "R10, R10, R0"),
    "the counter advances in some lanes": ("IADD3 R10, R10", "@P1 IADD3 R10, R10"),
    "the counter is loaded":
        ("IADD3 R10, R10, 0x1, RZ", "LDS R10, [RZ]"),
    "lanes leave by a lane's own predicate": ("@P6 BRA `(.LOOP)", "@P1 BRA `(.LOOP)"),
    "lanes may leave in the middle of the loop":
        ("UIADD3 UR8", "@P1 BRA `(.JOINS)\nUIADD3 UR8"),
    "lanes part in the loop, and meet again":
        ("UIADD3 UR8", "BSSY B1, `(.IN)\n@P1 BRA `(.INS)\nIADD3 R2, R2, 0x3, RZ\n.INS:\n"
                       "BSYNC B1\n.IN:\nUIADD3 UR8"),
}  # fmt: skip
WRONG = {
    "lanes may end in the loop": ("UIADD3 UR8", "@P1 EXIT\nUIADD3 UR8"),
    "lanes part in the loop, and write it before they meet again":
        ("UIADD3 UR8", "BSSY B1, `(.IN)\n@P1 BRA `(.INS)\nUMOV UR8, 0x3\n.INS:\n"
                       "BSYNC B1\n.IN:\nUIADD3 UR8"),
    "lanes part in the loop, and wait for others before they meet again":
        ("UIADD3 UR8", "BSSY B1, `(.IN)\n@P1 BRA `(.INS)\nWARPSYNC 0xffffffff\n.INS:\n"
                       "BSYNC B1\n.IN:\nUIADD3 UR8"),
    "lanes part in the loop, and do not meet again":
        ("UIADD3 UR8", "@P1 BRA `(.INS)\nIADD3 R2, R2, 0x3, RZ\n.INS:\nUIADD3 UR8"),
    "lanes wait for others in the loop": ("UIADD3 UR8", "WARPSYNC 0xffffffff\nUIADD3 UR8"),
    "not written before the loop": ("ULDC.64 UR8, c[0x4][0x0]", "NOP"),
    "another word of it is not written": ("ULDC.64 UR8", "ULDC UR9"),
    "written before it by all lanes only":
        ("ULDC.64 UR8, c[0x4][0x0]\n", ""),
    "lanes come to the loop past the write":
        ("IMAD.MOV.U32 R10, RZ, RZ, RZ\n", "IMAD.MOV.U32 R10, RZ, RZ, RZ\n@P1 BRA `(.LOOP)\n"),
    "written under a uniform predicate alone":
        ("ULDC.64 UR8, c[0x4][0x0]", "@UP1 ULDC.64 UR8, c[0x4][0x0]"),
    "read after lanes parted": ("R2, R2, 0x2, RZ", "R2, R2, UR8, RZ"),
    "read where they meet others": ("R4, R3, 0x1", "R4, R3, UR8"),
    "in step, written in step before the others wrote it":
        ("IADD3 R2, R2, UR8", "UMOV UR6, 0x9\nIADD3 R2, R2, UR8"),
}  # fmt: skip
ALSO = {  # a second replacement
    "written before it by all lanes only": ("UMOV UR6, 0x5", "UMOV UR6, 0x5\nUMOV UR8, 0x1"),
    "in step, written in step before the others wrote it": ("R4, R3, 0x1", "R4, R3, UR6"),
}


def _changed(old: str, new: str, text: str = LOOP) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_changes_are_accepted(name: str) -> None:
    assert _accepted(_changed(*HARMLESS[name]))


@pytest.mark.parametrize("name", TURNS)
def test_lanes_that_leave_the_loop_need_not_go_together(name: str) -> None:
    text = _changed(*TURNS[name])
    assert _accepted(text)
    same_turn = name in ("lanes may leave in the middle of the loop",
                         "lanes part in the loop, and meet again")  # fmt: skip
    read_after = _changed("R2, R2, 0x1, RZ", "R2, R2, UR8, RZ", text)
    assert _accepted(read_after) is same_turn


@pytest.mark.parametrize("name", WRONG)
def test_each_broken_condition_is_refused(name: str) -> None:
    text = _changed(*WRONG[name])
    if name in ALSO:
        text = _changed(*ALSO[name], text)
    assert not _accepted(text)


def test_a_lane_that_ends_may_have_written_it() -> None:
    """All lanes that live are together at the read, but one that ended wrote the register."""
    ends = "@P0 BRA `(.JOINS)\nUMOV UR7, 0x1\nEXIT\n"
    text = LOOP[: LOOP.index("@P0 BRA")] + "{}" + LOOP[LOOP.index(".JOINS:") :]
    text = text.replace("UMOV UR6", "UMOV UR7, 0x2\nUMOV UR6").replace("R4, R3, 0x1", "R4, R3, UR7")
    assert not _accepted(text.format(ends))
    assert _accepted(text.format(ends.replace("UR7", "UR5")))


@pytest.mark.parametrize(
    ("guard", "block", "good"),
    [
        ("ISETP.NE.AND P0, PT, R9, RZ, PT", "", True),
        ("ISETP.NE.AND P0, PT, R0, RZ, PT", "", False),  # differs by lane
        ("ISETP.NE.AND P0, PT, R9, RZ, PT", "ISETP.NE.AND P0, PT, R0, RZ, PT", False),
        ("ISETP.NE.AND P0, PT, R9, RZ, PT", "@P1 BRA `(.END)", False),  # where lanes run apart
    ],
)
def test_a_guard_that_all_lanes_share(guard: str, block: str, good: bool) -> None:
    head = "S2R R0, SR_LANEID\nS2R R9, SR_CTAID.X\nISETP.NE.AND P1, PT, R0, 0x3, PT\n"
    cfg = _graph(f"{head}{guard}\n{block}\n@P0 R2UR UR4, R9\n.END:\nEXIT\n")
    facts = analyse(cfg)
    with nullcontext() if good else pytest.raises(Refused, match="lane's guard"):
        uniform_registers(cfg, in_step(cfg, facts), facts=facts)

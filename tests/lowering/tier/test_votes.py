"""Tests of the lanes that voted are left out where these lanes are there, and no others; refused in
each variant that breaks a condition."""

from __future__ import annotations

import pytest

from sassxlate.cfg import Cfg, analyse, build
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.lowering.tier.refusal import FLOW, TOGETHER, Refused
from sassxlate.lowering.tier.warp.tests_of_warp import replaced
from sassxlate.lowering.tier.warp.together import together
from tests.lowering.emulated import load

ARCH = 80
# As nvcc writes a shuffle of cooperative groups' coalesced threads.
SHUFFLE = """
S2R R0, SR_TID.X
ISETP.GE.AND P0, PT, R0, 0x10, PT
@P0 EXIT
ISETP.GE.AND P1, PT, R0, 0x8, PT
@P1 BRA `(.OUT)
VOTE.ANY R8, PT, PT
BSSY B1, `(.MET)
ISETP.NE.AND P0, PT, R0, 0x3, PT
@P0 BRA `(.SYNC)
IADD3 R7, R0, 0x1, RZ
.SYNC:
BSYNC B1
.MET:
R2UR UR5, R8
BRA.DIV UR5, `(.SLOW)
SHFL.IDX PT, R7, R7, R9, 0x1f
.BACK:
STG.E [R2], R7
.OUT:
EXIT
.SLOW:
WARPSYNC R8
SHFL.IDX PT, R7, R7, R9, 0x1f
BRA `(.BACK)
"""


def graph(text: str) -> Cfg:
    lines = [line if line.startswith(".") else f"{line} ;" for line in text.split("\n") if line]
    code = assemble_listing(lines, ARCH)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    return build("k", ARCH, [decode(w, 16 * i, ARCH) for i, w in enumerate(words)])


def _accepted(text: str) -> bool:
    cubin = load("divergent_if", ARCH)  # for what is known of a kernel besides its code
    try:
        cfg, tests = replaced(graph(text), cubin.kernels[0])
        assert len(tests.votes) == 1
        together(cfg, analyse(cfg), tests.votes)
    except Refused as why:
        return why.code not in (FLOW, TOGETHER)
    return True


def test_a_shuffle_of_those_that_voted() -> None:
    assert _accepted(SHUFFLE)


def test_the_slow_way_is_left_out() -> None:
    cfg, _ = replaced(graph(SHUFFLE), load("divergent_if", ARCH).kernels[0])
    names = [i.mnemonic for b in cfg.blocks for i in b.instructions]
    assert names.count("SHFL") == 1
    assert "WARPSYNC" not in names


BROKEN = {
    "some of them voted": ("VOTE.ANY R8, PT, PT", "VOTE.ANY R8, PT, P0"),
    "some lanes have another mask": ("VOTE.ANY R8, PT, PT", "@P0 VOTE.ANY R8, PT, PT"),
    "the mask is changed": ("R2UR UR5, R8", "LOP3.LUT R8, R8, R3, RZ, 0x30, !PT\nR2UR UR5, R8"),
    "the mask is changed in some lanes": ("IADD3 R7, R0, 0x1, RZ", "IADD3 R8, R0, 0x1, RZ"),
    "it is another register's": ("R2UR UR5, R8", "R2UR UR5, R10"),
    "some lanes end before": ("IADD3 R7, R0, 0x1, RZ", "EXIT"),
    "lanes do not wait": ("BSYNC B1\n", "NOP\n"),
    "only some come there":
        (".MET:\n", ".MET:\nISETP.EQ.AND P2, PT, R0, 0x2, PT\n@P2 BRA `(.OUT)\n"),
    "others come there, too": ("@P1 BRA `(.OUT)\n", "@P1 BRA `(.MET)\n"),
    "it is no vote":
        ("VOTE.ANY R8, PT, PT\n", "MOV R8, R3\n"),
    "the slow way stores": (".SLOW:\n", ".SLOW:\nSTG.E [R2], R8\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_condition_is_refused(name: str) -> None:
    old, new = BROKEN[name]
    assert SHUFFLE.count(old) == 1
    assert not _accepted(SHUFFLE.replace(old, new))


# In a loop that YIELD marks, as nvcc writes one with an atomic operation, with a number of turns
# of each lane.
LOOP = """
S2R R0, SR_TID.X
ISETP.GE.AND P0, PT, R0, 0x10, PT
@P0 EXIT
.TURN:
YIELD
BSSY B0, `(.NEXT)
ISETP.GE.AND P1, PT, R0, 0x8, PT
@P1 BRA `(.OUT)
VOTE.ANY R8, PT, PT
BSSY B1, `(.MET)
ISETP.NE.AND P0, PT, R0, 0x3, PT
@P0 BRA `(.SYNC)
ATOMG.E.ADD.STRONG.GPU PT, R7, [R2], R0
.SYNC:
BSYNC B1
.MET:
R2UR UR5, R8
BRA.DIV UR5, `(.SLOW)
SHFL.IDX PT, R7, R7, R9, 0x1f
.BACK:
STG.E [R2], R7
.OUT:
BSYNC B0
.NEXT:
IADD3 R0, R0, 0x1, RZ
ISETP.LT.AND P2, PT, R0, 0x20, PT
@P2 BRA `(.TURN)
EXIT
.SLOW:
WARPSYNC R8
SHFL.IDX PT, R7, R7, R9, 0x1f
BRA `(.BACK)
"""
BROKEN_LOOP = {
    "lanes go back alone": ("BSYNC B0\n", "NOP\n"),
    "two ways back": ("STG.E [R2], R7\n", "STG.E [R2], R7\n@P1 BRA `(.TURN)\n"),
    "lanes come in apart": ("@P0 EXIT\n", "@P0 EXIT\n@P3 BRA `(.NEXT)\n"),
}


def test_turns_of_a_loop() -> None:
    assert _accepted(LOOP)


@pytest.mark.parametrize("name", BROKEN_LOOP)
def test_each_broken_loop_is_refused(name: str) -> None:
    old, new = BROKEN_LOOP[name]
    assert LOOP.count(old) == 1
    assert not _accepted(LOOP.replace(old, new))

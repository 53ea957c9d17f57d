"""Where lanes meet, and in which turns of their loops: accepted, and refused in each variant in
which lanes of two places, or of two turns, may meet."""

from __future__ import annotations

import pytest

from sassxlate.cfg import analyse
from sassxlate.lowering.tier.refusal import FLOW, TOGETHER, Refused
from sassxlate.lowering.tier.warp.tests_of_warp import replaced, settled
from sassxlate.lowering.tier.warp.together import together
from tests.lowering.emulated import load
from tests.lowering.tier.test_votes import ARCH, graph

# As nvcc writes a shuffle in each arm of a branch for sm_80: both slow ways wait in one function,
# so that the lanes of the arms meet there.
ARMS = """
S2R R0, SR_TID.X
LOP3.LUT P0, RZ, R0, 0x4, RZ, 0xc0, !PT
BSSY B0, `(.MET)
@!P0 BRA `(.OTHER)
BRA.DIV ~URZ, `(.SLOW)
SHFL.BFLY PT, R4, R4, 0x4, 0x1f
BRA `(.SYNC)
.OTHER:
IADD3 R4, R4, 0x1, RZ
BRA.DIV ~URZ, `(.SLOWER)
SHFL.BFLY PT, R4, R4, 0x5, 0x1f
.SYNC:
BSYNC B0
.MET:
STG.E [R2], R4
EXIT
.SLOW:
MOV R20, 0x120
MOV R21, 0x0
CALL.REL.NOINC `(.FUNCTION)
BRA `(.SYNC)
.SLOWER:
MOV R20, 0x160
MOV R21, 0x0
CALL.REL.NOINC `(.FUNCTION)
BRA `(.SYNC)
.FUNCTION:
WARPSYNC R7
SHFL.BFLY PT, R4, R4, R5, R6
RET.REL.NODEC R20 `(.SYNC)
"""

# A loop that each lane may leave at another turn, with a shuffle of all lanes in it.
LOOP = """
S2R R0, SR_TID.X
.HEAD:
IADD3 R4, R4, 0x1, RZ
BRA.DIV ~URZ, `(.SLOW)
SHFL.BFLY PT, R4, R4, 0x4, 0x1f
ISETP.GE.AND P0, PT, R4, R0, PT
@P0 BRA `(.HEAD)
STG.E [R2], R4
EXIT
.SLOW:
WARPSYNC R7
SHFL.BFLY PT, R4, R4, R5, R6
BRA `(.HEAD)
"""
ONCE_MORE = "IADD3 R4, R4, 0x1, RZ\nISETP.GE.AND P1, PT, R4, 0x7, PT\n"
WAITING = ("BRA.DIV ~URZ, `(.SLOW)\nSHFL.BFLY PT, R4, R4, 0x4, 0x1f\n", "WARPSYNC 0xffffffff\n")


def _accepted(text: str) -> bool:
    kernel = load("divergent_if", ARCH).kernels[0]
    try:
        cfg, tests = replaced(graph(text), kernel)
        cfg, facts = settled(cfg, kernel, tests)
        together(cfg, facts, tests.votes)
    except Refused as why:
        return why.code not in (FLOW, TOGETHER)
    return True


def _changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_lanes_of_two_arms_that_wait_in_one_function_are_refused() -> None:
    assert not _accepted(ARMS)


def test_one_shuffle_may_be_in_an_arm() -> None:
    shuffle = "BRA.DIV ~URZ, `(.SLOWER)\nSHFL.BFLY PT, R4, R4, 0x5, 0x1f\n"
    assert _accepted(_changed(ARMS, (shuffle, "")))


def test_two_shuffles_after_each_other_may_wait_in_one_function() -> None:
    after = ("BRA `(.SYNC)\n.OTHER", ".OTHER")
    assert _accepted(_changed(ARMS, after, ("@!P0 BRA `(.OTHER)\n", "")))
    assert not _accepted(_changed(ARMS, after))  # some lanes are at the second one at once


def test_slow_ways_that_wait_in_different_functions() -> None:
    mine = "\n.MINE:\nWARPSYNC R7\nSHFL.BFLY PT, R4, R4, R5, R6\nRET.REL.NODEC R20 `(.SYNC)\n"
    first = "CALL.REL.NOINC `(.FUNCTION)"
    assert _accepted(_changed(ARMS, (first, first.replace("FUNCTION", "MINE"))) + mine.strip("\n"))


def test_a_loop_that_lanes_leave_at_different_turns() -> None:
    """All live lanes meet in each turn, so those that left it have ended, there and here."""
    assert _accepted(LOOP)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # a turn without the meeting: one lane's second turn may be another's third
        ("BRA.DIV", ONCE_MORE + "@P1 BRA `(.HEAD)\nBRA.DIV"),
        # an inner loop in which lanes wait in one turn or the other
        (".HEAD:\n", ".HEAD:\n.INNER:\n" + ONCE_MORE + "@P1 BRA `(.INNER)\n@P2 BRA `(.HEAD)\n"),
    ],
)
def test_lanes_of_two_turns_are_refused(old: str, new: str) -> None:
    text = _changed(LOOP, (old, new))
    assert not _accepted(text)
    assert not _accepted(_changed(text, WAITING))


def test_a_way_to_the_meeting_may_have_its_own_loop() -> None:
    text = _changed(LOOP, (".HEAD:\n", ".HEAD:\n.INNER:\n" + ONCE_MORE + "@P1 BRA `(.INNER)\n"))
    assert _accepted(_changed(text, (".HEAD:\n", ".HEAD:\nIADD3 R4, R4, 0x3, RZ\n")))


# A function that waits for all lanes, called from both arms of a branch.
CALLS = """
S2R R0, SR_TID.X
ISETP.GE.AND P0, PT, R0, 0x8, PT
@P0 BRA `(.OTHER)
MOV R20, 0x60
MOV R21, 0x0
CALL.REL.NOINC `(.FUNCTION)
STG.E [R2], R4
EXIT
.OTHER:
MOV R20, 0xb0
MOV R21, 0x0
CALL.REL.NOINC `(.FUNCTION)
STG.E [R2+0x4], R4
EXIT
.FUNCTION:
WARPSYNC 0xffffffff
RET.REL.NODEC R20 `(.OTHER)
"""


@pytest.mark.parametrize("apart", [True, False])
def test_lanes_that_met_in_a_function_may_return_to_several_places(apart: bool) -> None:
    text = (
        CALLS if apart else _changed(CALLS, ("ISETP.GE.AND P0, PT, R0", "ISETP.GE.AND P0, PT, RZ"))
    )
    cfg = graph(text)
    facts = analyse(cfg)
    backs = [e.dst for e in cfg.edges if e.kind == "ret"]
    assert len(backs) == 2
    assert all(facts.converged[b] is not apart for b in backs)
    assert all(facts.converged[e.src] for e in cfg.edges if e.kind == "ret")

"""The search as a proposer: what it remembers, and how regions with macros are cut for it."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.engine.seam import Question
from sassxlate.lowering.engine.search import SearchProposer
from sassxlate.lowering.optimize.regions import cut_regions
from tests.lowering.engine.macros import REGS, region

_SHIFT = (
    "SHF.R.U32.HI R9, RZ, 0x8, R1; LOP3.LUT R9, R9, 0x3f, RZ, 0xc0, !PT; "
    "SHF.R.U64 R9, {0}, R9, {1}; IMAD.MOV {0}, RZ, RZ, -R9"
)


def _question(sass: str) -> Question:
    part = region(sass, ("R2",))
    assert part.asked is not None
    rules = tuple(tuple(i for i in group if isinstance(i, Inst)) for group in part.code)
    return Question(part.block, REGS, part.live_out, rules, part.asked)


def test_remembered_code_with_a_pair_where_the_registers_lie_apart() -> None:
    """The text of a region says nothing of which registers are adjacent."""
    pair, apart = _question(_SHIFT.format("R2", "R3")), _question(_SHIFT.format("R2", "R5"))
    assert pair.text.text == apart.text.text
    proposer = SearchProposer()
    assert proposer.propose(pair).candidates
    (found,) = proposer.propose(apart).candidates
    (alone,) = SearchProposer().propose(apart).candidates
    assert found == alone
    assert proposer.propose(pair).remembered


@pytest.mark.parametrize("count", [1, 2, 3])
def test_too_long_regions_of_macros_are_cut_to_an_end(count: int) -> None:
    """However few instructions there are beside the macros, each part is shorter than before."""
    sums = "; ".join(f"IADD3 R{5 + n}, R4, R3, RZ" for n in range(count))
    shuffles = "; ".join(["SHFL.BFLY PT, R4, R3, 0x1, 0x1f"] * 6)
    live = tuple(f"R{5 + n}" for n in range(count))
    whole = region(f"{shuffles}; {sums}", ("R4", *live))
    parts = cut_regions(
        whole.block, REGS, whole.live_out, 24, macros=True,
        too_long=lambda part, _: len(part.block.instructions) > 1,
    )  # fmt: skip
    assert sum(len(part.block.instructions) for part in parts) == 6 + count
    assert all(part.macro or len(part.block.instructions) == 1 for part in parts)

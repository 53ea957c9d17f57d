"""Random walks over short runs: what they find is cheaper, repeatable, and taken only if proved."""

from __future__ import annotations

from functools import partial

import pytest

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.llm.dataset import rows
from sassxlate.llm.dataset.rows import Harvest
from sassxlate.lowering.engine.gate import prove
from sassxlate.lowering.optimize import stochastic
from sassxlate.lowering.optimize.cost import cost, instruction
from sassxlate.lowering.optimize.search import walked
from sassxlate.lowering.optimize.stochastic import Run, numbers_of, results_of, walk
from sassxlate.lowering.region.text import read_code
from sassxlate.lowering.verify import Proved
from sassxlate.lowering.verify.steps.prover import Code, Prover
from tests.lowering import emulated
from tests.lowering.optimize.test_search import questions


def _run(*code: Inst) -> Run:
    return Run(code, (V(0), S(41)), (V(33),))


SHIFTED = _run(
    Inst("v_lshlrev_b32", (V(32), I(2), V(0))),
    Inst("v_add_nc_u32", (V(33), V(32), S(41))),
)
MASKED = _run(
    Inst("v_lshrrev_b32", (V(32), I(8), V(0))),
    Inst("v_and_b32", (V(33), V(32), I(0xFF))),
)


def test_a_walk_finds_one_instruction_for_two() -> None:
    found = walk(SHIFTED, 4)
    assert found is not None
    assert [inst.op for inst in found] == ["v_lshl_add_u32"]
    assert sum(map(instruction, found)) < SHIFTED.price


def test_equal_seeds_have_equal_walks() -> None:
    one = [walk.__wrapped__(MASKED, seed, 300) for seed in range(3)]
    assert one == [walk.__wrapped__(MASKED, seed, 300) for seed in range(3)]


def test_a_result_is_written_before_it_is_read() -> None:
    """What stood in a register before the run is no input."""
    numbers = numbers_of(2, 0)
    reads = (Inst("v_add_nc_u32", (V(33), V(32), V(0))),)
    assert results_of(reads, SHIFTED, numbers) is None
    writes_another = (Inst("v_mov_b32", (V(32), V(0))),)
    assert results_of(writes_another, SHIFTED, numbers) is None


def test_what_is_found_is_proved_and_cheaper() -> None:
    prover = Prover()
    better = 0
    for region, regs, question in questions("sm_90/byte_lanes", 24):
        rules: Code = read_code(
            " ".join(word for line in region.answer for word in line).split(), question
        )
        found = walked(region, regs, question, prover, rules, (1,), 100)
        if found is None:
            continue
        better += 1
        items = [i for group in found.code for i in group]
        assert found.cost == cost(items) < cost([i for group in rules for i in group])
        whole = prove(region.block, regs, region.live_out, found.code, 20_000)
        assert isinstance(whole, Proved)
    assert better > 0


def test_a_dataset_says_which_answers_are_of_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "walked", partial(walked, steps=10))
    harvest = Harvest(Prover(), search=False, walks=1)
    harvest.kernel(emulated.load("divergent_if", 90), "divergent_if", "divergent_if")
    mine = [row for row in harvest.taken() if row.by == "walk"]
    assert harvest.counts["walk"] > 0
    assert mine
    assert all(row.cost < row.rules_cost for row in mine)


def test_a_walk_that_takes_everything_for_right_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proof stands between a walk and the code."""

    def none_wrong(*_: object) -> float:
        return 0.0

    def right(*_: object) -> bool:
        return True

    monkeypatch.setattr(stochastic, "_bits", none_wrong)
    monkeypatch.setattr(stochastic, "_agree", right)
    stochastic.walk.cache_clear()
    asked = 0
    try:
        for region, regs, question in questions("sm_80/carry_chains", 24):
            words = " ".join(word for line in region.answer for word in line).split()
            rules: Code = read_code(words, question)
            found = walked(region, regs, question, Prover(timeout_ms=500), rules, (1,), 50)
            if found is not None:
                whole = prove(region.block, regs, region.live_out, found.code, 20_000)
                assert isinstance(whole, Proved)
            asked += 1
    finally:
        stochastic.walk.cache_clear()
    assert asked

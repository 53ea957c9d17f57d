"""LLVM's code for lifted runs: registers where they belong, cheaper, and proved as a whole."""

from __future__ import annotations

import pytest

pytest.importorskip("llvmlite", reason="LLVM's backend")

from sassxlate.disasm.rdna3 import RRef
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.engine.gate import prove
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.draft import Draft
from sassxlate.lowering.optimize.lift.backend import compiled_runs, rejoined
from sassxlate.lowering.optimize.lift.candidates import Known, relowered
from sassxlate.lowering.optimize.lift.lift import lift, masks_at, spans
from sassxlate.lowering.optimize.peephole.guards import nearly_same, two_way
from sassxlate.lowering.optimize.peephole.short_encodings import exchanged
from sassxlate.lowering.optimize.rename_registers import NoFit, Places, placed
from sassxlate.lowering.region.text import answer_text, read_code
from sassxlate.lowering.verify import Proved
from sassxlate.lowering.verify.steps.framing import accesses
from sassxlate.lowering.verify.steps.legality import check_legality
from sassxlate.lowering.verify.steps.prover import Prover

from .test_search import questions


def places(come: dict[RRef, int], free: list[int], kept: set[RRef]) -> Places:
    return Places(come, {"v": free, "s": []}, frozenset(kept))


def test_results_and_inputs_stay_and_temporaries_are_renamed() -> None:
    code = [
        Inst("v_add_nc_u32", (V(2), V(0), V(1))),
        Inst("v_lshlrev_b32", (V(0), I(3), V(2))),
        Inst("v_xor_b32", (V(2), V(0), V(1))),
        Inst("v_add_nc_u32", (V(0), V(2), V(2))),
    ]
    come = {RRef("v", 0): 7, RRef("v", 1): 3}
    made = placed(code, places(come, [40, 41], {RRef("v", 0), RRef("v", 1)}))
    assert made[0] == Inst("v_add_nc_u32", (V(40), V(7), V(3)))
    assert made[-1].args[0] == V(7)
    assert {a.index for i in made for a in i.args if isinstance(a, V)} <= {3, 7, 40, 41}


def test_a_pair_is_two_registers_side_by_side() -> None:
    code = [
        Inst("v_lshlrev_b64", (V(4, 2), I(3), V(0, 2))),
        Inst("v_add_nc_u32", (V(0), V(4), V(5))),
    ]
    come = {RRef("v", 0): 10, RRef("v", 1): 11}
    made = placed(code, places(come, [40, 42, 43], {RRef("v", 0)}))
    assert made[0].args == (V(42, 2), I(3), V(10, 2))
    apart = {RRef("v", 0): 10, RRef("v", 1): 20}
    with pytest.raises(NoFit):
        placed(code, places(apart, [40, 42, 43], {RRef("v", 0)}))
    with pytest.raises(NoFit):
        placed(code, places(come, [], {RRef("v", 0), RRef("v", 1)}))


def test_a_single_sum_of_a_shifted_word_is_a_wide_product() -> None:
    code = [
        Inst("v_ashrrev_i32", (V(1), I(31), V(0))),
        Inst("v_lshlrev_b64", (V(2, 2), I(2), V(0, 2))),
        Inst("v_add_co_u32", (V(4), S(9), S(2), V(2))),
        Inst("v_add_co_ci_u32", (V(5), S(9), S(3), V(3), S(9))),
    ]
    (made,) = rejoined(code)
    assert made.op == "v_mad_i64_i32"
    assert made.args[0] == V(4, 2)
    assert made.args[2:] == (V(0), I(4), S(2, 2))


def test_every_run_of_a_kernel_is_lifted_and_compiled_or_refused() -> None:
    drafts: list[Draft] = []
    for region, _, question in questions("sm_80/carry_chains"):
        rules = read_code(answer_text(region.code, question).split(), question)
        drafts.append(Draft.of(rules, question))
    found = compiled_runs(drafts[:12])
    assert len(found) == len(drafts[:12])
    assert any(found)
    first = drafts[0]
    masks = masks_at(first)
    for begin, end in spans(first):
        run = lift(first, begin, end, masks[begin], "f0")
        assert (run.first, run.end) == (begin, end)


@pytest.mark.parametrize("name", ["sm_80/carry_chains", "sm_90/byte_lanes"])
def test_what_llvm_makes_cheaper_is_proved_as_a_whole(name: str) -> None:
    prover = Prover()
    known: list[Known] = []
    for region, regs, question in questions(name):
        rules = read_code(answer_text(region.code, question).split(), question)
        if isinstance(prover.region(region.block, regs, region.live_out, rules), Proved):
            known.append(Known(region, regs, question, rules))
    known = known[:20]
    better = 0
    for item, found in zip(known, relowered(known, prover), strict=True):
        if found is None:
            continue
        better += 1
        items = [i for group in found.code for i in group]
        old = [i for group in item.code for i in group]
        assert found.cost == cost(items) < cost(old)
        assert accesses(items) == accesses(old)
        check_legality(found.code, item.question)
        again = read_code(answer_text(found.code, item.question).split(), item.question)
        whole = prove(item.region.block, item.regs, item.region.live_out, again)
        assert isinstance(whole, Proved), (whole, answer_text(found.code, item.question))
    assert better > 0


def test_comparisons_turn_round_with_their_signs() -> None:
    less = Inst("v_cmp_lt_f32", (S(4), V(1), I(0)), neg=1)
    assert exchanged(less) == Inst("v_cmp_gt_f32", (S(4), I(0), V(1)), neg=2)
    assert exchanged(Inst("v_cmp_lt_f32", (S(4), V(1), I(0)), clamp=True)) is None
    assert exchanged(Inst("v_lshlrev_b32", (V(0), I(1), V(2)))) is None


def test_guards_of_two_ways_are_selections() -> None:
    """Found wherever the rules' code has one, and never for a simple guard."""
    for region, _, question in questions("sm_90/predicated_stores"):
        rules = read_code(answer_text(region.code, question).split(), question)
        draft = Draft.of(rules, question)
        before = answer_text(draft.code(), question)
        two_way(draft)
        nearly_same(draft)
        if ".switch" not in before:
            assert ".pred" not in before or ".pred" in answer_text(draft.code(), question)

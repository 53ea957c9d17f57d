"""The search: what it finds is cheaper, and proved as a whole, not only step by step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.errors import EncodeError
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.lowering.engine.gate import prove
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.draft import Draft, line, source
from sassxlate.lowering.optimize.peephole.enumerate_windows import shorter
from sassxlate.lowering.optimize.peephole.scalars import pair_copies
from sassxlate.lowering.optimize.regions import LONGEST, CutRegion, cut_regions
from sassxlate.lowering.optimize.search import improved
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.text import RegionText, answer_text, read_code, region_text
from sassxlate.lowering.verify import Proved, Unknown, Verdict
from sassxlate.lowering.verify.steps.framing import accesses
from sassxlate.lowering.verify.steps.legality import check_legality
from sassxlate.lowering.verify.steps.prover import Prover

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"


def questions(
    name: str, longest: int = LONGEST
) -> Iterator[tuple[CutRegion, RegisterMap, RegionText]]:
    cubin = parse_cubin((KERNELS / f"{name}.cubin").read_bytes())
    for kernel in cubin.kernels:
        selected = translate_kernel(cubin, kernel.name).selected
        for piece in selected.pieces:
            for region in cut_regions(
                piece.block, selected.regs, piece.live_out, longest, too_long=too_long
            ):
                if not region.macro:
                    question = region_text(region.block, selected.regs, region.live_out)
                    yield region, selected.regs, question


@cache
def register_map() -> RegisterMap:
    """Some kernel's."""
    return next(questions("sm_80/carry_chains"))[1]


@pytest.mark.parametrize(
    "name", ["sm_80/carry_chains", "sm_90/predicated_stores", "sm_90/byte_lanes"]
)
def test_what_is_found_is_cheaper_and_proved(name: str) -> None:
    prover = Prover(timeout_ms=1000, cut_ms=300)
    better = 0
    for region, regs, question in questions(name):
        rules = read_code(answer_text(region.code, question).split(), question)
        # One region of products would take half a minute, and keeps the rules' code all the same.
        found = improved(region, regs, question, prover, rules, steps=8)
        if found is None:
            continue
        better += 1
        items = [i for group in found.code for i in group]
        old = [i for group in rules for i in group]
        assert found.cost == cost(items) < cost(old)
        assert accesses(items) == accesses(old)
        check_legality(found.code, question)
        again = read_code(answer_text(found.code, question).split(), question)
        # Steps are found in code that does not mark them.
        guessed = Prover(timeout_ms=20_000).region(region.block, regs, region.live_out, again)
        assert isinstance(guessed, Proved)
        whole = prove(region.block, regs, region.live_out, again, 20_000)
        assert isinstance(whole, Proved), (whole, answer_text(found.code, question))
    assert better > 0


class Failing(Prover):
    """Proves nothing."""

    tried = 0

    def pieces(self, *_: object) -> Verdict:  # type: ignore[override]
        Failing.tried += 1
        return Unknown("not tried")


def test_no_proof_is_tried_when_none_is_left() -> None:
    """The rules' code stays, however long a proof takes; one that fails counts several."""
    for region, regs, question in questions("sm_90/byte_lanes"):
        rules = read_code(answer_text(region.code, question).split(), question)
        if improved(region, regs, question, Prover(), rules) is not None:
            assert improved(region, regs, question, Prover(), rules, steps=0) is None
            prover = Failing()
            assert improved(region, regs, question, prover, rules, steps=1) is None
            assert prover.tried == 1
            return
    pytest.fail("nothing is found at all")


def test_steps_do_not_prove_what_is_wrong() -> None:
    """Each instruction of the rules' code in turn gets another operand: proved by steps only
    if it is proved as a whole."""
    prover = Prover()
    tried = 0
    for region, regs, question in questions("sm_80/carry_chains"):
        rules = read_code(answer_text(region.code, question).split(), question)
        for n, group in enumerate(rules):
            for m, inst in enumerate(group):
                wrong = _wrong(inst)
                if wrong is None:
                    continue
                code = [list(g) for g in rules]
                code[n][m] = wrong
                try:
                    check_legality(code, question)
                except EncodeError:
                    continue
                by_steps = prover.region(region.block, regs, region.live_out, code)
                if isinstance(by_steps, Proved):
                    assert isinstance(prove(region.block, regs, region.live_out, code), Proved)
                tried += 1
        if tried > 40:
            break
    assert tried > 20


def _wrong(inst: Inst) -> Inst | None:
    """Another source operand."""
    if not inst.op.startswith("v_") or len(inst.args) < 2:
        return None
    args = list(inst.args)
    match args[-1]:
        case I():
            args[-1] = I(args[-1].value ^ 1)
        case V(n=1):
            args[-1] = I(3)
        case S(n=1) if not inst.op.startswith(("v_cndmask", "v_add_co_ci")):
            args[-1] = I(5)
        case _:
            return None
    return Inst(inst.op, tuple(args))


def test_windows_are_enumerated() -> None:
    """Finds the one instruction that does the work of two."""
    reversed_first = (("v_bfrev_b32", (0,)), ("v_clz_i32_u32", (-1,)))
    assert shorter(reversed_first, 1)[0][0] == "v_ctz_i32_b32"
    negated = (("v_sub_nc_u32", (I(0), 0)), ("v_add_nc_u32", (1, -1)))
    assert ("v_sub_nc_u32", (1, 0)) in shorter(negated, 2)
    product = (("v_mul_lo_u32", (0, 1)), ("v_add_nc_u32", (-1, 2)))
    assert not shorter(product, 3)  # v_mad_u32_u24 agrees on small numbers alone


def test_a_copied_pair_is_read_where_it_is() -> None:
    """Kernel parameters are copied to uniform registers, whose words are then read one by one."""
    regs = register_map()
    to, value = S(30, 2), S(42, 2)
    code = (
        Inst("s_mov_b64", (to, value)),
        Inst("v_add_co_u32", (V(2), S(12), V(8), S(30))),
        Inst("v_add_co_ci_u32", (V(3), S(12), I(0), S(31), S(12))),
        Inst("global_load_b32", (V(4), V(5), to)),
    )

    def draft(code: tuple[Inst, ...], live: tuple[Arg, ...]) -> Draft:
        lines = [line(inst, 0) for inst in code]
        refs = frozenset(ref for arg in live for ref in source(arg))
        return Draft(lines, regs, 1, refs, ())

    d = draft(code, (V(2), V(3), V(4)))
    pair_copies(d)
    assert [at.inst.args for at in d.lines] == [
        (V(2), S(12), V(8), S(42)), (V(3), S(12), I(0), S(43), S(12)), (V(4), V(5), value),
    ]  # fmt: skip
    for kept, live in (
        (code, (V(2), S(31))),  # a word is read afterwards
        ((code[0], Inst("s_mov_b32", (S(43), I(0))), *code[1:]), (V(2), V(3), V(4))),
        ((*code, Inst("s_mov_b32", (S(2), S(31)))), (S(2), to)),
    ):
        d = draft(kept, live)
        pair_copies(d)
        assert tuple(at.inst for at in d.lines) == kept

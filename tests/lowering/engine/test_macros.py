"""Regions with macros: the search saves across them, their code stays, a model is not asked."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import I, Inst, Label, LabelRef, Sp, V
from sassxlate.llm.engine.model import ModelProposer
from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.seam import Question
from sassxlate.lowering.engine.search import SearchProposer
from sassxlate.lowering.optimize.regions import cut_regions, never
from sassxlate.lowering.optimize.temporaries import packed
from sassxlate.lowering.region.macro import MACRO, macro_of, same_code
from sassxlate.lowering.verify.steps.prover import Prover
from tests.llm.engines import Scripted
from tests.lowering.engine.macros import REGS, region
from tests.lowering.engine.test_gate import hybrid

BASE = REGS.vtemp_base


def test_the_search_saves_across_macros(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's contract holds; a region with R2UR and VOTE in it is one question."""
    prover = Prover()
    saved: list[int] = []
    for macros in (False, True):
        engine = Engine(SearchProposer(prover), "search", longest=24, prover=prover, macros=macros)
        made, report = hybrid(monkeypatch, "group_votes", engine)
        saved.append(report.saved)
        assert not any(isinstance(i, Inst) and i.op == MACRO for i in made.items)
        over = [name for row in report.blocks for name in row.modulo if "rules' code" in name]
        assert bool(over) == macros
    assert 0 < saved[0] < saved[1]


def test_only_macros_are_no_question() -> None:
    part = region("SHFL.BFLY PT, R4, R3, 0x1, 0x1f; IADD3 R5, R4, R3, RZ", ("R4", "R5"))
    alone = part.block.instructions[:1]
    block = type(part.block)(0, alone, True, frozenset(), part.block.around)
    (found,) = cut_regions(block, REGS, part.live_out, too_long=never, macros=True)
    assert found.macro
    assert not found.block.macros


def test_a_model_is_not_asked() -> None:
    part = region("SHFL.BFLY PT, R4, R3, 0x1, 0x1f; IADD3 R5, R4, R3, RZ", ("R4", "R5"))
    assert part.asked is not None
    rules = tuple(tuple(i for i in group if isinstance(i, Inst)) for group in part.code)
    question = Question(part.block, REGS, part.live_out, rules, part.asked)
    model = Scripted("scripted", lambda _, __: "v_add_nc_u32 v2 v0 v1 ;")
    assert ModelProposer(model).propose(question).why == "unsaid"
    assert not model.asked


def test_temporaries_of_a_macro_stay() -> None:
    over = Inst("v_mov_b32", (V(BASE + 1), I(0)))
    macro = macro_of((over, Inst("v_mov_b32", (V(4), V(BASE + 1)))), REGS)
    assert macro is not None
    kept, high = V(BASE + 20), V(BASE + 21)
    code = (
        (Inst("v_mov_b32", (kept, V(1))), Inst("v_mov_b32", (high, V(2)))),
        (macro.inst,),
        (Inst("v_add_nc_u32", (V(5), kept, high)),),
    )
    first, same, last = packed(code, BASE)
    assert same == (macro.inst,)
    assert first[0].args[0] == V(BASE)
    assert first[1].args[0] == V(BASE + 2)
    assert last[0].args[1:] == (V(BASE), V(BASE + 2))


def test_code_with_other_labels_is_the_same() -> None:
    def loop(first: str, second: str, target: str) -> tuple[Inst | Label, ...]:
        branch = Inst("s_cbranch_scc1", (LabelRef(target),))
        return (Label(first), Inst("s_mov_b32", (Sp("vcc_lo"), I(0))), Label(second), branch)

    assert same_code(loop("a", "b", "a"), loop("c", "d", "c"))
    assert not same_code(loop("a", "b", "a"), loop("c", "d", "d"))
    assert not same_code(loop("a", "b", "a"), loop("c", "c", "c"))
    assert not same_code(loop("a", "b", "a"), loop("a", "b", "a")[:3])

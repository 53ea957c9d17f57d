"""A wrong model costs time, never correctness: what the gate lets through is proved."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.errors import ModelError
from sassxlate.llm.engine.model import model_engine
from sassxlate.llm.language.older_forms.restate import too_long
from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.gate import Gate
from sassxlate.lowering.engine.memo import Memo
from sassxlate.lowering.engine.report import EngineReport
from sassxlate.lowering.optimize.regions import CutRegion, cut_regions, grouped
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select import translated
from sassxlate.lowering.select.kernel import rules_items
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify import Refuted, verify
from sassxlate.lowering.verify.block.of_kernel import blocks
from tests.llm import engines
from tests.llm.engines import Scripted
from tests.lowering import emulated

KERNELS = ("byte_lanes", "divergent_if", "double_math")


def hybrid(
    monkeypatch: pytest.MonkeyPatch, kernel: str, engine: Engine
) -> tuple[translated.Translated, EngineReport]:
    """Runs a kernel's contract with the engine's code, and compares with what it must compute."""
    reports: list[EngineReport] = []

    def rewrite(selected: Selected) -> Selected:
        made, report = engine.rewrite(selected, kernel)
        reports.append(report)
        return made

    monkeypatch.setattr(emulated, "translate_kernel", partial(translate_kernel, rewrite=rewrite))
    return emulated.check(emulated.load(kernel, 90), kernel), reports[0]


# Each answer for one kernel, where the solver is quick; the sweep has the others.
ANSWERS = {
    "shortened": "byte_lanes", "near_miss": "double_math", "mangled": "divergent_if",
    "noise": "byte_lanes", "rubbish": "divergent_if",
}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kernel"),
    [
        pytest.param(a, k, marks=[] if k == chosen else [pytest.mark.sweep])
        for a, chosen in ANSWERS.items()
        for k in KERNELS
    ],
)
def test_a_corrupted_model_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, answer: str, kernel: str
) -> None:
    engine = model_engine(Scripted(answer, getattr(engines, answer)), samples=2)
    done, report = hybrid(monkeypatch, kernel, engine)
    for row in report.blocks:
        assert (row.outcome == "accepted") == (row.engine == answer)
        if row.outcome == "accepted":
            assert row.verdict == "Proved"
            assert row.model_cost is not None
            assert row.model_cost < row.rules_cost
    if report.accepted:
        for found in blocks(done):
            if found.block.sass:
                assert not isinstance(verify(found.block, tested=True), Refuted)
    assert answer != "rubbish" or report.accepted == 0


def _first(kernel: str) -> tuple[Selected, CutRegion]:
    cubin = emulated.load(kernel, 90)
    selected = translate_kernel(cubin, kernel).selected
    for piece in selected.pieces:
        for part in cut_regions(piece.block, selected.regs, piece.live_out, too_long=too_long):
            if not part.macro and len(part.block.instructions) > 2:
                return selected, part
    raise AssertionError


def test_what_the_verifier_does_not_see() -> None:
    selected, part = _first(KERNELS[0])
    regs = selected.regs
    rules = [i for group in part.code for i in group]
    code = [[i for i in group if isinstance(i, Inst)] for group in part.code]
    gate = Gate(24, cheaper=False)

    def judged(extra: Inst) -> str:
        made = [[*code[0], extra], *code[1:]]
        return gate.judge(part.block, regs, part.live_out, made, rules).reason

    assert gate.judge(part.block, regs, part.live_out, code, rules).accepted
    assert judged(Inst("v_mov_b32", (V(regs.vtemp_base), I(0)))) == "accepted"
    assert judged(Inst("v_mov_b32", (V(regs.vtemp_base + 24), I(0)))) == "registers"
    assert judged(Inst("v_mov_b32", (V(regs.tid.index), I(0)))) == "registers"
    assert judged(Inst("s_mov_b32", (regs.live, I(0)))) == "registers"
    assert judged(Inst("s_mov_b32", (S(0), I(0)))) == "registers"
    for slot in regs.regions:
        if isinstance(slot, S):
            assert judged(Inst("s_mov_b32", (slot, I(0)))) == "registers"
    assert judged(Inst("s_waitcnt", (), imm=0)) == "accesses"
    assert judged(Inst("buffer_gl0_inv")) == "accesses"
    load = Inst("global_load_b32", (V(regs.vtemp_base), V(regs.vtemp_base + 2, 2)))
    assert judged(load) == "accesses"
    assert judged(Inst("s_barrier")) == "encoding"
    assert judged(Inst("s_endpgm")) == "encoding"
    assert judged(Inst("v_frobnicate")) == "encoding"
    assert judged(Inst("v_mov_b32", (V(regs.vtemp_base, 2), I(0)))) == "encoding"
    assert judged(Inst("s_mov_b32", (Sp("exec_lo"), I(1)))) in ("refuted", "unknown")
    assert Gate(24).judge(part.block, regs, part.live_out, code, rules).reason == "dearer"


def test_caching_of_an_access() -> None:
    for name in KERNELS:
        cubin = emulated.load(name, 90)
        selected = translate_kernel(cubin, name).selected
        for piece in selected.pieces:
            items = selected.items[piece.first : piece.end]
            groups = grouped(items, piece.block.instructions)
            for g, group in enumerate(groups):
                for i, item in enumerate(group):
                    if isinstance(item, Inst) and item.op.startswith("global_load"):
                        changed = [[i for i in x if isinstance(i, Inst)] for x in groups]
                        changed[g][i] = replace(item, glc=not item.glc)
                        got = Gate(24, cheaper=False).judge(
                            piece.block, selected.regs, piece.live_out, changed, items
                        )
                        assert got.reason == "accesses"
                        return


def test_rules_of_a_block_are_those_of_the_kernel() -> None:
    for name in KERNELS:
        selected = translate_kernel(emulated.load(name, 90), name).selected
        for piece in selected.pieces:
            items = selected.items[piece.first : piece.end]
            if all(isinstance(i, Inst) for i in items):
                assert rules_items(piece.block, selected.regs) == tuple(items)


def test_model_mode_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = model_engine(Scripted("rubbish", engines.rubbish), mode="model")
    with pytest.raises(ModelError, match="SX1007"):
        hybrid(monkeypatch, KERNELS[0], engine)


def test_model_mode_takes_what_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = model_engine(Scripted("rules", lambda q, _: engines.rules_words(q)), mode="model")
    _, report = hybrid(monkeypatch, KERNELS[0], engine)
    assert report.asked == report.accepted > 0


def test_answers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    store: dict[str, bytes] = {}
    asked: list[int] = []
    reports: list[EngineReport] = []
    for _ in range(2):
        proposer = Scripted("noise", engines.noise)
        engine = model_engine(proposer, memo=Memo(store.get, store.__setitem__))
        _, report = hybrid(monkeypatch, KERNELS[0], engine)
        asked.append(proposer.asked)
        reports.append(report)
    answers = len(store) - 1  # one is what was found between blocks
    assert asked[0] == answers > 0
    assert asked[1] == 0
    assert reports[1].remembered == reports[1].distinct > 0
    assert reports[1].distinct + reports[1].further == answers


def test_the_report() -> None:
    selected, _ = _first(KERNELS[0])
    engine = model_engine(Scripted("shortened", engines.shortened))
    _, report = engine.rewrite(selected, "k")
    data = report.as_dict()
    assert data["asked"] == report.asked
    assert {row["outcome"] for row in data["blocks"]} == {row.outcome for row in report.blocks}
    assert sum(row.instructions for row in report.blocks) == sum(
        len(p.block.instructions) for p in selected.pieces
    )
    assert np.isfinite(report.judging_s)

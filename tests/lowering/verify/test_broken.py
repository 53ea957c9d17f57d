"""Translations with one thing wrong in them are refuted, by an input or by the missing wait."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.lowering.verify import Proved, Refuted, verify
from sassxlate.lowering.verify.block.counterexample import explain_counterexample

from .defects import DEFECTS, Defect, block, broken, last


def test_enough() -> None:
    assert len({d.name for d in DEFECTS}) == len(DEFECTS) >= 40


@pytest.mark.parametrize("defect", DEFECTS, ids=[d.name.replace(" ", "-") for d in DEFECTS])
def test_refuted(defect: Defect) -> None:
    assert isinstance(verify(block(defect.text)), Proved), "without the defect"
    made = broken(defect)
    verdict = verify(made, vectors=256)
    assert isinstance(verdict, Refuted)
    assert made.sass[0].text in "\n".join(explain_counterexample(made, verdict))


def test_a_register_that_no_sass_writes() -> None:
    """The value that it had, and the step that changed it, are shown: neither was."""
    change = last(Inst("v_mov_b32", (V(7), I(5))))
    made = broken(Defect("clobbered", "IADD3 R10, R4, R7, RZ", change))
    verdict = verify(made, vectors=64)
    assert isinstance(verdict, Refuted)
    assert (verdict.where, verdict.rdna) == ("R7", 5)
    lines = list(explain_counterexample(made, verdict))
    assert f"R7 = {verdict.sass:#x}" in lines[1]
    assert any("v7 = 0x5" in line for line in lines), lines

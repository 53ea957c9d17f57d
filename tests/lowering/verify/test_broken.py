"""Translations with one thing wrong in them are refuted, by an input or by the missing wait."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.lowering.verify import Proved, Refuted, verify
from sassxlate.lowering.verify.block.counterexample import explain_counterexample

from .defects import DEFECTS, Defect, block, broken


def test_enough() -> None:
    assert len({d.name for d in DEFECTS}) == len(DEFECTS) >= 40


@pytest.mark.parametrize("defect", DEFECTS, ids=[d.name.replace(" ", "-") for d in DEFECTS])
def test_refuted(defect: Defect) -> None:
    assert isinstance(verify(block(defect.text)), Proved), "without the defect"
    made = broken(defect)
    verdict = verify(made, vectors=256)
    assert isinstance(verdict, Refuted)
    assert made.sass[0].text in "\n".join(explain_counterexample(made, verdict))

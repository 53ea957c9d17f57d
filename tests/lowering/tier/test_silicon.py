"""Single instructions by the optimising tier against what an H200 computed."""

from __future__ import annotations

import os
import random

import pytest

from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.rules.silicon import Form, forms
from tests.lowering.rules.test_silicon import judge

SAMPLE = 24  # forms that every run of the tests has


def _by_tier(rules: Translated) -> Translated:
    return by_tier(rules, DEFAULT)


def test_some_forms() -> None:
    """Others with each CI seed."""
    chance = random.Random(int(os.environ.get("SASSXLATE_TEST_SEED", "1")))
    assert judge(chance.sample(forms(), SAMPLE), _by_tier)["equal"] > SAMPLE // 2


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(16))
def test_every_form(part: int) -> None:
    chosen: list[Form] = list(forms()[part::16])
    assert judge(chosen, _by_tier)["equal"] > len(chosen) // 2


@pytest.mark.parametrize(
    "text",
    [
        "HFMA2.MMA.RELU R10, R4, R2, R8, !P0",  # the NaN is negative before .RELU
        "HFMA2.FTZ R10, R4, |R2|.H1_H1, 1.75, 0",  # rounded up to the least normal number
        "IDP.4A.U8.U8 R10, R4, R2, -R8",  # LLVM's v_dot4 lost the sign
        "F2FP.E4M3.F16.UNPACK_B_MERGE_C R10, R2, R8.H1",  # LLVM's v_fma_mixlo lost -0
        "HFMA2.MMA.BF16_V2 R10, R4, R2, 1.175494350822287508e-38, 0",  # -0 of a tiny product
        "MUFU.RCP R10, 3.40282346638528859812e+38",  # LLVM folds it to a denormal number
        # Binary64 rounded otherwise than to nearest.
        "DADD.RP R10, R4, |R2|",
        "DMUL.RM R10, -R4, 1.40444776161118430291e+306",
        "DFMA.RZ R10, -R4, -|R2|, 2.8480945388892177704e-306",
    ],
)
def test_what_was_wrong_or_refused_once(text: str) -> None:
    form = next(f for f in forms() if f.text == text)
    assert judge([form], _by_tier)["equal"] == 1

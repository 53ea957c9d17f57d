"""MUFU.TANH by the optimising tier: the rules' bits, and within the bound of an H200's."""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier
from tests.lowering.rules.silicon import differing, forms, measured
from tests.lowering.rules.test_silicon import emulated


def _by_tier(rules: Translated) -> Translated:
    return by_tier(rules, DEFAULT)


@pytest.mark.parametrize(
    "text",
    [
        "MUFU.TANH R10, R2",
        "MUFU.TANH.F16 R10, |R2.H1|",
        "MUFU.TANH.BF16 R10, -R2.H1",
    ],
)
def test_the_bits_of_the_rules(text: str) -> None:
    form = next(f for f in forms() if f.text == text)
    actual = emulated(form, _by_tier)
    assert np.array_equal(actual, emulated(form))
    assert not differing(form, actual, measured()[form.number]).size

"""Every one of the 256 functions of three words has an expression, and it is right."""

from __future__ import annotations

import pytest

from sassxlate.lowering.rules.arithmetic.lut import Op, cost, evaluate, synthesise


@pytest.mark.parametrize("lut", range(256))
def test_function(lut: int) -> None:
    expr = synthesise(lut)
    assert evaluate(expr) == lut
    assert cost(expr) <= 5


def test_known_single_instructions() -> None:
    assert synthesise(0xFE) == Op("v_or3_b32", (0, 1, 2))
    assert synthesise(0x96) == Op("v_xor3_b32", (0, 1, 2))
    assert cost(synthesise(0xCA)) == 1  # a ? b : c
    assert cost(synthesise(0xF8)) == 1  # a | b & c
    assert synthesise(0xC0) == Op("v_and_b32", (0, 1))

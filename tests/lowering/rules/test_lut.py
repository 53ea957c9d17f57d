"""Every one of the 256 functions of three words has an expression, and it is right."""

from __future__ import annotations

import pytest

from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.rules.arithmetic.lut import Expr, Op, cost, evaluate, synthesise


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


def operations(expr: Expr) -> set[str]:
    """The operations that an expression consists of."""
    if isinstance(expr, int):
        return set()
    return {expr.name}.union(*(operations(a) for a in expr.args))


def one_of_each() -> list[int]:
    """Functions in whose expressions every operation occurs that occurs in any."""
    seen: set[str] = set()
    chosen: list[int] = []
    for lut in sorted(range(256), key=lambda n: (cost(synthesise(n)), n)):
        if not operations(synthesise(lut)) <= seen:
            seen |= operations(synthesise(lut))
            chosen.append(lut)
    return chosen


def test_each_operation_on_words_and_on_predicates() -> None:
    """Words are computed by vector instructions, predicates by scalar ones on lane masks."""
    pytest.importorskip("z3", reason="z3-solver is not installed")
    from sassxlate.lowering.verify import Proved, verify
    from tests.lowering.verify.one import block_of

    chosen = one_of_each()
    assert len(chosen) > 5
    for lut in chosen:
        for text in (
            f"LOP3.LUT R10, R4, R2, R8, {lut:#x}, !PT ;",
            f"PLOP3.LUT P3, PT, P1, P4, P5, {lut:#x}, 0x0 ;",
        ):
            verdict = verify(block_of(assemble(text, 90)), timeout_ms=5000)
            assert isinstance(verdict, Proved), (text, verdict)

"""Memory order: for each atomic and fence of PTX, what the rules write has what LLVM's memory model
for gfx1100 asks for, and docs/memory-order.md shows it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from sassxlate.disasm.containers.values import Cubin
from tools.witness.memory_order import orders
from tools.witness.memory_order.orders import OPERATIONS, Operation

PAGE = Path(__file__).resolve().parents[2] / "docs" / "memory-order.md"
# The page says why: with acquire alone LLVM writes no wait there.
EXPLAINED = {Operation("atom", "acq_rel", "cta"): ("after: vmcnt(0)",)}


@cache
def cubin() -> Cubin:
    found = orders.compiled()
    if found is None:
        pytest.skip("no nvcc")
    return found


@pytest.mark.parametrize("op", OPERATIONS, ids=str)
def test_nothing_that_llvm_writes_is_missing(op: Operation) -> None:
    lacks = orders.missing(op, orders.by_llvm(op), orders.by_rules(cubin(), op))
    assert lacks == EXPLAINED.get(op, ())


def test_explained_difference_is_no_part_of_acquire() -> None:
    assert orders.by_llvm(Operation("atom", "acquire", "cta")) == ("atom glc",)


def test_page_shows_every_operation() -> None:
    rows = [orders.row(op, orders.by_llvm(op), orders.by_rules(cubin(), op)) for op in OPERATIONS]
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert shown == rows


ACQUIRE = Operation("ld", "acquire", "gpu")
ACQUIRED = ("ld glc", "vmcnt(0)", "buffer_gl1_inv", "buffer_gl0_inv")


def test_what_the_model_asks_for_is_noticed() -> None:
    assert orders.by_llvm(ACQUIRE) == ACQUIRED
    assert orders.missing(ACQUIRE, ACQUIRED, ACQUIRED) == ()


@pytest.mark.parametrize("gone", range(1, len(ACQUIRED)))
def test_one_instruction_less_is_noticed(gone: int) -> None:
    assert orders.missing(ACQUIRE, ACQUIRED, ACQUIRED[:gone] + ACQUIRED[gone + 1 :])


def test_another_access_or_order_is_noticed() -> None:
    assert orders.missing(ACQUIRE, ACQUIRED, ("ld", *ACQUIRED[1:]))
    late = ("ld glc", "buffer_gl1_inv", "buffer_gl0_inv", "vmcnt(0)")
    assert orders.missing(ACQUIRE, ACQUIRED, late)
    early = ("vmcnt(0)", "buffer_gl1_inv", "buffer_gl0_inv", "ld glc")
    assert orders.missing(ACQUIRE, ACQUIRED, early)

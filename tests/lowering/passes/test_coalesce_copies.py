"""Moves from temporaries are removed if nothing else changes, and only then."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from sassxlate.disasm.rdna3 import format_item
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp, V
from sassxlate.lowering.passes.coalesce_copies import Walk, coalesce_copies, coalesce_spans
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.target import DEFAULT

EXEC = Sp("exec_lo")
# Registers below v40 are the kernel's, s20 to s29 are temporaries.
REGS = RegisterMap(
    DEFAULT, {}, {}, {}, {}, {}, {}, S(3), S(2), {}, (), {}, tuple(range(20, 30)), V(39), 40, (), 0
)


def mov(to: int, source: int) -> Inst:
    return Inst("v_mov_b32", (V(to), V(source)))


def add(to: int, a: int, b: int) -> Inst:
    return Inst("v_add_nc_u32", (V(to), V(a), V(b)))


def smov(to: int, source: int) -> Inst:
    return Inst("s_mov_b32", (S(to), S(source)))


def wide(op: str, to: int, a: int, b: int, c: int) -> Inst:
    return Inst(op, (V(to, 2), S(29), V(a), V(b), V(c, 2)))


TAKEN = {
    "one word": ([add(40, 1, 2), mov(5, 40)], [add(5, 1, 2)]),
    "its own source": ([add(40, 1, 5), mov(5, 40)], [add(5, 1, 5)]),
    "a chain": ([add(40, 1, 2), add(40, 40, 3), mov(5, 40)], [add(40, 1, 2), add(5, 40, 3)]),
    "a pair": (
        [wide("v_mad_u64_u32", 40, 1, 2, 6), mov(8, 40), mov(9, 41)],
        [wide("v_mad_u64_u32", 8, 1, 2, 6)],
    ),
    "a load": (
        [Inst("global_load_b64", (V(40, 2), V(1, 2), Sp("off"))), mov(8, 40), mov(9, 41)],
        [Inst("global_load_b64", (V(8, 2), V(1, 2), Sp("off")))],
    ),
    "a mask": (
        [Inst("v_cmp_eq_u32", (S(20), V(1), V(2))), smov(12, 20)],
        [Inst("v_cmp_eq_u32", (S(12), V(1), V(2)))],
    ),
    "a carry": (
        [Inst("v_add_co_u32", (V(1), S(20), V(1), V(2))), smov(12, 20)],
        [Inst("v_add_co_u32", (V(1), S(12), V(1), V(2)))],
    ),
    "under a guard": (
        [Inst("s_and_saveexec_b32", (S(2), S(12))), add(40, 1, 2), mov(5, 40)],
        [Inst("s_and_saveexec_b32", (S(2), S(12))), add(5, 1, 2)],
    ),
}

LEFT = {
    "no temporary": [add(30, 1, 2), mov(5, 30)],
    "used once more": [add(40, 1, 2), mov(5, 40), add(6, 40, 1)],
    "used before": [add(40, 1, 2), add(6, 40, 1), mov(5, 40)],
    "moved twice": [add(40, 1, 2), mov(5, 40), mov(6, 40)],
    "the destination is read meanwhile": [add(40, 1, 2), add(6, 5, 1), mov(5, 40)],
    "the destination is written meanwhile": [add(40, 1, 2), add(5, 1, 1), mov(5, 40)],
    "EXEC changes": [add(40, 1, 2), Inst("s_mov_b32", (EXEC, S(2))), mov(5, 40)],
    "accumulates": [Inst("v_fmac_f32", (V(40), V(1), V(2))), mov(5, 40)],
    "accumulates a product of itself": [Inst("v_fmac_f32", (V(40), V(5), V(40))), mov(5, 40)],
    "keeps half": [Inst("global_load_d16_b16", (V(40), V(1, 2), Sp("off"))), mov(5, 40)],
    "a lane": [Inst("v_writelane_b32", (V(40), S(12), I(3))), mov(5, 40)],
    "half of a pair": [wide("v_mad_u64_u32", 40, 1, 2, 6), mov(8, 40)],
    "crossed": [wide("v_mad_u64_u32", 40, 1, 2, 6), mov(8, 41), mov(9, 40)],
    "a pair over its source": [wide("v_mad_u64_u32", 40, 8, 2, 6), mov(8, 40), mov(9, 41)],
    "an atomic": [
        Inst("global_atomic_add_u32", (V(40), V(1, 2), V(3), Sp("off")), glc=True), mov(5, 40)
    ],
    "a label": [add(40, 1, 2), Label("here"), mov(5, 40)],
    "a branch": [add(40, 1, 2), Inst("s_cbranch_execz", (LabelRef("x"),)), mov(5, 40)],
    "a loaded scalar": [Inst("s_load_b32", (S(20), S(0, 2), Sp("null"))), smov(12, 20)],
    "negated": [add(40, 1, 2), replace(mov(5, 40), neg=1)],
}  # fmt: skip


def text(items: Sequence[Item]) -> list[str]:
    return [format_item(item) for item in items]


@pytest.mark.parametrize("name", TAKEN)
def test_taken_out(name: str) -> None:
    before, after = TAKEN[name]
    assert text(coalesce_copies(cast("list[Item]", before), REGS)) == text(after)


@pytest.mark.parametrize("name", LEFT)
def test_left(name: str) -> None:
    items = cast("list[Item]", LEFT[name])
    assert text(coalesce_copies(items, REGS)) == text(items)


def test_places_after_it() -> None:
    """Where items are in a program of which two of three spans lose a move each: those between
    spans, the ends, and, of one in a span that got shorter, its first."""
    short, kept = [add(41, 1, 2), mov(3, 41)], [add(4, 3, 3)]
    items = (*short, Label("a"), *kept, *short, Label("b"))
    made, shorter = coalesce_spans(items, [(0, 2), (3, 4), (4, 6)], REGS)
    assert text(made) == text([add(3, 1, 2), Label("a"), *kept, add(3, 1, 2), Label("b")])
    walk = Walk(shorter)
    assert [walk.to(at) for at in range(len(items) + 1)] == [0, 0, 1, 2, 3, 3, 4, 5]
    assert [walk.to(at) for at in (7, 1, 4, 3)] == [5, 0, 3, 2]  # back, too
    assert list(shorter.moved(array("I", (0, 3, 4)))) == [0, 2, 3]
    assert list(shorter.moved(array("I", (2, 4, 6)))) == [1, 3, 4]


def test_nothing_to_take_out() -> None:
    """The same program, and the same places."""
    items = (*(add(4, 3, 3),), mov(1, 2))
    made, shorter = coalesce_spans(items, [(0, 1), (1, 2)], REGS)
    firsts = array("I", (0, 1))
    assert made is items
    assert shorter.moved(firsts) is firsts

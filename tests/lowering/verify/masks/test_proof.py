"""Code that runs instructions in the same lanes: proved, and by a witness; and code that does
not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.rdna3.instruction import I, Inst, Item, Label, LabelRef, S, Sp
from sassxlate.disasm.rdna3.semantics import semantics_table
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.domain.integers import Bits, Reference, make
from sassxlate.lowering.optimize.masks.edges import parts
from sassxlate.lowering.optimize.masks.simplify import simplified
from sassxlate.lowering.pipeline import select_kernel
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify import Proved, Unknown
from sassxlate.lowering.verify.masks.operations import MaskOperation, meaning
from sassxlate.lowering.verify.masks.proof import same_lanes, walked
from sassxlate.lowering.verify.masks.rows import Row, rows_of
from tests.lowering.verify.masks.walks import logs

KERNELS = Path(__file__).resolve().parents[4] / "fixtures" / "kernels"
NAMES = (
    "sm_80/divergent_if", "sm_90/nested_break", "sm_90/early_exit", "sm_80/far_breaks",
    "sm_90/uniform_loop", "sm_80/divergent_barrier", "sm_80/divergent_ballot",
)  # fmt: skip
MUTANTS = ("sm_90/nested_break", "sm_90/early_exit", "sm_80/divergent_ballot")
SEEDS = range(8)
EXEC = Sp("exec_lo")


@cache
def kernels(name: str) -> tuple[Selected, ...]:
    cubin = parse_cubin((KERNELS / f"{name}.cubin").read_bytes())
    return tuple(select_kernel(cubin, kernel.name) for kernel in cubin.kernels)


@pytest.mark.parametrize("name", NAMES)
def test_shorter_code_is_proved_and_has_the_same_log(name: str) -> None:
    for selected in kernels(name):
        rows = rows_of(selected.items)
        assert isinstance(same_lanes(rows, selected.regs), Proved)
        made = simplified(selected.items, selected.regs, selected.plan.cfg)
        assert made is not None
        assert len(made.items) < len(selected.items)
        assert logs(made.items, SEEDS) == logs(selected.items, SEEDS)


def mutants(selected: Selected, rng: random.Random) -> Iterator[list[Row]]:
    """Kernels with one operation on masks between blocks that is missing, or another one."""
    rows = rows_of(selected.items)
    part = parts(rows, selected.plan.cfg)
    places = [n for n, row in enumerate(rows) if part[n] and isinstance(row.was, MaskOperation)]
    registers = [S(k) for row in rows if isinstance(row.was, MaskOperation)
                 for k in row.was.to if k < 100]  # fmt: skip
    for n in rng.sample(places, min(len(places), 40)):
        old = rows[n].old
        assert old is not None
        out = list(rows)
        choice = rng.randrange(3)
        if choice == 0 or len(old.args) < 2:
            new = None
        elif choice == 1 and old.op in ("s_and_b32", "s_or_b32", "s_and_not1_b32"):
            new = replace(old, op=rng.choice(("s_and_b32", "s_or_b32", "s_xor_b32")))
        else:
            other = rng.choice((*registers, EXEC, I(0), I(-1)))
            new = replace(old, args=(*old.args[:-1], other))
        if new is None or (new != old and isinstance(meaning(new), MaskOperation)):
            out[n] = rows[n].other(new)
            yield out


def new_items(rows: Sequence[Row], items: Sequence[Item]) -> list[Item]:
    labels = {item.name: item for item in items if isinstance(item, Label)}
    both = [labels[row.label] if row.label else row.new for row in rows]
    return [item for item in both if item is not None]


def test_mutants_that_change_a_log_are_not_proved() -> None:
    rng = random.Random(23)
    proved = unproved = changed = 0
    for name in MUTANTS:
        for selected in kernels(name):
            before = logs(selected.items, SEEDS)
            for rows in mutants(selected, rng):
                verdict = same_lanes(rows, selected.regs)
                same = logs(new_items(rows, selected.items), SEEDS) == before
                assert same or isinstance(verdict, Unknown), (name, rows)
                proved += isinstance(verdict, Proved)
                unproved += isinstance(verdict, Unknown)
                changed += not same
    assert proved > 5
    assert changed > 20
    assert unproved >= changed


def test_operations_are_those_of_the_instruction_set() -> None:
    """A column of 32 cases is a register: the same numbers come out."""
    rng = random.Random(7)
    ops = [op for op, row in semantics_table().items()
           if op.startswith("s_") and op.endswith(("_b32", "_u32", "_i32"))
           and set(row.src) <= {"b32", "exec"} and len(row.src) <= 2]  # fmt: skip
    found = 0
    for op in ops:
        row = semantics_table()[op]
        printed = sum(kind not in ("scc", "exec") for kind in row.dst)
        count = printed + sum(kind != "exec" for kind in row.src)
        what = meaning(Inst(op, tuple(S(10 + n) for n in range(count))))
        if not isinstance(what, MaskOperation):
            continue
        found += 1
        for _ in range(8):
            values = {n: rng.getrandbits(32) for n in (*range(10, 16), EXEC_LO)}
            if rng.random() < 0.3:
                values[11] = values[10]
            sources = [
                make(values[EXEC_LO if kind == "exec" else 10 + printed + n], 32)
                for n, kind in enumerate(row.src)
            ]
            results = cast("Bits | tuple[Bits, ...]", row.fn(Reference(), *sources))
            several = (results,) if isinstance(results, Bits) else results
            wanted = [result.n for result in several]
            made = what.compute(0xFFFFFFFF, *(values[k] for k in what.sources))
            if what.scc is not None:
                made = (*made[:-1], int((made[-1] != 0) == what.scc))
            assert list(made) == wanted, op
    assert found >= 14


def item(op: str, *args: object) -> Inst:
    return Inst(op, args)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("new", "proved"),
    [
        (item("s_and_b32", S(20), EXEC, S(12)), True),
        (item("s_mov_b32", S(20), S(12)), True),  # a comparison is 0 in lanes that do not run
        (item("s_mov_b32", S(20), EXEC), False),
        (None, False),
    ],
)
def test_comparisons_are_part_of_exec(new: Inst | None, proved: bool) -> None:
    selected = kernels("sm_80/divergent_if")[0]
    old = item("s_and_b32", S(20), EXEC, S(12))
    items: list[Item] = [
        item("v_cmp_eq_u32", S(12), I(0), I(1)),
        old,
        item("s_mov_b32", EXEC, S(20)),
        item("s_cbranch_execz", LabelRef("Lend")),
        item("v_nop"),
        Label("Lend"),
        item("s_endpgm"),
    ]
    rows = rows_of(items)
    rows[1] = rows[1].other(new)
    assert isinstance(same_lanes(rows, selected.regs), Proved) == proved


def test_a_jump_that_waves_take_may_not_go() -> None:
    selected = kernels("sm_80/divergent_if")[0]
    items: list[Item] = [
        item("s_mov_b32", S(20), EXEC),
        item("v_cmp_eq_u32", S(12), I(0), I(1)),
        item("s_and_b32", EXEC, EXEC, S(12)),
        item("s_cbranch_execz", LabelRef("Lend")),
        item("v_nop"),
        item("s_mov_b32", EXEC, S(20)),
        item("s_cbranch_execz", LabelRef("Lend")),  # some lane ran when the kernel began
        item("v_nop"),
        Label("Lend"),
        item("s_endpgm"),
    ]
    for n, proved in ((3, False), (6, True)):
        rows = rows_of(items)
        rows[n] = rows[n].other(None)
        assert isinstance(same_lanes(rows, selected.regs), Proved) == proved
    walk = walked(rows_of(items), selected.regs)
    assert 6 not in walk.taken
    assert 3 in walk.taken & walk.passed


def test_flags_that_a_label_loses_count_as_different() -> None:
    """SCC comes from another mask on one side, and is read after a label."""
    selected = kernels("sm_80/divergent_if")[0]
    items: list[Item] = [
        item("s_and_b32", S(21), S(12), S(13)),
        Label("Lnext"),
        item("s_cbranch_scc1", LabelRef("Lend")),
        item("v_nop"),
        Label("Lend"),
        item("s_endpgm"),
    ]
    rows = rows_of(items)
    rows[0] = rows[0].other(item("s_or_b32", S(21), S(12), S(13)))
    assert isinstance(same_lanes(rows, selected.regs), Unknown)

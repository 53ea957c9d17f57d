"""The passes from decoding to the ELF file: their order, and what each owes the next."""

from __future__ import annotations

import ast
import gc
import inspect
import tracemalloc
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import get_type_hints

import pytest

from sassxlate.errors import LoweringError
from sassxlate.lowering import pipeline
from sassxlate.lowering.pipeline import (
    CODE_PASSES,
    PASSES,
    run_passes,
    select_kernel,
    translate_code,
    translate_kernel,
)
from sassxlate.lowering.select import allocation
from sassxlate.lowering.select.allocation import ROUNDS, fit_registers
from sassxlate.lowering.select.stages import Selected, Source
from sassxlate.lowering.target import DEFAULT
from tests.lowering import emulated


@cache
def _selected() -> Selected:
    return select_kernel(emulated.load("double_math", 90), "double_math")


def _given(step: pipeline.Pass) -> tuple[object, object]:
    """The types of a pass's parameter and result."""
    hints = get_type_hints(step.run)
    result = hints.pop("return")
    (taken,) = hints.values()
    return taken, result


@pytest.mark.sources  # compiled functions have no annotations
def test_each_pass_takes_what_the_one_before_gives() -> None:
    for passes in (PASSES, CODE_PASSES):
        for before, after in pairwise(passes):
            assert _given(before)[1] is _given(after)[0], (before.name, after.name)


@pytest.mark.sources
def test_values_are_frozen() -> None:
    for step in {*PASSES, *CODE_PASSES}:
        for kind in _given(step):
            assert kind.__dataclass_params__.frozen, kind  # type: ignore[attr-defined]


def test_no_pass_is_called_from_an_except() -> None:
    names = {step.run.__name__ for step in (*PASSES, *CODE_PASSES)}
    for handler in ast.walk(ast.parse(inspect.getsource(pipeline))):
        if isinstance(handler, ast.ExceptHandler):
            called = {n.func.id for n in ast.walk(handler)
                      if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}  # fmt: skip
            assert not called & names


def test_passes_leave_their_argument_as_it_was() -> None:
    source = Source(emulated.load("double_math", 90), "double_math", DEFAULT)
    for passes in (PASSES, CODE_PASSES):
        seen: list[tuple[object, str]] = []
        run_passes(source, passes, lambda _, value, __, to=seen: to.append((value, repr(value))))
        assert len(seen) == len(passes)
        for value, text in seen:
            assert repr(value) == text


def test_passes_after_selection_hold_little() -> None:
    """At most 700 bytes a SASS instruction with what they make, once caches are filled: of a long
    kernel all together are to hold 2,000.  Lists of objects for spans and offsets took 900."""
    source = Source(emulated.load("double_math", 90), "double_math", DEFAULT)
    cut = next(n for n, step in enumerate(PASSES) if step.name == "coalesce_copies")
    selected: Selected = run_passes(source, PASSES[:cut])

    def rest() -> object:
        value: object = selected
        for step in PASSES[cut:]:
            value = step.run(value)
        return value

    rest()
    tracemalloc.start()
    made = rest()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(made, pipeline.Written)
    assert not made.assembled.selected.spans.instructions
    instructions = sum(len(block.instructions) for block in selected.plan.cfg.blocks)
    assert 100 < peak / instructions < 700


def test_a_translation_leaves_nothing_to_the_collector() -> None:
    """All of it goes with its last reference: the collector is paused while kernels are made, and
    a function in a function, which is a cycle, kept the kernel's instructions."""
    cubin = emulated.load("double_math", 90)
    for translate in (translate_kernel, translate_code):
        translate(cubin, "double_math")
        gc.collect()
        gc.disable()
        try:
            count = translate(cubin, "double_math").report.sass_instructions
            assert gc.collect() < count / 10
        finally:
            gc.enable()


def _asking(temporaries: int) -> Selected:
    """A kernel whose code is said to take so many temporaries."""
    selected = _selected()
    return replace(selected, vgprs=selected.regs.vtemp_base + temporaries)


def test_registers_that_fit_are_left_alone() -> None:
    base = _selected().regs.vtemp_base
    fits = _asking(DEFAULT.vgprs - base)
    assert fit_registers(fits).allocated is fits.allocated


def test_registers_that_do_not_fit_are_allocated_again() -> None:
    wanted = DEFAULT.vgprs - _selected().regs.vtemp_base + 1
    fitted = fit_registers(_asking(wanted))
    assert fitted.allocated.temporaries == wanted
    assert fitted.regs.spilled
    assert fitted.vgprs <= DEFAULT.vgprs
    assert fitted.regs.vtemp_base + wanted <= DEFAULT.vgprs


@pytest.mark.sources
def test_rounds_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []

    def hungry(allocated: allocation.Allocated) -> Selected:
        rounds.append(allocated.temporaries)
        base = allocated.regs.vtemp_base
        return replace(_selected(), allocated=allocated, vgprs=max(257, base + rounds[-1] + 1))

    monkeypatch.setattr(allocation, "select", hungry)
    with pytest.raises(LoweringError, match="SX0402"):
        fit_registers(_asking(DEFAULT.vgprs))
    assert len(rounds) == ROUNDS - 1
    assert rounds == sorted(rounds)

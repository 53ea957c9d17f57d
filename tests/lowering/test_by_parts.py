"""Code that is made a part at a time is that of the passes one after the other."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sassxlate.disasm.containers import load
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.rdna3 import encode_items, resolve_labels
from sassxlate.disasm.rdna3.instruction import Inst, InstOrigin, Item, Label, LabelRef
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.errors import LoweringError, SassxlateError
from sassxlate.lowering.builder.kernel_builder import KernelBuilder
from sassxlate.lowering.codeobject.source_map import ISLAND
from sassxlate.lowering.codeobject.source_marks import Marks, source_map
from sassxlate.lowering.passes.long_branches import find_islands
from sassxlate.lowering.pipeline import (
    CODE_PASSES,
    PASSES,
    run_passes,
    translate_code,
    translate_kernel,
)
from sassxlate.lowering.select import allocation, by_parts
from sassxlate.lowering.select.stages import Allocated, Planned, Source
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT
from tests.disasm.sass.interpreter.launches import with_code
from tests.lowering import emulated

FIXTURES = Path(__file__).parents[2] / "fixtures"


def _short_parts(monkeypatch: pytest.MonkeyPatch, items: int) -> None:
    monkeypatch.setattr(by_parts, "PART", items)


def _kernels() -> list[tuple[str, Cubin, str]]:
    """Every tenth kernel of the fixtures."""
    found = [
        (path.name, cubin, kernel.name)
        for path in sorted(FIXTURES.rglob("*.cubin"))
        for _, cubin in load(path).cubins()
        for kernel in cubin.kernels
    ]
    return found[::10]


@pytest.mark.sources  # compiled code has copied the constant
@pytest.mark.parametrize("items", [1, 9, 100])
def test_same_bytes_and_report(items: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _short_parts(monkeypatch, items)
    for file, cubin, name in _kernels()[items % 3 :: 3]:
        try:
            whole = translate_kernel(cubin, name)
        except SassxlateError as error:
            with pytest.raises(type(error), match=error.code):
                translate_code(cubin, name)
            continue
        made = translate_code(cubin, name)
        assert made.code_object == whole.code_object, (file, name)
        assert (made.kernel, made.launch) == (whole.kernel, whole.launch)
        assert replace(made.report, seconds=()) == replace(whole.report, seconds=())


@pytest.mark.sources
def test_the_schedulers_code_goes_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of regions that lanes leave without BREAK it names every point where such wait: 600,000
    instructions in a reduction of 41,896 SASS instructions."""
    part = "BSSY B0, `(.L_{0}) ;\n@P0 BRA `(.L_end) ;\n@P1 BRA `(.L_s{0}) ;\nMOV R1, 0x1 ;\n"
    part += ".L_s{0}:\nBSYNC B0 ;\n.L_{0}:\n"
    text = "".join(map(part.format, range(12))) + ".L_end:\nEXIT ;\n"
    (code,) = assemble_listing(text.splitlines(), 80).values()
    cubin = with_code(code, 80)
    name = cubin.kernels[0].name
    _short_parts(monkeypatch, 10)
    taken: list[int] = []
    take = by_parts._Code.take  # pyright: ignore[reportPrivateUsage]

    def watched(code: Any, k: KernelBuilder) -> None:
        taken.append(len(k.items))
        take(code, k)

    monkeypatch.setattr(by_parts._Code, "take", watched)  # pyright: ignore[reportPrivateUsage]
    made, whole = translate_code(cubin, name), translate_kernel(cubin, name)
    assert made.code_object == whole.code_object
    kept = sum(isinstance(i, Label) and i.name.startswith("Lkept") for i in whole.items)
    assert kept == 12
    assert max(taken) < 100


@cache
def _translated() -> Translated:
    return translate_kernel(emulated.load("double_math", 90), "double_math")


@pytest.mark.parametrize("reach", [170, 200, 600])
def test_islands_move_marks(reach: int) -> None:
    """Also where an island parts code of one origin, or stands between a fence and what follows,
    and where a label, a block or another origin begins at an island."""
    items = list(_translated().items)
    program = encode_items(items)
    islands = find_islands(program, reach, 2 * reach // 3, reach)
    assert islands is not None
    longer = islands.into(program)
    assert len(longer.items) > len(items)
    code = resolve_labels(longer)
    marks = Marks()
    for at in range(0, len(items), 7):
        marks.add(items[at : at + 7])
    moved = marks.with_islands(islands.places())
    assert moved.text(code) == source_map(longer.items, code)
    assert "added island" in moved.text(code)
    assert moved.items == len(longer.items)
    assert moved.instructions == sum(isinstance(i, Inst) for i in longer.items)


def test_an_island_stands_after_a_fence() -> None:
    """What is after a fence is the island then."""
    wait, move = Inst("s_waitcnt", (), fence=True), Inst("v_nop")
    items: list[Item] = [move, wait, move, move]
    marks = Marks()
    marks.add(items)
    branch = Inst("s_nop", ())
    with_branch = [*items[:2], branch, branch, *items[2:]]
    moved = marks.with_islands([(2, 2)])
    assert [*moved.fences] == [1]
    code = resolve_labels(encode_items(with_branch))
    assert "fence 8\n" in moved.text(code)


def test_an_island_stands_between_fences() -> None:
    """They are one run, whether the island is there from the start or put in later."""
    wait, move = Inst("s_waitcnt", (), fence=True), Inst("v_nop")
    items: list[Item] = [move, wait, wait, move]
    marks = Marks()
    marks.add(items)
    branch = Inst("s_nop", (), origin=InstOrigin(ISLAND))
    with_branch = [*items[:2], branch, branch, *items[2:]]
    moved = marks.with_islands([(2, 2)])
    code = resolve_labels(encode_items(with_branch))
    assert "fence 14\n" in moved.text(code)
    assert moved.text(code) == source_map(with_branch, code)


def test_items_are_not_needed_for_islands() -> None:
    program = encode_items(list(_translated().items))
    islands = find_islands(program, 200, 130, 200)
    assert islands is not None
    bare = islands.into(replace(program, items=()))
    full = islands.into(program)
    assert bare == replace(full, items=())
    placed = [(n, i) for n, i in enumerate(full.items) if isinstance(i, Label) or _names_label(i)]
    assert placed == [*full.placed()]
    assert len(full.data) == sum(full.sizes)


def _names_label(inst: Inst) -> bool:
    return any(isinstance(arg, LabelRef) for arg in inst.args)


@pytest.mark.sources
def test_a_kernel_is_selected_again_until_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a first round whose temporaries have no registers leaves nothing."""
    narrow = replace(DEFAULT, vgprs=32)
    source = Source(emulated.load("double_math", 90), "double_math", narrow)
    cut = next(n for n, p in enumerate(PASSES) if p.name == "allocate")

    def sparing(planned: Planned) -> Allocated:
        return allocation.allocation(planned, 1)

    rounds: list[int] = []
    emit = by_parts.emit_kernel

    def counted(*given: Any) -> object:
        rounds.append(1)
        return emit(*given)

    monkeypatch.setattr(by_parts, "first_allocation", sparing)
    monkeypatch.setattr(by_parts, "emit_kernel", counted)
    _short_parts(monkeypatch, 5)
    made = run_passes(source, CODE_PASSES)
    assert len(rounds) > 1
    planned = run_passes(source, PASSES[:cut])
    whole: Any = sparing(planned)
    for step in PASSES[cut + 1 :]:
        whole = step.run(whole)
    assert made.code_object == whole.code_object
    monkeypatch.setattr(allocation, "ROUNDS", 1)
    with pytest.raises(LoweringError, match="SX0402"):
        run_passes(source, CODE_PASSES)


@pytest.mark.sources
def test_instructions_go_with_their_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once caches are filled, making the code takes half of what it takes in one part."""
    source = Source(emulated.load("local_array", 90), "local_array", DEFAULT)
    cut = next(n for n, p in enumerate(PASSES) if p.name == "allocate")
    planned = run_passes(source, PASSES[:cut])

    def peak(items: int) -> int:
        _short_parts(monkeypatch, items)
        by_parts.write_code(planned)
        tracemalloc.start()
        by_parts.write_code(planned)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    few, all_at_once = peak(16), peak(1 << 20)
    assert few < 0.6 * all_at_once

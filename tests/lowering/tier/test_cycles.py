"""Cycles with several entries, of which LLVM's code generation makes wrong code: found in a text,
refused after LLVM's passes, and written with masks of lanes before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from sassxlate import toolchain
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier import translate
from sassxlate.lowering.tier.compiler.cycles import several_entries
from sassxlate.lowering.tier.compiler.passes import object_of
from sassxlate.lowering.tier.translate import module_text
from tests.lowering.emulated import load
from tests.lowering.tier.sweep_case import line_of
from tests.lowering.tier.test_masked import MASKED

_HEAD = "define amdgpu_kernel void @kernel(i32 %x, ptr addrspace(1) %p) {\n"


def _function(after: dict[str, list[str]]) -> str:
    """A function of these blocks; more than two ways on are a switch."""
    lines: list[str] = []
    for block, ends in after.items():
        lines.append(f"{block}:  ; preds = %{block}")
        lines.append(f"  store volatile i32 {len(lines)}, ptr addrspace(1) %p, align 4")
        match ends:
            case []:
                lines.append("  ret void")
            case [to]:
                lines.append(f"  br label %{to}, !x !0")
            case [yes, no]:
                lines.append(f"  %c.{block} = load volatile i1, ptr addrspace(1) %p, align 1")
                lines.append(f"  br i1 %c.{block}, label %{yes}, label %{no}")
            case _:
                first, *others = ends
                cases = "".join(f"    i32 {n}, label %{to}\n" for n, to in enumerate(others))
                lines.append(f"  switch i32 %x, label %{first} [\n{cases}  ]")
    return _HEAD + "\n".join(lines) + "\n}\n!0 = !{}\n"


_INTO_ONE = {"a": ["b"], "b": ["c", "d"], "c": ["b"], "d": []}
_INTO_TWO = {"a": ["b", "c"], "b": ["c", "d"], "c": ["b"], "d": []}


def test_where_they_are_found() -> None:
    assert several_entries(_function(_INTO_ONE)) is None
    assert several_entries(_function(_INTO_TWO)) in ("%b", "%c")
    assert several_entries(_function(_INTO_ONE) + _function(_INTO_TWO)) is not None
    switch = {"a": ["b"], "b": ["c", "d", "e"], "c": ["d"], "d": ["c", "e"], "e": []}
    assert several_entries(_function(switch)) in ("%c", "%d")
    numbered = (
        "define void @f(i1 %0) {\n  br i1 %0, label %2, label %3\n\n2:\n  br label %3\n\n3:\n"
    )
    assert several_entries(numbered + "  ret void\n}\n") is None
    assert several_entries(numbered + "  br label %2\n}\n") in ("%2", "%3")


def _left(after: dict[str, list[str]]) -> int:
    """Blocks that are left when loops of one block are taken away, and each block with one before
    it becomes a part of that, until nothing changes: one, but for cycles with several entries."""
    reached, work = {"b0"}, ["b0"]
    while work:
        new = set(after[work.pop()]) - reached
        reached |= new
        work += new
    graph = {block: set(after[block]) for block in reached}
    while True:
        for block, ends in graph.items():
            ends.discard(block)
        for one in graph.keys() - {"b0"}:
            before = [block for block, ends in graph.items() if one in ends]
            if len(before) == 1:
                break
        else:
            return len(graph)
        graph[before[0]] = graph[before[0]] - {one} | graph.pop(one)


def test_as_by_intervals() -> None:
    rng, found = random.Random(1), 0
    for _ in range(400):
        count = rng.randrange(3, 9)
        after = {
            f"b{n}": [f"b{rng.randrange(1, count)}" for _ in range(rng.randrange(1, 4))]
            for n in range(count)
        }
        several = several_entries(_function(after)) is not None
        assert several == (_left(after) > 1), after
        found += several
    assert 100 < found < 300


def test_code_generation_does_not_get_them() -> None:
    assert object_of(_function(_INTO_ONE), "amdgcn-amd-amdhsa", "gfx1100", "")
    with pytest.raises(RuntimeError, match="a cycle with several entries, %"):
        object_of(_function(_INTO_TWO), "amdgcn-amd-amdhsa", "gfx1100", "")


def test_such_a_kernel_is_written_with_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = translate_kernel(load("divergent_if", 80), "divergent_if")
    assert MASKED not in module_text(rules, DEFAULT)

    def found(text: str) -> str:
        del text
        return "%b10"

    monkeypatch.setattr(translate, "several_entries", found)
    assert MASKED in module_text(rules, DEFAULT)


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_jumps_into_a_loop(tmp_path: Path) -> None:
    line = line_of(tmp_path, "paths_s15_0048", 90, shape="paths", seed=15)
    assert line["d"] == "c4fc3b42842d6ba5b0ae4293"  # of an H200
    assert line["t"] == "llvm"

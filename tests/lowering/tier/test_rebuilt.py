"""Graphs built again from their own instructions, some of them changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.sass.instruction import Label, RegRef
from sassxlate.lowering.abi.link import link_kernel
from sassxlate.lowering.idioms.replaced import rebuilt
from sassxlate.lowering.idioms.sites import Finder
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.stages import Analysed
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier import translate

KERNELS = Path(__file__).resolve().parents[3] / "fixtures" / "kernels"


def _graph(name: str, arch: int) -> tuple[Cfg, Kernel]:
    cubin = parse_cubin((KERNELS / f"sm_{arch}" / f"{name}.cubin").read_bytes())
    kernel = link_kernel(cubin.kernels[0], cubin)
    return kernel_cfg(kernel), kernel


def test_sections_that_no_lane_runs_are_kept() -> None:
    """Several collective sections of a class: the leader's alone is in blocks."""
    cfg, kernel = _graph("split_warp_sync", 90)
    assert cfg.left_out
    assert rebuilt(cfg, kernel, {}) == cfg


def test_a_class_stays_one_when_its_leader_changes() -> None:
    cfg, kernel = _graph("split_warp_sync", 90)
    inside = next(
        some[0] for some in cfg.collectives.classes.values() if len(some) > 1 and some[0].body
    )
    ins = next(
        i for b in cfg.blocks for i in b.instructions
        if inside.sync < i.offset < inside.end and i.mnemonic != "NOP"
    )  # fmt: skip
    after = rebuilt(cfg, kernel, {ins.offset: replace(ins, text="CHANGED")})
    assert after.collectives == cfg.collectives
    assert after.edges == cfg.edges
    assert rebuilt(after, kernel, {}) == after


def test_registers_of_a_function_that_the_kernel_jumps_to_as_well() -> None:
    """Its blocks are the kernel's; at its entry nothing is known: it is called, too."""
    cfg, kernel = _graph("calls", 80)
    entry = cfg.functions[1]
    branch = next(
        b.last for b in cfg.blocks
        if b.function == 0 and b.last.mnemonic == "BRA" and not b.last.guard.is_true
    )  # fmt: skip
    jump = replace(branch, operands={**branch.operands, "target": Label(entry)})
    shared = rebuilt(cfg, kernel, {branch.offset: jump})
    assert entry in shared.functions
    assert entry not in {b.function for b in shared.blocks}
    finder = Finder(shared)
    finder.values()
    n = shared.by_start[entry]
    assert any(e.kind == "taken" for e in shared.predecessors[n])
    for index in range(32):
        value = finder.starts[n].read(RegRef("R", index))
        assert finder.graph.ops[value] == "before"
        assert finder.graph.given[value][0] == n


def test_what_is_known_is_of_the_code_that_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of nvcc's slow ways, which read registers as bits and are never run."""
    seen: list[Analysed] = []
    by_mode = translate._by_mode  # pyright: ignore[reportPrivateUsage]

    def spied(found: Analysed, *args: Any) -> str:
        seen.append(found)
        return by_mode(found, *args)

    monkeypatch.setattr(translate, "_by_mode", spied)
    cubin = parse_cubin((KERNELS / "sm_80" / "exit_in_regions.cubin").read_bytes())
    rules = translate_kernel(cubin, cubin.kernels[0].name)
    translate.module_text(rules, DEFAULT)
    (found,) = seen
    assert len(found.cfg.blocks) < len(rules.cfg.blocks)
    assert len(found.live.live_in) == len(found.cfg.blocks)
    assert found.nans is not rules.selected.allocated.planned.analysed.nans

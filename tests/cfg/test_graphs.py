"""Graphs of the kept kernels: blocks, edges, regions, spin loops, collective sections."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from sassxlate.cfg import Cfg, analyse, build, liveness, regions
from sassxlate.cfg.graph import SIZE
from sassxlate.cfg.spin_loops import spins
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.abi.link import link_kernel
from sassxlate.lowering.kernel_graph import kernel_cfg
from tests.disasm.sass.interpreter.launches import with_code

KERNELS = Path(__file__).resolve().parents[2] / "fixtures" / "kernels"
ALL = sorted(KERNELS.glob("sm_[89]0/*.cubin"))


@cache
def graph(path: Path) -> Cfg:
    cubin = parse_cubin(path.read_bytes())
    return kernel_cfg(link_kernel(cubin.kernels[0], cubin))


def named(name: str, arch: int) -> Cfg:
    return graph(KERNELS / f"sm_{arch}" / f"{name}.cubin")


@pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.stem}-{p.parent.name}")
def test_blocks_cover_the_code_once(path: Path) -> None:
    cfg = graph(path)
    for block in cfg.blocks:
        assert block.end - block.start == SIZE * len(block.instructions)
        assert cfg.by_start[block.start] == block.index
    ends = [(b.start, b.end) for b in cfg.blocks]
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    for edge in cfg.edges:
        assert edge in cfg.successors[edge.src]
        assert edge in cfg.predecessors[edge.dst]


@pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.stem}-{p.parent.name}")
def test_every_bsync_has_its_region(path: Path) -> None:
    cfg = graph(path)
    found, sync_region = regions(cfg)
    for block in cfg.blocks:
        if block.last.mnemonic == "BSYNC":
            region = found[sync_region[block.last.offset]]
            assert block.end in {region.target} or len(region.syncs) > 1
            assert region.arms


@pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.stem}-{p.parent.name}")
def test_collective_sections_do_not_join_regions(path: Path) -> None:
    """The region around a section is its own: its lanes wait for no lane of another one that runs
    the same section."""
    cfg = graph(path)
    found, sync_region = regions(cfg)
    for section in cfg.collectives.by_sync.values():
        after = cfg.blocks[cfg.by_start[section.target]].last
        if after.mnemonic == "BSYNC" and after.offset == section.target:
            assert len(found[sync_region[after.offset]].syncs) == 1


@pytest.mark.parametrize("path", ALL, ids=lambda p: f"{p.stem}-{p.parent.name}")
def test_nothing_is_read_before_it_is_written(path: Path) -> None:
    cfg = graph(path)
    entry = {r for r in liveness(cfg).live_in[0] if r.file in ("R", "UR")}
    # A guarded write does not end a live range: registers live at the entry have guarded writes.
    written = {w for b in cfg.blocks for i in b.instructions for w in i.writes}
    assert entry <= written


# --- calls ---------------------------------------------------------------------------------------


def test_recursion_returns_to_all_its_sites() -> None:
    cfg = named("mutual_recursion", 80)
    assert len(cfg.functions) == 3
    for entry in cfg.functions[1:]:
        sites = set(cfg.call_sites[entry])
        returns = [b for b in cfg.blocks if b.last.mnemonic == "RET" and b.function == entry]
        for block in returns:
            assert {cfg.blocks[e.dst].start for e in cfg.successors[block.index]} == sites


@pytest.mark.parametrize("arch", [80, 90])
def test_pointers_reach_every_function(arch: int) -> None:
    cfg = named("function_pointers", arch)
    callers = [b for b in cfg.blocks if b.last.mnemonic == "CALL" and b.last.get("target") is None]
    assert len(callers) == 7
    for block in callers:
        kinds = [e.kind for e in cfg.successors[block.index]]
        assert kinds.count("call") == 5
        assert kinds.count("back") == 1


def test_call_through_a_register_without_functions_goes_nowhere() -> None:
    cubin = parse_cubin((KERNELS / "sm_80" / "function_pointers.cubin").read_bytes())
    kernel = cubin.kernels[0]
    section = decode_section(kernel.code, kernel.arch)
    good = [i for i in section.instructions if isinstance(i, Instruction)]
    cfg = build(kernel.name, kernel.arch, good)
    callers = [b for b in cfg.blocks if b.last.mnemonic == "CALL" and b.last.get("target") is None]
    assert callers
    assert not any(cfg.successors[b.index] for b in callers)


# --- convergence ---------------------------------------------------------------------------------


def test_collective_sections_form_classes() -> None:
    cfg = named("split_warp_sync", 90)
    sections = cfg.collectives
    # The shuffles of both arms form a class, as do the __syncwarp of the arms and the loop.
    assert sorted(len(some) for some in sections.classes.values())[-2:] == [2, 4]
    for some in sections.classes.values():
        end = next(b for b in cfg.blocks if b.last.offset == some[0].end)
        targets = {cfg.blocks[e.dst].start for e in cfg.successors[end.index]}
        assert targets == {s.target for s in some}
        body = some[0].sync + SIZE
        for section in some:
            start = next(b for b in cfg.blocks if b.last.offset == section.sync)
            assert [cfg.blocks[e.dst].start for e in cfg.successors[start.index]] == [body]


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name", ["spin_before_work", "spin_backoff", "lane_flags"])
def test_spin_loops_are_soft(name: str, arch: int) -> None:
    cfg = named(name, arch)
    assert spins(cfg).latches
    assert any(r.soft for r in regions(cfg)[0])


def test_lock_in_a_function_softens_its_callers() -> None:
    cfg = named("lock_in_function", 80)
    (call,) = [b.index for b in cfg.blocks if b.last.mnemonic == "CALL"]
    assert call in spins(cfg).marked


@pytest.mark.parametrize("name", ["nested_break", "divergent_if", "far_breaks", "uniform_loop"])
def test_plain_loops_do_not_spin(name: str) -> None:
    cfg = named(name, 90)
    assert not spins(cfg).latches
    assert not any(r.soft for r in regions(cfg)[0])


def test_regions_that_leak_share_what_they_leave() -> None:
    """Of a thousand regions of one barrier a set of blocks each took half a kernel's memory."""
    part = "BSSY B0, `(.L_{0}) ;\n@P0 BRA `(.L_end) ;\nBSYNC B0 ;\n.L_{0}:\n"
    text = "".join(map(part.format, range(3))) + ".L_end:\nEXIT ;\n"
    (code,) = assemble_listing(text.splitlines(), 80).values()
    first, *others = regions(kernel_cfg(with_code(code, 80).kernels[0]))[0]
    assert len(others) == 2
    assert first.left
    assert all(other.left is first.left for other in others)


def test_breaks_belong_to_the_region_that_they_leave() -> None:
    cfg = named("far_breaks", 80)
    found, _ = regions(cfg)
    broken = [r for r in found if r.breaks]
    assert len(broken) == 1
    breaks = {i.offset for b in cfg.blocks for i in b.instructions if i.mnemonic == "BREAK"}
    assert set(broken[0].breaks) == breaks


def test_uniform_code_is_converged() -> None:
    for name in ("uniform_loop", "shuffle_forms", "warp_match"):
        assert all(analyse(named(name, 80)).converged)


def test_code_after_a_spin_loop_is_not() -> None:
    cfg = named("spin_before_work", 80)
    facts = analyse(cfg)
    following = next(b for b in cfg.blocks if any(i.mnemonic == "MEMBAR" for i in b.instructions))
    assert not facts.converged[following.index]

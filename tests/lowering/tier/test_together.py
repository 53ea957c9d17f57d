"""Which blocks run with the same lanes in SASS and in LLVM's code."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.cfg import Cfg, analyse
from sassxlate.disasm.containers import load
from sassxlate.lowering.pipeline import build_cfg, link
from sassxlate.lowering.select.stages import Source
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier import module
from sassxlate.lowering.tier.backend import compiled
from sassxlate.lowering.tier.refusal import BACKEND, FLOW, TOGETHER, WAITING, Refused
from sassxlate.lowering.tier.warp.tests_of_warp import replaced
from sassxlate.lowering.tier.warp.together import cycles, together
from tests.lowering.emulated import load as fixture

PROGRAMS = Path(__file__).resolve().parents[3] / "fixtures" / "programs"


def _graph(name: str) -> Cfg:
    return build_cfg(link(Source(fixture(name, 80), name, DEFAULT))).cfg


def test_cycles() -> None:
    assert cycles(range(4), [[1], [2], [1, 3], []]) == [frozenset({1, 2})]
    assert cycles(range(3), [[0, 1], [2], []]) == [frozenset({0})]
    assert cycles(range(2), [[1], []]) == []


def test_a_shuffle_after_the_test_of_the_warp_is_in_step() -> None:
    """Reduction's last warp shuffles in the arm of a branch, which nvcc guards by BRA.DIV."""
    cubin = next(c for _, c in load(PROGRAMS / "reduction").cubins() if c.arch == 80)
    for kernel in cubin.kernels:
        linked = link(Source(cubin, kernel.name, DEFAULT))
        cfg = build_cfg(linked).cfg
        before = [i.mnemonic for b in cfg.blocks for i in b.instructions]
        with pytest.raises(Refused) as why:
            together(cfg, analyse(cfg))
        assert why.value.code == TOGETHER
        changed, tests = replaced(cfg, linked.kernel)
        assert not tests.votes
        after = [i.mnemonic for b in changed.blocks for i in b.instructions]
        assert before.count("BRA") > after.count("BRA")
        facts = together(changed, analyse(changed))
        shuffles = [b.index for b in changed.blocks
                    if any(i.mnemonic == "SHFL" for i in b.instructions)]  # fmt: skip
        assert shuffles
        assert all(facts.group[n] for n in shuffles)


@pytest.mark.parametrize("name", ["spin_lock", "spin_backoff", "lane_flags", "lock_in_function"])
def test_loops_that_wait_are_refused(name: str) -> None:
    cfg = _graph(name)
    with pytest.raises(Refused) as why:
        together(cfg, analyse(cfg))
    assert why.value.code == WAITING


def test_a_test_of_some_lanes_is_refused() -> None:
    cubin = fixture("divergent_ballot", 80)
    linked = link(Source(cubin, "divergent_ballot", DEFAULT))
    with pytest.raises(Refused) as why:
        replaced(build_cfg(linked).cfg, linked.kernel)
    assert why.value.code == FLOW


def test_lanes_that_exchange_data_without_a_barrier_keep_the_order_of_shared_memory() -> None:
    cfg = _graph("dynamic_shared")
    assert not together(cfg, analyse(cfg)).ordered_shared
    cfg = _graph("funnel_shifts")
    assert not together(cfg, analyse(cfg)).ordered_shared


def test_a_module_whose_kernel_llvm_leaves_out() -> None:
    """LLVM drops a function without features that its processor must have."""
    with pytest.raises(Refused) as why:
        compiled(f'target triple = "{module.TRIPLE}"\n', DEFAULT)
    assert why.value.code == BACKEND

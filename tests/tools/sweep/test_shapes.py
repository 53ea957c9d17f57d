"""The kernels of the random differential test: each shape has what it is for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tools.sweep import plan
from tools.sweep.driver import LARGEST
from tools.sweep.inputs import inputs
from tools.sweep.kernel import Group


def test_shapes_are_what_they_say(groups: list[Group]) -> None:
    for group in groups:
        for kernel in group.kernels:
            assert f"__global__ void {kernel.name}(" in kernel.text
            assert len(kernel.slots) <= 64
            assert kernel.shape == group.name.rpartition("_")[0]
            assert not kernel.bound or set(kernel.slots) <= {"f"} or set(kernel.slots) == {"d", "-"}


def test_launches_of_other_shapes(groups: list[Group]) -> None:
    """They fit into the driver's buffers and a block's limits, and the shape decides the result."""
    mine = [k for g in groups for k in g.kernels if k.shape in ("launches", "chains", "paths")]
    sizes = {math.prod(k.block) for k in mine}
    assert {1, 31, 64, 1024} <= sizes
    assert max(sizes) <= 1024
    assert len({k.grid for k in mine}) > 5
    for kernel in mine:
        threads = math.prod(kernel.grid) * math.prod(kernel.block)
        assert 4 * threads * max(len(kernel.slots), len(kernel.profiles)) + 256 <= LARGEST
        assert f"__launch_bounds__({math.prod(kernel.block)})" in kernel.text
    (one, *_) = mine
    assert one.launch()["block"] == one.block
    assert "block" not in plan.SHAPES[0].kernels(1, 0, 1)[0].launch()
    assert replace(one, grid=(1, 1, 9)).source_crc != one.source_crc
    assert inputs(one.name, "ir", 7).shape == (2, 7)


def test_chains_have_what_they_are_for(groups: list[Group]) -> None:
    """Halves out of words in every way, NaNs among the inputs; flushing matters alone."""
    mine = [g for g in groups if g.name.startswith("chains")]
    text = "".join(k.text for g in mine for k in g.kernels)
    for word in (
        "__byte_perm(",
        "__funnelshift_r(",
        "<< 16)",
        "__shfl_",
        "__nv_cvt_",
        "#pragma unroll",
    ):
        assert text.count(word) > 50
    assert all(plan.wanted(g, "ftz") and not plan.wanted(g, "fast") for g in mine)
    some = np.concatenate([inputs(k.name, k.profiles)[4] for g in mine[:3] for k in g.kernels])
    nan = some[(some & 0x7FFFFFFF) > 0x7F800000]
    assert len(set(nan.tolist())) > 5


def test_paths_have_what_they_are_for(groups: list[Group]) -> None:
    """Every way, kernels for each architecture that has a part of them, recursion at the end."""
    mine = [k for g in groups for k in g.kernels if k.shape == "paths"]
    text = "".join(k.text for k in mine)
    for word in (
        "addc.cc.u32",
        "madc.hi.cc.u32",
        "__int128",
        "live = __ballot_sync(live",
        "switch (at)",
        ": goto ",
        "__match_all_sync(live",
        "atomicCAS(",
        "atomicAdd_system(",
        "#pragma pack(push",
        "cp.async.wait_group",
        "mbarrier.test_wait.parity",
        "mbarrier.arrive.expect_tx",
        "_ot[2])",
        "__constant__ u32",
    ):
        assert text.count(word) > 10, word
    assert {k.oldest for k in mine} == {75, 80, 90}
    for kernel in mine:
        assert (kernel.oldest == 90) == ("cp.async.bulk" in kernel.text)
        _, found, last = kernel.text.partition("_r_a(GET64(4)")
        assert not found or "_sync(" not in last

"""LLVM's passes of level 2 make wrong code of a kernel with masks; such kernels go without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate import toolchain
from tests.lowering.tier.sweep_case import line_of
from tools.sweep import plan

_NAME, _ARCH = "warps_0272", 90


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_spilled_lane_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plan.FLAGS, "O3", ("-O3", "-maxrregcount=16"))
    llvm = line_of(tmp_path / "llvm", _NAME, _ARCH, shape="warps")
    rules = line_of(tmp_path / "rules", _NAME, _ARCH, shape="warps", engine="")
    assert llvm["t"] == "llvm"
    assert llvm["d"] == rules["d"]

"""LLVM's passes of level 2 make wrong code of a kernel with masks; such kernels go without them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sassxlate import toolchain
from tools.sweep import plan
from tools.sweep.__main__ import RUNNER
from tools.sweep.kernel import Group
from tools.sweep.run import Settings, lines_of, run_all

_NAME, _ARCH = "warps_0272", 90


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_spilled_lane_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    monkeypatch.setitem(plan.FLAGS, "O3", ("-O3", "-maxrregcount=16"))
    kernel = next(k for g in plan.groups(shapes=["warps"]) for k in g.kernels if k.name == _NAME)
    found: dict[str, dict[str, str]] = {}
    for engine in ("", "llvm"):
        settings = Settings(
            tmp_path / (engine or "rules"), nvcc, _ARCH, "O3", RUNNER, engine=engine
        )
        run_all([(Group("alone", (kernel,)), settings)], time.monotonic() + 600, print)
        found[engine] = lines_of(settings.file)[_NAME]
    assert found["llvm"]["t"] == "llvm"
    assert found["llvm"]["d"] == found[""]["d"]

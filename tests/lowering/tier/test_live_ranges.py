"""LLVM's si-opt-vgpr-liverange makes wrong code of a random kernel; the tier goes without it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sassxlate import toolchain
from tools.sweep import plan
from tools.sweep.__main__ import RUNNER
from tools.sweep.kernel import Group
from tools.sweep.run import Settings, lines_of, run_all

_NAME, _SEED, _ARCH = "programs_s5_0095", 5, 75
_H100 = "68b94edd10c040ec8fa5a4d22356e5fbb2aa7578b2aa7578"  # its slots' CRCs there


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_a_switch_in_an_arm(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    found = (k for g in plan.groups(_SEED, ["programs"]) for k in g.kernels)
    group = Group("alone", (next(k for k in found if k.name == _NAME),))
    settings = Settings(tmp_path, nvcc, _ARCH, "O3", RUNNER, engine="llvm")
    run_all([(group, settings)], time.monotonic() + 600, print)
    line = lines_of(settings.file)[_NAME]
    assert (line["t"], line["d"]) == ("llvm", _H100)

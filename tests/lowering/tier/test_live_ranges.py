"""LLVM's si-opt-vgpr-liverange makes wrong code of a random kernel; the tier goes without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate import toolchain
from tests.lowering.tier.sweep_case import line_of

_NAME, _SEED, _ARCH = "programs_s5_0095", 5, 75
_H100 = "68b94edd10c040ec8fa5a4d22356e5fbb2aa7578b2aa7578"  # its slots' CRCs there


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_a_switch_in_an_arm(tmp_path: Path) -> None:
    line = line_of(tmp_path, _NAME, _ARCH, shape="programs", seed=_SEED)
    assert (line["t"], line["d"]) == ("llvm", _H100)

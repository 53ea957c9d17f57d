"""A kernel of which LLVM's register allocator loses a live range, without an assertion."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate import toolchain
from tests.lowering.tier.sweep_case import line_of

_NAME, _ARCH, _SEED = "warps_s11_0346", 120, 11
_H200 = "92b75d8f03574191de834327e4bf8e46"


@pytest.mark.sweep
@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_words_of_an_h200(tmp_path: Path) -> None:
    made = line_of(tmp_path, _NAME, _ARCH, shape="warps", seed=_SEED)
    assert made["t"] == "llvm"
    assert made["d"] == _H200

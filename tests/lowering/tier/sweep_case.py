"""One kernel of the random sweep, by the optimising tier or the rules."""

from __future__ import annotations

import time
from pathlib import Path

from sassxlate import toolchain
from tools.sweep import plan
from tools.sweep.__main__ import RUNNER
from tools.sweep.kernel import SEED, Group
from tools.sweep.run import Settings, lines_of, run_all


def line_of(
    folder: Path, name: str, arch: int, *, shape: str, seed: int = SEED, engine: str = "llvm"
) -> dict[str, str]:
    """The line of results of a kernel at -O3; ``engine``: "" for the rules' code."""
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    found = (k for g in plan.groups(seed, [shape]) for k in g.kernels)
    group = Group("alone", (next(k for k in found if k.name == name),))
    settings = Settings(folder, nvcc, arch, "O3", RUNNER, engine=engine)
    run_all([(group, settings)], time.monotonic() + 600, print)
    return lines_of(settings.file)[name]

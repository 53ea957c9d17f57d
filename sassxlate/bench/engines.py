"""Programs with two engines' code, in turn: processor time of their kernels when emulated.

Each program is run as `sassxlate run --engine` runs it; code and host code are made before.  One
thread runs all waves, and its processor time within launches is what is compared
(SASSXLATE_CPU_TIME), so that neither the program's own work nor other load counts.
"""

from __future__ import annotations

import math
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from sassxlate.bench.figures import Figure
from sassxlate.errors import UsageError
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.runtime_shim.service import client

COMPUTES_S = 1e-3  # of processor time in launches, by the first engine: less is not rated
MEAN, EACH = 1.15, 1.0  # the first engine's time in the second's: geometric mean, every program
_LIMIT_S = 300


def _seconds(program: Path, engine: str, target: Target, place: Path) -> float:
    """Processor seconds in the launches of one run."""
    tally = place / "cpu"
    tally.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "SASSXLATE_CPU_TIME": str(tally),
        "SASSXLATE_THREADS": "1",
        "PYTHONPATH": client.import_root(),
    }
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
    command += ["--tier", "llvm", "--engine", engine, "--target", target.name, "--", str(program)]
    done = subprocess.run(
        command, env=environment, capture_output=True, timeout=_LIMIT_S, check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise UsageError("SX0817", f"{program.name} with {engine}: {said[-200:]}")
    return struct.unpack("<Q", tally.read_bytes())[0] / 1e9 if tally.exists() else 0.0


def _figure(
    program: Path, engines: Sequence[str], repeat: int, target: Target, place: Path
) -> Figure | None:
    """None if the program launches nothing."""
    for engine in engines:  # all is compiled then
        if not _seconds(program, engine, target, place):
            return None
    values: list[list[float]] = []
    for _ in range(repeat):
        values.append([_seconds(program, engine, target, place) for engine in engines])
    first, second = (median(v[side] for v in values) for side in (0, 1))
    rated = first >= COMPUTES_S
    name = f"{program.name}: {engines[0]} / {engines[1]} (CPU)"
    ratios = tuple(a / b for a, b in values)
    note = f"{1e3 * first:.3g} and {1e3 * second:.3g} ms{'' if rated else ', too little to rate'}"
    return Figure(name, "x", ratios, "more", EACH if rated else None, note)


def measure(
    folder: Path,
    engines: tuple[str, str],
    repeat: int,
    pattern: str = "",
    target: Target = DEFAULT,
) -> list[Figure]:
    """For each executable the first engine's processor time in the second's (2: the second's code
    takes half as long), and the geometric mean of those that compute: at least ``COMPUTES_S`` by
    the first engine.

    Raises:
        UsageError: SX0817, a program fails, or none is there.
    """
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="sassxlate-engines-") as made:
        for program in sorted(folder.iterdir()):
            runs = program.is_file() and os.access(program, os.X_OK)
            if runs and re.search(pattern, program.name):
                figure = _figure(program, engines, repeat, target, Path(made))
                figures += [figure] if figure is not None else []
    if not figures:
        raise UsageError("SX0817", f"{folder}: no executable that launches kernels")
    rated = [figure.median for figure in figures if figure.target is not None]
    means = [_mean(f"the {len(figures)}", [figure.median for figure in figures], None)]
    if rated:
        means.append(_mean(f"the {len(rated)} that compute", rated, MEAN))
    return [*figures, *means]


def _mean(of: str, values: Sequence[float], target: float | None) -> Figure:
    mean = math.exp(sum(map(math.log, values)) / len(values))
    return Figure(f"geometric mean of {of}", "x", (mean,), "more", target)


__all__ = ["COMPUTES_S", "measure"]

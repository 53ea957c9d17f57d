"""Ten kernels on the emulated device and on PoCL, which compiles the same ones from OpenCL C.

Both sides run in a process of their own and take turns, kernel by kernel; what is compared is the
processor time of all their threads, so that other load on the machine cancels.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from statistics import median
from typing import Any

from sassxlate.bench.figures import Figure
from sassxlate.bench.peers_kernels import NAMES
from sassxlate.errors import UsageError
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.runtime_shim.service import client

GEOMETRIC = 2.5  # PoCL's time in ours, in the geometric mean
EACH = 1.0  # of every kernel
_ROUND_S = 0.05  # of processor time that one value takes, at least
_LIBRARY = "libOpenCL.so.1"


class Missing(Exception):
    """There is no PoCL here; the text says why."""


class _Side:
    """A child process that runs kernels when it is told to."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self._process = process
        self._name = name
        self.device = str(self._answer()["device"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line.startswith("{") else {"error": "it ended"}
        if "error" in answer:
            raise UsageError("SX0817", f"bench peers: {self._name}: {answer['error']}")
        return answer

    def seconds(self, kernel: str, times: int) -> float:
        """Processor seconds of one launch, of so many."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{kernel} {times}\n")
        self._process.stdin.flush()
        return max(float(self._answer()["cpu"]), 1e-9) / times


@contextlib.contextmanager
def _side(kind: str, command: list[str], file: Path) -> Generator[_Side]:
    child = [sys.executable, "-P", "-m", "sassxlate.bench.peers_child", kind, str(file)]
    environment = {**os.environ, "PYTHONPATH": client.import_root()}
    with subprocess.Popen(
        [*command, *child], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=sys.stderr,
    ) as process:  # fmt: skip
        try:
            yield _Side(process, kind)
        finally:
            # Ended by the end of its input: a killed `run` would take the program with it, too.
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()


def available(fixtures: Path) -> None:
    """Missing if there is no OpenCL library, or no PoCL that it knows of."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise Missing(f"{_LIBRARY} cannot be loaded ({error}); Debian: pocl-opencl-icd") from None
    found = subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate.bench.peers_child", "opencl",
         str(fixtures / "peers" / "peers.cl")],
        env={**os.environ, "PYTHONPATH": client.import_root()},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        raise Missing(found.stderr.strip().rpartition("\n")[2] or "it does not start")


def measure(
    fixtures: Path,
    repeat: int,
    tier: str,
    pattern: str = "",
    target: Target = DEFAULT,
    engine: str = "rules",
) -> list[Figure]:
    """For each kernel PoCL's processor time in ours (2: ours takes half as long), and the
    geometric mean of the medians.  ``engine`` writes our code.

    Raises:
        Missing: there is no PoCL here.
        UsageError: SX0817, a result is wrong.
    """
    available(fixtures)
    names = [name for name in NAMES if pattern in name]
    run = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"]
    options = ["--engine", engine, "--target", target.name]
    run += ["--tier", tier, *options, "--"]
    folder = fixtures / "peers"
    if engine != "rules":
        _warm(folder / "peers.cubin", options)
    figures: list[Figure] = []
    with (
        _side("cuda", run, folder / "peers.cubin") as ours,
        _side("opencl", [], folder / "peers.cl") as theirs,
    ):
        for name in names:
            figures.append(_kernel(name, ours, theirs, repeat))
        device = theirs.device
    if not figures:
        raise UsageError("SX0817", f"bench peers: no kernel has {pattern!r} in its name")
    mean = math.exp(sum(math.log(median(f.values)) for f in figures) / len(figures))
    title = f"geometric mean of {len(figures)}: PoCL / ours (CPU)"
    return [*figures, Figure(title, "x", (mean,), "more", GEOMETRIC, device)]


def _warm(file: Path, options: list[str]) -> None:
    """Puts the engine's code into the cache: `run` translates what is loaded at run time by the
    rules first."""
    command = [sys.executable, "-P", "-m", "sassxlate", "warm", *options, "--tier", "baseline"]
    done = subprocess.run(
        [*command, str(file)],
        env={**os.environ, "PYTHONPATH": client.import_root()},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise UsageError("SX0817", f"bench peers: warm: {done.stderr.strip()[-200:]}")


def _kernel(name: str, ours: _Side, theirs: _Side, repeat: int) -> Figure:
    once = ours.seconds(name, 1), theirs.seconds(name, 1)
    times = [max(1, math.ceil(_ROUND_S / seconds)) for seconds in once]
    values: list[float] = []
    milliseconds: list[float] = []
    for _ in range(repeat):
        mine = ours.seconds(name, times[0])
        values.append(theirs.seconds(name, times[1]) / mine)
        milliseconds.append(1e3 * mine)
    note = f"ours {median(milliseconds):.3g} ms"
    return Figure(f"{name}: PoCL / ours (CPU)", "x", tuple(values), "more", EACH, note)


__all__ = ["Missing", "available", "measure"]

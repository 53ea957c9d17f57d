"""Kernels for the dataset: generated CUDA C++, compiled to cubins by nvcc and ptxas.

A program is identified by a number and a seed (:func:`.source.source`).  nvcc's front end runs once
per program, for PTX, and takes as long for 12 kernels as for 36, because headers are most of it;
ptxas compiles the PTX to a cubin for each level and architecture, which is an eighth of the work.
Cubins are named so that all cubins of a program are in one split of the dataset.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sassxlate.errors import ModelError, Where
from sassxlate.executors import HERE, Place, work_through
from sassxlate.llm.dataset.build import TRAINED, DatasetSettings, place_of, split_of
from sassxlate.llm.dataset.generate.source import KERNELS, source

TIMEOUT_S = 120
ARCHES = (80, 90, 75, 86, 89, 100, 120)  # usually, all but two only in held-out programs
_MOST = 0.8  # of the programs may be held out
_PTX, _OLDEST = 80, 75  # virtual architectures: all but sm_75 accept the first


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a program: its cubins, or the reason why there are none."""

    name: str
    files: int
    seconds: float  # processor seconds, as far as known
    error: ModelError | None = None


def program_name(seed: int, number: int, kernels: int = KERNELS) -> str:
    """The name of a generated program, which decides its split."""
    size = f"x{kernels}" if kernels != KERNELS else ""
    return f"gen{seed}{size}-{number:06d}"


def test_share(seed: int, count: int, usual: float) -> float:
    """The share of test programs of so many generated ones: the usual one, or as much more as puts
    one of a few programs into the test split."""
    lowest = min(place_of(program_name(seed, n), seed) for n in range(count))
    return usual if count == 1 or lowest >= _MOST else max(usual, (int(lowest * 1000) + 1) / 1000)


def make(number: int, folder: Path, seed: int, kernels: int, settings: DatasetSettings) -> Made:
    """Compiles one program; existing files are not made again."""
    name = program_name(seed, number, kernels)
    done = folder / f"{name}.done"
    if done.exists():
        return Made(name, 0, 0.0)
    started = time.monotonic()
    rng = random.Random(f"levels {seed} {number}")
    fast = rng.random() < 0.3
    held_out = split_of(name, settings) != "train"
    wanted = [(80, 3), (90, 3), (80, rng.choice((1, 1, 2)))]
    if held_out:
        wanted = [(arch, 3) for arch in ARCHES]
    elif settings.every:
        wanted += [(arch, 3) for arch in ARCHES if (arch, 3) not in wanted]
    count = 0
    try:
        with tempfile.TemporaryDirectory(prefix="sassxlate-generate-") as scratch:
            text = Path(scratch, f"{name}.cu")
            text.write_text(source(seed, number, kernels), encoding="utf-8")
            options = ["-use_fast_math"] if fast else []
            forms = {_PTX: Path(scratch, f"{name}.ptx"), _OLDEST: Path(scratch, f"{name}.75.ptx")}
            for form in {_OLDEST if arch == _OLDEST else _PTX: None for arch, _ in wanted}:
                front = ["nvcc", "-ptx", f"-arch=compute_{form}", "-w", *options]
                _run([*front, text, "-o", forms[form]])
            for arch, level in wanted:
                ptx = forms[_OLDEST if arch == _OLDEST else _PTX]
                out = folder / f"{name}.O{level}{'f' if fast else ''}.sm_{arch}.cubin"
                made = Path(scratch, "out.cubin")
                _run(["ptxas", f"-arch=sm_{arch}", f"-O{level}", "-w", ptx, "-o", made])
                beside = out.with_suffix(f".{os.getpid()}.tmp")
                shutil.copyfile(made, beside)
                beside.replace(out)
                count += 1
        done.touch()
    except ModelError as error:
        return Made(name, count, time.monotonic() - started, error)
    return Made(name, count, time.monotonic() - started)


def _run(command: list[str | Path]) -> None:
    """Runs a command; ModelError SX1045 if it fails or takes too long; its child processes end with
    it (cicc would run on for an hour)."""
    program = str(command[0])
    try:
        started = subprocess.Popen(
            [str(c) for c in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ModelError("SX1045", f"{program}: {error}") from None
    try:
        output, _ = started.communicate(timeout=TIMEOUT_S)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise ModelError("SX1045", f"{program}: longer than {TIMEOUT_S} s") from None
    if started.returncode:
        text = output.decode("utf-8", "replace").strip().splitlines()
        first = next((line for line in text if "error" in line), text[0] if text else "")
        raise ModelError("SX1045", f"{program}: {first[:200]}", Where(str(command[-1])))


def generate(
    folder: Path,
    seed: int,
    count: int,
    settings: DatasetSettings,
    *,
    kernels: int = KERNELS,
    place: Place = HERE,
    limit_s: float | None = None,
    shard: tuple[int, int] = (0, 1),
    told: Callable[[Made], None] = lambda _: None,
) -> tuple[int, int]:
    """Compiles programs 0 to ``count`` that belong to part ``shard[0]`` of ``shard[1]``; returns
    how many exist and how many could not be compiled.  Begins none after ``limit_s`` seconds;
    existing programs are not made again.  A cluster's workers have the compiler, and find the
    folder under the same path.

    Raises ModelError SX1045 if there is no compiler, UsageError if the cluster cannot be used.
    """
    for tool in ("nvcc", "ptxas") if place.cluster is None else ():
        if shutil.which(tool) is None:
            raise ModelError("SX1045", f"{tool} is not on PATH")
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    good = bad = 0

    def late() -> bool:
        return limit_s is not None and time.monotonic() - started > limit_s

    one = partial(make, folder=folder, seed=seed, kernels=kernels, settings=settings)
    numbers = range(shard[0], count, shard[1])
    for done in work_through(place, one, numbers, late=late):
        made = done.result
        if made is None:
            error = ModelError("SX1045", "every process that compiled it died")
            made = Made(program_name(seed, done.job, kernels), 0, 0.0, error)
        good += made.error is None
        bad += made.error is not None
        told(made)
    return good, bad


__all__ = ["ARCHES", "TRAINED", "Made", "generate", "make", "program_name", "test_share"]

"""Programs with two engines' code, in turn: processor time of their kernels when emulated.

Each program runs once, and its launches are recorded with the memory that they found.  Processes of
their own (:mod:`.engines_child`) then replay them many times with both codes in turn.  One thread
runs all waves, and its processor time within launches is what is compared (SASSXLATE_CPU_TIME), so
that neither the program's own work nor other load counts.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from sassxlate.bench.figures import Figure
from sassxlate.errors import UsageError
from sassxlate.lowering.target import DEFAULT, Target
from sassxlate.lowering.trace import recording
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.replay.against_interpreter import used_kernel
from sassxlate.runtime_shim.service import client
from sassxlate.runtime_shim.writer import writer

COMPUTES_S = 1e-4  # of processor time in launches, by the first engine: less is not in the mean
MEAN, EACH = 1.15, 1.0  # the first engine's time in the second's: geometric mean, every program
_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Times:
    """Of one process: processor seconds of all launches with each code, the least of a program's
    replays of a launch, and the words that codes left otherwise than when recorded."""

    seconds: tuple[float, ...]
    replays: int
    words: tuple[int, ...]


def _run(options: Sequence[str], more: Mapping[str, str], words: Sequence[str]) -> bytes:
    """The output of a program on the emulated device.  UsageError SX0817 if it fails."""
    command = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator", *options]
    environment = {**os.environ, "SASSXLATE_THREADS": "1", "PYTHONPATH": client.import_root()}
    done = subprocess.run(
        [*command, "--", *words], env=environment | dict(more), stdin=subprocess.DEVNULL,
        capture_output=True, timeout=_LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        said = (done.stdout + done.stderr).decode(errors="replace").strip()
        raise UsageError("SX0817", f"{Path(words[-1]).name}: {said[-200:]}")
    return done.stdout


def recorded(program: Path, target: Target, place: Path) -> Path | None:
    """The record of the program's launches; None if it launches nothing."""
    options = ["--engine", "rules", "--target", target.name]
    _run(options, {"SASSXLATE_RECORD": str(place)}, [str(program)])
    found = sorted(place.glob("launches-*"), key=lambda path: path.stat().st_size)
    return found[-1] if found else None  # of several processes the one that launched most


def codes_of(
    record: Path, engines: Sequence[str], target: Target, place: Path
) -> dict[str, list[Path]]:
    """For each kernel's key the engines' code objects, as files of ``place``."""
    one_each: dict[str, recording.Recorded] = {}

    def unseen(_: str, key: str) -> bool:
        return key not in one_each

    for launch in recording.read(record, unseen):
        one_each[launch.key] = launch
    cache = paths.cache_dir()
    codes: dict[str, list[Path]] = {}
    for key, launch in one_each.items():
        used = used_kernel(cache, launch) or used_kernel(cache / "rules", launch)
        if used is None:
            raise UsageError("SX0817", f"{launch.kernel}: its code is not in the cache")
        codes[key] = []
        for number, engine in enumerate(engines):
            by = writer(engine, None, 1, target.name)
            by.keeps = ()
            made, _ = by.translate(used[0], used[1].name)
            path = place / f"{len(codes)}-{number}.hsaco"
            path.write_bytes(made.code_object)
            codes[key].append(path)
    return codes


def replayed(
    record: Path,
    codes: Mapping[str, Sequence[Path]],
    target: Target,
    place: Path,
    *,
    turned: bool = False,
) -> Times:
    """The times of all launches, by one process that replays them.  ``turned``: the last code is
    loaded, and begins, first, since where code lies matters."""
    step = -1 if turned else 1
    asked = {"record": str(record), "codes": {k: [*map(str, v)][::step] for k, v in codes.items()}}
    spec = place / "spec"
    spec.write_text(json.dumps(asked))
    words = [sys.executable, "-P", "-m", "sassxlate.bench.engines_child", str(spec)]
    options = ["--tier", "llvm", "--target", target.name]
    said = _run(options, {"SASSXLATE_CPU_TIME": str(place / "cpu")}, words)
    answer: dict[str, Any] = json.loads(said)
    if "error" in answer:
        raise UsageError("SX0817", str(answer["error"]))
    times = times_of(answer["rows"])
    return Times(times.seconds[::step], times.replays, times.words[::step])


def times_of(rows: Sequence[Mapping[str, Any]]) -> Times:
    """The sum over launches, each with its weight."""
    columns = zip(*(row["seconds"] for row in rows), strict=True)
    weights = [row["weight"] for row in rows]
    seconds = tuple(sum(w * s for w, s in zip(weights, c, strict=True)) for c in columns)
    words = tuple(map(sum, zip(*(row["words"] for row in rows), strict=True)))
    return Times(seconds, min(row["replays"] for row in rows), words)


def _figure(
    program: Path, engines: Sequence[str], repeat: int, target: Target, place: Path
) -> tuple[Figure, float] | None:
    """The ratios and the first engine's seconds; None if the program launches nothing."""
    record = recorded(program, target, place)
    if record is None:
        return None
    codes = codes_of(record, engines, target, place)
    done = [replayed(record, codes, target, place, turned=n % 2 == 1) for n in range(repeat)]
    first, second = (median(t.seconds[side] for t in done) for side in (0, 1))
    name = f"{program.name}: {engines[0]} / {engines[1]} (CPU)"
    note = f"{1e3 * first:.3g} and {1e3 * second:.3g} ms, {min(t.replays for t in done)} replays"
    for engine, words in zip(engines, done[0].words, strict=True):
        note += f"; {engine}: {words} words of memory other than recorded" if words else ""
    ratios = tuple(t.seconds[0] / t.seconds[1] for t in done)
    return Figure(name, "x", ratios, "more", EACH, note), first


def measure(
    folder: Path,
    engines: tuple[str, str],
    repeat: int,
    pattern: str = "",
    target: Target = DEFAULT,
) -> list[Figure]:
    """For each executable the first engine's processor time in the second's (2: the second's code
    takes half as long), and the geometric mean of those that compute: at least ``COMPUTES_S`` by
    the first engine.  ``repeat`` processes replay each program's launches.

    Raises:
        UsageError: SX0817, a program fails, or none is there; SX0831, launches cannot be replayed.
    """
    figures: list[Figure] = []
    computing: list[float] = []
    for program in sorted(folder.iterdir()):
        runs = program.is_file() and os.access(program, os.X_OK)
        if not (runs and re.search(pattern, program.name)):
            continue
        with tempfile.TemporaryDirectory(prefix="sassxlate-engines-") as made:
            found = _figure(program, engines, repeat, target, Path(made))
        if found is not None:
            figures.append(found[0])
            computing += [found[0].median] if found[1] >= COMPUTES_S else []
    if not figures:
        raise UsageError("SX0817", f"{folder}: no executable that launches kernels")
    means = [_mean(f"the {len(figures)}", [figure.median for figure in figures], None)]
    if computing:
        means.append(_mean(f"the {len(computing)} that compute", computing, MEAN))
    return [*figures, *means]


def _mean(of: str, values: Sequence[float], target: float | None) -> Figure:
    mean = math.exp(sum(map(math.log, values)) / len(values))
    return Figure(f"geometric mean of {of}", "x", (mean,), "more", target)


__all__ = ["COMPUTES_S", "Times", "codes_of", "measure", "recorded", "replayed", "times_of"]

"""Runs the sweep on our device, group by group, and stores each kernel's line.

A folder of results has a file ``ARCH.FLAGS.jsonl``, one line per kernel, as :mod:`.driver` writes
it; ``r`` is the code and the instruction of a refusal, ``s`` how many seconds it
took, ``x`` the CRC of its source and ``v`` the release of nvcc; with an engine, ``t`` is its name
where it wrote the kernel's code, otherwise why it did not.  Kernels with a line are not run again.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.errors import SassxlateError
from sassxlate.executors import HERE, Place, work_through
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.writer import writer
from sassxlate.toolchain import Tool

from .compile import CompileError, compile_group
from .kernel import Group, Kernel
from .supervise import DRIVER, supervise

_REFUSAL = re.compile(r"sassxlate: (SX\d{4}): (?:kernel )?(\w+_\d{4}): ?(.*)")
_SILENCE_S = 300  # translating a group's kernels on a busy machine takes a while


@dataclass(frozen=True, slots=True)
class Settings:
    """The kernels to run, and the runner."""

    results: Path
    nvcc: Tool
    arch: int
    flags: str
    runner: Sequence[str]  # `sassxlate run` or words that do the same
    silence_s: float = _SILENCE_S
    engine: str = ""  # llvm or best: writes kernels' code before they run

    @property
    def file(self) -> Path:
        return self.results / f"{self.arch}.{self.flags}.jsonl"


def lines_of(file: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file of results, by kernel; one that was cut off is left out."""
    found: dict[str, dict[str, Any]] = {}
    if file.is_file():
        for text in file.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            found[str(line["k"])] = line
    return found


def run_groups(
    groups: Iterable[Group], settings: Settings, deadline: float, told: Callable[[str], None]
) -> int:
    """:func:`run_all` of one architecture and kind of flags, group after group."""
    return run_all([(group, settings) for group in groups], deadline, told)


def run_all(
    work: Sequence[tuple[Group, Settings]],
    deadline: float,
    told: Callable[[str], None],
    place: Place = HERE,
) -> int:
    """Runs what is not there yet until ``deadline``, a time of time.monotonic(); counts kernels.

    A group is a job; a cluster's workers find the folder of results under the same path.
    """
    done = {settings.file: lines_of(settings.file) for _, settings in work}

    def jobs() -> Iterator[_Job]:
        for group, settings in work:
            before = done[settings.file]
            left = tuple(
                k
                for k in group.on(settings.arch)
                if before.get(k.name, {}).get("x") != k.source_crc
            )
            if left:
                # Clocks of other machines begin elsewhere.
                yield _Job(group, left, settings, deadline - time.monotonic())

    count = 0
    for ended in work_through(place, _group, jobs(), late=lambda: time.monotonic() > deadline):
        if ended.result is None:
            told(f"{ended.job.group.name}: every process that worked on it died")
            continue
        lines, text = ended.result
        with ended.job.settings.file.open("a", encoding="utf-8") as out:
            for line in lines:
                print(json.dumps(line, separators=(",", ":")), file=out)
        count += len(lines)
        if text:
            told(text)
    return count


@dataclass(frozen=True, slots=True)
class _Job:
    """A group's kernels that have no line yet, and the seconds that are left."""

    group: Group
    left: tuple[Kernel, ...]
    settings: Settings
    seconds: float


def _group(job: _Job) -> tuple[list[dict[str, Any]], str]:
    """The lines of a group's kernels that have none yet, and what there is to say."""
    group, left, settings = job.group, job.left, job.settings
    text = ""
    deadline = time.monotonic() + job.seconds
    cubins = settings.results / "cubins"
    cubins.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        cubin = compile_group(settings.nvcc.command, group, settings.arch, settings.flags, cubins)
    except CompileError as error:
        lines: list[dict[str, Any]] = [{"k": k.name, "e": f"nvcc: {error}"} for k in left]
    else:
        built = time.monotonic() - started
        writers = _written_before(cubin, [k.name for k in left], settings.engine)
        lines = _run(group.name, cubin, [k.launch() for k in left], settings, deadline)
        lines = [{**line, **writers.get(line["k"], {})} for line in lines]
        text = (
            f"{group.name} sm_{settings.arch} {settings.flags}: {len(lines)} kernels, nvcc "
            f"{built:.1f} s, run {time.monotonic() - started - built:.1f} s"
        )
        cubin.unlink()
    crcs = {k.name: k.source_crc for k in left}
    release = settings.nvcc.version
    return [{**line, "x": crcs[line["k"]], "v": release} for line in lines], text


def _written_before(cubin: Path, names: Sequence[str], engine: str) -> dict[str, dict[str, str]]:
    """Stores an engine's code of kernels where ``sassxlate run --engine`` finds it.  By kernel,
    what is told of its writer; empty for a kernel that the rules refuse, too."""
    if not engine:
        return {}
    made = writer(engine, None, 1)
    made.keeps_in(paths.cache_dir())
    parsed = parse_cubin(cubin.read_bytes())
    told: dict[str, dict[str, str]] = {}
    for name in names:
        try:
            _, report = made.translate(parsed, name)
        except SassxlateError:
            continue  # the run says so
        assert report is not None
        (whole,) = report.blocks
        told[name] = {"t": engine if whole.outcome == "accepted" else whole.detail[:200]}
    return told


def _run(
    name: str,
    cubin: Path,
    launches: list[dict[str, object]],
    settings: Settings,
    deadline: float,
) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    last = time.monotonic()

    def put(line: dict[str, Any]) -> None:
        nonlocal last
        now = time.monotonic()
        lines.append({**line, "s": round(now - last, 1)})
        last = now

    errors = settings.results / "cubins" / f"{name}.{settings.arch}.{settings.flags}.stderr"
    errors.unlink(missing_ok=True)
    engine = ("--engine", settings.engine) if settings.engine else ()
    environment = {**os.environ, "SASSXLATE_CC": f"{settings.arch // 10}.{settings.arch % 10}"}
    supervise(
        [*settings.runner, *engine, "--", sys.executable, *DRIVER],
        [{"cubin": str(cubin), "kernels": launches}],
        put,
        silence_s=settings.silence_s,
        deadline=deadline + settings.silence_s,
        environment=environment,
        errors=errors,
    )
    refused: dict[str, str] = {}
    said = errors.read_text(encoding="utf-8", errors="replace")
    for match in _REFUSAL.finditer(said):
        refused.setdefault(match.group(2), f"{match.group(1)} {match.group(3)}"[:200])
    for line in lines:
        if "e" in line and line["k"] in refused:
            line["r"] = refused[line["k"]]
    if not any("e" in line for line in lines):
        errors.unlink(missing_ok=True)
    return lines

"""Runs the sweep on our device, group by group, and stores each kernel's line.

A folder of results has a file ``ARCH.FLAGS.jsonl``, one line per kernel, as :mod:`.driver` writes
it; ``r`` is the code and the instruction of a refusal, ``s`` how many seconds it
took, ``x`` the CRC of its source and ``v`` the release of nvcc.  Kernels with a line are not run
again.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.toolchain import Tool

from .compile import CompileError, compile_group
from .kernel import Group
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
    """Runs what is not there yet until ``deadline``, a time of time.monotonic(); counts kernels."""
    cubins = settings.results / "cubins"
    cubins.mkdir(parents=True, exist_ok=True)
    done = lines_of(settings.file)
    count = 0
    for group in groups:
        left = [k for k in group.on(settings.arch) if done.get(k.name, {}).get("x") != k.source_crc]
        if not left or time.monotonic() > deadline:
            continue
        started = time.monotonic()
        lines: list[dict[str, Any]] = []
        try:
            cubin = compile_group(
                settings.nvcc.command, group, settings.arch, settings.flags, cubins
            )
        except CompileError as error:
            lines = [{"k": k.name, "e": f"nvcc: {error}"} for k in left]
        else:
            built = time.monotonic() - started
            lines = _run(cubin, [k.launch() for k in left], settings, deadline)
            told(
                f"{group.name} sm_{settings.arch} {settings.flags}: {len(lines)} kernels, nvcc "
                f"{built:.1f} s, run {time.monotonic() - started - built:.1f} s"
            )
            cubin.unlink()
        crcs = {k.name: k.source_crc for k in left}
        release = settings.nvcc.version
        lines = [{**line, "x": crcs[line["k"]], "v": release} for line in lines]
        with settings.file.open("a", encoding="utf-8") as out:
            for line in lines:
                print(json.dumps(line, separators=(",", ":")), file=out)
        count += len(lines)
    return count


def _run(
    cubin: Path, launches: list[dict[str, object]], settings: Settings, deadline: float
) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    last = time.monotonic()

    def put(line: dict[str, Any]) -> None:
        nonlocal last
        now = time.monotonic()
        lines.append({**line, "s": round(now - last, 1)})
        last = now

    errors = settings.results / f"{settings.arch}.{settings.flags}.stderr"
    errors.unlink(missing_ok=True)
    environment = {**os.environ, "SASSXLATE_CC": f"{settings.arch // 10}.{settings.arch % 10}"}
    supervise(
        [*settings.runner, sys.executable, *DRIVER],
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
    return lines

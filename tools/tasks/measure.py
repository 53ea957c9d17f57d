"""Builds the sample, runs each tool's commands in it and measures them."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate import toolchain
from tools.tasks.declared import OURS, OtherTool, Task, Way

SAMPLE = Path(__file__).with_name("sample.cu")
_BUILDS = {
    "build1": ["-DBUILD=1", "-gencode", "arch=compute_80,code=sm_80", "-gencode",
               "arch=compute_90,code=[sm_90,compute_90]"],
    "build2": ["-DBUILD=2", "-gencode", "arch=compute_80,code=sm_80"],
    "spills": ["-DBUILD=1", "-maxrregcount", "32", "-arch", "sm_80"],
}  # fmt: skip
_LIMIT_S = 120.0
_FOUND_BY: Mapping[str, Callable[[], toolchain.Tool | None]] = {
    "cuobjdump": toolchain.cuobjdump,
    "nvdisasm": toolchain.nvdisasm,
}
# LLVM disassembles gfx1100 from 15 on.
_OTHER_NAMES = {"llvm-objdump": [f"llvm-objdump-{n}" for n in range(23, 14, -1)]}


class TaskError(Exception):
    """The sample cannot be built, or an answer is not the one expected."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One tool's way: the median wall time, None where it was not run; ``fault`` if the answer
    is not the expected one; the median of the processor's seconds, None where they are not all
    known."""

    seconds: float | None = None
    fault: str = ""
    processor: float | None = None


def bin_folder(folder: Path, tools: Sequence[OtherTool]) -> set[str]:
    """Links to all programs that are here, in ``folder``; the names of tools that can be run."""
    folder.mkdir()
    (folder / OURS).symlink_to(Path(sys.executable).with_name(OURS))
    here: set[str] = {OURS}
    for tool in tools:
        found = [_program(name) for name in tool.programs]
        for name, path in zip(tool.programs, found, strict=True):
            if path is not None:
                (folder / name).symlink_to(path)
        if all(found):
            here.add(tool.name)
    return here


def _program(name: str) -> Path | None:
    if name in _FOUND_BY:
        tool = _FOUND_BY[name]()
        return Path(tool.command[0]).absolute() if tool and Path(tool.command[0]).exists() else None
    found = next(filter(None, map(shutil.which, [*_OTHER_NAMES.get(name, []), name])), None)
    return Path(found).absolute() if found else None


def build(folder: Path, environment: Mapping[str, str]) -> None:
    """build1, build2, spills, stripped and translated/ in ``folder``.

    Raises:
        TaskError: there is no nvcc, or something cannot be built.
    """
    nvcc = toolchain.nvcc()
    if nvcc is None:
        raise TaskError("there is no nvcc, neither on PATH nor in a wheel")
    source = str(shutil.copy(SAMPLE, folder / "sample.cu"))
    for name, flags in _BUILDS.items():
        shared = ["-O3", "-lineinfo", "-cudart", "shared", "-o", name, source]
        _made([*nvcc.command, *flags, *shared], folder, environment)
    _made(["strip", "-o", "stripped", "build1"], folder, environment)
    translate = [OURS, "translate", "build1", "--arch", "sm_80", "-o", "translated"]
    _made(translate, folder, environment)


def _made(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise TaskError(f"{' '.join(command)}: {done.stderr.strip()}")


def one(way: Way, sample: Path, environment: Mapping[str, str]) -> Measured:
    """Runs a tool's commands in a folder of their own, with an empty cache."""
    # The service may still write while it ends.
    with tempfile.TemporaryDirectory(dir=sample.parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for file in sample.iterdir():
            (folder / file.name).symlink_to(file)
        own = {**environment, "XDG_CACHE_HOME": str(folder / ".cache"), "XDG_RUNTIME_DIR": name}
        os.chmod(folder, 0o700)
        started, before = time.monotonic(), _processor()
        try:
            done = subprocess.run(
                ["bash", "-c", way.commands],
                cwd=folder,
                env=own,
                capture_output=True,
                timeout=_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Measured(None, f"no answer in {_LIMIT_S:.0f} s")
        seconds = time.monotonic() - started
        used = None if way.service else _processor() - before
        if OURS in way.commands:  # its service serves this folder alone
            subprocess.run([OURS, "service", "stop"], env=own, capture_output=True, check=False)
    text = (done.stdout + done.stderr).decode("utf-8", "replace")
    if not re.search(way.expects, text):
        return Measured(seconds, f"status {done.returncode}, and no {way.expects!r}: {text[-300:]}")
    return Measured(seconds, processor=used)


def _processor() -> float:
    """The processor's seconds of all processes that ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(
    tasks: Sequence[Task], here: set[str], sample: Path, environment: Mapping[str, str], rounds: int
) -> Iterator[dict[str, Measured]]:
    """Each task's results by tool.  The tools take turns, so that a load meets them alike."""
    for task in tasks:
        found: dict[str, list[Measured]] = {}
        for _ in range(rounds):
            for name, way in task.ways.items():
                if way.commands and name in here:
                    found.setdefault(name, []).append(one(way, sample, environment))
        yield {name: _median(several) for name, several in found.items()}


def _median(several: Sequence[Measured]) -> Measured:
    fault = next((m.fault for m in several if m.fault), "")
    times = sorted(m.seconds for m in several if m.seconds is not None)
    used = sorted(m.processor for m in several if m.processor is not None)
    return Measured(
        times[len(times) // 2] if times else None, fault, used[len(used) // 2] if used else None
    )

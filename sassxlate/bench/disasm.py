"""Compares our disassembler with NVIDIA's on the same cubins, in one run.

Every time is CPU time of one process without threads.  Times without start-up are, for ours,
measured inside a new process that has imported everything and decoded nothing; for nvdisasm, its
time minus that for a single word.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sassxlate.bench.disasm_child import codes_of
from sassxlate.bench.figures import Figure, ratio
from sassxlate.disasm.inputs import read_input
from sassxlate.disasm.sass.tables.spec import GENERATION_OF
from sassxlate.errors import EXIT_BAD_WORDS, UsageError, Where
from sassxlate.toolchain import Tool, nvdisasm

DECODE_BYTES = 200  # bytes of memory per instruction
TEXT_BYTES = 1000
_NOP = (0x000FC00000000000 << 64 | 0x7918).to_bytes(16, "little")
_LIMIT_S = 600
# Traced memory once the results exist, its peak, and growth of the process.
_MEMORY = ("held", "peak", "grown")


@dataclass(frozen=True, slots=True)
class Sample:
    """The cubins to read, as files of a directory, and their contents."""

    paths: tuple[Path, ...]
    instructions: int
    distinct: int


def gather(files: Iterable[str], folder: Path, limit: int) -> Sample:
    """The cubins of files with a supported architecture, until they hold ``limit`` instructions.

    Raises UsageError SX0818 if there is none.
    """
    paths: list[Path] = []
    words: set[bytes] = set()
    total = 0
    for file in files:
        for _, data, cubin in read_input(file).images():
            code = b"".join(codes_of(cubin))
            if cubin.arch not in GENERATION_OF or not code or total >= limit:
                continue
            total += len(code) // 16
            words.update(code[at : at + 16] for at in range(0, len(code), 16))
            paths.append(folder / f"{len(paths)}.cubin")
            paths[-1].write_bytes(data)
    if not paths:
        raise UsageError("SX0818", "the files hold no SASS", Where(", ".join(files)))
    return Sample(tuple(paths), total, len(words))


@dataclass(frozen=True, slots=True)
class _Ran:
    """A process: its CPU seconds, and a measuring process's output."""

    seconds: float
    said: dict[str, float]


def _run(command: Sequence[str], reads: bool, good: Sequence[int] = (0,)) -> _Ran:
    before = os.times()
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if reads else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=_LIMIT_S,
        check=False,
    )
    after = os.times()
    if done.returncode not in good:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise UsageError("SX0817", f"{Path(command[0]).name} ended badly: {''.join(last)}")
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    said: dict[str, Any] = json.loads(done.stdout) if reads else {}
    return _Ran(spent, said)


def _ours(action: str, paths: Sequence[Path]) -> _Ran:
    module = "sassxlate.bench.disasm_child"
    return _run([sys.executable, "-m", module, action, *map(str, paths)], True)


def _alone(action: str, path: Path) -> float:
    """The CPU time of a separate process for one file."""
    if action == "text":
        command = [sys.executable, "-m", "sassxlate", "disasm", str(path)]
        return _run(command, False, (0, EXIT_BAD_WORDS)).seconds
    return _ours(action, [path]).seconds


def _theirs(tool: Tool, paths: Sequence[Path]) -> float:
    return sum(_run([*tool.command, "-c", str(path)], False).seconds for path in paths)


def _startup(tool: Tool, folder: Path) -> float:
    word = folder / "nop.bin"
    word.write_bytes(_NOP)
    return _run([*tool.command, "--binary", "SM80", str(word)], False).seconds


class _Taken:
    """Values by figure, in the order they were taken."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[float]] = {}

    def add(self, name: str, unit: str, value: float) -> None:
        self._values.setdefault((name, unit), []).append(value)

    def figure(self, name: str, unit: str = "words/s", note: str = "") -> Figure:
        values = tuple(self._values[name, unit])
        return Figure(name, unit, values, "more" if unit == "words/s" else "less", None, note)


def measure(files: Sequence[str], repeat: int, limit: int) -> list[Figure]:
    """Times decoding and printing the files' cubins, by us and by nvdisasm if it is found."""
    tool = nvdisasm()
    with tempfile.TemporaryDirectory(prefix="sassxlate-bench-") as name:
        folder = Path(name)
        sample = gather(files, folder, limit)
        return _measure(sample, folder, repeat, tool)


def _measure(sample: Sample, folder: Path, repeat: int, tool: Tool | None) -> list[Figure]:
    count, paths, taken = sample.instructions, sample.paths, _Taken()
    for _ in range(repeat):
        if tool is not None:
            idle = min(_startup(tool, folder) for _ in range(2))
            whole = _theirs(tool, paths)
            taken.add("nvdisasm start-up", "s", idle)
            taken.add("nvdisasm", "words/s", count / max(whole - idle * len(paths), 1e-3))
            taken.add("nvdisasm, with start-up", "words/s", count / whole)
        for action in ("decode", "registers", "objects", "text"):
            # With start-up: a process for each file, as nvdisasm needs.
            inside = _ours(action, paths)
            taken.add(action, "words/s", count / inside.said["seconds"])
            if action in ("decode", "text"):
                each = sum(_alone(action, path) for path in paths)
                taken.add(f"{action}, with start-up", "words/s", count / each)
        for action in ("decode", "text"):
            said = _ours(f"{action}-memory", paths).said
            said |= _ours(f"{action}-resident", paths).said
            for kind in _MEMORY:
                taken.add(f"{action}: memory {kind}", "B/word", max(said[kind], 1) / count)
    return _figures(sample, taken, tool)


def _witness(tool: Tool) -> str:
    digest = hashlib.sha256(Path(tool.command[0]).read_bytes()).hexdigest()
    return f"{tool.version}, {tool.origin}, sha256 {digest[:16]}"


def _figures(sample: Sample, taken: _Taken, tool: Tool | None) -> list[Figure]:
    out: list[Figure] = []
    count = len(sample.paths)
    note = f"{count} cubin{'s' if count != 1 else ''}, {sample.instructions} instructions"
    note += f", {sample.distinct} distinct words"
    ours = [
        taken.figure("decode", note=note),
        taken.figure("registers", note="decoded, and registers read and written as columns"),
        taken.figure("objects", note="decoded, and every instruction made into an object once"),
        taken.figure("text", note="decoded and printed as a listing"),
        taken.figure("decode, with start-up"),
        taken.figure("text, with start-up"),
    ]
    out += ours
    if tool is not None:
        theirs = taken.figure("nvdisasm", note=_witness(tool))
        started = taken.figure("nvdisasm, with start-up")
        out += [theirs, started, taken.figure("nvdisasm start-up", "s")]
        for figure in ours:
            other = started if figure.name.endswith("start-up") else theirs
            target = None if figure.name in ("registers", "objects") else 1.0
            found = ratio(f"{figure.name} / nvdisasm", figure, other)
            out.append(Figure(found.name, "x", found.values, "more", target))
    for action, target in (("decode", DECODE_BYTES), ("text", TEXT_BYTES)):
        for kind in _MEMORY:
            found = taken.figure(f"{action}: memory {kind}", "B/word")
            out.append(Figure(found.name, found.unit, found.values, "less", float(target)))
    return out

"""The programs of a folder, with their arguments, and what they print on an NVIDIA GPU."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sassxlate.errors import SassxlateError, UsageError, Where
from sassxlate.output import write_whole


@dataclass(frozen=True, slots=True)
class BenchProgram:
    """An executable and how to run it; ``name`` is its directory below the folder."""

    name: str
    path: Path
    arch: str
    sha: str
    args: tuple[str, ...] = ()
    domain: str = ""
    proof: str = ""
    ignore: str = ""  # lines of the output that the program itself leaves open
    multiprocessors: int = 0  # that the device advertises, where the output depends on it

    @property
    def key(self) -> str:
        """The key of a result: the file's bytes and the arguments."""
        return f"{self.sha[:32]} {shlex.join(self.args)}"


@dataclass(frozen=True, slots=True)
class Truth:
    """The results of the program on an NVIDIA GPU, in one or more runs."""

    status: int
    out: tuple[str, ...]
    err: tuple[str, ...]


def find(folder: Path, sample: Path | None) -> list[BenchProgram]:
    """The executables with device code below ``folder``: all, or those that ``sample`` names.

    Raises UsageError SX0824 for a folder or sample that cannot be read or has nothing to run.
    """
    wanted = _sample(sample) if sample else None
    found: list[BenchProgram] = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or not os.access(path, os.X_OK):
            continue
        name = _name(folder, path)
        if wanted is not None and name not in wanted:
            continue
        data = path.read_bytes()
        if data[:4] != b"\x7fELF" or b".nv_fatbin" not in data:
            continue
        beside = wanted[name] if wanted is not None else _beside(path)
        sha = hashlib.sha256(data).hexdigest()
        found.append(
            BenchProgram(
                name,
                path,
                _arch(path),
                sha,
                tuple(shlex.split(str(beside.get("args") or ""))),
                str(beside.get("domain") or ""),
                str(beside.get("proof") or ""),
                str(beside.get("ignore") or ""),
                int(beside.get("multiprocessors") or 0),
            )
        )
    if not found:
        raise UsageError("SX0824", "no executables with device code to run", Where(str(folder)))
    return found


def read_truth(file: Path) -> dict[str, Truth]:
    """``{name: {"args": .., "runs": [{"status": .., "out": .., "err": ..}, ..]}}`` as Truth."""
    try:
        data = json.loads(file.read_text())
        return {
            f"{name} {shlex.join(shlex.split(entry.get('args') or ''))}": Truth(
                entry["runs"][0]["status"],
                tuple(run["out"] for run in entry["runs"]),
                tuple(run.get("err", "") for run in entry["runs"]),
            )
            for name, entry in data.items()
        }
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise UsageError(
            "SX0824", f"no outputs to compare with: {error}", Where(str(file))
        ) from None


def add_run(file: Path, program: BenchProgram, run: tuple[int, str, str]) -> None:
    """Add a run (status, standard output, standard error) to a file that `read_truth` reads; it
    need not exist.  Runs with other arguments are dropped."""
    known: dict[str, Any] = {}
    with suppress(FileNotFoundError, ValueError):
        known = json.loads(file.read_text())
    args = shlex.join(program.args)
    entry: dict[str, Any] = known.get(program.name, {})
    runs: list[Any] = entry["runs"] if entry.get("args") == args else []
    runs.append(dict(zip(("status", "out", "err"), run, strict=True)))
    known[program.name] = {"args": args, "runs": runs}
    write_whole(file, json.dumps(known, indent=1).encode())


def _sample(file: Path) -> dict[str, Mapping[str, Any]]:
    try:
        with open(file, "rb") as stream:
            return {entry["name"]: entry for entry in tomllib.load(stream)["program"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError("SX0824", f"no sample: {error}", Where(str(file))) from None


def _name(folder: Path, path: Path) -> str:
    relative = path.relative_to(folder)
    return str(relative.parent) if len(relative.parts) > 1 else relative.name


def _beside(path: Path) -> Mapping[str, Any]:
    """Reads a file run.json beside an executable, with its arguments."""
    with suppress(OSError, ValueError):
        value = json.loads((path.parent / "run.json").read_text())
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    return {}


def _arch(path: Path) -> str:
    from sassxlate.disasm.containers import load

    try:
        names = {f"sm_{cubin.arch}" for _, cubin in load(str(path)).cubins()}
    except SassxlateError:
        return "?"
    return " ".join(sorted(names)) or "no SASS"

"""Which single instructions a difference of memory comes from.

A dispatch whose memory differs is run again, and every instruction of a wave that wrote such a word
is looked at.  Opcodes that do something else are corrected from then on, until memory is equal or
nothing new is found.  What is left then is not attributed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tools.witness.executor.child import TAKEN

_TRIES = 40  # processes, until one has nothing at the dispatch's addresses
_LANES = 32


@dataclass(frozen=True, slots=True)
class Asked:
    """What the executor shall do with a dispatch beside running it (`single.Singles`)."""

    often: int = 0
    correct: tuple[str, ...] = ()
    attribute: bool = False
    waves: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one dispatch: the child's words, or why there are none.  ``ops``: opcodes that
    were corrected because this dispatch's memory differed, with examples."""

    file: Path
    said: dict[str, Any]
    failed: str = ""
    ops: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    @property
    def verdict(self) -> str:
        if self.failed:
            return "failed"
        if self.said["differ"]:
            return "differs"
        return "attributed" if self.ops else "equal"


def compare(file: Path, checkout: Path, asked: Asked, limit: float) -> Compared:
    """One dispatch in a process of its own, within ``limit`` seconds."""
    command = [sys.executable, "-m", "tools.witness.executor.child"]
    command += [str(file), str(checkout), json.dumps(asdict(asked))]
    env = dict(os.environ)
    env.setdefault("CC", shutil.which("clang") or "clang")
    for _ in range(_TRIES):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env)
        except subprocess.TimeoutExpired:
            return Compared(file, {}, f"not done in {limit:.0f} s")
        if done.returncode == TAKEN:
            continue
        if done.returncode:
            return Compared(file, {}, (done.stderr.strip() or "killed").splitlines()[-1])
        return Compared(file, json.loads(done.stdout.splitlines()[-1]))
    return Compared(file, {}, "no process without something at the dispatch's addresses")


def attribute(file: Path, checkout: Path, asked: Asked, limit: float) -> Compared:
    """One dispatch, again and again, each in ``limit`` seconds, with what was found corrected."""
    asked = replace(asked, attribute=True)
    done = compare(file, checkout, asked, limit)
    ops: dict[str, dict[str, Any]] = {}
    while not done.failed and done.said["differ"]:
        new = _new(done, checkout, asked, limit)
        if not new:
            break
        ops |= new
        asked = replace(asked, correct=(*asked.correct, *new))
        done = compare(file, checkout, asked, limit)
    return replace(done, ops=ops)


def _new(done: Compared, checkout: Path, asked: Asked, limit: float) -> dict[str, dict[str, Any]]:
    """Opcodes that do something else in the waves that wrote words that differ; else in these
    waves' workgroups, whose memory they read."""
    writers = done.said["waves"][:1]
    x, y, z = done.said["workgroup"]
    size = -(-x * y * z // _LANES)
    groups = {wave // size for wave in writers}
    for waves in (writers, [g * size + i for g in groups for i in range(size)]):
        looked = compare(done.file, checkout, replace(asked, waves=tuple(waves)), limit)
        if looked.failed:
            break
        found = [one | {"kind": kind} for kind in ("near", "wrong") for one in looked.said[kind]]
        new = {one["op"]: one for one in found if one["op"] not in asked.correct}
        if new:
            return new
    return {}

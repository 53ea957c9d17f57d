"""AMD's comgr, the library by which ROCm reads code objects: what it sees in ours."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sassxlate.lowering.codeobject.code_object import read as read_code_object
from tools.rocm import folder
from tools.witness.judge.machine_code import JudgeError, decode
from tools.witness.judge.objects import Made

_CHILD = Path(__file__).with_name("comgr_child.py")


@dataclass(frozen=True, slots=True)
class Seen:
    """``isa`` is its name for the processor; ``metadata`` has text for numbers, as comgr gives it;
    ``text`` is each instruction of .text: its bytes' count, and how comgr prints it."""

    isa: str
    metadata: dict[str, Any]
    text: tuple[tuple[int, str], ...]


def why_not(version: str) -> str:
    """Why a version's comgr cannot be asked here; empty if it can."""
    if folder.present(version):
        return ""
    return f"ROCm {version} is not in {folder.root(version)}: python -m tools.rocm fetch {version}"


def read(objects: Sequence[bytes], version: str) -> Iterator[Seen]:
    """What comgr reads in each code object.

    Raises:
        JudgeError: comgr refuses one, or does not run.
        ShimError: SX0864, the version has not been fetched.
    """
    command = [*folder.loader(version), sys.executable, "-I", "-S", str(_CHILD)]
    given = b"".join(len(data).to_bytes(8, "little") + data for data in objects)
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != len(objects):
        raise JudgeError(f"comgr: {done.stderr.decode(errors='replace').strip()[-500:]}")
    for line in lines:
        said = json.loads(line)
        if "error" in said:
            raise JudgeError(f"comgr: {said['error']}")
        yield Seen(said["isa"], said["metadata"], tuple((n, text) for n, text in said["text"]))


def differences(made: Made, seen: Seen) -> list[str]:
    """Where comgr reads something else than we wrote, or than LLVM's disassembler prints."""
    mine = read_code_object(made.code_object)
    found: list[str] = []
    if seen.isa != mine.target.isa:
        found.append(f"ISA {seen.isa}, not {mine.target.isa}")
    found += _compared("", seen.metadata, _as_text(mine.metadata))
    (code,) = decode([mine.text], halves=True)
    theirs = [(inst.size, " ".join(inst.text.split())) for inst in code]
    found += [f"{a}, not {b}" for a, b in zip(seen.text, theirs, strict=False) if a != b]
    if len(seen.text) != len(theirs):
        found.append(f"{len(seen.text)} instructions, not {len(theirs)}")
    return found


def _as_text(value: object) -> object:
    if isinstance(value, dict):
        pairs = cast(dict[object, object], value).items()
        return {str(key): _as_text(item) for key, item in pairs}
    if isinstance(value, list):
        return [_as_text(item) for item in cast(list[object], value)]
    return str(int(value) if isinstance(value, bool) else value)


def _compared(where: str, theirs: object, mine: object) -> list[str]:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        left, right = cast(dict[str, object], theirs), cast(dict[str, object], mine)
        return [
            line
            for key in sorted(left.keys() | right.keys())
            for line in _compared(f"{where}/{key}", left.get(key), right.get(key))
        ]
    if isinstance(theirs, list) and isinstance(mine, list):
        items, others = cast(list[object], theirs), cast(list[object], mine)
        if len(items) == len(others):
            pairs = enumerate(zip(items, others, strict=True))
            return [line for n, (a, b) in pairs for line in _compared(f"{where}/{n}", a, b)]
    return [] if theirs == mine else [f"{where}: {theirs!r}, not {mine!r}"]

"""The self-checking programs' output on a real GPU: storing it, and comparing with it.

``python -m tools.silicon.program_truth TRUTH.TXT`` splits a file with the output of all programs,
whose
parts begin with ``== NAME SIZE status STATUS``, into ``fixtures/programs/truth/sm_90``.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.generate.programs import PROGRAMS, BuildError, find_toolkit, load_programs

TRUTH = PROGRAMS / "truth" / "sm_90"
_LINE = re.compile(r"(int|bits|float): (\w+) = (\S+)(?: tolerance (\S+))?")


@dataclass(frozen=True, slots=True)
class Fact:
    """One printed result; ``tolerance`` is absolute, and None if the text must be equal."""

    kind: str
    name: str
    value: str
    tolerance: float | None

    def agrees(self, other: Fact) -> bool:
        """Whether two runs' facts are the same, within the tolerance of this one."""
        if (self.kind, self.name) != (other.kind, other.name):
            return False
        if self.tolerance is None:
            return self.value == other.value
        here, there = float(self.value), float(other.value)
        return here == there or (
            math.isfinite(here) and math.isfinite(there) and abs(here - there) <= self.tolerance
        )


def facts(output: str) -> list[Fact]:
    """The results among a program's lines, in order."""
    found: list[Fact] = []
    for line in output.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            kind, name, value, tolerance = match.groups()
            found.append(Fact(kind, name, value, float(tolerance) if tolerance else None))
    return found


def differences(truth: str, output: str, *, same_code: bool) -> list[str]:
    """The differences of ``output`` from ``truth``; ``bits`` lines count for the same machine
    code."""
    kinds = {"int", "float", "bits"} if same_code else {"int", "float"}
    wanted = [fact for fact in facts(truth) if fact.kind in kinds]
    got = [fact for fact in facts(output) if fact.kind in kinds]
    if len(wanted) != len(got):
        return [f"{len(got)} results where the GPU has {len(wanted)}"]
    return [
        f"{left.name}: {right.value} where the GPU has {left.value}"
        for left, right in zip(wanted, got, strict=True)
        if not left.agrees(right)
    ]


def load_truth(name: str, size: str) -> str | None:
    """The GPU's output, or None if it is not stored."""
    path = TRUTH / f"{name}.{size}.txt"
    return path.read_text() if path.is_file() else None


def truth_toolkit() -> str | None:
    """The release of the nvcc that built what the GPU ran."""
    readme = TRUTH / "README.md"
    match = re.search(r"nvcc (\d[\d.]*\d)", readme.read_text()) if readme.is_file() else None
    return match.group(1) if match else None


def keep(combined: str, release: str) -> list[Path]:
    """Writes one file per program and size, and the README.  Raises ValueError unless all
    passed."""
    header, *parts = re.split(r"^== ", combined, flags=re.M)
    found: dict[tuple[str, str], str] = {}
    for part in parts:
        title, _, output = part.partition("\n")
        name, size, _, status = title.split()
        lines = [line for line in output.splitlines() if not line.startswith("time:")]
        if status != "0" or not lines or lines[-1] != "PASS":
            raise ValueError(f"{name} {size} ended with {status}, not PASS")
        found[name, size] = "\n".join(lines) + "\n"
    wanted = {(p.name, size) for p in load_programs().values() for size in p.sizes}
    if wanted != set(found):
        raise ValueError(f"not the programs of programs.toml: {sorted(wanted ^ set(found))}")
    about = dict(re.findall(r"^# (\w+): (.+)$", header, flags=re.M))
    TRUTH.mkdir(parents=True, exist_ok=True)
    for (name, size), output in found.items():
        (TRUTH / f"{name}.{size}.txt").write_text(output)
    (TRUTH / "README.md").write_text(
        "# What the programs print on a real GPU\n\n"
        f"* GPU and driver: {about['gpu']}\n* date: {about['date']}\n"
        f"* built by nvcc {release} for sm_90\n\n"
        "One file per program and size of `../../src/programs.toml`, without the `time:` lines.\n"
        "Written by `tools/silicon/program_truth.py`.\n"
    )
    return sorted(TRUTH.iterdir())


def main(arguments: Sequence[str] | None = None) -> int:
    """Keeps the output of a run on a GPU."""
    parser = argparse.ArgumentParser(description="Keep what the programs printed on a GPU.")
    parser.add_argument("combined", type=Path)
    parser.add_argument("--nvcc", help="the release that built them; that found here by default")
    options = parser.parse_args(arguments)
    try:
        kept = keep(options.combined.read_text(), options.nvcc or find_toolkit().release)
    except (BuildError, ValueError, KeyError) as error:
        print(f"program_truth: {error}", file=sys.stderr)
        return 2
    print(f"{len(kept)} files in {TRUTH}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

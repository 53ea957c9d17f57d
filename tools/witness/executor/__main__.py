"""``python -m tools.witness.executor compare FOLDER... --checkout TINYGRAD``: recorded dispatches
on another executor."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tools.witness.executor import record
from tools.witness.executor.child import TAKEN
from tools.witness.executor.tinygrad import EMULATOR

FAULTS = Path(__file__).with_name("tinygrad.toml")
_TRIES = 40  # processes, until one has nothing at the dispatch's addresses


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one dispatch: the child's words, or why there are none."""

    file: Path
    said: dict[str, Any]
    failed: str = ""


def known_faults(file: Path = FAULTS) -> frozenset[str]:
    """The opcodes in the list of what is wrong in the executor."""
    return frozenset(op for row in tomllib.loads(file.read_text())["fault"] for op in row["ops"])


def compare(
    file: Path, checkout: Path, often: int, correct: Sequence[str], limit: float
) -> Compared:
    """One dispatch in a process of its own, within ``limit`` seconds."""
    command = [sys.executable, "-m", "tools.witness.executor.child"]
    command += [str(file), str(checkout), str(often), ",".join(correct)]
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


@click.group()
def main() -> None:
    """An executor of RDNA3 that is not ours, on dispatches that AMD's runtime made."""


@main.command(name="compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--checkout",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help=f"A checkout of tinygrad's repository ({EMULATOR}).",
)
@click.option("--often", default=0, help="Look so often at each instruction of a kernel.")
@click.option("--correct", is_flag=True, help="With the known faults (tinygrad.toml) corrected.")
@click.option("--limit", default=600.0, show_default=True, help="Seconds for each dispatch.")
@click.option("--only", default="", help="Kernels whose name has this in it.")
def compare_(
    folders: tuple[Path, ...], checkout: Path, often: int, correct: bool, limit: float, only: str
) -> None:
    """Memory after each recorded dispatch in FOLDERS, compared.  1 if any differs.

    SASSXLATE_RECORD_DISPATCHES=FOLDER makes `sassxlate run --emulated-card` record them.
    """
    ops = sorted(known_faults()) if correct else []
    sums: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for folder in folders:
        for file in sorted(folder.glob("DISPATCH.*")):
            if only not in record.read(file).kernel:
                continue
            done = compare(file, checkout.absolute(), often, ops, limit)
            said = done.said
            verdict = "failed" if done.failed else "differs" if said["differ"] else "equal"
            sums[verdict] += 1
            name = f"{folder.name}/{file.name[9:]}"
            if done.failed:
                click.echo(f"{name}: {done.failed}")
                continue
            unknown.update(said["unknown"])
            size = "x".join(map(str, said["groups"]))
            fixed = sum(said["corrected"].values())
            click.echo(
                f"{name} {said['kernel']} {size}: {verdict}"
                + (f", {said['differ']} words" if said["differ"] else "")
                + (f", {said['looked_at']} instructions looked at" if often else "")
                + (f", {fixed} corrected" if fixed else "")
            )
            for word in said["words"][:2]:
                ours, theirs = word["ours"], word["theirs"]
                click.echo(f"  0x{word['address']:x}: {ours:08x} here, {theirs:08x} there")
            for one in said["wrong"]:
                inputs = " ".join(f"{n:x}" for n in one["inputs"])
                click.echo(
                    f"  {one['text']}: of {inputs} (lane {one['lane']}) AMD's text makes "
                    f"{one['described']:x}, it makes {one['executed']:x}"
                )
    for text, count in unknown.most_common():
        click.echo(f"not looked at: {text} ({count})")
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in sums.items()))
    raise SystemExit(bool(sums["differs"] or sums["failed"]))


if __name__ == "__main__":
    main()

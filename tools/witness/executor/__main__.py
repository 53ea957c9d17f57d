"""``python -m tools.witness.executor compare FOLDER... --checkout TINYGRAD``: recorded dispatches
on another executor."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tools.witness.executor import attribute, record
from tools.witness.executor.tinygrad import EMULATOR

FAULTS = Path(__file__).with_name("tinygrad.toml")


def known_faults(file: Path = FAULTS) -> frozenset[str]:
    """The opcodes in the list of what the executor does otherwise."""
    return frozenset(op for row in tomllib.loads(file.read_text())["fault"] for op in row["ops"])


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
@click.option("--attribute", "name_them", is_flag=True, help="Find the opcodes that differ.")
@click.option("--limit", default=600.0, show_default=True, help="Seconds for each execution.")
@click.option("--only", default="", help="Kernels whose name has this in it.")
def compare_(
    folders: tuple[Path, ...],
    checkout: Path,
    often: int,
    correct: bool,
    name_them: bool,
    limit: float,
    only: str,
) -> None:
    """Memory after each recorded dispatch in FOLDERS, compared.  1 if any differs.

    SASSXLATE_RECORD_DISPATCHES=FOLDER makes `sassxlate run --emulated-card` record them.  With
    --attribute, every instruction of a wave that wrote a word that differs is looked at, and
    opcodes that do something else are corrected, until memory is equal or nothing new is found.
    """
    asked = attribute.Asked(often, tuple(sorted(known_faults())) if correct else ())
    how = attribute.attribute if name_them else attribute.compare
    sums: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for folder in folders:
        for file in sorted(folder.glob("DISPATCH.*")):
            if only not in record.read(file).kernel:
                continue
            done = how(file, checkout.absolute(), asked, limit)
            sums[done.verdict] += 1
            name = f"{folder.name}/{file.name[9:]}"
            if done.failed:
                click.echo(f"{name}: {done.failed}")
                continue
            unknown.update(done.said["unknown"])
            _show(name, done, often)
    for text, count in unknown.most_common():
        click.echo(f"not looked at: {text} ({count})")
    click.echo(", ".join(f"{count} {verdict}" for verdict, count in sums.items()))
    raise SystemExit(bool(sums["differs"] or sums["failed"]))


def _show(name: str, done: attribute.Compared, often: int) -> None:
    said = done.said
    size = "x".join(map(str, said["groups"]))
    fixed = sum(said["corrected"].values())
    click.echo(
        f"{name} {said['kernel']} {size}: {done.verdict}"
        + (f", {said['differ']} words" if said["differ"] else "")
        + (f", {said['looked_at']} instructions looked at" if often else "")
        + (f", {fixed} corrected" if fixed else "")
    )
    for word in said["words"][:2]:
        ours, theirs = word["ours"], word["theirs"]
        click.echo(f"  0x{word['address']:x}: {ours:08x} here, {theirs:08x} there")
    for one in done.ops.values():
        click.echo(_line(one) + (" (within AMD's bounds)" if one["kind"] == "near" else ""))
    if not done.ops:
        for one in said["wrong"]:
            click.echo(_line(one))


def _line(one: Mapping[str, Any]) -> str:
    inputs = " ".join(f"{n:x}" for n in one["inputs"])
    return (
        f"  {one['text']}: of {inputs} (lane {one['lane']}) AMD's text makes "
        f"{one['described']:x}, it makes {one['executed']:x}"
    )


if __name__ == "__main__":
    main()

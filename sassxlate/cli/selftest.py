"""``sassxlate selftest``: every fixture on a device, and one report about it."""

from __future__ import annotations

import fnmatch
import os
import time
from pathlib import Path

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import emulated_card_option, format_option, target_option
from sassxlate.errors import ShimError, UsageError
from sassxlate.output import print_json

EXIT_NEGATIVE = 1
EXIT_UNSUPPORTED = 3


@click.command(cls=Command, example="sassxlate selftest --only '*early_exit*' -o report.json")
@click.option(
    "--device",
    type=click.Choice(["auto", "emulator", "hip"]),
    default="auto",
    help="What to test: an AMD GPU through HIP, or the emulated one (auto: a GPU if there is one).",
)
@emulated_card_option
@target_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    default=Path("sassxlate-selftest.zip"),
    show_default=True,
    help="The report: .json, or .zip with all code objects and their assembly.",
)
@click.option(
    "--only",
    "patterns",
    multiple=True,
    metavar="NAME",
    help="Only fixtures that match this name or glob; may repeat.",
)
@click.option("--seeds", type=click.IntRange(1, 100), default=2, help="Inputs a kernel.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=1),
    default=120.0,
    show_default=True,
    help="Time limit of a fixture in seconds, translation included.",
)
@click.option("--list", "list_only", is_flag=True, help="List the fixtures and exit.")
@format_option()
def command(
    device: str,
    emulated_card: bool,
    target: str,
    output: Path,
    patterns: tuple[str, ...],
    seeds: int,
    time_limit: float,
    list_only: bool,
    form: str | None,
) -> None:
    """Run single instructions, kernels and programs on a device and write a report.

    Each runs in a process of its own, with a time limit.  The exit status is 1 if anything failed,
    3 if kernels were refused and all else passed.
    """
    from sassxlate.runtime_shim.selftest import report, selftest

    chosen = [
        fixture
        for fixture in selftest.fixtures()
        if not patterns or any(fnmatch.fnmatchcase(fixture.name, p) for p in patterns)
    ]
    if not chosen:
        raise UsageError(
            "SX0721",
            f"no fixture matches {' '.join(patterns)}: --only takes whole names as --list writes "
            "them, or globs ('*early_exit*')",
        )
    if list_only:
        if form == "json":
            print_json("selftest-list", {"fixtures": [fixture.name for fixture in chosen]})
            return
        for fixture in chosen:
            click.echo(fixture.name)
        return
    if output.suffix not in (".json", ".zip"):
        raise UsageError("SX0721", f"{output}: the report's name ends in .json or .zip")
    _check_writable(output)
    if emulated_card and device == "emulator":
        raise UsageError("SX0719", "--emulated-card runs AMD's HIP library, not --device emulator")
    on_card = emulated_card or _on_card(device, target)

    def tell(result: selftest.FixtureResult) -> None:
        if form == "json":
            return
        click.echo(f"{result.status.upper():8} {result.name:42} {result.seconds:7.1f} s")
        for line in result.lines[:3]:
            click.echo(f"{'':8} {line}")

    begin = time.monotonic()
    kind: selftest.DeviceKind = "hip" if on_card else "emulator"
    with selftest.work_folder() as folder:
        settings = selftest.SelftestSettings(
            kind, time_limit, seeds, Path(folder), target, emulated_card
        )
        facts = selftest.device_facts(settings)
        if form != "json":
            click.echo(f"device: {facts.get('name', 'unknown')}")
        results = selftest.run_all(chosen, settings, tell)
    try:
        report.write(output, results, settings, facts, time.monotonic() - begin)
    except OSError as error:
        raise UsageError("SX0813", f"{output}: {error.strerror}") from error
    counts = report.counts(results)
    if form == "json":
        listed = [
            {"name": r.name, "status": r.status, "seconds": r.seconds, "lines": list(r.lines)}
            for r in results
        ]
        told = {"device": facts, "counts": dict(counts), "report": str(output), "results": listed}
        print_json("selftest", told)
    else:
        click.echo(", ".join(f"{number} {status}" for status, number in counts.items()))
        click.echo(f"report: {output}")
    if set(counts) - {"pass", "refused"}:
        raise SystemExit(EXIT_NEGATIVE)
    if "refused" in counts:
        raise SystemExit(EXIT_UNSUPPORTED)


def _check_writable(output: Path) -> None:
    """Fail now, not after minutes of work, if the report cannot be written."""
    folder = output.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UsageError("SX0813", f"{output}: not in a writable directory")


def _on_card(device: str, target: str) -> bool:
    """Whether to test an AMD GPU; ShimError SX0707 if one is requested and there is none."""
    if device == "emulator" or (device == "auto" and not os.path.exists("/dev/kfd")):
        return False
    from sassxlate.runtime_shim.hip_probe import find_hip

    found = find_hip(target)
    if found.path is None and device == "hip":
        raise ShimError("SX0707", f"no AMD GPU that runs {target} code: {found.reason}")
    return found.path is not None

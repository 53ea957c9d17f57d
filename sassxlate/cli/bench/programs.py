"""``sassxlate bench programs``: every executable of a folder on the emulated device, or on AMD's
HIP library."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from sassxlate.cli.bench.options import (
    FILE,
    only_option,
    sample_option,
    timeout_option,
    write_option,
)
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    arch_option,
    cluster_option,
    emulated_card_option,
    jobs_option,
    printing_options,
    target_option,
)
from sassxlate.errors import EXIT_NEGATIVE
from sassxlate.executors import Place
from sassxlate.notes import quiet
from sassxlate.output import print_json, print_lines
from sassxlate.processes import cores
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.tag import cache_tag


@click.command(
    "programs", cls=Command, example="sassxlate bench programs fixtures/programs --only saxpy"
)
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@sample_option
@click.option("--truth", type=FILE, help="A JSON file of what they print on an NVIDIA GPU.")
@only_option
@arch_option
@jobs_option(1)
@cluster_option
@timeout_option("each program")
@click.option(
    "--memory",
    type=click.FloatRange(0.1),
    default=8.0,
    show_default=True,
    help="Memory limit for each program, in GiB.",
)
@click.option("--results", type=FILE, help="Where to keep results (default: in the cache).")
@click.option("--stale", is_flag=True, help="Also accept results from other versions.")
@click.option(
    "--again",
    default="",
    metavar="VERDICTS",
    help="Repeat programs with these verdicts (a,b,... or all).",
)
@click.option(
    "--outputs",
    type=FILE,
    help="Add what they print to this file, for another call's --truth; all run anew.",
)
@emulated_card_option
@write_option
@click.option("--check", is_flag=True, help="Exit status 1 if a program does not pass.")
@target_option
@printing_options()
def command(
    folder: Path,
    sample: Path | None,
    truth: Path | None,
    pattern: str,
    arch: str | None,
    jobs: int,
    cluster: str | None,
    timeout: float,
    memory: float,
    results: Path | None,
    stale: bool,
    again: str,
    outputs: Path | None,
    emulated_card: bool,
    write: Path | None,
    check: bool,
    target: str,
    form: str,
) -> None:
    """Run every executable in FOLDER on the emulated device, and report the result of each.

    With --emulated-card they run on AMD's HIP library; what the emulated device's own library lets
    them print (--outputs) is then the --truth to compare with.

    A file run.json beside an executable may hold its "args".  Results of an earlier call
    (same bytes, arguments and version of sassxlate) are reused, so an
    interrupted call continues where it stopped.
    """
    from sassxlate.bench.programs import find as finding
    from sassxlate.bench.programs import run as bench
    from sassxlate.bench.programs import table as report

    known = finding.read_truth(truth) if truth else {}
    keep = results or paths.cache_dir() / "programs.jsonl"
    keep.parent.mkdir(parents=True, exist_ok=True)
    wanted = [
        program
        for program in finding.find(folder, sample)
        if re.search(pattern, program.name) and arch in (None, program.arch)
    ]
    work = bench.Bench(
        keep,
        bench.Limits(timeout, int(memory * 2**30)),
        known,
        stale,
        target,
        emulated_card,
        outputs,
    )
    work.forget(again)
    outcomes: list[bench.ProgramOutcome] = []
    place = Place(jobs or cores(), cluster, partial(cache_tag, target))
    try:
        for outcome in work.run(wanted, place):
            outcomes.append(outcome)
            line = f"{len(outcomes)}/{len(wanted)} {outcome.name} {outcome.arch}: {outcome.verdict}"
            reason = f" ({outcome.reason})" if outcome.reason else ""
            if not quiet():
                click.echo(f"{line}{reason}, {outcome.seconds:.1f} s", err=True)
    finally:
        if form == "json":
            print_json("bench-programs", {"programs": [asdict(outcome) for outcome in outcomes]})
        else:
            print_lines(report.text(outcomes))
    if write:
        report.write(write, outcomes)
    if check and any(outcome.verdict != "pass" for outcome in outcomes):
        raise SystemExit(EXIT_NEGATIVE)


__all__ = ["command"]

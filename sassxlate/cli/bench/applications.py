"""``sassxlate bench applications``: public packages on the emulated device."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.bench.figures import fixtures
from sassxlate.cli.bench.options import FILE
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options
from sassxlate.errors import EXIT_NEGATIVE, SassxlateError, exit_status
from sassxlate.notes import quiet
from sassxlate.output import print_json, print_lines
from sassxlate.runtime_shim import paths


@click.command(
    "applications",
    cls=Command,
    example="sassxlate bench applications cupy --write docs/applications.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--only", default="", metavar="REGEX", help="Only names or applications that match.")
@click.option(
    "--declarations",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="The folder of declarations (default: fixtures/applications).",
)
@click.option(
    "--env",
    "environments",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of virtual environments (default: in the cache).",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    help="Time limit for each run, in seconds (default: the declaration's, or 600).",
)
@click.option(
    "--install-timeout",
    type=click.FloatRange(0.1),
    default=1800.0,
    show_default=True,
    help="Time limit for installing one application's packages, in seconds.",
)
@click.option("--install-only", is_flag=True, help="Install the packages; run nothing.")
@click.option("--write", type=FILE, help="Put the table's rows into this document.")
@click.option("--check", is_flag=True, help="Exit status 1 if an application is not right.")
@printing_options("markdown")
def command(
    names: tuple[str, ...],
    only: str,
    declarations: Path | None,
    environments: Path | None,
    timeout: float | None,
    install_timeout: float,
    install_only: bool,
    write: Path | None,
    check: bool,
    form: str,
) -> None:
    """Install and run public packages on the emulated device, as declared in TOML files.

    NAME is a declaration's file name without its suffix; without one, all are run.  Each script
    runs twice, with an empty translation cache and with a warm one, and where the declaration says
    so on the CPU or on an NVIDIA GPU, too.  pip installs the packages from the index that it is
    configured for, into virtual environments that later calls reuse.
    """
    from sassxlate.bench.applications import declaration, environment
    from sassxlate.bench.applications import run as bench
    from sassxlate.bench.applications import table as report

    folder = declarations or fixtures(None) / "applications"
    place = (environments or paths.cache_dir() / "applications").absolute()
    chosen = declaration.load(folder, names, only)
    if install_only:
        for one in chosen:
            environment.prepare(one, place, install_timeout)
        return
    paths.library_dir()  # without the libraries every application would fail
    outcomes: list[bench.Outcome] = []
    errors: list[SassxlateError] = []
    try:
        for one, result in bench.measure_all(chosen, place, timeout, install_timeout):
            if isinstance(result, SassxlateError):
                errors.append(result)
                click.echo(f"sassxlate: {result}", err=True)
                continue
            outcomes.append(result)
            reason = f" ({result.reason})" if result.reason else ""
            if not quiet():
                click.echo(f"{one.name}: {result.verdict}{reason}", err=True)
    finally:
        if form == "json":
            rows = [report.as_dict(outcome) for outcome in outcomes]
            print_json("bench-applications", {"applications": rows})
        else:
            made = report.text if form == "text" else report.markdown
            print_lines(made(outcomes))
    if write:
        report.write(write, outcomes, declaration.load(folder))
    if errors:
        raise SystemExit(exit_status(errors[0]))
    if check and any(outcome.verdict != "right" for outcome in outcomes):
        raise SystemExit(EXIT_NEGATIVE)


__all__ = ["command"]

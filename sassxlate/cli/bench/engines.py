"""``sassxlate bench engines``: programs with the code of two engines."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.cli.bench.options import check_option, end, only_option, repeat_option
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options, target_option
from sassxlate.lowering.target import target_named

_ENGINE = click.Choice(("rules", "search", "llvm", "best"))


@click.command("engines", cls=Command, example="sassxlate bench engines fixtures/programs")
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option(
    "--engines",
    nargs=2,
    type=_ENGINE,
    default=("rules", "llvm"),
    show_default=True,
    help="The engines to compare.",
)
@only_option
@check_option
@repeat_option(9)
@target_option
@printing_options()
def command(
    folder: Path,
    engines: tuple[str, str],
    pattern: str,
    check: bool,
    repeat: int,
    target: str,
    form: str,
) -> None:
    """The executables in FOLDER on the emulated device, with two engines' code in turn.

    Each runs once; its launches are recorded, and replayed with both codes by as many processes as
    --repeat says.  The first engine's processor time in launches divided by the second's: 2 says
    that the second's code takes half as long.
    """
    from sassxlate.bench import engines as bench

    figures = bench.measure(folder, engines, repeat, pattern, target_named(target))
    end("engines", figures, form, check)


__all__ = ["command"]

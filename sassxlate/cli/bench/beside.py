"""``sassxlate bench beside``: programs by this installation and by another, in turn."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.cli.bench.options import (
    FILE,
    check_option,
    end,
    only_option,
    repeat_option,
    sample_option,
    timeout_option,
)
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options
from sassxlate.notes import quiet


@click.command(
    "beside", cls=Command, example="sassxlate bench beside older/.venv/bin/sassxlate programs"
)
@click.argument("other", type=FILE)
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@sample_option
@timeout_option("each warm run")
@only_option
@check_option
@repeat_option(3)
@printing_options()
def command(
    other: Path,
    folder: Path,
    sample: Path | None,
    timeout: float,
    pattern: str,
    check: bool,
    repeat: int,
    form: str,
) -> None:
    """The executables in FOLDER by this installation and by OTHER, the command of another one.

    Each side has a new cache.  A program runs until its code is in it, then --repeat times by each
    side in turn.  The least processor time and the least wall time of ours divided by the other's:
    0.9 says that ours takes a tenth less.  A file run.json beside an executable may hold its
    "args".
    """
    from sassxlate.bench import beside as bench
    from sassxlate.bench.programs.find import find

    done: list[bench.Compared] = []
    for one in bench.compare_all(find(folder, sample), other, repeat, timeout, pattern):
        done.append(one)
        said = one.failed or f"{one.cpu[0] / max(one.cpu[1], 1e-9):.3f}"
        if one.failed or not quiet():
            click.echo(f"{one.name}: {said}", err=True)
    end("beside", bench.figures(done), form, check)


__all__ = ["command"]

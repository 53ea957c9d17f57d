"""``sassxlate unembed``: the file that `sassxlate embed` was given."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import format_option
from sassxlate.output import print_json


@click.command(cls=Command, example="sassxlate unembed saxpy.amd -o saxpy")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE", help="The file to write.",
)  # fmt: skip
@format_option()
def command(file: Path, output: Path, form: str | None) -> None:
    """Write the program or library that FILE was made of, bit for bit.

    FILE must be as `sassxlate embed` wrote it: not stripped or changed otherwise.
    """
    from sassxlate.runtime_shim.embed.carry import unembed

    size = unembed(file, output)
    if form == "json":
        print_json("unembed", {"file": str(output), "bytes": size})
    else:
        click.echo(f"{output}: {size} bytes")

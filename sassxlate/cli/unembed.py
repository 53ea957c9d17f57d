"""``sassxlate unembed``: the file that `sassxlate embed` was given."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.output import print_json


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="Output format.",
)  # fmt: skip
def command(file: Path, output: Path, form: str) -> None:
    """Write the program or library that FILE was made of, bit for bit.

    \b
    sassxlate unembed app.amd -o app

    FILE must be as `sassxlate embed` wrote it: not stripped or changed otherwise.
    """
    from sassxlate.runtime_shim.embed.carry import unembed

    size = unembed(file, output)
    if form == "json":
        print_json({"file": str(output), "bytes": size})
    else:
        click.echo(f"{output}: {size} bytes")

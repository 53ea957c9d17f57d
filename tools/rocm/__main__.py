"""``python -m tools.rocm``."""

from __future__ import annotations

import click

from sassxlate.errors import SassxlateError
from tools.rocm import folder
from tools.rocm.packages import ADDITIONS, VERSIONS


@click.group()
def main() -> None:
    """AMD's ROCm userland in a folder of its own, for tests without a card."""


@main.command()
@click.argument("versions", nargs=-1)
def fetch(versions: tuple[str, ...]) -> None:
    """Fetch and unpack VERSIONS (default: all but those of libraries that come on top)."""
    for version in versions or [name for name in VERSIONS if name not in ADDITIONS]:
        click.echo(folder.fetch(version))


@main.command(name="list")
def list_() -> None:
    """Which versions there are, and where."""
    for version in VERSIONS:
        state = "fetched" if folder.present(version) else "not fetched"
        click.echo(f"{version}  {state}  {folder.root(version)}")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("version")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def run(version: str, program: tuple[str, ...]) -> None:
    """Run PROGRAM with a version's loader and libraries."""
    raise SystemExit(folder.run(version, program))


if __name__ == "__main__":
    try:
        main()
    except SassxlateError as error:
        raise SystemExit(f"sassxlate: {error}") from None

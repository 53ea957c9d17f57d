"""``sassxlate schema``: the JSON Schemas of what commands print with ``--format json``."""

from __future__ import annotations

import difflib
import json

import click

from sassxlate import schemas
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options
from sassxlate.errors import UsageError
from sassxlate.output import print_json


@click.command(cls=Command, example="sassxlate schema verify blocks")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@printing_options()
def command(words: tuple[str, ...], form: str) -> None:
    """Print the JSON Schema (draft 2020-12) of what COMMAND prints with --format json; without
    COMMAND, list all schemas.

    A document's field `schema` names its schema and version, such as sassxlate.ls/1.  Within a
    version fields are only added.
    """
    name = "-".join(words).removeprefix(schemas.PREFIX).partition("/")[0]
    if name:
        if name not in schemas.VERSIONS:
            raise UsageError("SX0878", f"no schema {name!r}{_near(name)}")
        click.echo(json.dumps(schemas.schema(name), indent=2))
        return
    listed = [(schemas.identifier(n), schemas.schema(n)["title"]) for n in schemas.VERSIONS]
    if form == "json":
        print_json("schema", {"schemas": [{"name": n, "title": title} for n, title in listed]})
        return
    width = max(len(n) for n, _ in listed)
    for identifier, title in listed:
        click.echo(f"{identifier:{width}}  {title}")


def _near(name: str) -> str:
    """The schemas of a group, or of names like it."""
    near = [n for n in schemas.VERSIONS if n.startswith(f"{name}-")]
    near = near or difflib.get_close_matches(name, schemas.VERSIONS, n=3, cutoff=0.6)
    return f"; there are {', '.join(near)}" if near else ""


__all__ = ["command"]

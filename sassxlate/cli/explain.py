"""``sassxlate explain``: what an error code means and what to do about it."""

from __future__ import annotations

import difflib
import textwrap
from typing import Any

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options
from sassxlate.errors import UsageError, catalogue, exit_status
from sassxlate.output import print_json

# The areas of the codes by their first four characters, as sassxlate/errors.py lists them.
AREAS = {
    "SX01": "containers",
    "SX02": "SASS",
    "SX03": "control flow",
    "SX04": "lowering",
    "SX05": "RDNA3 and code objects",
    "SX06": "emulated device",
    "SX07": "runtime libraries",
    "SX08": "command line and tools",
    "SX09": "service and cache",
    "SX10": "model and dataset",
}


@click.command(cls=Command, example="sassxlate explain SX0107")
@click.argument("codes", nargs=-1, metavar="[CODE...]")
@printing_options()
def command(codes: tuple[str, ...], form: str) -> None:
    """Explain error codes, for example SX0107; without a code, list them all."""
    entries = catalogue()
    wanted = [_normal(code) for code in codes] or sorted(entries)
    for code, given in zip(wanted, codes, strict=False):
        if code not in entries:
            near = difflib.get_close_matches(code, entries, n=3, cutoff=0.6)
            hint = f"; do you mean {' or '.join(near)}?" if near else ""
            raise UsageError("SX0814", f"{given!r} is not an error code{hint}")
    if form == "json":
        print_json("explain", {"codes": [_value(code, entries[code]) for code in wanted]})
    elif codes:
        click.echo("\n\n".join(_page(code, entries[code]) for code in wanted))
    else:
        _list(entries)


def _normal(code: str) -> str:
    """``sx107`` and ``107`` -> ``SX0107``."""
    digits = code.upper().removeprefix("SX")
    return f"SX{digits.zfill(4)}" if digits.isdecimal() else code.upper()


def _value(code: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "code": code,
        "area": AREAS.get(code[:4], ""),
        "title": entry["title"],
        "text": _flow(entry["text"]),
        "exit": exit_status(UsageError(code, "")),
    }


def _flow(text: str) -> str:
    """The paragraphs, each on one line."""
    parts = (" ".join(p.split()) for p in text.strip().split("\n\n"))
    return "\n\n".join(p for p in parts if p)


def _page(code: str, entry: dict[str, Any]) -> str:
    value = _value(code, entry)
    body = "\n\n".join(textwrap.fill(p, 88) for p in value["text"].split("\n\n"))
    return (
        f"{code}: {value['title']}\n\n{body}\n\n"
        f"Area: {value['area']}.  Exit status: {value['exit']}."
    )


def _list(entries: dict[str, dict[str, Any]]) -> None:
    area = ""
    for code in sorted(entries):
        if code[:4] != area:
            if area:
                click.echo()
            area = code[:4]
            click.echo(f"{AREAS.get(area, area)}:")
        click.echo(f"  {code}  {entries[code]['title']}")

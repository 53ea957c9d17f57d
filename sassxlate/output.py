"""Output of commands: text tables, JSON, whole files, paging."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click

from sassxlate.errors import UsageError, Where
from sassxlate.files import replace_file
from sassxlate.schemas import identifier

SCHEMA = 1  # of the files that sassxlate writes and reads again

_SURROGATES = re.compile("[\ud800-\udfff]")
_LINES = 1024  # printed at a time


def make_directory(path: Path) -> None:
    """The directory and those above it; UsageError SX0813 if that is refused."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(error, path) from None


def write_whole(path: Path, data: bytes) -> None:
    """The whole file or nothing, with the permissions that the umask gives.

    Anything but a regular file (a device, a pipe) is written in place.
    Raises UsageError SX0813.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            replace_file(path, data)
    except OSError as error:
        raise _unwritten(error, path) from None


def _unwritten(error: OSError, path: Path) -> UsageError:
    return UsageError("SX0813", f"cannot write: {error.strerror or error}", Where(str(path)))


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines on stdout, many at a time; before an error, those that were made."""
    rest, more = iter(lines), True
    while more:
        some: list[str] = []
        try:
            some.extend(islice(rest, _LINES))
        finally:
            more = bool(some)
            if more:
                click.echo("\n".join(some))


def document(schema: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON document of a command: the identifier of its schema, such as ``sassxlate.ls/1``, and
    the value's fields."""
    return {"schema": identifier(schema), **value}


def as_json(schema: str, value: Mapping[str, Any], indent: int | None = 2) -> str:
    """A document as text, without a line's end; on one line if ``indent`` is None."""
    text = json.dumps(document(schema, value), indent=indent, ensure_ascii=False)
    # A path that is not UTF-8: Python's reader restores it, and other readers can read the rest.
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(schema: str, value: Mapping[str, Any]) -> None:
    """Prints one JSON document on stdout."""
    click.echo(_printable(as_json(schema, value)))


def print_json_line(schema: str, value: Mapping[str, Any]) -> None:
    """Prints one JSON document of a stream, on a line of its own."""
    click.echo(_printable(as_json(schema, value, None)))


def _printable(text: str) -> str:
    """JSON whose characters the terminal's encoding lacks are written as JSON's own escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(json.loads(text), indent=2 if "\n" in text else None)
    except LookupError:
        pass
    return text


def table(head: Sequence[str], rows: Iterable[Sequence[object]], indent: str = "") -> list[str]:
    """Lines of a table; columns of numbers are flushed right, the last column is not padded."""
    cells = [[str(c) for c in row] for row in rows]
    numeric = [
        bool(cells) and all(row[i].lstrip("-").isdigit() or row[i] in ("", "-") for row in cells)
        for i in range(len(head))
    ]
    widths = [max([len(head[i]), *(len(row[i]) for row in cells)]) for i in range(len(head))]
    lines: list[str] = []
    for row in [list(head), *cells]:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append((indent + "  ".join(parts)).rstrip())
    return lines

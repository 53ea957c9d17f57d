"""What the subcommands that read fat binaries share: inputs, filters, and plain output."""

from __future__ import annotations

import fnmatch
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from sassxlate.disasm.containers import LoadedFile, load, load_bytes

from ..errors import UsageError

_F = TypeVar("_F", bound=Callable[..., Any])

SCHEMA = 1  # of every JSON answer


def read_input(path: str) -> LoadedFile:
    """The file, or standard input for ``-``."""
    if path == "-":
        return load_bytes(sys.stdin.buffer.read(), "<stdin>")
    return load(path)


def parse_arch(text: str) -> tuple[int, str]:
    """``sm_90a``, ``compute_90a``, ``90a`` -> (90, "a").  Raises UsageError SX0811."""
    bare = text.removeprefix("sm_").removeprefix("compute_")
    number = bare.rstrip("af")
    if not number.isdecimal() or len(bare) - len(number) > 1:
        raise UsageError("SX0811", f"{text!r} names no architecture; write it like sm_80")
    return int(number), bare[len(number) :]


def arch_name(arch: int, variant: str = "") -> str:
    """(90, "a") -> ``sm_90a``."""
    return f"sm_{arch}{variant}"


def kernel_matches(mangled: str, demangled: str, patterns: Sequence[str]) -> bool:
    """Whether a name is asked for: mangled, demangled, its part before "(", or a glob of these."""
    if not patterns:
        return True
    names = (mangled, demangled, demangled.partition("(")[0])
    return any(
        name == pattern or fnmatch.fnmatchcase(name, pattern)
        for pattern in patterns
        for name in names
    )


def kernel_option(function: _F) -> _F:
    """``-k/--kernel``, which may repeat."""
    return click.option(
        "-k",
        "--kernel",
        "kernels",
        multiple=True,
        metavar="NAME",
        help="Only kernels of this name: mangled, demangled or a glob; may repeat.",
    )(function)


def arch_option(function: _F) -> _F:
    """``--arch``, the source architecture."""
    return click.option("--arch", metavar="SM", help="Only this source architecture, like sm_80.")(
        function
    )


def format_option(function: _F) -> _F:
    """``--output-format text|json`` with ``--json`` as its short form."""
    function = click.option(
        "--json", "output_format", flag_value="json", help="Short for --output-format json."
    )(function)
    return click.option(
        "--output-format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to print the answer.",
    )(function)


def print_json(value: dict[str, Any]) -> None:
    """One JSON document on stdout, its schema number first."""
    click.echo(json.dumps({"schema": SCHEMA, **value}, indent=2, ensure_ascii=False))


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

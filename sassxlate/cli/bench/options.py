"""Options that several benchmarks take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sassxlate.bench.figures import REPEAT, Figure, show
from sassxlate.errors import EXIT_NEGATIVE

_F = TypeVar("_F", bound=Callable[..., Any])
FILE = click.Path(dir_okay=False, path_type=Path)

fixtures_option = click.option(
    "--fixtures", "given", type=click.Path(), metavar="DIR", help="The fixtures directory."
)
only_option = click.option(
    "--only", "pattern", default="", metavar="REGEX",
    help="Only those whose names match this regular expression.",
)  # fmt: skip
check_option = click.option("--check", is_flag=True, help="Exit status 1 if a target is missed.")
sample_option = click.option(
    "--sample", type=FILE, help="A TOML file of names and arguments; run no other programs."
)
write_option = click.option("--write", type=FILE, help="Put the table into this document.")


def repeat_option(default: int = REPEAT) -> Callable[[_F], _F]:
    """``--repeat``, the number of values of a figure."""
    return click.option(
        "--repeat",
        type=click.IntRange(1, 1000),
        default=default,
        show_default=True,
        help="Values a figure.",
    )


def timeout_option(what: str) -> Callable[[_F], _F]:
    """``--timeout`` of ``what``, in seconds."""
    return click.option(
        "--timeout",
        type=click.FloatRange(0.1),
        default=60.0,
        show_default=True,
        help=f"Time limit for {what}, in seconds.",
    )


def tier_option(default: str) -> Callable[[_F], _F]:
    """``--tier``, the emulated device's."""
    return click.option(
        "--tier",
        type=click.Choice(["auto", "baseline", "llvm"]),
        default=default,
        show_default=True,
        help="The tier of the emulated device.",
    )


def isa_option(function: _F) -> _F:
    """``--isa``, the host's vector instructions."""
    return click.option(
        "--isa",
        type=click.Choice(["auto", "avx512", "avx2"]),
        default="auto",
        help="Vector instructions to compile for (auto: the best that the host has).",
    )(function)


def end(title: str, figures: Sequence[Figure], form: str, check: bool) -> None:
    """Prints the figures; exit status 1 if one misses its target and ``check``."""
    show(title, figures, form)
    if check and any(figure.met is False for figure in figures):
        raise SystemExit(EXIT_NEGATIVE)

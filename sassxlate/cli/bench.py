"""``sassxlate bench``: figures that anyone can repeat, with the machine they were taken on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ._figures import REPEAT, Figure, fixtures, isa_of, show
from ._files import format_option

_F = TypeVar("_F", bound=Callable[..., Any])
EXIT_MISSED = 1


def _options(function: _F) -> _F:
    """What both benchmarks take."""
    for option in (
        click.option("--fixtures", "given", type=click.Path(), help="The fixtures directory."),
        click.option(
            "--isa",
            type=click.Choice(["auto", "avx512", "avx2"]),
            default="auto",
            help="Vectors of the host to compile for (auto: the best there are).",
        ),
        click.option("--check", is_flag=True, help="Exit status 1 if a target is missed."),
        click.option(
            "--repeat",
            type=click.IntRange(1, 1000),
            default=REPEAT,
            show_default=True,
            help="Values a figure.",
        ),
    ):
        function = option(function)
    return format_option(function)


def _end(title: str, figures: Sequence[Figure], output_format: str, check: bool) -> None:
    show(title, figures, output_format)
    if check and any(figure.met is False for figure in figures):
        raise SystemExit(EXIT_MISSED)


@click.group()
def command() -> None:
    """Measure emulator, translator and disassembler: smallest, median, largest of several runs."""


@command.command("emulator")
@click.option(
    "--call",
    type=click.FloatRange(0.0001, 10),
    default=0.2,
    show_default=True,
    help="Seconds that one call of a loop takes.",
)
@_options
def emulator(
    output_format: str, repeat: int, check: bool, isa: str, given: str | None, call: float
) -> None:
    """How many RDNA3 instructions a second one core runs, in the loops of fixtures/bench."""
    from . import _bench_emulator

    figures = _bench_emulator.measure(fixtures(given), repeat, isa_of(isa), call)
    _end("emulator", figures, output_format, check)


@command.command("translate")
@_options
def translate(output_format: str, repeat: int, check: bool, isa: str, given: str | None) -> None:
    """From SASS to a code object, from there to host code, and a whole run with a warm cache."""
    from . import _bench_translate

    figures = _bench_translate.measure(fixtures(given), repeat, isa_of(isa))
    _end("translate", figures, output_format, check)


@command.command("disasm")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=400_000,
    show_default=True,
    help="Instructions after which no further cubin is taken.",
)
@click.option("--check", is_flag=True, help="Exit status 1 if a target is missed.")
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=3, show_default=True, help="Values a figure."
)
@format_option
def disasm(
    files: tuple[str, ...], limit: int, check: bool, repeat: int, output_format: str
) -> None:
    """Decoding and printing SASS beside nvdisasm, where it is found, on the same cubins.

    FILES are cubins, executables and libraries.  Times are CPU time of one thread.
    """
    from . import _bench_disasm

    figures = _bench_disasm.measure(files, repeat, limit)
    _end("disasm", figures, output_format, check)

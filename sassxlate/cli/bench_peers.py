"""``sassxlate bench peers``: the emulated device beside another implementation."""

from __future__ import annotations

import click

from sassxlate.bench.figures import REPEAT, fixtures, show
from sassxlate.cli.options import format_option, target_option
from sassxlate.lowering.target import target_named
from sassxlate.output import print_json

_EXIT_MISSED = 1


@click.command("peers")
@click.option("-k", "pattern", default="", help="Only kernels with this in their names.")
@click.option(
    "--tier",
    type=click.Choice(["auto", "baseline", "llvm"]),
    default="llvm",
    show_default=True,
    help="The tier of the emulated device.",
)
@click.option("--fixtures", "given", type=click.Path(), help="The fixtures directory.")
@click.option("--check", is_flag=True, help="Exit status 1 if a target is missed.")
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=REPEAT,
    show_default=True,
    help="Values a figure.",
)
@target_option
@format_option
def peers(
    pattern: str,
    tier: str,
    given: str | None,
    check: bool,
    repeat: int,
    target: str,
    output_format: str,
) -> None:
    """Ten kernels on the emulated device, and on PoCL, which compiles them from OpenCL C.

    PoCL's processor time divided by ours: 2 says that ours takes half as long.  Without PoCL
    (Debian: pocl-opencl-icd) it is skipped, with the reason.
    """
    from sassxlate.bench import peers as bench

    folder = fixtures(given)
    try:
        figures = bench.measure(folder, repeat, tier, pattern, target_named(target))
    except bench.Missing as missing:
        if output_format == "json":
            print_json({"bench": "peers", "skipped": str(missing), "figures": []})
        else:
            click.echo(f"skipped: no PoCL: {missing}")
        return
    show("peers", figures, output_format)
    if check and any(figure.met is False for figure in figures):
        raise SystemExit(_EXIT_MISSED)


__all__ = ["peers"]

"""``sassxlate bench peers``: the emulated device beside another implementation."""

from __future__ import annotations

import click

from sassxlate.bench.figures import fixtures
from sassxlate.cli.bench.options import (
    check_option,
    end,
    fixtures_option,
    only_option,
    repeat_option,
    tier_option,
)
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options, target_option
from sassxlate.lowering.target import target_named
from sassxlate.output import print_json


@click.command("peers", cls=Command, example="sassxlate bench peers --only saxpy")
@only_option
@tier_option("llvm")
@click.option(
    "--engine",
    type=click.Choice(("rules", "llvm", "best")),
    default="rules",
    show_default=True,
    help="The writer of our code; kernels that LLVM's tier refuses have the rules'.",
)
@fixtures_option
@check_option
@repeat_option()
@target_option
@printing_options()
def command(
    pattern: str,
    tier: str,
    engine: str,
    given: str | None,
    check: bool,
    repeat: int,
    target: str,
    form: str,
) -> None:
    """Ten kernels on the emulated device, and on PoCL, which compiles them from OpenCL C.

    PoCL's processor time divided by ours: 2 says that ours takes half as long.  Without PoCL
    (Debian: pocl-opencl-icd) it is skipped, with the reason.
    """
    from sassxlate.bench import peers as bench

    folder = fixtures(given)
    try:
        figures = bench.measure(folder, repeat, tier, pattern, target_named(target), engine)
    except bench.Missing as missing:
        if form == "json":
            print_json("bench-skipped", {"bench": "peers", "skipped": str(missing)})
        else:
            click.echo(f"skipped: no PoCL: {missing}")
        return
    end("peers", figures, form, check)


__all__ = ["command"]

"""``sassxlate verify launches``: a program's launches, run again in the interpreter of SASS."""

from __future__ import annotations

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, kernel_option, printing_options, target_option
from sassxlate.errors import UsageError
from sassxlate.llm.engine.choose import TIER
from sassxlate.notes import verbose
from sassxlate.runtime_shim.replay.against_interpreter import (
    LIMIT,
    How,
    Launched,
    verify_launch,
    verify_run,
)


@click.command(
    "launches",
    cls=Command,
    context_settings={"allow_interspersed_args": False},
    example="sassxlate verify launches -- ./saxpy",
)
@click.argument("program", metavar="PROGRAM")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@kernel_option
@arch_option
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=LIMIT,
    show_default=True,
    help="Give up on a launch after this many warp instructions.",
)
@click.option(
    "--most",
    type=click.IntRange(0),
    default=0,
    help="Compare only the first launches of each kernel; 0: all.",
)
@click.option(
    "--engine",
    type=click.Choice(("rules", *TIER)),
    default="rules",
    show_default=True,
    help="The writer of the code that runs.",
)
@click.option(
    "--grid", metavar="X[,Y[,Z]]", help="Launch the kernel -k of PROGRAM by hand: blocks."
)
@click.option("--block", metavar="X[,Y[,Z]]", help="With --grid: threads per block.")
@click.option("--shared", type=click.IntRange(0), default=0, help="With --grid: bytes.")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="FORM",
    help="With --grid: one per parameter, as `sassxlate interpret` takes them.",
)
@click.option("--seed", type=int, default=0, help="With --grid: seed of random buffers.")
@target_option
@printing_options()
@click.pass_context
def command(
    context: click.Context,
    program: str,
    args: tuple[str, ...],
    kernels: tuple[str, ...],
    arch: str | None,
    limit: int,
    most: int,
    engine: str,
    grid: str | None,
    block: str | None,
    shared: int,
    arguments: tuple[str, ...],
    seed: int,
    target: str,
    form: str,
) -> None:
    """Run PROGRAM with ARGS on the emulated device, run each of its launches again in the reference
    interpreter of SASS, and compare all memory afterwards.

    With --grid (or --arg) PROGRAM is any file with device code, one kernel of which is launched.
    With -v launches that are the same are listed, too.  As JSON each launch is a line.

    The exit status is 1 if memory differs, 3 if nothing was decided.
    """
    tier = engine if engine in TIER else ""
    how = How(limit, most, form == "json", verbose(), target, tier)
    if grid or arguments:
        from sassxlate.lowering.trace.arguments import shape_of

        if args:
            raise UsageError(
                "SX0825", "--grid launches a kernel by hand: no arguments of a program"
            )
        shapes = shape_of(grid or "1"), shape_of(block or "32")
        launched = Launched(*shapes, shared, arguments, seed)
        context.exit(verify_launch(program, kernels, arch, launched, how))
    if block or shared or seed or arch:
        raise UsageError(
            "SX0825", "--block, --shared, --seed and --arch are of use with --grid only"
        )
    context.exit(verify_run(program, args, how, kernels))


__all__ = ["command"]

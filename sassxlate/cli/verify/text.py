"""``sassxlate verify text FILE``: the verdict on one block that is given as text."""

from __future__ import annotations

from dataclasses import asdict

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options, proof_options, target_option
from sassxlate.cli.verdicts import require_solver
from sassxlate.disasm.inputs import read_text
from sassxlate.errors import EXIT_NEGATIVE, SassxlateError
from sassxlate.lowering.target import target_named
from sassxlate.output import print_json


@click.command("text", cls=Command, example="sassxlate verify text block.toml")
@click.argument("file", metavar="FILE")
@proof_options
@target_option
@printing_options()
@click.pass_context
def command(
    context: click.Context, file: str, timeout: float, vectors: int, target: str, form: str
) -> None:
    """Prove or refute one block, whatever wrote it.

    FILE is TOML: arch = 90, sass and rdna3 (text, one instruction per line), registers (R4 = "v4",
    P0 = "s20", UR4 = "s24"), and optionally constants and live_out; - is standard input.

    The exit status is 1 if the block is refuted.
    """
    require_solver()
    from sassxlate.lowering.verify import Proved, Refuted, verify
    from sassxlate.lowering.verify.block.counterexample import explain_counterexample
    from sassxlate.lowering.verify.block.from_text import block_of, read_texts

    try:
        block = block_of(read_texts(read_text(file)), target_named(target))
    except SassxlateError as error:
        raise error.at(file=file) from None
    verdict = verify(block, timeout_ms=int(timeout * 1000), vectors=vectors, tested=True)
    if form == "json":
        print_json("verify-text", {"verdict": type(verdict).__name__, **asdict(verdict)})
    elif isinstance(verdict, Proved):
        reading = f" (modulo {', '.join(verdict.modulo)})" if verdict.modulo else ""
        click.echo(f"proved{reading}")
    elif isinstance(verdict, Refuted):
        click.echo("refuted")
        for line in explain_counterexample(block, verdict):
            click.echo(f"  {line}".rstrip())
    else:
        click.echo(f"unknown: {verdict.reason}")
    if isinstance(verdict, Refuted):
        context.exit(EXIT_NEGATIVE)


__all__ = ["command"]

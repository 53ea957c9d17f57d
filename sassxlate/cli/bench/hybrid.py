"""``sassxlate bench hybrid``: the fixtures' programs with an engine's code."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.bench.figures import fixtures
from sassxlate.cli.bench.options import check_option, fixtures_option, only_option, write_option
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import EngineType, printing_options, target_option
from sassxlate.errors import EXIT_NEGATIVE
from sassxlate.notes import quiet
from sassxlate.output import print_json, print_lines


@click.command("hybrid", cls=Command, example="sassxlate bench hybrid --only saxpy --engine search")
@fixtures_option
@only_option
@click.option(
    "--arch", metavar="SM", default="sm_80", show_default=True, help="The programs' architecture."
)
@click.option(
    "--engine",
    type=EngineType(),
    default="hybrid",
    show_default=True,
    help="What is measured: a model (hybrid, or model alone), the search, or a proposer in a "
    "Python file.",
)
@click.option("--model", metavar="PATH_OR_HUB_ID", help="A model other than the shipped one.")
@click.option(
    "--samples", type=click.IntRange(1, 64), default=1, help="Answers to sample for each block."
)
@target_option
@click.option("--strict", is_flag=True, help="Also run the hybrid code in strict mode.")
@write_option
@check_option
@printing_options()
def command(
    given: str | None,
    pattern: str,
    arch: str,
    engine: str,
    model: str | None,
    samples: int,
    target: str,
    strict: bool,
    write: Path | None,
    check: bool,
    form: str,
) -> None:
    """Run the fixtures' programs with an engine's code where it is proved and cheaper.

    For each, with the rules and with the engine: whether it passes, and how many instructions waves
    execute.  Then how often a block was a repeated question, and how many distinct ones a model
    answers per second.
    """
    import tempfile

    from sassxlate.bench import hybrid as bench
    from sassxlate.bench.codegen import table as report
    from sassxlate.bench.figures import machine
    from sassxlate.disasm.inputs import parse_arch
    from sassxlate.errors import ModelError
    from sassxlate.llm.engine import choose

    folder, number = fixtures(given), parse_arch(arch)[0]
    chosen = choose.engine(engine, model, samples)
    if chosen is None:
        raise ModelError("SX1008", "--engine rules: there is nothing to compare with the rules")

    def told(row: bench.ProgramComparison) -> None:
        state = "PASS" if row.passed else "FAIL"
        if not quiet():
            click.echo(f"{row.program}: {state}, {100 * (1 - row.ratio):.1f} % saved", err=True)

    place = tempfile.TemporaryDirectory(prefix="sassxlate-hybrid-", ignore_cleanup_errors=True)
    with place as made:  # in which services may still end
        programs = bench.executables(folder, number, pattern, Path(made))
        result = bench.measure(
            programs, chosen, number, Path(made, "caches"), strict=strict, told=told, target=target
        )
    if form == "json":
        print_json("bench-hybrid", result.as_dict() | {"machine": machine()})
    else:
        print_lines(bench.text(result))
    if write:
        report.write(write, bench.markdown(result, machine()), (bench.BEGIN, bench.END))
    wrong = result.missed() if check else []
    for line in wrong:
        click.echo(line, err=True)
    if wrong:
        raise SystemExit(EXIT_NEGATIVE)


__all__ = ["command"]

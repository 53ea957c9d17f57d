"""``sassxlate bench codegen``: our code beside clang's for the same sources."""

from __future__ import annotations

from pathlib import Path

import click

from sassxlate.bench.figures import fixtures
from sassxlate.cli.bench.options import FILE, fixtures_option, only_option
from sassxlate.cli.grammar import Command
from sassxlate.cli.options import printing_options, target_option
from sassxlate.errors import EXIT_NEGATIVE, UsageError
from sassxlate.lowering.target import DEFAULT, Target, target_named
from sassxlate.output import print_json, print_lines


@click.command("codegen", cls=Command, example="sassxlate bench codegen --only '^saxpy$'")
@fixtures_option
@only_option
@click.option(
    "--sources",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The programs are the .cu files of this folder, which check themselves.",
)
@click.option(
    "--pairs",
    nargs=2,
    type=FILE,
    metavar="CUDA_LIB HIP_LIB",
    help="Compare the kernels of a library that was built for CUDA and for HIP.",
)
@click.option(
    "--arch",
    metavar="SM",
    default="sm_80",
    show_default=True,
    help="The architecture of the CUDA library's kernels.",
)
@click.option(
    "--engine",
    type=click.Choice(("rules", "llvm", "best")),
    default="rules",
    show_default=True,
    help="The writer of our code; kernels that LLVM's tier refuses have the rules'.",
)
@target_option
@click.option("--bless", is_flag=True, help="Rewrite the tables of docs/codegen.md.")
@click.option(
    "--check", is_flag=True, help="Exit status 1 if the page differs or the target is missed."
)
@printing_options()
def command(
    given: str | None,
    pattern: str,
    sources: Path | None,
    pairs: tuple[Path, Path] | None,
    arch: str,
    engine: str,
    target: str,
    bless: bool,
    check: bool,
    form: str,
) -> None:
    """Compare our code with clang's for the same sources, per kernel of the fixtures' programs.

    Counts instructions in the code, and instructions that the emulated device executes.  With
    --pairs it counts the instructions of any library's kernels and those of AMD's compiler.
    """
    from sassxlate.bench.codegen import compare as bench
    from sassxlate.bench.codegen import table as report

    if pattern and (bless or check):
        raise UsageError(
            "SX0831", "the page covers all programs: --bless and --check take no --only"
        )
    processor = target_named(target)
    if processor != DEFAULT and (bless or check):
        raise UsageError("SX0831", f"the page is of {DEFAULT.name}: --bless and --check need it")
    if sources is not None and (bless or check or pairs):
        raise UsageError("SX0831", "--bless, --check and --pairs take no --sources")
    if engine != "rules" and (bless or check):
        raise UsageError("SX0831", "the page is of the rules' code: --bless and --check need it")
    folder = fixtures(given)
    page = folder.parent / "docs" / "codegen.md"
    if pairs:
        wrong = _pairs(folder, page, pairs, arch, processor, engine, pattern, bless, check, form)
    else:
        reasons = bench.explained(folder)
        rows = bench.measure(folder, pattern, target=processor, engine=engine, sources=sources)
        if form == "json":
            print_json("bench-codegen", {"kernels": [row.as_dict() for row in rows]})
        else:
            print_lines(report.text(rows, reasons))
        lines = report.markdown(rows, reasons, bench.versions(processor))
        if bless:
            report.write(page, lines)
        wrong = bench.missed(rows, reasons)
        if check:
            wrong += report.differences(page, lines)
    for line in wrong if check else ():
        click.echo(line, err=True)
    if check and wrong:
        raise SystemExit(EXIT_NEGATIVE)


def _pairs(
    folder: Path,
    page: Path,
    files: tuple[Path, Path],
    arch: str,
    target: Target,
    engine: str,
    pattern: str,
    bless: bool,
    check: bool,
    form: str,
) -> list[str]:
    """What went wrong in `bench codegen --pairs`."""
    from sassxlate.bench.codegen import library_pairs as bench
    from sassxlate.bench.codegen import table as report

    reasons = bench.explained(folder)
    found = bench.measure(*files, arch, pattern, target, engine)
    if form == "json":
        print_json("bench-codegen-pairs", found.as_dict())
    else:
        print_lines(bench.text(found, reasons))
    names = [f"`{file.name}`" for file in files]
    lines = bench.markdown(found, reasons, f"{names[0]} for {arch}, {names[1]} for {target.name}.")
    if bless:
        report.write(page, lines, bench.MARKS)
    wrong = bench.missed(found, reasons)
    if check:
        wrong += report.differences(page, lines, bench.MARKS)
    return wrong


__all__ = ["command"]

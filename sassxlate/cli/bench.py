"""``sassxlate bench``: figures that anyone can repeat, with the machine they were taken on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from sassxlate.bench.figures import REPEAT, Figure, fixtures, isa_of, show
from sassxlate.cli.bench_peers import peers
from sassxlate.cli.options import EngineType, format_option, target_option
from sassxlate.lowering.target import DEFAULT, Target, target_named
from sassxlate.output import print_json, print_lines
from sassxlate.runtime_shim import paths

_F = TypeVar("_F", bound=Callable[..., Any])
EXIT_MISSED = 1
_FILE = click.Path(dir_okay=False, path_type=Path)


def _options(function: _F) -> _F:
    """The options that both benchmarks take."""
    for option in (
        click.option("--fixtures", "given", type=click.Path(), help="The fixtures directory."),
        click.option(
            "--isa",
            type=click.Choice(["auto", "avx512", "avx2"]),
            default="auto",
            help="Vector instructions to compile for (auto: the best that the host has).",
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
    """Measure the emulator, translator, disassembler and code; run programs and applications."""


command.add_command(peers)


@command.command("emulator")
@click.option(
    "--call",
    type=click.FloatRange(0.0001, 10),
    default=0.2,
    show_default=True,
    help="Target duration of one call of a loop, in seconds.",
)
@_options
def emulator(
    output_format: str, repeat: int, check: bool, isa: str, given: str | None, call: float
) -> None:
    """RDNA3 instructions per second on one core, in the loops of fixtures/bench."""
    from sassxlate.bench import emulator as _bench_emulator

    figures = _bench_emulator.measure(fixtures(given), repeat, isa_of(isa), call)
    _end("emulator", figures, output_format, check)


@command.command("translate")
@target_option
@_options
def translate(
    output_format: str, repeat: int, check: bool, isa: str, given: str | None, target: str
) -> None:
    """Time from SASS to a code object, from there to host code, and of a run with a warm cache."""
    from sassxlate.bench import translate as _bench_translate

    figures = _bench_translate.measure(fixtures(given), repeat, isa_of(isa), target_named(target))
    _end("translate", figures, output_format, check)


@command.command("cold")
@click.option(
    "--tier",
    type=click.Choice(["auto", "baseline", "llvm"]),
    default="auto",
    show_default=True,
    help="The tier of the runs.",
)
@click.option(
    "--programs",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Run the executables of this folder, which print PASS, not those of fixtures.",
)
@target_option
@_options
def cold(
    output_format: str,
    repeat: int,
    check: bool,
    isa: str,
    given: str | None,
    tier: str,
    programs: Path | None,
    target: str,
) -> None:
    """The first use of a kernel: the baseline tier's speed, building kernels, cold runs."""
    from sassxlate.bench import cold as _bench_cold

    figures = _bench_cold.measure(
        fixtures(given), repeat, isa_of(isa), tier, programs, target_named(target)
    )
    _end("cold", figures, output_format, check)


@command.command("disasm")
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=400_000,
    show_default=True,
    help="Take no further cubin after this many instructions.",
)
@click.option("--check", is_flag=True, help="Exit status 1 if a target is missed.")
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=3, show_default=True, help="Values a figure."
)
@format_option
def disasm(
    files: tuple[str, ...], limit: int, check: bool, repeat: int, output_format: str
) -> None:
    """Time decoding and printing SASS, and nvdisasm (if found) on the same cubins.

    FILES are cubins, executables and libraries.  Times are CPU time of one thread.
    """
    from sassxlate.bench import disasm as _bench_disasm

    figures = _bench_disasm.measure(files, repeat, limit)
    _end("disasm", figures, output_format, check)


@command.command("programs")
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option(
    "--sample", type=_FILE, help="A TOML file of names and arguments; run no other programs."
)
@click.option("--truth", type=_FILE, help="A JSON file of what they print on an NVIDIA GPU.")
@click.option(
    "-k", "pattern", default="", help="Run only programs whose names match this regular expression."
)
@click.option("--arch", default="", help="Only executables for this architecture (sm_80).")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="At a time.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    default=60.0,
    show_default=True,
    help="Time limit for each program, in seconds.",
)
@click.option(
    "--memory",
    type=click.FloatRange(0.1),
    default=8.0,
    show_default=True,
    help="Memory limit for each program, in GiB.",
)
@click.option("--results", type=_FILE, help="Where to keep results (default: in the cache).")
@click.option("--stale", is_flag=True, help="Also accept results from other versions.")
@click.option(
    "--again",
    default="",
    metavar="VERDICTS",
    help="Repeat programs with these verdicts (a,b,... or all).",
)
@click.option("--write", type=_FILE, help="Put the table into this document.")
@click.option("--check", is_flag=True, help="Exit status 1 if a program does not pass.")
@target_option
@format_option
def programs(
    folder: Path,
    sample: Path | None,
    truth: Path | None,
    pattern: str,
    arch: str,
    jobs: int,
    timeout: float,
    memory: float,
    results: Path | None,
    stale: bool,
    again: str,
    write: Path | None,
    check: bool,
    target: str,
    output_format: str,
) -> None:
    """Run every executable in FOLDER on the emulated device, and report the result of each.

    A file run.json beside an executable may hold its "args".  Results of an earlier call
    (same bytes, arguments and version of sassxlate) are reused, so an
    interrupted call continues where it stopped.
    """
    from sassxlate.bench.programs import find as finding
    from sassxlate.bench.programs import run as bench
    from sassxlate.bench.programs import table as report

    known = finding.read_truth(truth) if truth else {}
    keep = results or paths.cache_dir() / "programs.jsonl"
    keep.parent.mkdir(parents=True, exist_ok=True)
    wanted = [
        program
        for program in finding.find(folder, sample)
        if re.search(pattern, program.name) and arch in ("", program.arch)
    ]
    work = bench.Bench(keep, bench.Limits(timeout, int(memory * 2**30)), known, stale, target)
    work.forget(again)
    outcomes: list[bench.ProgramOutcome] = []
    try:
        for outcome in work.run(wanted, jobs):
            outcomes.append(outcome)
            line = f"{len(outcomes)}/{len(wanted)} {outcome.name} {outcome.arch}: {outcome.verdict}"
            reason = f" ({outcome.reason})" if outcome.reason else ""
            click.echo(f"{line}{reason}, {outcome.seconds:.1f} s", err=True)
    finally:
        if output_format == "json":
            print_json({"programs": [asdict(outcome) for outcome in outcomes]})
        else:
            print_lines(report.text(outcomes))
    if write:
        report.write(write, outcomes)
    if check and any(outcome.verdict != "pass" for outcome in outcomes):
        raise SystemExit(EXIT_MISSED)


@command.command("applications")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--only", default="", metavar="REGEX", help="Only names or applications that match.")
@click.option(
    "--declarations",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="The folder of declarations (default: fixtures/applications).",
)
@click.option(
    "--env",
    "environments",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of virtual environments (default: in the cache).",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1),
    help="Time limit for each run, in seconds (default: the declaration's, or 600).",
)
@click.option(
    "--install-timeout",
    type=click.FloatRange(0.1),
    default=1800.0,
    show_default=True,
    help="Time limit for installing one application's packages, in seconds.",
)
@click.option("--install-only", is_flag=True, help="Install the packages; run nothing.")
@click.option("--write", type=_FILE, help="Put the table's rows into this document.")
@click.option("--check", is_flag=True, help="Exit status 1 if an application is not right.")
@click.option(
    "--format",
    "--output-format",
    "output_format",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--json", "output_format", flag_value="json", help="Short for --format json.")
def applications(
    names: tuple[str, ...],
    only: str,
    declarations: Path | None,
    environments: Path | None,
    timeout: float | None,
    install_timeout: float,
    install_only: bool,
    write: Path | None,
    check: bool,
    output_format: str,
) -> None:
    """Install and run public packages on the emulated device, as declared in TOML files.

    NAME is a declaration's file name without its suffix; without one, all are run.  Each script
    runs twice, with an empty translation cache and with a warm one, and where the declaration says
    so on the CPU or on an NVIDIA GPU, too.  pip installs the packages from the index that it is
    configured for, into virtual environments that later calls reuse.
    """
    from sassxlate.bench.applications import declaration, environment
    from sassxlate.bench.applications import run as bench
    from sassxlate.bench.applications import table as report
    from sassxlate.errors import SassxlateError, exit_status

    folder = declarations or fixtures(None) / "applications"
    place = (environments or paths.cache_dir() / "applications").absolute()
    chosen = declaration.load(folder, names, only)
    if install_only:
        for one in chosen:
            environment.prepare(one, place, install_timeout)
        return
    paths.library_dir()  # without the libraries every application would fail
    outcomes: list[bench.Outcome] = []
    errors: list[SassxlateError] = []
    try:
        for one, result in bench.measure_all(chosen, place, timeout, install_timeout):
            if isinstance(result, SassxlateError):
                errors.append(result)
                click.echo(f"sassxlate: {result}", err=True)
                continue
            outcomes.append(result)
            reason = f" ({result.reason})" if result.reason else ""
            click.echo(f"{one.name}: {result.verdict}{reason}", err=True)
    finally:
        if output_format == "json":
            rows = [report.as_dict(outcome) for outcome in outcomes]
            print_json({"bench": "applications", "applications": rows})
        else:
            made = report.text if output_format == "text" else report.markdown
            print_lines(made(outcomes))
    if write:
        report.write(write, outcomes, declaration.load(folder))
    if errors:
        raise SystemExit(exit_status(errors[0]))
    if check and any(outcome.verdict != "right" for outcome in outcomes):
        raise SystemExit(EXIT_MISSED)


@command.command("codegen")
@click.option("--fixtures", "given", type=click.Path(), help="The fixtures directory.")
@click.option(
    "-k", "pattern", default="", help="Only programs (kernels) that match this regular expression."
)
@click.option(
    "--pairs",
    nargs=2,
    type=_FILE,
    metavar="CUDA_LIB HIP_LIB",
    help="Compare the kernels of a library that was built for CUDA and for HIP.",
)
@click.option(
    "--arch",
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
@format_option
def codegen(
    given: str | None,
    pattern: str,
    pairs: tuple[Path, Path] | None,
    arch: str,
    engine: str,
    target: str,
    bless: bool,
    check: bool,
    output_format: str,
) -> None:
    """Compare our code with clang's for the same sources, per kernel of the fixtures' programs.

    Counts instructions in the code, and instructions that the emulated device executes.  With
    --pairs it counts the instructions of any library's kernels and those of AMD's compiler.
    """
    from sassxlate.bench.codegen import compare as bench
    from sassxlate.bench.codegen import table as report
    from sassxlate.errors import UsageError

    if pattern and (bless or check):
        raise UsageError("SX0831", "the page covers all programs: --bless and --check take no -k")
    processor = target_named(target)
    if processor != DEFAULT and (bless or check):
        raise UsageError("SX0831", f"the page is of {DEFAULT.name}: --bless and --check need it")
    if engine != "rules" and (bless or check or pairs):
        raise UsageError("SX0831", "--bless, --check and --pairs are of the rules' code")
    folder = fixtures(given)
    page = folder.parent / "docs" / "codegen.md"
    if pairs:
        wrong = _pairs(folder, page, pairs, arch, processor, pattern, bless, check, output_format)
    else:
        reasons = bench.explained(folder)
        rows = bench.measure(folder, pattern, target=processor, engine=engine)
        if output_format == "json":
            print_json({"bench": "codegen", "kernels": [row.as_dict() for row in rows]})
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
        raise SystemExit(EXIT_MISSED)


@command.command("hybrid")
@click.option("--fixtures", "given", type=click.Path(), help="The fixtures directory.")
@click.option("-k", "pattern", default="", help="Only programs that match this regular expression.")
@click.option(
    "--arch", default="sm_80", show_default=True, help="The architecture of the programs."
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
@click.option("--write", type=_FILE, help="Put the table into this document.")
@click.option("--check", is_flag=True, help="Exit status 1 if a target is missed.")
@format_option
def hybrid(
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
    output_format: str,
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
        click.echo(f"{row.program}: {state}, {100 * (1 - row.ratio):.1f} % saved", err=True)

    place = tempfile.TemporaryDirectory(prefix="sassxlate-hybrid-", ignore_cleanup_errors=True)
    with place as made:  # in which services may still end
        programs = bench.executables(folder, number, pattern, Path(made))
        result = bench.measure(
            programs, chosen, number, Path(made, "caches"), strict=strict, told=told, target=target
        )
    if output_format == "json":
        print_json(result.as_dict() | {"machine": machine()})
    else:
        print_lines(bench.text(result))
    if write:
        report.write(write, bench.markdown(result, machine()), (bench.BEGIN, bench.END))
    wrong = result.missed() if check else []
    for line in wrong:
        click.echo(line, err=True)
    if wrong:
        raise SystemExit(EXIT_MISSED)


def _pairs(
    folder: Path,
    page: Path,
    files: tuple[Path, Path],
    arch: str,
    target: Target,
    pattern: str,
    bless: bool,
    check: bool,
    output_format: str,
) -> list[str]:
    """What went wrong in `bench codegen --pairs`."""
    from sassxlate.bench.codegen import library_pairs as bench
    from sassxlate.bench.codegen import table as report

    reasons = bench.explained(folder)
    found = bench.measure(*files, arch, pattern, target)
    if output_format == "json":
        print_json({"bench": "codegen", **found.as_dict()})
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

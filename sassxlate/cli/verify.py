"""`sassxlate verify FILE`: proves each block's translation equivalent to its SASS."""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from sassxlate.cli.options import engine_options, show_defects, target_option
from sassxlate.disasm.inputs import (
    kernel_matches,
    no_match,
    parse_arch,
    read_input,
    read_text,
)
from sassxlate.errors import ModelError, SassxlateError, UsageError
from sassxlate.llm.engine.choose import TIER
from sassxlate.lowering.report.judged import Judged, ProofSettings
from sassxlate.lowering.report.proofs import Answer, judge_all
from sassxlate.lowering.target import Target, target_named
from sassxlate.processes import cores
from sassxlate.runtime_shim.cache.verdicts import verdicts
from sassxlate.runtime_shim.ptx.machine_code import machine_code
from sassxlate.runtime_shim.replay.against_interpreter import run_options
from sassxlate.runtime_shim.writer import writer

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel
    from sassxlate.lowering.select.translated import Translated
    from sassxlate.lowering.verify.rules.verify import Finding, RuleCheckSettings

VECTORS = 1 << 20  # random vectors for a form that the solver cannot decide


def rules_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds ``--rules`` and its options; without it the command is unchanged."""

    @functools.wraps(command)
    def wrapped(context: click.Context, **options: Any) -> None:
        own = {name: options.pop(name) for name in ("rules", "combinations", "words")}
        file = options["file"]
        _check_engine({**own, **options})
        if not own["rules"]:
            if file is None:
                raise click.UsageError("Missing argument 'FILE'.", context)
            command(**options)
            return
        patterns = [*([] if file is None else [file]), *options["args"]]
        given = context.get_parameter_source("vectors") != ParameterSource.DEFAULT
        require_solver()
        from sassxlate.lowering.verify.rules.verify import RuleCheckSettings

        settings = RuleCheckSettings(
            _arch(options["arch"]),
            own["combinations"],
            own["words"],
            options["seed"] or 1,
            int(options["timeout"] * 1000),
            options["vectors"] if given else VECTORS,
            target_named(options["target"]),
        )
        status = verify_rules(
            patterns, settings, options["jobs"], options["as_json"], options["verbose"]
        )
        context.exit(status)

    passed: Callable[..., None] = click.pass_context(cast("Any", wrapped))
    out = click.option(
        "--combinations",
        type=click.IntRange(0),
        default=24,
        show_default=True,
        help="With --rules: random words of each form, besides one for each modifier and sign.",
    )(passed)
    out = click.option(
        "--words",
        type=click.IntRange(0),
        default=0,
        help="With --rules: most words of each row of the encoding tables; 0: all.",
    )(out)
    return click.option(
        "--rules", is_flag=True, help="Verify all lowering rules, or those that FILE and ARGS name."
    )(out)


@click.command(short_help="Prove the translation of a kernel's blocks")
@rules_options
@click.argument("file", metavar="FILE", required=False)
@click.option(
    "-k",
    "--kernel",
    multiple=True,
    help="Kernel name (mangled or demangled) or glob (default: all).",
)
@click.option("--arch", help="Only this architecture, e.g. sm_80.")
@click.option(
    "--timeout", type=float, default=10.0, help="Solver time limit per block, in seconds."
)
@click.option(
    "--vectors", type=int, default=4096, help="Random inputs to try if the solver cannot decide."
)
@click.option("-j", "--jobs", type=click.IntRange(0), default=0, help="Processes; 0: all cores.")
@engine_options
@click.option("--no-cache", is_flag=True, help="Prove again, ignoring stored verdicts.")
@target_option
@click.option("--text", is_flag=True, help="FILE is one block as text, as described above.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per block.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Print every block, not only those that are not proved."
)
@click.pass_context
@run_options
def command(
    context: click.Context,
    file: str,
    kernel: tuple[str, ...],
    arch: str | None,
    timeout: float,
    vectors: int,
    jobs: int,
    engine: str | None,
    model: str | None,
    samples: int,
    no_cache: bool,
    target: str,
    text: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Prove translations: each block of each kernel is translated, its code decoded from the final
    bytes, and proved equal to the SASS under the register map, refuted by an input, or unknown with
    a reason.

    With --engine or --model the code is what `translate` writes with them; without, the rules'.

    The end of a block (branches, barriers, convergence) is not covered.  The exit status is 1
    if a block was refuted.

    With --text, FILE is one block in TOML: arch = 90, sass and rdna3 (text, one instruction per
    line), registers (R4 = "v4", P0 = "s20", UR4 = "s24"), and optionally constants and live_out.

    With --run, FILE is a program: it runs on the emulated device (with --engine llvm or
    best: with their code), each of its launches runs again in the reference interpreter of SASS,
    and memory afterwards must be the same.

    With --rules there is no file: each lowering rule is verified for the forms of its
    instructions.  FILE and ARGS are then mnemonics, rules or patterns of them.
    """
    require_solver()
    settings, processor = ProofSettings(int(timeout * 1000), vectors), target_named(target)
    if text:
        context.exit(verify_text(file, settings, as_json, processor))
    loaded = machine_code(read_input(file), arch)
    kernels = list(_kernels(loaded.cubins(), kernel, arch))
    if not kernels:
        raise no_match(file, kernel, arch)
    total: Counter[str] = Counter()
    made = _written(file, kernels, engine, model, samples, target)
    kept = None if no_cache else verdicts()
    answers = judge_all(kernels, settings, kept, jobs or cores(), made, processor)
    try:
        for (cubin, k), answer in zip(kernels, answers, strict=True):
            total += _report(file, cubin, k, answer, as_json, verbose)
    except KeyboardInterrupt:
        answers.close()
        context.exit(130)
    click.echo(f"all: {counted(total)}", err=as_json)
    if total["Refuted"]:
        context.exit(1)


def _check_engine(options: Mapping[str, Any]) -> None:
    """ModelError SX1008 if an engine is named where nothing is translated with it."""
    if options["engine"] is None and options["model"] is None and options["samples"] == 1:
        return
    tier = options["engine"] in TIER and options["model"] is None and options["samples"] == 1
    for name in ("rules", *([] if tier else ["run"]), "text"):
        if options[name]:
            message = f"--{name} takes no --engine, --model and --samples"
            raise ModelError("SX1008", message)


def _written(
    file: str,
    kernels: Sequence[tuple[Cubin, Kernel]],
    engine: str | None,
    model: str | None,
    samples: int,
    target: str,
) -> list[Translated | SassxlateError] | None:
    """The kernels as an engine translates them for a target, or why not; None if it is the
    rules."""
    engines = writer(engine or ("rules" if model is None else None), model, samples, target)
    if engines.tier:
        message = f"--engine {engine} writes whole kernels, not blocks: use --run"
        raise ModelError("SX1008", message)
    if engines.engine is None:
        return None
    engines.keeps = ()  # programs get code from `translate` and `run`
    made: list[Translated | SassxlateError] = []
    for cubin, kernel in engines.asked(kernels, lambda k: (k[0], k[1].name), file):
        try:
            done, report = engines.translate(cubin, kernel.name, placed=True)
        except SassxlateError as error:
            made.append(error)
        else:
            show_defects(report, kernel.name, file)
            made.append(done)
    return made


def require_solver() -> None:
    """UsageError SX0823 if z3 is missing."""
    try:
        import z3  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        message = "the solver is missing: pip install 'sassxlate[verify]'"
        raise UsageError("SX0823", message) from None


def _kernels(
    cubins: Iterator[tuple[object, Cubin]], patterns: tuple[str, ...], arch: str | None
) -> Iterator[tuple[Cubin, Kernel]]:
    wanted = parse_arch(arch) if arch else None
    for _, cubin in cubins:
        if wanted and (cubin.arch != wanted[0] or wanted[1] not in ("", cubin.variant)):
            continue
        for k in cubin.kernels:
            if not patterns or kernel_matches(k.name, k.demangled, patterns):
                yield cubin, k


def _report(
    file: str, cubin: Cubin, kernel: Kernel, answer: Answer, as_json: bool, verbose: bool
) -> Counter[str]:
    """Prints the results of one kernel; returns the counts by verdict."""
    if answer.refused is not None:
        click.echo(f"sassxlate: {answer.refused.at(file=file, kernel=kernel.name)}", err=True)
        return Counter({"refused kernels": 1})
    counts = Counter(type(j.verdict).__name__ for j in answer.judged)
    for judged in answer.judged:
        if as_json:
            head = {"kernel": kernel.name, "arch": f"sm_{cubin.arch}"}
            click.echo(json.dumps({**head, **_record(judged)}))
        elif verbose or type(judged.verdict).__name__ != "Proved":
            print_verdict(judged)
    if not as_json:
        click.echo(f"{kernel.demangled} (sm_{cubin.arch}): {counted(counts)}")
    return counts


def counted(counts: Counter[str]) -> str:
    """The counts as text."""
    names = ("Proved", "Refuted", "Unknown", "refused kernels")
    return ", ".join(f"{counts[n]} {n.lower()}" for n in names if counts[n]) or "no blocks"


def print_verdict(judged: Judged, *, err: bool = False) -> None:
    """Prints one line per block; a counterexample in both languages."""
    from sassxlate.lowering.verify import Proved, Refuted

    verdict = judged.verdict
    head = f"  block /*{judged.start:04x}*/, {judged.instructions} instructions:"
    if isinstance(verdict, Proved):
        reading = f" (modulo {', '.join(verdict.modulo)})" if verdict.modulo else ""
        click.echo(f"{head} proved{reading}", err=err)
    elif isinstance(verdict, Refuted):
        lines = [f"{head} refuted", *(f"    {line}".rstrip() for line in judged.shown)]
        click.echo("\n".join(lines), err=err)
    else:
        click.echo(f"{head} unknown: {verdict.reason}", err=err)


def _record(judged: Judged) -> dict[str, object]:
    return {
        "block": judged.index,
        "offset": judged.start,
        "instructions": judged.instructions,
        "verdict": type(judged.verdict).__name__,
        "ms": judged.ms,
        "cached": judged.cached,
        **asdict(judged.verdict),
    }


def _arch(text: str | None) -> int:
    return parse_arch(text)[0] if text else 90


def verify_rules(
    patterns: Sequence[str], settings: RuleCheckSettings, jobs: int, as_json: bool, verbose: bool
) -> int:
    """Prints a table of rules and those not proved; returns 1 if one was refuted."""
    from sassxlate.lowering.verify.rules.verify import chosen, each, table
    from sassxlate.processes import cores

    todo = chosen(patterns, settings)
    if not todo:
        raise UsageError("SX0803", f"no rule is named {', '.join(patterns)}")
    found: list[Finding] = []
    with click.progressbar(
        length=1000 * len(todo), label="forms", file=sys.stderr, hidden=as_json
    ) as bar:

        def told(part: float) -> None:
            bar.update(round(1000 * part))

        for some in each(patterns, settings, jobs or cores(), told):
            found += some
            if as_json:
                for finding in some:
                    click.echo(json.dumps({"arch": f"sm_{settings.arch}", **asdict(finding)}))
                sys.stdout.flush()
    if not as_json:
        _print(found, table(found), verbose)
    return int(any(f.status == "refuted" for f in found))


def _print(
    found: Sequence[Finding], counts: Mapping[str, Mapping[Any, int]], verbose: bool
) -> None:
    from sassxlate.lowering.verify.rules.verify import STATUSES

    click.echo(f"{'rule':16}" + "".join(f"{name:>9}" for name in STATUSES))
    total: Counter[str] = Counter()
    for rule, row in sorted(counts.items()):
        total.update(row)
        click.echo(f"{rule:16}" + "".join(f"{row[name] or '-':>9}" for name in STATUSES))
    click.echo(f"{'all':16}" + "".join(f"{total[name]:>9}" for name in STATUSES))
    several = Counter(f.immediates for f in found if f.immediates and f.status == "proved")
    if several:
        whole = several.pop("all", 0)
        click.echo(f"immediates: {whole} words for all values, {sum(several.values())} for some")
    shown: Counter[tuple[str, str, str]] = Counter()
    for finding in found:
        if finding.status in ("refuted", "unknown") or (verbose and finding.status != "proved"):
            key = (finding.rule, finding.status, finding.detail)
            if not shown[key] or verbose:
                text = f"{finding.text} ({finding.surroundings})"
                click.echo(f"{finding.status}: {finding.rule}: {text}: {finding.detail}")
            shown[key] += 1


def verify_text(path: str, settings: ProofSettings, as_json: bool, target: Target) -> int:
    """Prints the verdict; returns the exit status, 1 if the block is refuted."""
    from sassxlate.lowering.verify import Proved, Refuted, verify
    from sassxlate.lowering.verify.block.counterexample import explain_counterexample
    from sassxlate.lowering.verify.block.from_text import block_of, read_texts

    try:
        block = block_of(read_texts(read_text(path)), target)
    except SassxlateError as error:
        raise error.at(file=path) from None
    verdict = verify(block, timeout_ms=settings.timeout_ms, vectors=settings.vectors, tested=True)
    if as_json:
        click.echo(json.dumps({"verdict": type(verdict).__name__, **asdict(verdict)}))
    elif isinstance(verdict, Proved):
        reading = f" (modulo {', '.join(verdict.modulo)})" if verdict.modulo else ""
        click.echo(f"proved{reading}")
    elif isinstance(verdict, Refuted):
        click.echo("refuted")
        for line in explain_counterexample(block, verdict):
            click.echo(f"  {line}".rstrip())
    else:
        click.echo(f"unknown: {verdict.reason}")
    return 1 if isinstance(verdict, Refuted) else 0

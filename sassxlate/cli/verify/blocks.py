"""``sassxlate verify blocks FILE``: proves each block's translation equivalent to its SASS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    arch_option,
    engine_options,
    jobs_option,
    kernel_option,
    printing_options,
    proof_options,
    show_defects,
    target_option,
)
from sassxlate.cli.verdicts import counted, require_solver, verdict_text
from sassxlate.disasm.inputs import (
    kernel_matches,
    matching_images,
    no_match,
    read_input,
)
from sassxlate.errors import EXIT_NEGATIVE, EXIT_UNSUPPORTED, ModelError, SassxlateError
from sassxlate.lowering.report.judged import Judged, ProofSettings
from sassxlate.lowering.report.proofs import Answer, judge_all
from sassxlate.lowering.target import target_named
from sassxlate.notes import quiet, verbose
from sassxlate.output import print_json_line
from sassxlate.processes import cores
from sassxlate.runtime_shim.cache.verdicts import verdicts
from sassxlate.runtime_shim.ptx.machine_code import machine_code
from sassxlate.runtime_shim.writer import writer

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel, LoadedFile
    from sassxlate.lowering.select.translated import Translated


@click.command(
    "blocks", cls=Command, example="sassxlate verify blocks ./saxpy -k '*saxpy*' --arch sm_80"
)
@click.argument("file", metavar="FILE")
@kernel_option
@arch_option
@proof_options
@jobs_option()
@engine_options
@click.option("--no-cache", is_flag=True, help="Prove again, ignoring stored verdicts.")
@target_option
@printing_options()
@click.pass_context
def command(
    context: click.Context,
    file: str,
    kernels: tuple[str, ...],
    arch: str | None,
    timeout: float,
    vectors: int,
    jobs: int,
    engine: str | None,
    model: str | None,
    samples: int,
    no_cache: bool,
    target: str,
    form: str,
) -> None:
    """Prove translations: each block of each kernel is translated, its code decoded from the final
    bytes, and proved equal to the SASS under the register map, refuted by an input, or unknown with
    a reason.

    With --engine or --model the code is what `translate` writes with them; without, the rules'.
    The end of a block (branches, barriers, convergence) is not covered.  With -v proved blocks are
    listed, too.  As JSON each block is a line.

    The exit status is 1 if a block was refuted, 3 if a kernel was refused.
    """
    require_solver()
    as_json = form == "json"
    settings, processor = ProofSettings(int(timeout * 1000), vectors), target_named(target)
    loaded = machine_code(read_input(file), arch)
    chosen = list(_kernels(loaded, kernels, arch))
    if not chosen:
        raise no_match(file, kernels, arch)
    total: Counter[str] = Counter()
    made = _written(file, chosen, engine, model, samples, target)
    kept = None if no_cache else verdicts()
    answers = judge_all(chosen, settings, kept, jobs or cores(), made, processor)
    try:
        for (cubin, k), answer in zip(chosen, answers, strict=True):
            total += _report(file, cubin, k, answer, as_json)
    except KeyboardInterrupt:
        answers.close()
        context.exit(130)
    if not (as_json and quiet()):
        click.echo(f"all: {counted(total)}", err=as_json)
    if total["Refuted"]:
        context.exit(EXIT_NEGATIVE)
    if total["refused kernels"]:
        context.exit(EXIT_UNSUPPORTED)


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
        message = f"--engine {engine} writes whole kernels, not blocks: use `verify kernels`"
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


def _kernels(
    loaded: LoadedFile, patterns: tuple[str, ...], arch: str | None
) -> Iterator[tuple[Cubin, Kernel]]:
    for _, _, cubin in matching_images(loaded, patterns, arch):
        for k in cubin.kernels:
            if not patterns or kernel_matches(k.name, k.demangled, patterns):
                yield cubin, k


def _report(file: str, cubin: Cubin, kernel: Kernel, answer: Answer, as_json: bool) -> Counter[str]:
    """Prints the results of one kernel; returns the counts by verdict."""
    if answer.refused is not None:
        click.echo(f"sassxlate: {answer.refused.at(file=file, kernel=kernel.name)}", err=True)
        return Counter({"refused kernels": 1})
    counts = Counter(type(j.verdict).__name__ for j in answer.judged)
    for judged in answer.judged:
        if as_json:
            head = {"kernel": kernel.name, "arch": f"sm_{cubin.arch}"}
            print_json_line("verify-blocks", {**head, **_record(judged)})
        elif verbose() or type(judged.verdict).__name__ != "Proved":
            click.echo(verdict_text(judged))
    if not as_json:
        click.echo(f"{kernel.demangled} (sm_{cubin.arch}): {counted(counts)}")
    return counts


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


__all__ = ["command"]

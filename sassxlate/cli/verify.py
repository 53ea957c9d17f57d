"""`sassxlate verify FILE`: is each block's translation what its SASS means?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sassxlate.errors import UsageError

from ._files import (
    kernel_matches,
    no_match,
    parse_arch,
    read_input,
    require_machine_code,
)
from ._verify_blocks import Answer, Judged, Settings, cores, judge_all
from ._verify_rules import rules_options
from ._verify_run import run_options
from ._verify_text import verify_text

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel


@click.command(short_help="Prove the translation of a kernel's blocks")
@rules_options
@click.argument("file", metavar="FILE", required=False)
@click.option("-k", "--kernel", multiple=True, help="Name, demangled name or glob; all without.")
@click.option("--arch", help="Only this architecture, e.g. sm_80.")
@click.option("--timeout", type=float, default=10.0, help="Seconds for the solver, a block.")
@click.option("--vectors", type=int, default=4096, help="Random inputs where it cannot decide.")
@click.option("-j", "--jobs", type=click.IntRange(0), default=0, help="Processes; 0 is all cores.")
@click.option("--no-cache", is_flag=True, help="Ask again what was answered before.")
@click.option("--text", is_flag=True, help="FILE is one block as text: see above.")
@click.option("--json", "as_json", is_flag=True, help="One object a block.")
@click.option("-v", "--verbose", is_flag=True, help="Every block, not only what is not proved.")
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
    no_cache: bool,
    text: bool,
    as_json: bool,
    verbose: bool,
) -> None:
    """Each block of each kernel is translated, its code decoded back from the final bytes, and
    proved equal to the SASS under the register map, refuted by an input, or unknown, with why.

    What a block's end does (branches, barriers, convergence) is not its part.  The exit status is 1
    where a block was refuted.

    With --text, FILE is one block in TOML: arch = 90, sass and rdna3 (text, an instruction a line),
    registers (R4 = "v4", P0 = "s20", UR4 = "s24"), and perhaps constants and live_out.

    With --run, FILE is a program: it runs on the emulated device, every launch of it again in the
    reference interpreter of SASS, and memory behind it must be the same.

    With --rules there is no file: each lowering rule is verified for the forms that its
    instructions have.  FILE and ARGS are then mnemonics, rules or patterns of them.
    """
    require_solver()
    settings = Settings(int(timeout * 1000), vectors)
    if text:
        context.exit(verify_text(file, settings, as_json))
    loaded = read_input(file)
    require_machine_code(loaded)
    kernels = list(_kernels(loaded.cubins(), kernel, arch))
    if not kernels:
        raise no_match(file, kernel, arch)
    total: Counter[str] = Counter()
    answers = judge_all(kernels, settings, not no_cache, jobs or cores())
    try:
        for (cubin, k), answer in zip(kernels, answers, strict=True):
            total += _report(file, cubin, k, answer, as_json, verbose)
    except KeyboardInterrupt:
        answers.close()
        context.exit(130)
    click.echo(f"all: {counted(total)}", err=as_json)
    if total["Refuted"]:
        context.exit(1)


def require_solver() -> None:
    """UsageError SX0823 where z3 is missing."""
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
    """Prints what came of one kernel; the counts by verdict."""
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
    """The counts in words."""
    names = ("Proved", "Refuted", "Unknown", "refused kernels")
    return ", ".join(f"{counts[n]} {n.lower()}" for n in names if counts[n]) or "no blocks"


def print_verdict(judged: Judged, *, err: bool = False) -> None:
    """One line a block; a counterexample in both languages."""
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

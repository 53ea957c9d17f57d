"""``sassxlate verify kernels FILE``: whole kernels, from SASS to the final machine code."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arch_option, kernel_option, printing_options, target_option
from sassxlate.cli.verdicts import counted, require_solver
from sassxlate.disasm.inputs import kernel_matches, matching_images, no_match, read_input
from sassxlate.errors import EXIT_NEGATIVE, EXIT_UNSUPPORTED, SassxlateError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import Target, target_named
from sassxlate.notes import quiet
from sassxlate.output import print_json_line
from sassxlate.runtime_shim.ptx.machine_code import machine_code

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel
    from sassxlate.lowering.verify.verdict import Verdict

ENGINES = ("llvm",)
LIMIT_S = 60.0


@click.command(
    "kernels", cls=Command, example="sassxlate verify kernels ./saxpy -k '*saxpy*' --engine llvm"
)
@click.argument("file", metavar="FILE")
@kernel_option
@arch_option
@click.option(
    "--timeout", type=float, default=LIMIT_S, show_default=True,
    help="Time limit of the solver per kernel, in seconds.",
)  # fmt: skip
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="llvm",
    show_default=True,
    help="The writer of the code: LLVM writes whole kernels.",
)
@target_option
@printing_options()
@click.pass_context
def command(
    context: click.Context,
    file: str,
    kernels: tuple[str, ...],
    arch: str | None,
    timeout: float,
    engine: str,
    target: str,
    form: str,
) -> None:
    """Prove whole kernels: each kernel that LLVM's tier takes is compiled, its code decoded from
    the final bytes, and all of its stores proved equal to those of the SASS, refuted by an input,
    or unknown with a reason.

    Kernels with loops, barriers, atomics, calls, local memory, or instructions that see other lanes
    are unknown.  As JSON each kernel is a line.

    The exit status is 1 if a kernel was refuted, 3 if one was refused.
    """
    require_solver()
    as_json, processor = form == "json", target_named(target)
    total: Counter[str] = Counter()
    some = False
    for cubin, kernel in _kernels(file, kernels, arch):
        some = True
        head = {"kernel": kernel.name, "arch": f"sm_{cubin.arch}", "engine": engine}
        started = time.process_time()
        try:
            found = _judged(cubin, kernel.name, processor, timeout)
        except SassxlateError as error:
            total["refused kernels"] += 1
            click.echo(f"sassxlate: {error.at(file=file, kernel=kernel.name)}", err=True)
            continue
        total[type(found).__name__] += 1
        if as_json:
            spent = {"verdict": type(found).__name__, "s": round(time.process_time() - started, 2)}
            print_json_line("verify-kernels", {**head, **spent, **asdict(found)})
        else:
            click.echo(f"{kernel.demangled} (sm_{cubin.arch}): {_text(found)}")
    if not some:
        raise no_match(file, kernels, arch)
    if not (as_json and quiet()):
        click.echo(f"all: {counted(total)}", err=as_json)
    if total["Refuted"]:
        context.exit(EXIT_NEGATIVE)
    if total["refused kernels"]:
        context.exit(EXIT_UNSUPPORTED)


def _kernels(
    file: str, patterns: tuple[str, ...], arch: str | None
) -> Iterator[tuple[Cubin, Kernel]]:
    loaded = machine_code(read_input(file), arch)
    for _, _, cubin in matching_images(loaded, patterns, arch):
        for kernel in cubin.kernels:
            if not patterns or kernel_matches(kernel.name, kernel.demangled, patterns):
                yield cubin, kernel


def _judged(cubin: Cubin, name: str, target: Target, limit_s: float) -> Verdict:
    """The verdict on LLVM's code for a kernel.  Raises SassxlateError if there is none."""
    from sassxlate.lowering.tier.translate import by_tier  # which needs NumPy
    from sassxlate.lowering.verify.kernel.verify import pair_of, verify

    rules = translate_kernel(cubin, name, target=target)
    return verify(pair_of(rules, by_tier(rules, target), target), limit_s=limit_s)


def _text(found: Verdict) -> str:
    from sassxlate.lowering.verify.verdict import Proved, Refuted

    if isinstance(found, Proved):
        return f"proved (modulo {', '.join(found.modulo)})" if found.modulo else "proved"
    if isinstance(found, Refuted):
        return f"refuted: {found.summary}"
    return f"unknown: {found.reason}"


__all__ = ["command"]

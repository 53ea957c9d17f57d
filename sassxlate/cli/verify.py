"""`sassxlate verify FILE`: is each block's translation what its SASS means?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sassxlate.errors import SassxlateError, UsageError

from ._files import kernel_matches, no_match, parse_arch, read_input, require_machine_code
from ._verify_run import run_options

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Cubin, Kernel
    from sassxlate.lowering.verify import Verdict
    from sassxlate.lowering.verify.blocks import Found


@click.command(short_help="Prove the translation of a kernel's blocks")
@click.argument("file", metavar="FILE")
@click.option("-k", "--kernel", multiple=True, help="Name, demangled name or glob; all without.")
@click.option("--arch", help="Only this architecture, e.g. sm_80.")
@click.option("--timeout", type=float, default=10.0, help="Seconds for the solver, a block.")
@click.option("--vectors", type=int, default=4096, help="Random inputs where it cannot decide.")
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
    as_json: bool,
    verbose: bool,
) -> None:
    """Each block of each kernel is translated, its code decoded back from the final bytes, and
    proved equal to the SASS under the register map, refuted by an input, or unknown, with why.

    What a block's end does (branches, barriers, convergence) is not its part.  The exit status is 1
    where a block was refuted.

    With --run, FILE is a program: it runs on the emulated device, every launch of it again in the
    reference interpreter of SASS, and memory behind it must be the same.
    """
    try:
        from sassxlate.lowering.verify import Proved, verify
    except ImportError:
        message = "the solver is missing: pip install 'sassxlate[verify]'"
        raise UsageError("SX0823", message) from None
    loaded = read_input(file)
    require_machine_code(loaded)
    total: Counter[str] = Counter()
    matched = False
    for cubin, k in _kernels(loaded.cubins(), kernel, arch):
        matched = True
        try:
            found = list(_blocks(cubin, k))
        except SassxlateError as error:
            click.echo(f"sassxlate: {error.at(file=file, kernel=k.name)}", err=True)
            total["refused kernels"] += 1
            continue
        counts: Counter[str] = Counter()
        for item in found:
            verdict = verify(item.block, timeout_ms=int(timeout * 1000), vectors=vectors)
            counts[type(verdict).__name__] += 1
            if as_json:
                click.echo(json.dumps({"kernel": k.name, **_record(item, verdict)}))
            elif verbose or not isinstance(verdict, Proved):
                _print(item, verdict)
        total += counts
        if not as_json:
            click.echo(f"{k.demangled} (sm_{cubin.arch}): {_counted(counts)}")
    if not matched:
        raise no_match(file, kernel, arch)
    click.echo(f"all: {_counted(total)}", err=as_json)
    if total["Refuted"]:
        context.exit(1)


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


def _blocks(cubin: Cubin, kernel: Kernel) -> Iterator[Found]:
    """Those that have something in them."""
    from sassxlate.lowering.pipeline import translate_kernel
    from sassxlate.lowering.verify.blocks import blocks

    return (b for b in blocks(translate_kernel(cubin, kernel.name)) if b.block.sass)


def _counted(counts: Counter[str]) -> str:
    names = ("Proved", "Refuted", "Unknown", "refused kernels")
    return ", ".join(f"{counts[n]} {n.lower()}" for n in names if counts[n]) or "no blocks"


def _print(found: Found, verdict: Verdict) -> None:
    from sassxlate.lowering.verify import Proved, Refuted

    head = f"  block /*{found.start:04x}*/, {len(found.block.sass)} instructions:"
    if isinstance(verdict, Proved):
        reading = f" (modulo {', '.join(verdict.modulo)})" if verdict.modulo else ""
        click.echo(f"{head} proved{reading}")
    elif isinstance(verdict, Refuted):
        inputs = {n: v for n, v in verdict.inputs.items() if v and not n.startswith(("v", "s"))}
        click.echo(f"{head} refuted")
        click.echo("    with " + ", ".join(f"{n} = {v:#x}" for n, v in inputs.items()))
        click.echo(f"    {verdict.where}: SASS {verdict.sass:#x}, RDNA3 {verdict.rdna:#x}")
    else:
        click.echo(f"{head} unknown: {verdict.reason}")


def _record(found: Found, verdict: Verdict) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "block": found.index,
        "offset": found.start,
        "instructions": len(found.block.sass),
        "verdict": type(verdict).__name__,
        **asdict(verdict),
    }

"""``python -m tools.witness.judge``: LLVM's passes asked about our code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from sassxlate.errors import SassxlateError
from tools.witness.judge import comgr, removed
from tools.witness.judge.llvm_tools import why_not
from tools.witness.judge.machine_code import Decoded, JudgeError, decode
from tools.witness.judge.objects import Made, all_of, fixtures, sampled
from tools.witness.judge.opcodes import Opcodes, remembered
from tools.witness.judge.verdicts import described, judged


@click.group()
def main() -> None:
    """LLVM's passes and AMD's comgr, asked about the code of kernels.

    FILES are programs, libraries and cubins; without any, those of the fixtures.

    \b
    python -m tools.witness.judge check
    python -m tools.witness.judge check --sample 500 --seed 1 LIB.so...
    """


_CHOICE = (
    click.argument("files", nargs=-1, type=click.Path(exists=True, path_type=Path)),
    click.option("--sample", type=int, help="Only so many kernels, drawn by --seed."),
    click.option("--first", type=int, help="Only so many of the sample."),
    click.option("--skip", type=int, default=0, help="Without so many at the sample's beginning."),
    click.option("--refusals", is_flag=True, help="Also say which were refused, and why."),
    click.option("--seed", type=int, default=1, show_default=True),
)


def _on_kernels(command: Callable[..., None]) -> Callable[..., None]:
    """A command on code: it gets the code of the chosen kernels, and the seed."""

    @wraps(command)
    def run(
        files: tuple[Path, ...],
        sample: int | None,
        first: int | None,
        skip: int,
        refusals: bool,
        seed: int,
        **rest: Any,
    ) -> None:
        chosen = list(files) or fixtures()
        tell = click.echo if refusals else None
        some = (
            all_of(chosen, tell)
            if sample is None
            else sampled(chosen, sample, seed, first, skip, tell)
        )
        command(list(some), seed, **rest)

    for option in reversed(_CHOICE):
        run = option(run)
    return run


def _read(pieces: Sequence[Made]) -> tuple[list[tuple[Decoded, ...]], Opcodes]:
    reason = why_not()
    if reason:
        raise click.ClickException(reason)
    codes, opcodes = decode([piece.code for piece in pieces]), remembered()
    described(codes, opcodes)
    return codes, opcodes


@main.command()
@_on_kernels
def check(pieces: list[Made], _seed: int) -> None:
    """Is a wait missing, a hazard open, the code malformed?  1 if so.

    A line for each kernel that LLVM's passes would change, and a sum.
    """
    codes, opcodes = _read(pieces)
    bad = 0
    for piece, verdict in zip(pieces, judged(codes, opcodes), strict=True):
        if not verdict.clean:
            bad += 1
            what = verdict.refused or "; ".join((*verdict.lacks, *verdict.encoded))
            click.echo(f"{piece}: {what}")
    kinds = Counter(piece.engine for piece in pieces)
    archs = sorted({piece.arch for piece in pieces}, key=lambda a: (len(a), a))
    click.echo(
        f"{len(pieces)} code objects ({', '.join(f'{n} {kind}' for kind, n in kinds.items())}; "
        f"{', '.join(archs)}), {sum(map(len, codes))} instructions: {bad} differ"
    )
    raise SystemExit(bool(bad))


@main.command()
@_on_kernels
@click.option("--trials", type=int, default=240, show_default=True)
def remove(pieces: list[Made], seed: int, trials: int) -> None:
    """Take waits away, one at a time: does LLVM want them back?

    A line for each that it does not want, with the reason.
    """
    codes, opcodes = _read(pieces)
    done = removed.trials(codes, removed.draw(codes, trials, seed), opcodes)
    for trial in done:
        if not trial.found:
            click.echo(f"{pieces[trial.code]}: {trial.text}: {trial.reason}")
    found = sum(trial.found for trial in done)
    click.echo(f"{found} of {len(done)} found ({100 * found / max(len(done), 1):.1f} %)")


@main.command()
@_on_kernels
def balance(pieces: list[Made], _seed: int) -> None:
    """How many waits we write, and how many LLVM would for the same code."""
    codes, opcodes = _read(pieces)
    for engine in sorted({piece.engine for piece in pieces}):
        mine = [c for c, piece in zip(codes, pieces, strict=True) if piece.engine == engine]
        sums = removed.balance(mine, opcodes)
        for name in sorted(sums.ours):
            click.echo(
                f"{engine} {name}: {sums.ours[name]}, of which {sums.fences[name]} in fences; LLVM "
                f"{sums.theirs[name]}; {sums.ours[name] - sums.pending[name]} with nothing "
                f"outstanding"
            )


@main.command(name="comgr")
@_on_kernels
@click.option("--version", default="7.2.4", show_default=True, help="Of tools.rocm.")
def comgr_(pieces: list[Made], _seed: int, version: str) -> None:
    """What AMD's comgr reads in code objects, against what we say.  1 if anything differs."""
    differ = instructions = 0
    said = comgr.read([piece.code_object for piece in pieces], version)
    for piece, seen in zip(pieces, said, strict=True):
        found = comgr.differences(piece, seen)
        instructions += len(seen.text)
        differ += bool(found)
        for line in found:
            click.echo(f"{piece}: {line}")
    click.echo(f"{len(pieces)} code objects, {instructions} instructions: {differ} differ")
    raise SystemExit(bool(differ))


if __name__ == "__main__":
    try:
        main()
    except (SassxlateError, JudgeError) as error:
        raise SystemExit(f"sassxlate: {error}") from None

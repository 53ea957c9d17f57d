"""`sassxlate dataset make`: kernels, pairs and tokens, one after the other."""

from __future__ import annotations

from pathlib import Path

import click

TOKENS = "tokens"  # of a dataset's folder: what `sassxlate train` takes


@click.command("make", short_help="Kernels, pairs and tokens in one go")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument(
    "sources", metavar="[SOURCES]...", nargs=-1, type=click.Path(exists=True, path_type=Path)
)
@click.option("--count", default=1600, show_default=True, type=click.IntRange(1),
              help="Programs of 12 kernels to generate (1,600: a million pairs).")  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Of splits and kernels.")
@click.option("--most", type=float, metavar="MIB", help="Tokens at most, for each split.")
@click.option("--search/--no-search", default=True, help="Look for cheaper code than the rules'.")
@click.option("-j", "--jobs", default=0, help="Processes (default: all cores).")
@click.pass_context
def make(
    ctx: click.Context,
    folder: Path,
    sources: tuple[Path, ...],
    count: int,
    seed: int,
    most: float | None,
    search: bool,
    jobs: int,
) -> None:
    """Generates kernels (DIR/kernels), builds the dataset DIR of them and of SOURCES, and writes
    its tokens (DIR/tokens): `dataset generate`, `build` and `tokens` with what they usually take.

    What was done before is not done again: if it is stopped, the same command goes on.
    """
    from .dataset import build, generate, tokens

    kernels = folder / "kernels"
    ctx.invoke(generate, folder=kernels, count=count, seed=seed, jobs=jobs, shard=(0, 1))
    ctx.invoke(
        build, folder=folder, sources=(kernels, *sources), seed=seed, jobs=jobs, search=search,
        shard=(0, 1), licences=(f"{kernels.name}/=Apache-2.0 (made by `sassxlate dataset`)",),
    )  # fmt: skip
    ctx.invoke(tokens, folder=folder, output=folder / TOKENS, split=(), most=most, jobs=jobs)


__all__ = ["TOKENS", "make"]

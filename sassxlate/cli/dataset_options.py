"""Options of `sassxlate dataset`'s commands that several have, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sassxlate.cli.options import jobs_option

if TYPE_CHECKING:
    from sassxlate.executors import Place
    from sassxlate.llm.dataset.build import DatasetSettings


def _shard(ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[int, int]:
    del ctx, parameter
    first, _, of = text.partition("/")
    if not (first.isdigit() and of.isdigit() and 0 <= int(first) < int(of)):
        raise click.BadParameter("K/N with K from 0 to N - 1")
    return int(first), int(of)


def chosen_settings(
    seed: int,
    valid: float,
    test: float,
    *,
    search: bool = True,
    lifted: bool = False,
    walks: int = 0,
    longest: int | None = None,
    macros: bool = False,
    every: bool = False,
) -> DatasetSettings:
    """What the options ask for.  UsageError if nothing is left to train on."""
    from sassxlate.llm.dataset.build import DatasetSettings
    from sassxlate.runtime_shim.cache.verdicts import verdict_tag

    if valid + test >= 1:
        raise click.UsageError("--valid and --test leave nothing to train on")
    made = DatasetSettings(
        seed, valid, test, search, lifted, walks, tag=verdict_tag(), macros=macros, every=every
    )
    return made if longest is None else replace(made, longest=longest)


_share = click.FloatRange(0, 0.9)
EVERY = click.option(
    "--every-arch", "every", is_flag=True,
    help="Train on sm_75 to sm_120, not only on those up to sm_90.",
)  # fmt: skip
QUESTIONS: list[Callable[[Any], Any]] = [
    click.option(
        "--longest", type=click.IntRange(1, 256), metavar="N",
        help="Most SASS instructions of a question, macros apart (8).",
    ),
    click.option(
        "--macros/--no-macros", default=False, help="Questions have macros in words, too."
    ),
    EVERY,
]  # fmt: skip
COMMON = [
    jobs_option(),
    click.option("--seed", default=0, show_default=True, help="Seed for splits and kernels."),
    click.option(
        "--valid",
        default=0.01,
        show_default=True,
        type=_share,
        help="Share of the programs held out for `train` to measure on.",
    ),
    click.option(
        "--test",
        default=0.05,
        show_default=True,
        type=_share,
        help="Share of the programs held out for `eval`.",
    ),
    click.option("--limit-seconds", type=float, help="Start no new work after this many seconds."),
    click.option(
        "--shard", default="0/1", metavar="K/N", callback=_shard, help="Do only part K of N."
    ),
]


def cores_of(jobs: int) -> int:
    """The processes that `-j` asks for."""
    from sassxlate.processes import cores

    return jobs if jobs > 0 else cores()


def place_of(jobs: int, cluster: str | None) -> Place:
    """Where work is done: processes here, or a Dask cluster's."""
    from sassxlate.executors import Place
    from sassxlate.runtime_shim.cache.verdicts import verdict_tag

    return Place(cores_of(jobs), cluster, verdict_tag)

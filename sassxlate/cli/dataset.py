"""`sassxlate dataset`: pairs of SASS and proved RDNA3, from cubins and programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sassxlate.cli.dataset_options import (
    COMMON,
    EVERY,
    QUESTIONS,
    chosen_settings,
    cores_of,
    place_of,
)
from sassxlate.cli.dataset_progress import Shown
from sassxlate.cli.grammar import Command, Group
from sassxlate.cli.options import (
    arches_option,
    cluster_option,
    format_option,
    jobs_option,
    printing_options,
)
from sassxlate.cli.verdicts import require_solver
from sassxlate.errors import EXIT_NEGATIVE
from sassxlate.notes import note
from sassxlate.output import print_json


@click.group(cls=Group, short_help="Build the dataset of proved pairs that the model learns from")
def command() -> None:
    """Build pairs of a SASS region in canonical form and the cheapest proved RDNA3 for it."""


@command.command(
    short_help="Pairs from cubins and programs", example="sassxlate dataset build DATA ./saxpy -j 2"
)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument(
    "sources", metavar="[SOURCES]...", nargs=-1, type=click.Path(exists=True, path_type=Path)
)
@arches_option
@click.option("--search/--no-search", default=True, help="Look for cheaper code than the rules'.")
@click.option(
    "--lifted/--no-lifted", default=False, help="Ask LLVM's backend for cheaper code too (slower)."
)
@click.option(
    "--walks",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Also search at random, from N seeds a region (slower).",
)
@click.option(
    "--licence",
    "licences",
    multiple=True,
    metavar="PATTERN=TEXT",
    help="Licence of matching sources.",
)
@cluster_option
@printing_options()
def build(
    folder: Path,
    sources: tuple[Path, ...],
    arches: tuple[str, ...],
    search: bool,
    lifted: bool,
    walks: int,
    licences: tuple[str, ...],
    cluster: str | None,
    form: str,
    jobs: int,
    seed: int,
    valid: float,
    test: float,
    limit_seconds: float | None,
    shard: tuple[int, int],
    longest: int | None,
    macros: bool,
    every: bool,
) -> None:
    """Add the block pairs of SOURCES (files, or folders to search) to the dataset DIR.

    Finished work is not repeated, so an interrupted build continues; with
    --limit-seconds it stops by itself, with exit status 1 if work is left. --shard lets
    several machines share the work: put their DIR/units together. Without SOURCES, or when all is
    done, the shards and the datasheet are written.
    """
    require_solver()
    from sassxlate.disasm.inputs import parse_arch
    from sassxlate.llm.dataset.build import build as run
    from sassxlate.llm.dataset.files import finish

    settings = chosen_settings(
        seed, valid, test, search=search, lifted=lifted, walks=walks, longest=longest,
        macros=macros, every=every,
    )  # fmt: skip
    wanted = frozenset(parse_arch(a)[0] for a in arches) or None
    terms = dict(_licence(text) for text in licences)
    show = Shown()
    progress = run(
        folder,
        sources,
        settings,
        place=place_of(jobs, cluster),
        arches=wanted,
        limit_s=limit_seconds,
        shard=shard,
        told=show.build,
        failed=show.failed,
    )
    show.clear()
    if progress.done < progress.units:
        left = progress.units - progress.done
        click.echo(f"{left} of {progress.units} units are left; call again", err=True)
        raise SystemExit(EXIT_NEGATIVE)
    if shard[1] > 1 and sources:
        click.echo(f"part {shard[0]} of {shard[1]} is done: {progress.rows} pairs", err=True)
        return
    sheet = finish(folder, terms)
    if form == "json":
        print_json("dataset-build", _fields(sheet))
    else:
        click.echo((folder / "datasheet.md").read_text(encoding="utf-8"), nl=False)


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    """A file's content without its own number."""
    return {key: part for key, part in value.items() if key != "schema"}


def _licence(text: str) -> tuple[str, str]:
    pattern, found, terms = text.partition("=")
    if not found:
        raise click.UsageError(f"--licence takes PATTERN=TEXT, not {text!r}")
    return pattern, terms


@command.command(
    short_help="Generate kernels to take pairs from",
    example="sassxlate dataset generate KERNELS --count 100 -j 2",
)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--count", default=100, show_default=True, help="Programs.")
@click.option(
    "--kernels",
    default=12,
    show_default=True,
    type=click.IntRange(1),
    help="Kernels of each program.",
)
@cluster_option
@printing_options()
def generate(
    folder: Path,
    count: int,
    kernels: int,
    cluster: str | None,
    form: str,
    jobs: int,
    seed: int,
    valid: float,
    test: float,
    limit_seconds: float | None,
    shard: tuple[int, int],
    every: bool,
) -> None:
    """Write cubins of random CUDA kernels to DIR: for sm_80 and sm_90 at two levels, some with
    fast math; held-out programs for sm_75 to sm_120. Needs nvcc and ptxas (CUDA 13) on PATH."""
    from sassxlate.llm.dataset.generate.generate import generate as run

    settings = chosen_settings(seed, valid, test, every=every)
    show = Shown(len(range(shard[0], count, shard[1])))
    good, bad = run(
        folder,
        seed,
        count,
        settings,
        kernels=kernels,
        place=place_of(jobs, cluster),
        limit_s=limit_seconds,
        shard=shard,
        told=show.generated,
    )
    show.clear()
    if form == "json":
        print_json("dataset-generate", {"programs": good, "refused": bad})
    else:
        click.echo(f"{good} programs, {bad} refused by the compiler")
    if good + bad < len(range(shard[0], count, shard[1])):
        click.echo("some are left; call again", err=True)
        raise SystemExit(EXIT_NEGATIVE)


@command.command(
    short_help="Write the dataset as `sassxlate train` takes it",
    example="sassxlate dataset tokens DATA -o TOKENS --most 60",
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), metavar="DIR",
    help="Write to this folder.",
)  # fmt: skip
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    multiple=True,
    help="Only this split; may repeat.",
)
@click.option("--most", type=float, metavar="MIB", help="Size limit for each split.")
@jobs_option()
@format_option()
def tokens(
    folder: Path,
    output: Path,
    split: tuple[str, ...],
    most: float | None,
    jobs: int,
    form: str | None,
) -> None:
    """Write tokenised shards of DIR's splits (default: train and valid) for `sassxlate train`."""
    from sassxlate.llm.dataset.files import split_shards
    from sassxlate.llm.dataset.tokens import Written, write_tokens

    written: list[dict[str, Any]] = []

    def told(one: Written) -> None:
        row = {"file": str(one.path), "examples": one.examples, "bytes": one.bytes}
        written.append(row)
        if form != "json":
            click.echo(f"{one.path} {one.examples} examples {one.bytes} bytes")

    limit = None if most is None else int(most * (1 << 20))
    # A small dataset may have no held-out program.
    wanted = split or (("train", "valid") if split_shards(folder, "valid") else ("train",))
    for old in () if "valid" in wanted or split else output.glob("valid-*.tokens"):
        old.unlink()  # of programs that may now be in the training split
    for name in wanted:
        write_tokens(folder, output, name, limit, told, cores_of(jobs))
    if form == "json":
        print_json("dataset-tokens", {"written": written})


@command.command(
    short_help="Let a model look for cheaper answers",
    example="sassxlate dataset improve DATA --model MODEL --samples 8",
)
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--model", required=True, type=click.Path(exists=True, path_type=Path), help="A checkpoint."
)
@click.option(
    "--samples",
    default=8,
    show_default=True,
    type=click.IntRange(1),
    help="Answers to sample for each question.",
)
@click.option(
    "--questions",
    default=20_000,
    show_default=True,
    type=click.IntRange(1),
    help="Most questions to ask.",
)
@click.option("--limit-seconds", type=float, help="Start no new work after this many seconds.")
@click.option("--seed", default=0, show_default=True, help="Seed for questions and samples.")
@jobs_option()
@click.option(
    "--device", default="auto", show_default=True, metavar="auto|numpy|DEVICE",
    help="Where the model runs: a torch device, or numpy for a CPU without torch.",
)  # fmt: skip
@click.option(
    "--temperature", default=0.7, show_default=True, type=click.FloatRange(0.01, 10),
    help="Temperature of sampling: the lower, the likelier the answers.",
)  # fmt: skip
@click.option(
    "--unproved", is_flag=True, help="Keep cheaper answers that are not proved, in unproved.jsonl."
)
@printing_options()
def improve(
    folder: Path,
    model: Path,
    samples: int,
    questions: int,
    limit_seconds: float | None,
    seed: int,
    jobs: int,
    device: str,
    temperature: float,
    unproved: bool,
    form: str,
) -> None:
    """Ask a trained model for answers to DIR's training split, costly and new questions first. Each
    answer that is proved and costs less than the known one replaces it when DIR's shards are
    written again (dataset build DIR).

    One process samples answers (with torch on a GPU, otherwise without); the others prove them at
    the same time. Results are on disk every ten seconds: a run may be stopped at any time, and the
    next one asks other questions.
    """
    require_solver()
    from sassxlate.llm.dataset import improve as rounds
    from sassxlate.runtime_shim.cache.verdicts import verdict_tag

    chosen = rounds.questions(folder, questions, seed)
    name = rounds.name_of(model)
    show = Shown()
    progress = rounds.improve(
        folder,
        chosen,
        rounds.model_sampler(model, samples, seed, device, temperature),
        by=name,
        tag=verdict_tag(),
        jobs=cores_of(jobs),
        limit_s=limit_seconds,
        unproved=unproved,
        told=show.improved,
    )
    show.clear()
    made = rounds.figures(progress, name)
    if form == "json":
        print_json("dataset-improve", _fields(made))
        return
    for key, value in made.items():
        click.echo(f"{key} {value}")


for _option in reversed(COMMON):
    build = _option(build)
    generate = _option(generate)
generate = EVERY(generate)
for _option in reversed(QUESTIONS):
    build = _option(build)


TOKENS = "tokens"  # the folder in a dataset that `sassxlate train` reads


@click.command(
    "make",
    cls=Command,
    short_help="Kernels, pairs and tokens in one go",
    example="sassxlate dataset make DATA --count 100 -j 2",
)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.argument(
    "sources", metavar="[SOURCES]...", nargs=-1, type=click.Path(exists=True, path_type=Path)
)
@click.option("--count", default=1600, show_default=True, type=click.IntRange(1),
              help="Programs of 12 kernels to generate (1,600: a million pairs).")  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="Seed for splits and kernels.")
@click.option("--most", type=float, metavar="MIB", help="Size limit of the tokens of each split.")
@click.option("--search/--no-search", default=True, help="Look for cheaper code than the rules'.")
@jobs_option()
@cluster_option
@printing_options()
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
    cluster: str | None,
    form: str,
    longest: int | None,
    macros: bool,
    every: bool,
) -> None:
    """Generate kernels (DIR/kernels), build the dataset DIR from them and from SOURCES, and write
    its tokens (DIR/tokens): `dataset generate`, `build` and `tokens` with their usual options.
    Of two programs or more at least one is held out for `eval`.

    Finished work is not repeated: after an interruption, the same command continues.  As JSON
    it prints the documents of the three commands, one after the other.
    """
    require_solver()
    from sassxlate.llm.dataset.files import check_installed
    from sassxlate.llm.dataset.generate.generate import test_share
    from sassxlate.llm.evaluation.corpus import splits_of

    check_installed()  # before minutes of compiling
    kernels = folder / "kernels"
    test = splits_of(folder).test
    if not (folder / "settings.json").exists():  # later, programs do not change their split
        test = test_share(seed, count, test)
    note(f"1 of 3: {count} programs of kernels, to {kernels}")
    ctx.invoke(
        generate, folder=kernels, count=count, seed=seed, test=test, jobs=jobs, cluster=cluster,
        shard=(0, 1), form=form, every=every,
    )  # fmt: skip
    note("2 of 3: pairs of their regions, proved")
    ctx.invoke(
        build, folder=folder, sources=(kernels, *sources), seed=seed, jobs=jobs, cluster=cluster,
        search=search, test=test, shard=(0, 1), form=form, longest=longest, macros=macros,
        every=every,
        licences=(f"{kernels.name}/=Apache-2.0 (made by `sassxlate dataset`)",),
    )  # fmt: skip
    note(f"3 of 3: tokens, to {folder / TOKENS}")
    ctx.invoke(
        tokens, folder=folder, output=folder / TOKENS, split=(), most=most, jobs=jobs, form=form
    )


for _option in reversed(QUESTIONS):
    make = _option(make)
command.add_command(make)

"""`sassxlate eval SOURCES`: a model's figures on programs that it was not trained on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import arches_option, jobs_option, printing_options
from sassxlate.errors import EXIT_NEGATIVE
from sassxlate.notes import note, shows_progress

if TYPE_CHECKING:
    from sassxlate.llm.evaluation.corpus import Corpus
    from sassxlate.llm.evaluation.results import EvaluationRun

_NAMED = 8  # programs


@click.command(
    cls=Command,
    short_help="Measure a model on programs held out of training",
    example="sassxlate eval ./saxpy --model MODEL --samples 1",
)
@click.argument("sources", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--model", metavar="PATH_OR_HUB_ID", help="The model (default: the shipped one).")
@click.option("--dataset", metavar="DIR",
              type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Its training data, a dataset or its tokens: blocks seen in training are "
              "counted separately. Without SOURCES, its test programs are measured.")  # fmt: skip
@click.option("--split", type=click.Choice(["test", "valid", "train", "all"]),
              help="Programs of this split of the dataset (default: test without SOURCES, "
              "otherwise all).")  # fmt: skip
@click.option("--samples", type=click.IntRange(1, 64), default=8, show_default=True,
              help="Most answers sampled per instruction.")  # fmt: skip
@arches_option
@click.option("--programs", type=click.IntRange(1), metavar="N",
              help="Sample N programs (all builds of each).")  # fmt: skip
@click.option("--blocks", "--limit", type=click.IntRange(1), metavar="N",
              help="Sample N distinct blocks per architecture; whole programs are then "
              "not judged.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True,
              help="Seed of samples and of the choice of programs and blocks.")  # fmt: skip
@jobs_option()
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=2.0,
              show_default=True, help="Time limit of each solver query, in seconds.")  # fmt: skip
@click.option("--device", default="cpu", show_default=True,
              help="cpu, or cuda through transformers.")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.jsonl",
              help="Each block's result; an interrupted run continues from it.")  # fmt: skip
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.svg",
              help="Write a chart by block length.")  # fmt: skip
@click.option("--card", type=click.Path(path_type=Path, dir_okay=False), metavar="README.md",
              help="Write the model's card with these figures.")  # fmt: skip
@click.option(
    "--limit-seconds",
    type=click.FloatRange(min=0),
    help="Start no new work after this many seconds.",
)
@printing_options()
def command(
    sources: tuple[Path, ...],
    model: str | None,
    dataset: Path | None,
    split: str | None,
    samples: int,
    arches: tuple[str, ...],
    programs: int | None,
    blocks: int | None,
    seed: int,
    jobs: int,
    timeout: float,
    device: str,
    results: Path | None,
    picture: Path | None,
    card: Path | None,
    limit_seconds: float | None,
    form: str,
) -> None:
    """Ask the model for code for every distinct block of SOURCES (cubins, executables, libraries,
    folders of them), prove its answers, and report how many are proved, what they cost compared
    with the rules' code, how many whole programs are right without the rules, and how fast it is.

    An unproved block is asked for in parts, then for further answers. Exit status 1:
    --limit-seconds left some blocks; the same command with --results continues.
    """
    from sassxlate.disasm.inputs import parse_arch
    from sassxlate.errors import ModelError
    from sassxlate.llm.engine import models

    if not models.installed("z3"):
        raise ModelError("SX1002", "proofs need z3; pip install 'sassxlate[verify]'")
    from sassxlate.llm.dataset.build import DatasetSettings as Splits
    from sassxlate.llm.evaluation import corpus as evaluate
    from sassxlate.llm.evaluation import run as evaluate_run
    from sassxlate.llm.evaluation.figures import figures
    from sassxlate.llm.inference.block_model import BlockModel
    from sassxlate.llm.language.limits import limits_of_model
    from sassxlate.output import print_json, print_lines, write_whole
    from sassxlate.runtime_shim.cache.verdicts import verdict_tag

    if not sources and dataset is None:
        raise click.UsageError("give SOURCES or --dataset to measure on")
    if card is not None:
        _check_data(_folder(model), dataset)
    jobs = jobs or len(os.sched_getaffinity(0))
    proposer = models.language_model(model, device, seed)
    if isinstance(proposer, BlockModel):
        proposer.workers = jobs
    show = _Shown()
    trained = None
    splits = Splits()
    if dataset is not None:
        show.line(f"{dataset}: reading the training data", always=True)
        trained, splits = evaluate.Trained(dataset), evaluate.splits_of(dataset)
    split = split or ("all" if sources else "test")
    found = sources or tuple(evaluate.sources_of(dataset, split) if dataset else ())
    choice = evaluate.Choice(
        split, splits, frozenset(parse_arch(a)[0] for a in arches) or None, programs, blocks, seed,
        limits_of_model(proposer),
    )  # fmt: skip
    corpus = evaluate.collect(found, choice, trained, show.files)
    show.clear()
    note(_programs(corpus))
    for error in corpus.errors:
        click.echo(f"sassxlate: {error}", err=True)
    settings = evaluate_run.EvaluationSettings(
        samples, seed, jobs, int(1000 * timeout), limit_seconds, verdict_tag()[:32]
    )
    run = evaluate_run.measure(corpus, proposer, settings, results, show.blocks)
    show.clear()
    told: dict[str, Any] = {
        "model": proposer.name, "seed": seed, "jobs": jobs, "split": split, "timeout_s": timeout,
        **figures(corpus, run, samples, limits_of_model(proposer).every),
    }  # fmt: skip
    if picture is not None:
        from sassxlate.llm.evaluation.picture import picture as drawn

        write_whole(picture, drawn(told).encode())
    if card is not None:
        write_whole(card, _card(model, told, dataset).encode())
    if form == "json":
        print_json("eval", told)
    else:
        from sassxlate.llm.evaluation.text import lines

        print_lines(lines(told))
    if run.left:
        click.echo(f"{run.left} blocks are left; call again with --results", err=True)
        raise SystemExit(EXIT_NEGATIVE)


def _programs(corpus: Corpus) -> str:
    """Which programs are measured, the first few by name."""
    names = [p.name for p in corpus.programs]
    listed = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"{len(names)} programs, {len(corpus.blocks)} distinct blocks: {listed}"


def _card(model: str | None, told: dict[str, Any], dataset: Path | None) -> str:
    """The card of a model in a folder, whose data :func:`_check_data` has checked."""
    import json

    from sassxlate.llm.evaluation.card import card

    assert dataset is not None
    sheet = json.loads((dataset / "datasheet.json").read_text(encoding="utf-8"))
    return card(_folder(model), told, sheet)


def _folder(model: str | None) -> Path:
    """The folder of the model that is measured.  ModelError SX1001 for a hub's."""
    from sassxlate.errors import ModelError, Where
    from sassxlate.llm.engine import models

    named = model or os.environ.get(models.MODEL)
    folder = Path(named) if named else models.shipped()
    if folder is None or not folder.is_dir():
        raise ModelError("SX1001", "a card needs a model in a folder", Where(named))
    return folder


def _check_data(folder: Path, dataset: Path | None) -> None:
    """ModelError SX1052 unless the dataset is the one that the model was trained on."""
    import json

    from sassxlate.errors import ModelError, Where
    from sassxlate.llm.dataset.files import digest_of

    if dataset is None:
        raise ModelError("SX1052", "--card needs --dataset, the model's training data")
    digest = digest_of(dataset)
    if not digest:
        text = "no datasheet.json with a digest; `sassxlate dataset build` on it writes one"
        raise ModelError("SX1052", text, Where(str(dataset)))
    try:
        about = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        known = [str(one) for one in about.get("datasets", [])]
    except (OSError, ValueError, AttributeError, TypeError):
        known = []
    if digest not in known:
        said = f"names {', '.join(known)}" if known else "names none"
        text = f"training.json {said}; {dataset} is {digest}"
        raise ModelError("SX1052", text, Where(str(folder)))


class _Shown:
    """A progress line on the terminal."""

    def __init__(self) -> None:
        self.last = 0.0
        self.begun: tuple[float, int] | None = None
        self.visible = False

    def line(self, text: str, always: bool = False) -> None:
        now = time.monotonic()
        if shows_progress() and (always or now - self.last > 0.2):
            self.last, self.visible = now, True
            click.echo(f"\r{text}\x1b[K", err=True, nl=False)

    def clear(self) -> None:
        if self.visible:
            self.visible = False
            click.echo("\r\x1b[K", err=True, nl=False)

    def files(self, done: int, of: int, corpus: Corpus) -> None:
        self.line(f"{done} of {of} files, {len(corpus.blocks)} distinct blocks")

    def blocks(self, run: EvaluationRun) -> None:
        done = len(run.results)
        begun = self.begun = self.begun or (time.monotonic(), done)
        seconds = time.monotonic() - begun[0]
        proved = sum(r.first.proved for r in run.results.values())
        text = f"{done} of {done + run.left} blocks, {100 * proved / max(1, done):.1f} % proved"
        if done > begun[1]:
            left = seconds / (done - begun[1]) * run.left
            text += f" at one sample; about {left / 60:.0f} min left"
        self.line(text, always=True)

"""`sassxlate train SHARD... -o DIR`: a model of the block language, from tokenised shards."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import format_option
from sassxlate.errors import EXIT_USAGE
from sassxlate.output import print_json

if TYPE_CHECKING:
    from sassxlate.llm.training.settings import TrainingSettings

BATCH, CPU_BATCH = 64, 4  # rows a step
CPU_HELD_OUT = 256  # examples of an evaluation, which takes a CPU minutes otherwise


@click.command(
    cls=Command,
    short_help="Train a model of the block language",
    example="sassxlate train DATA/tokens -o MODEL --size micro --minutes 30",
)
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), required=True,
              metavar="DIR",
              help="Checkpoints, figures and curves; a restart continues from them.")  # fmt: skip
@click.option("--held", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="A shard to measure on (default: hold out a part).")  # fmt: skip
@click.option("--size", type=click.Choice(["tiny", "micro", "small", "base", "large"]),
              default="small", show_default=True,
              help="0.2, 5, 15, 29 or 60 million parameters.")  # fmt: skip
@click.option(
    "--device", default="auto", show_default=True, help="cuda, cpu, or auto: what the machine has."
)
@click.option("--start", metavar="DIR",
              type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Start from the weights of a checkpoint (expert iteration).")  # fmt: skip
@click.option("--gpus", type=click.IntRange(1), metavar="N",
              help="GPUs of this machine to use, one process each (default: all).")  # fmt: skip
@click.option("--epochs", type=click.FloatRange(0), default=0.0,
              help="0: 2, or as many as --minutes or --steps allow.")  # fmt: skip
@click.option("--steps", type=click.IntRange(0), default=0, help="0: as the epochs say.")
@click.option("--minutes", type=click.FloatRange(0), default=0.0,
              help="Time limit; the learning rate schedule adapts.")  # fmt: skip
@click.option("--row", type=click.IntRange(64, 2048), default=1024, show_default=True,
              help="Tokens per row of packed examples.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1),
              help=f"Rows a step (default: {BATCH}, without a GPU {CPU_BATCH}).")  # fmt: skip
@click.option("--rate", type=click.FloatRange(0, 1, min_open=True), default=1e-3, show_default=True,
              help="Highest learning rate.")  # fmt: skip
@click.option("--every", type=click.IntRange(1), default=200, show_default=True,
              help="Steps between checkpoints.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0)
@click.option("--compile", "compiled", is_flag=True, help="Compile the model with torch.compile.")
@format_option()
def command(
    shards: tuple[Path, ...],
    output: Path,
    held: tuple[Path, ...],
    size: str,
    device: str,
    start: Path | None,
    gpus: int | None,
    compiled: bool,
    batch: int | None,
    form: str | None,
    **numbers: Any,
) -> None:
    """Train a model on tokenised SHARDs: files, or a dataset's folder with those in it
    (`sassxlate dataset make` and `dataset tokens` write them).

    Needs torch (`pip install 'sassxlate[llm]'`).  DIR/best is the checkpoint with the most held-out
    answers entirely right, DIR/last the newest, DIR/log.jsonl has the figures and
    DIR/curves.svg plots them.
    """
    from sassxlate.llm.training.launch import gpus as there
    from sassxlate.llm.training.settings import TrainingSettings
    from sassxlate.llm.training.train import train

    if device == "cpu" or (device == "auto" and not there()):
        numbers["held_out"] = CPU_HELD_OUT
        batch = batch or CPU_BATCH
    settings = TrainingSettings(
        size=size, compile=compiled, start=str(start) if start is not None else "",
        batch=batch or BATCH, **numbers,
    )  # fmt: skip
    chosen = [path for shard in shards for path in _files(shard, "train")]
    aside = list(held) or [path for shard in shards if shard.is_dir()
                           for path in _files(shard, "valid")]  # fmt: skip
    count = _processes(gpus, device)
    if count == 1:
        figures = train(chosen, output, settings, aside, device)
    else:
        figures = _together(chosen, output, settings, aside, device, count)
    if not figures:  # one of several processes, not the first
        return
    if form == "json":
        print_json("train", figures)
    else:
        click.echo(
            f"step {figures['step']}: loss of held-out answers {figures['held_loss']:.4f},"
            f" {100 * figures['right']:.2f} % of tokens right,"
            f" {100 * figures['whole']:.2f} % of answers"
        )


def _processes(wanted: int | None, device: str) -> int:
    """The number of training processes, one per GPU.  ModelError SX1010 if that is impossible."""
    from sassxlate.errors import ModelError
    from sassxlate.llm.training.launch import gpus

    started = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if started or device not in ("auto", "cuda"):
        if wanted not in (None, 1):
            why = "torchrun, which starts processes itself" if started else f"--device {device}"
            raise ModelError("SX1010", f"--gpus {wanted} does not go with {why}")
        return 1
    there = gpus()
    if wanted is not None and wanted > there:
        raise ModelError("SX1010", f"{wanted} GPUs are requested, {there} are available")
    return max(1, there if wanted is None else wanted)


def _together(
    shards: list[Path],
    output: Path,
    settings: TrainingSettings,
    held: list[Path],
    device: str,
    count: int,
) -> dict[str, Any]:
    """Trains with several processes.  Each process prints its own error."""
    from sassxlate.llm.training.launch import arguments, together

    figures = together(arguments(shards, output, settings, held, device), count)
    if figures is None:
        raise SystemExit(EXIT_USAGE)
    return figures


def _files(place: Path, split: str) -> list[Path]:
    """A shard, or the shards of a split in a folder.  ModelError SX1009 if there are none."""
    from sassxlate.errors import ModelError, Where

    if not place.is_dir():
        return [place]
    found = sorted([*place.glob(f"{split}-*.tokens"), *place.glob(f"tokens/{split}-*.tokens")])
    if not found and split == "train":
        text = f"no {split}-*.tokens here or in tokens/ (sassxlate dataset tokens)"
        raise ModelError("SX1009", text, Where(str(place)))
    return found

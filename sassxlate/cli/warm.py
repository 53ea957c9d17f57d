"""``sassxlate warm``: translate and compile kernels before a program runs."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sassxlate.cli.grammar import Command
from sassxlate.cli.options import (
    cluster_option,
    device_arch_option,
    engine_options,
    jobs_option,
    kernel_option,
    matrix_option,
    printing_options,
    target_option,
)
from sassxlate.disasm.amdgpu_machines import RDNA3, spelled
from sassxlate.disasm.inputs import no_match
from sassxlate.errors import UsageError
from sassxlate.notes import quiet
from sassxlate.output import print_json

if TYPE_CHECKING:
    from sassxlate.disasm.containers.values import Cubin, Kernel
    from sassxlate.runtime_shim.service.early.warm import Progress
    from sassxlate.runtime_shim.service.engine import TranslatedKernel

EXIT_REFUSED = 3
EXIT_INTERRUPTED = 130
_BAR = 30  # characters
_TERMINAL_S, _LINES_S = 0.2, 10.0  # between two tellings


@click.command(cls=Command, example="sassxlate warm ./saxpy -j 4")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--kernels-of",
    "record",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="RUN.json",
    help="Only the kernels in the record of a run (`sassxlate cache runs` names them); without "
    "FILE, of the files that it names.",
)
@kernel_option
@device_arch_option
@jobs_option()
@cluster_option
@click.option(
    "--tier",
    type=click.Choice(["auto", "baseline", "llvm"]),
    default="auto",
    show_default=True,
    help="For runs with this tier: baseline only translates, the others compile, too.",
)
@target_option
@matrix_option
@engine_options
@printing_options()
def command(
    files: tuple[Path, ...],
    record: Path | None,
    kernels: tuple[str, ...],
    arch: str | None,
    jobs: int,
    cluster: str | None,
    tier: str,
    target: str,
    matrix: str,
    engine: str | None,
    model: str | None,
    samples: int,
    form: str,
) -> None:
    """Translate and compile the kernels of FILES (programs, libraries, fat binaries, cubins).

    The code is for the device that a program with these files would see; --arch is `run`'s.
    With --cluster the workers find FILES under the same paths, and need not share the cache.
    With --engine or --model the kernels have the code that `sassxlate run` takes with the same
    options: best has whole kernels by LLVM where that has no more instructions than the rules.
    With -k only the kernels that match are prepared; a run translates the others when it needs
    them.  What is in the cache already costs little.  Ctrl-C keeps what is done.

    The exit status is 0 if all kernels are in the cache, 3 if some are refused (a program that uses
    them would end with 3, too) or something else went wrong, 130 if it was interrupted.
    """
    from sassxlate.lowering.target import target_named
    from sassxlate.runtime_shim import application, paths, trusted
    from sassxlate.runtime_shim.cache import runs
    from sassxlate.runtime_shim.cache.store import Cache, key_of, size_cap
    from sassxlate.runtime_shim.cache.tag import cache_tag
    from sassxlate.runtime_shim.service.early.library import asked_capability
    from sassxlate.runtime_shim.service.early.spread import place_of, warm_on_cluster
    from sassxlate.runtime_shim.service.early.warm import warm
    from sassxlate.runtime_shim.service.engine import default_engine
    from sassxlate.runtime_shim.service.server import JOB_LIMIT_S
    from sassxlate.runtime_shim.writer import writer

    if target not in RDNA3:
        raise UsageError("SX0719", f"the emulated device runs no code for {target}")
    target = spelled(target, matrix)
    asked_cc = asked_capability(application.capability(arch) if arch else "")
    asked = model is not None or engine not in (None, "rules")
    if cluster and asked:
        raise UsageError("SX0719", "--cluster asks the rules alone: not with --engine or --model")
    root = paths.cache_dir()
    trusted.check_folder(root)
    translator = default_engine(target_named(target))
    engines = writer(engine if asked else "rules", model, samples, target)
    if asked:
        if engine is not None and engine != "hybrid":
            root = engines.keeps_in(root)
        engines.place = root

        def translate(cubin: Cubin, kernel: Kernel) -> TranslatedKernel:
            return engines.translate(cubin, kernel.name)[0]

        translator = replace(translator, translate=translate)
    cache = Cache(root, cache_tag(target), size_cap())
    key, device = None, 0
    if record is not None:
        read = runs.read(record)
        # Workers read it from the cache, where nothing changes it meanwhile.
        key = key_of(repr(read).encode())
        runs.copy(cache, record, key)
        device = max((one.cc for one in read.used), default=0)
        files = files or tuple(Path(one.file) for one in read.used if Path(one.file).is_file())
    if not files:
        raise UsageError("SX0848", "no file is named, and no record whose files are there")
    shown = Shown()
    paths_of = [file.absolute() for file in files]
    compiles = tier != "baseline"
    try:
        if cluster:
            result = warm_on_cluster(
                paths_of,
                cache,
                target,
                place_of(cluster, target),
                compiles=compiles,
                record=key,
                patterns=kernels,
                device=device,
                asked=asked_cc,
                told=shown.tell,
            )
        else:
            result = warm(
                paths_of,
                cache,
                translator,
                compiles=compiles,
                record=key,
                patterns=kernels,
                device=device,
                asked=asked_cc,
                width=jobs or None,
                job_limit_s=JOB_LIMIT_S,
                told=shown.tell,
            )
    finally:
        shown.clear()
        if key is not None:
            runs.record_path(root, key).unlink(missing_ok=True)
    if kernels and not (result.kernels or result.faults or result.interrupted):
        raise no_match(", ".join(map(str, files)), kernels, None)
    for line in dict.fromkeys(result.faults):
        click.echo(f"sassxlate: {line}", err=True)
    what = "interrupted" if result.interrupted else "done"
    refused = f", {result.refused} of them refused" if result.refused else ""
    if form == "json":
        told: dict[str, object] = {
            "kernels": result.kernels,
            "done": result.done,
            "refused": result.refused,
            "interrupted": result.interrupted,
            "faults": list(dict.fromkeys(result.faults)),
        }
        print_json("warm", told)
    else:
        click.echo(f"{what}: {result.done} of {result.kernels} kernels{refused}")
    if result.interrupted:
        raise SystemExit(EXIT_INTERRUPTED)
    if result.refused or result.faults:
        raise SystemExit(EXIT_REFUSED)


class Shown:
    """The bar on a terminal; elsewhere a line from time to time."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = time.monotonic() + (0 if self._terminal else _LINES_S)
        self._there = False

    def tell(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next or quiet():
            return
        self._next = now + (_TERMINAL_S if self._terminal else _LINES_S)
        text = line(progress)
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self._there = True
        else:
            click.echo(text, err=True)

    def clear(self) -> None:
        if self._there:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def line(progress: Progress) -> str:
    """One line: a bar, counts, the time and an estimate of the rest."""
    share = progress.done / progress.kernels if progress.kernels else 0.0
    bar = ("#" * round(_BAR * share)).ljust(_BAR, ".")
    left = "" if progress.left_s is None else f", about {_time(progress.left_s)} left"
    more = "+" if progress.images_done < progress.images or not progress.images else ""
    count = f"{progress.done}/{progress.kernels}{more} kernels"
    return f"[{bar}] {count}, {_time(progress.elapsed_s)}{left}"


def _time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}" if whole >= 60 else f"{whole} s"

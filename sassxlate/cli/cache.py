"""``sassxlate cache``: where the cache is, how much it holds, emptying it, and moving it to another
machine."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

import click

from sassxlate.cli.options import format_option, target_option
from sassxlate.errors import ServiceError, UsageError, Where
from sassxlate.output import print_json
from sassxlate.runtime_shim import paths, trusted
from sassxlate.runtime_shim.cache import runs, store, transfer
from sassxlate.runtime_shim.cache.tag import cache_tag


@click.group()
def command() -> None:
    """Show, measure, empty or move the cache of translations."""


def _places() -> list[Path]:
    """The cache, and the caches in it of runs with one engine alone (`run --engine`)."""
    root = paths.cache_dir()
    return [root, *(p for p in sorted([root / "rules", *root.glob("engine-*")]) if p.is_dir())]


def _sum(parts: Sequence[tuple[store.Usage, ...]]) -> tuple[store.Usage, ...]:
    return tuple(
        store.Usage(same[0].area, sum(u.files for u in same), sum(u.bytes for u in same))
        for same in zip(*parts, strict=True)
    )


@command.command("dir")
def directory() -> None:
    """Print the cache's directory."""
    click.echo(paths.cache_dir())


@command.command()
def clean() -> None:
    """Delete every file of the cache; programs that run now translate again."""
    freed = sum(map(store.clean, _places()))
    click.echo(f"{freed} bytes freed")


@command.command("runs")
@format_option
def runs_(output_format: str) -> None:
    """List which kernels applications used: the latest first, each in a file for `warm
    --kernels-of`."""
    root = paths.cache_dir()
    found: list[tuple[Path, runs.Record]] = []
    for path in runs.listed(root):
        with contextlib.suppress(OSError, ServiceError):
            found.append((path, runs.read(path)))
    if output_format == "json":
        records = [
            {"file": str(path), "application": list(r.application), "kernels": len(r.names())}
            for path, r in found
        ]
        print_json({"runs": records})
        return
    for path, r in found:
        click.echo(f"{len(r.names()):>5} kernels  {' '.join(r.application)}\n    {path}")


@command.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@target_option
def export_(file: Path, target: str) -> None:
    """Write the cache's translations for the target to FILE, for `cache import` on another machine.

    It takes them only with the same version of sassxlate and of LLVM and the same processor.
    """
    cache = _cache(target)
    try:
        moved = transfer.export(cache, target, file.absolute())
    except OSError as error:
        raise UsageError("SX0813", f"cannot write: {error.strerror}", Where(str(file))) from error
    click.echo(f"{moved.files} files, {moved.bytes} bytes, tag {cache.tag}")


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@target_option
def import_(file: Path, target: str) -> None:
    """Put the translations in FILE, of `cache export`, into the cache.

    The code in it will run as you: take archives only from where you would take programs.  FILE
    must be yours (or root's) and closed to other writers.  Nothing is written if the archive is
    damaged or of another kind.
    """
    moved = transfer.import_(_cache(target), file.absolute())
    click.echo(f"{moved.files} new files, {moved.bytes} bytes")


def _cache(target: str) -> store.Cache:
    root = paths.cache_dir()
    trusted.check_folder(root)
    return store.Cache(root, cache_tag(target), store.size_cap())


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats(as_json: bool) -> None:
    """Print the number of files and bytes in each area, and the cap."""
    root = paths.cache_dir()
    usage = _sum([store.usage(place) for place in _places()])
    cap = store.size_cap()
    if as_json:
        areas = {u.area: {"files": u.files, "bytes": u.bytes} for u in usage}
        click.echo(json.dumps({"schema": 1, "dir": str(root), "cap": cap, "areas": areas}))
        return
    for u in usage:
        click.echo(f"{u.area:<8} {u.files:>8} files {u.bytes:>14} bytes")
    total = sum(u.bytes for u in usage)
    click.echo(f"{'total':<8} {sum(u.files for u in usage):>8} files {total:>14} of {cap} bytes")

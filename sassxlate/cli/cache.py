"""``sassxlate cache``: where the cache is, how much it holds, emptying it, and moving it to another
machine."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import click

from sassxlate.cli.grammar import Group
from sassxlate.cli.options import printing_options, target_option
from sassxlate.errors import ServiceError, UsageError, Where
from sassxlate.output import print_json
from sassxlate.runtime_shim import paths, trusted
from sassxlate.runtime_shim.cache import runs, store, transfer
from sassxlate.runtime_shim.cache.tag import cache_tag


@click.group(cls=Group)
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


@command.command("dir", example="sassxlate cache dir")
@printing_options()
def directory(form: str) -> None:
    """Print the cache's directory."""
    if form == "json":
        print_json("cache-dir", {"dir": str(paths.cache_dir())})
        return
    click.echo(paths.cache_dir())


@command.command(example="sassxlate cache clean")
@printing_options()
def clean(form: str) -> None:
    """Delete every file of the cache; programs that run now translate again."""
    freed = sum(map(store.clean, _places()))
    if form == "json":
        print_json("cache-clean", {"bytes": freed})
        return
    click.echo(f"{freed} bytes freed")


@command.command("runs", example="sassxlate cache runs")
@printing_options()
def runs_(form: str) -> None:
    """List which kernels applications used: the latest first, each in a file for `warm
    --kernels-of`."""
    root = paths.cache_dir()
    found: list[tuple[Path, runs.Record]] = []
    for path in runs.listed(root):
        with contextlib.suppress(OSError, ServiceError):
            found.append((path, runs.read_own(path)))
    if form == "json":
        records = [
            {"file": str(path), "application": list(r.application), "kernels": len(r.names())}
            for path, r in found
        ]
        print_json("cache-runs", {"runs": records})
        return
    for path, r in found:
        click.echo(f"{len(r.names()):>5} kernels  {' '.join(r.application)}\n    {path}")


@command.command("export", example="sassxlate cache export kernels.sxcache")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@target_option
@printing_options()
def export_(file: Path, target: str, form: str) -> None:
    """Write the cache's translations for the target to FILE, for `cache import` on another machine.

    It takes them only with the same version of sassxlate and of LLVM and the same processor.
    """
    cache = _cache(target)
    try:
        moved = transfer.export(cache, target, file.absolute())
    except OSError as error:
        raise UsageError("SX0813", f"cannot write: {error.strerror}", Where(str(file))) from error
    if form == "json":
        told = {"file": str(file), "files": moved.files, "bytes": moved.bytes, "tag": cache.tag}
        print_json("cache-export", told)
        return
    click.echo(f"{moved.files} files, {moved.bytes} bytes, tag {cache.tag}")


@command.command("import", example="sassxlate cache import kernels.sxcache")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@target_option
@printing_options()
def import_(file: Path, target: str, form: str) -> None:
    """Put the translations in FILE, of `cache export`, into the cache.

    The code in it will run as you: take archives only from where you would take programs.  FILE
    must be yours (or root's) and closed to other writers.  Nothing is written if the archive is
    damaged or of another kind.
    """
    moved = transfer.import_(_cache(target), file.absolute())
    if form == "json":
        print_json("cache-import", {"files": moved.files, "bytes": moved.bytes})
        return
    click.echo(f"{moved.files} new files, {moved.bytes} bytes")


def _cache(target: str) -> store.Cache:
    root = paths.cache_dir()
    trusted.check_folder(root)
    return store.Cache(root, cache_tag(target), store.size_cap())


@command.command(example="sassxlate cache stats")
@printing_options()
def stats(form: str) -> None:
    """Print the number of files and bytes in each area, and the cap."""
    root = paths.cache_dir()
    usage = _sum([store.usage(place) for place in _places()])
    cap = store.size_cap()
    if form == "json":
        areas = {u.area: {"files": u.files, "bytes": u.bytes} for u in usage}
        print_json("cache-stats", {"dir": str(root), "cap": cap, "areas": areas})
        return
    for u in usage:
        click.echo(f"{u.area:<8} {u.files:>8} files {u.bytes:>14} bytes")
    total = sum(u.bytes for u in usage)
    click.echo(f"{'total':<8} {sum(u.files for u in usage):>8} files {total:>14} of {cap} bytes")

"""``sassxlate cache``: where the cache is, how much it holds, and emptying it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache import store


@click.group()
def command() -> None:
    """Show, measure or empty the cache of translations."""


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

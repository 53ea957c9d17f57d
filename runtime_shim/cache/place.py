"""The cache for commands that can work without one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import click

from sassxlate.runtime_shim import paths, trusted


def place() -> Path | None:
    """The cache named by the environment; None, with one line on standard error, if others can
    write there."""
    return _trusted(paths.cache_dir())


@cache
def _trusted(root: Path) -> Path | None:
    try:
        trusted.check_folder(root)
    except trusted.UntrustedError as error:
        click.echo(f"sassxlate: {error}; the cache is not used", err=True)
        return None
    return root


__all__ = ["place"]

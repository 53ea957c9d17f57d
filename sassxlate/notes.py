"""What commands say beside their results, and whether -q and -v were given.  Cheap to import."""

from __future__ import annotations

import sys

import click

QUIET, VERBOSE = "sassxlate.quiet", "sassxlate.verbose"  # in a click context's ``meta``


def _asked(key: str) -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(key))


def quiet() -> bool:
    """Whether -q was given: no notes, warnings and progress."""
    return _asked(QUIET)


def verbose() -> bool:
    """Whether -v was given: details as well."""
    return _asked(VERBOSE)


def note(text: str) -> None:
    """A note or warning on stderr; none with -q."""
    if not quiet():
        click.echo(f"sassxlate: {text}", err=True)


def shows_progress() -> bool:
    """Whether to draw a line of progress: stderr is a terminal, and -q was not given."""
    return not quiet() and sys.stderr.isatty()


__all__ = ["QUIET", "VERBOSE", "note", "quiet", "shows_progress", "verbose"]

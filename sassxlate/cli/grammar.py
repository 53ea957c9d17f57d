"""What every command has in common: -q, -v, an example, one way to say what goes wrong."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from sassxlate.errors import UsageError, Where
from sassxlate.notes import QUIET, VERBOSE, note, verbose

# Spellings of versions that were never released, and what they are now.
_RENAMED = {"--json": ("--format", "json"), "--output-format": ("--format",)}


def _remember(key: str, other: str) -> Any:
    def callback(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        del parameter
        if value and context.meta.get(other):
            raise click.UsageError("-q and -v exclude each other", context)
        context.meta[key] = value

    return callback


def _common() -> list[click.Parameter]:
    return [
        click.Option(
            ["-q", "--quiet"], is_flag=True, expose_value=False,
            callback=_remember(QUIET, VERBOSE),
            help="Print results and errors only: no notes, warnings and progress.",
        ),
        click.Option(
            ["-v", "--verbose"], is_flag=True, expose_value=False,
            callback=_remember(VERBOSE, QUIET),
            help="Print details, too: what is otherwise left out, explanations of errors, times.",
        ),
    ]  # fmt: skip


class Command(click.Command):
    """A click command with -q and -v, whose help ends with one example.

    ``example`` is a command line that begins with ``sassxlate``.
    """

    def __init__(self, *arguments: Any, example: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.example = example
        self._common = _common()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, then -q, -v and the option for help."""
        own = super().get_params(ctx)
        return [*own[: len(self.params)], *self._common, *own[len(self.params) :]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, after spellings that have changed are replaced, with a note."""
        if ctx.allow_interspersed_args:
            names = {name for option in self.params for name in option.opts}
            if "--format" in names:
                args = _today(args, names)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; with -v, its time and memory follow on stderr."""
        self._keep_inputs(ctx)
        begin = time.monotonic()
        try:
            return super().invoke(ctx)
        finally:
            if verbose():
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                note(f"{ctx.info_name}: {time.monotonic() - begin:.2f} s, {peak} MiB")

    def _keep_inputs(self, ctx: click.Context) -> None:
        """Raises UsageError SX0813 if a file that is read would be written over."""
        output = ctx.params.get("output")
        if not isinstance(output, (str, Path)) or not os.path.isfile(output):
            return
        for parameter in self.params:
            if not isinstance(parameter, click.Argument):
                continue
            value: Any = ctx.params.get(parameter.name or "")
            some = cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,))
            for one in some:
                with contextlib.suppress(OSError, ValueError):
                    if isinstance(one, (str, Path)) and os.path.samefile(one, output):
                        raise UsageError("SX0813", "it is the input", Where(str(output)))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The example, as it is to be typed."""
        super().format_epilog(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                formatter.write(f"{'':{formatter.current_indent}}$ {self.example}\n")


def _today(args: Sequence[str], names: set[str]) -> list[str]:
    """The arguments with today's spellings."""
    out: list[str] = []
    for number, word in enumerate(args):
        if word == "--":
            return [*out, *args[number:]]
        old, equals, value = word.partition("=")
        if old not in _RENAMED or old in names:
            out.append(word)
            continue
        now = _RENAMED[old]
        note(f"{old} is now {' '.join(now)}")
        out += [*now, value] if equals else now
    return out


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


__all__ = ["Command", "Group"]

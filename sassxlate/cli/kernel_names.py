"""Completion of kernel names in a shell: those of the file that the command line names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # click 8.1 cannot subscript it

_LARGEST = 256 << 20  # bytes of a file that is read for it: the shell waits
_MOST = 500  # names


class KernelName(_Text):
    """A kernel's name, mangled or demangled, or a glob."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Mangled names, which need no quotes, with the demangled ones as their description."""
        found: dict[str, str] = {}
        for file in _files(ctx):
            for mangled, plain in _kernels(file):
                if mangled.startswith(incomplete) and len(found) < _MOST:
                    found[mangled] = plain
        return [
            CompletionItem(name, help=None if plain == name else plain)
            for name, plain in found.items()
        ]


def _files(ctx: click.Context) -> Iterator[Path]:
    """The existing files among the arguments that are complete.

    After an option that lacks its value click has not yet assigned the words to parameters.
    """
    arguments = [p.name or "" for p in ctx.command.params if isinstance(p, click.Argument)]
    for value in (*map(ctx.params.get, arguments), *ctx.args):
        for word in cast("Iterable[object]", value if isinstance(value, tuple) else (value,)):
            if isinstance(word, (str, Path)) and Path(word).is_file():
                yield Path(word)


def _kernels(file: Path) -> Iterator[tuple[str, str]]:
    from sassxlate.disasm.containers import load
    from sassxlate.errors import SassxlateError

    try:
        if file.stat().st_size > _LARGEST:
            return
        for _, cubin in load(file).cubins():
            for kernel in cubin.kernels:
                yield kernel.name, kernel.demangled
    except (SassxlateError, OSError):
        return  # a shell can show no error here


__all__ = ["KernelName"]

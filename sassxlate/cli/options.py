"""click options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.errors import SassxlateError
from sassxlate.llm.engine import choose

if TYPE_CHECKING:
    from sassxlate.lowering.engine.report import EngineReport

_F = TypeVar("_F", bound=Callable[..., Any])


if TYPE_CHECKING:
    _Text = click.ParamType[str]
else:
    _Text = click.ParamType  # click 8.1 cannot subscript it


class EngineType(_Text):
    """An engine: one of the names, or a proposer's ``FILE.py:NAME``."""

    name = "engine"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(choose.NAMES)}|FILE.py:NAME]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not choose.is_engine(value):
            known = ", ".join(choose.NAMES)
            self.fail(f"{value!r} is not one of {known}, nor FILE.py:NAME.", param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        names = [name for name in choose.NAMES if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, "file")]


def show_defects(report: EngineReport | None, kernel: str, file: str) -> None:
    """Prints the proposer's errors, which do not end a translation."""
    if report is not None:
        for error in report.defects(kernel):
            _warn(error.at(file=file))


def _warn(error: SassxlateError) -> None:
    click.echo(f"sassxlate: warning: {error}", err=True)


def engine_options(function: _F) -> _F:
    """``--engine``, ``--model`` and ``--samples``."""
    function = click.option(
        "--samples",
        type=click.IntRange(1, 64),
        default=1,
        help="Answers to sample from the model for each block.",
    )(function)
    function = click.option(
        "--model",
        metavar="PATH_OR_HUB_ID",
        help="The model: a folder, or a hub id (looked up only with SASSXLATE_ALLOW_HUB=1).",
    )(function)
    return click.option(
        "--engine",
        type=EngineType(),
        help="Writer of blocks: the rules; the search, the model (hybrid) or a proposer in a "
        "Python file if its code is proved and cheaper, otherwise the rules; or the model alone, "
        "refused if a block is not proved.",
    )(function)


def target_option(function: _F) -> _F:
    """``--target``, the AMD processor that code is for."""
    return click.option(
        "--target",
        type=click.Choice(RDNA3),
        default=RDNA3[0],
        show_default=True,
        envvar="SASSXLATE_TARGET",
        help="The AMD processor that code is for.",
    )(function)


def kernel_option(function: _F) -> _F:
    """``-k/--kernel``, which may repeat."""
    return click.option(
        "-k",
        "--kernel",
        "kernels",
        multiple=True,
        metavar="NAME",
        help="Only kernels with this name (mangled, demangled or a glob); may repeat.",
    )(function)


def arch_option(function: _F) -> _F:
    """``--arch``, the source architecture."""
    return click.option("--arch", metavar="SM", help="Only this source architecture, like sm_80.")(
        function
    )


def format_option(function: _F) -> _F:
    """``--output-format text|json`` with ``--json`` as its short form."""
    function = click.option(
        "--json", "output_format", flag_value="json", help="Short for --output-format json."
    )(function)
    return click.option(
        "--output-format",
        "output_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Output format.",
    )(function)


def report_options(function: _F) -> _F:
    """``--report PATH`` and ``--report-format html|json``."""
    function = click.option(
        "--report-format",
        type=click.Choice(["html", "json"]),
        help="The format of --report (default: by its suffix).",
    )(function)
    return click.option(
        "--report",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write a report on each kernel: FILE.html or FILE.json.",
    )(function)

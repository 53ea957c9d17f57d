"""click options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.llm.engine import choose

_F = TypeVar("_F", bound=Callable[..., Any])


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
        type=click.Choice(choose.NAMES),
        help="Writer of blocks: the rules; the search or the model (hybrid) if its code is proved "
        "and cheaper, otherwise the rules; or the model alone, refused if nothing is proved.",
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

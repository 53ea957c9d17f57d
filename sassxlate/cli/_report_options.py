"""``--report`` of ``sassxlate translate`` and ``sassxlate run``: cheap to import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from sassxlate.errors import SassxlateError

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Kernel
    from sassxlate.lowering.emulate.counts import Runs
    from sassxlate.lowering.pipeline import Translated

    from ._report import Ran, Report
    from ._verify_blocks import Judged

_F = TypeVar("_F", bound=Callable[..., Any])


def report_options(function: _F) -> _F:
    """``--report PATH`` and ``--report-format html|json``."""
    function = click.option(
        "--report-format",
        type=click.Choice(["html", "json"]),
        help="Of --report; without: by the name.",
    )(function)
    return click.option(
        "--report",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write what became of each kernel: FILE.html, to look at, or FILE.json.",
    )(function)


@dataclass(frozen=True, slots=True)
class Pages:
    """A report that is being made, and where it goes."""

    path: Path
    report: Report

    def refused(self, kernel: Kernel, target: str, where: str, error: SassxlateError) -> None:
        """A kernel without code."""
        from ._report import RefusedBy

        self.report.refused(
            kernel.name, kernel.demangled, target, where, RefusedBy.of(error)
        )

    def translated(
        self,
        done: Translated,
        where: str,
        judged: Sequence[Judged] | None = None,
        ran: Ran | None = None,
        runs: Runs | None = None,
    ) -> None:
        """A kernel with its code."""
        from sassxlate.lowering.blockmap import of_translated

        self.report.translated(done, of_translated(done, runs=runs), where, judged, ran)

    def write(self) -> None:
        """The whole file."""
        self.report.write(self.path)


def begin(
    path: Path,
    asked: str | None,
    command: Literal["translate", "run"],
    program: str,
    verified: bool = False,
    counted: bool = False,
) -> Pages:
    """UsageError SX0841 for a name that says no format, SX0813 where no file can be written."""
    from ._files import make_directory
    from ._report import Report, form_of

    form = form_of(path, asked)
    make_directory(path.absolute().parent)
    return Pages(path, Report(form, command, program, verified, counted))


__all__ = ["Pages", "begin", "report_options"]

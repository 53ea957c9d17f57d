"""``--report`` of ``sassxlate translate`` and ``sassxlate run``: cheap to import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sassxlate.errors import SassxlateError, UsageError, Where

if TYPE_CHECKING:
    from sassxlate.disasm.containers import Kernel
    from sassxlate.lowering.emulate.counts import Runs
    from sassxlate.lowering.report.judged import Judged
    from sassxlate.lowering.report.report import Form, KernelReports, Ran
    from sassxlate.lowering.select.translated import Translated


@dataclass(slots=True)
class Pages:
    """A report to be written, and its destination.

    Its modules are imported when the first kernel arrives: before that an application may be
    running, whose parent must have no threads that could receive its signals.
    """

    path: Path
    form: Form
    command: Literal["translate", "run"]
    program: str
    target: str
    verified: bool = False
    counted: bool = False
    notes: list[str] = field(default_factory=list[str])
    _report: KernelReports | None = None

    @property
    def report(self) -> KernelReports:
        """The report."""
        if self._report is None:
            from sassxlate.lowering.report.report import KernelReports

            self._report = KernelReports(
                self.form,
                self.command,
                self.program,
                self.target,
                self.verified,
                self.counted,
                self.notes,
            )
        return self._report

    def refused(self, kernel: Kernel, target: str, where: str, error: SassxlateError) -> None:
        """A kernel without code."""
        from sassxlate.lowering.report.report import RefusedBy

        self.report.refused(kernel.name, kernel.demangled, target, where, RefusedBy.of(error))

    def translated(
        self,
        done: Translated,
        where: str,
        judged: Sequence[Judged] | None = None,
        ran: Ran | None = None,
        runs: Runs | None = None,
        answers: Mapping[str, Any] | None = None,
    ) -> None:
        """A kernel with its code; see :func:`sassxlate.lowering.report.side_by_side.of_translated`
        and :meth:`._report.KernelReports.translated`."""
        from sassxlate.lowering.report.side_by_side import of_translated

        engines = None if answers is None else wrote(answers["blocks"])
        found = of_translated(done, runs=runs, engines=engines)
        self.report.translated(done, found, where, judged, ran, answers)

    def write(self) -> None:
        """The whole file."""
        self.report.write(self.path)


def begin(
    path: Path,
    asked: str | None,
    command: Literal["translate", "run"],
    program: str,
    target: str,
    verified: bool = False,
) -> Pages:
    """UsageError SX0841 for a name without a known format, SX0813 if no file can be written."""
    from sassxlate.output import make_directory

    form = _form(path, asked)
    make_directory(path.absolute().parent)
    return Pages(path.absolute(), form, command, program, target, verified)


def _form(path: Path, asked: str | None) -> Form:
    """The format, from the option or else from the file name."""
    suffix = path.suffix.lower()
    if asked == "html" or (asked is None and suffix in (".html", ".htm")):
        return "html"
    if asked == "json" or (asked is None and suffix == ".json"):
        return "json"
    text = "the report's name ends in neither .html nor .json: give --report-format"
    raise UsageError("SX0841", text, Where(str(path)))


_SASS = 16  # bytes of an instruction


def wrote(blocks: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """The writer of SASS instructions' code, by their offsets, if it was not the rules.
    ``blocks`` are those of an engine's report, as data."""
    return {
        offset: block["engine"]
        for block in blocks
        if block["outcome"] == "accepted"
        for offset in range(block["start"], block["last"] + 1, _SASS)
    }


__all__ = ["Pages", "begin", "wrote"]

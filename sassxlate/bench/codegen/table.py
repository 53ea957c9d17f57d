"""The tables of `sassxlate bench codegen`, on the terminal and in a document."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sassxlate.bench.codegen.compare import EXPLAIN, KernelComparison, Side, mean
from sassxlate.errors import UsageError, Where
from sassxlate.output import table, write_whole

BEGIN, END = "<!-- codegen: begin -->", "<!-- codegen: end -->"
CLASSES = ("valu", "salu", "vmem", "smem", "lds", "branch", "wait")
_HEAD = ("kernel", "x", "ours", "clang", *CLASSES)
_MORE = ("VGPRs", "SGPRs", "waves", "words")


def cells(ours: Side, theirs: Side, *, dynamic: bool) -> list[str]:
    """The ratio, both totals and a pair of numbers for each class."""
    counts = (ours.dynamic, theirs.dynamic) if dynamic else (ours.static, theirs.static)
    pairs = [f"{counts[0].get(n, 0)} / {counts[1].get(n, 0)}" for n in CLASSES]
    totals = [side.total(dynamic=dynamic) for side in (ours, theirs)]
    return [f"{totals[0] / totals[1]:.2f}", *map(str, totals), *pairs]


def registers(ours: Side, theirs: Side) -> list[str]:
    """VGPRs, SGPRs and waves."""
    return [
        f"{ours.vgprs} / {theirs.vgprs}",
        f"{ours.sgprs} / {theirs.sgprs}",
        f"{ours.occupancy} / {theirs.occupancy}",
    ]


def _cells(row: KernelComparison, *, dynamic: bool) -> list[str]:
    return [row.name, *cells(row.ours, row.theirs, dynamic=dynamic)]


def _more(row: KernelComparison) -> list[str]:
    return [*registers(row.ours, row.theirs), str(row.different or "")]


def _summary(rows: Sequence[KernelComparison]) -> str:
    over = sum(row.ratio(dynamic=True) > EXPLAIN for row in rows)
    return (
        f"geometric mean of dynamic instructions: {mean(rows):.2f} times clang's; "
        f"{len(rows)} kernels, {over} over {EXPLAIN:g}"
    )


def text(rows: Sequence[KernelComparison], reasons: Mapping[str, str]) -> list[str]:
    """The tables for the terminal."""
    lines = table(_HEAD, [_cells(row, dynamic=True) for row in rows])
    head = (*_HEAD, *_MORE)
    lines += ["", *table(head, [[*_cells(row, dynamic=False), *_more(row)] for row in rows])]
    lines += ["", _summary(rows)]
    lines += [f"{row.name}: the rules' code: {row.refusal}" for row in rows if row.refusal]
    return lines + [f"{row.name}: {reasons[row.name]}" for row in rows if row.name in reasons]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table in a document."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def markdown(
    rows: Sequence[KernelComparison], reasons: Mapping[str, str], versions: str
) -> list[str]:
    """The tables for a document: executed instructions, instructions in the code, and reasons for
    excesses."""
    lines = [versions, "", f"**{_summary(rows)}.**", "", "Executed, ours / clang's:", ""]
    lines += markdown_table(_HEAD, [_cells(row, dynamic=True) for row in rows])
    lines += ["", "In the code, ours / clang's:", ""]
    head = (*_HEAD, *_MORE)
    lines += markdown_table(head, [[*_cells(row, dynamic=False), *_more(row)] for row in rows])
    over = [row for row in rows if row.ratio(dynamic=True) > EXPLAIN]
    lines += ["", f"Over {EXPLAIN:g} times:", ""]
    return lines + [f"* {row.name}: {reasons.get(row.name, 'not explained')}" for row in over]


def _parts(file: Path, marks: tuple[str, str]) -> tuple[str, str, str]:
    begin, end = marks
    try:
        before, rest = file.read_text(encoding="utf-8").split(begin, 1)
        here, after = rest.split(end, 1)
    except (OSError, ValueError):
        raise UsageError("SX0824", f"no {begin} and {end}", Where(str(file))) from None
    return before, here, after


def write(file: Path, lines: Sequence[str], marks: tuple[str, str] = (BEGIN, END)) -> None:
    """Replaces the text between the marks; UsageError SX0824 if they are missing."""
    before, _, after = _parts(file, marks)
    body = "\n".join(lines)
    write_whole(file, f"{before}{marks[0]}\n{body}\n{marks[1]}{after}".encode())


def differences(
    file: Path, lines: Sequence[str], marks: tuple[str, str] = (BEGIN, END)
) -> list[str]:
    """The differing lines of the document, as a diff."""
    here = _parts(file, marks)[1]
    old, new = (part.strip("\n").split("\n") for part in (here, "\n".join(lines)))
    return [
        line
        for line in difflib.unified_diff(old, new, "document", "now", lineterm="", n=0)
        if not line.startswith("@@")
    ]

"""The table of `sassxlate bench programs`, on the terminal and in a document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sassxlate.bench.programs.run import VERDICTS, ProgramOutcome, count
from sassxlate.errors import UsageError, Where
from sassxlate.output import table, write_whole

BEGIN, END = "<!-- programs: begin -->", "<!-- programs: end -->"
_REASON = 160  # characters of a reason in a document


def text(outcomes: Sequence[ProgramOutcome]) -> list[str]:
    """Counts, then one line per program."""
    head = ("program", "arch", "verdict", "s", "launches", "first", "reason")
    rows = [
        (o.name, o.arch, o.verdict, f"{o.seconds:.1f}", o.launches, o.first, o.reason)
        for o in _sorted(outcomes)
    ]
    return [*table(head, rows), "", *summary(outcomes)]


def summary(outcomes: Sequence[ProgramOutcome]) -> list[str]:
    """One line per architecture."""
    lines: list[str] = []
    for counts in count(outcomes):
        parts = [f"{v} {counts.by_verdict[v]}" for v in VERDICTS if v in counts.by_verdict]
        share = 100 * counts.passed / counts.total
        lines.append(f"{counts.arch}: {share:.1f} % of {counts.total} pass ({', '.join(parts)})")
    return lines


def write(file: Path, outcomes: Sequence[ProgramOutcome]) -> None:
    """Replace the text between the marks in ``file``; UsageError SX0824 if they are missing."""
    try:
        old = file.read_text(encoding="utf-8")
        before, rest = old.split(BEGIN, 1)
        after = rest.split(END, 1)[1]
    except (OSError, ValueError, IndexError):
        raise UsageError("SX0824", f"no {BEGIN} and {END}", Where(str(file))) from None
    body = "\n".join(markdown(outcomes))
    write_whole(file, f"{before}{BEGIN}\n{body}\n{END}{after}".encode())


def markdown(outcomes: Sequence[ProgramOutcome]) -> list[str]:
    """Counts by verdict, failures with their reasons, then every program on a line."""
    counts = count(outcomes)
    lines = ["| verdict | " + " | ".join(c.arch for c in counts) + " |"]
    lines.append("|---" * (len(counts) + 1) + "|")
    for verdict in VERDICTS:
        numbers = [str(c.by_verdict.get(verdict, 0)) for c in counts]
        lines.append(f"| {verdict} | {' | '.join(numbers)} |")
    lines.append("| all | " + " | ".join(str(c.total) for c in counts) + " |")
    shares = [f"{100 * c.passed / c.total:.1f} %" for c in counts]
    lines.append(f"| **share that passes** | {' | '.join(shares)} |")
    failures = [o for o in _sorted(outcomes) if o.verdict != "pass"]
    lines += ["", "Failures:", "", "| program | arch | verdict | first failing | reason |"]
    lines.append("|---|---|---|---|---|")
    lines += [
        f"| {o.name} | {o.arch} | {o.verdict} | {_cell(o.first)} | {_reason(o)} |" for o in failures
    ]
    lines += [
        "",
        "All programs; seconds of wall time, kernel launches and RDNA3 instructions that waves",
        "executed, by architecture:",
        "",
    ]
    lines.append("| program | domain | arguments | " + " | ".join(c.arch for c in counts) + " |")
    lines.append("|---" * (3 + len(counts)) + "|")
    by_name: dict[str, dict[str, ProgramOutcome]] = {}
    for outcome in _sorted(outcomes):
        by_name.setdefault(outcome.name, {})[outcome.arch] = outcome
    for name, row in by_name.items():
        some = next(iter(row.values()))
        cells = [_result(row.get(c.arch)) for c in counts]
        args = _cell(some.args)
        lines.append(f"| {name} | {some.domain} | {args} | {' | '.join(cells)} |")
    return lines


def _reason(outcome: ProgramOutcome) -> str:
    """The reason, as code; for a timeout its progress, and how many of its seconds were on a
    processor."""
    if outcome.verdict != "timeout":
        return _cell(outcome.reason)
    return f"{outcome.seconds:.0f} s, {outcome.cpu:.0f} s of CPU time, {outcome.launches} launches"


def _result(outcome: ProgramOutcome | None) -> str:
    if outcome is None:
        return ""
    done = f"{outcome.verdict}, {outcome.seconds:.1f} s, {outcome.launches}"
    return f"{done}, {_short(outcome.instructions)}" if outcome.instructions else done


def _short(number: int) -> str:
    """Three digits: 812, 1.24k, 35.1M, 2.05G."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


def _cell(text: str) -> str:
    short = text if len(text) <= _REASON else text[: _REASON - 3] + "..."
    return f"`{short.replace('|', '/').replace('`', chr(39))}`" if short else ""


def _sorted(outcomes: Sequence[ProgramOutcome]) -> list[ProgramOutcome]:
    return sorted(outcomes, key=lambda o: (o.name, o.arch))

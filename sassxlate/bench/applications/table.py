"""The table of `sassxlate bench applications`: text, JSON, Markdown, and the page that keeps it."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sassxlate.bench.applications.declaration import Declaration
from sassxlate.bench.applications.run import Outcome, Result
from sassxlate.errors import UsageError, Where
from sassxlate.output import table, write_whole

BEGIN, END = "<!-- applications: begin -->", "<!-- applications: end -->"
HEAD = (
    "application",
    "version",
    "what was run",
    "compared within",
    "verdict",
    "s cold",
    "s warm",
    "elsewhere",
    "refused",
    "taken",
)
_REASON = 200  # characters in a table


def text(outcomes: Sequence[Outcome]) -> list[str]:
    """One line per outcome, and the reasons of those that are not right."""
    head = ("name", "version", "verdict", "s cold", "s warm", "elsewhere", "refused", "reason")
    rows = [
        (
            o.name, o.version, o.verdict, _seconds(o.cold), _seconds(o.warm), _elsewhere(o),
            _refused(o), _short(o.reason),
        )
        for o in outcomes
    ]  # fmt: skip
    return table(head, rows)


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """One outcome for JSON."""
    both = {"verdict": outcome.verdict, "reason": outcome.reason, "refused": dict(outcome.refused)}
    return {**both, **asdict(outcome)}


def markdown(outcomes: Sequence[Outcome], rows: Sequence[str] = ()) -> list[str]:
    """The table; ``rows`` of other declarations go in by name."""
    every = {name_of(row): row for row in rows}
    every |= {o.name: _row(o) for o in outcomes}
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    return lines + [every[name] for name in sorted(every)]


def write(page: Path, outcomes: Sequence[Outcome], declarations: Sequence[Declaration]) -> None:
    """Puts the outcomes into the page.

    Rows of an earlier call stay while their declaration exists with the same version.
    UsageError SX0824 if the marks are missing.
    """
    try:
        old = page.read_text(encoding="utf-8")
        before, rest = old.split(BEGIN, 1)
        body, after = rest.split(END, 1)
    except (OSError, ValueError):
        raise UsageError("SX0824", f"no {BEGIN} and {END}", Where(str(page))) from None
    versions = {d.name: d.version for d in declarations}
    kept = [row for row in rows_of(body) if versions.get(name_of(row)) == version_of(row)]
    lines = "\n".join(markdown(outcomes, kept))
    write_whole(page, f"{before}{BEGIN}\n{lines}\n{END}{after}".encode())


def rows_of(body: str) -> list[str]:
    """The rows of a table that `markdown` made, without its head."""
    return [line for line in body.splitlines() if line.startswith("| [")]


def name_of(row: str) -> str:
    """The name of a row's declaration."""
    return row.split("applications/", 1)[1].split(".toml", 1)[0]


def version_of(row: str) -> str:
    """The package and version that a row is of."""
    return row.split(" | ")[1].strip()


def _row(outcome: Outcome) -> str:
    verdict = f"**{outcome.verdict}**" if outcome.verdict != "right" else "right"
    if outcome.reason:
        verdict += f": `{_cell(outcome.reason)}`"
    cells = (
        f"[{_cell(outcome.application)}](../fixtures/applications/{outcome.name}.toml)",
        outcome.version,
        _cell(outcome.what),
        _cell(outcome.tolerance),
        verdict,
        _seconds(outcome.cold),
        _seconds(outcome.warm),
        _elsewhere(outcome),
        _refused(outcome),
        f"{datetime.date.today().isoformat()}, {len(os.sched_getaffinity(0))} cores, "
        f"load {os.getloadavg()[0]:.0f}",
    )
    return f"| {' | '.join(cells)} |"


def _seconds(result: Result | None) -> str:
    if result is None:
        return "-"
    return f"{result.seconds:.1f}" if result.seconds < 10 else f"{result.seconds:.0f}"


def _elsewhere(outcome: Outcome) -> str:
    parts = [f"{where.upper()}: {r.verdict}, {_seconds(r)} s" for where, r in outcome.elsewhere]
    return "; ".join(parts) or "-"


def _refused(outcome: Outcome) -> str:
    return ", ".join(f"{code} x{count}" for code, count in outcome.refused) or "-"


def _short(reason: str) -> str:
    return reason if len(reason) <= _REASON else reason[: _REASON - 3] + "..."


def _cell(value: str) -> str:
    return _short(" ".join(value.split())).replace("|", "/").replace("`", "'")


__all__ = [
    "BEGIN",
    "END",
    "as_dict",
    "markdown",
    "name_of",
    "rows_of",
    "text",
    "version_of",
    "write",
]

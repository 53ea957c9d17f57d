"""The file of results, one JSON row a case, and the table made of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]

RIGHT, WRONG, REFUSED, TIMED_OUT = "right", "wrong", "refused", "timed out"
VERDICTS = (RIGHT, WRONG, REFUSED, TIMED_OUT, "crash", "error", "unchecked", "neither")
"""unchecked: nothing to compare with; neither: neither device has the operator for the dtype."""

_CODE = re.compile(r"SX\d{4}")


def load(path: Path) -> dict[str, Row]:
    """The last row of each case; rows that an interruption cut short are left out."""
    rows: dict[str, Row] = {}
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if "id" in row:
                rows[row["id"]] = row
    return rows


def code(row: Mapping[str, Any]) -> str:
    """The first code that our libraries gave during the case, or ""."""
    found = _CODE.search(str(row.get("said", "")))
    return found.group() if found else ""


def reason(row: Mapping[str, Any]) -> str:
    """Why a case is not right, in one line."""
    said = str(row.get("said", "")).splitlines()
    text = said[0] if said else str(row.get("text", "")).split("\n")[0]
    return text[:160].replace("|", "/")


def table(rows: Mapping[str, Row], names: Iterable[str]) -> str:
    """Counts by dtype, then every case that is not right, in Markdown."""
    ordered = [name for name in names if name in rows]
    absent = sum(name not in rows for name in names)
    dtypes = list(dict.fromkeys(name.rpartition("/")[2] for name in ordered))
    shown = [v for v in VERDICTS if any(rows[name]["verdict"] == v for name in ordered)]
    lines = [f"| dtype | {' | '.join(shown)} | all |", "|---" * (len(shown) + 2) + "|"]
    for dtype in (*dtypes, ""):
        chosen = [name for name in ordered if not dtype or name.endswith(f"/{dtype}")]
        counts = Counter(rows[name]["verdict"] for name in chosen)
        cells = " | ".join(str(counts[v]) for v in shown)
        lines.append(f"| {dtype or '**all**'} | {cells} | {len(chosen)} |")
    judged = [n for n in ordered if rows[n]["verdict"] not in ("unchecked", "neither")]
    right = [n for n in judged if rows[n]["verdict"] == RIGHT]
    share = 100 * len(right) / len(judged) if judged else 0.0
    bits = sum(rows[n].get("gpu") == "bits" for n in ordered)
    compared = sum("gpu" in rows[n] for n in ordered)
    lines += ["", f"{len(right)} of {len(judged)} right ({share:.1f} %); {absent} not run."]
    if compared:
        lines.append(f"{bits} of {compared} have the bits that the GPU gave.")
    failures = [n for n in judged if rows[n]["verdict"] != RIGHT]
    if failures:
        lines += ["", "| case | verdict | code | reason |", "|---|---|---|---|"]
        for name in failures:
            row = rows[name]
            lines.append(f"| {name} | {row['verdict']} | {code(row)} | {reason(row)} |")
    return "\n".join(lines) + "\n"


def summary(rows: Mapping[str, Row], names: Iterable[str]) -> Row:
    """The table as data: verdict, code and reason of each case, without values."""
    return {
        name: {
            "verdict": rows[name]["verdict"],
            "seconds": rows[name].get("seconds", 0.0),
            "gpu": rows[name].get("gpu", ""),
            "code": code(rows[name]),
            "reason": "" if rows[name]["verdict"] == RIGHT else reason(rows[name]),
        }
        for name in names
        if name in rows
    }

"""Verdicts as text, for commands that prove blocks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sassxlate.errors import UsageError

if TYPE_CHECKING:
    from sassxlate.lowering.report.judged import Judged


def require_solver() -> None:
    """UsageError SX0823 if z3 is missing."""
    try:
        import z3  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        message = "the solver is missing: pip install 'sassxlate[verify]'"
        raise UsageError("SX0823", message) from None


def counted(counts: Counter[str]) -> str:
    """The counts as text."""
    names = ("Proved", "Refuted", "Unknown", "refused kernels")
    return ", ".join(f"{counts[n]} {n.lower()}" for n in names if counts[n]) or "no blocks"


def verdict_text(judged: Judged) -> str:
    """One line per block; a counterexample in both languages."""
    from sassxlate.lowering.verify import Proved, Refuted

    verdict = judged.verdict
    head = f"  block /*{judged.start:04x}*/, {judged.instructions} instructions:"
    if isinstance(verdict, Proved):
        reading = f" (modulo {', '.join(verdict.modulo)})" if verdict.modulo else ""
        return f"{head} proved{reading}"
    if isinstance(verdict, Refuted):
        return "\n".join([f"{head} refuted", *(f"    {line}".rstrip() for line in judged.shown)])
    return f"{head} unknown: {verdict.reason}"


__all__ = ["counted", "require_solver", "verdict_text"]

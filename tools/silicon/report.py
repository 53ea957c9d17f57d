"""The summary of a run on the device: a table of verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def print_table(found: Iterable[tuple[str, str]], verdicts: Sequence[str]) -> Counter[str]:
    """Prints how often each name has each verdict, and all together; ``found`` is (name, verdict).
    The sums."""
    table: dict[str, Counter[str]] = {}
    for name, verdict in found:
        table.setdefault(name, Counter())[verdict] += 1
    total: Counter[str] = Counter()
    for counts in table.values():
        total += counts
    print(f"{'':12}" + "".join(f"{v:>12}" for v in verdicts))
    for name, counts in [*sorted(table.items()), ("all", total)]:
        print(f"{name:12}" + "".join(f"{counts[v]:12}" for v in verdicts))
    return total


__all__ = ["print_table"]

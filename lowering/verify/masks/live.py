"""Which scalar registers code reads later: sets as by :func:`.operations.bits`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sassxlate.lowering.verify.masks.operations import Jump
from sassxlate.lowering.verify.masks.rows import Row


def live_after(
    rows: Sequence[Row],
    labels: Mapping[str, int],
    ways: tuple[set[int], set[int]] | None = None,
) -> list[int]:
    """Per row the registers, SCC among them, that the old code reads after it.

    ``labels``: the row of each.  ``ways``: the jumps that are taken and those that are not, if that
    is known; otherwise every jump goes both ways.
    """
    out = [0] * len(rows)
    at_label = dict.fromkeys(labels.values(), 0)
    changed = True
    while changed:
        changed = False
        now = 0
        for n in range(len(rows) - 1, -1, -1):
            row = rows[n]
            out[n] = now
            what = row.was
            if what is None:
                if row.label and at_label[n] != now:
                    at_label[n], changed = now, True
            elif isinstance(what, Jump):
                taken = bool(what.label) and (ways is None or n in ways[0])
                passed = what.on > 0 if ways is None else n in ways[1]
                after = now if passed and what.label else 0
                if taken:
                    after |= at_label.get(labels.get(what.label, -1), 0)
                out[n] = after
                now = after | (row.reads if taken and passed else 0)
            else:
                now = (now & ~row.writes) | row.reads
    return out


__all__ = ["live_after"]

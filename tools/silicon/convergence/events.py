"""The record of a kernel of :mod:`.listing`: the running lanes at each event, in the order of the
clock."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Number, the lanes, B0 to B3 (none where the kernel's events are light), R16: one value, or of
# each lane.
Event: TypeAlias = tuple[int, int, tuple[int, ...], int | tuple[tuple[int, int], ...]]
LANES, MOST, WORDS = 32, 64, 8  # events per lane, words an event


def events(words: NDArray[np.uint32], heavy: bool) -> tuple[Event, ...] | None:
    """``words`` is over (lanes, events, WORDS).  None if a lane had more events than there is
    room for, or lanes that ran together do not say the same."""
    groups: dict[tuple[int, int, int], list[int]] = {}
    rows: dict[tuple[int, int, int], list[Sequence[int]]] = {}
    for lane in range(LANES):
        for row in words[lane].tolist():
            if row[0] == 0:
                break
            key = row[2], row[0], row[1]
            groups.setdefault(key, []).append(lane)
            rows.setdefault(key, []).append(row)
    clocks = [clock for clock, _, _ in groups]
    start = min(clocks, default=0)
    if max(clocks, default=0) - start > 1 << 31:  # it has wrapped
        start = min(clock for clock in clocks if clock >= 1 << 31)
    out: list[tuple[int, Event]] = []
    for (clock, number, vote), lanes in groups.items():
        here = rows[clock, number, vote]
        barriers = {tuple(row[3:7]) for row in here} if heavy else {()}
        if vote != sum(1 << lane for lane in lanes) or len(barriers) > 1:
            return None
        values = [row[7] if heavy else row[3] for row in here]
        same = len(set(values)) == 1
        value = values[0] if same else tuple(zip(lanes, values, strict=True))
        event: Event = (number, vote, next(iter(barriers)), value)
        out.append(((clock - start) & 0xFFFFFFFF, event))
    return tuple(event for _, event in sorted(out, key=lambda x: x[0]))


def digest(log: Iterable[Event]) -> str:
    return hashlib.blake2b(json.dumps(list(log)).encode(), digest_size=8).hexdigest()


def shown(log: Iterable[Event]) -> list[str]:
    """A line an event, for :func:`read`."""
    lines: list[str] = []
    for number, vote, barriers, value in log:
        kept = " ".join(f"{b:08x}" for b in barriers)
        named = f"{value:x}" if isinstance(value, int) else ",".join(f"{n}:{v:x}" for n, v in value)
        lines.append(f"{number} {vote:08x} | {kept} | {named}")
    return lines


def read(lines: Iterable[str]) -> tuple[Event, ...]:
    out: list[Event] = []
    for line in lines:
        first, kept, named = (part.strip() for part in line.split("|"))
        number, vote = first.split()
        value: Any
        if ":" in named:
            pairs = (pair.split(":") for pair in named.split(","))
            value = tuple((int(n), int(v, 16)) for n, v in pairs)
        else:
            value = int(named, 16)
        barriers = tuple(int(b, 16) for b in kept.split())
        out.append((int(number), int(vote, 16), barriers, value))
    return tuple(out)

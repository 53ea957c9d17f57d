"""Work on the device in several processes.

After a fault the process's context is unusable, and an endless launch blocks it.  So each process
writes its results line by line, as objects with a number ``n`` and a ``verdict``, and one such line
before each launch: if a process ends early, another continues after the number that ended it.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

Line = dict[str, object]
HUNG = "hung"  # the verdict of what began, where it may be that it never ends


def supervised(
    worker: Callable[[Sequence[int], str], None],
    shares: Sequence[Sequence[int]],
    folder: Path,
    seconds: float,
    patience: float = float("inf"),
) -> list[Line]:
    """The last line of each number, in order; the verdict is ``late`` where ``seconds`` did not
    suffice.

    ``worker`` takes the numbers of one of the ``shares`` and the file for its lines.  A process
    whose last line is ``hung`` for more than ``patience`` seconds is ended.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pending = {p: list(share) for p, share in enumerate(shares)}
    numbers = sorted(n for share in shares for n in share)
    found: dict[int, Line] = {}
    context = mp.get_context("fork")  # its imports are done; this process has no context
    running: dict[int, BaseProcess] = {}
    since: dict[int, tuple[int, float]] = {}  # of each process: its lines, and since when
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for p in pending:
            path = folder / f"{p}.jsonl"
            if p in running and running[p].is_alive():
                if patience < float("inf") and _hangs(_read(path), p, since, patience):
                    running[p].kill()
                    running[p].join(5)
                continue
            found |= {int(str(line["n"])): line for line in _read(path)}
            pending[p] = [n for n in pending[p] if n not in found]
            if pending[p]:
                since.pop(p, None)
                running[p] = context.Process(target=worker, args=(pending[p], str(path)))
                running[p].start()
            else:
                running.pop(p, None)
        if not running:
            break
        time.sleep(0.05)
    for process in running.values():
        process.kill()
    for p in pending:
        found |= {int(str(line["n"])): line for line in _read(folder / f"{p}.jsonl")}
    return [found.get(n, {"n": n, "verdict": "late"}) for n in numbers]


def _hangs(
    lines: Sequence[Line], p: int, since: dict[int, tuple[int, float]], patience: float
) -> bool:
    """Whether a process has written nothing for long after the line with the verdict ``hung``."""
    now = time.monotonic()
    count, start = since.setdefault(p, (len(lines), now))
    if count != len(lines):
        since[p] = len(lines), now
        return False
    return bool(lines) and lines[-1]["verdict"] == HUNG and now - start > patience


def _read(path: Path) -> list[Line]:
    """The lines that are whole."""
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_text().splitlines() if text.endswith("}")]


__all__ = ["HUNG", "Line", "supervised"]

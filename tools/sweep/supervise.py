"""Runs the driver over groups until every kernel has a line: past hangs, faults and crashes."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

DRIVER = ("-m", "tools.sweep.driver")  # in the repository's root
_ROOT = Path(__file__).resolve().parents[2]


def _lines(stream: TextIO, to: queue.Queue[str | None]) -> None:
    for line in stream:
        to.put(line)
    to.put(None)


def supervise(
    command: Sequence[str],
    groups: Sequence[dict[str, Any]],
    put: Callable[[dict[str, Any]], None],
    *,
    silence_s: float,
    deadline: float,
    environment: Mapping[str, str] | None = None,
    errors: Path | None = None,
) -> None:
    """``command`` LIST SKIP... is started as often as needed; ``put`` gets each kernel's line.

    A kernel without output for ``silence_s`` seconds after its beginning gets the error
    ``late``, one with which the process ends ``died``.  No work begins after ``deadline``, a time
    of :func:`time.monotonic`.  ``errors`` takes what is written to stderr.
    """
    done: set[str] = set()
    left = {k["name"] for g in groups for k in g["kernels"]}
    while left - done and time.monotonic() < deadline:
        todo = [
            {**g, "kernels": [k for k in g["kernels"] if k["name"] not in done]} for g in groups
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump([g for g in todo if g["kernels"]], file)
        at = _once([*command, file.name], put, done, silence_s, deadline, environment, errors)
        os.unlink(file.name)
        if at is None:
            break
        name, why = at
        if name in done:  # it ended by itself, after an error that stays
            continue
        if not name:
            raise RuntimeError(f"the driver {why} before any kernel")
        done.add(name)
        put({"k": name, "e": why})


def _once(
    command: list[str], put: Callable[[dict[str, Any]], None], done: set[str], silence_s: float,
    deadline: float, environment: Mapping[str, str] | None, errors: Path | None,
) -> tuple[str, str] | None:  # fmt: skip
    """One process; None if it came to its end, otherwise the kernel it was at and what happened."""
    with open(errors or os.devnull, "a", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, stdin=subprocess.DEVNULL,
            env=environment, errors="replace", cwd=_ROOT,
        )  # fmt: skip
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=_lines, args=(process.stdout, lines), daemon=True).start()
    at, why = "", "died"
    try:
        while True:
            wait = min(silence_s, deadline - time.monotonic())
            try:
                text = lines.get(timeout=max(wait, 0.01))
            except queue.Empty:
                why = "late"
                if time.monotonic() >= deadline:
                    return None
                return at, why
            if text is None:
                return at, why
            try:
                line: Any = json.loads(text)
            except ValueError:
                continue  # what a kernel printed
            if not isinstance(line, dict):
                continue
            line = cast(dict[str, Any], line)
            if "end" in line:
                return None
            if "at" in line:
                at = str(line["at"])
            elif "k" in line:
                done.add(str(line["k"]))
                put(line)
    finally:
        process.kill()
        process.wait()

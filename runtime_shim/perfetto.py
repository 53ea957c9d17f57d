"""The trace of a run for Perfetto: the driver library's record of calls as one JSON file.

The record has a line per call (runtime_shim/native/cuda/trace.h).  The document is of the Trace
Event Format: complete events (``"ph": "X"``) with times in microseconds of the monotonic clock,
``cat`` is ``call``, ``launch`` or ``translation``; ``args`` has the result, as a CUDA error, and
what the call says of itself, such as a launch's shape and kernel.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from sassxlate.errors import UsageError, Where
from sassxlate.files import replace_file

NAME = "trace.json"
_SERVICE = "(service)"
_LAUNCHES = ("cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchGrid", "cuGraphLaunch")


def write(folder: Path, program: str) -> Path:
    """Makes ``trace.json`` of the records in a folder, and removes these.

    ``program`` is what the processes are called.  UsageError SX0719 if it cannot be written.
    """
    events: list[dict[str, Any]] = []
    records = sorted(folder.glob("cuda-*.times"))
    for path in records:
        pid = int(path.stem.removeprefix("cuda-"))
        about = {"name": program}
        events.append({"name": "process_name", "ph": "M", "pid": pid, "tid": pid, "args": about})
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            event = _event(line, pid)
            if event is not None:
                events.append(event)
    out = folder / NAME
    document = {"displayTimeUnit": "ms", "traceEvents": events}
    try:
        replace_file(out, json.dumps(document).encode())
    except OSError as error:
        raise UsageError("SX0719", f"{error.strerror}", Where(str(out))) from None
    for path in records:
        with suppress(OSError):
            path.unlink()
    return out


def _event(line: str, pid: int) -> dict[str, Any] | None:
    """A line as an event; None for one that a killed process left unfinished."""
    parts = line.split(" ", 5)
    if len(parts) < 5 or not all(part.lstrip("-").isdecimal() for part in (*parts[:3], parts[4])):
        return None
    begin, duration, thread, name, result, note = (*parts, "")[:6]
    kind = "launch" if name.startswith(_LAUNCHES) else "call"
    if name == _SERVICE:
        kind, operation, note = "translation", *(*note.split(" ", 1), "")[:2]
        name = f"service: {operation}"
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": int(begin) / 1000,
        "dur": int(duration) / 1000,
        "pid": pid,
        "tid": int(thread),
        "args": {"result": int(result), **({"note": note} if note else {})},
    }


__all__ = ["NAME", "write"]

"""Runs cases in processes of their own, with limits, and keeps each result as it comes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO

from .results import REFUSED, TIMED_OUT, Row

ROOT = Path(__file__).resolve().parents[3]
_SAID = re.compile(r"^sassxlate: (SX\d{4}: .*)$", re.MULTILINE)  # not the indented summary of `run`
_NOISE = ("SX0907", "SX0713")  # reported, but not due to a case
_MARK = re.compile(r"^@@ (.*)$", re.MULTILINE)
_POLL_S = 0.2
_KEPT_LINES = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """How cases are run."""

    command: tuple[str, ...]  # up to and with torch's Python
    device: str
    truth: Path | None
    group: int  # cases a process
    jobs: int
    case_s: float
    deadline: float  # of the monotonic clock
    logs: Path | None


class Runner:
    """A queue of groups of cases, and the file of results."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self.plan = plan
        self.out = out
        self.lock = Lock()
        self.running: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, names: Sequence[str]) -> bool:
        """All cases; False if the deadline came first."""
        size = self.plan.group
        groups = [list(names[n : n + size]) for n in range(0, len(names), size)]
        with ThreadPoolExecutor(self.plan.jobs) as pool:
            return all(list(pool.map(self._group, groups)))

    def _group(self, names: list[str]) -> bool:
        """One group, in as many processes as it needs: one more after each crash or time-out."""
        left = deque(names)
        while left:
            if time.monotonic() >= self.plan.deadline:
                return False
            done = self._process(list(left))
            if not done:
                return time.monotonic() < self.plan.deadline
            for name in done:
                left.remove(name)
        return True

    def _process(self, names: list[str]) -> list[str]:
        """One process; the names of the cases that have a row now."""
        plan = self.plan
        with tempfile.TemporaryDirectory(prefix="torch-operators-") as folder:
            results, listed, log = (Path(folder) / name for name in ("results", "names", "log"))
            results.touch()
            listed.write_text("\n".join(names), encoding="utf-8")
            module = "tools.clients.torch_operators.child"
            command = [*plan.command, "-m", module, str(results), str(listed), plan.device]
            if plan.truth:
                command.append(str(plan.truth))
            with log.open("wb") as out, self._started(command, out) as process:
                stopped = self._watch(process, results)
            text = log.read_text("utf-8", "replace")
            events: list[Row] = []
            for line in results.read_text("utf-8").splitlines():
                with suppress(json.JSONDecodeError):
                    events.append(json.loads(line))
        if plan.logs:
            with self.lock, (plan.logs / "children.log").open("a", encoding="utf-8") as kept:
                kept.write(text)
        rows = rows_of(events, names, said_by(text), stopped, process.returncode, text)
        self._keep(rows)
        return [row["id"] for row in rows]

    @contextmanager
    def _started(self, command: list[str], out: IO[bytes]) -> Generator[subprocess.Popen[bytes]]:
        """A child in a process group of its own, which does not outlive the block."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _watch(self, process: subprocess.Popen[bytes], results: Path) -> str:
        """Waits for the end; "" or why the process is to be killed: "case" or "deadline"."""
        size, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(_POLL_S)
            now = time.monotonic()
            if now >= self.plan.deadline:
                return "deadline"
            if (grown := results.stat().st_size) != size:
                size, since = grown, now
            elif now - since > self.plan.case_s:
                return "case"
        return ""

    def _keep(self, rows: Sequence[Row]) -> None:
        """Appends rows to the file, and shows what is not right."""
        with self.lock, self.out.open("a", encoding="utf-8") as out:
            for row in rows:
                out.write(json.dumps(row, separators=(",", ":")) + "\n")
                if row["verdict"] not in ("right", "unchecked", "neither"):
                    why = str(row.get("said") or row.get("text", "")).split("\n")[0]
                    print(f"{row['verdict']:10}{row['id']:28}{why[:120]}", flush=True)


def said_by(text: str) -> dict[str, str]:
    """What our libraries reported during each case."""
    parts = _MARK.split(text)
    said: dict[str, str] = {}
    for name, block in zip(parts[1::2], parts[2::2], strict=True):
        lines = [line for line in _SAID.findall(block) if not line.startswith(_NOISE)]
        if lines:
            said[name] = "\n".join(dict.fromkeys(lines[:_KEPT_LINES]))
    return said


def rows_of(
    events: Sequence[Row],
    names: Sequence[str],
    said: dict[str, str],
    stopped: str,
    status: int,
    log: str,
) -> list[Row]:
    """The rows of a process's cases: those that ended, and the one that ended the process.

    A process that ends before its first case begins makes that case a crash with the end of its
    log, so that each process has a row and a group comes to its end."""
    rows: list[Row] = []
    open_case = earlier = ""
    for event in events:
        if event["event"] == "start":
            open_case = event["id"]
            earlier = said.get(open_case, earlier)  # libraries report some things once a process
        elif event["event"] == "end":
            row = {key: value for key, value in event.items() if key != "event"}
            if row["id"] in said:
                row["said"] = said[row["id"]]
            elif row["verdict"] == "error" and earlier:
                row["said"] = f"an earlier case of the process had {earlier}"
            if row["verdict"] == "error" and "said" in row:
                row["verdict"] = REFUSED
            rows.append(row)
            open_case = ""
    if stopped == "deadline":
        return rows
    finished = any(event["event"] == "finished" for event in events)
    if not finished and not rows and not open_case and names:
        open_case = names[0]
    if open_case:
        verdict = TIMED_OUT if stopped else "crash"
        tail = [line for line in log.splitlines() if line.strip()][-1:]
        why = "no answer in time" if stopped else f"status {status}: {''.join(tail)[:160]}"
        row = {"id": open_case, "verdict": verdict, "text": why}
        if open_case in said:
            row["said"] = said[open_case]
        rows.append(row)
    return rows

"""A Python package's own tests, on the emulated device or on a GPU: a verdict for each.

    python -m tools.clients.python_clients run RESULTS --python VENV/bin/python \
        --package numba.cuda.tests.cudapy
    python -m tools.clients.python_clients run RESULTS --python VENV/bin/python --files
    tests/core_tests
    python -m tools.clients.python_clients table RESULTS [--truth RESULTS-OF-A-GPU]

``run`` takes the modules of a package (unittest) or the files below a folder (pytest), each in a
process of its own under ``sassxlate run`` (``--direct``: without, on a machine with a GPU).  A test
that crashes or hangs ends its process, and the rest of the file continues in another.  A failed
test is repeated alone (``--alone``), because a fault of one test affects its process.  RESULTS is a
file of JSON lines; tests in it are not run again.  With ``--groups N`` the tests of all files are
listed first and run N in a process, in an order that ``--seed`` gives, until ``--limit``: what has
a result by then is a sample of all.  ``table`` counts and lists.  Standard library alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

CHILD = Path(__file__).resolve().parent / "child.py"
GOOD = ("pass", "xfail")
BAD = ("fail", "error", "crash", "timeout")
_SAID = re.compile(r"^sassxlate: (?:  )?(SX\d{4}: .*)$", re.MULTILINE)
_NOISE = ("SX0907", "SX0713")  # reported, but not due to a test
_MARK = re.compile(r"^@@ (.*)$", re.MULTILINE)
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one test; ``text`` is its own reason, ``said`` our libraries' messages."""

    file: str
    id: str
    verdict: str
    seconds: float = 0.0
    text: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings for running files of tests."""

    kind: str  # unittest or pytest
    command: tuple[str, ...]  # up to the Python that runs the tests
    options: tuple[str, ...]
    seconds: float  # time limit of a test
    logs: Path
    deadline: float = math.inf  # of the monotonic clock: nothing runs after it


class Store:
    """The results so far, and their file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = Lock()
        self.rows: dict[str, Row] = load(path)
        finished = (
            [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            if path.exists()
            else []
        )
        self.finished: set[str] = {row["finished"] for row in finished if "finished" in row}

    def add(self, row: Row) -> None:
        """Keeps a row; a later one of the same test replaces it."""
        self.rows[row.id] = row
        self._write(asdict(row))
        if row.verdict in BAD:
            print(f"{row.verdict:8}{row.id}  {reason(row)}", flush=True)

    def finish(self, file: str) -> None:
        """All of a file is done."""
        self.finished.add(file)
        self._write({"finished": file})

    def _write(self, value: object) -> None:
        with self.lock, self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(value) + "\n")


def load(path: Path) -> dict[str, Row]:
    """The last row of each test in a file of results."""
    rows: dict[str, Row] = {}
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            value = json.loads(line)
            if "id" in value:
                rows[value["id"]] = Row(**value)
    return rows


def reason(row: Row) -> str:
    """The reason why a test failed, in one line: our refusal, otherwise its own last line."""
    if row.said:
        return row.said.splitlines()[0][:160]
    lines = [line for line in row.text.splitlines() if line.strip()]
    return lines[-1].strip()[:160] if lines else ""


def run_file(plan: Plan, file: str, store: Store, only: Sequence[str] = ()) -> None:
    """Runs all tests of a file without a result, or only ``only``, each process until its end."""
    done = [row.id for row in store.rows.values() if row.file == file]
    whole = not only
    for _ in range(200):  # each round has at least one more result
        if time.monotonic() >= plan.deadline:
            return
        rows, finished = _process(plan, file, ["only", *only] if only else done)
        for row in rows:
            store.add(row)
        done += [row.id for row in rows]
        only = [name for name in only if name not in {row.id for row in rows}]
        if finished or not rows:
            break
    else:
        finished = False
    if time.monotonic() >= plan.deadline:
        return
    if not finished:
        store.add(Row(file, file, "crash", 0.0, "the file's process ended before a test began"))
    if whole:
        store.finish(file)


def _process(plan: Plan, file: str, listed: Sequence[str]) -> tuple[list[Row], bool]:
    """One process: the rows of the tests that it ran, and whether it came to its end."""
    events, text, stopped, status = _child(plan, plan.kind, file, listed)
    said = _said(text)
    rows: list[Row] = []
    running = ""
    for event in events:
        if event["event"] == "start":
            running = event["id"]
        elif event["event"] == "end":
            name = event["id"]
            rows.append(
                Row(
                    file,
                    name,
                    event["verdict"],
                    event["seconds"],
                    event["text"],
                    said.get(name, ""),
                )
            )
            running = ""
    if running and time.monotonic() < plan.deadline:
        verdict = "timeout" if stopped else "crash"
        why = f"{plan.seconds:.0f} s" if stopped else f"status {status}"
        rows.append(Row(file, running, verdict, plan.seconds, why, said.get(running, "")))
    finished = any(event["event"] == "finished" for event in events)
    return rows, finished


def _child(
    plan: Plan, kind: str, file: str, listed: Sequence[str]
) -> tuple[list[dict[str, Any]], str, bool, int]:
    """A process of ``child.py``: its events, what it printed, if it was killed, its status."""
    with tempfile.TemporaryDirectory(prefix="python-clients-") as folder:
        results, names, log = (Path(folder) / name for name in ("results", "names", "log"))
        results.touch()
        names.write_text("\n".join(listed), encoding="utf-8")
        command = [*plan.command, str(CHILD), kind, file, str(results), str(names)]
        if plan.options:
            command += ["--", *plan.options]
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            stopped = _watch(process, results, plan)
        text = log.read_text("utf-8", "replace")
        with (plan.logs / f"{Path(file).name}.log").open("a", encoding="utf-8") as kept:
            kept.write(text)
        events: list[dict[str, Any]] = []
        for line in results.read_text("utf-8").splitlines():
            with suppress(json.JSONDecodeError):  # the line that a killed process was writing
                events.append(json.loads(line))
    return events, text, stopped, process.returncode


def _watch(process: subprocess.Popen[bytes], results: Path, plan: Plan) -> bool:
    """Waits for the end; True if it was killed, silent for too long or at the deadline."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(_POLL_S)
        now = results.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() > min(since + plan.seconds, plan.deadline):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
    return False


def _said(text: str) -> dict[str, str]:
    """Our libraries' lines by the test they came in."""
    parts = _MARK.split(text)
    found: dict[str, str] = {}
    for name, part in zip(parts[1::2], parts[2::2], strict=True):
        lines = [line for line in _SAID.findall(part) if not line.startswith(_NOISE)]
        if lines:
            found[name] = "\n".join(dict.fromkeys(lines))[:2000]
    return found


def modules(python: str, package: str) -> list[str]:
    """The names of the modules ``test_*`` of a package, by its folder."""
    code = f"import {package} as p, sys; sys.stdout.write(p.__path__[0])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.splitlines()[-1])
    return [f"{package}.{path.stem}" for path in sorted(folder.glob("test_*.py"))]


def names_of(plan: Plan, file: str) -> list[str]:
    """The tests of a file, or of the sample of it that is asked for; a file that cannot be read is
    listed by its own name."""
    events = _child(replace(plan, seconds=math.inf), f"list-{plan.kind}", file, [])[0]
    return [event["id"] for event in events if event["event"] == "name"] or [file]


def grouped(
    names: Mapping[str, Sequence[str]], known: Container[str], arguments: argparse.Namespace
) -> list[tuple[str, list[str]]]:
    """Files with some of their tests, in an order given by the seed: none that is known."""
    order = random.Random(arguments.seed)
    size: int = arguments.groups
    found: list[tuple[str, list[str]]] = []
    for file, all_names in names.items():
        left = [name for name in all_names if name not in known]
        order.shuffle(left)
        found += [(file, left[n : n + size]) for n in range(0, len(left), size)]
    order.shuffle(found)
    return found


def run(arguments: argparse.Namespace) -> None:
    """The verb ``run``."""
    python: str = arguments.python
    if arguments.package:
        kind, files = "unittest", modules(python, arguments.package)
    else:
        kind = "pytest"
        files = [
            str(path)
            for folder in arguments.files
            for path in (sorted(folder.rglob("test_*.py")) if folder.is_dir() else [folder])
        ]
    if arguments.only:
        files = [file for file in files if re.search(arguments.only, file)]
    under = [part for given in arguments.under for part in given.split()]
    before = (
        ()
        if arguments.direct
        else (sys.executable, "-m", "sassxlate", "run", "--keep-status", *under, "--")
    )
    logs: Path = arguments.results.with_suffix(".logs")
    logs.mkdir(exist_ok=True)
    deadline = time.monotonic() + arguments.limit
    plan = Plan(kind, (*before, python), tuple(arguments.option), arguments.timeout, logs, deadline)
    store = Store(arguments.results)
    waiting = [file for file in files if file not in store.finished]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        if arguments.groups:
            listed = pool.map(partial(names_of, plan), waiting)
            batches = grouped(dict(zip(waiting, listed, strict=True)), store.rows, arguments)
            for job in [pool.submit(run_file, plan, file, store, ids) for file, ids in batches]:
                job.result()
            if time.monotonic() < deadline:
                for file in waiting:
                    store.finish(file)
            waiting = []
        for job in [pool.submit(run_file, plan, file, store) for file in waiting]:
            job.result()
        if arguments.alone:
            again = [
                row
                for row in store.rows.values()
                if row.verdict in BAD and row.file in files and row.id != row.file
            ]
            for job in [pool.submit(run_file, plan, row.file, store, [row.id]) for row in again]:
                job.result()
    summary(store.rows.values())


def summary(rows: Iterable[Row]) -> None:
    """Counts of verdicts."""
    counts = Counter(row.verdict for row in rows)
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))


def table(arguments: argparse.Namespace) -> None:
    """The verb ``table``: one row per file, then every failure of a test that passes on the GPU."""
    rows = load(arguments.results)
    truth = load(arguments.truth) if arguments.truth else None
    names = [
        name
        for name, row in rows.items()
        if (truth is None and row.verdict != "skip")
        or (truth is not None and name in truth and truth[name].verdict in GOOD)
    ]
    if truth is not None:
        names += [name for name, row in truth.items() if row.verdict in GOOD and name not in rows]
    good = {name for name in names if name in rows and rows[name].verdict in GOOD}
    files = Counter((truth or rows)[name].file for name in names)
    passed = Counter(rows[name].file for name in good)
    print("| file | tests | pass |\n|---|---|---|")
    for file, count in sorted(files.items()):
        print(f"| {Path(file).name.rpartition('.cudapy.')[2]} | {count} | {passed[file]} |")
    share = 100 * len(good) / len(names) if names else 0.0
    print(f"| **all** | {len(names)} | {len(good)} ({share:.1f} %) |\n")
    print("| test | verdict | reason |\n|---|---|---|")
    for name in sorted(set(names) - good):
        row = rows.get(name, Row("", name, "not run"))
        print(f"| {name} | {row.verdict} | {reason(row).replace('|', '/')} |")


def main() -> None:
    """The command of the module's description."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("run")
    one.add_argument("results", type=Path)
    one.add_argument("--python", default=sys.executable)
    what = one.add_mutually_exclusive_group(required=True)
    what.add_argument("--package")
    what.add_argument("--files", type=Path, nargs="+")
    one.add_argument("--only", help="files whose name matches this pattern")
    one.add_argument("--option", action="append", default=[], help="of pytest")
    one.add_argument("--direct", action="store_true", help="without sassxlate run")
    one.add_argument("--alone", action="store_true", help="failures once more, each by itself")
    one.add_argument("--timeout", type=float, default=300.0, help="seconds of a test")
    one.add_argument("--under", action="append", default=[], help="options of `sassxlate run`")
    one.add_argument("--groups", type=int, default=0, help="tests a process; 0: a file a process")
    one.add_argument("--seed", type=int, default=1, help="of the order of groups")
    one.add_argument("--limit", type=float, default=math.inf, help="seconds of the whole run")
    one.add_argument("-j", "--jobs", type=int, default=1)
    one.set_defaults(verb=run)
    two = verbs.add_parser("table")
    two.add_argument("results", type=Path)
    two.add_argument("--truth", type=Path)
    two.set_defaults(verb=table)
    arguments = parser.parse_args()
    arguments.verb(arguments)


if __name__ == "__main__":
    main()

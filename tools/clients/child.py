"""One file of a Python package's tests, in the package's own Python: a line of JSON for each test.

``python child.py [list-]unittest|pytest NAME RESULTS [DONE] [-- PYTEST OPTIONS]`` runs
the tests of the module (unittest) or file (pytest) ``NAME`` that are not named in the file
``DONE``, or only those in it if its first line is ``only``; ``list-`` names them and runs nothing.
``RESULTS`` is appended to as tests start and end, so that the watching process can attribute a
crash or hang.  Standard library alone (and pytest for pytest).
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import unittest
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

_TEXT = 2000  # characters of a reason that are kept


class Journal:
    """The log of events; also prints on stderr which test begins, to attribute other output."""

    def __init__(self, path: Path) -> None:
        self.file: IO[str] = path.open("a", encoding="utf-8")
        self.began = 0.0

    def write(self, **row: object) -> None:
        """Writes one row, flushed to disk."""
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def start(self, name: str) -> None:
        """A test begins."""
        sys.stdout.flush()
        sys.stderr.write(f"\n@@ {name}\n")
        sys.stderr.flush()
        self.began = time.monotonic()
        self.write(event="start", id=name)

    def end(self, name: str, verdict: str, text: str = "") -> None:
        """A test ended; the whole text goes to stderr, its end to the row."""
        if verdict in ("fail", "error"):
            sys.stderr.write(text + "\n")
        sys.stdout.flush()
        sys.stderr.flush()
        seconds = round(time.monotonic() - self.began, 2)
        self.write(event="end", id=name, verdict=verdict, seconds=seconds, text=text[-_TEXT:])


class Result(unittest.TestResult):
    """Writes one row per test; a test with failing subtests fails once."""

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self.journal = journal
        self.row: tuple[str, str] | None = None

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.row = None
        self.journal.start(test.id())

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.journal.end(test.id(), *(self.row or ("pass", "")))

    def addError(self, test: object, err: Any) -> None:
        text = "".join(traceback.format_exception(*err))
        if not isinstance(test, unittest.TestCase):  # a class or module that cannot be set up
            self.journal.start(str(test))
            self.journal.end(str(test), "error", text)
        elif type(err[1]).__name__ == "Skipped":  # pytest.skip inside unittest
            self.row = ("skip", str(err[1]))
        else:
            self.row = ("error", text)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.row = ("fail", "".join(traceback.format_exception(*err)))

    def addSkip(self, test: object, reason: str) -> None:
        if not isinstance(test, unittest.TestCase):
            self.journal.start(str(test))
            self.journal.end(str(test), "skip", reason)
        self.row = ("skip", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.row = ("xfail", "")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.row = ("fail", "unexpected success")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            verdict = "fail" if issubclass(err[0], test.failureException) else "error"
            text = "".join(traceback.format_exception(*err))
            self.row = (verdict, f"{subtest}\n{text}")


def cases(suite: unittest.TestSuite | unittest.TestCase) -> Iterator[unittest.TestCase]:
    """The tests of a suite, in order."""
    if isinstance(suite, unittest.TestSuite):
        for inner in suite:
            yield from cases(inner)
    else:
        yield suite


def run_unittest(
    name: str, journal: Journal, wanted: Callable[[str], bool], list_only: bool
) -> None:
    """All wanted tests of a module; one that cannot be imported is one row."""
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName(name)
    except BaseException as error:  # pytest's Skipped is not an Exception
        journal.start(name)
        skipped = type(error).__name__ == "Skipped"
        journal.end(name, "skip" if skipped else "error", traceback.format_exc())
        return
    found = [test for test in cases(suite) if wanted(test.id())]
    if list_only:
        for test in found:
            journal.write(event="name", id=test.id())
    else:
        unittest.TestSuite(found).run(Result(journal))


def sample(names: list[str]) -> set[str]:
    """The first A + B * n of a file's tests in an order given by a seed: ``A,B,SEED`` is the
    environment's ``PYTHON_CLIENTS_SAMPLE``; all without it."""
    asked = os.environ.get("PYTHON_CLIENTS_SAMPLE")
    if not asked:
        return set(names)
    first, share, seed = asked.split(",")
    count = int(float(first) + float(share) * len(names))
    return set(sorted(names, key=lambda n: blake2b((seed + n).encode()).digest())[:count])


def run_pytest(
    name: str,
    journal: Journal,
    wanted: Callable[[str], bool],
    list_only: bool,
    options: list[str],
) -> None:
    """All wanted tests of a file; one that cannot be collected is one row."""
    import pytest

    class Plugin:
        """Rows by pytest's own hooks."""

        def __init__(self) -> None:
            self.row: tuple[str, str] | None = None

        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            chosen = sample([item.nodeid for item in items])
            items[:] = [item for item in items if item.nodeid in chosen and wanted(item.nodeid)]

        def pytest_collection_finish(self, session: Any) -> None:
            if list_only:  # what -m and -k leave
                for item in session.items:
                    journal.write(event="name", id=item.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if not report.passed:
                where = report.nodeid or name
                journal.start(where)
                journal.end(where, "skip" if report.skipped else "error", str(report.longrepr))

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            self.row = None
            journal.start(nodeid)

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.passed or self.row:
                return
            if hasattr(report, "wasxfail"):
                self.row = ("xfail", "")
            elif report.skipped:
                self.row = ("skip", str(report.longrepr))
            else:
                self.row = ("fail" if report.when == "call" else "error", str(report.longrepr))

        def pytest_runtest_logfinish(self, nodeid: str) -> None:
            journal.end(nodeid, *(self.row or ("pass", "")))

    options = [*options, "--collect-only"] if list_only else options
    pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", *options, name], plugins=[Plugin()])


def main() -> None:
    """The command of the module's description."""
    arguments = sys.argv[1:]
    options: list[str] = []
    if "--" in arguments:
        cut = arguments.index("--")
        arguments, options = arguments[:cut], arguments[cut + 1 :]
    kind, name, results = arguments[:3]
    list_only = kind.startswith("list-")
    listed = Path(arguments[3]).read_text("utf-8").splitlines() if len(arguments) > 3 else []
    only = bool(listed) and listed[0] == "only"
    names = set(listed[1:] if only else listed)
    journal = Journal(Path(results))

    def wanted(test: str) -> bool:
        return (test in names) == only

    if kind.endswith("unittest"):
        run_unittest(name, journal, wanted, list_only)
    else:
        run_pytest(name, journal, wanted, list_only, options)
    journal.write(event="finished", id=name)


if __name__ == "__main__":
    main()

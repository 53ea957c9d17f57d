"""Another package's tests: each has a verdict, whatever becomes of its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[3] / "tools" / "clients" / "python_clients.py"

TESTS = """
import os, time, unittest

class Tests(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): self.assertEqual(1, 2)
    def test_c(self): os.abort()
    def test_d(self): time.sleep(600)
    def test_e(self): self.skipTest("why")
    @unittest.expectedFailure
    def test_f(self): raise OSError
    def test_g(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    def test_h(self): raise OSError("no")
"""
WANTED = dict(zip("abcdefgh", "pass fail crash timeout skip xfail fail error".split(), strict=True))


def _tool(tmp_path: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(TOOL), *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_a_verdict_for_each(tmp_path: Path) -> None:
    package = tmp_path / "suite"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "test_one.py").write_text(TESTS)
    (package / "test_two.py").write_text("import nothing_of_this_name\n")
    results = tmp_path / "results.jsonl"
    run = ("run", str(results), "--package", "suite", "--direct", "--timeout", "2")
    _tool(tmp_path, *run)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    rows = {row["id"].rpartition(".")[2]: row["verdict"] for row in lines if "id" in row}
    assert {f"test_{key}": verdict for key, verdict in WANTED.items()}.items() <= rows.items()
    assert rows["test_two"] == "error"
    before = results.read_text()
    _tool(tmp_path, *run)  # nothing is run again
    assert results.read_text() == before
    table = _tool(tmp_path, "table", str(results))
    assert "| **all** | 8 | 2 (25.0 %) |" in table
    assert "| suite.test_one.Tests.test_d | timeout | 2 s |" in table


def test_groups_of_tests_and_the_same_verdicts(tmp_path: Path) -> None:
    """Three tests a process, in an order given by a seed; a file that cannot be imported, too."""
    package = tmp_path / "suite"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "test_one.py").write_text(TESTS)
    (package / "test_two.py").write_text("import nothing_of_this_name\n")
    results = tmp_path / "results.jsonl"
    run = ("run", str(results), "--package", "suite", "--direct", "--timeout", "2", "--groups", "3")
    _tool(tmp_path, *run)
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    verdicts = {row["id"].rpartition(".")[2]: row["verdict"] for row in rows if "id" in row}
    wanted = {f"test_{key}": verdict for key, verdict in WANTED.items()}
    assert verdicts == {**wanted, "test_two": "error"}
    assert len(rows) == len(verdicts) + 2  # each test once; the files are finished
    before = results.read_text()
    _tool(tmp_path, *run)
    assert results.read_text() == before


def test_a_limit_of_the_whole_run_leaves_no_verdict(tmp_path: Path) -> None:
    """A test that the limit interrupts is not run, rather than failed."""
    package = tmp_path / "suite"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "test_one.py").write_text(TESTS)
    results = tmp_path / "results.jsonl"
    _tool(tmp_path, "run", str(results), "--package", "suite", "--direct", "--limit", "4")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    verdicts = {row["id"].rpartition(".")[2]: row["verdict"] for row in rows if "id" in row}
    wanted = {f"test_{key}": verdict for key, verdict in WANTED.items() if key < "d"}
    assert verdicts.items() <= wanted.items()
    assert not any("finished" in row for row in rows)


def test_pytest_files_are_listed_as_their_marks_leave_them(tmp_path: Path) -> None:
    """``--option`` holds for the list, too."""
    file = tmp_path / "test_marks.py"
    file.write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_many(n): assert n != 2\n"
        "@pytest.mark.slow\n"
        "def test_slow(): assert False\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    results = tmp_path / "results.jsonl"
    _tool(
        tmp_path, "run", str(results), "--files", str(file), "--direct", "--groups", "3",
        "--option=-m", "--option=not slow",
    )  # fmt: skip
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    verdicts = {row["id"].rpartition("::")[2]: row["verdict"] for row in rows if "id" in row}
    assert verdicts == {f"test_many[{n}]": "fail" if n == 2 else "pass" for n in range(4)}

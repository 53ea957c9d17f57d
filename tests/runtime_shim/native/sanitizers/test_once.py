"""Builds that parallel processes of pytest share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .once import RUN, once

ROOT = Path(__file__).resolve().parents[4]
# The first to come waits a little: without the lock the other would be seen in between.
WORKER = """
import sys, time
from pathlib import Path
from tests.runtime_shim.native.sanitizers.once import once
log = Path(sys.argv[1], "log")
def build():
    with log.open("a") as out:
        print("begin", file=out, flush=True)
        time.sleep(0.3)
        print("end", file=out, flush=True)
once(Path(sys.argv[1]), "asan", build)
assert "end" in log.read_text()  # another may have begun since
"""


def _two(folder: Path, *runs: str) -> list[str]:
    """What is logged by two processes that start at once, of these runs of pytest."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, folder], cwd=ROOT, env={**os.environ, RUN: run}
        )
        for run in runs
    ]
    assert [process.wait(60) for process in started] == [0, 0]
    return (folder / "log").read_text().split()


def test_one_process_of_a_run_builds(tmp_path: Path) -> None:
    assert _two(tmp_path, "a", "a") == ["begin", "end"]


@pytest.mark.parametrize("runs", [("a", "b"), ("", "")])
def test_others_build_one_after_the_other(tmp_path: Path, runs: tuple[str, str]) -> None:
    assert _two(tmp_path, *runs) == ["begin", "end"] * 2


def test_a_build_that_fails_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN, "a")
    made: list[int] = []

    def broken() -> None:
        made.append(0)
        raise subprocess.CalledProcessError(1, "cmake")

    with pytest.raises(subprocess.CalledProcessError):
        once(tmp_path, "asan", broken)
    once(tmp_path, "asan", lambda: made.append(1))
    once(tmp_path, "asan", lambda: made.append(2))
    assert made == [0, 1]

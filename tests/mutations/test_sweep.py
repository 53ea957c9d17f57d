"""The sweep over all commands (sweep.py): a few seeds, and that it goes on where it stopped."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from . import chain

ROOT = Path(__file__).resolve().parents[2]


def sweep(out: Path, *options: str, seconds: float) -> dict[str, Any]:
    """What the sweep says of all that it has done in ``out``."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutations.sweep", str(out), "--workers", "2", *options],
        capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads((out / "summary.json").read_text())
    assert told["peak_mib"] < 2048
    assert not told["faults"], "\n".join(told["first_faults"])
    return told


def test_a_few(tmp_path: Path) -> None:
    """Seeds of every kind of file; a second call does only what is left."""
    assert sweep(tmp_path, "--count=60", seconds=600)["cases"] == 60
    before = (tmp_path / "chunks.jsonl").read_text()
    told = sweep(tmp_path, "--count=60", seconds=600)
    assert told["cases"] == 60
    assert (tmp_path / "chunks.jsonl").read_text() == before
    assert len({end.split()[0] for end in told["ends"]}) > 4


@pytest.mark.sweep
def test_many(tmp_path: Path) -> None:
    """A hundred thousand."""
    sweep(tmp_path, "--first=500000", "--count=100000", seconds=7200)


@pytest.mark.parametrize(
    ("seed", "end"),
    [
        (1007747, "file interpret 2"),  # 32 GiB of shared memory, declared
        (5012905, "code diff 3"),  # a pair that begins at R254
        (5122946, "code interpret"),  # a constant at a negative offset
        (5151964, "text asm 2"),  # a handle UR$
    ],
)
def test_a_seed_that_was_a_fault(tmp_path: Path, seed: int, end: str) -> None:
    told = sweep(tmp_path, f"--first={seed}", "--count=1", seconds=600)
    assert told["faults"] == 0
    (found,) = told["ends"]
    assert found.startswith(end)


def _busy() -> None:
    with chain.limited():
        while True:
            pass


def test_the_limit_is_of_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases on a busy machine were reported as too slow."""
    before = {number: signal.getsignal(number) for number in (signal.SIGPROF, signal.SIGALRM)}
    monkeypatch.setattr(chain, "TIME_LIMIT_S", 0.1)
    chain.handle_alarms()
    try:
        with chain.limited():
            time.sleep(0.3)
        with pytest.raises(chain.TooLongError):
            _busy()
        monkeypatch.setattr(chain, "PATIENCE_S", 0.1)
        with pytest.raises(chain.TooLongError), chain.limited():
            time.sleep(60)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

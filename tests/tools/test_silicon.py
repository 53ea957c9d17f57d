"""Shared by the comparisons with a GPU: processes that fault or hang, and the table at the end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.silicon.report import print_table
from tools.silicon.supervised import supervised

FAULTS, HANGS = 2, 5


def _worker(numbers: Sequence[int], out: str) -> None:
    with Path(out).open("a") as lines:

        def put(n: int, verdict: str) -> None:
            print(json.dumps({"n": n, "verdict": verdict}), file=lines, flush=True)

        for n in numbers:
            put(n, "hung")
            if n == FAULTS:
                put(n, "failed")
                os._exit(1)
            if n == HANGS:
                time.sleep(60)
            put(n, "equal")
        print('{"n": 0, "verd', end="", file=lines)  # cut off


def test_supervised(tmp_path: Path) -> None:
    """After a fault or a hang a new process continues."""
    shares = [range(p, 8, 2) for p in (0, 1)]
    found = supervised(_worker, shares, tmp_path / "new", 30, patience=0.3)
    want = dict.fromkeys(range(8), "equal") | {FAULTS: "failed", HANGS: "hung"}
    assert [line["n"] for line in found] == list(range(8))
    assert {line["n"]: line["verdict"] for line in found} == want


def test_out_of_time(tmp_path: Path) -> None:
    found = supervised(_worker, [[HANGS, 6]], tmp_path, 0.5)
    assert [line["verdict"] for line in found] == ["hung", "late"]


def test_table(capsys: pytest.CaptureFixture[str]) -> None:
    total = print_table([("SHF", "equal"), ("IADD", "differ"), ("SHF", "equal")],
                        ("equal", "differ"))  # fmt: skip
    assert total == {"equal": 2, "differ": 1}
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [["equal", "differ"], ["IADD", "0", "1"], ["SHF", "2", "0"], ["all", "2", "1"]]

"""A job hangs by what it uses of a processor, not by the clock alone."""

from __future__ import annotations

import socket
import time

import pytest

from sassxlate.runtime_shim.service import jobs, workers

LIMIT = 120.0


@pytest.mark.parametrize(
    ("passed", "used", "overdue"),
    [
        (LIMIT - 1, LIMIT - 1, False),
        (LIMIT + 1, 0.0, True),  # waits for nothing that comes
        (LIMIT + 1, LIMIT, True),  # a loop
        (LIMIT * 5, LIMIT / 3, False),  # one of many on a busy machine
        (LIMIT * 20, LIMIT, True),
    ],
)
def test_overdue(
    monkeypatch: pytest.MonkeyPatch, passed: float, used: float, overdue: bool
) -> None:
    spent = [3.0]

    def processor_time(_: int) -> float:
        return spent[0]

    monkeypatch.setattr(workers, "processor_time", processor_time)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        worker = workers.Worker(1, ours)
        assert not worker.overdue(LIMIT)
        worker.give(jobs.Job({}, []))
        spent[0] += used
        assert worker.job is not None
        worker.job.started = time.monotonic() - passed
        assert worker.overdue(LIMIT) is overdue

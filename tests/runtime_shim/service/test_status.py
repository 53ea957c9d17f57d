"""`sassxlate service status`: what runs, who waits for it, and how it reads."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.service import wire
from sassxlate.runtime_shim.service.status import text

from .conftest import Running
from .test_service import loaded

pytestmark = pytest.mark.usefixtures("valid_documents")

Start = Callable[..., Running]


def _until(running: Running, good: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while True:
        answer: dict[str, Any] = running.call(op="status")
        if good(answer):
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.01)


def test_running_and_queued(start: Start, image: Path) -> None:
    """One worker: the first kernel runs, the second is queued; both have this process waiting."""
    running = start(workers=1)
    key = loaded(running, image)
    threads = [
        threading.Thread(
            target=running.call, kwargs={"op": "translate", "module": key, "kernel": name}
        )
        for name in ("slow", "slow2")
    ]
    for thread in threads:
        thread.start()
    status = _until(running, lambda answer: len(answer["jobs"]) == 2)
    for thread in threads:
        thread.join()
    assert (status["cores"], status["workers"], status["queued"]) == (1, 1, 1)
    first, second = status["jobs"]
    assert (first["state"], second["state"]) == ("running", "queued")
    assert {first["kernel"], second["kernel"]} == {"slow", "slow2"}
    assert first["memory"] > 1 << 20
    assert status["memory"] >= first["memory"]
    for job in (first, second):
        assert (job["op"], job["priority"], job["tier"]) == ("translate", "wait", None)
        (waiter,) = job["waiting"]
        assert waiter["pid"] == os.getpid()
        assert waiter["program"]
        assert 0 <= waiter["seconds"] < 20
    idle = _until(running, lambda answer: not answer["jobs"])
    assert idle["workers"] == 1
    lines = text(status)
    assert lines[0].startswith(f"service {status['pid']}: gfx1100, up ")
    assert "1 running, 0 paused, 1 queued, 1 cores" in lines[0]
    assert lines[1].startswith("  running wait     translate           slow")
    assert f"({os.getpid()}) waits for" in lines[1]
    assert lines[2].startswith("  queued  wait     translate           slow")


def test_background_and_waits(start: Start, image: Path) -> None:
    """Better code for what runs already is not a wait, until an application waits for it."""
    running = start(workers=1)
    key = loaded(running, image)
    request = {"op": "compile", "code_object": str(image), "kernel": "k", "background": True}
    sockets: list[socket.socket] = []

    def ask(message: dict[str, Any]) -> None:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(running.socket))
        connection.sendall(wire.encode(message))
        sockets.append(connection)

    try:
        ask({"op": "translate", "module": key, "kernel": "slow"})
        ask(request)
        status = _until(running, lambda answer: answer["queued"] == 1)
        (job,) = [job for job in status["jobs"] if job["state"] == "queued"]
        assert (job["priority"], job["tier"]) == ("better", "llvm")
        ask({**request, "background": False})
        status = _until(running, lambda a: any(len(job["waiting"]) == 2 for job in a["jobs"]))
        (job,) = [job for job in status["jobs"] if job["op"] == "compile"]
        assert job["priority"] == "wait"
        for connection in sockets:
            connection.settimeout(20)
            answer = wire.receive(connection)
            assert answer is not None
            assert answer["ok"], answer
    finally:
        for connection in sockets:
            connection.close()


def test_who_is_gone_waits_no_more(start: Start, image: Path) -> None:
    """What an application that ended had queued is forgotten."""
    running = start(workers=1)
    key = loaded(running, image)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(running.socket))
        for name in ("slow", "slow2"):
            connection.sendall(wire.encode({"op": "translate", "module": key, "kernel": name}))
        _until(running, lambda answer: len(answer["jobs"]) == 2)
    status = _until(running, lambda answer: len(answer["jobs"]) < 2)
    assert [job["kernel"] for job in status["jobs"]] == ["slow"]
    assert [job["priority"] for job in status["jobs"]] == ["guess"]
    _until(running, lambda answer: not answer["jobs"])
    stem = f"{key}-*"
    assert len(list((running.cache / "kernel" / "tag").glob(f"{stem}.hsaco"))) == 1


def test_command(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text and JSON, of the services that there are."""
    runner = CliRunner()
    monkeypatch.setattr(paths, "SOCKET_PATH_MAX", 4096)
    running = start(workers=3)
    monkeypatch.setenv("SASSXLATE_SOCKET", str(running.socket))
    done = runner.invoke(cli, ["service", "status", "--format", "json"])
    assert done.exit_code == 0, done.output
    (one,) = json.loads(done.stdout)["services"]
    assert (one["pid"], one["cores"], one["jobs"]) == (running.process.pid, 3, [])
    done = runner.invoke(cli, ["service", "status"])
    assert done.stdout.startswith(f"service {running.process.pid}: gfx1100, up ")
    assert runner.invoke(cli, ["service", "stop"]).exit_code == 0
    running.process.join(60)
    assert not running.process.is_alive()
    running.socket.unlink(missing_ok=True)
    done = runner.invoke(cli, ["service", "status"])
    assert (done.exit_code, done.stdout) == (1, "no service runs\n")

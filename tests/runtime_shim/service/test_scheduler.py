"""What an application waits for comes first; a guess never keeps it from a processor."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sassxlate.runtime_shim.service import workers
from sassxlate.runtime_shim.service.jobs import Answer, Job, Priority, identity
from sassxlate.runtime_shim.service.scheduler import Scheduler, default_width
from sassxlate.runtime_shim.service.workers import Worker

LIMIT_S = 120.0


class Sleeps:
    """A worker's job that takes as long as its request says, once there is a file."""

    def run(self, request: Mapping[str, Any], /) -> Answer:
        while not os.path.exists(request["gate"]):
            time.sleep(0.01)
        time.sleep(request["sleep"])
        return {"ok": True}


class Bench:
    """A scheduler of sleeping jobs, and the order in which they ended; none ends before `open`."""

    def __init__(self, width: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.gate = Path(self.folder.name, "gate")
        self.ended: list[str] = []
        self.selector = selectors.DefaultSelector()
        self.lost: list[int] = []
        self.scheduler = Scheduler(
            Sleeps(),
            self.selector,
            width,
            LIMIT_S,
            finished=lambda job, _answer: self.ended.append(job.request["kernel"]),
            lost=self.lost.append,
            held=tuple,
        )

    def add(self, name: str, priority: Priority, sleep: float = 0.2) -> Job:
        request = {"op": "translate", "kernel": name, "sleep": sleep, "gate": str(self.gate)}
        job = Job(request, [], priority)
        self.scheduler.submit(job)
        self.scheduler.dispatch()
        return job

    def open(self) -> None:
        """Let jobs end."""
        self.gate.touch()

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not done():
            assert time.monotonic() < deadline, (self.ended, self.states())
            for key, events in self.selector.select(0.05):
                key.data(events)

    def worker(self, name: str) -> Worker:
        workers = self.scheduler.workers
        return next(w for w in workers if w.job is not None and w.job.request["kernel"] == name)

    def states(self) -> dict[str, str]:
        """The process state of each job under way, by its name."""
        found: dict[str, str] = {}
        for worker in self.scheduler.workers:
            if worker.job is not None:
                text = Path(f"/proc/{worker.pid}/stat").read_text()
                found[worker.job.request["kernel"]] = text.rpartition(")")[2].split()[0]
        return found

    def stopped(self, *names: str) -> bool:
        """Whether these are stopped, and no others."""
        return {n for n, s in self.states().items() if s == "T"} == set(names)


@pytest.fixture
def bench() -> Iterator[Callable[[int], Bench]]:
    made: list[Bench] = []

    def make(width: int) -> Bench:
        made.append(Bench(width))
        return made[-1]

    yield make
    for one in made:
        one.scheduler.end()
        one.selector.close()
        one.folder.cleanup()


def test_a_guess_stops_for_a_wait(bench: Callable[[int], Bench]) -> None:
    """On two cores, a guess and a wait: for a second wait the guess is stopped at once, and goes
    on where it was when there is room."""
    two = bench(2)
    two.add("guess", Priority.GUESS, 1.0)
    guess = two.worker("guess").pid
    two.add("first", Priority.WAIT, 0.6)
    two.add("second", Priority.WAIT, 0.6)
    two.until(lambda: two.stopped("guess"))
    assert len(two.scheduler.running()) == 2
    two.open()
    two.until(lambda: len(two.ended) == 3)
    assert two.ended[-1] == "guess"
    assert two.scheduler.counts["paused"] == 1
    assert guess not in two.lost  # the same process has finished it


def test_the_least_urgent_stops_first(bench: Callable[[int], Bench]) -> None:
    """Of a guess, a preparation and better code: in that order, and of two guesses the youngest."""
    four = bench(4)
    for name, priority in (
        ("better", Priority.BETTER), ("prepare", Priority.PREPARE),
        ("old", Priority.GUESS), ("young", Priority.GUESS),
    ):  # fmt: skip
        four.add(name, priority, 600.0)
    stopped: list[str] = []
    for victim in ("young", "old", "prepare", "better"):
        four.add(f"wait for {victim}", Priority.WAIT, 600.0)
        stopped.append(victim)
        four.until(lambda names=tuple(stopped): four.stopped(*names))
    four.add("one too many", Priority.WAIT)
    assert [job.request["kernel"] for job in four.scheduler.queued()] == ["one too many"]


def test_waits_come_first_in_the_queue(bench: Callable[[int], Bench]) -> None:
    two = bench(2)
    two.add("a", Priority.WAIT, 0.5)
    two.add("b", Priority.WAIT, 0.5)
    for name, priority in (
        ("guess", Priority.GUESS), ("prepare", Priority.PREPARE), ("wait", Priority.WAIT),
    ):  # fmt: skip
        two.add(name, priority, 0.3)
    two.open()
    two.until(lambda: len(two.ended) == 5)
    assert two.ended.index("wait") < two.ended.index("guess")
    assert [j.request["kernel"] for j in two.scheduler.queued()] == []


def test_a_guess_that_is_waited_for_goes_on(bench: Callable[[int], Bench]) -> None:
    """A stopped guess that an application asks for now is as urgent as its other waits."""
    three = bench(3)
    guess = three.add("guess", Priority.GUESS, 0.4)
    other = three.add("other", Priority.GUESS, 600.0)
    for number in range(3):
        three.add(f"wait {number}", Priority.WAIT, 1.0 if number else 600.0)
    three.until(lambda: three.stopped("guess", "other"))
    three.open()
    three.scheduler.promote(guess, Priority.WAIT)
    three.scheduler.dispatch()
    three.until(lambda: "guess" in three.ended)
    assert other.priority == Priority.GUESS


def test_one_core_is_not_guessed_with(bench: Callable[[int], Bench]) -> None:
    """Guesses leave a core to the application; on a single one there are none."""
    one, four = bench(1), bench(4)
    one.add("guess", Priority.GUESS)
    assert one.scheduler.running() == []
    for number in range(6):
        four.add(f"guess {number}", Priority.GUESS, 600.0)
    assert len(four.scheduler.running()) == 3


def test_too_many_stopped(bench: Callable[[int], Bench]) -> None:
    """No more workers are stopped than jobs run at a time: the next one is killed, and its job
    begins again later."""
    two = bench(2)
    for number in range(2):
        two.add(f"prepare {number}", Priority.PREPARE, 0.4)
    for number in range(2):
        two.add(f"better {number}", Priority.BETTER, 0.4)
    two.until(lambda: two.stopped("prepare 0", "prepare 1"))
    two.add("wait", Priority.WAIT, 0.1)
    assert two.scheduler.counts["preempted"] == 1
    assert len(two.lost) == 1
    two.open()
    two.until(lambda: len(two.ended) == 5)
    assert two.ended[0] == "wait"
    assert sorted(two.ended[1:]) == ["better 0", "better 1", "prepare 0", "prepare 1"]


def test_a_stopped_job_is_not_overdue(bench: Callable[[int], Bench]) -> None:
    """The time that it is stopped does not count against it."""
    two = bench(2)
    two.scheduler.job_limit_s = 0.5
    two.add("guess", Priority.GUESS, 0.3)
    for number in range(2):
        two.add(f"wait {number}", Priority.WAIT, 0.2)
    worker = two.worker("guess")
    assert worker.paused_at is not None
    assert worker.job is not None
    worker.job.started -= 100
    worker.paused_at -= 100
    two.scheduler.kill_overdue()
    assert worker in two.scheduler.workers
    two.open()
    two.until(lambda: "guess" in two.ended)
    assert worker.pid not in two.lost


def test_abandoned(bench: Callable[[int], Bench]) -> None:
    """Of what no application waits for any more, the queued is forgotten and the rest stops for
    others."""
    two = bench(2)
    running = two.add("running", Priority.WAIT, 600.0)
    two.add("other", Priority.WAIT, 600.0)
    queued = two.add("queued", Priority.WAIT)
    assert two.scheduler.abandon(queued)
    assert not two.scheduler.abandon(running)
    two.add("wait", Priority.WAIT, 0.1)
    two.open()
    two.until(lambda: "wait" in two.ended)
    assert two.ended == ["wait"]


def test_a_lost_worker_is_replaced(bench: Callable[[int], Bench]) -> None:
    two = bench(2)
    two.add("killed", Priority.WAIT, 600.0)
    os.kill(two.worker("killed").pid, signal.SIGKILL)
    two.until(lambda: two.ended == ["killed"])
    two.add("next", Priority.WAIT, 0.0)
    two.open()
    two.until(lambda: two.ended == ["killed", "next"])


_KILLED = """
import os, selectors, signal, sys, time
sys.path.insert(0, {here!r})
from sassxlate.runtime_shim.service import workers
from test_scheduler import Bench, Priority
known = workers.die_with_parent
def late(parent):
    time.sleep({late})
    known(parent)
workers.die_with_parent = late
two = Bench(2)
two.add("guess", Priority.GUESS, 60.0)
for name in "ab":
    two.add(name, Priority.WAIT, 60.0)
two.until(lambda: two.stopped("guess"))
print(*(w.pid for w in two.scheduler.workers), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("late", [0.0, 1.0])
def test_no_stopped_worker_stays(late: float) -> None:
    """A service that is killed leaves no process, stopped or not, nor one that is to be stopped
    while it starts: that had not asked yet to end with the service, and stayed."""
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", _KILLED.format(here=here, late=late)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 3

    def alive(pid: int) -> bool:
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        return False

    deadline = time.monotonic() + 60
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def test_identity() -> None:
    """Requests that differ in what decides the answer are two."""
    base: dict[str, Any] = {"op": "compile", "code_object": "/a", "kernel": "k", "strict": False}
    assert identity(base) == identity({**base, "background": True, "made": True})
    for change in (
        {"op": "translate"}, {"code_object": "/b"}, {"kernel": "l"}, {"strict": True},
        {"counts": True}, {"turns": True}, {"compile": True}, {"module": "m"}, {"shapes": ["x"]},
    ):  # fmt: skip
        assert identity({**base, **change}) != identity(base), change


def test_width() -> None:
    """All cores that the process may use."""
    assert 1 <= default_width() <= len(os.sched_getaffinity(0))


def test_a_job_for_a_worker_that_retires_is_given_to_another(
    bench: Callable[[int], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that has grown ends after its answer; until it has, it looks idle."""

    class Grown:
        ru_maxrss = workers.RETIRE_RSS

    def slowly(_who: int) -> type[Grown]:
        time.sleep(0.2)  # the next job arrives meanwhile
        return Grown

    monkeypatch.setattr(workers.resource, "getrusage", slowly)  # of the workers: they are forked
    one = bench(1)
    answers: list[Answer] = []
    one.scheduler.finished = lambda _job, answer: answers.append(answer)
    one.open()
    for name in "abc":
        one.add(name, Priority.WAIT, 0.0)
    one.until(lambda: len(answers) == 3)
    assert answers == [{"ok": True}] * 3
    assert len(one.lost) == 2

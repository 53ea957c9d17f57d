"""Work in processes and on a local Dask cluster of two worker processes: same results, and nothing
is lost when a worker is killed."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.errors import ShimError, UsageError
from sassxlate.executors import Begin, Place, work_through
from sassxlate.runtime_shim import paths

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
KERNELS, PROGRAMS = FIXTURES / "kernels", FIXTURES / "programs"
LIMIT_S = 60
RULES = ("IABS", "--combinations", "1", "--words", "4", "--vectors", "4096")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and two workers, each a process with one thread."""
    pytest.importorskip("distributed", reason="needs the extra cluster")
    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    python = [sys.executable, "-m", "distributed.cli.dask_"]
    log = (folder / "log").open("wb")

    # Workers find this file's functions as this process does, and sassxlate where it is installed.
    (folder / "tests").symlink_to(FIXTURES.parent / "tests")
    environment = {**os.environ, "PYTHONPATH": str(folder)}

    def start(what: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [python[0], "-m", f"{python[2]}{what}", *arguments]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)

    local = ("--host", "127.0.0.1", "--no-dashboard")
    scheduler = start("scheduler", *local, "--port", "0", "--scheduler-file", str(file))
    worker = start(
        "worker", *local, "--scheduler-file", str(file), "--nthreads", "1", "--nworkers", "2"
    )
    try:
        import distributed

        end = time.monotonic() + LIMIT_S
        while not file.is_file():
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.1)
        client: Any = distributed.Client(scheduler_file=str(file), set_as_default=False)
        with client:
            client.wait_for_workers(2, timeout=LIMIT_S)
            address = str(client.scheduler.address)
        yield address
    finally:
        for process in (worker, scheduler):
            process.terminate()
        for process in (worker, scheduler):
            process.wait(LIMIT_S)
        log.close()


def _unpacks_a_number(job: Any) -> int:
    first, second = job
    return int(first) + int(second)


def _square(number: int) -> int:
    return number * number


_begun: list[int] = []


def _begin(first: int) -> None:
    _begun[:] = [first]


def _after_begin(number: int) -> int:
    return _begun[0] + number


def _dies_once(number: int, folder: str) -> int:
    """The process that gets 3 first is killed."""
    mark = Path(folder, "killed")
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def _dies_always(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def _refuses(number: int) -> int:
    raise UsageError("SX0803", f"not {number}")


PLACES = ("here", "processes", "cluster")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "cluster":
        return Place(cluster=request.getfixturevalue("cluster"))
    return Place(1 if request.param == "here" else 2)


def test_every_place_has_the_same_results(place: Place) -> None:
    found = {done.job: done.result for done in work_through(place, _square, range(40))}
    assert found == {number: number * number for number in range(40)}
    assert list(work_through(place, _square, ())) == []


def test_a_process_begins_before_its_first_job(place: Place) -> None:
    for first in (100, 200):
        begin = Begin(_begin, (first,), f"begin {first}")
        found = work_through(place, _after_begin, range(6), begin=begin)
        assert sorted(done.result or 0 for done in found) == list(range(first, first + 6))


def test_what_a_job_raises_arrives(place: Place) -> None:
    with pytest.raises(UsageError, match=r"SX0803: not \d"):
        list(work_through(place, _refuses, range(4)))


def test_no_job_is_begun_when_it_is_late(place: Place) -> None:
    assert list(work_through(place, _square, range(9), late=lambda: True)) == []
    found: list[int] = []
    for done in work_through(place, _square, range(1000), late=lambda: len(found) > 3):
        found.append(done.job)
    assert 4 <= len(found) < 100


@pytest.mark.parametrize("where", ["processes", "cluster"])
def test_a_killed_worker_loses_nothing(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    at = Place(cluster=request.getfixturevalue("cluster")) if where == "cluster" else Place(2)
    work = partial(_dies_once, folder=str(tmp_path))
    found = list(work_through(at, work, range(12)))
    assert (tmp_path / "killed").exists()
    assert sorted(done.result if done.result is not None else -1 for done in found) == [*range(12)]
    assert not any(done.lost for done in found)


def test_a_result_that_dask_loses_is_computed_again(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its executor unpacks a result as an error when the worker that had it is gone by then."""
    module = importlib.import_module("distributed.cfexecutor")
    submit = module.ClientExecutor.submit
    given: list[Any] = []
    losing = True

    def loses_the_first(self: Any, *work: Any) -> Any:
        given.append(work)
        if len(given) > 1 and not (losing and work[-1] == 3):
            return submit(self, *work)
        lost: Future[int] = Future()
        try:
            exec("typ, exc, tb = 1", {"__name__": module.__name__})
        except TypeError as error:
            lost.set_exception(error)
        return lost

    monkeypatch.setattr(module.ClientExecutor, "submit", loses_the_first)
    found = list(work_through(Place(cluster=cluster), _square, range(4)))
    assert sorted(done.result or 0 for done in found) == [0, 0, 1, 4]
    assert [done.job for done in found if done.lost] == [3]  # it was lost each time
    losing = False
    given.clear()
    found = list(work_through(Place(cluster=cluster), _square, range(4)))
    assert sorted(done.result or 0 for done in found) == [0, 1, 4, 9]
    assert len(given) == 5
    with pytest.raises(TypeError, match="unpack"):
        list(work_through(Place(cluster=cluster), _unpacks_a_number, range(2)))


def test_a_job_that_kills_every_process_is_lost() -> None:
    found = {done.job: done for done in work_through(Place(2), _dies_always, range(4))}
    assert sorted(found) == [0, 1, 2, 3]
    assert [job for job, done in sorted(found.items()) if done.lost] == [1]


def test_a_cluster_that_is_not_there() -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    for address in ("tcp://127.0.0.1:1", "tcp://127.0.0.1:99999", "nowhere", ""):
        with pytest.raises(UsageError) as error:
            list(work_through(Place(cluster=address), _square, [1]))
        assert error.value.code == "SX0886"


def _sleeps(number: int, folder: str) -> int:
    """Starts a program of its own and waits for it."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as program:
        try:
            Path(folder, f"{number}.pid").write_text(str(program.pid))
            program.wait()
        finally:
            program.kill()
    return number


def test_work_that_is_given_up_ends_what_it_started(tmp_path: Path) -> None:
    """A job that waits for a compiler gets the time to end it."""
    work = work_through(Place(2), partial(_last_sleeps, folder=str(tmp_path)), range(2))
    assert next(work).job == 0
    end = time.monotonic() + LIMIT_S
    mark = tmp_path / "1.pid"
    while not mark.is_file() or not mark.read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    work.close()  # type: ignore[attr-defined]
    state = Path(f"/proc/{mark.read_text()}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.05)


def _last_sleeps(number: int, folder: str) -> int:
    return _sleeps(number, folder) if number else number


def test_the_page_names_commands_that_take_it() -> None:
    page = (FIXTURES.parent / "docs" / "how-to" / "use-a-cluster.md").read_text("utf-8")
    lines = [line.split() for line in page.splitlines() if line.startswith("sassxlate ")]
    assert len(lines) == 3
    for _, *words in lines:
        command: Any = cli
        for word in words:
            if not isinstance(command, click.Group):
                break
            command = command.get_command(click.Context(command), word)
        assert any("--cluster" in option.opts for option in command.params), words


def _another() -> str:
    return f"process {os.getpid()}"


def test_workers_with_other_code_refuse(cluster: str) -> None:
    at = Place(cluster=cluster, identity=_another)
    with pytest.raises(UsageError) as error:
        list(work_through(at, _square, [1]))
    assert error.value.code == "SX0887"


def test_rules_are_the_same_on_a_cluster(cluster: str) -> None:
    """`verify rules` prints the same bytes in one process, in two and on two workers."""
    pytest.importorskip("z3")

    def printed(*where: str) -> str:
        result = CliRunner().invoke(cli, ["verify", "rules", *RULES, *where, "--format", "json"])
        assert result.exit_code == 0, result.output
        return result.stdout

    here = printed("-j", "1")
    assert here.count('"proved"') > 1
    assert printed("-j", "2") == here
    assert printed("--cluster", cluster) == here


def _invoked(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [*map(str, arguments), "--format", "json"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dataset_is_the_same_on_a_cluster(cluster: str, tmp_path: Path) -> None:
    """Shards bit for bit, and the digest of what they say."""
    pytest.importorskip("pyarrow", reason="shards are parquet files")
    pytest.importorskip("z3")
    sources = [KERNELS / f"sm_{arch}" / "vote_forms.cubin" for arch in (80, 90)]
    found: list[dict[str, bytes]] = []
    for name, where in (("here", ("-j", "1")), ("there", ("--cluster", cluster))):
        folder = tmp_path / name
        _invoked("dataset", "build", folder, *sources, "--no-search", *where)
        shards = [p for s in ("train", "valid", "test") for p in (folder / s).glob("*.parquet")]
        found.append({str(p.relative_to(folder)): p.read_bytes() for p in shards})
    assert found[0]
    assert found[0] == found[1]


def test_kernels_are_prepared_on_a_cluster(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache has the same files, bit for bit, and is asked again before work is given away."""
    program = PROGRAMS / "saxpy"
    if not program.is_file():
        pytest.skip("fixtures/programs/saxpy is absent")
    found: list[dict[str, bytes]] = []
    for name, where in (("here", ("-j", "1")), ("there", ("--cluster", cluster))):
        folder = tmp_path / name
        monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(folder))
        told = json.loads(_invoked("warm", program, *where))
        assert told["done"] == told["kernels"] > 0
        areas = [p for area in ("module", "kernel", "host") for p in (folder / area).rglob("*.*")]
        # A process that has compiled helper functions before does not write them (.o) again.
        kept = [p for p in areas if p.suffix != ".o"]
        found.append({str(p.relative_to(folder)): p.read_bytes() for p in kept})
    assert any(file.endswith(".sxh") for file in found[0])
    assert found[0] == found[1]
    monkeypatch.setattr("sassxlate.runtime_shim.service.early.spread._do", None)
    assert json.loads(_invoked("warm", program, "--cluster", cluster)) == told


def test_programs_run_on_a_cluster(cluster: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    if not (PROGRAMS / "saxpy").is_file():
        pytest.skip("fixtures/programs/saxpy is absent")
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    shutil.copy(PROGRAMS / "saxpy", programs / "saxpy")
    keep = tmp_path / "results"
    printed = _invoked("bench", "programs", programs, "--results", keep, "--cluster", cluster)
    (outcome,) = json.loads(printed)["programs"]
    assert (outcome["name"], outcome["verdict"]) == ("saxpy", "pass")
    assert len(keep.read_text().splitlines()) == 1

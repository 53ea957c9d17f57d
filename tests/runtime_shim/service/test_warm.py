"""Kernels prepared before they are needed: by `warm`, and from the record of an earlier run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sassxlate.cli.warm import line
from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import application, paths
from sassxlate.runtime_shim.cache import runs
from sassxlate.runtime_shim.cache.store import Cache
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service import client
from sassxlate.runtime_shim.service.early import library
from sassxlate.runtime_shim.service.early.warm import Progress, warm
from sassxlate.runtime_shim.service.engine import default_engine

PROGRAMS = Path(__file__).resolve().parents[3] / "fixtures" / "programs"
LIMIT_S = 120


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and a copy of a program with two kernels."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not (PROGRAMS / "reduction").is_file():
        pytest.skip("fixtures/programs/reduction is absent")
    shutil.copy(PROGRAMS / "reduction", tmp_path / "reduction")
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("SASSXLATE_SERVICE_IDLE", "2")
    return tmp_path


def _sassxlate(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", *map(str, arguments)],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip


def _run(place: Path) -> None:
    done = _sassxlate("run", "--device", "emulator", "--tier", "llvm", "--", place / "reduction")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("PASS\n")


def _made(place: Path) -> set[str]:
    """What a run of the program needs: manifests, translations, host code."""
    wanted = (".txt", ".launch", ".hsaco", ".sxh")
    found = [
        p for area in ("module", "kernel", "host") for p in (place / "cache" / area).rglob("*")
    ]
    return {p.name for p in found if p.suffix in wanted and not p.name.startswith(".")}


def _record(place: Path) -> Path:
    program = place / "reduction"
    key = runs.key(runs.application(program, ()))
    return runs.record_path(place / "cache", key)


def _forget(place: Path) -> None:
    """As a new version of the program: nothing of it is in the cache, and the file is another."""
    for area in ("module", "kernel", "host"):
        shutil.rmtree(place / "cache" / area)
    os.utime(place / "reduction", (1, 1))


def test_warm_is_all_that_a_run_needs(place: Path) -> None:
    """A run after `warm` starts no service: its keys are the same, and nothing is missing."""
    done = _sassxlate("warm", "-j", "2", place / "reduction")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("done: ")
    before = _made(place)
    assert len([name for name in before if name.endswith(".sxh")]) >= 2
    _run(place)
    assert _made(place) == before
    log = place / "cache" / "service.log"  # one that `run` starts in advance is asked for nothing
    assert not log.exists() or "translate" not in log.read_text()
    again = _sassxlate("warm", place / "reduction")
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_chosen_kernels(place: Path) -> None:
    """With -k the others are left for the run; a name that nothing has is an error."""
    program = place / "reduction"
    done = _sassxlate("warm", "--tier", "baseline", "-k", "*floats*", program)
    assert (done.returncode, done.stdout) == (0, "done: 1 of 1 kernels\n"), done.stderr
    launches = {name for name in _made(place) if name.endswith(".launch")}
    assert len(launches) == 1
    done = _sassxlate("warm", "--tier", "baseline", "-k", "*floats*", "-k", "sum_and_largest",
                      program)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done: 2 of 2 kernels\n"), done.stderr
    made = {name for name in _made(place) if name.endswith(".launch")}
    assert launches < made
    assert len(made) == 2
    done = _sassxlate("warm", "--tier", "baseline", "--arch", "sm_80", "-k", "*floats*", program)
    assert (done.returncode, done.stdout) == (0, "done: 1 of 1 kernels\n"), done.stderr
    assert len({name for name in _made(place) if name.endswith(".launch")}) == 3
    done = _sassxlate("warm", "-k", "nothing", program)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"sassxlate: SX0802: {program}: no kernel matches nothing\n"


def test_images_without_a_chosen_kernel() -> None:
    """They are not read as a whole; but the names in PTX are known only when it is compiled."""
    place = (PROGRAMS / "reduction").read_bytes()
    offset, size, elfs, _ = library.images(PROGRAMS / "reduction")[0]
    image, supported = place[offset : offset + size], frozenset(elfs)

    def found(wanted: str, image: bytes = image, *, ptx: bool = True) -> bool:
        return library.kernels(image, 80, supported, lambda name: wanted in name, ptx=ptx)

    assert found("floats")
    assert not found("nothing")
    assert found("nothing", b".version 8.0")
    assert not found("nothing", b".version 8.0", ptx=False)


def test_baseline_compiles_nothing(place: Path) -> None:
    done = _sassxlate("warm", "--tier", "baseline", place / "reduction")
    assert done.returncode == 0, done.stderr
    assert any(name.endswith(".hsaco") for name in _made(place))
    assert not any(name.endswith(".sxh") for name in _made(place))


def test_interrupted(place: Path) -> None:
    """Ctrl-C at the first kernel: what is done is whole, no process and no half file is left, and
    the next call does the rest."""
    cache = Cache(place / "cache", cache_tag("gfx1100"))
    engine = default_engine()

    def told(progress: Progress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    files = [place / "reduction"]
    first = warm(files, cache, engine, compiles=True, width=1, job_limit_s=60, told=told)
    assert first.interrupted
    assert 1 <= first.done < first.kernels
    assert len([n for n in _made(place) if n.endswith(".sxh")]) == first.done
    assert not list((place / "cache").rglob(".tmp-*"))
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    names = [Path(f"/proc/{child}/stat").read_text().split()[2] for child in children]
    assert "T" not in names
    told_all: list[Progress] = []
    rest = warm(files, cache, engine, compiles=True, width=2, job_limit_s=60, told=told_all.append)
    assert (rest.interrupted, rest.done, rest.faults) == (False, first.kernels, ())
    assert told_all[-1].done == told_all[-1].kernels


def test_signal(place: Path) -> None:
    """The command: status 130, a line, and no process left."""
    command = [sys.executable, "-P", "-m", "sassxlate", "warm", "-j", "1", str(place / "reduction")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        deadline = time.monotonic() + LIMIT_S
        while not _made(place) if (place / "cache").exists() else True:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 130
    assert output.startswith("interrupted: ")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_what_is_no_program(place: Path) -> None:
    """Typed errors: nothing to do, no record, no such format."""
    done = _sassxlate("warm")
    assert (done.returncode, "SX0848" in done.stderr) == (2, True)
    text = place / "text"
    text.write_text("{}")
    done = _sassxlate("warm", "--kernels-of", text)
    assert (done.returncode, "SX0917" in done.stderr) == (2, True)
    done = _sassxlate("warm", text)
    assert (done.returncode, "SX0102" in done.stderr) == (3, True)


def test_a_run_is_recorded(place: Path) -> None:
    """The kernels that were launched, of which file; `warm --kernels-of` makes these alone; a
    second run writes nothing."""
    _run(place)
    path = _record(place)
    record = runs.read(path)
    (used,) = record.used
    assert used.file == str(place / "reduction")
    assert used.cc in (75, 80, 86, 89, 90)
    assert len(used.kernels) >= 1
    assert record.compiled
    assert record.outdated(record.tag) == ()
    assert record.outdated("other") == record.used
    status = path.stat()
    _run(place)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    listed = json.loads(_sassxlate("cache", "runs", "--format", "json").stdout)["runs"]
    assert [entry["file"] for entry in listed] == [str(path)]
    launched = _made(place)
    copy = place / "RUN.json"
    shutil.copy(path, copy)
    _forget(place)
    done = _sassxlate("warm", "--kernels-of", copy)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"done: {len(used.kernels)} of {len(used.kernels)} kernels\n"
    assert launched <= _made(place) | {n for n in launched if n.endswith(".refused")}
    assert len(runs.listed(place / "cache")) == 1


def test_the_next_start_prepares(place: Path) -> None:
    """A service that starts with the record of another version of the file makes all of it
    without being asked."""
    _run(place)
    made = _made(place)
    record = runs.read(_record(place))
    socket = paths.socket_path(record.tag, place / "cache")
    if client.listening(socket):
        client.call(socket, {"op": "stop"})
    deadline = time.monotonic() + 30
    while socket.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    _forget(place)
    client.spawn(socket, place / "cache", "gfx1100", _record(place).stem)
    deadline = time.monotonic() + LIMIT_S
    while not made <= _made(place):
        assert time.monotonic() < deadline, made - _made(place)
        time.sleep(0.05)


def test_records(tmp_path: Path) -> None:
    """Several runs add up, bounded; each application has its own."""
    cache = Cache(tmp_path, "tag")
    file = tmp_path / "lib.so"
    file.write_bytes(b"x")
    name = runs.application(Path("/bin/true"), ["-c", "word"])
    assert name[1:] == ("word",)
    runs.keep(cache, name, True, [(str(file), 90, ["a", "b"])])
    runs.keep(cache, name, True, [(str(file), 90, ["c"])])
    found = runs.find(tmp_path, name)
    assert found is not None
    assert found.used[0].kernels == ("c", "a", "b")
    file.write_bytes(b"longer")
    assert [used.file for used in found.outdated("tag")] == [str(file)]
    assert runs.find(tmp_path, ("/bin/other",)) is None
    runs.keep(cache, name, True, [(str(file), 90, [f"k{i}" * 300 for i in range(9000)])])
    found = runs.find(tmp_path, name)
    assert found is not None
    assert 100 < len(found.names()) <= runs.MOST_KERNELS
    assert runs.record_path(tmp_path, runs.key(name)).stat().st_size <= runs.MOST_BYTES
    for number in range(runs.MOST_RECORDS + 5):
        runs.keep(cache, (str(number),), True, [(str(file), 90, ["a"])])
    assert len(runs.listed(tmp_path)) == runs.MOST_RECORDS
    for number in range(40):  # whatever bytes the seal has
        text: dict[str, object] = {
            "schema": 1,
            "application": [],
            "tag": str(number),
            "compiled": True,
            "used": [],
        }
        cache.write("host", "x", json.dumps(text).encode())
        copied = tmp_path / "copied"
        shutil.copy(cache.path("host", "x"), copied)
        assert runs.read(copied).used == ()
    damaged = tmp_path / "damaged"
    for data in (b"", b"[]", b"{}", b'{"schema": 2}', b'{"schema": 1, "used": 5}', b"\xff" * 100):
        damaged.write_bytes(data)
        with pytest.raises(ServiceError, match="SX0917"):
            runs.read(damaged)


def test_capabilities() -> None:
    """As `capability.cpp`: the newest code up to 9.0; newer code alone as such."""
    old, new, text = (0, 0, (75, 80), ()), (0, 0, (100,), ()), (0, 0, (), (86,))
    assert library.device_capability([old, new]) == 80
    assert library.device_capability([new]) == 80
    assert library.device_capability([text]) == 86
    assert library.device_capability([]) == 80
    assert library.capability_for(old, 80, False) == 80
    assert library.capability_for((0, 0, (86,), ()), 80, False) == 86
    assert library.capability_for((0, 0, (86,), ()), 80, True) == 80
    assert library.capability_for(new, 80, False) == 80


def test_report_rows(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text("module\tabc\t90\t/lib/x.so\nmodule\tabc\tx\t/lib/x.so\nmodule\tabc\n")
    modules = application.read_report(report).modules
    assert modules == (application.LoadedModule("abc", 90, "/lib/x.so"),)


def test_the_line() -> None:
    assert line(Progress(1, 1, 5, 10, 70.2, 65.0)) == (
        "[###############...............] 5/10 kernels, 1:10, about 1:05 left"
    )
    assert line(Progress(1, 3, 0, 10, 2.0, None)).endswith("] 0/10+ kernels, 2 s")


def test_an_engine_asked_for(place: Path) -> None:
    """The code is there for runs with the same option alone, and those translate nothing."""
    program = place / "reduction"
    done = _sassxlate("warm", "--engine", "best", "--format", "json", program)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"] == 2
    (folder,) = (place / "cache").glob("engine-*")
    assert not _made(place)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
    assert len([p for p in before if p.suffix == ".hybrid"]) == 4  # of the engine, and the cheapest
    done = _sassxlate("run", "--engine", "best", "--device", "emulator", "--tier", "llvm", "--",
                      program)  # fmt: skip
    assert done.stdout.endswith("PASS\n"), done.stdout + done.stderr
    kinds = (".hsaco", ".launch", ".sxh", ".hybrid")
    after = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.suffix in kinds}
    assert after == {p: at for p, at in before.items() if p.suffix in kinds}


def test_an_engine_is_not_for_a_cluster(place: Path) -> None:
    done = _sassxlate("warm", "--engine", "best", "--cluster", "tcp://127.0.0.1:1",
                      place / "reduction")  # fmt: skip
    assert (done.returncode, "SX0719" in done.stderr) == (2, True)

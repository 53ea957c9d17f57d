"""SIGKILL in the middle of a translation: the cache stays usable, and nothing in it is half."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import remove_abandoned
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service import client

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "fixtures" / "programs"
TIME_LIMIT_S = 120.0


def _start(program: Path, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", str(program)],
        env={
            **os.environ,
            "SASSXLATE_CACHE_DIR": str(cache),
            "SASSXLATE_SERVICE_IDLE": "10",
            "SASSXLATE_TIER": "llvm",  # files of the compiler's code are what is lost here
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _passes(program: Path, cache: Path) -> None:
    with _start(program, cache) as process:
        output, errors = process.communicate(timeout=TIME_LIMIT_S)
    assert process.returncode == 0, output + errors
    assert output.endswith("PASS\n")


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _service(cache: Path) -> int | None:
    try:
        answer = client.call(
            paths.socket_path(cache_tag("gfx1100"), cache), {"op": "ping"}, timeout=5
        )
    except ServiceError:
        return None
    return int(answer["pid"])


def _program(_cache: Path, run: int) -> int | None:
    """The application, once it is no longer Python."""
    for child in _children(run):
        try:
            if Path(os.readlink(f"/proc/{child}/exe")).parent == PROGRAMS:
                return child
        except OSError:
            pass
    return None


def _of_service(cache: Path, _run: int) -> int | None:
    return _service(cache)


def _worker(cache: Path, _run: int) -> int | None:
    service = _service(cache)
    return next(iter(_children(service)), None) if service is not None else None


VICTIMS: dict[str, Callable[[Path, int], int | None]] = {
    "program": _program,
    "service": _of_service,
    "worker": _worker,
}


def _files(cache: Path) -> dict[str, bytes]:
    """Translations by name; what tells of a run, and not of a program, is left out."""
    areas = ("module", "kernel", "host")
    found = [p for area in areas for p in (cache / area).rglob("*") if p.is_file()]
    return {str(p.relative_to(cache)): p.read_bytes() for p in found if p.suffix != ".ran"}


def _stop(cache: Path) -> None:
    """Ends the service, however it was started."""
    service = _service(cache)
    if service is None:
        return
    with contextlib.suppress(ServiceError):  # it may end by itself meanwhile
        client.call(paths.socket_path(cache_tag("gfx1100"), cache), {"op": "stop"})
    deadline = time.monotonic() + 60
    while Path(f"/proc/{service}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and the files left by an undisturbed run of it."""

    program: Path
    whole: dict[str, bytes]


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The program named by the parameter; skips where it cannot run."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    program = PROGRAMS / str(request.param)
    if not program.is_file():
        pytest.skip(f"{program} is absent")
    cache = tmp_path_factory.mktemp("whole")
    _passes(program, cache)
    files = _files(cache)
    assert files
    _stop(cache)
    return Case(program, files)


def _kill_one(case: Case, cache: Path, victim: str, delay: float) -> bool:
    """One cold run whose victim dies; whether it died before the translation was complete."""
    with _start(case.program, cache) as process:
        deadline = time.monotonic() + 60
        target = None
        while target is None and process.poll() is None and time.monotonic() < deadline:
            target = VICTIMS[victim](cache, process.pid)
        if target is not None:
            time.sleep(delay)
            with contextlib.suppress(ProcessLookupError):
                os.kill(target, signal.SIGKILL)
        early = target is not None and len(_files(cache)) < len(case.whole)
        process.communicate(timeout=TIME_LIMIT_S)
    _stop(cache)
    quick = victim == "worker"
    _check_whole(case.whole, cache, quick=quick)
    _passes(case.program, cache)
    _check_whole(case.whole, cache, complete=True, quick=quick)
    _stop(cache)
    _check_clean(cache)
    shutil.rmtree(cache)
    return early


def _check_whole(
    whole: dict[str, bytes], cache: Path, *, complete: bool = False, quick: bool = False
) -> None:
    """``quick``: a kernel whose compilation was lost may have run code that is not optimised."""
    files = {n: d for n, d in _files(cache).items() if "/.tmp-" not in n}
    if quick:
        files = {n: d for n, d in files.items() if n in whole or not n.startswith("host/")}
    for name, data in files.items():
        assert data == whole[name], name
    if complete:
        assert files.keys() == whole.keys()


def _check_clean(cache: Path) -> None:
    """Files begun by dead processes are removed at the next start of a service."""
    for path in cache.rglob("*"):
        if path.name.startswith(".tmp-") or path.parent.name == "tmp":
            os.utime(path, (0, 0))
    remove_abandoned(cache, cache_tag("gfx1100"))
    left = [p for p in cache.rglob("*") if p.name.startswith(".tmp-") or p.parent.name == "tmp"]
    assert not left


@pytest.mark.parametrize("case", ["saxpy"], indirect=True)
@pytest.mark.parametrize("victim", list(VICTIMS))
def test_killed(victim: str, case: Case, tmp_path: Path) -> None:
    """One kill in the middle."""
    _kill_one(case, tmp_path / "cache", victim, 0.05)


@pytest.mark.sweep
@pytest.mark.parametrize("case", ["reduction"], indirect=True)  # four kernels
@pytest.mark.parametrize("victim", list(VICTIMS))
def test_killed_often(victim: str, case: Case, tmp_path: Path) -> None:
    """Twenty-five kills at random moments, most of them before the last file."""
    rng = random.Random(5)
    early = sum(
        _kill_one(case, tmp_path / f"cache{i}", victim, rng.uniform(0, 0.5)) for i in range(25)
    )
    print(f"{victim}: {early} of 25 before the last file was written")
    assert early >= 5


def test_half_written_files(tmp_path: Path) -> None:
    """Those of the dead go, those of the living and the finished stay."""
    area = tmp_path / "kernel" / "tag"
    area.mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    gone = [area / f".tmp-{ended.pid}-ab12", tmp_path / "tmp" / f"image-{ended.pid}-XyZ123"]
    kept = [area / f".tmp-{os.getpid()}-ab12", area / "abc-def.launch"]
    for path in gone + kept:
        path.write_bytes(b"half")
    assert remove_abandoned(tmp_path, "tag") == 0  # young: perhaps of another container
    for path in gone:
        os.utime(path, (0, 0))
    assert remove_abandoned(tmp_path, "tag") == 2
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept)
    assert remove_abandoned(tmp_path, "tag", os.getpid()) == 1

"""If the system allows no more processes: an error or slower work, never a hang."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.service import client, scheduler, workers

from .conftest import Running
from .test_service import Start, loaded

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "fixtures" / "programs" / "saxpy"
USER = 64_417  # of whom no other process is


def test_no_process_for_a_worker(
    start: Start, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SX0913 for the caller; the service answers others, and works again afterwards."""
    here = os.getpid()
    fork = workers.fork_worker
    failures = [2]

    def limited(*args: Any) -> workers.Worker:
        if os.getpid() != here and failures[0]:
            failures[0] -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork(*args)

    monkeypatch.setattr(scheduler, "fork_worker", limited)
    running: Running = start()
    for _ in range(2):
        answer = running.call(op="module", image=str(image), cc=90)
        assert (answer["ok"], answer["code"], answer["cuda_error"]) == (False, "SX0913", 999)
        assert running.call(op="ping")["ok"]
    assert loaded(running, image)


def test_the_service_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typed error of the client's."""

    def none(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "run", none)
    with pytest.raises(ServiceError, match=r"SX0902.*temporarily unavailable"):
        client.spawn(tmp_path / "s", tmp_path / "cache", "gfx1100")


def _limited(processes: int, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """saxpy under `run`, by a user with so many processes and no privilege that lifts the limit."""
    rights = "-all,+dac_override,+dac_read_search"  # to read what is the tester's
    return subprocess.run(
        [
            *("setpriv", f"--reuid={USER}", "--clear-groups"),
            *(f"--{kind}={rights}" for kind in ("inh-caps", "ambient-caps", "bounding-set")),
            *("prlimit", f"--nproc={processes}:{processes}"),
            *(sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator"),
            *("--", f"{env['HOME']}/saxpy"),
        ],
        env=env, capture_output=True, text=True, timeout=60, check=False, cwd="/",
    )  # fmt: skip


def _alone() -> None:
    """Waits until the service has ended: it counts among the user's processes."""
    deadline = time.monotonic() + 60
    while any(_owner(p) == USER for p in Path("/proc").glob("[0-9]*")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _owner(process: Path) -> int | None:
    try:
        return process.stat().st_uid
    except OSError:
        return None


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_programs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """From one process on: the program is not started, its kernel is refused, or it passes."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not (shutil.which("setpriv") and shutil.which("prlimit") and SAXPY.is_file()):
        pytest.skip("setpriv, prlimit or fixtures/programs/saxpy is absent")
    folder = Path("/tmp") / f"sassxlate-limits-{os.getpid()}"
    folder.mkdir(0o700)
    os.chown(folder, USER, USER)
    # access(2) asks for the user alone: a clone in a folder of root's is out of reach.
    shutil.copy(SAXPY, folder / "saxpy")
    env = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "TMPDIR")}
    env |= {
        "SASSXLATE_CACHE_DIR": str(folder / "cache"),
        "SASSXLATE_SERVICE_IDLE": "1",
        "XDG_RUNTIME_DIR": str(folder),
        "HOME": str(folder),
    }
    try:
        assert _limited(64, env).returncode == 0
        _alone()
        for n in (2, 3, 4):  # all is in the cache: what fails is threads
            done = _limited(n, env)
            assert done.returncode == 0, (n, done)
            assert "PASS" in done.stdout
        # The service that one of these starts has its limit, too.
        env["SASSXLATE_CACHE_DIR"] = str(folder / "cold")
        cold = {n: _limited(n, env) for n in (1, 2, 3, 4, 5)}
        assert cold[1].returncode == 126, cold[1]
        assert "SX0702" in cold[1].stderr
        for done in (cold[2], cold[3], cold[4], cold[5]):
            assert done.returncode in (0, 3), done
            assert done.returncode == 0 or "SX09" in done.stderr, done
    finally:
        shutil.rmtree(folder)

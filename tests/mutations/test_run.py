"""Programs with damaged device code, run: success, their own FAIL or a typed refusal, no crash.

All share one service, which has to answer to the last and then still run the undamaged programs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.tag import cache_tag
from sassxlate.runtime_shim.service import client

from .chain import code_spans, fatbin_spans
from .mutate import mutated

HERE = Path(__file__).resolve().parent


PROGRAMS = HERE.parents[1] / "fixtures" / "programs"
NAMES = ("saxpy", "reduction", "collatz")
TIME_LIMIT_S = 60.0
KERNEL_LIMIT_S = 2.0  # a damaged loop may have no end

# Statuses: PASS, FAIL, refused.  A CUDA error that the program meets is its FAIL.
STATUSES = (0, 1, 3)
# A worker that crashed, hung or lost its connection, and faults of the translator's own.
FAULTS = re.compile(r"SX090[2-9]|SX0652|SX0669|SX0715|Traceback|terminate called|Assertion")
TYPED = re.compile(r"SX0\d{3}: \S")


@dataclass(frozen=True, slots=True)
class Place:
    """A cache and a folder for damaged programs; the runs use one service."""

    folder: Path

    @property
    def cache(self) -> Path:
        """The cache of all runs."""
        return self.folder / "cache"

    def run(self, program: Path) -> subprocess.CompletedProcess[str]:
        """`sassxlate run PROGRAM`; TimeoutExpired after ten seconds."""
        command = [sys.executable, "-P", "-m", "sassxlate", "run"]
        command += [f"--kernel-time-limit={KERNEL_LIMIT_S}", "--", str(program)]
        return subprocess.run(
            command,
            env={
                **os.environ,
                "SASSXLATE_CACHE_DIR": str(self.cache),
                "SASSXLATE_SERVICE_IDLE": "30",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_S,
            check=False,
        )

    def service(self) -> int | None:
        """The process id of the service, None where none listens."""
        try:
            answer = client.call(
                paths.socket_path(cache_tag("gfx1100"), self.cache), {"op": "ping"}
            )
        except ServiceError:
            return None
        return int(answer["pid"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Skips where the libraries or the programs are absent."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not all((PROGRAMS / name).is_file() for name in NAMES):
        pytest.skip("fixtures/programs is incomplete")
    return Place(tmp_path)


def judge(place: Place, program: Path, seed: int) -> tuple[str, str | None]:
    """How the damaged program ended, and what was wrong with that.

    One that is late is tried once more: other tests may have had the machine to themselves.
    """
    end, wrong = once(place, program, seed)
    return once(place, program, seed) if end == "late" else (end, wrong)


def once(place: Place, program: Path, seed: int) -> tuple[str, str | None]:
    """`judge` for one run."""
    data = program.read_bytes()
    # Instructions more often than headers, which the chain's tests have by the thousand.
    spans = (fatbin_spans if seed % 3 == 0 else code_spans)(program)
    mutant = place.folder / f"{seed}-{program.name}"
    mutant.write_bytes(mutated(data, seed, spans))
    mutant.chmod(0o755)
    started = time.monotonic()
    try:
        done = place.run(mutant)
    except subprocess.TimeoutExpired as late:
        return "late", f"no end within {TIME_LIMIT_S} s: {late.stderr!r}"
    finally:
        mutant.unlink()
    seconds = time.monotonic() - started
    said = f"status {done.returncode} after {seconds:.1f} s\n{done.stdout}{done.stderr}"
    if done.returncode not in STATUSES or FAULTS.search(done.stderr):
        return "wrong", said
    if done.returncode == 0:
        return "PASS", None if done.stdout.endswith("PASS\n") else said
    if done.returncode == 3:
        return "refused", None if TYPED.search(done.stderr) else said
    typed = TYPED.search(done.stderr)
    if typed:
        return f"FAIL {typed.group()[:6]}", None
    return "FAIL", None if "FAIL" in done.stdout + done.stderr else said


def check(place: Place, seeds: range) -> Counter[str]:
    """Runs damaged copies of the programs in turn; fails the test on any fault."""
    first = place.run(PROGRAMS / "saxpy")  # starts the service
    assert first.returncode == 0, first.stderr
    service = place.service()

    def one(seed: int) -> tuple[str, str | None]:
        return judge(place, PROGRAMS / NAMES[seed % len(NAMES)], seed)

    with ThreadPoolExecutor(max(1, min(8, len(os.sched_getaffinity(0))))) as pool:
        results = list(pool.map(one, seeds))
    wrong = [f"seed {s}: {text}" for s, (_, text) in zip(seeds, results, strict=True) if text]
    assert not wrong, f"{len(wrong)} of {len(seeds)}\n" + "\n".join(wrong[:10])
    assert place.service() == service, "the service was replaced"
    for name in NAMES:
        again = place.run(PROGRAMS / name)
        assert again.returncode == 0, f"{name} after the damaged ones: {again}"
    assert not list(place.cache.rglob(".tmp-*")), "half-written files"
    return Counter(end for end, _ in results)


def test_damaged_device_code(place: Place) -> None:
    """Ten seeds of the sweep below."""
    ends = check(place, range(10))
    assert min(ends["PASS"], ends["refused"]) > 0, ends


@pytest.mark.sweep
def test_much_damaged_device_code(place: Place) -> None:
    """Two thousand seeds; takes a quarter of an hour on two cores."""
    print(check(place, range(10, 2010)))

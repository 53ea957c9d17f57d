"""Real programs under adversity: killed services, tiny, damaged and vanishing caches."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import unseal
from sassxlate.runtime_shim.service import client

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "fixtures" / "programs" / "saxpy"
Done = subprocess.CompletedProcess


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache of the test's own; skips where the libraries or the program are absent."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not SAXPY.is_file():
        pytest.skip("fixtures/programs/saxpy is absent")
    return tmp_path / "cache"


def run(program: Path, cache: Path, **env: str) -> Done[str]:
    """`sassxlate run PROGRAM`; fails the test if it takes over ten seconds (thirty if busy)."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--", str(program)],
        env={
            **os.environ,
            "SASSXLATE_CACHE_DIR": str(cache),
            "SASSXLATE_SERVICE_IDLE": "10",
            **env,
        },
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )


def test_programs_that_start_together(cache: Path) -> None:
    """Six cold starts at once share one service and agree."""
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(run, [SAXPY] * 6, [cache] * 6))
    for done in results:
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout == results[0].stdout
        assert done.stderr == ""


def test_killed_service(cache: Path) -> None:
    """A service that dies is replaced; one that hangs onto its socket's file is no obstacle."""
    from sassxlate.runtime_shim.cache.tag import cache_tag

    assert run(SAXPY, cache).returncode == 0
    socket = paths.socket_path(cache_tag("gfx1100"), cache)
    try:
        answer = client.call(socket, {"op": "ping"})
    except ServiceError:
        pytest.skip("the service has ended already")
    os.kill(int(answer["pid"]), 9)
    time.sleep(0.1)
    shutil.rmtree(cache)
    done = run(SAXPY, cache)
    assert done.returncode == 0, done.stdout + done.stderr


def test_warm_start_needs_no_service(cache: Path) -> None:
    """With a warm cache nothing is started: there need not even be a Python."""
    assert run(SAXPY, cache).returncode == 0
    from sassxlate.runtime_shim.cache.tag import cache_tag

    socket = paths.socket_path(cache_tag("gfx1100"), cache)
    client.call(socket, {"op": "stop"})
    while socket.exists():
        time.sleep(0.01)
    assert run(SAXPY, cache).returncode == 0
    assert not client.listening(socket)


@pytest.mark.parametrize("size", ["1", "20k"])
def test_tiny_cache(cache: Path, size: str) -> None:
    """A cap below one program's files: everything is made again, and right."""
    for _ in range(2):
        done = run(SAXPY, cache, SASSXLATE_CACHE_SIZE=size)
        assert done.returncode == 0, done.stdout + done.stderr


def test_damaged_cache(cache: Path) -> None:
    """Files cut short, full of rubbish or with one bit changed are made again, never believed."""
    assert run(SAXPY, cache, SASSXLATE_TIER="llvm").returncode == 0
    rng, seen = random.Random(9), set[str]()
    for path in sorted(cache.rglob("*")):
        if path.is_file() and path.suffix in (".txt", ".launch", ".hsaco", ".sxh"):
            good = path.read_bytes()
            flipped = bytearray(good)
            flipped[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
            bad = rng.choice((b"", good[: len(good) // 2], b"rubbish\n" * 20))
            for damaged in (bytes(flipped), bad):
                path.write_bytes(damaged)
                done = run(SAXPY, cache, SASSXLATE_TIER="llvm")
                assert "PASS" in done.stdout, f"{path}: {done}"
                assert path.read_bytes() == good, path
            seen.add(path.suffix)
    assert seen == {".txt", ".launch", ".hsaco", ".sxh"}


def test_all_damage_to_host_code(cache: Path) -> None:
    """Sixty host images with a few bytes changed: each is made again before it runs."""
    assert run(SAXPY, cache, SASSXLATE_TIER="llvm").returncode == 0
    (path,) = cache.glob("host/*/*.sxh")
    content = unseal(path.name, path.read_bytes())
    assert content is not None
    rng = random.Random(60)
    for _ in range(60):
        data = bytearray(path.read_bytes())
        for _ in range(rng.choice((1, 1, 4))):
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        assert unseal(path.name, bytes(data)) is None
    data = bytearray(path.read_bytes())
    data[4096] ^= 0xFF  # the code's first byte
    path.write_bytes(data)
    done = run(SAXPY, cache, SASSXLATE_TIER="llvm")
    assert "PASS" in done.stdout, done
    assert unseal(path.name, path.read_bytes()) == content

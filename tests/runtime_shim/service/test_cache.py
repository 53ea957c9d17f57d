"""The cache: whole files, use marks, eviction, cleaning; safe beside other processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from sassxlate.errors import ServiceError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache import store as cache
from sassxlate.runtime_shim.cache import tag


def aged(path: Path, seconds: float) -> None:
    """Make a file look unused for ``seconds``."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_write_and_read(tmp_path: Path) -> None:
    """Written content is read back; nothing else is in the directory."""
    store = cache.Cache(tmp_path, "t")
    path = store.write("kernel", "a.hsaco", b"code")
    assert store.read("kernel", "a.hsaco") == b"code"
    assert store.read("kernel", "b.hsaco") is None
    assert [p.name for p in path.parent.iterdir()] == ["a.hsaco"]


def test_eviction_takes_the_longest_unused(tmp_path: Path) -> None:
    """Above the cap the least recently read files are removed, down to four fifths of the cap."""
    store = cache.Cache(tmp_path, "t", cap=1 << 40)
    for n in range(10):
        aged(store.write("host", f"{n}.sxh", b"x" * 68), 10000 * (10 - n))
    assert store.read("host", "0.sxh")
    assert cache.evict(tmp_path, 500) == 600
    assert sorted(p.name for p in (tmp_path / "host" / "t").iterdir()) == [
        "0.sxh", "7.sxh", "8.sxh", "9.sxh",
    ]  # fmt: skip


def test_writes_keep_under_the_cap(tmp_path: Path) -> None:
    """Writing evicts old files by itself."""
    store = cache.Cache(tmp_path, "t", cap=100_000)
    for n in range(100):
        aged(store.write("host", f"{n}.sxh", b"x" * 5_000), 100 - n / 100)
    assert sum(u.bytes for u in cache.usage(tmp_path)) <= 110_000


def test_left_over_temporaries_are_removed(tmp_path: Path) -> None:
    """A killed writer's temporary file goes, a fresh one stays."""
    directory = cache.Cache(tmp_path, "t").write("host", "a", b"a").parent
    for name, age in ((".tmp-1-a", 7200.0), (".tmp-2-b", 1.0)):
        (directory / name).write_bytes(b"half")
        aged(directory / name, age)
    cache.evict(tmp_path, 1 << 30)
    assert sorted(p.name for p in directory.iterdir()) == [".tmp-2-b", "a"]


def test_clean_leaves_what_is_not_ours(tmp_path: Path) -> None:
    """Someone's own file in the directory survives `cache clean`."""
    cache.Cache(tmp_path, "t").write("host", "a", b"abc")
    (tmp_path / "mine.txt").write_text("mine")
    assert cache.clean(tmp_path) == 3 + cache.SEAL_SIZE
    assert (tmp_path / "mine.txt").exists()
    assert sum(u.files for u in cache.usage(tmp_path)) == 0


def _hammer(root: Path, seed: int) -> None:
    store = cache.Cache(root, "t", cap=200_000)
    for n in range(150):
        name = f"{(seed * 7 + n) % 40}.bin"
        data = store.read("host", name)
        assert data is None or data == name.encode() * 1000, "a file was seen half-written"
        store.write("host", name, name.encode() * 1000)


def test_processes_beside_each_other(tmp_path: Path) -> None:
    """Four processes write, read and evict the same files: never a broken one."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_hammer, args=(tmp_path, n)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [p.exitcode for p in processes] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 2 << 30), ("4096", 4096), ("512M", 512 << 20), ("2GiB", 2 << 30), ("1 k", 1024)],
)
def test_size_cap(monkeypatch: pytest.MonkeyPatch, text: str, size: int) -> None:
    """Sizes with suffixes."""
    monkeypatch.setenv("SASSXLATE_CACHE_SIZE", text)
    assert cache.size_cap() == size


@pytest.mark.parametrize("text", ["x", "-1", "1X", "G", "1.5G"])
def test_bad_size_cap(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """An invalid size is an error with its code."""
    monkeypatch.setenv("SASSXLATE_CACHE_SIZE", text)
    with pytest.raises(ServiceError, match="SX0910"):
        cache.size_cap()


def test_cache_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    """SASSXLATE_CACHE_DIR, otherwise XDG_CACHE_HOME (if absolute), else ~/.cache."""
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.delenv("SASSXLATE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert paths.cache_dir() == Path("/home/u/.cache/sassxlate")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert paths.cache_dir() == Path("/x/sassxlate")
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", "/y")
    assert paths.cache_dir() == Path("/y")


def test_runtime_dir_must_be_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that others may write is not used."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    directory = paths.runtime_dir()
    assert directory.parent == tmp_path
    directory.chmod(0o777)
    with pytest.raises(ServiceError, match="SX0901"):
        paths.runtime_dir()


def test_tag_is_stable_and_short() -> None:
    """Two calls agree; the tag is a file name."""
    assert tag.cache_tag("gfx1100") == tag.cache_tag("gfx1100")
    assert len(tag.cache_tag("gfx1100")) == 32

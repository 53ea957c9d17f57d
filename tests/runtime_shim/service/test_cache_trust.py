"""A cache that others can write to is not used: neither what they put there runs, nor does a link
of theirs lead anywhere.  The programs run all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.errors import ServiceError, ShimError
from sassxlate.runtime_shim import application, paths, trusted
from sassxlate.runtime_shim.cache import store
from sassxlate.runtime_shim.service import client

ROOT = Path(__file__).resolve().parents[3]
SAXPY = ROOT / "fixtures" / "programs" / "saxpy"
NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
TAG = "t"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of a cache; its folders: ``root``, ``host`` and the tag."""
    return store.Cache(tmp_path / "root", TAG).write("host", "a.sxh", b"code")


def test_what_is_written_is_closed_to_others(tmp_path: Path) -> None:
    """Whatever the umask: folders are 0700 and files 0600."""
    before = os.umask(0)
    try:
        made = store.Cache(tmp_path / "deep" / "root", TAG).write("host", "a", b"code")
    finally:
        os.umask(before)
    assert store.load(made) == b"code"
    modes = [p.stat().st_mode & 0o777 for p in (made, *list(made.parents)[:4])]
    assert modes == [0o600, 0o700, 0o700, 0o700, 0o700]


def _chmod(mode: int, above: int) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        (file, *file.parents)[above].chmod(mode)

    return change


def _link(above: int) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        at = (file, *file.parents)[above]
        at.rename(at.with_name("elsewhere"))
        at.symlink_to(at.with_name("elsewhere"))

    return change


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def _give(above: int) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        os.chown((file, *file.parents)[above], NOBODY, NOBODY)

    return change


def _give_link(file: Path) -> None:
    _link(1)(file)
    os.chown(file.parent, NOBODY, NOBODY, follow_symlinks=False)


ATTACKS = {
    "file, group": (_chmod(0o620, 0), "can be written by other users (mode 0620)"),
    "file, others": (_chmod(0o602, 0), "can be written by other users (mode 0602)"),
    "tag's folder": (_chmod(0o777, 1), "can be written by other users (mode 0777)"),
    "area's folder, group": (_chmod(0o770, 2), "can be written by other users (mode 0770)"),
    "root": (_chmod(0o707, 3), "can be written by other users (mode 0707)"),
    "folder above": (_chmod(0o777, 4), "can be written by other users (mode 0777)"),
    "linked file": (_link(0), "is a link"),
    "pipe": (_pipe, "is not a regular file"),
}
FOREIGN = {
    "foreign file": (_give(0), f"belongs to user {NOBODY}"),
    "foreign folder": (_give(1), f"belongs to user {NOBODY}"),
    "foreign root": (_give(3), f"belongs to user {NOBODY}"),
    "foreign link": (_give_link, f"is a link that belongs to user {NOBODY}"),
}
ALL = [*ATTACKS, *(pytest.param(name, marks=AS_ROOT) for name in FOREIGN)]


@pytest.mark.parametrize("attack", ALL)
def test_attacks(attack: str, file: Path) -> None:
    """Nothing is read, the error names the place, and the files there are left alone."""
    change, what = {**ATTACKS, **FOREIGN}[attack]
    change(file)
    with pytest.raises(ServiceError, match="SX0912") as caught:
        trusted.read(file)
    assert what in str(caught.value)
    assert store.load(file) is None
    assert os.path.lexists(file)


@pytest.mark.parametrize("above", [1, 2, 3, 4])
def test_own_links_among_folders(file: Path, above: int) -> None:
    """`~/.cache` on another disk: a link that only its owner can change is followed."""
    _link(above)(file)
    assert store.load(file) == b"code"


def test_sticky_folders(file: Path) -> None:
    """Below one like /tmp only the owner can exchange an entry."""
    file.parents[3].chmod(0o1777)
    assert store.load(file) == b"code"


def test_links_in_a_circle(tmp_path: Path) -> None:
    """They end."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="too many links"):
        trusted.read(tmp_path / "a" / "file")
    assert not paths.usable(tmp_path / "a" / "cache")


def test_no_descriptor_stays_open(file: Path) -> None:
    """Neither of what is read nor of what is refused."""
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        assert store.load(file) == b"code"
    _chmod(0o777, 2)(file)
    assert store.load(file) is None
    assert os.listdir("/proc/self/fd") == before


def test_files_of_another_name_do_not_fit(file: Path) -> None:
    """One kernel's code under another's name is damage, too."""
    other = file.with_name("b.sxh")
    other.write_bytes(file.read_bytes())
    assert store.load(other) is None
    assert not other.exists()
    assert store.load(file) == b"code"


def test_clean_follows_no_link(tmp_path: Path) -> None:
    """`cache clean` deletes nothing outside, and nothing where others control the contents."""
    precious = tmp_path / "documents" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("years of work")
    root = tmp_path / "root"
    root.mkdir(0o700)
    (root / "host").symlink_to(precious.parent)
    assert store.clean(root) == 0
    assert precious.exists()
    root.chmod(0o777)
    with pytest.raises(ServiceError, match="SX0912"):
        store.clean(root)


# -- programs


def _environment(folder: Path) -> dict[str, str]:
    runtime = folder / "run"
    runtime.mkdir(0o700)
    kept = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "TMPDIR")}
    return kept | {
        "SASSXLATE_CACHE_DIR": str(folder / "cache"),
        "SASSXLATE_SERVICE_IDLE": "3",
        "SASSXLATE_TIER": "llvm",  # host code is what these tests put into the cache
        "SASSXLATE_PROGRESS": "0",  # a busy machine would have lines about that
        "XDG_RUNTIME_DIR": str(runtime),
    }


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which saxpy is translated; skips where it or the libraries are absent."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    if not SAXPY.is_file():
        pytest.skip("fixtures/programs/saxpy is absent")
    folder = tmp_path_factory.mktemp("warm")
    done = run(_environment(folder))
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "cache"


@pytest.fixture
def env(tmp_path: Path, warm: Path) -> dict[str, str]:
    """The environment of programs, with a runtime directory and a warm cache of the test's own."""
    shutil.copytree(warm, tmp_path / "cache")
    return _environment(tmp_path)


def _spare(env: dict[str, str], warm: Path) -> None:
    """Has the private directory warm: the program's start is all that is waited for."""
    private = Path(env["XDG_RUNTIME_DIR"]) / f"sassxlate-{os.getuid()}"
    private.mkdir(0o700)
    shutil.copytree(warm, private / "cache")


def run(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """saxpy under `run`."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator", "--", str(SAXPY)],
        env=env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def _poison(root: Path) -> None:
    """Puts host code in the cache that ends the program with status 66, whole and sealed."""
    (image,) = root.glob("host/*/*.sxh")
    content = store.unseal(image.name, image.read_bytes())
    assert content is not None
    # mov edi, 66; mov eax, 231 (exit_group); syscall
    code = bytes.fromhex("bf42000000b8e70000000f05")
    entry = 4096 + int.from_bytes(content[24:32], "little")
    image.write_bytes(store.seal(image.name, content[:entry] + code + content[entry + len(code) :]))


def test_poison_works(env: dict[str, str], tmp_path: Path) -> None:
    """Code in a trusted cache is run: otherwise the tests below would prove nothing."""
    _poison(tmp_path / "cache")
    assert run(env).returncode == 66


@pytest.mark.parametrize("place", [".", "host", "host/TAG"])
def test_run_with_a_cache_of_others(
    env: dict[str, str], warm: Path, tmp_path: Path, place: str
) -> None:
    """The program runs, without the code there; one line says why."""
    if place != ".":  # once from nothing
        _spare(env, warm)
    root = tmp_path / "cache"
    _poison(root)
    (tag,) = (p.name for p in (root / "host").iterdir())
    (root / place.replace("TAG", tag)).chmod(0o777)
    done = run(env)
    assert "PASS" in done.stdout, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    (line,) = lines
    for part in ("SX0912", "mode 0777", str(tmp_path / "run")):
        assert part in line


def test_run_with_a_file_that_others_can_write(env: dict[str, str], tmp_path: Path) -> None:
    """The service replaces it by a file of mode 0600."""
    _poison(tmp_path / "cache")
    (image,) = (tmp_path / "cache").glob("host/*/*.sxh")
    image.chmod(0o666)
    done = run(env)
    assert "PASS" in done.stdout, done
    assert image.stat().st_mode & 0o777 == 0o600


@AS_ROOT
def test_run_with_a_cache_made_by_another_user(
    env: dict[str, str], warm: Path, tmp_path: Path
) -> None:
    """As in /tmp, where anyone may have made the folder first."""
    _spare(env, warm)
    _poison(tmp_path / "cache")
    os.chown(tmp_path / "cache", NOBODY, NOBODY)
    done = run(env)
    assert "PASS" in done.stdout, done
    assert f"belongs to user {NOBODY}" in done.stderr


@pytest.mark.parametrize("place", [".", "host", "module"])
def test_libraries_alone(env: dict[str, str], tmp_path: Path, place: str) -> None:
    """Without `run` the libraries look for themselves, and start the service for another cache."""
    root = tmp_path / "cache"
    _poison(root)
    (root / place).chmod(0o777)
    alone = application.environment(
        env,
        paths.library_dir(),
        {"SASSXLATE_PYTHON": sys.executable, "SASSXLATE_PYTHONPATH": client.import_root()},
    )
    done = subprocess.run(
        [SAXPY], env=alone, capture_output=True, text=True, timeout=60, check=False
    )
    if place == "module":  # the host code is trusted, and was poisoned
        assert done.returncode == 66
    else:
        assert "PASS" in done.stdout, done
    assert done.stderr.count("SX0912") in (1, 2)  # the driver's library, the device's


def test_the_temporary_folder_of_others(env: dict[str, str], tmp_path: Path) -> None:
    """An image goes to the service by no folder in which others could exchange it."""
    bad = tmp_path / "bad"
    bad.mkdir()
    bad.chmod(0o777)
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
    done = run({**env, "TMPDIR": str(bad)})
    assert "PASS" in done.stdout, done
    assert not list(bad.iterdir())

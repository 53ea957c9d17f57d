"""What ``.ci/release`` made, installed as people install it: runs the README's first program.

Takes long, and needs files that it does not make, so it is a sweep: the folder of the package
(``SASSXLATE_DIST``, by default ``dist``), and for other systems a folder of userlands such as
``debootstrap --variant=minbase --include=python3-venv bookworm FOLDER/bookworm`` makes
(``SASSXLATE_USERLANDS``), for which root is needed.  Debian 12 has Python 3.11, 13 has 3.13, forky
3.14.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("SASSXLATE_DIST", ROOT / "dist"))
USERLANDS = Path(os.environ.get("SASSXLATE_USERLANDS", "/nonexistent"))
PROGRAM = ROOT / "fixtures" / "programs" / "saxpy"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
AWKWARD = "a folder, größer"
MOST, MOST_WITHOUT_WEIGHTS = 55_000_000, 25_000_000  # bytes

pytestmark = pytest.mark.sweep


def _only(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern))
    if not found:
        pytest.skip(f"no {pattern} in {DIST}: .ci/release makes it")
    return found[-1]


@pytest.fixture(scope="module")
def wheel() -> Path:
    return _only("*.whl")


@pytest.fixture(scope="module")
def expected() -> str:
    """What the README shows for its first program."""
    shown = re.search(
        r"^\$ sassxlate run -- fixtures/programs/saxpy\n(.*?)^```",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.M | re.S,
    )
    assert shown
    return shown[1]


@pytest.fixture
def outside() -> Iterator[dict[str, str]]:
    """An environment without this checkout, with a cache and sockets of its own."""
    # A socket's path has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="sx-") as folder:
        for name in ("cache", "run", "home"):
            (Path(folder) / name).mkdir(mode=0o700)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SASSXLATE", "PYTHON"))}
        yield {
            **kept,
            "HOME": f"{folder}/home",
            "XDG_CACHE_HOME": f"{folder}/cache",
            "XDG_RUNTIME_DIR": f"{folder}/run",
            "SASSXLATE_SERVICE_IDLE": "1",
        }


def _done(command: list[str | Path], environment: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def _python(version: str) -> str:
    """An interpreter of this version: on PATH, of pyenv, or that uv finds or fetches."""
    candidates = [shutil.which(f"python{version}")]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates += [str(p) for p in sorted(pyenv.glob(f"{version}.*/bin/python"))]
    uv = shutil.which("uv")
    if uv is not None:
        asked = [uv, "python", "find", "--no-project", version]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        candidates += done.stdout.splitlines()[-1:]
    for candidate in candidates:
        if candidate is None:
            continue
        said = subprocess.run(
            [candidate, "-c", "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if said.stdout.strip() == version:
            return candidate
    pytest.skip(f"there is no Python {version} here")


def _install(folder: Path, package: Path, environment: dict[str, str], version: str = "") -> Path:
    """A fresh environment in ``folder`` with the package; its ``sassxlate``."""
    python = _python(version) if version else sys.executable
    _done([python, "-m", "venv", folder], environment, ROOT)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", package]
    _done([*pip], environment, folder)
    return folder / "bin" / "sassxlate"


def test_the_wheel_is_small(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        weights = sum(f.compress_size for f in file.infolist() if "/weights/" in f.filename)
    size = wheel.stat().st_size
    assert size <= MOST
    assert size - weights <= MOST_WITHOUT_WEIGHTS


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_every_python(
    version: str, wheel: Path, expected: str, outside: dict[str, str], tmp_path: Path
) -> None:
    program = _install(tmp_path / "venv", wheel, outside, version)
    assert _done([program, "run", "--", PROGRAM], outside, tmp_path) == expected


def test_awkward_path(wheel: Path, expected: str, outside: dict[str, str], tmp_path: Path) -> None:
    """Spaces and letters outside ASCII, in the package's path and the application's."""
    folder = tmp_path / AWKWARD
    program = _install(folder / "venv", wheel, outside)
    application = shutil.copy(PROGRAM, folder / "säxpy")
    for language in ("C", "C.UTF-8"):
        environment = {**outside, "LC_ALL": language}
        assert _done([program, "run", "--", application], environment, folder) == expected


def test_the_sdist_builds(expected: str, outside: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ here")
    program = _install(tmp_path / "venv", _only("*.tar.gz"), outside)
    assert _done([program, "run", "--", PROGRAM], outside, tmp_path) == expected


@pytest.mark.parametrize("tool", ["pipx", "uvx"])
def test_runners(
    tool: str, wheel: Path, expected: str, outside: dict[str, str], tmp_path: Path
) -> None:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"there is no {tool} here")
    options = ["run", "--spec"] if tool == "pipx" else ["--from"]
    command = [found, *options, wheel, "sassxlate", "run", "--", PROGRAM]
    assert _done(command, outside, tmp_path) == expected


def _userlands() -> list[str]:
    return sorted(p.name for p in USERLANDS.glob("*") if (p / "usr/bin/python3").exists())


@pytest.mark.parametrize("name", _userlands() or [""])
def test_userlands(name: str, wheel: Path, expected: str, outside: dict[str, str]) -> None:
    """Another system's programs: installed by root, run by another user, who cannot write there."""
    if not name:
        pytest.skip("SASSXLATE_USERLANDS names no folder with userlands")
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    userland = USERLANDS / name
    with tempfile.TemporaryDirectory(dir=userland / "tmp", prefix="sx-") as made:
        work = Path(made)
        work.chmod(0o755)
        inside = Path("/") / work.relative_to(userland)
        _wheelhouse(userland, wheel, work / "wheels", outside)
        shutil.copy(PROGRAM, work / "saxpy")
        venv = shlex.quote(str(inside / AWKWARD / "venv"))
        install = (
            f"python3 -m venv {venv} && {venv}/bin/pip install -q --no-index"
            f" --find-links {inside}/wheels sassxlate && chmod -R a-w {venv} &&"
            f" mkdir -m 700 {inside}/user && chown 4321 {inside}/user"
        )
        _inside(userland, install, "0:0", outside)
        run = (
            f"cd {inside}/user && mkdir -m 700 run && ! touch {venv}/lib/x 2>/dev/null &&"
            f" HOME=$PWD XDG_RUNTIME_DIR=$PWD/run {venv}/bin/sassxlate run -- ../saxpy"
        )
        assert _inside(userland, run, "4321:4321", outside) == expected


def _wheelhouse(userland: Path, wheel: Path, folder: Path, environment: dict[str, str]) -> None:
    """The package and what it needs, for the userland's Python: nothing is fetched inside."""
    python = (userland / "usr/bin/python3").resolve().name.removeprefix("python")
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    options = ["--only-binary=:all:", "--python-version", python, *platforms]
    _done([sys.executable, "-m", "pip", "download", "-q", "-d", folder, *options, wheel],
          environment, ROOT)  # fmt: skip


def _inside(userland: Path, script: str, user: str, environment: dict[str, str]) -> str:
    """Runs a shell's script in a userland; all its processes end with it."""
    mounted = shlex.quote(str(userland))
    outer = (
        f"mount -t proc proc {mounted}/proc && mount --rbind /dev {mounted}/dev &&"
        f" exec chroot --userspec={user} {mounted} env -i PATH=/usr/sbin:/usr/bin:/bin"
        f" LC_ALL=C.UTF-8 SASSXLATE_SERVICE_IDLE=1 sh -c {shlex.quote(script)}"
    )
    command: list[str | Path] = [
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", outer,
    ]  # fmt: skip
    return _done(command, environment, userland)

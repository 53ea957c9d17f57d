"""Fetches, verifies and unpacks the packages, and starts programs with them.

Nothing of the system is touched: packages are unpacked by `dpkg-deb -x` and no
script of theirs runs.  Programs are started by the packages' own loader, as the system's C library
may be older than the 2.38 that AMD's libraries need.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from sassxlate.errors import ShimError, UsageError
from sassxlate.runtime_shim.rocm import LIBRARIES, LOADER, READY, base
from tools.rocm.packages import MIRRORS, VERSIONS, Package

_TIMEOUT_S = 60.0


def known(version: str) -> tuple[Package, ...]:
    """The packages of a version.

    Raises:
        UsageError: SX0863, no such version.
    """
    if version not in VERSIONS:
        raise UsageError("SX0863", f"no ROCm {version} is pinned; there are {', '.join(VERSIONS)}")
    return VERSIONS[version]


def root(version: str) -> Path:
    """Where a version is, or would be."""
    known(version)
    return base() / version


def present(version: str) -> bool:
    """Whether it has been fetched completely, with the packages that are pinned now."""
    try:
        return (root(version) / READY).read_text() == _stamp(version)
    except OSError:
        return False


def _stamp(version: str) -> str:
    return "".join(f"{package.sha256}  {package.file}\n" for package in known(version))


def fetch(version: str) -> Path:
    """The version's folder, after fetching what is missing.

    Raises:
        ShimError: SX0860 no mirror has a package, SX0861 one has other bytes, SX0862 it cannot
            be unpacked.
    """
    packages = known(version)
    place = root(version)
    if present(version):
        return place
    try:
        downloads = base() / "packages"
        downloads.mkdir(parents=True, exist_ok=True)
        files = [_download(package, downloads) for package in packages]
        with tempfile.TemporaryDirectory(dir=base(), prefix=f"{version}-") as name:
            fresh = Path(name) / "root"
            fresh.mkdir()
            for file in files:
                _unpack(file, fresh)
            _leave_one_processor(fresh)
            (fresh / READY).write_text(_stamp(version))
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
    except OSError as error:
        raise ShimError("SX0862", f"{base()}: {error}") from error
    return place


def _download(package: Package, folder: Path) -> Path:
    file = folder / package.file
    if file.is_file() and _sha256(file) == package.sha256:
        return file
    reasons: list[str] = []
    for mirror in MIRRORS:
        url = mirror + package.path.replace("+", "%2b").replace("~", "%7e")
        try:
            # A fixed scheme and host: MIRRORS.
            with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
                data = answer.read(package.size + 1)
        except (urllib.error.URLError, OSError) as error:
            reasons.append(f"{url}: {error}")
            continue
        got = hashlib.sha256(data).hexdigest()
        if got != package.sha256:
            text = f"{url}: {len(data)} bytes with SHA-256 {got}, not {package.sha256}"
            raise ShimError("SX0861", text)
        part = file.with_suffix(".part")
        part.write_bytes(data)
        part.rename(file)
        return file
    raise ShimError("SX0860", f"no mirror gives {package.file}: {'; '.join(reasons)}")


def _sha256(file: Path) -> str:
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _unpack(file: Path, into: Path) -> None:
    dpkg = shutil.which("dpkg-deb")
    if dpkg is None:
        raise ShimError("SX0862", "dpkg-deb, which unpacks the packages, is not found on PATH")
    done = subprocess.run(
        [dpkg, "-x", str(file), str(into)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ShimError("SX0862", f"dpkg-deb -x {file.name}: {done.stderr.strip()}")


def _leave_one_processor(folder: Path) -> None:
    """Removes code objects for processors that the emulated card is not: gigabytes of rocBLAS's."""
    for file in folder.rglob("*gfx*"):
        if file.is_file() and "gfx1100" not in file.name:
            file.unlink()


def loader(version: str) -> list[str]:
    """The words before a program that start it with a version's libraries: the loader and where it
    looks.  Only this program gets them, not those that it starts.

    Raises:
        ShimError: SX0864, it has not been fetched.
    """
    place = root(version)
    if not present(version):
        text = f"ROCm {version} is not in {place}; python -m tools.rocm fetch {version}"
        raise ShimError("SX0864", text)
    return [str(place / LOADER), "--library-path", str(place / LIBRARIES)]


def run(version: str, program: Sequence[str]) -> int:
    """Starts a program with a version's libraries; returns its exit status."""
    path = shutil.which(program[0])
    if path is None:
        raise ShimError("SX0701", f"{program[0]}: no such program")
    return subprocess.run([*loader(version), path, *program[1:]], check=False).returncode

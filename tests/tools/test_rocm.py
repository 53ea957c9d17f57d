"""Fetching pinned packages: what is wrong is refused, what is right is kept."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from sassxlate.errors import SassxlateError
from tools.rocm import folder, packages


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror in a folder, with one package that holds one file, pinned as version 1."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not here")
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: n <n@example.org>\nDescription: d\n"
    )
    (tree / "usr").mkdir()
    (tree / "usr/file").write_text("contents")
    pool = tmp_path / "pool"
    pool.mkdir()
    deb = pool / "p+1.deb"
    subprocess.run(["dpkg-deb", "-b", str(tree), str(deb)], check=True, capture_output=True)
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    package = packages.Package("p+1.deb", deb.stat().st_size, digest)
    monkeypatch.setattr(folder, "VERSIONS", {"1": (package,)})
    monkeypatch.setattr(
        folder, "MIRRORS", (f"{(tmp_path / 'gone').as_uri()}/", f"{pool.as_uri()}/")
    )
    monkeypatch.setenv("SASSXLATE_ROCM_FOLDER", str(tmp_path / "rocm"))
    return deb


def test_fetched_once(mirror: Path) -> None:
    assert not folder.present("1")
    place = folder.fetch("1")
    assert (place / "usr/file").read_text() == "contents"
    assert folder.present("1")
    mirror.unlink()
    assert folder.fetch("1") == place


def test_other_bytes_are_refused(mirror: Path) -> None:
    mirror.write_bytes(mirror.read_bytes()[:-1] + b"?")
    with pytest.raises(SassxlateError, match="SX0861"):
        folder.fetch("1")
    assert not folder.root("1").exists()
    assert not list((folder.base() / "packages").iterdir())


def test_no_mirror(mirror: Path) -> None:
    mirror.unlink()
    with pytest.raises(SassxlateError, match="SX0860"):
        folder.fetch("1")


def test_other_pins_are_fetched_anew(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.fetch("1")
    other = packages.Package("p+1.deb", 1, "0" * 64)
    monkeypatch.setattr(folder, "VERSIONS", {"1": (other,)})
    assert not folder.present("1")


def test_not_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SASSXLATE_ROCM_FOLDER", str(tmp_path))
    with pytest.raises(SassxlateError, match="SX0864"):
        folder.loader("6.4.3")
    with pytest.raises(SassxlateError, match="SX0863"):
        folder.root("5.0")


def test_code_for_other_processors_is_left_out(mirror: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("a_gfx1100.co", "a_gfx90a.co", "a_fallback.dat"):
        (tree / "usr" / name).write_text(name)
    subprocess.run(["dpkg-deb", "-b", str(tree), str(mirror)], check=True, capture_output=True)
    package = packages.Package(
        mirror.name, mirror.stat().st_size, hashlib.sha256(mirror.read_bytes()).hexdigest()
    )
    folder.VERSIONS["1"] = (package,)
    place = folder.fetch("1")
    kept = {file.name for file in (place / "usr").iterdir()}
    assert kept == {"file", "a_gfx1100.co", "a_fallback.dat"}


@pytest.mark.parametrize("version", [v for v in packages.VERSIONS if v not in packages.ADDITIONS])
def test_its_loader_runs_programs(version: str) -> None:
    if not folder.present(version):
        pytest.skip(f"ROCm {version} is not in {folder.root(version)}: python -m tools.rocm fetch")
    assert folder.run(version, ["true"]) == 0
    assert folder.run(version, ["false"]) == 1

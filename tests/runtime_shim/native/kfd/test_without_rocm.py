"""The emulated card's options where there is no ROCm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.errors import ShimError
from sassxlate.runtime_shim import emulated_card, hip_probe, rocm


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No version was fetched, none is installed."""
    monkeypatch.setenv("SASSXLATE_ROCM_FOLDER", str(tmp_path))
    monkeypatch.delenv("SASSXLATE_ROCM", raising=False)
    monkeypatch.setattr(hip_probe, "candidates", list)
    return tmp_path


def fetched(folder: Path, version: str, library: str) -> Path:
    """A folder like that of a fetched version."""
    libraries = folder / version / rocm.LIBRARIES
    libraries.mkdir(parents=True)
    for name in (library, f"{library}.0.1", "libamdhip64.so"):
        (libraries / name).touch()
    (folder / version / rocm.READY).touch()
    return libraries


def test_the_newest_is_found(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched(nowhere, "6.4.3", "libamdhip64.so.6")
    libraries = fetched(nowhere, "10.2.0", "libamdhip64.so.7")
    (nowhere / "11.0").mkdir()  # not complete
    assert rocm.find().hip == libraries / "libamdhip64.so.7"
    monkeypatch.setenv("SASSXLATE_ROCM", "6.4.3")
    assert rocm.find().name == "6.4.3"
    monkeypatch.setenv("SASSXLATE_ROCM", "5.0")
    with pytest.raises(ShimError, match="SX0874"):
        rocm.find()


def test_an_installed_one_needs_no_loader(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nowhere / "opt/lib").mkdir(parents=True)
    library = nowhere / "opt/lib/libamdhip64.so.6"
    library.touch()
    monkeypatch.setenv("SASSXLATE_ROCM", str(nowhere / "opt"))
    found = rocm.find()
    assert found.hip == library
    assert found.start("app", Path("/bin/app"), "/ours") == (Path("/bin/app"), ["app"])


def test_a_fetched_one_is_started_by_its_loader(nowhere: Path) -> None:
    libraries = fetched(nowhere, "7.2.4", "libamdhip64.so.7")
    program, words = rocm.find().start("app", Path("/bin/app"), "/ours")
    assert program == libraries / "ld-linux-x86-64.so.2"
    folders = f"/ours:{libraries}"
    assert words == [str(program), "--library-path", folders, "--argv0", "app", "/bin/app"]
    # the linker looks up a name without a slash among the libraries
    assert rocm.find().start("./app", Path("./app"), "")[1][-1] == str(Path.cwd() / "app")


def test_none(nowhere: Path) -> None:
    with pytest.raises(ShimError, match="SX0874"):
        emulated_card.emulated_card("gfx1100")


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    for words in (["--device", "emulator"], ["--strict"]):
        done = subprocess.run(
            [*(sys.executable, "-P", "-m", "sassxlate", "run", "--emulated-card"), *words, "true"],
            env={**os.environ, "SASSXLATE_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "SX0719: --emulated-card" in done.stderr


def test_topology_is_one_folder_for_the_same_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    first = emulated_card.folder("gfx1100", 48, 1 << 30)
    assert emulated_card.folder("gfx1100", 48, 1 << 30) == first
    assert emulated_card.folder("gfx1102", 48, 1 << 30) != first
    properties = (first / "nodes/1/properties").read_text().splitlines()
    assert all(len(line.split()) == 2 for line in properties)

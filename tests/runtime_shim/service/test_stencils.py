"""Packs of stencils: made once, found again by their shapes; a prebuilt one only of our sources."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.errors import ServiceError
from sassxlate.lowering.emulate.options import Isa
from sassxlate.lowering.emulate.stencils import known, pack
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.store import Cache, load
from sassxlate.runtime_shim.service import prebuilt
from sassxlate.runtime_shim.service.request import checked
from sassxlate.runtime_shim.service.work import Work

from .conftest import ENGINE

_SHAPES = ["0" * 31 + "1", "f" * 32]


def _work(tmp_path: Path, made: list[Sequence[str]]) -> Work:
    def stencils(shapes: Sequence[str]) -> bytes:
        made.append(list(shapes))
        return b"pack of " + str(len(shapes)).encode()

    cache = Cache(tmp_path / "cache", "tag")
    return Work(cache, replace(ENGINE, stencils=stencils), lambda: cache)


def test_packs_are_made_once(tmp_path: Path) -> None:
    made: list[Sequence[str]] = []
    work = _work(tmp_path, made)
    first = work.run({"op": "stencils"})
    more = work.run({"op": "stencils", "shapes": _SHAPES})
    assert first["ok"]
    assert more["ok"]
    assert first["pack"] != more["pack"]
    assert Path(first["pack"]).name == "stencils.sxs"
    assert load(Path(more["pack"])) == b"pack of 2"
    assert work.run({"op": "stencils", "shapes": _SHAPES}) == more
    assert made == [[], _SHAPES]


@pytest.mark.parametrize("shapes", [[], "f" * 32, ["f" * 31], ["g" * 32], [1], None])
def test_requests_that_are_none(shapes: object) -> None:
    with pytest.raises(ServiceError, match="SX0903"):
        checked({"op": "stencils", "shapes": shapes})


def test_a_prebuilt_pack_is_of_these_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(_shapes: object, isa: Isa) -> pack.Pack:
        return pack.Pack(isa.encode(), ())

    monkeypatch.setattr(pack, "make", make)
    prebuilt.write(tmp_path)
    assert [prebuilt.read(tmp_path, isa) for isa in ("avx512", "avx2")] == [b"avx512", b"avx2"]
    path = tmp_path / prebuilt.name_of("avx2")
    path.chmod(0o666)
    assert prebuilt.read(tmp_path, "avx2") is None
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    assert prebuilt.read(tmp_path, "avx2") is None
    monkeypatch.setattr(prebuilt, "digest", lambda: b"other")
    assert prebuilt.read(tmp_path, "avx512") is None
    assert prebuilt.read(tmp_path / "nowhere", "avx512") is None


def test_the_package_s_own_pack_is_trusted_as_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A umask of 002 once made every first run build a pack of its own, in seconds."""

    def make(_shapes: object, isa: Isa) -> pack.Pack:
        return pack.Pack(isa.encode(), ())

    monkeypatch.setattr(pack, "make", make)
    prebuilt.write(tmp_path)
    tmp_path.chmod(0o775)
    assert prebuilt.read(tmp_path, "avx2") is None
    monkeypatch.delenv("SASSXLATE_LIB", raising=False)
    monkeypatch.setattr(paths, "library_dir", lambda: tmp_path)
    assert prebuilt.read(tmp_path, "avx2") == b"avx2"
    monkeypatch.setenv("SASSXLATE_LIB", str(tmp_path))
    assert prebuilt.read(tmp_path, "avx2") is None


@pytest.mark.sweep
def test_an_install_makes_them(tmp_path: Path) -> None:
    """`pip install .` once had none, and each run with an empty cache made them, in seconds."""
    native = Path(__file__).resolve().parents[3] / "runtime_shim" / "native"
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("no cmake")
    options = ["-DSX_STENCILS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run([cmake, "-S", native, "-B", tmp_path, *options], check=True)
    subprocess.run([cmake, "--build", tmp_path, "--target", "sx_stencils"], check=True)
    for isa in ("avx512", "avx2"):
        made = prebuilt.read(tmp_path / "stencils", isa)
        assert made == pack.make(known.known_shapes(), isa).data


def test_the_text_of_shapes() -> None:
    for shape in known.known_shapes()[:50]:
        text = known.text_of(shape)
        assert len(text) == 32
        assert known.shape_of(text) == shape

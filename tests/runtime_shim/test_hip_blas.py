"""Which hipBLAS goes with a HIP library, and what is replaced on a card because of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.runtime_shim import application, hip_blas


@pytest.fixture
def rocm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ROCm with hipBLAS of two releases, and no other one anywhere."""
    monkeypatch.setattr(hip_blas, "_SYSTEM", ())
    library = tmp_path / "lib"
    library.mkdir()
    for name in ("libhipblas.so.2", "libhipblas.so.3", "libamdhip64.so.6", "libamdhip64.so.7"):
        (library / name).touch()
    return library


@pytest.mark.parametrize(("hip", "blas"), [("6", "2"), ("7", "3"), ("7.2.4", "3")])
def test_beside_the_hip_library(rocm: Path, hip: str, blas: str) -> None:
    """That of another release would load another HIP."""
    found = hip_blas.find(str(rocm / f"libamdhip64.so.{hip}"), {})
    assert found == rocm / f"libhipblas.so.{blas}"
    (rocm / f"libhipblas.so.{blas}").unlink()
    assert hip_blas.find(str(rocm / f"libamdhip64.so.{hip}"), {}) is None


def test_an_unknown_hip_has_none(rocm: Path) -> None:
    assert hip_blas.find(str(rocm / "libamdhip64.so.9"), {}) is None


def test_elsewhere(rocm: Path, tmp_path: Path) -> None:
    hip = "libamdhip64.so.6"  # as the dynamic linker finds it
    for environ in ({"LD_LIBRARY_PATH": f"/missing:{rocm}"}, {"ROCM_PATH": str(tmp_path)}):
        assert hip_blas.find(hip, environ) == rocm / "libhipblas.so.2"
    named = tmp_path / "mine.so"
    assert hip_blas.find(hip, {"SASSXLATE_HIPBLAS": str(named)}) is None
    named.touch()
    assert hip_blas.find(hip, {"SASSXLATE_HIPBLAS": str(named)}) == named


def test_what_is_replaced() -> None:
    assert application.defaults(card=False) == ("cufft", "cublas")
    assert application.defaults(card=True) == ("cufft",)
    assert application.defaults(card=True, hipblas=True) == ("cufft", "cublas")
    assert application.folders(("cufft", "cublas"), card=False) == ("cufft", "cublas")
    assert application.folders(("cufft", "cublas"), card=True) == ("cufft", "hipblas")


def test_a_run_inside_of_a_run_gets_its_own() -> None:
    lib = Path("/lib")
    outer = application.environment({"LD_LIBRARY_PATH": "/own"}, lib, {}, ("hipblas",))
    assert outer["SASSXLATE_REPLACE"] == "hipblas"
    assert outer["LD_LIBRARY_PATH"] == "/lib:/lib/hipblas:/own"
    inner = application.environment(outer, lib, {}, ("cublas",))
    assert inner["LD_LIBRARY_PATH"] == "/lib:/lib/cublas:/own"

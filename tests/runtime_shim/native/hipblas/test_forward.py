"""cuBLAS and cuBLASLt on a card: what hipBLAS is called with and what becomes of its results, by
libraries of ours in its place and in hipBLASLt's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.runtime_shim import application
from tests.runtime_shim.native.cufft.cufft_api import library_folder

Tool = Callable[..., str]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, gxx: Tool) -> Path:
    """The libraries in place of AMD's: hipBLAS 2, 3 and 9, and hipBLASLt."""
    folder = tmp_path_factory.mktemp("built")
    for release in (2, 3, 9):
        name = f"libhipblas.so.{release}"
        options = ("-shared", "-fPIC", f"-DRELEASE={release}", f"-Wl,-soname,{name}")
        # Of an unknown release nothing but its name is looked at.
        source = "/dev/null" if release == 9 else HERE / "fake_hipblas.cpp"
        gxx(*options, "-x", "c++", source, "-o", folder / name)
    gxx("-shared", "-fPIC", HERE / "fake_hipblaslt.cpp", "-o", folder / "libhipblaslt.so.1")
    return folder


@pytest.fixture
def card(tmp_path: Path, built: Path) -> Path:
    """A folder with a HIP library that is not the emulated device's file, and hipBLASLt."""
    device = library_folder() / "libamdhip64.so"
    if not (library_folder() / "hipblas/libcublas.so.12").is_file():
        pytest.skip("hipblas/libcublas.so.12 is not built (runtime_shim/native/build.sh)")
    shutil.copy(device, tmp_path)
    shutil.copy(built / "libhipblaslt.so.1", tmp_path)
    return tmp_path


def run(card: Path, major: int, **variables: str) -> tuple[list[str], str]:
    """What the program prints, without addresses of streams, and our messages."""
    host = application.host_blas()
    if host is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    environment = {
        **os.environ,
        "SASSXLATE_HIP": str(card / "libamdhip64.so"),
        "SASSXLATE_BLAS": str(host),
        "SASSXLATE_TEST_LIBRARIES": str(library_folder() / "hipblas"),
        # Of the package that is tested; PYTHONPATH below is for the tests' own modules.
        "SASSXLATE_LIB": str(library_folder()),
        "PYTHONPATH": str(HERE.parents[3]),
        **variables,
    }
    # Unbuffered: the library and Python each have a buffer of their own.
    done = subprocess.run(
        ["stdbuf", "-oL", sys.executable, HERE / "on_a_card.py", str(major)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


# Of hipBLAS, and of cuBLAS for it.
STATUSES = {1: 1, 2: 3, 3: 7, 4: 11, 5: 13, 6: 14, 7: 15, 8: 8, 9: 1, 10: 7, 11: 14}
EXPECTED = {
    "cublasCreate": "0",
    "cublasDgemm": "0 right",
    "cublasDgemm_64": "0 right",
    "cublasDgemm, no such transpose": "7",
    **{f"cublasDgemm, where hipBLAS says {theirs}": str(ours) for theirs, ours in STATUSES.items()},
    "cublasSgemm": "15",
    "cublasZgemm_v2": "0 right",
    "cublasZgemm3m": "0 right",
    "cublasDtrsm": "0 right",
    "cublasDsymv": "0 right",
    "cublasDaxpy, all modes": "0 right",
    "cublasDgemmStridedBatched": "0 right",
    "cublasGemmEx, compute 68 of type 0": "0 right",
    "cublasGemmEx, compute 77 of type 0": "0 right",
    "cublasGemmEx, compute 69 of type 0": "15",
    "cublasGemmEx, compute 68 of type 28": "15",
    "cublasGemmEx, compute 99 of type 0": "15",
    "cublasSgemmEx": "0 right",
    "cublasSetVector": "0 right",
    "cublasLtMatmulAlgoGetHeuristic, epilogue 1: 1": "0",
    "cublasLtMatmul, epilogue 1": "0 right",
    "cublasLtMatmulAlgoGetHeuristic, epilogue 6: 1": "0",
    "cublasLtMatmul, epilogue 6": "0 right",
    "cublasLtMatmulAlgoGetHeuristic, epilogue 130: 0": "7",
    "cublasLtMatmul, epilogue 130": "7",
    "cublasLtMatmul, D beside C": "0 right",
    "cublasLtMatmul, doubles with a bias": "15",
    "cublasDgemm, captured": "15",
    "cublasDestroy": "0",
    "cublasDgemm, destroyed": "1",
}
REFUSED = (
    "cublasSgemm_v2: this hipBLAS has no hipblasSgemm",
    "cublasGemmEx: hipBLAS does not do this",
    "cublasDgemm_v2: hipBLAS does not do this",
    "cublasGemmEx: data type 28 is not passed on to hipBLAS",
    "cublasGemmEx: compute type 99 is not passed on to hipBLAS",
    "cublasLtMatmul: hipBLASLt has no kernel for data types 1, 1 and 1 with compute type 70 and "
    "epilogue 4",
    "cublasDgemm_v2: on an AMD card it cannot be captured in a graph",
)


def results(lines: list[str]) -> dict[str, str]:
    """Calls and what became of them; those of one name must agree."""
    found: dict[str, str] = {}
    for line in lines:
        name, arrow, result = line.partition(" -> ")
        if arrow:
            assert found.setdefault(name, result) == result, line
    return found


@pytest.mark.parametrize(("major", "release"), [(12, 2), (13, 2), (13, 3)])
def test_calls(card: Path, built: Path, major: int, release: int) -> None:
    lines, messages = run(card, major, SASSXLATE_HIPBLAS=str(built / f"libhipblas.so.{release}"))
    assert results(lines) == EXPECTED
    for text in REFUSED:
        assert messages.count(f"SX0780: {text}; it returns 15") == 1, messages
    assert messages.count("SX078") == len(REFUSED)
    # The stream, modes and types as hipBLAS counts them, and handles made and destroyed.
    assert "stream (nil) pointer mode 1 atomics 1" in lines
    assert lines.count("stream (nil) pointer mode 0 atomics 0") > 10
    products = [line for line in lines if line.startswith("hipblasGemmEx")]
    assert products[:3] == [
        "hipblasGemmEx types 0 0 0 compute 2 algorithm 160",
        "hipblasGemmEx types 0 0 0 compute 2 algorithm 160",  # TF32 is float
        "hipblasGemmEx types 0 0 0 compute 3 algorithm 160",
    ]
    assert "hipblasDgemm_64" in lines
    assert "hipblasLtMatmul epilogue 6 bias type 0 workspace 0 stream (nil)" in lines
    for what in ("hipblasCreate", "hipblasDestroy", "hipblasLtCreate", "hipblasLtDestroy"):
        assert lines.count(what) == 1


def test_it_is_found_beside_the_hip_library(card: Path, built: Path) -> None:
    shutil.copy(built / "libhipblas.so.2", card)
    lines, _ = run(card, 12)
    assert results(lines)["cublasDgemm"] == "0 right"


def test_no_handle(card: Path, built: Path) -> None:
    library = str(built / "libhipblas.so.3")
    assert run(card, 12, SASSXLATE_HIPBLAS=library, FAKE_CREATE="2")[0][-1] == "cublasCreate -> 3"


def test_no_hipblaslt(card: Path, built: Path) -> None:
    """What is plain is still hipBLAS's; the rest is refused by name."""
    lines, messages = run(
        card,
        13,
        SASSXLATE_HIPBLAS=str(built / "libhipblas.so.3"),
        SASSXLATE_HIPBLASLT=str(card / "missing.so"),
    )
    found = results(lines)
    assert found["cublasLtMatmul, epilogue 1"] == "0 right"
    assert found["cublasLtMatmulAlgoGetHeuristic, epilogue 6: 0"] == "15"
    assert found["cublasLtMatmul, epilogue 6"].split()[0] == "15"
    assert found["cublasLtMatmul, D beside C"] == "15"
    assert messages.count("needs hipBLASLt on an AMD card") == 1


@pytest.mark.parametrize(
    ("library", "why"),
    [("missing.so", "it cannot be loaded: "), ("libhipblas.so.9", "the one that is there is lib")],
)
def test_no_hipblas(card: Path, built: Path, library: str, why: str) -> None:
    lines, messages = run(card, 12, SASSXLATE_HIPBLAS=str(built / library))
    assert lines == ["cublasCreate -> 1"]
    assert messages.count("SX0786: cuBLAS on an AMD card needs hipBLAS of ROCm 6 or 7: ") == 1
    assert why in messages


def test_a_hipblas_of_another_hip(card: Path, gxx: Tool) -> None:
    """It brings a second HIP library, which knows nothing of the first one's memory."""
    hips = [card / f"libamdhip64.so.{release}" for release in (6, 7)]
    for hip in hips:
        gxx("-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{hip.name}", "-o", hip)
    blas = card / "libhipblas.so.3"
    needed = ("-Wl,--no-as-needed", *hips, f"-Wl,-rpath,{card}", f"-Wl,-soname,{blas.name}")
    gxx("-shared", "-x", "c", "/dev/null", "-x", "none", *needed, "-o", blas)
    lines, messages = run(card, 12, SASSXLATE_HIPBLAS=str(blas))
    assert lines == ["cublasCreate -> 1"]
    assert "SX0786" in messages
    assert "is linked with another HIP library than" in messages

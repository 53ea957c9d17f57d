"""cuBLAS over AMD's hipBLAS and rocBLAS on AMD's HIP and the emulated card; NumPy is the witness.

Needs ``python -m tools.rocm fetch 6.4.3 blas-6.4.4`` (350 MB) and ``7.2.4 blas-7.2.4`` (1 GB).

All of it: ``pytest -m "sweep or not sweep" tests/runtime_shim/native/hipblas``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sassxlate.runtime_shim import rocm
from tests.runtime_shim.native.cufft.cufft_api import library_folder
from tools.rocm import packages

ROOT = Path(__file__).parents[4]
NATIVE = ROOT / "runtime_shim/native/hipblas"
CUBLAS = "tests/runtime_shim/native/cublas"


@dataclass(frozen=True)
class Amd:
    """A release of HIP, and the folder of hipBLAS and rocBLAS for it."""

    hip: str
    blas: Path


@pytest.fixture(params=[("6.4.3", packages.BLAS_6), ("7.2.4", packages.BLAS_7)])
def amd(request: pytest.FixtureRequest) -> Amd:
    """Skips where they have not been fetched."""
    hip, blas = request.param
    for name in (hip, blas):
        if not (rocm.base() / name / rocm.READY).is_file():
            pytest.skip(f"{name} is not in {rocm.base()} (python -m tools.rocm fetch {name})")
    return Amd(hip, rocm.base() / blas)


# The kernels of the other products have instructions that the emulated device lacks.
TESTS = (
    f"{CUBLAS}/test_families.py",
    f"{CUBLAS}/test_vectors.py",
    *(
        f"{CUBLAS}/test_products.py::test_gemm[{major}-{suffix}-{ops}-{letter}]"
        for major in (12, 13)
        for suffix in ("_v2", "_v2_64")
        for ops in ("0-0", "1-0", "0-1", "2-2")
        for letter in "DCZ"
    ),
    f"{CUBLAS}/test_products.py::test_no_inner_dimension",
)
WITHOUT = (  # hipBLAS has no such function, or a test asks about our own messages
    "test_families.py::test_inverses",
    "test_families.py::test_a_pointer_in_an_array_that_is_none",
    "test_vectors.py::test_geam_without_beta",
    "test_vectors.py::test_bad_arguments",
)
ROCSOLVER = ("test_families.py::test_factorisations", "test_families.py::test_least_squares")


@pytest.mark.sweep
def test_cublas(amd: Amd, tmp_path: Path) -> None:
    """The tests of cuBLAS's functions, in one process on the emulated card."""
    solver = next((amd.blas / rocm.LIBRARIES).glob("librocsolver.so.*"), None)
    without = WITHOUT if solver else (*WITHOUT, *ROCSOLVER)
    ours = library_folder()
    for file in ours.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "cublas").unlink()
    (tmp_path / "cublas").symlink_to(ours / "hipblas")
    command = (
        *(sys.executable, "-P", "-m", "sassxlate", "run", "--emulated-card"),
        *(
            "--replace",
            "cublas",
            "--",
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
        ),
        *("-p", "no:xdist", *TESTS),
        *(word for name in without for word in ("--deselect", f"{CUBLAS}/{name}")),
    )
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={
            **os.environ,
            "SASSXLATE_ROCM": amd.hip,
            "SASSXLATE_LIB": str(tmp_path),
            "LD_LIBRARY_PATH": str(amd.blas / rocm.LIBRARIES),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(passed[1]) >= 248
    assert "failed" not in done.stdout
    assert "skipped" not in done.stdout
    # A test asks for a type that ScalEx does not have; a refusal is the command's status.
    assert set(re.findall(r"SX\d{4}: \w+", done.stderr)) == {"SX0780: cublasScalEx"}
    assert done.returncode == 3


KINDS = (  # of what stands in hipblas.h
    (r"\*|\[", "P"),
    (r"hipblasOperation_t", "Op"),
    (r"hipblasFillMode_t", "Fill"),
    (r"hipblasDiagType_t", "Diag"),
    (r"hipblasSideMode_t", "Side"),
    (r"hipblasStride|long long", "L"),
    (r"hipDataType", "Type"),
    (r"hipblasComputeType_t", "Compute"),
    (r"hipblasGemmAlgo_t", "Algo"),
    (r"^int64_t|^const int64_t|^int |^const int ", "N"),
)


def declared(header: Path) -> dict[str, list[str]]:
    """Functions of a header and the kinds of their arguments after the handle."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.S)
    found: dict[str, list[str]] = {}
    for name, given in re.findall(r"hipblasStatus_t\s+(hipblas\w+)\s*\(([^;{}]*?)\)\s*;", text):
        words = [" ".join(word.split()) for word in given.split(",")]
        if words[0].startswith("hipblasHandle_t"):
            found[name] = [
                next((kind for pattern, kind in KINDS if re.search(pattern, word)), word)
                for word in words[1:]
            ]
    return found


def forwarded(file: Path) -> dict[str, list[str]]:
    """Functions of a table and the kinds of their arguments."""
    sets = {"SX_REAL": "SD", "SX_COMPLEX": "CZ", "SX_FOUR": "SDCZ"}
    found: dict[str, list[str]] = {}
    row = re.compile(r"^(SX_\w+)\((?:(SX_V2|SX_EX), )?(\w+), ([\w, ]+)\)$")
    for line in file.read_text().splitlines():
        match = row.match(line)
        assert match or not line.startswith("SX_"), line
        if match:
            for letter in sets.get(match[1], [""]):
                found[f"hipblas{letter}{match[3]}"] = match[4].split(", ")
    return found


def test_arguments_are_those_of_the_header(amd: Amd) -> None:
    """Each row of the tables, with 32 and with 64 bits, beside AMD's declarations."""
    header = declared(amd.blas / "usr/include/hipblas/hipblas.h")
    rows, narrow = forwarded(NATIVE / "table.inc"), forwarded(NATIVE / "factor.inc")
    assert (len(rows), len(narrow)) == (196, 26)
    second = "_v2" if amd.hip.startswith("6") else ""  # the names that have these types
    for name, kinds in {**rows, **narrow}.items():
        typed = second if {"Type", "Compute"} & set(kinds) else ""
        for wide in ("", "_64") if name in rows else ("",):
            assert header[f"{name}{typed}{wide}"] == kinds, name

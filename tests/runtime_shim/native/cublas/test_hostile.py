"""Sizes and addresses that no library can work with: a status or error 700, never a crash.

Each ran into memory that is not the device's, or did something else than what was asked for: the
extents of operands were computed modulo 2**64.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.runtime_shim import application

from .cublas_api import EXECUTION_FAILED, INVALID_VALUE, Blas

ROOT = Path(__file__).resolve().parents[4]
_NAMES = [
    *(f"{x}{name}" for x in "sdcz" for name in "gemm gemv syrk symm trsm trmm axpy scal".split()),
    *"srotmg drotmg snrm2 dnrm2 scnrm2 dznrm2".split(),
]
BEGIN = """
import sys
sys.path.append({root!r})  # last: sassxlate is the installed one
import numpy as np, ctypes
from ctypes import c_int64 as L, c_void_p
from tests.runtime_shim.native.cublas.cublas_api import Blas, one
b = Blas({major})
a = b.put(np.ones(1024, np.float32))
f = one(1, np.float32)
F = c_void_p(f.ctypes.data)
def say(name, *arguments):
    print(name, b.code(name, b.handle, *arguments))
"""
END = """
print("then", b.cuda.library.cuStreamSynchronize(None))
"""


def _said(major: int, text: str, **environment: str) -> tuple[dict[str, int], str]:
    """Each call's status, and standard error, of another process: the device may be faulted."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", BEGIN.format(root=str(ROOT), major=major) + text + END],
        env={**os.environ, "SASSXLATE_BLAS": str(application.host_blas()), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = (line.split() for line in done.stdout.splitlines())
    return {name: int(status) for name, status in rows}, done.stderr


def test_extents_beyond_64_bits(library: Blas) -> None:
    """Leading dimensions, steps and increments whose products are 2**64 or a little more."""
    said, _ = _said(library.major, """
big = 2**63 - 1
say("cublasSgemm_v2_64", 0, 0, L(2), L(3), L(3), F, a, L(big), a, L(big), F, a, L(big))
say("cublasSgemmStridedBatched", 0, 0, 2, 2, 2, F, a, 2, L(2**60), a, 2, L(4), F, a, 2, L(4), 17)
say("cublasSgemvStridedBatched", 0, 2, 2, F, a, 2, L(2**60), a, 1, L(2), F, a, 1, L(2), 17)
say("cublasSaxpy_v2_64", L(3), F, a, L(-2**63), a, L(1))
say("cublasScopy_v2_64", L(2**62 + 1), a, L(4), a, L(4))
say("cublasSgbmv_v2_64", 0, L(2), L(2), L(2**62), L(2**62), F, a, L(2), a, L(1), F, a, L(1))
say("cublasSspmv_v2_64", 0, L(2**32), F, a, a, L(1), F, a, L(1))
""")  # fmt: skip
    assert said.pop("cublasSgbmv_v2_64") == INVALID_VALUE
    assert said.pop("then") == 0
    assert len(said) == 6
    assert set(said.values()) == {EXECUTION_FAILED}


@pytest.mark.parametrize(
    "call",
    [
        'say("cublasSgemmBatched_64", 0, 0, L(1), L(5), L(1), F, named, L(2**60), named, L(1), F,'
        " named, L(2**60), L(1))",
        'b.call("cublasSetPointerMode_v2", 1); say("cublasSscal_v2", 4, F, a, 1)',
        'b.call("cublasSetPointerMode_v2", 1); say("cublasSdot_v2", 4, a, 1, a, 1, F)',
        'b.call("cublasSetPointerMode_v2", 1)\n'
        'say("cublasSgemm_v2", 0, 0, 2, 2, 2, F, a, 2, a, 2, F, a, 2)',
    ],
    ids=["named", "factor", "result", "product"],
)  # fmt: skip
def test_what_work_finds(library: Blas, call: str) -> None:
    """What is known when the work runs only: as after a fault of a kernel, later calls are 700."""
    text = "named = b.put(np.array([a.value], np.uint64))\n" + call
    said, errors = _said(library.major, text)
    assert said["then"] == 700
    assert "SX0782" in errors


def test_a_blas_of_32_bits_is_not_given_more(library: Blas, tmp_path: Path) -> None:
    """It would take the low half of the number: an increment of 2**32 + 1 was 1."""
    functions = "".join(f"void cblas_{name}(void) {{}}\n" for name in _NAMES)
    source, narrow = tmp_path / "narrow.c", tmp_path / "libnarrow.so"
    source.write_text(functions)
    done = subprocess.run(
        ["cc", "-shared", "-fPIC", source, "-o", narrow], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("there is no C compiler")
    call = 'say("cublasSaxpy_v2_64", L(1), F, a, L({}), a, L(1))'
    said, _ = _said(library.major, call.format(7), SASSXLATE_BLAS=str(narrow))
    assert said["then"] == 0
    said, errors = _said(library.major, call.format(2**32 + 1), SASSXLATE_BLAS=str(narrow))
    assert said["then"] == 700
    assert "SX0787" in errors

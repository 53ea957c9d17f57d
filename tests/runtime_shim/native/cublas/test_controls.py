"""What an application does with its processor's rounding and denormals is not the device's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.runtime_shim import application
from tests.runtime_shim.native.cufft.cufft_api import library_folder

ROOT = Path(__file__).parents[4]
# The threads of streams, and those of the host's BLAS, are made after the control word was set.
PROGRAM = """
import ctypes, struct, sys
import numpy as np
libm = ctypes.CDLL("libm.so.6")
environment = ctypes.create_string_buffer(32)
libm.fegetenv(environment)
sys.path.append(sys.argv[1])  # last: the package is the installed one
struct.pack_into("<I", environment, 28, 0xDFC0)  # upwards, denormals flushed and taken for zero
libm.fesetenv(environment)

from tests.runtime_shim.native.cublas.cublas_api import Blas, one
from tests.runtime_shim.native.cufft.cufft_api import C2C, Cufft

blas, fft = Blas(12), Cufft(11)
x = np.array([0x00000123, 0x3F800000], dtype=np.uint32)
y = np.array([0, 0x30800000], dtype=np.uint32)  # 2**-30
px, py = blas.put(x), blas.put(y)
blas.call("cublasSaxpy_v2", 2, one(1, np.float32), px, 1, py, 1)
print(*map(hex, blas.get(py, (2,), np.uint32)))

lines = np.array([0x123, 0, 0x100, 0], dtype=np.uint32)  # complex ones
at = blas.cuda.upload(lines)
handle = fft.plan_many((2,), C2C, 1)
fft.run("cufftExecC2C", handle, at, at, -1)
print(*map(hex, blas.cuda.read(at, (4,), np.uint32)))

libm.fegetenv(environment)
print(hex(struct.unpack_from("<I", environment, 28)[0] & 0xFFC0))
"""


def test_flushing_and_rounding_of_the_application() -> None:
    host = application.host_blas()
    if host is None or not (library_folder() / "cublas" / "libcublas.so.12").is_file():
        pytest.skip("no BLAS")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASSXLATE_BLAS", str(host))
        done = subprocess.run(
            [sys.executable, "-P", "-c", PROGRAM, str(ROOT)],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.stdout == (
        "0x123 0x3f800000\n"
        "0x223 0x0 0x23 0x0\n"
        "0xdfc0\n"
    ), done.stderr  # fmt: skip

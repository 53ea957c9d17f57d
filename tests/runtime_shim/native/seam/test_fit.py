"""Blocks that a CU has no registers for are refused before AMD's library sees them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.disasm.containers import load
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.allocation import expected_threads
from sassxlate.lowering.target import GFX1100

from .code_objects import check_code
from .conftest import Standin
from .test_standin import check

Tool = Callable[..., str]
# 120 sums that are all live at once.
KERNEL = """
extern "C" __global__ void wide(const float *a, float *out, int n) {
    float sums[120];
    for (int k = 0; k < 120; ++k) sums[k] = a[k];
    for (int i = 0; i < n; ++i) {
#pragma unroll
        for (int k = 0; k < 120; ++k) sums[k] = sums[k] * a[i] + sums[(k + 7) % 120];
    }
    float total = 0;
#pragma unroll
    for (int k = 0; k < 120; ++k) total += sums[k];
    out[threadIdx.x] = total;
}
"""
PROGRAM = """
import ctypes, sys
from sassxlate.runtime_shim.selftest.kernel import Driver
driver = Driver()
function = driver.function(open(sys.argv[1], "rb").read(), "wide")
most = ctypes.c_int()
driver.call("cuFuncGetAttribute", ctypes.byref(most), 0, function)
a = ctypes.c_uint64()
driver.call("cuMemAlloc_v2", ctypes.byref(a), ctypes.c_size_t(1 << 16))
n = ctypes.c_int(3)
pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in (a, a, n)))
def launch(threads):
    shape = (1, 1, 1, threads, 1, 1, 0)
    return driver.library.cuLaunchKernel(function, *shape, None, pointers, None)
room = int(sys.argv[2])
print(most.value, launch(room), launch(room + 32), driver.library.cuCtxSynchronize())
"""

# 40 sums and the temporaries of a product.
PRODUCTS = """
extern "C" __global__ void __launch_bounds__(1024) products(const unsigned *in, float *out) {
    float c[40];
    for (int k = 0; k < 40; ++k) c[k] = __uint_as_float(in[k * 1024 + threadIdx.x]);
    unsigned a = in[threadIdx.x % 32], b = in[threadIdx.x];
    for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int k = 0; k < 40; k += 4)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%0,%1,%2,%3}, {%4,%4,%5,%5}, {%4,%5}, {%0,%1,%2,%3};"
                         : "+f"(c[k]), "+f"(c[k + 1]), "+f"(c[k + 2]), "+f"(c[k + 3])
                         : "r"(a), "r"(b));
    }
    for (int k = 0; k < 40; ++k) out[threadIdx.x * 40 + k] = c[k];
}
extern "C" __global__ void plain(const unsigned *in, unsigned *out) { out[threadIdx.x] = 1; }
"""
LAUNCHES = """
import ctypes, struct, sys
from sassxlate.runtime_shim.selftest.kernel import Driver
driver = Driver()
code = open(sys.argv[1], "rb").read()
products, plain = (driver.function(code, name) for name in ("products", "plain"))
a = ctypes.c_uint64()
driver.call("cuMemAlloc_v2", ctypes.byref(a), ctypes.c_size_t(1 << 20))
pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(v) for v in (a, a)))
def launch(function, threads):
    shape = (1, 1, 1, threads, 1, 1, 0)
    return driver.library.cuLaunchKernel(function, *shape, None, pointers, None)
def clusters(function, x):
    attribute = ctypes.create_string_buffer(struct.pack("I4xIII52x", 4, x, 1, 1))
    config = struct.pack("7I4xQQI4x", 2, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(attribute), 1)
    config = ctypes.create_string_buffer(config)
    return driver.library.cuLaunchKernelEx(config, function, pointers, None)
if sys.argv[2] == "block":
    grid, block = ctypes.c_int(), ctypes.c_int()
    driver.call("cuOccupancyMaxPotentialBlockSize", ctypes.byref(grid), ctypes.byref(block),
                products, None, ctypes.c_size_t(0), 0)
    print(launch(products, block.value))
    print(*(launch(products, n) for n in (1024, 1024, 128)), launch(plain, 1025))
else:
    print(clusters(plain, 1), clusters(plain, 2), clusters(plain, 2))
print(driver.library.cuCtxSynchronize())
"""


@pytest.mark.parametrize(
    ("vgprs", "threads"),
    # Waves a SIMD: 16 of 96 registers, 12 of 120, 10 of 144, 8 of 192, 6 of 240, 5 of 264.
    [(1, 1024), (96, 1024), (97, 768), (144, 640), (192, 512), (240, 384), (256, 320)],
)
def test_most_threads(vgprs: int, threads: int) -> None:
    assert GFX1100.most_threads(vgprs) == threads


def test_a_wide_kernel(nvcc: Tool, tmp_path: Path, on_standin: Standin) -> None:
    source, cubin = tmp_path / "wide.cu", tmp_path / "wide.cubin"
    source.write_text(KERNEL)
    nvcc("-cubin", "-arch=sm_80", source, "-o", cubin)
    ((_, module),) = load(cubin).cubins()
    done = translate_kernel(module, "wide")
    most = GFX1100.most_threads(done.report.vgprs)
    assert most < 1024
    assert done.launch.max_threads == most
    (kernel,) = check_code(done.code_object).kernels
    assert kernel.metadata[".max_flat_workgroup_size"] == most
    outcome = on_standin(
        *("run", "--device", "hip", "--", sys.executable, "-P", "-c", PROGRAM, cubin, str(most))
    )
    # What an H100's registers suffice for, of 255 a thread 256: known without a translation.
    wide = module.kernels[0].registers
    said = 65536 // 4 // (-(-wide // 8) * 8 * 32) * 128
    assert said <= most
    assert "wide" not in expected_threads(module, GFX1100)
    # With a third of the VGPRs: three waves a SIMD of 128 registers, 24 temporaries and 8 more.
    narrow = replace(GFX1100, vgprs_of_simd=512)
    assert expected_threads(module, narrow) == {"wide": narrow.most_threads(128 + 24 + 8)}
    assert narrow.most_threads(done.report.vgprs) >= narrow.most_threads(160) == 192
    # 701 at once, and nothing that stays.
    assert outcome.output == f"{said} 0 701 0\n", outcome.output + outcome.errors
    check(outcome)
    assert len(outcome.of("hipModuleLaunchKernel")) == 1


@pytest.mark.parametrize(
    ("what", "answers", "said"),
    [
        ("block", "0\n701 701 0 1\n0\n", "SX0774: products: a block of 1024 threads; "),
        ("clusters", "0 801 801\n0\n", "SX0717: plain: a launch with a cluster of 2x1x1 blocks"),
    ],
)
def test_launches_that_nvidia_takes(
    nvcc: Tool, tmp_path: Path, what: str, answers: str, said: str
) -> None:
    """They are not done, which `run` says even if the program asks for no error."""
    source, cubin = tmp_path / "two.cu", tmp_path / "two.cubin"
    source.write_text(PRODUCTS)
    nvcc("-cubin", "-arch=sm_80", source, "-o", cubin)
    run = [sys.executable, "-P", "-m", "sassxlate", "run", "--device", "emulator", "--"]
    done = subprocess.run(
        [*run, sys.executable, "-P", "-c", LAUNCHES, cubin, what],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == answers, done.stdout + done.stderr
    assert done.stderr.count(f"sassxlate: {said}") == 1
    assert "DO NOT TRUST" in done.stderr
    assert done.returncode == 3

"""Blocks that a CU has no registers for are refused before AMD's library sees them."""

from __future__ import annotations

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

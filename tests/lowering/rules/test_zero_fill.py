"""cp.async with fewer bytes to copy than to write, as nvcc compiles it: the rest are zeros."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel

LANES, SHARED = 32, 32 * 32
SOURCE = r"""
#include <cstdint>
#define COPY(how, size, count, at) \
  asm volatile("cp.async." how ".shared.global [%0], [%1], " #size ", %2;" \
               ::"r"(to + at), "l"(from + at), count)
extern "C" __global__ void fill(const char *in, uint4 *out, uint32_t n) {
  __shared__ __align__(16) char room[1024];
  uint32_t to = (uint32_t)__cvta_generic_to_shared(room) + 32 * threadIdx.x;
  const char *from = in + 32 * threadIdx.x;
  for (int i = 0; i < 32; i++) room[32 * threadIdx.x + i] = 0x55;
  __syncthreads();
#ifdef FIXED
  COPY("cg", 16, "n"(8), 0);
  COPY("ca", 8, "n"(3), 16);
  COPY("ca", 4, "n"(1), 24);
  COPY("ca", 4, "n"(0), 28);
#else
  COPY("cg", 16, "r"(n), 0);
  COPY("ca", 8, "r"(n < 8 ? n : 8), 16);
  COPY("ca", 4, "r"((n + threadIdx.x) % 5), 24);
  COPY("ca", 4, "r"(n & 3), 28);
#endif
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  const uint4 *mine = (const uint4 *)(room + 32 * threadIdx.x);
  out[2 * threadIdx.x] = mine[0], out[2 * threadIdx.x + 1] = mine[1];
}
"""


def _expected(source: bytes, counts: list[tuple[int, int, int]]) -> bytes:
    """(place, bytes written, bytes copied)"""
    out = bytearray(len(source))
    for at, _, count in counts:
        out[at : at + count] = source[at : at + count]
    return bytes(out)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize(("arch", "fixed"), [(80, True), (90, False)])
def test_rest_is_zero(arch: int, fixed: bool, tmp_path: Path) -> None:
    source, cubin = tmp_path / "fill.cu", tmp_path / "fill.cubin"
    source.write_text(SOURCE)
    flags = [f"-arch=sm_{arch}", "-cubin", *(["-DFIXED"] if fixed else [])]
    subprocess.run(["nvcc", *flags, "-o", str(cubin), str(source)], check=True)
    done = translate_kernel(parse_cubin(cubin.read_bytes()), "fill")
    names = [i.text for b in done.cfg.blocks for i in b.instructions if i.mnemonic == "LDGSTS"]
    assert any("ZFILL" in name for name in names)
    data = np.random.default_rng(7).integers(1, 256, SHARED, dtype=np.uint8).tobytes()
    for n in (8,) if fixed else range(17):
        device = EmulatedDevice()
        given, taken = device.alloc(data), device.alloc(SHARED)
        segment = done.launch.kernarg(
            struct.pack("<QQI", given, taken, n), (LANES, 1, 1), (1, 1, 1), {}
        )
        run_code_object(done.code_object, "fill", 1, LANES, segment, device)
        expected = b""
        for lane in range(LANES):
            own = data[32 * lane : 32 * lane + 32]
            if fixed:
                counts = [(0, 16, 8), (16, 8, 3), (24, 4, 1), (28, 4, 0)]
            else:
                some = (n + lane) % 5
                counts = [(0, 16, n), (16, 8, min(n, 8)), (24, 4, some), (28, 4, n & 3)]
            expected += _expected(own, counts)
        assert device.read(taken, SHARED) == expected, n

"""Sums and products with .FTZ beside others without it: as the rules' code gives them."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier, module_text

OPERATIONS = r"""
#define THREE(kind, base) \
    asm("add.rn" kind "f32 %0, %1, %2;" : "=f"(p[base]) : "f"(x), "f"(y)); \
    asm("mul.rn" kind "f32 %0, %1, %2;" : "=f"(p[base + 1]) : "f"(x), "f"(z)); \
    asm("fma.rn" kind "f32 %0, %1, %2, %3;" : "=f"(p[base + 2]) : "f"(x), "f"(z), "f"(-y));
#define SUM(kind, base) asm("add.rn" kind "f32 %0, %1, %2;" \
                            : "=f"(p[base]) : "f"(p[base - 2]), "f"(p[base - 1]));
extern "C" __global__ void mixed(const float *a, const float *b, const float *c, float *o) {
    int i = threadIdx.x;
    float x = a[i], y = b[i], z = c[i], p[10];
    THREE(".ftz.", 0)
    THREE(".", 3)
    SUM(KIND, 6) SUM(KIND, 7) SUM(KIND, 8) SUM(KIND, 9)
    for (int n = 0; n < 10; n++) o[10 * i + n] = p[n];
}
"""
COUNT, RESULTS = 1024, 10


def _numbers() -> list[bytes]:
    """Rows of arguments: sums, products and both of them around the least normal number."""
    chance = np.random.default_rng(5)
    rows = chance.integers(0, 1 << 32, (3, COUNT), np.uint32)
    small = chance.integers(0, 4, (3, COUNT)).astype(np.uint32) << 23
    rows[0, ::2] = rows[0, ::2] & 0x807FFFFF | small[0, ::2]
    rows[1, ::2] = rows[1, ::2] & 0x807FFFFF | small[1, ::2]
    rows[2, ::2] = rows[2, ::2] & 0x807FFFFF | 0x3F000000 | small[2, ::2] << 1
    # 1 - 2^-24 times the least normal number and the like.
    rows[0, ::16], rows[2, ::16] = 0x00800000, 0x3F7FFFFF
    return [row.tobytes() for row in rows]


def _results(made: Translated, given: list[bytes]) -> bytes:
    device = EmulatedDevice(1 << 20)
    size = 4 * RESULTS * COUNT
    places = [device.alloc(side) for side in given] + [device.alloc(bytes(size))]
    shape = (COUNT, 1, 1), (1, 1, 1)
    segment = made.launch.kernarg(struct.pack("<4Q", *places), *shape, {}, 0)
    run_code_object(made.code_object, "mixed", 1, COUNT, segment, device, CompileOptions())
    return device.read(places[3], size)


@pytest.mark.parametrize("kind", [".ftz.", "."])
def test_both_in_one_kernel(tmp_path: Path, kind: str) -> None:
    """The function has the mode of most of them."""
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "mixed.cu", tmp_path / "mixed.cubin"
    source.write_text(OPERATIONS.replace("KIND", f'"{kind}"'))
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    rules = translate_kernel(parse_cubin(out.read_bytes()), "mixed")
    text = module_text(rules, DEFAULT)
    assert ("preserve-sign" in text) == (kind == ".ftz.")
    assert text.count("call i32 @llvm.amdgcn.sad.u16") == 1
    given = _numbers()
    tier = by_tier(rules, DEFAULT)
    ops = [getattr(item, "op", "") for item in tier.items]
    assert ops.count("s_denorm_mode") <= 6
    words = np.frombuffer(_results(rules, given), np.uint32)
    assert np.array_equal(np.frombuffer(_results(tier, given), np.uint32), words)
    denormal = (words & 0x7F800000 == 0) & (words & 0x7FFFFF != 0)
    by_kind = denormal.reshape(COUNT, RESULTS).any(axis=0)
    assert by_kind.tolist()[:6] == [False] * 3 + [True] * 3

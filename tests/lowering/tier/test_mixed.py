"""Sums and products of halves as binary32 numbers: v_fma_mix_f32, as the rules' code gives them."""

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
from sassxlate.lowering.tier.compiler.mixed import mixed
from sassxlate.lowering.tier.translate import by_tier

SOURCE = r"""
extern "C" __global__ void halves(const unsigned *a, const float *b, float *o) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    float x = b[i], y = b[i + 1], p[6];
    for (int n = 0; n < 6; n++) {
        unsigned h = a[6 * i + n];
        float lo, hi;
        asm("{.reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
            : "=f"(lo), "=f"(hi) : "r"(h));
        switch (n) {
        case 0: p[n] = lo + hi; break;
        case 1: p[n] = lo * hi; break;
        case 2: p[n] = lo - x + hi; break;
        case 3: p[n] = x - hi; p[n] += lo; break;
        case 4: p[n] = x * lo - hi; break;
        case 5: p[n] = __fmaf_rn(lo, y, x) * hi; break;
        }
    }
    for (int n = 0; n < 6; n++) o[6 * i + n] = p[n];
}
"""
THREADS, BLOCKS, RESULTS = 256, 4, 6
COUNT = THREADS * BLOCKS


def _results(made: Translated, given: list[bytes]) -> bytes:
    device = EmulatedDevice(1 << 20)
    size = 4 * RESULTS * COUNT
    places = [device.alloc(side) for side in given] + [device.alloc(bytes(size))]
    shape = (THREADS, 1, 1), (BLOCKS, 1, 1)
    segment = made.launch.kernarg(struct.pack("<3Q", *places), *shape, {}, 0)
    run_code_object(made.code_object, "halves", BLOCKS, THREADS, segment, device, CompileOptions())
    return device.read(places[2], size)


@pytest.mark.parametrize("flag", ["-ftz=false", "-ftz=true"])
def test_of_a_kernel(tmp_path: Path, flag: str) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "halves.cu", tmp_path / "halves.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", flag, "-fmad=false", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    rules = translate_kernel(parse_cubin(out.read_bytes()), "halves")
    tier = by_tier(rules, DEFAULT)
    ops = [getattr(item, "op", "") for item in tier.items]
    assert ops.count("v_fma_mix_f32") >= 8
    assert ops.count("v_cvt_f32_f16") <= 1
    chance = np.random.default_rng(9)
    halves = chance.integers(0, 1 << 16, (COUNT * RESULTS, 2), np.uint16)
    special = np.array([0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7C00, 0xFC00, 0x7E00], np.uint16)
    halves[::3] = chance.choice(special, (len(halves[::3]), 2))
    singles = chance.integers(0, 1 << 32, COUNT + 1, np.uint32)
    singles[::2] &= 0x807FFFFF  # denormal numbers
    singles[1::4] = singles[1::4] & 0x807FFFFF | 0x38000000
    singles[::7] = chance.choice(np.array([0, 1 << 31], np.uint32), len(singles[::7]))
    given = [halves.tobytes(), singles.tobytes()]
    wanted = np.frombuffer(_results(rules, given), np.uint32)
    got = np.frombuffer(_results(tier, given), np.uint32)
    assert np.array_equal(got, wanted), np.flatnonzero(got != wanted)[:8]


FUNCTION = """define float @f(half %h, float %x) {
entry:
  %a = tail call float @llvm.experimental.constrained.fpext.f32.f16(half %h, metadata !"e") #4
  USE
}"""


@pytest.mark.parametrize(
    ("use", "fused"),
    [
        ("%s = fadd float %x, %a, !dbg !7", "float %a, float %mixed.one, float %x), !dbg !7"),
        ("%s = fadd float %a, %a", "float %a, float %mixed.one, float %a)"),
        ("%s = fmul float %x, %a", "float %x, float %a, float -0.0)"),
        ("%s = fsub float %x, %a", "float %a, float %mixed.minus.0, float %x)"),
        ("%s = fsub float %a, %x", "float %a, float %mixed.one, float %mixed.minus.0)"),
        ("%s = fadd float %x, %a.b", ""),  # another value
        ("%s = fadd float %x, %a\n  %t = fcmp olt float %a, %x", ""),  # a comparison needs it, too
        ("%s = fadd float %x, %a\n" * 3, ""),
    ],
)
def test_lines(use: str, fused: str) -> None:
    text = FUNCTION.replace("USE", use)
    out = mixed(text)
    assert ("fpext half %h to float" in out) == bool(fused)
    if fused:
        assert f"  %s = call float @llvm.fma.f32({fused}" in out.split("\n")
    else:
        assert out.startswith(text)

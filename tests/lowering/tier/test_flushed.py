"""Results that a function's mode flushes, where LLVM knows the operation's result without it."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass import decode_section
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier, module_text

SOURCE = r"""
extern "C" __global__ void flushed(const float *a, const float *b, float *o) {
    int i = threadIdx.x;
    float x = a[i], y = b[i];
    o[3 * i] = x * y;
    asm("add.rn.ftz.f32 %0, %1, 0f80000000;" : "=f"(o[3 * i + 1]) : "f"(x));
    asm("fma.rn.ftz.f32 %0, %1, 0f3f800000, 0f80000000;" : "=f"(o[3 * i + 2]) : "f"(y));
}
"""
COUNT = 256


def test_sums_and_products_that_change_nothing_flush(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "flushed.cu", tmp_path / "flushed.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", "-use_fast_math", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    cubin = parse_cubin(out.read_bytes())
    instructions = decode_section(cubin.kernels[0].code, 80).instructions
    kept = [i.mnemonic for i in instructions if isinstance(i, Instruction) and i.has("FTZ")]
    assert len(kept) == 3
    rules = translate_kernel(cubin, "flushed")
    assert "preserve-sign" in module_text(rules, DEFAULT)
    bits = np.random.default_rng(1).integers(0, 1 << 32, (2, COUNT), np.uint32)
    bits[:, ::2] &= np.uint32(0x807FFFFF)  # denormal numbers
    bits = np.where(np.isnan(bits.view(np.float32)), np.uint32(1), bits).astype(np.uint32)
    device = EmulatedDevice(1 << 16)
    places = [device.alloc(side.tobytes()) for side in bits] + [device.alloc(bytes(12 * COUNT))]
    segment = rules.launch.kernarg(struct.pack("<3Q", *places), (COUNT, 1, 1), (1, 1, 1), {}, 0)
    code = by_tier(rules, DEFAULT).code_object
    run_code_object(code, "flushed", 1, COUNT, segment, device, CompileOptions())
    got = np.frombuffer(device.read(places[2], 12 * COUNT), np.uint32).reshape(COUNT, 3)
    tiny = bits & np.uint32(0x7F800000) == 0
    wanted = np.where(tiny, bits & np.uint32(1 << 31), bits)
    assert np.array_equal(got[:, 1], wanted[0])
    assert np.array_equal(got[:, 2], wanted[1])

"""Results that a function's mode flushes, where LLVM knows the operation's result
without it or does not see the mode."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
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
Words = npt.NDArray[np.uint32]
# Without an arithmetic operation, LLVM has their arguments as integers' bits.
CHOICES = r"""
extern "C" __global__ void flushed(const float *a, const float *b, float *o) {
    int i = threadIdx.x;
    float x = a[i], y = b[i];
    unsigned high = __float_as_uint(y) & 0xffff0000u;
    o[5 * i] = x * y;
    asm("min.ftz.f32 %0, %1, %2;" : "=f"(o[5 * i + 1]) : "f"(x), "f"(y));
    asm("max.ftz.f32 %0, %1, %2;" : "=f"(o[5 * i + 2]) : "f"(x), "f"(-y));
    asm("min.ftz.f32 %0, %1, %2;" : "=f"(o[5 * i + 3]) : "f"(x), "f"(__uint_as_float(high)));
    asm("{.reg .pred p; setp.eq.ftz.f32 p, %1, 0f00000000; selp.f32 %0, 0f3f800000, 0f40000000, p;}"
        : "=f"(o[5 * i + 4]) : "f"(__uint_as_float(high)));
}
"""


def _run(folder: Path, text: str, results: int) -> tuple[list[str], Words, Words]:
    """The mnemonics with .FTZ of a kernel of ``text``; a row of arguments, half of them denormal
    numbers, for each of its two; and what the tier's code made of them, a row for each lane."""
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = folder / "flushed.cu", folder / "flushed.cubin"
    source.write_text(text)
    command = [*nvcc.command, "-arch=sm_80", "-use_fast_math", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    cubin = parse_cubin(out.read_bytes())
    instructions = decode_section(cubin.kernels[0].code, 80).instructions
    kept = [i.mnemonic for i in instructions if isinstance(i, Instruction) and i.has("FTZ")]
    rules = translate_kernel(cubin, "flushed")
    assert "preserve-sign" in module_text(rules, DEFAULT)
    bits = np.random.default_rng(1).integers(0, 1 << 32, (2, COUNT), np.uint32)
    bits[:, ::2] &= np.uint32(0x807FFFFF)  # denormal numbers
    bits = np.where(np.isnan(bits.view(np.float32)), np.uint32(1), bits).astype(np.uint32)
    device = EmulatedDevice(1 << 16)
    size = 4 * results * COUNT
    places = [device.alloc(side.tobytes()) for side in bits] + [device.alloc(bytes(size))]
    segment = rules.launch.kernarg(struct.pack("<3Q", *places), (COUNT, 1, 1), (1, 1, 1), {}, 0)
    code = by_tier(rules, DEFAULT).code_object
    run_code_object(code, "flushed", 1, COUNT, segment, device, CompileOptions())
    got = np.frombuffer(device.read(places[2], size), np.uint32).reshape(COUNT, results)
    return kept, bits, got


def _flushed(bits: Words) -> Words:
    tiny = bits & np.uint32(0x7F800000) == 0
    return np.where(tiny, bits & np.uint32(1 << 31), bits).astype(np.uint32)


def _ordered(bits: Words) -> Words:
    """Integers in the order of the numbers, -0 below +0.  It is its own inverse."""
    signed = bits.view(np.int32)
    turned = np.where(signed < 0, signed ^ np.int32(0x7FFFFFFF), signed)
    return turned.astype(np.int32).view(np.uint32)


def _least(a: Words, b: Words) -> Words:
    return _ordered(np.minimum(_ordered(a).view(np.int32), _ordered(b).view(np.int32)).view("u4"))


def _negated(bits: Words) -> Words:
    return bits ^ np.uint32(1 << 31)


def test_sums_and_products_that_change_nothing_flush(tmp_path: Path) -> None:
    kept, bits, got = _run(tmp_path, SOURCE, 3)
    assert len(kept) == 3
    assert np.array_equal(got[:, 1], _flushed(bits[0]))
    assert np.array_equal(got[:, 2], _flushed(bits[1]))


def test_extremes_and_tests_for_zero_flush(tmp_path: Path) -> None:
    kept, bits, got = _run(tmp_path, CHOICES, 5)
    assert sorted(kept) == ["FMNMX", "FMNMX", "FMNMX", "FMUL", "FSETP"]
    x, y, high = (_flushed(side) for side in (*bits, bits[1] & np.uint32(0xFFFF0000)))
    assert np.array_equal(got[:, 1], _least(x, y))
    assert np.array_equal(got[:, 2], _negated(_least(_negated(x), y)))
    number = np.where(np.isnan(high.view(np.float32)), x, _least(x, high))
    assert np.array_equal(got[:, 3], number)
    zero = high & np.uint32(0x7FFFFFFF) == 0
    assert zero.sum() >= COUNT // 2
    assert np.array_equal(got[:, 4].view(np.float32), np.where(zero, 1, 2))

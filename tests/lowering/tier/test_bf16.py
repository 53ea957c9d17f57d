"""Products and sums of bf16: rounded to binary32, then to bf16, they are rounded once."""

from __future__ import annotations

import math
import struct
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier, module_text

SOURCE = r"""
extern "C" __global__ void numbers(const unsigned *a, const unsigned *b, const float *f,
                                   unsigned *o) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    unsigned minus = 0x80008000u, one = 0x3f803f80u;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(o[3 * i]) : "r"(a[i]), "r"(b[i]), "r"(minus));
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(o[3 * i + 1]) : "r"(a[i]), "r"(one), "r"(b[i]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(o[3 * i + 2]) : "f"(f[2 * i + 1]), "f"(f[2 * i]));
}
"""
THREADS, BLOCKS = 256, 4
Words = npt.NDArray[np.uint32]
Exact = npt.NDArray[np.float64]


def _once(value: Exact) -> Words:
    """Exact numbers as bf16, rounded once."""
    exponent = np.maximum(np.frexp(value)[1] - 1, -126) - 7
    whole = np.rint(np.ldexp(value, -exponent))
    out = np.ldexp(whole, exponent)
    with np.errstate(over="ignore"):
        return (out.astype(np.float32).view(np.uint32) >> 16).astype(np.uint32)


def _twice(value: Exact) -> Words:
    """The same by way of binary32, as the tier does it."""
    with np.errstate(over="ignore", under="ignore"):
        bits = value.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + (bits >> 16 & 1) + 0x7FFF) >> 16).astype(np.uint32)


def test_every_product() -> None:
    """Of all significands, where nothing underflows, at each place where something does, and where
    it overflows."""
    significands = np.arange(1, 256, dtype=np.float64)
    products = np.multiply.outer(significands, significands).ravel()
    for power in (0, *range(-160, -125), *range(110, 115)):
        value = np.ldexp(products, power)
        assert np.array_equal(_once(value), _twice(value)), power


def test_every_sum() -> None:
    """Of all significands, by how much the exponents differ, with both signs; what differs by more
    than 40 does not change the sum."""
    large, small = np.arange(128, 256, dtype=np.float64), np.arange(1, 256, dtype=np.float64)
    for apart in range(41):
        for sign in (1, -1):
            sums = np.add.outer(np.ldexp(large, apart), sign * small).ravel()
            for lowest in (-133, 0, 120 - apart):
                value = np.ldexp(sums, lowest)
                assert np.array_equal(_once(value), _twice(value)), (apart, sign, lowest)


def _number(half: int) -> Fraction | float:
    value = struct.unpack("<f", struct.pack("<I", half << 16))[0]
    return Fraction(value) if math.isfinite(value) else value


def _result(a: int, b: int, op: str) -> int:
    """What CUDA gives for two bf16."""
    x, y = _number(a), _number(b)
    sign = (a ^ b) & 0x8000 if op == "mul" else a & b & 0x8000
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        exact = x * y if op == "mul" else x + y
        if exact == 0:
            return sign
        return _rounded(abs(exact)) | (0x8000 if exact < 0 else 0)
    p, q = (float(np.sign(float(v)) if math.isfinite(v) else v) for v in (x, y))
    out = p * q if op == "mul" else p + q
    return 0x7FFF if math.isnan(out) else 0xFF80 if out < 0 else 0x7F80


def _rounded(exact: Fraction) -> int:
    exponent = -133
    while exact >= Fraction(2) ** (exponent + 8):
        exponent += 1
    whole = round(exact / Fraction(2) ** exponent)  # to even
    return min((exponent + 133) * 128 + whole, 0x7F80)


def test_of_a_kernel(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "numbers.cu", tmp_path / "numbers.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    rules = translate_kernel(parse_cubin(out.read_bytes()), "numbers")
    assert "lerp" not in module_text(rules, DEFAULT)  # nothing is rounded down or up
    count = THREADS * BLOCKS
    chance = np.random.default_rng(3)
    sides = [chance.integers(0, 1 << 16, (count, 2), np.uint16) for _ in range(2)]
    # Products around the least numbers and the largest, and sums of numbers that are close.
    small = chance.integers(0, 150, (count // 2, 2)).astype(np.uint16) << 7
    sides[0][::2] = sides[0][::2] & 0x807F | small
    other = np.clip(chance.choice([-6, 127, 381], (count // 2, 2)) - (small >> 7), 0, 255)
    sides[1][::2] = sides[1][::2] & 0x807F | (other.astype(np.uint16) << 7)
    near = chance.integers(-2, 3, (count // 4, 2)).astype(np.int16) << 7
    sides[1][1::4] = sides[0][1::4] + near.astype(np.uint16) ^ (sides[1][1::4] & 0x807F)
    singles = chance.integers(0, 1 << 32, (count, 2), np.uint32)
    singles[::2] = singles[::2] & 0xFFFF0000 | chance.integers(0x7FFF, 0x8002, (count // 2, 2))
    device = EmulatedDevice(1 << 20)
    given = [*sides, singles]
    places = [device.alloc(side.tobytes()) for side in given] + [device.alloc(bytes(12 * count))]
    shape = (THREADS, 1, 1), (BLOCKS, 1, 1)
    segment = rules.launch.kernarg(struct.pack("<4Q", *places), *shape, {}, 0)
    code = by_tier(rules, DEFAULT).code_object
    run_code_object(code, "numbers", BLOCKS, THREADS, segment, device, CompileOptions())
    got = np.frombuffer(device.read(places[3], 12 * count), np.uint16).reshape(count, 3, 2)
    for op, results in (("mul", got[:, 0]), ("add", got[:, 1])):
        for a, b, out16 in zip(*(side.ravel() for side in sides), results.ravel(), strict=True):
            assert out16 == _result(int(a), int(b), op), (hex(a), hex(b), op)
    narrow = _twice_of_bits(singles)
    assert np.array_equal(got[:, 2].astype(np.uint32), narrow)


def _twice_of_bits(bits: Words) -> Words:
    none = bits & 0x7FFFFFFF > 0x7F800000
    wide = bits.astype(np.uint64)
    out = (wide + (wide >> 16 & 1) + 0x7FFF) >> 16
    return np.where(none, 0x7FFF, out).astype(np.uint32)

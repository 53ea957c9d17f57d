"""Words that a block's warps leave in shared memory: loaded together, and those of warps that count
chosen by comparisons of lanes."""

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
from sassxlate.lowering.tier.compiler.lane_tests import by_lanes
from sassxlate.lowering.tier.compiler.shared_words import together
from sassxlate.lowering.tier.translate import by_tier

SOURCE = r"""
extern "C" __global__ void most(const float *a, const int *counts, float *o) {
    __shared__ __align__(16) float parts[16];
    float x = a[threadIdx.x + blockIdx.x * 256];
    if ((threadIdx.x & 31) == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    int n = counts[blockIdx.x];
    if (threadIdx.x < 8) {
        x = parts[threadIdx.x];
        #pragma unroll
        for (int k = 0; k < 8; k++)
            if (n > 32 * k) x = x < parts[k] ? parts[k] : x;
        o[threadIdx.x + blockIdx.x * 8] = x;
    }
}
"""
THREADS, COUNTS = 256, (0, 1, 31, 32, 33, 100, 224, 225, 256, -5, 1 << 30)


def _results(made: Translated, given: list[bytes]) -> bytes:
    device = EmulatedDevice(1 << 20)
    size = 4 * 8 * len(COUNTS)
    places = [device.alloc(side) for side in given] + [device.alloc(bytes(size))]
    shape = (THREADS, 1, 1), (len(COUNTS), 1, 1)
    segment = made.launch.kernarg(struct.pack("<3Q", *places), *shape, {}, 0)
    options = CompileOptions()
    run_code_object(made.code_object, "most", len(COUNTS), THREADS, segment, device, options)
    return device.read(places[2], size)


def test_of_a_kernel(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "most.cu", tmp_path / "most.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", "-ftz=true", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    rules = translate_kernel(parse_cubin(out.read_bytes()), "most")
    tier = by_tier(rules, DEFAULT)
    ops = [getattr(item, "op", "") for item in tier.items]
    assert ops.count("ds_load_b128") == 2
    assert ops.count("s_cselect_b32") == 0
    chance = np.random.default_rng(6)
    numbers = chance.integers(0, 1 << 32, THREADS * len(COUNTS), np.uint32)
    numbers[::3] &= 0x807FFFFF  # denormal numbers
    given = [numbers.tobytes(), np.array(COUNTS, np.int32).tobytes()]
    assert _results(tier, given) == _results(rules, given)


LOAD = "  %l{0} = load i32, ptr addrspace(3) inttoptr (i32 {0} to ptr addrspace(3)), align 4"
FOUR = [LOAD.format(at) for at in (20, 16, 28, 24)]


def _function(*lines: str) -> str:
    return "\n".join(
        ["define void @f(ptr %p, i32 %n, i32 %v) {", "entry:", *lines, "  ret void", "}"]
    )


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        (FOUR, True),
        ([*FOUR[:2], "  %x = add i32 %n, 1", *FOUR[2:]], True),
        ([*FOUR[:2], "  store i32 %n, ptr %p", *FOUR[2:]], False),
        ([*FOUR[:2], '  fence syncscope("wavefront") acq_rel', *FOUR[2:]], False),
        ([*FOUR[:2], "  %x = call i32 @other()", *FOUR[2:]], False),
        ([*FOUR[:2], "  %x = load volatile i32, ptr %p", *FOUR[2:]], False),
        ([*FOUR[:2], "  br label %next", "next:", *FOUR[2:]], False),
        (FOUR[:3], False),
        ([LOAD.format(at) for at in (20, 24, 28, 32)], False),
    ],
)
def test_four_words(lines: list[str], joined: bool) -> None:
    out = together(_function(*lines))
    wide = "load <4 x i32>, ptr addrspace(3) inttoptr (i32 16 to ptr addrspace(3)), align 16"
    assert (wide in out) == joined
    assert ("%l24 = extractelement <4 x i32> %shared.0, i64 2" in out) == joined
    assert ("%l24 = load i32" in out) != (joined or len(lines) == 3)


LANES = ["  %me = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)", "  %other = icmp eq i32 %v, 3"]


@pytest.mark.parametrize(
    ("given", "other", "count", "moved"),
    [
        ("%n", "%mine", 3, True),
        ("%n", "%mine", 2, False),
        ("%n", "%other", 3, False),  # as far as is known, no lane's
        ("%me", "%mine", 3, False),  # in a vector register as it is
    ],
)
def test_comparisons(given: str, other: str, count: int, moved: bool) -> None:
    lines = [*LANES, "  %mine = icmp ult i32 %me, %v"]
    for at in range(count):
        lines.append(f"  %t{at} = icmp sgt i32 {given}, {32 * at}, !dbg !7")
        lines.append(f"  %b{at} = and i1 %t{at}, {other}")
    out = by_lanes(_function(*lines)).split("\n")
    move = '  %tested.0 = call i32 asm "", "=v,0"(i32 %n), !dbg !7'
    assert (move in out) == moved
    assert ("  %t1 = icmp sgt i32 %tested.0, 32, !dbg !7" in out) == moved
    assert (f"  %t1 = icmp sgt i32 {given}, 32, !dbg !7" in out) != moved


def test_a_comparison_with_another_use_stays() -> None:
    lines = [*LANES, "  %mine = icmp ult i32 %me, %v"]
    for at in range(3):
        lines.append(f"  %t{at} = icmp sgt i32 %n, {32 * at}")
        lines.append(f"  %b{at} = and i1 %t{at}, %mine")
    text = _function(*lines, "  %x = select i1 %t1, i32 1, i32 2")
    assert by_lanes(text).strip() == text

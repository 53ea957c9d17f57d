"""Shuffles without a choice of the lane: in reductions of a warp, not where the choice matters."""

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
from sassxlate.lowering.tier.compiler.shuffled import unchosen
from sassxlate.lowering.tier.translate import by_tier

# As CUB reduces a warp of which some lanes count, and one of which all do; then what lacks one of
# the conditions: a guard that holds for too many lanes, a result that is used without one.
SOURCE = r"""
template <int STEP> __device__ void most(float &x, int last) {
    float y;
    asm("shfl.sync.down.b32 %0, %1, %2, %3, -1;" : "=f"(y) : "f"(x), "n"(STEP), "r"(last));
    int lane;
    asm("mov.u32 %0, %laneid;" : "=r"(lane));
    if (lane + STEP <= last) x = x < y ? y : x;
}
template <int STEP, int MORE> __device__ void all(int &x, int lane) {
    int y = __shfl_down_sync(~0u, x, STEP);
    if (lane < 32 - STEP + MORE) x = 3 * x + y;
}
template <int STEP> __device__ void sum(float &x) {
    asm volatile("{.reg .f32 r; .reg .pred p; shfl.sync.down.b32 r|p, %0, %1, 31, -1;"
                 "@p add.ftz.f32 r, r, %0; mov.f32 %0, r;}" : "+f"(x) : "n"(STEP));
}
extern "C" __global__ void reduced(const float *a, const int *counts, float *o) {
    int i = threadIdx.x + blockIdx.x * blockDim.x, lane;
    asm("mov.u32 %0, %laneid;" : "=r"(lane));
    float x = a[i], s = x;
    int last = counts[i / 32], n = __float_as_int(x), m = n, k = n;
    most<1>(x, last); most<2>(x, last); most<4>(x, last); most<8>(x, last); most<16>(x, last);
    all<1, 0>(n, lane); all<2, 0>(n, lane); all<16, 0>(n, lane);
    all<1, 1>(m, lane); all<4, 1>(m, lane);
    k += __shfl_down_sync(~0u, k, 2); k ^= 5 * __shfl_up_sync(~0u, k, 3);
    int u = __shfl_up_sync(~0u, k, 1); if (lane >= 1) k += u;
    u = __shfl_up_sync(~0u, k, 8); if (lane >= 8) k = 7 * k + u;
    sum<1>(s); sum<2>(s); sum<4>(s); sum<8>(s); sum<16>(s);
    float *to = o + 5 * i;
    to[0] = x; to[1] = __int_as_float(n); to[2] = __int_as_float(m);
    to[3] = __int_as_float(k); to[4] = s;
}
"""
THREADS, BLOCKS, RESULTS = 128, 4, 5
COUNT = THREADS * BLOCKS


def _results(made: Translated, given: list[bytes]) -> bytes:
    device = EmulatedDevice(1 << 20)
    size = 4 * RESULTS * COUNT
    places = [device.alloc(side) for side in given] + [device.alloc(bytes(size))]
    shape = (THREADS, 1, 1), (BLOCKS, 1, 1)
    segment = made.launch.kernarg(struct.pack("<3Q", *places), *shape, {}, 0)
    run_code_object(made.code_object, "reduced", BLOCKS, THREADS, segment, device, CompileOptions())
    return device.read(places[2], size)


def test_reductions(tmp_path: Path) -> None:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        pytest.skip("no nvcc, no NVIDIA wheels")
    source, out = tmp_path / "reduced.cu", tmp_path / "reduced.cubin"
    source.write_text(SOURCE)
    command = [*nvcc.command, "-arch=sm_80", "-ftz=true", "-cubin", "-o", out, source]
    subprocess.run(command, check=True, capture_output=True)
    rules = translate_kernel(parse_cubin(out.read_bytes()), "reduced")
    tier = by_tier(rules, DEFAULT)
    moved = [i for i in tier.items if getattr(i, "op", "") == "ds_bpermute_b32"]
    assert sum(getattr(i, "imm", 0) != 0 for i in moved) >= 10
    chance = np.random.default_rng(4)
    numbers = chance.integers(0, 1 << 32, COUNT, np.uint32)
    numbers[::3] &= 0x807FFFFF  # denormal numbers
    special = np.array([0, 1 << 31, 0x7FC00000, 0xFF800001, 0x7F800000, 0xFF800000], np.uint32)
    numbers[::5] = chance.choice(special, len(numbers[::5]))
    # Lanes that count, and limits that no reduction has: they name segments, too.
    counts = np.array([31, 0, 5, 30, -1, 17, 32, 0x1F1F, 0x101F, 0x7FFFFC1F, -(1 << 31), 0x0F03,
                       16, 1, 0x1C05, 64], np.int32)  # fmt: skip
    assert len(counts) == COUNT // 32
    given = [numbers.tobytes(), counts.tobytes()]
    wanted = np.frombuffer(_results(rules, given), np.uint32).reshape(-1, RESULTS)
    got = np.frombuffer(_results(tier, given), np.uint32).reshape(-1, RESULTS)
    wrong = np.argwhere(got != wanted)
    assert not len(wrong), (wrong[:8], got[tuple(wrong[0])], wanted[tuple(wrong[0])])


FUNCTION = """define i32 @f(i32 %v, i32 %limit, i1 %any) {
entry:
  %me = tail call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
  %next = add i32 %me, 4
  %out.of.it = icmp slt i32 LIMIT, %next
  %lane = select i1 %out.of.it, i32 %me, i32 %next
  %place = shl i32 %lane, 2
  %s = tail call i32 @llvm.amdgcn.ds.bpermute(i32 %place, i32 %v)
  USE
  ret i32 %r
}
"""
LESS = "%less = icmp slt i32 %v, %s\n  %both = and i1 %less, TEST\n  "
CHOSEN = "%r = select i1 %both, i32 %s, i32 %v"


@pytest.mark.parametrize(
    ("limit", "use", "plain"),
    [
        ("31", "%r = select i1 %out.of.it, i32 7, i32 %s", True),
        ("31", "%r = select i1 %out.of.it, i32 %s, i32 7", True),  # the lane's own value
        ("31", "%t = icmp slt i32 %me, 28\n  %r = select i1 %t, i32 %s, i32 7", True),
        ("31", "%t = icmp slt i32 %me, 29\n  %r = select i1 %t, i32 %s, i32 7", False),
        ("31", "%t = icmp slt i32 %me, 28\n  %r = select i1 %t, i32 7, i32 %s", False),
        ("31", "%x = add i32 %s, 1\n  %r = select i1 %out.of.it, i32 7, i32 %x", True),
        ("31", "%x = add i32 %s, 1\n  %r = select i1 %out.of.it, i32 %x, i32 7", False),
        ("31", "%x = udiv i32 7, %s\n  %r = select i1 %out.of.it, i32 7, i32 %x", False),
        ("31", "%r = select i1 %out.of.it, i32 7, i32 %s\n  ret i32 %s", False),
        ("%limit", "%r = select i1 %any, i32 %s, i32 7", False),
        ("%limit", "%t = icmp sge i32 %limit, %next\n  " + LESS + CHOSEN, True),
        # Another sum than the less of both; one that may be equal; other guards.
        ("%limit", "%t = icmp sge i32 %limit, %next\n  " + LESS
         + "%x = add i32 %s, 1\n  %r = select i1 %both, i32 %x, i32 %v", False),
        ("%limit", "%t = icmp sge i32 %limit, %next\n  " + LESS.replace("slt", "sle")
         + CHOSEN, False),
        ("%limit", "%t = icmp sge i32 %limit, %next\n  " + LESS
         + CHOSEN.replace("i32 %v", "i32 %limit"), False),
        ("%limit", "%t = icmp sge i32 %limit, %next\n  " + LESS
         + "%c = select i1 %any, i32 %s, i32 %v\n  %d = select i1 %both, i32 %s, i32 %v\n  "
         "%r = add i32 %c, %d", False),  # chosen under another guard, too
        ("%limit", "%t = icmp sge i32 %limit, %me\n  " + LESS + CHOSEN, False),
        ("%limit", "%t = icmp sgt i32 %limit, %me\n  " + LESS + CHOSEN, False),
    ],
)  # fmt: skip
def test_lines(limit: str, use: str, plain: bool) -> None:
    text = FUNCTION.replace("LIMIT", limit).replace("USE", use.replace("TEST", "%t"))
    out = unchosen(text)
    assert ("bpermute(i32 %lane.0, i32 %v)" in out) == plain
    assert (out.strip() == text.strip()) != plain


def test_halves() -> None:
    """Vectors, of which the text is not read."""
    halves = "%h = bitcast i32 %s to <2 x half>\n  "
    chosen = "%c = select i1 %out.of.it, <2 x half> zeroinitializer, <2 x half> %h\n  "
    back = "%r = bitcast <2 x half> %c to i32"
    shuffled = FUNCTION.replace("i32 %v)", "i32 %u)").replace(
        "%me =", "%x = bitcast i32 %v to <2 x half>\n  %y = fneg <2 x half> %x\n  "
        "%u = bitcast <2 x half> %y to i32\n  %me =", 1
    )  # fmt: skip
    for text in (
        FUNCTION.replace("USE", halves + chosen + back),
        shuffled.replace("USE", "%r = add i32 %s, 1"),
    ):
        given = text.replace("LIMIT", "31")
        assert unchosen(given).strip() == given.strip()


def test_the_least_of_two_limits() -> None:
    use = "%t = icmp sge i32 %limit, %next\n  " + LESS.replace("TEST", "%t") + CHOSEN
    text = FUNCTION.replace("LIMIT", "%held").replace("USE", use)
    out = unchosen(text)
    assert "%inside.0.0.l = call i32 @llvm.smin.i32(i32 %held, i32 %limit)" in out
    assert "%inside.0.0 = icmp sge i32 %inside.0.0.l, %next" in out
    assert "%both = and i1 %less, %inside.0.0" in out
    assert "declare i32 @llvm.smin.i32(i32, i32)" in out

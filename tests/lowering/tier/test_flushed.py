"""Results that a function's mode flushes, where LLVM knows the operation's result
without it or does not see the mode."""

from __future__ import annotations

import re
import struct
import subprocess
from itertools import product
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
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code

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


def _mask(place: int, at: int) -> int:
    """Bits that are compared: others for each comparison, so that LLVM computes them for it."""
    return ~(at | place << 4) & 0xFFFFFFFF


# Each comparison is of an integer's bits, as a number, which nothing else reads: a and b, |a| and
# b, a and 0, |a| and 0, a and 1.
PREDICATES = ("eq", "ne", "lt", "ge", "equ", "neu", "ltu", "geu", "gt", "leu")
SIDES = (("x", "y"), ("fabsf(x)", "y"), ("x", "0.0f"), ("fabsf(x)", "0.0f"), ("x", "1.0f"))
COMPARED = "".join(
    f"""
    x = __uint_as_float(__float_as_uint(a[i]) & {_mask(place, at):#x}u);
    asm("{{.reg .pred p; setp.{name}.ftz.f32 p, %1, %2; selp.u32 %0, {1 << at}, 0, p;}}"
        : "=r"(one) : "f"({a}), "f"({b}));
    {word} |= one;"""
    for place, (word, (a, b)) in enumerate(zip("pqrst", SIDES, strict=True))
    for at, name in enumerate(PREDICATES)
)
COMPARISONS = f"""
extern "C" __global__ void flushed(const float *a, const float *b, unsigned *o) {{
    int i = threadIdx.x;
    float x = a[i], y = b[i];
    unsigned one, p = 0, q = 0, r = 0, s = 0, t = 0;{COMPARED}
    o[6 * i] = p;
    o[6 * i + 1] = q;
    o[6 * i + 2] = r;
    o[6 * i + 3] = s;
    o[6 * i + 4] = t;
    o[6 * i + 5] = __float_as_uint(x * y);
}}
"""
# Without .FTZ, but nothing that the mode could flush: halves as numbers, their sums, and numbers
# that are narrowed to halves.
NARROW = r"""
#include <cuda_fp16.h>
extern "C" __global__ void flushed(const unsigned *a, const unsigned *b, unsigned *o) {
    int i = threadIdx.x;
    float x, y, sum;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(x) : "r"(a[i]));
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(y) : "r"(b[i]));
    asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(sum) : "f"(x), "f"(__uint_as_float(b[i])));
    o[4 * i] = __float_as_uint(x);
    o[4 * i + 1] = __float_as_uint(y);
    o[4 * i + 2] = __float_as_uint(sum * __uint_as_float(a[i]));
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b32 %0, {h, h};}"
        : "=r"(o[4 * i + 3]) : "f"(__uint_as_float(a[i])));
}
"""
# A bf16 is compared as a binary32 number.
BFLOATS = r"""
extern "C" __global__ void flushed(const float *a, const float *b, float *o) {
    int i = threadIdx.x;
    asm("min.bf16x2 %0, %1, %2;"
        : "=r"(((unsigned *)o)[2 * i])
        : "r"(((const unsigned *)a)[i]), "r"(((const unsigned *)b)[i]));
    o[2 * i + 1] = a[i] * b[i];
}
"""


def _run(
    folder: Path, text: str, results: int, *, nans: bool = False, mode: bool = True
) -> tuple[list[str], Words, Words]:
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
    assert ("preserve-sign" in module_text(rules, DEFAULT)) == mode
    bits = np.random.default_rng(1).integers(0, 1 << 32, (2, COUNT), np.uint32)
    bits[:, ::2] &= np.uint32(0x807FFFFF)  # denormal numbers
    if nans:
        bits[:, 1::8] |= np.uint32(0x7F800000)
        bits[1, ::16] = bits[0, ::16]
    else:
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


def test_comparisons_flush(tmp_path: Path) -> None:
    kept, bits, got = _run(tmp_path, COMPARISONS, 6, nans=True)
    assert kept.count("FSETP") + kept.count("FSET") > 40
    y = _flushed(bits[1]).view(np.float32)
    zero, one = np.zeros_like(y), np.ones_like(y)
    for place, at in product(range(len(SIDES)), range(len(PREDICATES))):
        x = _flushed(bits[0] & np.uint32(_mask(place, at))).view(np.float32)
        a, b = ((x, y), (abs(x), y), (x, zero), (abs(x), zero), (x, one))[place]
        equal, less, never = a == b, a < b, np.isnan(a) | np.isnan(b)
        more = ~(equal | less | never)
        hits = (equal, less | more, less, more | equal, equal | never, ~equal, less | never,
                ~less, more, ~more)  # fmt: skip
        wrong = np.flatnonzero(got[:, place] >> np.uint32(at) & 1 != hits[at])
        assert not wrong.size, (SIDES[place], PREDICATES[at], wrong)


def test_halves_are_kept_where_the_mode_flushes(tmp_path: Path) -> None:
    kept, bits, got = _run(tmp_path, NARROW, 4)
    assert sorted(kept) == ["FADD", "FMUL"]
    low = (bits[0] & np.uint32(0xFFFF)).astype(np.uint16).view(np.float16).astype(np.float32)
    high = (bits[1] >> np.uint32(16)).astype(np.uint16).view(np.float16).astype(np.float32)
    for place, wanted in enumerate((low, high)):
        known = ~np.isnan(wanted)
        assert np.array_equal(got[known, place], wanted.view(np.uint32)[known])
    assert (abs(low[low != 0]) < 2.0**-14).any()  # denormal halves
    with np.errstate(over="ignore"):
        narrow = bits[0].view(np.float32).astype(np.float16).view(np.uint16)
    assert np.array_equal(got[:, 3] & np.uint32(0xFFFF), narrow)


def test_bf16_is_not_flushed(tmp_path: Path) -> None:
    kept, bits, got = _run(tmp_path, BFLOATS, 2, mode=False)
    assert kept == ["FMUL"]
    x, y, out = (side & np.uint32(0xFFFF0000) for side in (*bits, got[:, 0]))
    known = ~(np.isnan(x.view(np.float32)) | np.isnan(y.view(np.float32)))
    assert (x[known] & np.uint32(0x7F800000) == 0).any()
    assert np.array_equal(out[known], _least(x, y)[known])


_STORED = """
S2R R0, SR_TID.X ;
ULDC.64 UR4, c[0x0][0x118] ;
MOV R6, 0x4 ;
IMAD.WIDE R2, R0, R6, c[0x0][0x160] ;
LDG.E R4, [R2.64] ;
IMAD.WIDE R2, R0, R6, c[0x0][0x170] ;
FMUL.FTZ R8, R4, R4 ;
FADD.FTZ R8, R8, -R4 ;
{between}STG.E [R2.64], R8 ;
EXIT ;
"""


@pytest.mark.parametrize("denormal", [False, True])
def test_a_nan_that_is_stored(*, denormal: bool) -> None:
    """v_max3_f32 repairs what the mode flushed, but not what may be another's denormal number."""
    between = "ISETP.GT.AND P0, PT, R0, 0x3, PT ;\n@P0 MOV R8, 0x1 ;\n" if denormal else ""
    cubin = with_code(assembled(_STORED.format(between=between), 80), 80)
    text = module_text(translate_kernel(cubin, "divergent_if"), DEFAULT)
    assert (re.search(r"select i1 [^,]*, i32 2147483647,", text) is not None) == denormal
    given = [0x7F800000, 0x00000001, 0x7FC00001, 0x3F000000, *[0x3F800000, 0xFFC12345] * 14]
    words = np.array(given, np.uint32)
    prepared = Prepared(cubin, "divergent_if", (1, 1, 1), (32, 1, 1), (words, words, words), 0)
    out = prepared.translated(tier=True)
    assert np.array_equal(out, prepared.interpreted())
    assert list(out[:3]) == [0x7FFFFFFF, 0, 0x7FFFFFFF]
    assert set(out[4:]) == ({1} if denormal else {0, 0x7FFFFFFF})

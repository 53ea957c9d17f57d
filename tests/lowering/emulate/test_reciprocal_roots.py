"""v_rsq_f32 is correctly rounded, by a series as by a root and a division."""

from __future__ import annotations

import math
import random
import struct

import numpy as np
import numpy.typing as npt
import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import (
    BaselineKernel,
    EmulatedDevice,
    LoadedImage,
    Setup,
    run_image,
)

from .baseline import ISAS, baseline

# Of all numbers from 1 to 4 those whose reciprocal roots are nearest to the middle of two.
_HARDEST = (
    0x403A18E3, 0x4009F038, 0x407FFFFE, 0x3FBA2A39, 0x3FD2208F, 0x3FED3230, 0x3F8A5C86, 0x3FDAE942,
    0x3FD19305, 0x401DD16A, 0x3FA49C14, 0x407DE1E1, 0x3F9CA018, 0x407DBBAC, 0x3F9CFD44, 0x3FD7AEA0,
    0x4042ED16, 0x3FC653DA, 0x40355499, 0x4020BF32, 0x4023707B, 0x3FC2CB7F, 0x3F83FD98, 0x406A3ECE,
    0x407FFFFA, 0x4016692D, 0x404CE453, 0x4034D9E1, 0x3FFC2B56, 0x4015E036, 0x3F83C7B7, 0x4011FDC7,
)  # fmt: skip
_INF = 0x7F800000
_SPECIAL = {
    0: _INF, 1 << 31: _INF | 1 << 31, _INF: 0, _INF | 1 << 31: 0xFFC00000, 0xBF800000: 0xFFC00000,
    0x7FC00001: 0x7FC00001, 0xFFC12345: 0xFFC12345, 0x7F812345: 0x7FC12345, 0x7F7FFFFF: 0x1F800000,
    0x00800000: 0x5F000000, 0x3F800000: 0x3F800000, 0x40800000: 0x3F000000, 0x3E800000: 0x40000000,
}  # fmt: skip


def _rounded(word: int) -> int:
    """1 / sqrt of a normal positive number, in integers."""
    mantissa, exponent = word & 0x7FFFFF | 1 << 23, (word >> 23) - 150
    if exponent % 2:
        mantissa, exponent = 2 * mantissa, exponent - 1
    root = math.isqrt((1 << 200) // mantissa)  # times 2 ** 100
    shift = root.bit_length() - 24
    nearest = (root + (1 << shift - 1)) >> shift
    (out,) = struct.unpack(
        "<I", struct.pack("<f", math.ldexp(nearest, shift - 100 - exponent // 2))
    )
    return int(out)


@pytest.mark.parametrize("isa", [*ISAS, None])
def test_each_result_is_the_nearest(isa: Isa | None) -> None:
    """By compiled code, and without an ISA by the baseline tier."""
    code = assemble(
        [
            Inst("s_load_b64", (S(4, 2), S(0, 2))),
            Inst("v_lshlrev_b32", (V(3), I(2), V(0))),
            Inst("s_waitcnt"),
            Inst("global_load_b32", (V(1), V(3), S(4, 2))),
            Inst("s_waitcnt"),
            Inst("v_rsq_f32", (V(2), V(1))),
            Inst("global_store_b32", (V(3), V(2), S(4, 2))),
            Inst("s_waitcnt_vscnt", (Sp("null"),)),
            Inst("s_endpgm"),
        ]
    ).data
    loaded: LoadedImage | BaselineKernel
    if isa is None:
        loaded = baseline(code, CompileOptions())
    else:
        loaded = LoadedImage(compile_kernel(code, 0, CompileOptions(isa=isa)))
    rng = random.Random(5)
    words = [w + rng.randrange(-60, 60) * (1 << 24) for w in _HARDEST * 4]
    words += [*_HARDEST, *(rng.randrange(1 << 23, _INF) for _ in range(3000))]
    expected = {**{w: _rounded(w) for w in words}, **_SPECIAL}
    words = list(expected)
    words += words[: -len(words) % 32]
    device = EmulatedDevice(1 << 20)
    for at in range(0, len(words), 32):
        row = device.alloc(struct.pack("<32I", *words[at : at + 32]))
        run_image(loaded, Setup(), 1, 32, struct.pack("<Q", row), device)
        got = struct.unpack("<32I", device.read(row, 128))
        assert list(map(hex, got)) == [hex(expected[w]) for w in words[at : at + 32]]


_F32 = npt.NDArray[np.float32]
_F64 = npt.NDArray[np.float64]


def _rounded_once(high: _F64, low: _F64) -> _F32:
    """The binary32 number nearest to a sum, by way of the sum rounded to odd in binary64."""
    total = high + low
    other = total - high
    error = (high - (total - other)) + (low - other)
    bits = total.view(np.int64)
    # Of an inexact sum with an even last bit, the neighbour on the error's side.
    step = np.where((error > 0) == (total > 0), 1, -1)
    odd = np.where((error != 0) & (bits % 2 == 0), bits + step, bits).view(np.float64)
    return odd.astype(np.float32)


def _second_step(x: _F64, y: _F64) -> _F32:
    """What `transcendental._nearer` computes in binary32; binary64 holds all but its last sum."""
    high = (x * y).astype(np.float32).astype(np.float64)
    low = x * y - high
    e = (1 - high * y).astype(np.float32).astype(np.float64)
    e = (e - low * y).astype(np.float32).astype(np.float64)
    square = (e * e).astype(np.float32).astype(np.float64)
    step = (square * 0.375 + e * 0.5).astype(np.float32).astype(np.float64)
    return _rounded_once(y, y * step)


@pytest.mark.sweep
def test_the_second_step_ends_at_the_nearest_from_it_and_from_both_beside_it() -> None:
    """Of all mantissas and both parities of the exponent."""
    for first in range(0x3F800000, 0x40800000, 1 << 20):
        x = np.arange(first, first + (1 << 20), dtype=np.int32).view(np.float32).astype(np.float64)
        # Right: no root's reciprocal is as near to the middle of two numbers as 2 ** -51.74.
        nearest = (1 / np.sqrt(x)).astype(np.float32)
        for beside in (-1, 0, 1):
            y = (nearest.view(np.int32) + np.int32(beside)).view(np.float32)
            assert (_second_step(x, y.astype(np.float64)) == nearest).all(), (hex(first), beside)

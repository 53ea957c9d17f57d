"""NaNs replaced by NVIDIA's in one maximum, as its meaning says, in all modes."""

from __future__ import annotations

import random
import struct

import pytest

from sassxlate.cfg.rdna3_flow import ModeBits
from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.semantics import semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

_NAN, _SIGN = 0x7FFFFFFF, 1 << 31
_EDGES = (
    0, _SIGN, 1, _SIGN | 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000,
    0xFF800000, 0x7F800001, 0xFF800001, 0x7FBFFFFF, 0x7FC00000, 0xFFC00000, _NAN, 0xFFFFFFFF,
)  # fmt: skip


@pytest.mark.parametrize("float_mode", [0xF0, 0xC0, 0xD0, 0xE0])
@pytest.mark.parametrize("ieee", [False, True])
def test_as_the_maximum_means(float_mode: int, ieee: bool) -> None:
    rng = random.Random(float_mode)
    words = [*_EDGES, *(rng.getrandbits(32) for _ in range(32 - len(_EDGES)))]
    canonical: tuple[Arg, ...] = (V(1), I(_NAN), V(2), I(_NAN))
    tried = (
        Inst("v_max3_f32", canonical),
        Inst("v_max3_f32", canonical, neg=2),
        Inst("v_max3_f32", canonical, abs=2),
        Inst("v_max3_f32", (V(1), I(_NAN), V(2), I(0))),
        Inst("v_min3_f32", canonical),
    )
    program = [
        Inst("s_load_b64", (S(4, 2), S(0, 2))),
        Inst("v_lshlrev_b32", (V(3), I(2), V(0))),
        Inst("s_waitcnt"),
        Inst("global_load_b32", (V(2), V(3), S(4, 2))),
        Inst("s_waitcnt"),
    ]
    for number, inst in enumerate(tried):
        program += [inst, Inst("global_store_b32", (V(3), V(1), S(4, 2)), 128 * number)]
    code = assemble([*program, Inst("s_waitcnt_vscnt", (Sp("null"),)), Inst("s_endpgm")]).data
    options = CompileOptions(float_mode=float_mode, ieee=ieee)
    device = EmulatedDevice(1 << 16)
    out = device.alloc(128 * len(tried))
    device.write(out, struct.pack("<32I", *words))
    run_image(
        LoadedImage(compile_kernel(code, 0, options)),
        Setup(),
        1,
        32,
        struct.pack("<Q", out),
        device,
    )
    mode = ModeBits(float_mode | options.dx10_clamp << 8 | ieee << 9).mode()
    assert mode is not None
    for number, inst in enumerate(tried):
        found = struct.unpack("<32I", device.read(out + 128 * number, 128))
        row, last = semantics_table()[inst.op], inst.args[3]
        assert isinstance(last, I)
        for word, got in zip(words, found, strict=True):
            value = (word & ~_SIGN if inst.abs else word) ^ (_SIGN if inst.neg else 0)
            operands = (Bits(_NAN, 32), Bits(value, 32), Bits(last.value, 32))
            assert got == row.fn(Reference(), mode, *operands).n, (inst, hex(word))

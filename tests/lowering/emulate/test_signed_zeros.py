"""A minimum with a zero, between conversions, keeps the sign of zero.

LLVM 22 compares before a widening conversion, moves the select out of it as well, and turns its
comparison into one that holds for both zeros; the emulator's conversions are opaque to LLVM.
"""

from __future__ import annotations

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

_VALUES = (0x8000, 0, 0x3C00, 0xBC00, 1, 0x8001, 0x7E00, 0xFC00)


def test_minimum_of_zeros() -> None:
    """The half's minimum with a constant +0, through binary32: for -0 the result is -0."""
    program = [
        Inst("s_load_b64", (S(0, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(3), I(2), V(0))),
        Inst("global_load_b32", (V(1), V(3), S(0, 2))),
        Inst("s_waitcnt", (), 0),
        Inst("v_bfe_u32", (V(1), V(1), I(0), I(16))),
        Inst("v_mov_b32", (V(4), I(0x00800000))),
        Inst("v_bfe_u32", (V(4), V(4), I(0), I(16))),
        Inst("v_cvt_f32_f16", (V(5), V(1))),
        Inst("v_cvt_f32_f16", (V(6), V(4))),
        Inst("v_min_f32", (V(7), V(5), V(6))),
        Inst("v_cvt_f16_f32", (V(8), V(7))),
        Inst("v_and_b32", (V(8), I(0xFFFF), V(8))),
        Inst("v_cmp_u_f32", (S(8), V(5), V(6))),
        Inst("v_cndmask_b32", (V(8), V(8), I(0x7FFF), S(8))),
        Inst("global_store_b32", (V(3), V(8), S(0, 2))),
        Inst("s_endpgm", ()),
    ]
    image = compile_kernel(assemble(program).data, 0, CompileOptions())
    device = EmulatedDevice()
    at = device.alloc(b"".join(v.to_bytes(4, "little") for v in _VALUES * 4))
    run_image(LoadedImage(image), Setup(), 1, 32, at.to_bytes(8, "little"), device)
    got = [int.from_bytes(device.read(at + 4 * i, 4), "little") for i in range(8)]
    assert got == [0x8000, 0, 0, 0xBC00, 0, 0x8001, 0x7FFF, 0xFC00]

"""Scalar loads with an offset in a register, by both tiers.

The baseline tier's code once left the register out: it read at the base plus the immediate.  Only
LLVM writes such loads, where a constant bank is indexed by a value that a warp shares.
"""

from __future__ import annotations

import struct

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, LoadedImage, Setup, run_image

from .baseline import ISAS, baseline

_WORDS = 64
_RESULT = 48  # the first SGPR of what is loaded
_BASE = 12  # the word that the base of the loads is at
_OFFSETS: tuple[tuple[Arg | None, int, int], ...] = (  # a register, its value, the immediate
    (None, 0, 0),
    (None, 0, 20),
    (None, 0, -40),
    (S(6), 24, 0),
    (S(7), 8, 16),
    (S(32), 40, -36),
    (Sp("vcc_lo"), 28, 4),
    (Sp("m0"), 44, 0),
)


@pytest.mark.parametrize("isa", ISAS)
def test_offsets(isa: Isa) -> None:
    out = [
        Inst("s_load_b64", (S(2, 2), S(0, 2)), 8),
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
    ]
    expected: list[int] = []
    for words in (1, 2, 4, 8):
        for register, value, immediate in _OFFSETS:
            base: tuple[Arg, ...] = (S(_RESULT, words), S(4, 2))
            if register is not None:
                out.append(Inst("s_mov_b32", (register, I(value))))
                base = (*base, register)
            out.append(Inst(f"s_load_b{32 * words}", base, immediate))
            for n in range(words):
                out.append(Inst("v_mov_b32", (V(2), S(_RESULT + n))))
                out.append(Inst("global_store_b32", (V(1), V(2), S(2, 2)), 0))
                out.append(Inst("s_add_u32", (S(2), S(2), I(128))))
                out.append(Inst("s_addc_u32", (S(3), S(3), I(0))))
                expected.append(1000 + _BASE + (value + immediate) // 4 + n)
    code = assemble([*out, Inst("s_endpgm")]).data
    options = CompileOptions(isa=isa)
    for image in (LoadedImage(compile_kernel(code, 0, options)), baseline(code, options)):
        device = EmulatedDevice(1 << 20)
        source, target = device.base + (1 << 15), device.base + (1 << 16)
        device.write(source, struct.pack(f"<{_WORDS}I", *range(1000, 1000 + _WORDS)))
        kernarg = struct.pack("<QQ", source + 4 * _BASE, target)
        run_image(image, Setup(kernarg_sgpr=0), 1, 32, kernarg, device)
        data = struct.unpack(f"<{32 * len(expected)}I", device.read(target, 128 * len(expected)))
        assert list(data[::32]) == expected

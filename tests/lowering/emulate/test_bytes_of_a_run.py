"""Accesses of bytes where the waves of a workgroup run in a loop: all addresses are aligned, so of
that condition nothing but a constant is left, which is before the loop, too."""

from __future__ import annotations

import struct

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, Sp, V
from sassxlate.lowering.emulate.options import CompileOptions, Isa
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code

from .baseline import ISAS

_ITEMS = (
    Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
    Inst("v_ashrrev_i32", (V(3), I(31), V(0))),
    Inst("s_waitcnt", (), 0),
    Inst("v_add_co_u32", (V(2), Sp("vcc_lo"), V(0), S(4))),
    Inst("v_add_co_ci_u32", (V(3), Sp("null"), S(5), V(3), Sp("vcc_lo"))),
    Inst("global_store_b8", (V(2, 2), V(0), Sp("off")), 1),
    Inst("s_endpgm"),
)


@pytest.mark.parametrize("isa", ISAS)
def test_bytes_side_by_side(isa: Isa) -> None:
    """It ended in SX0691, as LLVM could not parse the host code's IR."""
    device = EmulatedDevice(1 << 16)
    at = device.alloc(256)
    options = CompileOptions(isa=isa, kernarg=(0, 8))  # so the base is known before the loop
    run_code(assemble(_ITEMS).data, 1, 96, struct.pack("<Q", at), device, options=options)
    assert device.read(at, 98) == bytes([0, *range(96), 0])

"""A sum over many loads is added up as they come: LLVM keeps no more of them than it has to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sassxlate.disasm.rdna3.codec.assemble import assemble
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.emulate.compiler import compile_kernel
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.wave.registers import State
from sassxlate.lowering.llvm.ir_text import Val

_LOADS = 24
_VECTOR = 128  # bytes of a register of 32 lanes


def _sum() -> bytes:
    """Of dwords of LDS, 128 bytes apart, times a number."""
    wait = Inst("s_waitcnt", (), 0)
    items = [
        Inst("s_load_b64", (S(4, 2), S(0, 2)), 0),
        Inst("v_lshlrev_b32", (V(1), I(2), V(0))),
        Inst("v_mov_b32", (V(2), I(0))),
        Inst("v_mov_b32", (V(3), I(0x3F000000))),
    ]
    for i in range(_LOADS):
        items += [Inst("ds_load_b32", (V(8 + i % 4), V(1)), 128 * i), wait]
        items.append(Inst("v_fma_f32", (V(2), V(8 + i % 4), V(3), V(2))))
    items += [Inst("global_store_b32", (V(1), V(2), S(4, 2))), Inst("s_endpgm")]
    return assemble(items).data


def _none(_state: State, _values: Sequence[Val]) -> list[Val]:
    return []


def test_loads_do_not_wait_on_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    options = CompileOptions(isa="avx512")
    stack = compile_kernel(_sum(), 0, options).stack
    monkeypatch.setattr(State, "held", _none)
    without = compile_kernel(_sum(), 0, options).stack
    assert without > _LOADS // 2 * _VECTOR + stack

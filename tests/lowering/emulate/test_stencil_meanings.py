"""The baseline tier against the compiled code: single instructions on random lanes, bit for bit."""

from __future__ import annotations

import random
import zlib

import pytest

from sassxlate.disasm.rdna3.semantics import semantics_table
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.lowering.emulate.options import CompileOptions, Isa

from .baseline import ISAS
from .harness import run_cases, vector_case

ROWS = semantics_table()
VECTOR = sorted(
    op
    for op, row in ROWS.items()
    if op in OPS
    and op.startswith("v_")
    and row.dst[0] != "execm"
    and not {"vcc", "mix"} & set(row.src)
    and not op.startswith(("v_fmaak", "v_fmamk"))  # whose third operand is a literal
)
_MODES = (0xF0, 0xC0, 0x00, 0xF5, 0xFA, 0x0F)  # the kernel descriptor's FLOAT_MODE
_MASKS = (0xFFFFFFFF, 0, 0xF00FA5C3, 0x80000000)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("start", range(0, len(VECTOR), 64))
def test_rows(start: int, isa: Isa) -> None:
    names = VECTOR[start : start + 64]
    rng = random.Random(zlib.crc32(f"{names[0]} {isa}".encode()))
    cases = [vector_case(ROWS[name], rng) for name in names]
    mode, mask = _MODES[start // 64 % len(_MODES)], _MASKS[start // 64 % len(_MASKS)]
    for exec_mask in {mask, 0xFFFFFFFF}:
        options = CompileOptions(isa=isa, float_mode=mode)
        compiled = run_cases(cases, options, exec_mask)
        copied = run_cases(cases, options, exec_mask, stencils=True)
        for name, case, want, got in zip(names, cases, compiled, copied, strict=True):
            for lane, (one, other) in enumerate(zip(want, got, strict=True)):
                inputs = [hex(v) for v in case.inputs[lane]]
                assert one == other, (name, hex(mode), lane, inputs, one, other)

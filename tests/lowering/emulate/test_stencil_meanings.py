"""The baseline tier against the compiled code: single instructions on random lanes, bit for bit.

The sign and payload of a NaN result are not compared: LLVM leaves them open, so two compilations of
one meaning differ where it swaps operands or moves a negation (seen on one kind of host and not on
another).  Code that can show them writes NVIDIA's NaN in their place (lowering/nans).
"""

from __future__ import annotations

import random
import zlib

import pytest

from sassxlate.disasm.rdna3.semantics import semantics_table
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.lowering.emulate.options import CompileOptions, Isa

from .baseline import each_with_an_isa
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


_INFINITY = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}


def _is_nan(value: int, width: int) -> bool:
    return value & ((1 << (width - 1)) - 1) > _INFINITY[width]


def same(kind: str, one: int, other: int) -> bool:
    """Whether two results of a kind of the semantics table are equal, or both a NaN."""
    if one == other or kind[0] not in "fp":
        return one == other
    if kind == "pf16":
        pairs = [(one & 0xFFFF, other & 0xFFFF), (one >> 16, other >> 16)]
        return all(same("f16", a, b) for a, b in pairs)
    if not kind.startswith("f"):
        return False
    width = int(kind[1:3])
    return _is_nan(one, width) and _is_nan(other, width)


def test_only_nans_are_the_same() -> None:
    assert same("f32", 0x7F800001, 0xFFFFFFFF)
    assert same("f16", 0xFFFF, 0x7C01)
    assert not same("f32", 0x7F800000, 0x7F800001)
    assert not same("f32", 0, 1 << 31)
    assert not same("b32", 0x7F800001, 0xFFFFFFFF)
    assert not same("p16", 0x7C01, 0xFFFF)
    assert same("pf16", 0x7C01_3C00, 0xFFFF_3C00)
    assert not same("pf16", 0x7C01_3C00, 0xFFFF_3C01)
    assert same("f64", 0x7FF0000000000001, (1 << 64) - 1)
    assert same("f16hi", 0x7C01, 0x7E00)


@pytest.mark.parametrize(
    ("start", "isa"), each_with_an_isa((n,) for n in range(0, len(VECTOR), 64))
)
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
                equal = [same(*each) for each in zip(case.dst, one, other, strict=True)]
                assert all(equal), (name, hex(mode), lane, inputs, one, other)

"""Signs of the sum that a dot product of halves adds to: LLVM writes -c as neg_lo and neg_hi."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from sassxlate.disasm.rdna3 import decode
from sassxlate.disasm.rdna3.instruction import Arg, Inst
from sassxlate.disasm.rdna3.semantics import Mode, semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.options import CompileOptions

from .harness import LANES, Case, run_cases, value
from .llvm_kernels import code_of
from .test_meanings import close

_OPS = ("v_dot2_f32_f16", "v_dot2_f32_bf16")
REF: Any = Reference()
# -(a . b) - c of packed halves, clamped: with a clamp LLVM uses VOP3P.
_KERNEL = """target triple = "amdgcn-amd-amdhsa"
declare float @llvm.amdgcn.fdot2(<2 x half>, <2 x half>, float, i1)
define amdgpu_kernel void @kernel(ptr addrspace(1) %p, <2 x half> %a, <2 x half> %b, float %c) {
  %n = fneg float %c
  %m = fneg <2 x half> %a
  %r = call float @llvm.amdgcn.fdot2(<2 x half> %m, <2 x half> %b, float %n, i1 true)
  store float %r, ptr addrspace(1) %p
  ret void
}
"""


def _case(op: str, signs: int, high: int) -> Case:
    rng = random.Random(signs)
    kinds = ("b32", "b32", "f32")
    inputs = tuple(tuple(value(rng, kind) for kind in kinds) for _ in range(LANES))

    def build(dsts: list[Arg], srcs: list[Arg]) -> Inst:
        return replace(Inst(op, (*dsts, *srcs)), neg=signs, neg_hi=high)

    return Case(("f32",), kinds, build, inputs)


@pytest.mark.parametrize("stencils", [False, True])
def test_both_signs_of_the_sum_are_its_sign(stencils: bool) -> None:
    cases = [_case(op, signs, signs) for op in _OPS for signs in range(8)]
    names = [op for op in _OPS for _ in range(8)]
    results = run_cases(cases, CompileOptions(), stencils=stencils)
    for n, (op, case, lanes) in enumerate(zip(names, cases, results, strict=True)):
        flips = [0x80008000 * (n & 1), 0x80008000 * (n >> 1 & 1), 0x80000000 * (n >> 2 & 1)]
        row = semantics_table()[op]
        for inputs, got in zip(case.inputs, lanes, strict=True):
            given = [Bits(v ^ flip, 32) for v, flip in zip(inputs, flips, strict=True)]
            want = row.fn(REF, Mode(), *given)
            assert isinstance(want, Bits)
            assert close("f32", got[0], want.n, 0), (op, n & 7, [hex(v) for v in inputs])


def test_neg_hi_alone_is_refused() -> None:
    """AMD's manual does not say what it does to a whole binary32."""
    with pytest.raises(EmulatorError, match="neg_hi has no meaning here"):
        run_cases([_case("v_dot2_f32_f16", 0, 4)], CompileOptions())


def test_llvm_writes_both() -> None:
    code, at = code_of(_KERNEL, 2)
    found: list[Inst] = []
    while not found or found[-1].op != "s_endpgm":
        inst, size = decode(code, at)
        found.append(inst)
        at += size
    (dot,) = [inst for inst in found if "dot2" in inst.op]
    assert (dot.op, dot.neg, dot.neg_hi) == ("v_dot2_f32_f16", 5, 5)

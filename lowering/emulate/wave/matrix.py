"""Products of matrices of halves and bfloat16: v_wmma_f32_16x16x16_f16 and _bf16.

Registers (AMD, "How to accelerate AI applications on RDNA 3 using WMMA"): lane l has row l mod 16
of A and column l mod 16 of B, eight words of two elements each, so both are there twice.  Register
i of C and D has row 2 i + l / 16 and column l mod 16 in lane l.

The manual does not say in which order the sixteen products are added, and how often the sum is
rounded.  Here each product is added by one fused multiply-add, k ascending, to nearest even, with
denormals.  Rows of A are read in the lanes that write their results, so that code which leaves one
of the copies out gives wrong results.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.disasm.rdna3.instruction import Inst, V
from sassxlate.domain.interface import IEEE
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.cross_lane import shuffle
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.target import LANES

_WORDS = 8  # of a row of A or a column of B; registers of C and D


def _half(c: Context, value: Val) -> Val:
    return c.d.fcvt(value, 32, IEEE)


def _bfloat(c: Context, value: Val) -> Val:
    return c.d.concat(value, const(0, 16))


def _product(element: Callable[[Context, Val], Val]) -> Callable[[Context, Inst], None]:
    def emit(c: Context, inst: Inst) -> None:
        if inst.neg or inst.neg_hi or inst.op_sel:
            raise c.error(inst, "modifiers of matrix products are not supported")
        d = c.d
        factors: list[list[Val]] = []
        for arg in inst.args[1:3]:
            words = [d.splat(c.read32(inst, arg, i)) for i in range(_WORDS)]
            factors.append([element(c, d.extract(w, at, 16)) for w in words for at in (0, 16)])
        last = inst.args[3]
        results: list[Val] = []
        for i in range(_WORDS):
            total = d.splat(c.read32(inst, last, i if isinstance(last, V) else 0))
            row = [(lane & 16) + 2 * i + (lane >> 4) for lane in range(LANES)]
            for a, b in zip(*factors, strict=True):
                total = d.ffma(shuffle(c, a, row), b, total, IEEE)
            results.append(total)
        for i, total in enumerate(results):
            c.write32(inst, inst.args[0], total, i)

    return emit


EMITTERS: dict[str, Callable[[Context, Inst], None]] = {
    "v_wmma_f32_16x16x16_f16": _product(_half),
    "v_wmma_f32_16x16x16_bf16": _product(_bfloat),
}

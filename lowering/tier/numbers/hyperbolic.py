"""The hyperbolic tangent, which AMD's processors have no instruction for: as the rules compute it
(`lowering/rules/arithmetic/float.py`), operation by operation, so that both give the same bits.

Arguments up to 2**-8 are their own result, which the semantics choose; for others no value on the
way is a denormal number, so the mode that flushes changes nothing.
"""

from __future__ import annotations

from sassxlate.domain.interface import fabs
from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.llvm.lanes import LlvmLanes

_TWO_LOG2_E, _ONE, _MINUS_TWO = 0x4038AA3B, 0x3F800000, 0xC0000000
_MINUS_THIRD, _SERIES_BELOW = 0xBEAAAAAB, 0x3D000000  # 2**-5


def tanh(d: LlvmLanes, a: Val) -> Val:
    """Of binary32: 1 - 2 / (exp(2 |a|) + 1), or the first terms of the odd series, with the sign of
    ``a``."""
    x, one = fabs(d, a), d.const(_ONE, 32)
    power = d.approx("exp2", d.float_op("fmul", x, d.const(_TWO_LOG2_E, 32)))
    part = d.approx("rcp", d.float_op("fadd", power, one))
    out = d.float_call("fma", d.const(_MINUS_TWO, 32), part, one)
    series = d.float_call("fma", d.float_op("fmul", x, x), d.const(_MINUS_THIRD, 32), one)
    series = d.float_op("fmul", series, x)
    near = d.fcmp("olt", x, d.const(_SERIES_BELOW, 32))
    sign = d.and_(a, d.const(1 << 31, 32))
    return d.or_(fabs(d, d.select(near, series, out)), sign)


__all__ = ["tanh"]

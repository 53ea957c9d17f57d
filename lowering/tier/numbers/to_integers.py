"""Numbers as integers of 64 bits: towards zero, saturated, by operations that saturate themselves.

A number below the least integer becomes that; so does a NaN if the integer is signed, as NVIDIA's
conversion has it (:class:`.domain.LaneDomain` makes it 0 where the semantics ask for that).
"""

from __future__ import annotations

from sassxlate.domain.interface import fabs
from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.llvm.lanes import LlvmLanes
from sassxlate.lowering.tier.numbers import stand_ins

# Doubles: powers of two, and the bounds of an upper word, unsigned and signed.
_TWO_TO = {-32: 0x3DF0000000000000, 32: 0x41F0000000000000}
_UPPER = ((0, 0x41EFFFFFFFE00000), (0xC1E0000000000000, 0x41DFFFFFFFC00000))
# Binary32: powers of two (the second negative), the least integer, and the largest number below the
# first that is too large, unsigned and signed.
_SCALE, _MINUS = 0x2F800000, 0xCF800000
_LEAST, _MOST = (0, 0xDF000000), (0x5F7FFFFF, 0x5EFFFFFF)


def of_double(d: LlvmLanes, whole: Val, *, signed: bool) -> Val:
    """An integral double: the upper word, within its bounds, and what is left of the number, which
    saturates if the upper word is at its bound."""
    scale = d.const(_TWO_TO[-32], 64)
    high = d.float_call("floor", d.float_op("fmul", whole, scale))
    least, most = _UPPER[signed]
    high = d.float_call("maximumnum", high, d.const(least, 64))
    high = d.float_call("minimumnum", high, d.const(most, 64))
    low = d.float_call("fma", high, d.const(_TWO_TO[32] | 1 << 63, 64), whole)
    upper = stand_ins.converted(d.fn, high, signed)
    return d.concat(upper, stand_ins.converted(d.fn, low, False))


def of_single(d: LlvmLanes, whole: Val, *, signed: bool) -> Val:
    """An integral binary32 number: both words of its magnitude, exact below 2**64, then its sign.

    The maximum with the least integer is that for a NaN.  A magnitude of 2**63, which only negative
    numbers keep, is its own negation.
    """
    kept = d.float_call("maximumnum", whole, d.const(_LEAST[signed], 32))
    size = fabs(d, kept) if signed else kept
    high = d.float_call("floor", d.float_op("fmul", size, d.const(_SCALE, 32)))
    low = d.float_call("fma", high, d.const(_MINUS, 32), size)
    upper, lower = (stand_ins.converted(d.fn, part, False) for part in (high, low))
    out = d.concat(upper, lower)
    if signed:
        sign = d.ashr(kept, d.const(31, 32))
        signs = d.concat(sign, sign)
        out = d.sub(d.concat(d.xor(upper, sign), d.xor(lower, sign)), signs)
    beyond = d.fcmp("ogt", kept, d.const(_MOST[signed], 32))
    most = (1 << 63) - 1 if signed else (1 << 64) - 1
    return d.select(beyond, d.const(most, 64), out)


__all__ = ["of_double", "of_single"]

"""Rounding modes, denormal flushing and half precision for the LLVM domain.

A narrow operation is done in the format twice as wide, where a product is exact and a sum is made
exact enough by rounding to odd (a sticky last bit); narrowing then rounds once, in any direction:
the wide format has more than 2p + 2 bits, so no double rounding shows.  binary64 has no wider
format here: its directed roundings run lane by lane in integers (`softfloat_fma64`).

A flushed result is one that is below the normal numbers after rounding to their precision, as an
H100 flushes (docs/errata.md): 0x1.fffffep-127 is zero, although rounding among the denormal numbers
makes it the least normal one.  The same operation on operands scaled by powers of two tells.
"""

from __future__ import annotations

from sassxlate.domain.interface import IEEE, Fp, Round, fabs, flush, fneg, is_nan, is_zero
from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.llvm.lanes import LlvmLanes

_WIDER = {16: 32, 32: 64}
_MANTISSA = {16: 10, 32: 23, 64: 52}
# Binary32 products are scaled by 2**120, in two factors.  Where a product or a product and a sum is
# below the normal numbers, neither factor is over 2**23, and no scaled operand overflows; where one
# does, the result is an infinity or NaN, which is not below anything.
_HALF_LIFT, _LIFT = 60, 120
_NARROW_LIFT = {16: 8, 32: 64}  # results of a wider format, before narrowing


def _in(d: LlvmLanes, fp: Fp, *args: Val) -> list[Val]:
    return [flush(d, a) if fp.flush_in else a for a in args]


def _out(d: LlvmLanes, fp: Fp, a: Val) -> Val:
    return flush(d, a) if fp.flush_out else a


def _scaled(d: LlvmLanes, a: Val, power: int) -> Val:
    """a * 2**power, for binary32 and binary64."""
    bias = (1 << (a.width - 2 - _MANTISSA[a.width])) - 1
    return d.float_op("fmul", a, d.const((bias + power) << _MANTISSA[a.width], a.width))


def _unless_tiny(d: LlvmLanes, out: Val, lifted: Val, lift: int) -> Val:
    """``out``, or a zero of its sign where ``lifted``, the result times 2**lift, is below the
    normal numbers times 2**lift."""
    width = out.width
    least = d.const((1 + lift) << _MANTISSA[width], width)
    tiny = d.fcmp("olt", fabs(d, lifted), least)
    return d.select(tiny, d.and_(out, d.const(1 << (width - 1), width)), out)


def _narrowed(d: LlvmLanes, fp: Fp, wide: Val, width: int) -> Val:
    """``wide``, exact or rounded to odd, in the narrower format, rounded and flushed."""
    out = narrow(d, wide, width, fp.round)
    if not fp.flush_out:
        return out
    lift = _NARROW_LIFT[width]
    return _unless_tiny(d, out, narrow(d, _scaled(d, wide, lift), width, fp.round), lift)


def fadd(d: LlvmLanes, a: Val, b: Val, fp: Fp) -> Val:
    a, b = _in(d, fp, a, b)
    if fp.round == Round.NEAREST:
        if a.width == 16:  # 24 >= 2 * 11 + 2 bits: rounding twice is harmless
            wide = d.float_op("fadd", _widen(d, a), _widen(d, b))
            return _out(d, fp, d.float_convert("fptrunc", wide, 16))
        return _out(d, fp, d.float_op("fadd", a, b))
    if a.width == 64:
        from sassxlate.lowering.llvm import softfloat_fma64

        return _out(
            d, fp, softfloat_fma64.call(d, "fma", (a, d.const(0x3FF << 52, 64), b), fp.round)
        )
    return _out(d, fp, _narrow_sum(d, _widen(d, a), _widen(d, b), a.width, fp.round))


def fmul(d: LlvmLanes, a: Val, b: Val, fp: Fp) -> Val:
    a, b = _in(d, fp, a, b)
    if a.width == 64:
        if fp.round == Round.NEAREST:
            return _out(d, fp, d.float_op("fmul", a, b))
        from sassxlate.lowering.llvm import softfloat_fma64

        return _out(d, fp, softfloat_fma64.call(d, "mul", (a, b), fp.round))
    if fp.round == Round.NEAREST and a.width == 32:
        out = d.float_op("fmul", a, b)
        if not fp.flush_out:
            return out
        x, y = (_scaled(d, v, _HALF_LIFT) for v in (a, b))
        return _unless_tiny(d, out, d.float_op("fmul", x, y), _LIFT)
    return _narrowed(d, fp, d.float_op("fmul", _widen(d, a), _widen(d, b)), a.width)


def ffma(d: LlvmLanes, a: Val, b: Val, c: Val, fp: Fp) -> Val:
    a, b, c = _in(d, fp, a, b, c)
    if fp.round == Round.NEAREST and a.width == 64:
        return _out(d, fp, d.float_call("fma", a, b, c))
    if fp.round == Round.NEAREST and a.width == 32:
        out = d.float_call("fma", a, b, c)
        if not fp.flush_out:
            return out
        x, y = (_scaled(d, v, _HALF_LIFT) for v in (a, b))
        lifted = d.float_call("fma", x, y, _scaled(d, c, _LIFT))
        return _unless_tiny(d, out, lifted, _LIFT)
    if a.width == 64:
        from sassxlate.lowering.llvm import softfloat_fma64

        return _out(d, fp, softfloat_fma64.call(d, "fma", (a, b, c), fp.round))
    exact, wide = d.float_op("fmul", _widen(d, a), _widen(d, b)), _widen(d, c)
    out = _narrow_sum(d, exact, wide, a.width, fp.round)
    if not fp.flush_out:
        return out
    lift = _NARROW_LIFT[a.width]
    lifted = narrow(d, _scaled(d, odd_sum(d, exact, wide), lift), a.width, fp.round)
    return _unless_tiny(d, out, lifted, lift)


def fcvt(d: LlvmLanes, a: Val, width: int, fp: Fp) -> Val:
    (a,) = _in(d, fp, a)
    if width == a.width:
        return _out(d, fp, a)
    if width > a.width:
        while a.width < width:
            a = d.float_extend(a, _WIDER[a.width])
        return _out(d, fp, a)
    if a.width == 64 and width == 16:  # through binary32, rounded to odd
        return _narrowed(d, fp, _narrow_odd(d, a), 16)
    return _narrowed(d, fp, a, width)


def itof(d: LlvmLanes, a: Val, width: int, signed: bool, fp: Fp) -> Val:
    if width == 64 and a.width <= 32:
        return d.int_to_float(a, 64, signed)
    if a.width > 32:
        raise NotImplementedError("conversion from 64-bit integers: no RDNA3 instruction has it")
    if fp.round == Round.NEAREST and width == 32:
        return d.int_to_float(a, 32, signed)
    # 32 bits are exact in binary64; 16 bits are in binary32.
    exact = d.int_to_float(a, 64 if a.width > 16 or width == 32 else 32, signed)
    return fcvt(d, exact, width, Fp(fp.round))


def _widen(d: LlvmLanes, a: Val) -> Val:
    return d.float_convert("fpext", a, _WIDER[a.width])


def _nonzero(d: LlvmLanes, a: Val) -> Val:
    """Not NaN, and different from zero."""
    return d.fcmp("one", a, d.const(0, a.width))


def odd_sum(d: LlvmLanes, a: Val, b: Val) -> Val:
    """a + b rounded to odd; needs exponents far from overflow."""
    s = d.float_op("fadd", a, b)
    bb = d.float_op("fsub", s, a)
    err = d.float_op(
        "fadd",
        d.float_op("fsub", a, d.float_op("fsub", s, bb)),
        d.float_op("fsub", b, bb),
    )
    one = d.const(1, s.width)
    even = is_zero(d, d.and_(s, one))
    outwards = d.not_(d.slt(d.xor(s, err), d.const(0, s.width)))  # the error has the sum's sign
    moved = d.select(outwards, d.add(s, one), d.sub(s, one))
    return d.select(d.and_(_nonzero(d, err), even), moved, s)


def _narrow_sum(d: LlvmLanes, a: Val, b: Val, width: int, how: Round) -> Val:
    s = odd_sum(d, a, b)
    out = narrow(d, s, width, how)
    if how == Round.DOWN:  # an exact zero of opposite signs is -0 in this mode alone
        differ = d.slt(d.xor(a, b), d.const(0, a.width))
        zero = d.and_(is_zero(d, fabs(d, s)), differ)
        out = d.select(zero, d.const(1 << (width - 1), width), out)
    return out


def narrow(d: LlvmLanes, a: Val, width: int, how: Round) -> Val:
    """To the next narrower format, rounded once in the given direction."""
    y = d.float_convert("fptrunc", a, width)
    if how == Round.NEAREST:
        return y
    back = d.float_convert("fpext", y, a.width)
    one = d.const(1, width)
    negative = d.slt(y, d.const(0, width))
    up = d.select(negative, d.sub(y, one), d.add(y, one))
    down = d.select(negative, d.add(y, one), d.sub(y, one))
    if how == Round.UP:
        return d.select(d.fcmp("olt", back, a), up, y)
    if how == Round.DOWN:
        return d.select(d.fcmp("ogt", back, a), down, y)
    over = d.fcmp("ogt", fabs(d, back), fabs(d, a))
    return d.select(over, d.sub(y, one), y)


def _narrow_odd(d: LlvmLanes, a: Val) -> Val:
    """binary64 to binary32, rounded to odd."""
    y = narrow(d, a, 32, Round.ZERO)
    inexact = d.fcmp("one", d.float_convert("fpext", y, 64), a)
    return d.select(inexact, d.or_(y, d.const(1, 32)), y)


def fsub_ieee(d: LlvmLanes, a: Val, b: Val) -> Val:
    return fadd(d, a, fneg(d, b), IEEE)


__all__ = ["fadd", "fcvt", "ffma", "fmul", "fsub_ieee", "is_nan", "itof", "narrow", "odd_sum"]

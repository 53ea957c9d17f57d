"""Conversions between floats, and rounding to integral values."""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import I, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic import bfloat, halfwise
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.convert.sources import (
    ROUND_OP,
    ROUNDS,
    bf16_source,
    double_source,
    first_float,
    half_source,
    low_bf16,
    signed_but_nan,
    single_of_half,
    wider_source,
    without_denormals,
)
from sassxlate.lowering.rules.arithmetic.double import round_flushed, round_to_integral
from sassxlate.lowering.rules.arithmetic.modes import ftz, rounding


def frnd(c: RuleEmitter) -> None:
    width = first_float(c.ins)
    name = next((ROUND_OP[m] for m in c.ins.modifiers if m in ROUND_OP), "rndne")
    if width == 16 or c.ins.has("BF16"):
        _frnd16(c, name)
        return
    if width == 64 and c.ins.has("FTZ"):
        round_flushed(c, f"v_{name}_f64", double_source(c))
        return
    if width == 64:
        round_to_integral(c, f"v_{name}_f64")
        return
    with ftz(c):
        c.emit(f"v_{name}_f32", c.dst_last(), c.src("Rb"), **c.fneg("Rb"))


def _frnd16(c: RuleEmitter, name: str) -> None:
    """In the low half, the upper one 0; a NaN becomes 0x7fff."""
    out, nan = c.vtemp(), c.stemp()
    if c.ins.has("BF16"):
        c.emit(f"v_{name}_f32", out, bf16_source(c))
        c.emit("v_cmp_u_f32", nan, out, out)
        c.emit("v_lshrrev_b32", out, I(16), out)
    else:
        if c.ins.has("FTZ"):
            single = single_of_half(c)
            c.emit(f"v_{name}_f32", single, single)
            c.emit("v_cvt_f16_f32", out, single)  # exact
        else:
            c.emit(f"v_{name}_f16", out, half_source(c), **c.fneg("Rb"))
        c.emit("v_and_b32", out, I(0xFFFF), out)  # its high half is the old one
        c.emit("v_cmp_u_f16", nan, out, out)
    c.emit("v_cndmask_b32", c.dst_last(), out, I(0x7FFF), nan)


def f2f(c: RuleEmitter) -> None:
    """F2F.<to>.<from>; the same width twice rounds to an integral value on old architectures."""
    if c.ins.has("BF16"):
        _f2f_bf16(c)
        return
    kinds = [int(m[1:]) for m in c.ins.modifiers if m in ("F16", "F32", "F64")]
    if len(kinds) != 2 or kinds[0] == kinds[1]:
        raise c.refuse("this form of F2F")
    to, source = kinds
    if {to, source} == {16, 64}:
        (_f64_to_f16 if to == 16 else _f16_to_f64)(c)
        return
    if 64 in (to, source):
        double = source == 64
        value = signed_but_nan(c, c.src64("Rb"), 64) if double else wider_source(c, "F32")
        with rounding(c), ftz(c):
            c.emit(f"v_cvt_f{to}_f{source}", c.dst_last(), value)
        return
    if c.ins.has("FTZ") and source == 16:
        c.emit("v_mov_b32", c.dst_last(), single_of_half(c))
        return
    if c.ins.has("FTZ") and to == 16:
        _give_half(c, c.to_v(float_bits(c, "Rb")))
        return
    value = half_source(c) if source == 16 else c.src("Rb")
    out = c.vtemp() if to == 16 else c.dst_last()
    with rounding(c), ftz(c):
        c.emit(f"v_cvt_f{to}_f{source}", out, value, **c.fneg("Rb"))
    if to == 16:
        c.emit("v_and_b32", c.dst_last(), I(0xFFFF), out)  # its high half is the old one


def _how(c: RuleEmitter) -> str:
    """The instruction's rounding, empty for the nearest."""
    return next((m for m in c.ins.modifiers if m in ROUNDS), "")


def _give_half(c: RuleEmitter, single: V, *, one_nan: bool = False) -> None:
    """The result: binary32, exact or rounded to odd, as a half, flushed under .FTZ; ``one_nan``:
    turn a NaN into 0x7fff."""
    if c.ins.has("FTZ"):
        single = halfwise.flushed_result(c, single, _how(c))
    out = c.vtemp()
    with rounding(c):
        c.emit("v_cvt_f16_f32", out, single)
    if one_nan:
        nan = c.stemp()
        c.emit("v_cmp_u_f32", nan, single, single)
        c.emit("v_cndmask_b32", out, out, I(0x7FFF), nan)
    c.emit("v_and_b32", c.dst_last(), I(0xFFFF), out)  # its high half is the old one


def _odd_of_double(c: RuleEmitter) -> V:
    """Rb, a double, as binary32 rounded to odd."""
    value = signed_but_nan(c, c.src64("Rb"), 64)
    down, up = c.vtemp(), c.vtemp()
    for out, how in ((down, "RM"), (up, "RP")):
        with rounding(c, how):
            c.emit("v_cvt_f32_f64", out, value)
    return bfloat.odd(c, down, up)


def _f64_to_f16(c: RuleEmitter) -> None:
    """By way of binary32 rounded to odd: only the rounding to a half matters."""
    _give_half(c, _odd_of_double(c))


def _f16_to_f64(c: RuleEmitter) -> None:
    """Exact, in two steps."""
    c.emit("v_cvt_f64_f32", c.dst_last(), wider_source(c, "F16"))


def _f2f_bf16(c: RuleEmitter) -> None:
    """To or from single precision."""
    kinds = [m for m in c.ins.modifiers if m in ("F16", "BF16", "F32", "F64")]
    if kinds == ["BF16", "F32"]:
        low_bf16(c, without_denormals(c, float_bits(c, "Rb")))
    elif kinds == ["F32", "BF16"]:
        value, nan = bf16_source(c), c.stemp()
        c.emit("v_cmp_u_f32", nan, value, value)
        c.emit("v_cndmask_b32", c.dst_last(), value, I(0x7FFFFFFF), nan)
    elif kinds == ["BF16", "F64"]:
        _f64_to_bf16(c)
    elif kinds == ["F64", "BF16"]:
        c.emit("v_cvt_f64_f32", c.dst_last(), wider_source(c, "BF16"))
    elif kinds == ["BF16", "F16"]:
        low_bf16(c, single_of_half(c))
    elif kinds == ["F16", "BF16"]:
        _give_half(c, bf16_source(c), one_nan=True)
    else:
        raise c.refuse("this form of F2F")


def _f64_to_bf16(c: RuleEmitter) -> None:
    """By way of binary32 rounded to odd; a NaN keeps its sign and upper bits.

    .FTZ: a zero if the double is below the normal numbers once rounded to their precision.
    """
    out, nan = c.vtemp(), c.stemp()
    single = _odd_of_double(c)
    bfloat.upper_half(c, out, single, _how(c))
    if c.ins.has("FTZ"):
        lifted, size, zero, tiny = c.vtemp(2), c.vtemp(), c.vtemp(), c.stemp()
        c.emit("v_ldexp_f64", lifted, c.src64("Rb"), I(64), **c.fneg("Rb"))
        down, up = c.vtemp(), c.vtemp()
        for part, how in ((down, "RM"), (up, "RP")):
            with rounding(c, how):
                c.emit("v_cvt_f32_f64", part, lifted)
        bfloat.upper_half(c, size, bfloat.odd(c, down, up), _how(c))
        c.emit("v_and_b32", size, I(0x7FFF0000), size)
        c.emit("v_cmp_gt_u32", tiny, I(65 << 23), size)  # 2**-62, the smallest normal number's
        c.emit("v_and_b32", zero, I(0x80000000), out)
        c.emit("v_cndmask_b32", out, out, zero, tiny)
    c.emit("v_cmp_u_f32", nan, single, single)
    c.emit("v_cndmask_b32", out, out, single, nan)
    c.emit("v_lshrrev_b32", c.dst_last(), I(16), out)

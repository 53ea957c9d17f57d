"""Conversions between integers and floats of all widths, and rounding to integral values.

Out of range saturates.  NaN gives 0 with .NTZ, otherwise the pattern with only the top bit set.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.disasm.sass.instruction import Imm
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.rules.arithmetic import bfloat
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.convert.floats import f2f, frnd
from sassxlate.lowering.rules.arithmetic.convert.sources import (
    ROUND_OP,
    IntType,
    bf16_source,
    constant64,
    double_source,
    first_float,
    int_type,
    low_bf16,
    narrow_source,
    single_of_half,
    without_denormals,
)
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.modifiers import INTS, ROUND
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

# --- integer to float -----------------------------------------------------------------------------


def _pair(c: RuleEmitter) -> V:
    """An integer source of 64 bits; an immediate is its high word, as measured."""
    operand = c.operand("Rb")
    if not isinstance(operand, Imm):
        return c.vtuple("Rb", 2)
    pair = c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), ZERO)
    c.emit("v_mov_b32", V(pair.index + 1), c.src("Rb"))
    return pair


def i2f(c: RuleEmitter) -> None:
    kind = int_type(c.ins)
    if c.ins.has("BF16"):
        _to_bf16_from_int(c, kind)
        return
    target = first_float(c.ins)
    if kind.bits == 64:
        {64: _i64_to_f64, 32: _i64_to_f32, 16: _i64_to_f16}[target](c, kind.signed)
        return
    value = narrow_source(c, kind)
    sort = "i32" if kind.signed else "u32"
    with rounding(c):
        if target == 64:
            c.emit(f"v_cvt_f64_{sort}", c.dst_last(), value)
        elif target == 32:
            c.emit(f"v_cvt_f32_{sort}", c.dst_last(), value)
        else:
            # Exact up to 2**24; everything above 65519 is infinite in half precision anyway.
            temp = c.vtemp()
            c.emit(f"v_cvt_f32_{sort}", temp, value)
            c.emit("v_cvt_f16_f32", temp, temp)
            c.emit("v_and_b32", c.dst_last(), I(0xFFFF), temp)  # its high half is the old one


def _to_bf16_from_int(c: RuleEmitter, kind: IntType) -> None:
    if kind.bits == 64:
        _i64_to_bf16(c, kind.signed)
        return
    value, sort = narrow_source(c, kind), "i32" if kind.signed else "u32"
    down, up = c.vtemp(), c.vtemp()
    with rounding(c, "RM"):
        c.emit(f"v_cvt_f32_{sort}", down, value)
    with rounding(c, "RP"):
        c.emit(f"v_cvt_f32_{sort}", up, value)
    low_bf16(c, bfloat.odd(c, down, up))


def _i64_to_f64(c: RuleEmitter, signed: bool) -> None:
    pair = _pair(c) if isinstance(c.operand("Rb"), Imm) else c.src64("Rb")
    high, low = c.vtemp(2), c.vtemp(2)
    c.emit("v_cvt_f64_i32" if signed else "v_cvt_f64_u32", high, part(pair, 1))
    c.emit("v_ldexp_f64", high, high, I(32))
    c.emit("v_cvt_f64_u32", low, part(pair, 0))
    with rounding(c):
        c.emit("v_add_f64", c.dst_last(), high, low)


def _i64_to_f32(c: RuleEmitter, signed: bool) -> None:
    top, shift = _normalised(c, signed)
    with rounding(c):
        c.emit("v_cvt_f32_i32" if signed else "v_cvt_f32_u32", top, top)
    c.emit("v_ldexp_f32", c.dst_last(), top, shift)


def _i64_to_bf16(c: RuleEmitter, signed: bool) -> None:
    top, shift = _normalised(c, signed)
    down, up = c.vtemp(), c.vtemp()
    for out, how in ((down, "RM"), (up, "RP")):
        with rounding(c, how):
            c.emit("v_cvt_f32_i32" if signed else "v_cvt_f32_u32", out, top)
    single = bfloat.odd(c, down, up)
    c.emit("v_ldexp_f32", single, single, shift)
    low_bf16(c, single)


def _normalised(c: RuleEmitter, signed: bool) -> tuple[V, V]:
    """Rb's 32 highest significant bits with the rest folded into the lowest, so that one rounding
    is exact; and the number of bits by which they must be shifted up."""
    pair = _pair(c)
    lo, hi = V(pair.index), V(pair.index + 1)
    shift, norm, sticky = c.vtemp(), c.vtemp(2), c.vtemp()
    if signed:
        limit = c.vtemp()
        c.emit("v_xor_b32", limit, lo, hi)
        c.emit("v_ashrrev_i32", limit, I(31), limit)
        c.emit("v_add_nc_u32", limit, I(32), limit)
        c.emit("v_cls_i32", shift, hi)
        c.emit("v_subrev_nc_u32", shift, I(1), shift)
        c.emit("v_min_u32", shift, shift, limit)
    else:
        c.emit("v_clz_i32_u32", shift, hi)
        c.emit("v_min_u32", shift, I(32), shift)
    c.emit("v_lshlrev_b64", norm, shift, pair)
    c.emit("v_min_u32", sticky, I(1), V(norm.index))
    c.emit("v_or_b32", sticky, sticky, V(norm.index + 1))
    c.emit("v_sub_nc_u32", shift, I(32), shift)
    return sticky, shift


def _i64_to_f16(c: RuleEmitter, signed: bool) -> None:
    """By way of 32 bits: a value that does not fit there overflows a half, with the same sign."""
    pair = _pair(c)
    lo, hi = V(pair.index), V(pair.index + 1)
    out, fits = c.vtemp(), c.stemp()
    if signed:
        limit = c.vtemp()
        c.emit("v_ashrrev_i32", out, I(31), lo)
        c.emit("v_cmp_eq_u32", fits, out, hi)
        c.emit("v_ashrrev_i32", limit, I(31), hi)
        c.emit("v_xor_b32", limit, I(0x7FFFFFFF), limit)
        c.emit("v_cndmask_b32", out, limit, lo, fits)
    else:
        c.emit("v_cmp_eq_u32", fits, ZERO, hi)
        c.emit("v_cndmask_b32", out, I(0xFFFFFFFF), lo, fits)
    with rounding(c):
        c.emit("v_cvt_f32_i32" if signed else "v_cvt_f32_u32", out, out)
        c.emit("v_cvt_f16_f32", out, out)
    c.emit("v_and_b32", c.dst_last(), I(0xFFFF), out)  # its high half is the old one


# --- float to integer -----------------------------------------------------------------------------


def _rounded(c: RuleEmitter, value: Arg, width: int) -> Arg:
    """``value`` as an integral float, by the instruction's rounding; the conversion truncates."""
    name = next((ROUND_OP[m] for m in c.ins.modifiers if m in ROUND_OP), "rndne")
    if name == "trunc":
        return value
    temp = c.vtemp(2 if width == 64 else 1)
    c.emit(f"v_{name}_f{width}", temp, value)
    return temp


def _float_source(c: RuleEmitter) -> tuple[Arg, int]:
    """The source with its sign operations applied, as f32 or f64."""
    width = first_float(c.ins)
    if width == 64:
        return double_source(c), 64
    if c.ins.has("BF16"):
        return bf16_source(c), 32
    if width == 16:
        return single_of_half(c), 32
    value = float_bits(c, "Rb")
    return (without_denormals(c, value) if c.ins.has("FTZ") else value), 32


def f2i(c: RuleEmitter) -> None:
    kind = int_type(c.ins)
    value, width = _float_source(c)
    if kind.bits == 64:
        _f_to_i64(c, value, width, kind.signed)
        return
    out = c.vtemp()
    c.emit(f"v_cvt_{'i' if kind.signed else 'u'}32_f{width}", out, _rounded(c, value, width))
    if kind.bits < 32:
        low = -(1 << kind.bits - 1) if kind.signed else 0
        high = (1 << kind.bits - 1) - 1 if kind.signed else (1 << kind.bits) - 1
        sort = "i32" if kind.signed else "u32"
        c.emit(f"v_max_{sort}", out, I(low & 0xFFFFFFFF), out)
        c.emit(f"v_min_{sort}", out, I(high), out)
    if not c.ins.has("NTZ"):  # AMD's conversions give 0 for a NaN
        nan = c.stemp()
        c.emit(f"v_cmp_u_f{width}", nan, value, value)
        c.emit("v_cndmask_b32", out, out, I(1 << kind.bits - 1), nan)
    c.emit("v_mov_b32", c.dst_last(), out)


def _f_to_i64(c: RuleEmitter, value: Arg, width: int, signed: bool) -> None:
    if width == 32:
        double = c.vtemp(2)
        c.emit("v_cvt_f64_f32", double, value)
        value = double
    whole = c.vtemp(2)
    name = next((ROUND_OP[m] for m in c.ins.modifiers if m in ROUND_OP), "rndne")
    c.emit(f"v_{name}_f64", whole, value)
    high, low, out = c.vtemp(2), c.vtemp(2), c.vtemp(2)
    down = constant64(c, 0x3DF00000)  # 2**-32
    up = constant64(c, 0xC1F00000)  # -2**32
    c.emit("v_mul_f64", high, whole, down)
    c.emit("v_floor_f64", high, high)
    c.emit("v_fma_f64", low, high, up, whole)
    c.emit("v_cvt_u32_f64", V(out.index), low)
    c.emit("v_cvt_i32_f64" if signed else "v_cvt_u32_f64", V(out.index + 1), high)
    above, below, nan = c.stemp(), c.stemp(), c.stemp()
    limit = constant64(c, 0x43E00000 if signed else 0x43F00000)  # 2**63, 2**64
    c.emit("v_cmp_ge_f64", above, whole, limit)
    bottom = constant64(c, 0xC3E00000) if signed else constant64(c, 0)
    c.emit("v_cmp_lt_f64", below, whole, bottom)
    c.emit("v_cmp_u_f64", nan, value, value)
    top = 0x7FFFFFFF if signed else 0xFFFFFFFF
    lo, hi = V(out.index), V(out.index + 1)
    c.emit("v_cndmask_b32", lo, lo, I(0xFFFFFFFF), above)
    c.emit("v_cndmask_b32", hi, hi, I(top), above)
    c.emit("v_cndmask_b32", lo, lo, ZERO, below)
    c.emit("v_cndmask_b32", hi, hi, I(0x80000000 if signed else 0), below)
    c.emit("v_cndmask_b32", lo, lo, ZERO, nan)
    c.emit("v_cndmask_b32", hi, hi, I(0 if c.ins.has("NTZ") else 0x80000000), nan)
    dst = c.dst_last()
    c.emit("v_mov_b32", V(dst.index), lo)
    c.emit("v_mov_b32", V(dst.index + 1), hi)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "I2F": f"F16 BF16 F64 {ROUND} {INTS}",
    "I2FP": "F32 S32 U32 RZ",
    "F2I": f"FTZ NTZ F16 BF16 F64 TRUNC FLOOR CEIL {INTS}",
    "FRND": "F16 BF16 F64 FTZ TRUNC FLOOR CEIL",
    "F2F": f"F16 BF16 F32 F64 FTZ {ROUND}",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("i2f", "I2F", i2f),
    Rule("ui2f", "UI2F", i2f),
    Rule("i2fp", "I2FP", i2f),
    Rule("ui2fp", "UI2FP", i2f),
    Rule("f2i", "F2I", f2i),
    Rule("uf2i", "UF2I", f2i),
    Rule("frnd", "FRND", frnd),
    Rule("ufrnd", "UFRND", frnd),
    Rule("f2f", "F2F", f2f),
    Rule("uf2f", "UF2F", f2f),
)

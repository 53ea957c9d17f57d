"""Conversions between integers and floats of all widths, and rounding to integral values.

Out of range saturates.  NaN gives 0 with .NTZ, otherwise the pattern with only the top bit set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, V
from sassxlate.disasm.sass.instruction import Imm, Instruction
from sassxlate.lowering.builder.rule_emitter import RuleEmitter, part
from sassxlate.lowering.rules.arithmetic import bfloat, halfwise
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.double import round_flushed, round_to_integral
from sassxlate.lowering.rules.arithmetic.modes import FLUSH_F16, KEEP_DENORMALS, ftz, rounding
from sassxlate.lowering.rules.modifiers import INTS, ROUND
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

_INTS = ("S8", "U8", "S16", "U16", "S32", "U32", "S64", "U64")
_ROUNDS = ("RM", "RP", "RZ")
_ROUND_OP = {"TRUNC": "trunc", "FLOOR": "floor", "CEIL": "ceil"}


@dataclass(frozen=True, slots=True)
class IntType:
    signed: bool
    bits: int


def int_type(ins: Instruction) -> IntType:
    """The integer side of a conversion; S32 is not printed."""
    for m in ins.modifiers:
        if m in _INTS:
            return IntType(m[0] == "S", int(m[1:]))
    return IntType(True, 32)


def _first_float(ins: Instruction, default: int = 32) -> int:
    for m in ins.modifiers:
        if m in ("F16", "F32", "F64"):
            return int(m[1:])
    return default


def _narrow(c: RuleEmitter, kind: IntType, role: str = "Rb") -> Arg:
    """An integer source of 8, 16 or 32 bits, extended to 32; the byte or half is a selector."""
    operand = c.operand(role)
    value = c.isrc(role)
    if c.negated(role):
        raise c.refuse("negated source of a conversion")
    if kind.bits == 32:
        return value
    select = getattr(operand, "select", "")
    unit = {"B": 8, "H": 16}.get(select[:1], 0)
    start = unit * int(select[1]) if unit else 0
    temp = c.vtemp()
    c.emit("v_bfe_i32" if kind.signed else "v_bfe_u32", temp, value, I(start), I(kind.bits))
    return temp


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
    target = _first_float(c.ins)
    if kind.bits == 64:
        {64: _i64_to_f64, 32: _i64_to_f32, 16: _i64_to_f16}[target](c, kind.signed)
        return
    value = _narrow(c, kind)
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
    value, sort = _narrow(c, kind), "i32" if kind.signed else "u32"
    down, up = c.vtemp(), c.vtemp()
    with rounding(c, "RM"):
        c.emit(f"v_cvt_f32_{sort}", down, value)
    with rounding(c, "RP"):
        c.emit(f"v_cvt_f32_{sort}", up, value)
    _low_bf16(c, bfloat.odd(c, down, up))


def _low_bf16(c: RuleEmitter, value: Arg) -> None:
    """The result: binary32 rounded to bf16, as the instruction requires, in the low half."""
    out = c.vtemp()
    bfloat.upper_half(c, out, value, next((m for m in c.ins.modifiers if m in _ROUNDS), ""))
    c.emit("v_lshrrev_b32", c.dst_last(), I(16), out)


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
    _low_bf16(c, single)


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
    name = next((_ROUND_OP[m] for m in c.ins.modifiers if m in _ROUND_OP), "rndne")
    if name == "trunc":
        return value
    temp = c.vtemp(2 if width == 64 else 1)
    c.emit(f"v_{name}_f{width}", temp, value)
    return temp


def _half_source(c: RuleEmitter) -> Arg:
    """The half of Rb in the low bits; the other bits are undefined."""
    if getattr(c.operand("Rb"), "select", "") not in ("H1", "H1_H1"):
        return c.src("Rb")
    temp = c.vtemp()
    c.emit("v_lshrrev_b32", temp, I(16), c.src("Rb"))
    return temp


def _bf16_source(c: RuleEmitter) -> V:
    """Rb as binary32, with its signs; with .FTZ flushed, which is the same in both formats."""
    out = c.vtemp()
    if getattr(c.operand("Rb"), "select", "") in ("H1", "H1_H1"):
        c.emit("v_and_b32", out, I(0xFFFF0000), c.src("Rb"))
    else:
        c.emit("v_lshlrev_b32", out, I(16), c.src("Rb"))
    if c.flag("Rb", "abs"):
        c.emit("v_and_b32", out, I(0x7FFFFFFF), out)
    if c.flag("Rb", "neg"):
        c.emit("v_xor_b32", out, I(0x80000000), out)
    return _without_denormals(c, out)


def _without_denormals(c: RuleEmitter, value: Arg) -> V:
    """Binary32, flushed if the instruction says .FTZ."""
    if not c.ins.has("FTZ"):
        return c.to_v(value)
    temp = c.vtemp()
    with ftz(c):
        c.emit("v_mul_f32", temp, I(0x3F800000), value)
    return temp


def _double_source(c: RuleEmitter) -> V:
    """Rb as a double, with its signs; with .FTZ flushed."""
    pair = c.vtuple("Rb", 2)
    out = pair
    if float_bits(c, "Rb", 1) != V(pair.index + 1):
        out = c.vtemp(2)
        c.emit("v_mov_b32", V(out.index), V(pair.index))
        c.emit("v_mov_b32", V(out.index + 1), float_bits(c, "Rb", 1))
    if not c.ins.has("FTZ"):
        return out
    fresh, one = c.vtemp(2), constant64(c, 0x3FF00000)
    c.raw(Inst("s_denorm_mode", (), imm=FLUSH_F16))  # doubles have the mode of halves
    c.emit("v_mul_f64", fresh, out, one)
    c.raw(Inst("s_denorm_mode", (), imm=KEEP_DENORMALS))
    return fresh


def _single_of_half(c: RuleEmitter) -> V:
    """Rb's half as binary32, with its signs; with .FTZ flushed."""
    out = c.vtemp()
    c.emit("v_cvt_f32_f16", out, _half_source(c), **c.fneg("Rb"))
    return halfwise.flushed(c, out) if c.ins.has("FTZ") else out


def _signed_but_nan(c: RuleEmitter, value: Arg, width: int) -> Arg:
    """A source of a conversion to or from doubles with its signs, which do not apply to a NaN."""
    neg, absolute = c.flag("Rb", "neg"), c.flag("Rb", "abs")
    if not neg and not absolute:
        return value
    nan, out, high = c.stemp(), c.vtemp(width // 32), part(value, width // 32 - 1)
    top = V(out.index + width // 32 - 1)
    c.emit(f"v_cmp_u_f{width}", nan, value, value)
    if absolute:
        c.emit("v_or_b32" if neg else "v_and_b32", top, I(1 << 31 if neg else 0x7FFFFFFF), high)
    else:
        c.emit("v_xor_b32", top, I(1 << 31), high)
    c.emit("v_cndmask_b32", top, top, c.to_v(high), nan)
    if width == 64:
        c.emit("v_mov_b32", V(out.index), part(value, 0))
    return out


def _wider_source(c: RuleEmitter, kind: str) -> Arg:
    """The source of a conversion to double, in another format, as binary32."""
    if kind == "F32":
        return _signed_but_nan(c, c.src("Rb"), 32)
    single = c.vtemp()
    if kind == "F16":
        c.emit("v_cvt_f32_f16", single, _half_source(c))
    elif getattr(c.operand("Rb"), "select", "") in ("H1", "H1_H1"):
        c.emit("v_and_b32", single, I(0xFFFF0000), c.src("Rb"))
    else:
        c.emit("v_lshlrev_b32", single, I(16), c.src("Rb"))
    signed = c.to_v(_signed_but_nan(c, single, 32))
    if not c.ins.has("FTZ"):
        return signed
    return halfwise.flushed(c, signed) if kind == "F16" else _without_denormals(c, signed)


def _float_source(c: RuleEmitter) -> tuple[Arg, int]:
    """The source with its sign operations applied, as f32 or f64."""
    width = _first_float(c.ins)
    if width == 64:
        return _double_source(c), 64
    if c.ins.has("BF16"):
        return _bf16_source(c), 32
    if width == 16:
        return _single_of_half(c), 32
    value = float_bits(c, "Rb")
    return (_without_denormals(c, value) if c.ins.has("FTZ") else value), 32


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
    name = next((_ROUND_OP[m] for m in c.ins.modifiers if m in _ROUND_OP), "rndne")
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


def constant64(c: RuleEmitter, high: int) -> V:
    """A double with a zero low word, in VGPRs."""
    pair = c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), ZERO)
    c.emit("v_mov_b32", V(pair.index + 1), I(high))
    return pair


# --- float to float -------------------------------------------------------------------------------


def frnd(c: RuleEmitter) -> None:
    width = _first_float(c.ins)
    name = next((_ROUND_OP[m] for m in c.ins.modifiers if m in _ROUND_OP), "rndne")
    if width == 16 or c.ins.has("BF16"):
        _frnd16(c, name)
        return
    if width == 64 and c.ins.has("FTZ"):
        round_flushed(c, f"v_{name}_f64", _double_source(c))
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
        c.emit(f"v_{name}_f32", out, _bf16_source(c))
        c.emit("v_cmp_u_f32", nan, out, out)
        c.emit("v_lshrrev_b32", out, I(16), out)
    else:
        if c.ins.has("FTZ"):
            single = _single_of_half(c)
            c.emit(f"v_{name}_f32", single, single)
            c.emit("v_cvt_f16_f32", out, single)  # exact
        else:
            c.emit(f"v_{name}_f16", out, _half_source(c), **c.fneg("Rb"))
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
        value = _signed_but_nan(c, c.src64("Rb"), 64) if double else _wider_source(c, "F32")
        with rounding(c), ftz(c):
            c.emit(f"v_cvt_f{to}_f{source}", c.dst_last(), value)
        return
    if c.ins.has("FTZ") and source == 16:
        c.emit("v_mov_b32", c.dst_last(), _single_of_half(c))
        return
    if c.ins.has("FTZ") and to == 16:
        _give_half(c, c.to_v(float_bits(c, "Rb")))
        return
    value = _half_source(c) if source == 16 else c.src("Rb")
    out = c.vtemp() if to == 16 else c.dst_last()
    with rounding(c), ftz(c):
        c.emit(f"v_cvt_f{to}_f{source}", out, value, **c.fneg("Rb"))
    if to == 16:
        c.emit("v_and_b32", c.dst_last(), I(0xFFFF), out)  # its high half is the old one


def _how(c: RuleEmitter) -> str:
    """The instruction's rounding, empty for the nearest."""
    return next((m for m in c.ins.modifiers if m in _ROUNDS), "")


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
    value = _signed_but_nan(c, c.src64("Rb"), 64)
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
    c.emit("v_cvt_f64_f32", c.dst_last(), _wider_source(c, "F16"))


def _f2f_bf16(c: RuleEmitter) -> None:
    """To or from single precision."""
    kinds = [m for m in c.ins.modifiers if m in ("F16", "BF16", "F32", "F64")]
    if kinds == ["BF16", "F32"]:
        _low_bf16(c, _without_denormals(c, float_bits(c, "Rb")))
    elif kinds == ["F32", "BF16"]:
        value, nan = _bf16_source(c), c.stemp()
        c.emit("v_cmp_u_f32", nan, value, value)
        c.emit("v_cndmask_b32", c.dst_last(), value, I(0x7FFFFFFF), nan)
    elif kinds == ["BF16", "F64"]:
        _f64_to_bf16(c)
    elif kinds == ["F64", "BF16"]:
        c.emit("v_cvt_f64_f32", c.dst_last(), _wider_source(c, "BF16"))
    elif kinds == ["BF16", "F16"]:
        _low_bf16(c, _single_of_half(c))
    elif kinds == ["F16", "BF16"]:
        _give_half(c, _bf16_source(c), one_nan=True)
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

"""Operands of conversions: their kinds, and each as a value that an instruction converts."""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, V
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.rules.arithmetic import bfloat, halfwise
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.modes import FLUSH_F16, KEEP_DENORMALS, ftz
from sassxlate.lowering.target import ZERO

_INTS = ("S8", "U8", "S16", "U16", "S32", "U32", "S64", "U64")
ROUNDS = ("RM", "RP", "RZ")
ROUND_OP = {"TRUNC": "trunc", "FLOOR": "floor", "CEIL": "ceil"}


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


def first_float(ins: Instruction, default: int = 32) -> int:
    for m in ins.modifiers:
        if m in ("F16", "F32", "F64"):
            return int(m[1:])
    return default


def narrow_source(c: RuleEmitter, kind: IntType, role: str = "Rb") -> Arg:
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


def low_bf16(c: RuleEmitter, value: Arg) -> None:
    """The result: binary32 rounded to bf16, as the instruction requires, in the low half."""
    out = c.vtemp()
    bfloat.upper_half(c, out, value, next((m for m in c.ins.modifiers if m in ROUNDS), ""))
    c.emit("v_lshrrev_b32", c.dst_last(), I(16), out)


def half_source(c: RuleEmitter) -> Arg:
    """The half of Rb in the low bits; the other bits are undefined."""
    if getattr(c.operand("Rb"), "select", "") not in ("H1", "H1_H1"):
        return c.src("Rb")
    temp = c.vtemp()
    c.emit("v_lshrrev_b32", temp, I(16), c.src("Rb"))
    return temp


def bf16_source(c: RuleEmitter) -> V:
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
    return without_denormals(c, out)


def without_denormals(c: RuleEmitter, value: Arg) -> V:
    """Binary32, flushed if the instruction says .FTZ."""
    if not c.ins.has("FTZ"):
        return c.to_v(value)
    temp = c.vtemp()
    with ftz(c):
        c.emit("v_mul_f32", temp, I(0x3F800000), value)
    return temp


def double_source(c: RuleEmitter) -> V:
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


def single_of_half(c: RuleEmitter) -> V:
    """Rb's half as binary32, with its signs; with .FTZ flushed."""
    out = c.vtemp()
    c.emit("v_cvt_f32_f16", out, half_source(c), **c.fneg("Rb"))
    return halfwise.flushed(c, out) if c.ins.has("FTZ") else out


def signed_but_nan(c: RuleEmitter, value: Arg, width: int) -> Arg:
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


def wider_source(c: RuleEmitter, kind: str) -> Arg:
    """The source of a conversion to double, in another format, as binary32."""
    if kind == "F32":
        return signed_but_nan(c, c.src("Rb"), 32)
    single = c.vtemp()
    if kind == "F16":
        c.emit("v_cvt_f32_f16", single, half_source(c))
    elif getattr(c.operand("Rb"), "select", "") in ("H1", "H1_H1"):
        c.emit("v_and_b32", single, I(0xFFFF0000), c.src("Rb"))
    else:
        c.emit("v_lshlrev_b32", single, I(16), c.src("Rb"))
    signed = c.to_v(signed_but_nan(c, single, 32))
    if not c.ins.has("FTZ"):
        return signed
    return halfwise.flushed(c, signed) if kind == "F16" else without_denormals(c, signed)


def constant64(c: RuleEmitter, high: int) -> V:
    """A double with a zero low word, in VGPRs."""
    pair = c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), ZERO)
    c.emit("v_mov_b32", V(pair.index + 1), I(high))
    return pair

"""Two values in one register: floats as halves, bf16, TF32 or bytes, integers of 2 to 16 bits.

Bytes of floats (E4M3, E5M2) are in :mod:`.convert.float8`.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic import bfloat
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.convert import float8
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

_PARTS = ("S2", "U2", "S4", "U4", "S8", "U8", "S16", "U16")


def _tf32(c: RuleEmitter) -> None:
    """Ten bits of mantissa, rounded to the nearest or towards zero; the rest are zeros."""
    if c.ins.has("SATFINITE"):
        raise c.refuse("this form of F2FP")
    value, nan = c.to_v(float_bits(c, "Rb")), c.stemp()
    out: Arg = value
    if not c.ins.has("RZ"):
        bit = c.vtemp()
        c.emit("v_bfe_u32", bit, value, I(13), I(1))
        c.emit("v_add3_u32", bit, bit, value, I(0xFFF))
        out = bit
    c.emit("v_cmp_u_f32", nan, value, value)
    rounded = c.vtemp()
    c.emit("v_cndmask_b32", rounded, out, I(0x7FFFE000), nan)
    if c.ins.has("RELU"):  # a NaN has no sign
        c.emit("v_max_i32", rounded, ZERO, rounded)
    c.emit("v_and_b32", c.dst_last(), I(0xFFFFE000), rounded)


def f2fp(c: RuleEmitter) -> None:
    """Packs two f32 as halves, Ra in the high one; or packs one, with a half of Rc above it."""
    ins = c.ins
    if ins.has("TF32") and ins.has("PACK_B"):
        _tf32(c)
        return
    if any(ins.has(m) for m in ("E4M3", "E5M2", "TF32", "UNPACK_B")):
        raise c.refuse("this form of F2FP")
    if not (ins.has("PACK_AB") or ins.has("MERGE_C")):
        raise c.refuse("this form of F2FP")
    bf16 = ins.has("BF16")
    parts: list[V] = []
    for role in ("Rb", "Ra") if ins.has("PACK_AB") else ("Rb",):
        out = c.vtemp()
        if bf16:
            bfloat.upper_half(c, out, float_bits(c, role), "RZ" if ins.has("RZ") else "")
            if ins.has("SATFINITE"):
                _finite(c, out, float_bits(c, role), 0x7F7F0000)
        else:
            _to_f16(c, out, role)
        parts.append(out)
    if ins.has("MERGE_C"):
        parts.append(_half_c(c, shifted=bf16))
    low, high = parts
    if not bf16:
        c.emit("v_and_b32", low, I(0xFFFF), low)
        c.emit("v_lshl_or_b32", c.dst_last(), high, I(16), low)
    elif ins.has("RELU"):
        packed = c.vtemp()
        bfloat.packed(c, packed, low, high)
        _relu16(c, packed, low)
    else:
        bfloat.packed(c, c.dst_last(), low, high)


def _to_f16(c: RuleEmitter, out: V, role: str) -> None:
    """A source as a half; with .RELU at least +0, or 0x7fff, with .SATFINITE finite or a NaN."""
    if not c.ins.has("RELU") and not c.ins.has("SATFINITE"):
        with rounding(c):
            c.emit("v_cvt_f16_f32", out, c.src(role), **c.fneg(role))
        return
    value, nan, minus = c.to_v(float_bits(c, role)), c.stemp(), c.stemp()
    with rounding(c):
        c.emit("v_cvt_f16_f32", out, value)
    c.emit("v_and_b32", out, I(0xFFFF), out)  # its high half is the old one
    if c.ins.has("SATFINITE"):
        _finite(c, out, value, 0x7BFF)
    if c.ins.has("RELU"):
        c.emit("v_cmp_gt_i32", minus, ZERO, value)
        c.emit("v_cndmask_b32", out, out, ZERO, minus)
    c.emit("v_cmp_u_f32", nan, value, value)
    c.emit("v_cndmask_b32", out, out, I(0x7FFF), nan)


def _finite(c: RuleEmitter, out: V, value: Arg, largest: int) -> None:
    """Clamps a value beyond the largest finite number, in the format of ``out``, to that number
    with the sign of the binary32 ``value``; a NaN stays."""
    sign = 0x8000 if largest < 0x10000 else 0x80000000
    size, top, huge, nan = c.vtemp(), c.vtemp(), c.stemp(), c.stemp()
    c.emit("v_and_b32", size, I(sign - 1), out)
    c.emit("v_and_b32", top, I(0x80000000), value)
    if sign == 0x8000:
        c.emit("v_lshrrev_b32", top, I(16), top)
    else:  # the bits below a bf16 number are undefined
        c.emit("v_and_b32", size, I(0x7FFF0000), size)
    c.emit("v_or_b32", top, I(largest), top)
    c.emit("v_cmp_lt_u32", huge, I(largest), size)
    c.emit("v_cmp_o_f32", nan, c.to_v(value), c.to_v(value))
    c.emit("s_and_b32", huge, huge, nan)
    c.emit("v_cndmask_b32", out, out, top, huge)


def _half_c(c: RuleEmitter, *, shifted: bool) -> V:
    """A half of Rc in the low bits, or ``shifted`` in the high ones; the other bits are
    undefined."""
    select = getattr(c.operand("Rc"), "select", "")
    if select not in ("", "H1"):
        raise c.refuse(f"selector {select}")
    if shifted == bool(select):
        return c.to_v(c.src("Rc"))
    out = c.vtemp()
    c.emit("v_lshlrev_b32" if shifted else "v_lshrrev_b32", out, I(16), c.src("Rc"))
    return out


def _relu16(c: RuleEmitter, packed: V, mask: V) -> None:
    """.RELU: negative halves become +0, NaN 0x7fff; a half from Rc is unchanged."""
    if c.ins.has("MERGE_C"):
        c.emit("v_pk_max_i16", mask, packed, c.to_v(ZERO))
        c.emit("v_bfi_b32", c.dst_last(), I(0xFFFF), mask, packed)
    else:
        c.emit("v_pk_max_i16", c.dst_last(), packed, c.to_v(ZERO))


def f2ip(c: RuleEmitter) -> None:
    """Two floats as bytes, saturated, with a half of Rc above; a NaN gives 0 with .NTZ, otherwise
    0x80."""
    signed = c.ins.has("S8")
    if c.ins.has("RELU") and not signed:
        raise c.refuse("RELU of an unsigned number")
    name = "v_trunc_f32" if c.ins.has("TRUNC") else "v_rndne_f32"
    low, high = (-128, 127) if signed else (0, 255)
    parts: list[V] = []
    for role in ("Ra", "Rb"):
        out, whole, nan = c.vtemp(), c.vtemp(), c.stemp()
        value = c.to_v(float_bits(c, role))
        c.emit(name, whole, value)
        c.emit("v_cvt_i32_f32", out, whole)
        c.emit("v_min_i32", out, I(high), out)
        c.emit("v_max_i32", out, I(low & 0xFFFFFFFF), out)
        if not c.ins.has("NTZ"):
            c.emit("v_cmp_u_f32", nan, value, value)
            c.emit("v_cndmask_b32", out, out, I(0x80 if not signed else 0xFFFFFF80), nan)
        if c.ins.has("RELU"):
            c.emit("v_max_i32", out, ZERO, out)
        c.emit("v_and_b32", out, I(0xFF), out)
        parts.append(out)
    _below(c, 8, *parts)


def i2i(c: RuleEmitter) -> None:
    """A signed word, saturated to a narrower type."""
    name = next(m for m in c.ins.modifiers if m in _PARTS)
    low, high = _limits(name)
    out = c.vtemp()
    c.emit("v_min_i32", out, I(high), c.src("Rb"))
    c.emit("v_max_i32", c.dst_last(), I(low & 0xFFFFFFFF), out)


def _limits(name: str) -> tuple[int, int]:
    bits = int(name[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "S" else (0, (1 << bits) - 1)


def i2ip(c: RuleEmitter) -> None:
    """Two integers as parts of 2 to 16 bits, truncated or saturated, with Rc above them."""
    name = next(m for m in c.ins.modifiers if m in _PARTS)
    bits = int(name[1:])
    if c.ins.has("SATRELU"):
        raise c.refuse("this form of I2IP")
    low, high = _limits(name)
    parts: list[V] = []
    for role in ("Ra", "Rb"):
        out = c.vtemp()
        value = c.src(role)
        if c.ins.has("SAT"):
            c.emit("v_min_i32", out, I(high), value)
            c.emit("v_max_i32", out, I(low & 0xFFFFFFFF), out)
            value = out
        c.emit("v_and_b32", out, I((1 << bits) - 1), value)
        parts.append(out)
    a, b = parts
    if bits == 16:
        c.operand("Rc")  # none of its bits is left
        c.emit("v_lshl_or_b32", c.dst_last(), a, I(16), b)
    elif bits == 8:
        _below(c, 8, a, b)
    else:
        c.operand("Rc")  # its selector is the shift
        c.emit("v_lshl_or_b32", a, a, I(bits), b)
        c.emit("v_lshl_or_b32", c.dst_last(), c.src("Rc"), I(2 * bits), a)


def _below(c: RuleEmitter, bits: int, a: V, b: V) -> None:
    """Two parts in the low half, Rc's low half, or with .H1 its high one, above them."""
    select = getattr(c.operand("Rc"), "select", "")
    if select not in ("", "H1"):
        raise c.refuse(f"selector {select}")
    c.emit("v_lshl_or_b32", a, a, I(bits), b)
    if select:
        c.emit("v_and_or_b32", c.dst_last(), c.src("Rc"), I(0xFFFF0000), a)
    else:
        c.emit("v_lshl_or_b32", c.dst_last(), c.src("Rc"), I(16), a)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "F2FP": "F16 BF16 F32 PACK_AB PACK_B MERGE_C RZ RELU SATFINITE E4M3 E5M2 TF32 UNPACK_B",
    "F2IP": "U8 S8 F32 TRUNC NTZ RELU",
    "I2I": "S8 U8 S16 U16 S32 SAT",
    "I2IP": "S2 U2 S4 U4 S8 U8 S16 U16 S32 SAT SATRELU",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    *float8.RULES,
    Rule("f2fp", "F2FP", f2fp),
    Rule("f2ip", "F2IP", f2ip),
    Rule("i2i", "I2I", i2i),
    Rule("i2ip", "I2IP", i2ip),
)

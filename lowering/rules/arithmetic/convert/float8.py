"""E5M2 and E4M3: floats of eight bits are packed and unpacked by way of halves.

Both are upper bits of a half, E4M3 with an exponent of 2**8 less.  A value to pack is rounded to a
half to odd first, so only the rounding to the byte matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sassxlate.disasm.rdna3.instruction import Arg, I, S, V
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

_NAN = 0x7F
_FINITE = {"E5M2": 0x7B, "E4M3": 0x7E}
_CUT = {"E5M2": 8, "E4M3": 7}


def _kind(c: RuleEmitter) -> str:
    return next(m for m in c.ins.modifiers if m in _CUT)


def _packed(c: RuleEmitter, out: V, value: V) -> None:
    """The byte of a binary32 number; .SATFINITE and .RELU keep a NaN."""
    kind = _kind(c)
    scaled, down, up, bit = (c.vtemp() for _ in range(4))
    exact, minus, nan = c.stemp(), c.stemp(), c.stemp()
    if kind == "E4M3":
        c.emit("v_mul_f32", scaled, I(0x3B800000), value)  # 2**-8
    else:
        scaled = value
    for half, how in ((down, "RM"), (up, "RP")):
        with rounding(c, how):
            c.emit("v_cvt_f16_f32", half, scaled)
        c.emit("v_and_b32", half, I(0xFFFF), half)  # its high half is the old one
    c.emit("v_cmp_eq_f16", exact, down, up)
    c.emit("v_cmp_lt_u32", minus, I(0x7FFF), up)
    c.emit("v_cndmask_b32", down, down, up, minus)  # the one closer to zero
    c.emit("v_or_b32", down, I(1), down)
    c.emit("v_cndmask_b32", up, down, up, exact)
    cut = _CUT[kind]
    c.emit("v_and_b32", down, I(0x7FFF), up)
    c.emit("v_bfe_u32", bit, down, I(cut), I(1))
    c.emit("v_add3_u32", bit, bit, down, I((1 << cut - 1) - 1))
    c.emit("v_bfe_u32", out, bit, I(cut), I(8))
    c.emit("v_lshrrev_b32", up, I(8), up)
    c.emit("v_and_b32", up, I(0x80), up)
    c.emit("v_or_b32", up, out, up)
    c.emit("v_cmp_lt_u32", exact, I(0x7C00), down)
    if kind == "E4M3":  # out of range
        c.emit("v_cmp_le_u32", minus, I(_NAN), out)
        c.emit("s_or_b32", exact, exact, minus)
    c.emit("v_cndmask_b32", out, up, I(_NAN), exact)
    c.emit("v_cmp_u_f32", nan, value, value)
    _limited(c, kind, out, value, nan)


def _limited(c: RuleEmitter, kind: str, out: V, value: V, nan: S) -> None:
    hit, other = c.stemp(), c.vtemp()
    if c.ins.has("SATFINITE"):
        c.emit("v_and_b32", other, I(0x7F), out)
        c.emit("v_cmp_lt_u32", hit, I(_FINITE[kind]), other)
        c.emit("s_and_not1_b32", hit, hit, nan)
        c.emit("v_lshrrev_b32", other, I(24), value)
        c.emit("v_and_b32", other, I(0x80), other)
        c.emit("v_or_b32", other, I(_FINITE[kind]), other)
        c.emit("v_cndmask_b32", out, out, other, hit)
    if c.ins.has("RELU"):
        c.emit("v_cmp_gt_i32", hit, ZERO, value)
        c.emit("s_and_not1_b32", hit, hit, nan)
        c.emit("v_cndmask_b32", out, out, ZERO, hit)


def pack(c: RuleEmitter) -> None:
    """Two numbers (Ra and Rb, or the halves of Rb) as bytes, with a half of Rc above them."""
    sources: list[Arg] = []
    if c.ins.has("PACK_AB_MERGE_C"):
        sources = [float_bits(c, "Rb"), float_bits(c, "Ra")]
    else:
        if c.ins.has("BF16"):
            raise c.refuse("bytes from bf16")
        for shift in (0, 16):
            half, wide = c.vtemp(), c.vtemp()
            c.emit("v_lshrrev_b32", half, I(shift), c.src("Rb"))
            c.emit("v_cvt_f32_f16", wide, half)
            sources.append(wide)
    if any(c.ins.has(m) for m in ("RZ", "RP", "RM")):
        raise c.refuse("rounding of bytes")
    low, high = c.vtemp(), c.vtemp()
    for out, source in zip((low, high), sources, strict=True):
        with c.scope():
            _packed(c, out, c.to_v(source))
    select = getattr(c.operand("Rc"), "select", "")
    if select not in ("", "H1"):
        raise c.refuse(f"selector {select}")
    c.emit("v_lshl_or_b32", high, high, I(8), low)
    if select:
        c.emit("v_and_or_b32", c.dst_last(), c.src("Rc"), I(0xFFFF0000), high)
    else:
        c.emit("v_lshl_or_b32", c.dst_last(), c.src("Rc"), I(16), high)


def unpack(c: RuleEmitter) -> None:
    """The bytes of a half of Rb as halves; a NaN becomes 0x7fff."""
    kind, high = _kind(c), getattr(c.operand("Rb"), "select", "") == "H1"
    if not c.ins.has("F16"):
        raise c.refuse("this form of F2FP")
    parts: list[V] = []
    for at in (0, 8):
        byte, size, nan = c.vtemp(), c.vtemp(), c.stemp()
        c.emit("v_bfe_u32", byte, c.src("Rb"), I(at + (16 if high else 0)), I(8))
        c.emit("v_and_b32", size, I(0x7F), byte)
        if kind == "E4M3":
            c.emit("v_cmp_eq_u32", nan, I(0x7F), size)
            c.emit("v_lshlrev_b32", size, I(7), size)
            c.emit("v_and_b32", byte, I(0x80), byte)
            c.emit("v_lshl_or_b32", byte, byte, I(8), size)
            c.emit("v_mul_f16", byte, I(0x5C00), byte)  # 2**8
        else:
            c.emit("v_cmp_lt_u32", nan, I(0x7C), size)
            c.emit("v_lshlrev_b32", byte, I(8), byte)
        c.emit("v_cndmask_b32", byte, byte, I(0x7FFF), nan)
        c.emit("v_and_b32", byte, I(0xFFFF), byte)
        parts.append(byte)
    if not c.ins.has("RELU"):
        c.emit("v_lshl_or_b32", c.dst_last(), parts[1], I(16), parts[0])
        return
    both = c.vtemp()
    c.emit("v_lshl_or_b32", both, parts[1], I(16), parts[0])
    c.emit("v_pk_max_i16", c.dst_last(), both, c.to_v(ZERO))


# The smallest exponent field, in a half's terms: a denormal byte has it, too.
LEAST = {"E5M2": 1, "E4M3": 9}


def halves_of(c: RuleEmitter, kind: str, words: Sequence[V], rows: int) -> list[V]:
    """Words of four bytes as words of two halves, exactly: for each ``rows`` registers first all of
    their low bytes, then all of the high ones.  A NaN becomes some NaN."""
    out: list[V] = []
    for first in range(0, len(words), rows):
        for shift in (0, 16):
            for word in words[first : first + rows]:
                half = c.vtemp()
                out.append(half)
                with c.scope():
                    _pair(c, kind, half, word, shift)
    return out


def _pair(c: RuleEmitter, kind: str, out: V, word: V, shift: int) -> None:
    """The two bytes of a word from bit ``shift`` on as the halves of ``out``."""
    c.emit("v_perm_b32", out, word, word, I(0x010C000C | (0x02000200 if shift else 0)))
    if kind == "E5M2":
        return
    size, top = c.vtemp(), c.vtemp()
    c.emit("v_and_b32", size, I(0x7F007F00), out)
    c.emit("v_mov_b32", top, I(0x7F007F00))
    c.emit("v_pk_sub_u16", top, size, top)  # 0 for a NaN, which is 0x7f
    c.emit("v_lshrrev_b32", size, I(1), size)
    c.emit("v_and_or_b32", out, I(0x80008000), out, size)
    scale, one = c.vtemp(), c.vtemp()
    c.emit("v_mov_b32", scale, I(0x5C005C00))  # 2**8
    c.emit("v_pk_mul_f16", out, out, scale)
    c.emit("v_mov_b32", one, I(0x00010001))
    c.emit("v_pk_min_u16", top, top, one)
    c.emit("v_pk_sub_u16", top, top, one)  # all ones for a NaN, otherwise 0
    c.emit("v_or_b32", out, out, top)


def _packs(ins: Instruction) -> bool:
    forms = ("PACK_AB_MERGE_C", "UNPACK_B_MERGE_C")
    return any(ins.has(m) for m in forms) and any(ins.has(k) for k in _CUT)


def _unpacks(ins: Instruction) -> bool:
    return ins.has("UNPACK_B") and any(ins.has(k) for k in _CUT)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "f2fp_bytes": "E4M3 E5M2 F16 BF16 F32 PACK_AB_MERGE_C UNPACK_B_MERGE_C RELU SATFINITE RM RP RZ",
    "f2fp_halves": "E4M3 E5M2 F16 UNPACK_B RELU",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("f2fp_bytes", "F2FP", pack, _packs),
    Rule("f2fp_halves", "F2FP", unpack, _unpacks),
)

"""IMAD: products and sums, low, high and wide; moves and shifts that are written as products.

IMAD.HI is the high word of a*b + the pair Rc.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, S, V
from sassxlate.disasm.sass.instruction import Imm, Instruction
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.rules.arithmetic.operands import (
    add,
    add_carry,
    carry_in,
    const_value,
    invert,
    is_plain,
    is_zero,
    ones,
    signed,
)
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import VCC, ZERO


def _power_of_two(ins: Instruction) -> bool:
    b = const_value(ins.get("Rb"))
    return b is not None and b > 1 and b & (b - 1) == 0


def _is_move(ins: Instruction) -> bool:
    return is_zero(ins.get("Ra")) or is_zero(ins.get("Rb"))


def imad_mov(c: RuleEmitter) -> None:
    c.emit("v_mov_b32", c.dst_last(), signed(c, "Rc"))


def imad_add(c: RuleEmitter) -> None:
    a = signed(c, "Ra")
    if c.negated("Rc"):
        c.emit("v_sub_nc_u32", c.dst_last(), a, c.isrc("Rc"))
    else:
        add(c, c.dst_last(), a, c.isrc("Rc"))


def imad_shl(c: RuleEmitter) -> None:
    b = const_value(c.ins.get("Rb"))
    assert b is not None
    shift = b.bit_length() - 1
    a = signed(c, "Ra")
    if is_zero(c.ins.get("Rc")):
        c.emit("v_lshlrev_b32", c.dst_last(), I(shift), a)
    else:
        c.emit("v_lshl_add_u32", c.dst_last(), a, I(shift), signed(c, "Rc"))


def imad(c: RuleEmitter) -> None:
    product = c.vtemp()
    a, b = signed(c, "Ra"), signed(c, "Rb")
    if is_zero(c.ins.get("Rc")):
        c.emit("v_mul_lo_u32", c.dst_last(), a, b)
        return
    c.emit("v_mul_lo_u32", product, a, b)
    if c.negated("Rc"):
        c.emit("v_sub_nc_u32", c.dst_last(), product, c.isrc("Rc"))
    else:
        add(c, c.dst_last(), product, c.isrc("Rc"))


def imad_x(c: RuleEmitter) -> None:
    """a*b + c + carry-in; the carry out (of the 32-bit sum) goes to Pu."""
    product: Arg = ZERO
    if not _is_move(c.ins):
        temp = c.vtemp()
        c.emit("v_mul_lo_u32", temp, signed(c, "Ra"), signed(c, "Rb"))
        product = temp
    cin = carry_in(c, "Pp")
    out = c.stemp()
    add_carry(c, c.dst(), product, signed(c, "Rc"), cin, out)
    if c.wants_pred("Pu"):
        if not _is_move(c.ins):
            raise c.refuse("carry out of a 32-bit multiply-add")
        c.pred_commit("Pu", out, clean=True)


def wide_addend(c: RuleEmitter, negative: bool) -> Arg:
    """Rc of a wide multiply-add as a 64-bit operand."""
    operand = c.ins.get("Rc")
    if is_zero(operand):
        return ZERO
    if isinstance(operand, Imm) and operand.bits == 32 and operand.value >> 31:
        raise c.refuse("negative immediate as a 64-bit addend")
    pair = c.src64("Rc")
    inverted = c.flag("Rc", "inv")
    if not negative and not inverted:
        return pair
    temp = c.vtemp(2)
    lo, hi = part(pair, 0), part(pair, 1)
    if inverted:
        c.emit("v_not_b32", V(temp.index), lo)
        c.emit("v_not_b32", V(temp.index + 1), hi)
        return temp
    c.emit("v_sub_co_u32", V(temp.index), VCC, ZERO, lo)
    c.emit("v_sub_co_ci_u32", V(temp.index + 1), VCC, ZERO, hi, VCC)
    return temp


def _wide(c: RuleEmitter, dst: V, carry: S) -> None:
    """dst (a fresh pair) = a*b + Rc as 64 bits, signed unless .U32."""
    op = "v_mad_u64_u32" if c.ins.has("U32") else "v_mad_i64_i32"
    if c.negated("Ra") or c.negated("Rb"):
        raise c.refuse("negated factor of a wide multiply-add")
    c.emit(op, dst, carry, c.isrc("Ra"), c.isrc("Rb"), wide_addend(c, c.negated("Rc")))


def _product_and_sum(c: RuleEmitter) -> tuple[Arg, Arg, S]:
    """The 64 bits of Ra * Rb + Rc with its sign, complement or carry-in, and the carry out: that of
    an adder whose input is the complement of a negative Rc, with a carry-in."""
    if c.negated("Ra") or c.negated("Rb"):
        raise c.refuse("negated factor of a wide multiply-add")
    low, high, out = c.vtemp(), c.vtemp(), c.vtemp(2)
    sort = "u32" if c.ins.has("U32") else "i32"
    a, b = c.isrc("Ra"), c.isrc("Rb")
    c.emit("v_mul_lo_u32", low, a, b)
    c.emit(f"v_mul_hi_{sort}", high, a, b)
    minus = c.negated("Rc")
    cin = carry_in(c, "Pp") if c.ins.has("X") else ones(c) if minus else None
    for i, factor in enumerate((low, high)):
        addend = c.isrc("Rc", i)
        if minus:
            addend = invert(c, addend)
        carry = c.stemp()
        add_carry(c, V(out.index + i), factor, addend, cin, carry)
        cin = carry
    assert cin is not None
    return V(out.index), V(out.index + 1), cin


def _is_general_sum(c: RuleEmitter) -> bool:
    """Whether a wide multiply-add is beyond v_mad_u64_u32: with a carry in, or with a carry out of
    a signed sum or a negative addend."""
    odd = not c.ins.has("U32") or c.negated("Rc") or c.flag("Rc", "inv")
    return c.ins.has("X") or (c.wants_pred("Pu") and odd)


def imad_wide(c: RuleEmitter) -> None:
    if _is_general_sum(c):
        low, high, carry_out = _product_and_sum(c)
        dst = c.dst_last()  # every source has been read
        c.emit("v_mov_b32", V(dst.index), low)
        c.emit("v_mov_b32", V(dst.index + 1), high)
        c.pred_commit("Pu", carry_out, clean=True)
        return
    carry = c.stemp()
    fresh = c.vtemp(2)  # v_mad_u64_u32 must not write over its sources
    _wide(c, fresh, carry)
    dst = c.dst_last()  # every source has been read
    c.emit("v_mov_b32", V(dst.index), V(fresh.index))
    c.emit("v_mov_b32", V(dst.index + 1), V(fresh.index + 1))
    c.pred_commit("Pu", carry, clean=True)


def imad_hi(c: RuleEmitter) -> None:
    if _is_general_sum(c):
        _, high, carry_out = _product_and_sum(c)
        c.emit("v_mov_b32", c.dst_last(), high)
        c.pred_commit("Pu", carry_out, clean=True)
        return
    if is_zero(c.ins.get("Rc")) and is_plain(c.ins.get("Ra")) and is_plain(c.ins.get("Rb")):
        c.negated("Rc")  # no effect on a zero
        op = "v_mul_hi_u32" if c.ins.has("U32") else "v_mul_hi_i32"
        c.emit(op, c.dst_last(), c.src("Ra"), c.src("Rb"))
        c.pred_commit("Pu", ZERO, clean=True)  # nothing is added, so nothing carries
        return
    fresh, carry = c.vtemp(2), c.stemp()
    _wide(c, fresh, carry)
    c.emit("v_mov_b32", c.dst_last(), V(fresh.index + 1))
    c.pred_commit("Pu", carry, clean=True)  # the carry out of the 64-bit sum


def _imad_rules(source: str) -> tuple[Rule, ...]:
    low = source.lower()

    def plain(i: Instruction) -> bool:
        return not any(i.has(m) for m in ("WIDE", "HI", "X"))

    return (
        Rule(f"{low}_mov", source, imad_mov, lambda i: plain(i) and _is_move(i)),
        Rule(
            f"{low}_add",
            source,
            imad_add,
            lambda i: plain(i) and const_value(i.get("Rb")) == 1,
        ),
        Rule(f"{low}_shl", source, imad_shl, lambda i: plain(i) and _power_of_two(i)),
        Rule(f"{low}_wide", source, imad_wide, lambda i: i.has("WIDE")),
        Rule(f"{low}_hi", source, imad_hi, lambda i: i.has("HI")),
        Rule(f"{low}_x", source, imad_x, lambda i: i.has("X")),
        Rule(low, source, imad),
    )


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {"IMAD": "HI WIDE X U32 MOV SHL IADD"}
RULES: tuple[Rule, ...] = knowing(KNOWN, *_imad_rules("IMAD"), *_imad_rules("UIMAD"))

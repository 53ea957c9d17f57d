"""Operands of integer rules: constants, signs, complements, carries."""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.disasm.rdna3.instruction import Arg, I, S, V
from sassxlate.disasm.sass.instruction import Imm, Operand, Pred, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.target import ZERO


def is_zero(operand: Operand | None) -> bool:
    return (isinstance(operand, Reg) and operand.is_zero) or (
        isinstance(operand, Imm) and operand.value == 0
    )


def is_plain(operand: Operand | None) -> bool:
    """No sign, no complement."""
    return not (getattr(operand, "neg", False) or getattr(operand, "inv", False))


def const_value(operand: Operand | None) -> int | None:
    """The 32-bit value of an immediate or of RZ, signs applied."""
    if isinstance(operand, Reg) and operand.is_zero:
        value = 0
    elif isinstance(operand, Imm):
        value = operand.value
    else:
        return None
    if getattr(operand, "inv", False):
        value = ~value
    if getattr(operand, "neg", False):
        value = -value
    return value & 0xFFFFFFFF


def negate(c: RuleEmitter, arg: Arg) -> Arg:
    """-arg, modulo 2**32."""
    if isinstance(arg, I):
        return I(-arg.value & 0xFFFFFFFF)
    temp = c.vtemp()
    c.emit("v_sub_nc_u32", temp, ZERO, arg)
    return temp


def invert(c: RuleEmitter, arg: Arg) -> Arg:
    if isinstance(arg, I):
        return I(~arg.value & 0xFFFFFFFF)
    temp = c.vtemp()
    c.emit("v_not_b32", temp, arg)
    return temp


def signed(c: RuleEmitter, role: str) -> Arg:
    """A source with both its ``~`` and its ``-`` applied."""
    arg = c.isrc(role)
    return negate(c, arg) if c.negated(role) else arg


def wants(c: RuleEmitter, *roles: str) -> bool:
    return any(c.wants_pred(r) for r in roles)


def carry_in(c: RuleEmitter, role: str) -> S | None:
    """The carry-in as a mask register, or None when it is absent (!PT)."""
    if role not in c.ins.operands:
        return None
    operand = c.operand(role)
    if not isinstance(operand, Pred) or operand.is_false:
        return None
    return c.mask_reg(role)


def ones(c: RuleEmitter) -> S:
    temp = c.stemp()
    c.emit("s_mov_b32", temp, I(0xFFFFFFFF))
    return temp


def add(c: RuleEmitter, dst: V, a: Arg, b: Arg) -> None:
    c.emit("v_add_nc_u32", dst, a, b)


def add_carry(c: RuleEmitter, dst: V, a: Arg, b: Arg, cin: S | None, cout: S) -> None:
    """dst = a + b + cin, carry to the mask ``cout``."""
    if cin is None:
        c.emit("v_add_co_u32", dst, cout, a, b)
    else:
        c.emit("v_add_co_ci_u32", dst, cout, a, b, cin)


def sum_with_carries(
    c: RuleEmitter, dst: V, terms: Sequence[Arg], cins: Sequence[S]
) -> tuple[S, S | None]:
    """dst = the sum of one to three terms and at most two carries; returns the carry masks."""
    pending = list(cins)
    total: Arg = terms[0]
    rest = list(terms[1:]) or [ZERO]
    if len(pending) > len(rest):
        rest.append(ZERO)
    if len(pending) > len(rest):
        raise c.refuse("more carries than one addition takes")
    outs: list[S] = []
    for n, term in enumerate(rest):
        out = c.stemp()
        target = dst if n == len(rest) - 1 else c.vtemp()
        add_carry(c, target, total, term, pending.pop(0) if pending else None, out)
        outs.append(out)
        total = target
    return outs[0], (outs[1] if len(outs) > 1 else None)


def commit_carries(c: RuleEmitter, first: S, second: S | None) -> None:
    """Pu: the sum needs 33 bits or more; Pv: it needs 34."""
    if c.wants_pred("Pu"):
        any_carry = first
        if second is not None:
            any_carry = c.stemp()
            c.emit("s_or_b32", any_carry, first, second)
        c.pred_commit("Pu", any_carry, clean=True)
    if c.wants_pred("Pv"):
        both = c.stemp()
        if second is None:
            c.emit("s_mov_b32", both, ZERO)
        else:
            c.emit("s_and_b32", both, first, second)
        c.pred_commit("Pv", both, clean=True)


def shift_amount(c: RuleEmitter, limit: int) -> Arg:
    """Rb wrapped or clamped to ``limit`` (32 or 64); a constant stays one."""
    known = const_value(c.ins.get("Rb"))
    if known is not None:
        return I(known % limit if c.ins.has("W") else min(known, limit))
    temp = c.vtemp()
    if c.ins.has("W"):
        c.emit("v_and_b32", temp, I(limit - 1), c.src("Rb"))
    else:
        c.emit("v_min_u32", temp, I(limit), c.src("Rb"))
    return temp

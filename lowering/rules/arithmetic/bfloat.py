"""bf16 in binary32: pairs of them, and conversions.

Sums and products are rounded to odd there, so only the rounding to bf16 matters.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

_NAN = 0x7FFF0000
_UPPER = 0xFFFF0000
_ONE, _MINUS_ZERO = I(0x3F800000), I(0x80000000)


def widened(c: RuleEmitter, role: str, high: int) -> V:
    """A half of a source as binary32, by the selector, without its signs (see ``fneg``)."""
    select = getattr(c.operand(role), "select", "")
    if select not in ("", "H0_H0", "H1_H1"):
        raise c.refuse(f"half selector {select}")
    upper = select == "H1_H1" or (select == "" and high)
    out = c.vtemp()
    if upper:
        c.emit("v_and_b32", out, I(_UPPER), c.src(role))
    else:
        c.emit("v_lshlrev_b32", out, I(16), c.src(role))
    return out


def odd(c: RuleEmitter, down: V, up: V) -> V:
    """A result rounded to odd, from those rounded down and up; in the register of ``up``."""
    other, exact, minus = c.vtemp(), c.stemp(), c.stemp()
    c.emit("v_cmp_eq_f32", exact, down, up)
    c.emit("v_cmp_gt_i32", minus, ZERO, up)
    c.emit("v_cndmask_b32", other, down, up, minus)  # the one closer to zero
    c.emit("v_or_b32", other, I(1), other)
    c.emit("v_cndmask_b32", up, other, up, exact)
    return up


def upper_half(c: RuleEmitter, out: V, value: Arg, how: str = "") -> None:
    """Binary32 rounded to bf16 in the upper half of ``out``; a NaN becomes 0x7fff.

    ``how`` is RM, RP, RZ or nothing for the nearest; the lower half is not cleared.
    """
    nan = c.stemp()
    value = c.to_v(value)
    if how == "RZ":
        rounded: Arg = value
    elif how:  # away from zero on one side: the dropped bits carry
        sign, more = c.stemp(), c.vtemp()
        c.emit("v_cmp_gt_i32" if how == "RM" else "v_cmp_le_i32", sign, ZERO, value)
        c.emit("v_cndmask_b32", more, ZERO, I(0xFFFF), sign)
        c.emit("v_add_nc_u32", out, value, more)
        rounded = out
    else:
        bit = c.vtemp()
        c.emit("v_bfe_u32", bit, value, I(16), I(1))
        c.emit("v_add3_u32", out, bit, value, I(0x7FFF))
        rounded = out
    c.emit("v_cmp_u_f32", nan, value, value)
    c.emit("v_cndmask_b32", out, rounded, I(_NAN), nan)


def packed(c: RuleEmitter, out: V, low: V, high: V) -> None:
    """The upper halves of two registers as one."""
    c.emit("v_lshrrev_b32", low, I(16), low)
    c.emit("v_and_or_b32", out, high, I(_UPPER), low)


def _unless(c: RuleEmitter, *modifiers: str) -> None:
    if any(c.ins.has(m) for m in modifiers):
        raise c.refuse("this form of a bf16 instruction")


def _fma(c: RuleEmitter, roles: tuple[str | I, str | I, str | I]) -> None:
    """The products and sums of the halves; a constant replaces a missing source."""
    _unless(c, "FTZ", "FMZ", "SAT", "F32", "OOB")
    names = [r if isinstance(r, str) else "" for r in roles]
    signs = c.fneg(*names)
    parts: list[V] = []
    for high in (0, 1):
        parts.append(c.vtemp())
        with c.scope():
            args: list[Arg] = [r if isinstance(r, I) else widened(c, r, high) for r in roles]
            down, up = c.vtemp(), c.vtemp()
            with rounding(c, "RM"):
                c.emit("v_fma_f32", down, *args, **signs)
            with rounding(c, "RP"):
                c.emit("v_fma_f32", up, *args, **signs)
            upper_half(c, parts[high], odd(c, down, up))
    if not c.ins.has("RELU"):
        packed(c, c.dst_last(), *parts)
        return
    where = c.ins.get("Pp")
    if where is not None and not (isinstance(where, Pred) and where.index == 7 and not where.inv):
        raise c.refuse("RELU by a predicate")
    packed(c, parts[0], *parts)
    c.emit("v_pk_max_i16", c.dst_last(), parts[0], c.to_v(ZERO))  # a NaN is 0x7fff


def hadd2(c: RuleEmitter) -> None:
    _fma(c, ("Ra", _ONE, "Rb"))


def hmul2(c: RuleEmitter) -> None:
    _fma(c, ("Ra", "Rb", _MINUS_ZERO))


def hfma2(c: RuleEmitter) -> None:
    _fma(c, ("Ra", "Rb", "Rc"))


def hmnmx2(c: RuleEmitter) -> None:
    """The extreme of two numbers is one of them: nothing is rounded."""
    _unless(c, "FTZ", "XORSIGN", "IS_A")
    which = c.operand("Pp")
    if not (isinstance(which, Pred) and which.index == 7):
        raise c.refuse("HMNMX2 by a predicate")
    signs = c.fneg("Ra", "Rb")
    parts: list[V] = []
    for high in (0, 1):
        out, nan = c.vtemp(), c.stemp()
        a, b = widened(c, "Ra", high), widened(c, "Rb", high)
        c.emit("v_max_f32" if which.inv else "v_min_f32", out, a, b, **signs)
        c.emit("v_cmp_u_f32", nan, *((a, b) if c.ins.has("NAN") else (out, out)))
        c.emit("v_cndmask_b32", out, out, I(_NAN), nan)
        parts.append(out)
    packed(c, c.dst_last(), *parts)


def is_bf16(ins: Instruction) -> bool:
    return ins.has("BF16_V2") or ins.has("BF16")


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "hadd2_bf16": "BF16_V2 FTZ SAT F32",
    "hmul2_bf16": "BF16_V2 FTZ SAT FMZ F32",
    "hfma2_bf16": "MMA BF16_V2 FTZ SAT FMZ RELU OOB F32",
    "hmnmx2_bf16": "BF16_V2 FTZ NAN XORSIGN IS_A",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("hadd2_bf16", "HADD2", hadd2, is_bf16),
    Rule("hmul2_bf16", "HMUL2", hmul2, is_bf16),
    Rule("hfma2_bf16", "HFMA2", hfma2, is_bf16),
    Rule("hmnmx2_bf16", "HMNMX2", hmnmx2, is_bf16),
)

"""fp16 and bf16 one half at a time, in binary32: where AMD's packed instructions are not specified.

.FTZ flushes a value that is below the normal numbers once it is rounded to their precision
(measured), and whether AMD's halves do so is unknown; binary32 holds any product of two halves
exactly, and their sums rounded to odd, so the rounding to a half is the only one.
"""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import Arg, I, S, V
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic import bfloat
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.target import ZERO

LOW = frozenset({"H0_H0", "H0", "H0_NH0"})
HIGH = frozenset({"H1_H1", "H1"})
NEGATED_HIGH = "H0_NH1"  # the low part is the high half, negated, the high part the low half
_NAN = I(0x7FFF)
_MINUS_ZERO = I(0x80000000)
_OUT_OF_BOUNDS = I(0x7FF7)
# Patterns of binary32: the smallest normal half, and the least value rounded up to it, per
# rounding mode, with eleven bits of mantissa.
_NORMAL, _NORMAL_BF16 = 0x38800000, 0x00800000
_TO_NEAREST, _UPWARDS = 0x387FF000, 0x387FE001


def bits16(c: RuleEmitter, role: str, high: int, *, signs: bool = True) -> V:
    """The low or the high half of a source under its selector, with its signs or without."""
    operand = c.operand(role)
    select = getattr(operand, "select", "")
    if select not in LOW | HIGH | {"", NEGATED_HIGH}:
        raise c.refuse(f"half selector {select}")
    turned = select == NEGATED_HIGH
    upper = select in HIGH or bool(high) if select not in LOW else False
    if turned:
        upper = not high
    out = c.vtemp()
    c.emit("v_bfe_u32", out, c.to_v(c.src(role)), I(16 if upper else 0), I(16))
    if not signs:
        return out
    minus = bool(getattr(operand, "neg", False))
    if getattr(operand, "abs", False):
        c.emit("v_and_b32", out, I(0x7FFF), out)
    elif turned and not high:
        minus = not minus
    if minus:
        c.emit("v_xor_b32", out, I(0x8000), out)
    return out


def single(c: RuleEmitter, half: V, *, bf16: bool) -> V:
    """A half, in the low bits, as binary32."""
    out = c.vtemp()
    if bf16:
        c.emit("v_lshlrev_b32", out, I(16), half)
    else:
        c.emit("v_cvt_f32_f16", out, half)
    return out


def flushed(c: RuleEmitter, value: Arg, limit: int = _NORMAL) -> V:
    """Flushes binary32: a value of smaller magnitude than the pattern ``limit`` becomes a zero of
    its sign."""
    size, zero, tiny, out = c.vtemp(), c.vtemp(), c.stemp(), c.vtemp()
    c.emit("v_and_b32", size, I(0x7FFFFFFF), value)
    c.emit("v_cmp_gt_u32", tiny, I(limit), size)
    c.emit("v_and_b32", zero, I(0x80000000), value)
    c.emit("v_cndmask_b32", out, c.to_v(value), zero, tiny)
    return out


def flushed_result(c: RuleEmitter, value: V, how: str = "") -> V:
    """Binary32 (exact, or rounded to odd) to be converted to a half, flushed as .FTZ does; ``how``
    is RM, RP, RZ or empty for the nearest."""
    if how in ("", "RZ"):
        return flushed(c, value, _NORMAL if how else _TO_NEAREST)
    size, zero, limit, out = c.vtemp(), c.vtemp(), c.vtemp(), c.vtemp()
    away, tiny = c.stemp(), c.stemp()
    c.emit("v_cmp_gt_i32" if how == "RM" else "v_cmp_le_i32", away, ZERO, value)
    c.emit("v_cndmask_b32", limit, I(_NORMAL), I(_UPWARDS), away)
    c.emit("v_and_b32", size, I(0x7FFFFFFF), value)
    c.emit("v_cmp_gt_u32", tiny, limit, size)
    c.emit("v_and_b32", zero, I(0x80000000), value)
    c.emit("v_cndmask_b32", out, value, zero, tiny)
    return out


def source(c: RuleEmitter, half: V, *, bf16: bool, flush: bool) -> V:
    """A half as binary32, flushed if the instruction says .FTZ."""
    value = single(c, half, bf16=bf16)
    return flushed(c, value, _NORMAL_BF16 if bf16 else _NORMAL) if flush else value


def joined(c: RuleEmitter, dst: V, low: V, high: V) -> None:
    """Two halves in low bits, with zeros above, as one register."""
    c.emit("v_lshl_or_b32", dst, high, I(16), low)


def is_general(ins: Instruction) -> bool:
    """Whether a product or sum of products is one that the packed instructions cannot compute."""
    turned = any(getattr(o, "select", "") == NEGATED_HIGH for o in ins.operands.values())
    flushes = any(ins.has(m) for m in ("FTZ", "FMZ", "OOB"))
    where = ins.get("Pp")
    by_predicate = ins.has("RELU") and isinstance(where, Pred) and not where.is_true
    return flushes or (bfloat.is_bf16(ins) and (turned or by_predicate))


def is_general_extreme(ins: Instruction) -> bool:
    """Whether a minimum or maximum is beyond a single packed instruction."""
    which = ins.get("Pp")
    by_predicate = isinstance(which, Pred) and which.index != 7
    more = ("XORSIGN", "IS_A") if bfloat.is_bf16(ins) else ("XORSIGN", "IS_A", "NAN")
    return by_predicate or any(ins.has(m) for m in more)


# --- products and their sums ----------------------------------------------------------------------


def products(c: RuleEmitter, roles: tuple[str, ...]) -> None:
    """Ra * Rb, or with Rc added, of both halves, under .FTZ, .FMZ, .OOB, .RELU and .SAT."""
    if bfloat.is_bf16(c.ins) and any(c.ins.has(m) for m in ("FTZ", "FMZ", "SAT")):
        raise c.refuse("this form of a bf16 instruction")
    if c.ins.has("F32"):
        raise c.refuse("this form of a half-precision instruction")
    parts: list[V] = []
    for high in (0, 1):
        parts.append(c.vtemp())
        with c.scope():
            c.emit("v_mov_b32", parts[high], _product(c, roles, high))
    packed = c.vtemp()
    joined(c, packed, *parts)
    finish(c, packed)


def _product(c: RuleEmitter, roles: tuple[str, ...], high: int) -> V:
    bf16, flush = bfloat.is_bf16(c.ins), c.ins.has("FTZ") or c.ins.has("FMZ")
    halves = [bits16(c, role, high) for role in roles]
    a, b, *rest = (source(c, half, bf16=bf16, flush=flush) for half in halves)
    addend = rest[0] if rest else None
    total = c.vtemp()
    if addend is None and not bf16:
        c.emit("v_mul_f32", total, a, b)  # exact
    else:
        third: Arg = _MINUS_ZERO if addend is None else addend
        with rounding(c, "RM"):
            down = c.vtemp()
            c.emit("v_fma_f32", down, a, b, third)
        with rounding(c, "RP"):
            c.emit("v_fma_f32", total, a, b, third)
        total = bfloat.odd(c, down, total)
    if c.ins.has("FMZ"):
        total = _zero_product(c, total, a, b, addend)
    out, hit = c.vtemp(), c.stemp()
    if bf16:
        bfloat.upper_half(c, out, total)
        c.emit("v_lshrrev_b32", out, I(16), out)
    else:
        if flush:
            total = flushed_result(c, total)
        c.emit("v_cvt_f16_f32", out, total)
        c.emit("v_and_b32", out, I(0xFFFF), out)  # its high half is the old one
        c.emit("v_cmp_u_f32", hit, total, total)
        c.emit("v_cndmask_b32", out, out, _NAN, hit)
    if c.ins.has("OOB"):
        for factor in halves[:2]:
            size = c.vtemp()
            c.emit("v_and_b32", size, I(0x7FFF), factor)
            c.emit("v_cmp_eq_u32", hit, _OUT_OF_BOUNDS, size)
            c.emit("v_cndmask_b32", out, out, ZERO, hit)
    return out


def _zero_product(c: RuleEmitter, total: V, a: V, b: V, addend: V | None) -> V:
    """.FMZ: zero times anything is +0, plus the addend."""
    alone, zero, other, out = c.vtemp(), c.stemp(), c.stemp(), c.vtemp()
    c.emit("v_add_f32", alone, ZERO, ZERO if addend is None else addend)
    c.emit("v_cmp_eq_f32", zero, ZERO, a)
    c.emit("v_cmp_eq_f32", other, ZERO, b)
    c.emit("s_or_b32", zero, zero, other)
    c.emit("v_cndmask_b32", out, total, alone, zero)
    return out


def finish(c: RuleEmitter, packed: V) -> None:
    """.RELU if Pp holds or is absent, and .SAT, for two halves whose NaN are 0x7fff."""
    out = packed
    if c.ins.has("RELU"):
        out = c.vtemp()
        c.emit("v_pk_max_i16", out, packed, c.to_v(ZERO))  # a NaN is the largest pattern
        where = c.operand("Pp") if "Pp" in c.ins.operands else None
        if isinstance(where, Pred) and not where.is_true:
            chosen = c.vtemp()
            c.emit("v_cndmask_b32", chosen, packed, out, c.mask_reg("Pp"))
            out = chosen
    if c.ins.has("SAT"):
        c.emit("v_pk_max_f16", c.dst_last(), out, out, clamp=True)
    else:
        c.emit("v_mov_b32", c.dst_last(), out)


def one_nan(c: RuleEmitter, packed: V) -> V:
    """Two fp16 halves, whose NaN become 0x7fff."""
    low, high, upper, nan = c.vtemp(), c.vtemp(), c.vtemp(), c.stemp()
    c.emit("v_bfi_b32", low, I(0xFFFF), _NAN, packed)
    c.emit("v_cmp_u_f16", nan, packed, packed)
    c.emit("v_cndmask_b32", low, packed, low, nan)
    c.emit("v_lshrrev_b32", upper, I(16), packed)
    c.emit("v_bfi_b32", high, I(0xFFFF), low, I(0x7FFF0000))
    c.emit("v_cmp_u_f16", nan, upper, upper)
    c.emit("v_cndmask_b32", low, low, high, nan)
    return low


# --- minimum and maximum --------------------------------------------------------------------------


def _number(c: RuleEmitter, half: V) -> V:
    """A half in the form to compare: fp16 itself, flushed under .FTZ; bf16 as binary32."""
    if bfloat.is_bf16(c.ins):
        return single(c, half, bf16=True)
    if not c.ins.has("FTZ"):
        return half
    exponent, zero, tiny, out = c.vtemp(), c.vtemp(), c.stemp(), c.vtemp()
    c.emit("v_and_b32", exponent, I(0x7C00), half)
    c.emit("v_cmp_eq_u32", tiny, ZERO, exponent)
    c.emit("v_and_b32", zero, I(0x8000), half)
    c.emit("v_cndmask_b32", out, half, zero, tiny)
    return out


def _unordered(c: RuleEmitter, nan: S, a: V, b: V) -> None:
    c.emit("v_cmp_u_f32" if bfloat.is_bf16(c.ins) else "v_cmp_u_f16", nan, a, b)


def _pick(c: RuleEmitter, p: V, q: V, signs: V | None) -> tuple[V, V, V]:
    """The extreme of two halves; the same before .XORSIGN, which takes the sign of ``signs``; and
    the first of them in compared form."""
    bf16 = bfloat.is_bf16(c.ins)
    a, b = _number(c, p), _number(c, q)
    which, value, nan = c.operand("Pp"), c.vtemp(), c.stemp()
    # For fp16 both halves of a register: the upper ones are zeros.
    name = "v_{}_f32" if bf16 else "v_pk_{}_f16"
    if isinstance(which, Pred) and which.index == 7:
        c.emit(name.format("max" if which.inv else "min"), value, a, b)
    else:
        least = c.vtemp()
        c.emit(name.format("min"), least, a, b)
        c.emit(name.format("max"), value, a, b)
        c.emit("v_cndmask_b32", value, value, least, c.mask_reg("Pp"))
    _unordered(c, nan, *((a, b) if c.ins.has("NAN") else (value, value)))
    if bf16:
        c.emit("v_lshrrev_b32", value, I(16), value)
    chosen = c.vtemp()
    c.emit("v_cndmask_b32", chosen, value, _NAN, nan)
    if signs is None:
        return chosen, chosen, a
    out = c.vtemp()
    c.emit("v_bfi_b32", out, I(0x7FFF), chosen, signs)
    c.emit("v_and_b32", out, I(0xFFFF), out)
    c.emit("v_cndmask_b32", out, out, chosen, nan)
    return out, chosen, a


def _sign_of(c: RuleEmitter, a: V, b: V) -> V | None:
    if not c.ins.has("XORSIGN"):
        return None
    out = c.vtemp()
    c.emit("v_xor_b32", out, a, b)
    return out


def _check_extreme(c: RuleEmitter) -> None:
    if bfloat.is_bf16(c.ins) and c.ins.has("FTZ"):
        raise c.refuse("this form of a bf16 instruction")


def extreme(c: RuleEmitter) -> None:
    """HMNMX2.  .IS_A: Pu and Pv are true if the low and the high half are Ra's."""
    _check_extreme(c)
    parts: list[V] = []
    told = [c.stemp(), c.stemp()] if c.ins.has("IS_A") else []
    for high in (0, 1):
        parts.append(c.vtemp())
        with c.scope():
            p, q = (bits16(c, role, high) for role in ("Ra", "Rb"))
            raw = (bits16(c, role, high, signs=False) for role in ("Ra", "Rb"))
            out, chosen, a = _pick(c, p, q, _sign_of(c, *raw) if c.ins.has("XORSIGN") else None)
            c.emit("v_mov_b32", parts[high], out)
            if told:
                _is_first(c, told[high], out, chosen, p, a)
    joined(c, c.dst_last(), *parts)
    for role, mask in zip(("Pu", "Pv"), told, strict=False):
        c.pred_commit(role, mask)


def _is_first(c: RuleEmitter, mask: S, out: V, chosen: V, first: V, compared: V) -> None:
    other, none = c.stemp(), c.stemp()
    c.emit("v_cmp_eq_u32", mask, out, first)
    c.emit("v_cmp_eq_u32", other, chosen, first)
    c.emit("s_and_b32", mask, mask, other)
    _unordered(c, none, compared, compared)
    c.emit("v_cmp_eq_u32", other, _NAN, out)
    c.emit("s_and_b32", none, none, other)
    c.emit("s_or_b32", mask, mask, none)


def extreme3(c: RuleEmitter) -> None:
    """VHMNMX: the extreme of Ra's and Rb's halves, then of that and Rc's."""
    _check_extreme(c)
    parts: list[V] = []
    for high in (0, 1):
        parts.append(c.vtemp())
        with c.scope():
            p, q, r = (bits16(c, role, high) for role in ("Ra", "Rb", "Rc"))
            raw = [bits16(c, role, high, signs=False) for role in ("Ra", "Rb", "Rc")]
            first, _, _ = _pick(c, p, q, _sign_of(c, raw[0], raw[1]))
            out, _, _ = _pick(c, first, r, _sign_of(c, first, raw[2]))
            c.emit("v_mov_b32", parts[high], out)
    joined(c, c.dst_last(), *parts)

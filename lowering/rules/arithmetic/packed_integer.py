"""Two halves or four bytes at once, and sums over them: VIMNMX, VIADD, VABSDIFF, IDP and others."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.integer import select_minmax
from sassxlate.lowering.rules.arithmetic.operands import (
    add,
    carry_in,
    commit_carries,
    invert,
    is_plain,
    is_zero,
    ones,
    signed,
    sum_with_carries,
    wants,
)
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import VCC, ZERO


def _extreme16(c: RuleEmitter, dst: V, a: V, b: V) -> None:
    """The halves' minimum if Pp holds, otherwise the maximum."""
    which, sort = c.operand("Pp"), "u16" if c.ins.has("U16x2") else "i16"
    if isinstance(which, Pred) and which.index == 7:
        c.emit(f"v_pk_{'max' if which.inv else 'min'}_{sort}", dst, a, b)
        return
    least, most = c.vtemp(), c.vtemp()
    c.emit(f"v_pk_min_{sort}", least, a, b)
    c.emit(f"v_pk_max_{sort}", most, a, b)
    c.emit("v_cndmask_b32", dst, most, least, c.mask_reg("Pp"))


def _give16(c: RuleEmitter, *sources: V) -> V:
    """The extreme of the sources' halves, with .RELU at least 0."""
    if c.ins.has("RELU") and c.ins.has("U16x2"):
        raise c.refuse("RELU of unsigned numbers")
    out, *rest = sources
    last = len(rest) - 1
    for i, source in enumerate(rest):
        done = i == last and not c.ins.has("RELU")
        target = c.dst() if done else c.vtemp()
        _extreme16(c, target, out, source)
        out = target
    if c.ins.has("RELU"):
        target = c.dst()
        c.emit("v_pk_max_i16", target, out, c.to_v(ZERO))
        out = target
    return out


def minmax16(c: RuleEmitter) -> None:
    """VIMNMX on two 16-bit halves; Pu and Pv are true if the low and the high one are Ra's."""
    a = c.vsrc("Ra")
    out = _give16(c, a, c.vsrc("Rb"))
    for role, op, count in (("Pu", "v_lshlrev_b32", 16), ("Pv", "v_lshrrev_b32", 16)):
        if not c.wants_pred(role):
            continue
        left, right, mask = c.vtemp(), c.vtemp(), c.pred_out(role)
        c.emit(op, left, I(count), out)
        c.emit(op, right, I(count), a)
        c.emit("v_cmp_eq_u32", mask, left, right)
        c.pred_commit(role, mask, clean=True)


def minmax3_16(c: RuleEmitter) -> None:
    _give16(c, c.vsrc("Ra"), c.vsrc("Rb"), c.vsrc("Rc"))


def addminmax16(c: RuleEmitter) -> None:
    """VIADDMNMX on two halves: the extreme of Ra + Rb, which wraps, and Rc."""
    total = c.vtemp()
    add16 = "v_pk_sub_i16" if c.negated("Rb") else "v_pk_add_u16"
    c.emit(add16, total, c.vsrc("Ra"), c.vsrc("Rb"))
    _give16(c, total, c.vsrc("Rc"))


def minmax8(c: RuleEmitter) -> None:
    """VIMNMX on four bytes: their minimum if Pp holds, otherwise the maximum."""
    signed_bytes = c.ins.has("S8x4")
    a, b, which = c.vsrc("Ra"), c.vsrc("Rb"), c.operand("Pp")
    extract = "v_bfe_i32" if signed_bytes else "v_bfe_u32"
    out, left, right = c.vtemp(), c.vtemp(), c.vtemp()
    for n in range(4):
        c.emit(extract, left, a, I(8 * n), I(8))
        c.emit(extract, right, b, I(8 * n), I(8))
        with c.scope():
            select_minmax(c, left, left, right, which, "i32" if signed_bytes else "u32")
        if n == 0:
            c.emit("v_and_b32", out, I(0xFF), left)
            continue
        c.emit("v_and_b32", left, I(0xFF), left)
        c.emit("v_lshl_or_b32", out, left, I(8 * n), out)
    c.emit("v_mov_b32", c.dst_last(), out)


def viadd_parts(c: RuleEmitter) -> None:
    """VIADD on two halves or four bytes; each wraps."""
    minus, minus_a = c.negated("Rb"), c.negated("Ra")
    a, b = c.vsrc("Ra"), c.vsrc("Rb")
    if minus_a and minus:
        less = c.vtemp()
        _add_parts(c, less, c.to_v(ZERO), a, minus=True)
        a = less
    elif minus_a:
        a, b, minus = b, a, True
    _add_parts(c, c.dst_last(), a, b, minus=minus)


def _add_parts(c: RuleEmitter, out: V, a: Arg, b: Arg, *, minus: bool) -> None:
    """``a`` plus or minus ``b``, part by part; ``out`` is written last."""
    if any("16x2" in m for m in c.ins.modifiers):
        c.emit("v_pk_sub_i16" if minus else "v_pk_add_u16", out, a, b)
        return
    # The top bits of the bytes are added without a carry out of them.
    top, low, high = I(0x80808080), c.vtemp(), c.vtemp()
    c.emit("v_and_b32", low, I(0x7F7F7F7F), b)
    if minus:
        c.emit("v_or_b32", high, top, a)
        c.emit("v_sub_nc_u32", low, high, low)
        c.emit("v_xnor_b32", high, a, b)
    else:
        c.emit("v_and_b32", high, I(0x7F7F7F7F), a)
        c.emit("v_add_nc_u32", low, high, low)
        c.emit("v_xor_b32", high, a, b)
    c.emit("v_and_b32", high, top, high)
    c.emit("v_xor_b32", out, low, high)


def _carry_out(c: RuleEmitter, op: str, a: Arg, b: Arg) -> None:
    """Rd = ``op`` of two sources and Rc; Pu: the sum does not fit 32 bits."""
    addend = c.src("Rc")
    if not c.wants_pred("Pu"):
        c.emit(op, c.dst_last(), a, b, addend)
        return
    total, carry = c.dst(), c.pred_out("Pu")
    c.emit(op, total, a, b, addend)
    c.emit("v_cmp_gt_u32", carry, addend, total)
    c.pred_commit("Pu", carry, clean=True)


def sad(c: RuleEmitter) -> None:
    """VABSDIFF: |Ra - Rb| + Rc, signed unless .U32."""
    a, b = c.src("Ra"), c.src("Rb")
    if c.ins.has("U32"):
        _carry_out(c, "v_sad_u32", a, b)
        return
    if c.wants_pred("Pu"):
        raise c.refuse("carry out of a signed distance")
    low, high, diff = c.vtemp(), c.vtemp(), c.vtemp()
    c.emit("v_min_i32", low, a, b)
    c.emit("v_max_i32", high, a, b)
    c.emit("v_sub_nc_u32", diff, high, low)
    add(c, c.dst_last(), diff, c.src("Rc"))


def sad4(c: RuleEmitter) -> None:
    """VABSDIFF4: byte by byte |Ra - Rb|, packed, ignoring Rc; with .ACC their sum plus Rc."""
    a, b = c.src("Ra"), c.src("Rb")
    if not c.ins.has("U8"):  # adding 128 on both sides changes no distance
        lifted = c.vtemp(), c.vtemp()
        for out, arg in zip(lifted, (a, b), strict=True):
            c.emit("v_xor_b32", out, I(0x80808080), arg)
        a, b = lifted
    if c.ins.has("ACC"):
        _carry_out(c, "v_sad_u8", a, b)
        return
    c.pred_commit("Pu", ZERO, clean=True)
    out, left, right, low = c.vtemp(), c.vtemp(), c.vtemp(), c.vtemp()
    c.emit("v_mov_b32", out, ZERO)
    for n in range(4):
        c.emit("v_bfe_u32", left, a, I(8 * n), I(8))
        c.emit("v_bfe_u32", right, b, I(8 * n), I(8))
        c.emit("v_min_u32", low, left, right)
        c.emit("v_max_u32", left, left, right)
        c.emit("v_sub_nc_u32", left, left, low)
        c.emit("v_lshl_or_b32", out, left, I(8 * n), out)
    c.emit("v_mov_b32", c.dst_last(), out)


def idp(c: RuleEmitter) -> None:
    """IDP.4A: four byte products plus Rc; .2A: Ra's halves times two bytes of Rb.  The signedness
    of both operands is a modifier."""
    sorts = [m for m in c.ins.modifiers if m in ("S8", "U8", "S16", "U16")]
    if len(sorts) != 2 or sorts[1] not in ("S8", "U8"):
        raise c.refuse("this form of IDP")
    a, b, total = c.src("Ra"), c.src("Rb"), c.vtemp()
    c.emit("v_mov_b32", total, signed(c, "Rc"))
    left, right = c.vtemp(), c.vtemp()
    bits, first = int(sorts[0][1:]), 16 if c.ins.has("HI") else 0
    for n in range(32 // bits):
        for temp, arg, sort, at, size in (
            (left, a, sorts[0], bits * n, bits), (right, b, sorts[1], 8 * n + first, 8)
        ):  # fmt: skip
            op = "v_bfe_i32" if sort[0] == "S" else "v_bfe_u32"
            c.emit(op, temp, arg, I(at), I(size))
        c.emit("v_mul_lo_u32", left, left, right)
        add(c, total, total, left)
    c.emit("v_mov_b32", c.dst_last(), total)


def iadd3_64(c: RuleEmitter) -> None:
    """UIADD3.64: the sum of three pairs of words."""
    if c.ins.has("X") or wants(c, "Pu", "Pv"):
        _sum64_with_carries(c)
        return
    roles = [r for r in ("Ra", "Rb", "Rc") if not is_zero(c.ins.get(r))]
    total, dst = c.vtemp(2), c.dst()
    low, high = V(total.index), V(total.index + 1)
    for half in (low, high):
        c.emit("v_mov_b32", half, ZERO)
    for role in roles:
        kind = "sub" if c.negated(role) else "add"
        c.emit(f"v_{kind}_co_u32", low, VCC, low, c.src(role, 0))
        c.emit(f"v_{kind}_co_ci_u32", high, VCC, high, c.src(role, 1), VCC)
    for i, half in enumerate((low, high)):
        c.emit("v_mov_b32", V(dst.index + i), half)


def _sum64_with_carries(c: RuleEmitter) -> None:
    """Word by word; as in 32 bits, ``-x`` is ~x and a carry of 1, so that -0 carries out."""
    roles = ("Ra", "Rb", "Rc")
    minus = [r for r in roles if c.negated(r)]
    carries = [ones(c) for _ in minus]
    if c.ins.has("X"):
        carries += [p for p in (carry_in(c, "Pp"), carry_in(c, "Pq")) if p is not None]
    if len(carries) > 2:  # at most two carries out
        raise c.refuse("carries of three negated addends")
    present = [r for r in roles if not (is_zero(c.ins.get(r)) and is_plain(c.ins.get(r)))]
    total, dst = c.vtemp(2), c.dst()
    for word in range(2):
        terms: list[Arg] = []
        for role in present:
            value = c.src(role, word)
            inverted = role in minus or c.flag(role, "inv")
            terms.append(invert(c, value) if inverted else value)
        first, second = sum_with_carries(c, V(total.index + word), terms or [ZERO], carries)
        carries = [first] if second is None else [first, second]
    for word in range(2):
        c.emit("v_mov_b32", V(dst.index + word), V(total.index + word))
    commit_carries(c, carries[0], carries[1] if len(carries) > 1 else None)


def _bytes(ins: Instruction) -> bool:
    return ins.has("U8x4") or ins.has("S8x4")


def _halves(ins: Instruction) -> bool:
    return any(ins.has(m) for m in ("S16x2", "U16x2", "16x2"))


def _parts(ins: Instruction) -> bool:
    return any(m.endswith(("x2", "x4")) for m in ins.modifiers)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "vimnmx16": "U16x2 S16x2 16x2 RELU",
    "vimnmx3_16": "U16x2 S16x2 16x2 RELU",
    "viaddmnmx16": "U16x2 S16x2 16x2 RELU",
    "vimnmx8": "U8x4 S8x4",
    "uvimnmx16": "U16x2 S16x2 RELU",
    "uvimnmx8": "U8x4 S8x4",
    "uviadd_parts": "16x2 U16x2 S16x2 U8x4 S8x4",
    "viadd_parts": "16x2 U16x2 S16x2 U8x4 S8x4",
    "VABSDIFF": "U32",
    "VABSDIFF4": "U8 ACC",
    "IDP": "4A 2A LO HI S8 U8 S16 U16",
    "iadd3_64": "64 X",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("vimnmx16", "VIMNMX", minmax16, _halves),
    Rule("vimnmx3_16", "VIMNMX3", minmax3_16, _halves),
    Rule("viaddmnmx16", "VIADDMNMX", addminmax16, _halves),
    Rule("vimnmx8", "VIMNMX", minmax8, _bytes),
    Rule("uvimnmx16", "UVIMNMX", minmax16, _halves),
    Rule("uvimnmx8", "UVIMNMX", minmax8, _bytes),
    Rule("viadd_parts", "VIADD", viadd_parts, _parts),
    Rule("uviadd_parts", "UVIADD", viadd_parts, _parts),
    Rule("vabsdiff", "VABSDIFF", sad),
    Rule("vabsdiff4", "VABSDIFF4", sad4),
    Rule("idp", "IDP", idp),
    Rule("iadd3_64", "UIADD3", iadd3_64, lambda i: i.has("64")),
)

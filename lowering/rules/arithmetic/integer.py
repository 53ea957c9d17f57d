"""Integer arithmetic: additions with carries, minimum and maximum, absolute value.

Semantics: a ``-x`` of IADD3 is the two addends ~x and 1, so that -0 carries; IADD3.X adds ~x and
both carry-ins; IMAD.HI is the high word of a*b + the pair Rc; LEA negates after the shift.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, S, V
from sassxlate.disasm.sass.instruction import Instruction, Operand, Pred
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.rules.arithmetic.operands import (
    add,
    add_carry,
    carry_in,
    commit_carries,
    invert,
    is_plain,
    is_zero,
    negate,
    ones,
    signed,
    sum_with_carries,
    wants,
)
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO


def iadd3(c: RuleEmitter) -> None:
    roles = ("Ra", "Rb", "Rc")
    extended = c.ins.has("X")
    carries = wants(c, "Pu", "Pv")
    if not extended and not carries:
        for r in roles:
            c.negated(r)  # no effect on a zero
        terms = [r for r in roles if not is_zero(c.ins.get(r)) or c.flag(r, "inv")]
        minus = [r for r in terms if c.negated(r)]
        dst = c.dst_last()
        if len(terms) == 2 and len(minus) == 1 and c.ins.get(minus[0]) is not None:
            plus = next(r for r in terms if r != minus[0])
            c.emit("v_sub_nc_u32", dst, c.isrc(plus), c.isrc(minus[0]))
            return
        args = [signed(c, r) for r in terms]
        if not args:
            c.emit("v_mov_b32", dst, ZERO)
        elif len(args) == 1:
            c.emit("v_mov_b32", dst, args[0])
        elif len(args) == 2:
            add(c, dst, args[0], args[1])
        else:
            c.emit("v_add3_u32", dst, *args)
        return
    values: list[Arg] = []
    cins: list[S] = []
    for r in roles:
        operand = c.ins.get(r)
        if c.negated(r):
            values.append(invert(c, c.src(r)))
            cins.append(ones(c))
        elif not (is_zero(operand) and is_plain(operand)):
            values.append(c.isrc(r))
    if extended:
        cins += [p for p in (carry_in(c, "Pp"), carry_in(c, "Pq")) if p is not None]
    if len(cins) > 2:  # at most two carries out
        raise c.refuse("carries of three negated addends")
    dst = c.dst()
    first, second = sum_with_carries(c, dst, values or [ZERO], cins)
    commit_carries(c, first, second)


def iadd(c: RuleEmitter) -> None:
    """IADD of sm_100 and later: two operands, optionally 64 bits wide, optionally with carries."""
    wide = c.ins.has("64")
    words = 2 if wide else 1
    neg_a, neg_b = c.negated("Ra"), c.negated("Rb")
    if neg_a and neg_b:
        raise c.refuse("both operands negated")
    cin: S | None = carry_in(c, "Pp") if c.ins.has("X") else None
    if neg_a or neg_b:
        if cin is not None:
            raise c.refuse("negated operand with a carry-in")
        cin = ones(c)
    dst = c.dst()
    carry = cin
    for w in range(words):
        a, b = c.isrc("Ra", w), c.isrc("Rb", w)
        a = invert(c, a) if neg_a else a
        b = invert(c, b) if neg_b else b
        out = c.stemp()
        add_carry(c, V(dst.index + w), a, b, carry, out)
        carry = out
    if c.wants_pred("Pu") and carry is not None:
        c.pred_commit("Pu", carry, clean=True)


def shifted_up(c: RuleEmitter, shift: int) -> Arg:
    """Ra << shift, or for .HI the high word of (Rc:Ra) << shift; .SX32 takes Ra's sign as Rc."""
    if not c.ins.has("HI"):
        if shift == 0:
            return c.src("Ra")
        temp = c.vtemp()
        c.emit("v_lshlrev_b32", temp, I(shift), c.src("Ra"))
        return temp
    high: Arg
    if c.ins.has("SX32"):
        sign = c.vtemp()
        c.emit("v_ashrrev_i32", sign, I(31), c.src("Ra"))
        high = sign
    else:
        high = c.src("Rc")
    if shift == 0:
        return high
    temp = c.vtemp()
    c.emit("v_alignbit_b32", temp, high, c.src("Ra"), I(32 - shift))
    return temp


def lea(c: RuleEmitter) -> None:
    shift = c.imm("shift") & 31
    extended = c.ins.has("X")
    plain = not (extended or wants(c, "Pu") or c.ins.has("HI"))
    if plain and shift and not (c.negated("Ra") or c.flag("Ra", "inv")):
        c.emit("v_lshl_add_u32", c.dst_last(), c.src("Ra"), I(shift), signed(c, "Rb"))
        return
    value = shifted_up(c, shift)
    if not extended and not wants(c, "Pu"):
        if c.negated("Ra"):
            value = negate(c, value)
        elif c.flag("Ra", "inv"):
            value = invert(c, value)
        add(c, c.dst_last(), value, signed(c, "Rb"))
        return
    cins: list[S] = []
    terms: list[Arg] = []
    for arg, role in ((value, "Ra"), (c.src("Rb"), "Rb")):
        if c.negated(role):
            terms.append(invert(c, arg))
            cins.append(ones(c))
        elif c.flag(role, "inv"):
            terms.append(invert(c, arg))
        else:
            terms.append(arg)
    if extended and (cin := carry_in(c, "Pp")) is not None:
        cins.append(cin)
    first, second = sum_with_carries(c, c.dst(), terms, cins)
    commit_carries(c, first, second)


def iabs(c: RuleEmitter) -> None:
    minus = c.vtemp()
    value = signed(c, "Rb")
    c.emit("v_sub_nc_u32", minus, ZERO, value)
    c.emit("v_max_i32", c.dst_last(), value, minus)


def minmax(c: RuleEmitter) -> None:
    """Pp true selects the minimum.  Pu and Pv are true if the result is Ra."""
    sort = "u32" if c.ins.has("U32") else "i32"
    which = c.operand("Pp")
    a, b = signed(c, "Ra"), signed(c, "Rb")
    dst = c.dst()
    select_minmax(c, dst, a, b, which, sort)
    _relu(c, dst)
    if wants(c, "Pu", "Pv"):
        taken = c.stemp()
        c.emit("v_cmp_eq_u32", taken, a, dst)
        for role in ("Pu", "Pv"):
            if c.wants_pred(role):
                c.pred_commit(role, taken, clean=True)


def _relu(c: RuleEmitter, dst: V) -> None:
    """.RELU: negative results become 0."""
    if not c.ins.has("RELU"):
        return
    if c.ins.has("U32"):
        raise c.refuse("RELU of unsigned numbers")
    c.emit("v_max_i32", dst, ZERO, dst)


def select_minmax(c: RuleEmitter, dst: V, a: Arg, b: Arg, which: Operand, sort: str) -> None:
    if isinstance(which, Pred) and which.index == 7:
        c.emit(f"v_{'max' if which.inv else 'min'}_{sort}", dst, a, b)
        return
    low, high = c.vtemp(), c.vtemp()
    mask = c.mask(which)
    c.emit(f"v_min_{sort}", low, a, b)
    c.emit(f"v_max_{sort}", high, a, b)
    c.emit("v_cndmask_b32", dst, high, low, mask)


def minmax64(c: RuleEmitter) -> None:
    """64-bit minimum and maximum: IMNMX.U64, .S64 of sm_120."""
    which, more = c.operand("Pp"), c.operand("Pq")
    if not (isinstance(more, Pred) and more.is_false) or wants(c, "Pu", "Pv"):
        raise c.refuse("this form of IMNMX")
    a, b = c.src64("Ra"), c.src64("Rb")
    less, out = c.stemp(), c.vtemp(2)
    c.emit(f"v_cmp_lt_{'u' if c.ins.has('U64') else 'i'}64", less, a, b)
    mask = c.mask(which)  # true is the minimum: take a where less == which
    c.emit("s_xor_b32", less, less, mask)
    for w in range(2):
        c.emit("v_cndmask_b32", V(out.index + w), part(a, w), part(b, w), less)
    dst = c.dst_last()
    for w in range(2):
        c.emit("v_mov_b32", V(dst.index + w), V(out.index + w))


def viadd(c: RuleEmitter) -> None:
    if c.ins.has("ISAT"):
        if c.negated("Ra") or not c.ins.has("S32"):
            raise c.refuse("this form of VIADD")
        op = "v_sub_nc_i32" if c.negated("Rb") else "v_add_nc_i32"
        c.emit(op, c.dst_last(), c.src("Ra"), c.src("Rb"), clamp=True)
        return
    if c.negated("Rb"):
        c.emit("v_sub_nc_u32", c.dst_last(), signed(c, "Ra"), c.isrc("Rb"))
    else:
        add(c, c.dst_last(), signed(c, "Ra"), signed(c, "Rb"))


def viaddmnmx(c: RuleEmitter) -> None:
    """minimum or maximum of Ra + Rb and Rc; the sum wraps."""
    total = c.vtemp()
    add(c, total, signed(c, "Ra"), signed(c, "Rb"))
    sort = "u32" if c.ins.has("U32") else "i32"
    dst = c.dst()
    select_minmax(c, dst, total, signed(c, "Rc"), c.operand("Pp"), sort)
    _relu(c, dst)


def vimnmx3(c: RuleEmitter) -> None:
    sort = "u32" if c.ins.has("U32") else "i32"
    temp = c.vtemp()
    which = c.operand("Pp")
    select_minmax(c, temp, signed(c, "Ra"), signed(c, "Rb"), which, sort)
    dst = c.dst()
    select_minmax(c, dst, temp, signed(c, "Rc"), which, sort)
    _relu(c, dst)


def _no_simd(ins: Instruction) -> bool:
    return not any(m.endswith(("x2", "x4", "64")) for m in ins.modifiers)


def _is_64(ins: Instruction) -> bool:
    return ins.has("U64") or ins.has("S64")


def _wide_add(ins: Instruction) -> bool:
    return not ins.has("64")


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "IADD3": "X",
    "IADD": "64 X",
    "LEA": "HI SX32 X",
    "IABS": "",
    "IMNMX": "U32",
    "imnmx64": "U64 S64",
    "uimnmx64": "U64 S64",
    "VIMNMX": "S32 U32 RELU",
    "VIADD": "32 S32 U32 ISAT",
    "VIADDMNMX": "U32 RELU",
    "VIMNMX3": "S32 U32 RELU",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("iadd3", "IADD3", iadd3, _wide_add),
    Rule("uiadd3", "UIADD3", iadd3, _wide_add),
    Rule("iadd", "IADD", iadd),
    Rule("lea", "LEA", lea, _wide_add),
    Rule("ulea", "ULEA", lea, _wide_add),
    Rule("iabs", "IABS", iabs),
    Rule("uiabs", "UIABS", iabs),
    Rule("imnmx", "IMNMX", minmax, _no_simd),
    Rule("imnmx64", "IMNMX", minmax64, _is_64),
    Rule("uimnmx", "UIMNMX", minmax, _no_simd),
    Rule("uimnmx64", "UIMNMX", minmax64, _is_64),
    Rule("vimnmx", "VIMNMX", minmax, _no_simd),
    Rule("uvimnmx", "UVIMNMX", minmax, _no_simd),
    Rule("viadd", "VIADD", viadd, _no_simd),
    Rule("uviadd", "UVIADD", viadd, _no_simd),
    Rule("viaddmnmx", "VIADDMNMX", viaddmnmx, _no_simd),
    Rule("vimnmx3", "VIMNMX3", vimnmx3, _no_simd),
)

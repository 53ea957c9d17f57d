"""Integer arithmetic: additions with carries, multiply-adds, minimum and maximum, absolute value.

Semantics: a ``-x`` of IADD3 is the two addends ~x and 1, so that -0 carries; IADD3.X adds ~x and
both carry-ins; IMAD.HI is the high word of a*b + the pair Rc; LEA negates after the shift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sassxlate.disasm.rdna3.instruction import Arg, I, S, V
from sassxlate.disasm.sass.instruction import Imm, Instruction, Operand, Pred, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import VCC, ZERO


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


def add(c: RuleEmitter, dst: V, a: Arg, b: Arg) -> None:
    c.emit("v_add_nc_u32", dst, a, b)


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


def _wide_add(ins: Instruction) -> bool:
    return not ins.has("64")


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "IADD3": "X",
    "IADD": "64 X",
    "IMAD": "HI WIDE X U32 MOV SHL IADD",
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
    *_imad_rules("IMAD"),
    *_imad_rules("UIMAD"),
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

"""Bitwise logic, shifts, byte permutation, selection, and predicate logic."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.disasm.sass.instruction import Imm, Pred, Reg
from sassxlate.disasm.sass.semantics.arithmetic.logic import PRMT_MODES
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.lut import ONES, Expr, synthesise
from sassxlate.lowering.rules.arithmetic.operands import const_value, shift_amount
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

_UNIFORM_OP = {
    "v_not_b32": "s_not_b32",
    "v_and_b32": "s_and_b32",
    "v_or_b32": "s_or_b32",
    "v_xor_b32": "s_xor_b32",
    "v_xnor_b32": "s_xnor_b32",
}


def _constant_lut(lut: int, fixed: dict[int, bool]) -> int:
    """The LUT with some variables (0: a, 1: b, 2: c) replaced by 0 or 1."""
    for var, value in fixed.items():
        step = (4, 2, 1)[var]
        out = 0
        for row in range(8):
            source = row | step if value else row & ~step
            out |= (lut >> source & 1) << row
        lut = out
    return lut


def lop3(c: RuleEmitter) -> None:
    roles = ("Ra", "Rb", "Rc")
    lut = c.imm("lut")
    for var, role in enumerate(roles):  # ~ on an operand swaps the halves of the table
        if c.flag(role, "inv"):
            step = (4, 2, 1)[var]
            lut = sum((lut >> (row ^ step) & 1) << row for row in range(8))
    known = {n: const_value(c.ins.get(r)) for n, r in enumerate(roles)}
    lut = _constant_lut(lut, {n: v != 0 for n, v in known.items() if v in (0, 0xFFFFFFFF)})
    inputs = [c.src(r) for r in roles]
    want = c.wants_pred("Pu")
    discard = isinstance(c.ins.get("Rd"), Reg) and c.reg("Rd").is_zero
    expr = synthesise(lut)
    if want:
        result: Arg = _vector(c, expr, inputs, None)
        mask = c.pred_out("Pu")
        c.emit("v_cmp_ne_u32", mask, ZERO, result)
        other = c.operand("Pp")
        if c.ins.has("PAND") or not getattr(other, "is_false", False):
            joined = c.stemp()
            op = "s_and_b32" if c.ins.has("PAND") else "s_or_b32"
            c.emit(op, joined, mask, c.mask(other))
            c.pred_commit("Pu", joined)
        else:
            c.pred_commit("Pu", mask, clean=True)
        if not discard:
            c.emit("v_mov_b32", c.dst_last(), result)
        return
    _vector(c, expr, inputs, c.dst_last())  # only the last instruction writes it


def _vector(c: RuleEmitter, expr: Expr, inputs: list[Arg], dst: V | None) -> Arg:
    """Evaluates an expression; into ``dst`` when one is given."""
    if isinstance(expr, int):
        value: Arg = inputs[expr] if expr >= 0 else (I(0xFFFFFFFF) if expr == ONES else ZERO)
        if dst is not None:
            c.emit("v_mov_b32", dst, value)
            return dst
        return value
    args = [_vector(c, a, inputs, None) for a in expr.args]
    target = dst if dst is not None else c.vtemp()
    c.emit(expr.name, target, *args)
    return target


def _masks(c: RuleEmitter, expr: Expr, inputs: list[Arg]) -> Arg:
    """Evaluates an expression over lane masks with scalar instructions."""
    if isinstance(expr, int):
        return inputs[expr] if expr >= 0 else (I(0xFFFFFFFF) if expr == ONES else ZERO)
    v = [_masks(c, a, inputs) for a in expr.args]
    out = c.stemp()
    if expr.name in _UNIFORM_OP:
        c.emit(_UNIFORM_OP[expr.name], out, *v)
        return out
    match expr.name:
        case "v_and_or_b32":
            c.emit("s_and_b32", out, v[0], v[1])
            c.emit("s_or_b32", out, out, v[2])
        case "v_or3_b32":
            c.emit("s_or_b32", out, v[0], v[1])
            c.emit("s_or_b32", out, out, v[2])
        case "v_xor3_b32":
            c.emit("s_xor_b32", out, v[0], v[1])
            c.emit("s_xor_b32", out, out, v[2])
        case "v_bfi_b32":
            other = c.stemp()
            c.emit("s_and_not1_b32", other, v[2], v[0])
            c.emit("s_and_b32", out, v[1], v[0])
            c.emit("s_or_b32", out, out, other)
        case name:
            raise c.refuse(f"mask operation {name}")
    return out


def _truth(c: RuleEmitter, role: str) -> Arg:
    """A source predicate, or the sign of a register or a constant."""
    operand = c.operand(role)
    if isinstance(operand, Pred):
        return c.mask(operand)
    if getattr(operand, "select", "") != "SIGN":
        raise c.refuse("this kind of predicate")
    mask = c.stemp()
    c.emit("v_cmp_gt_i32", mask, ZERO, c.to_v(c.src(role)))
    return mask


def plop3(c: RuleEmitter) -> None:
    inputs = [_truth(c, r) for r in ("Pp", "Pq", "Pr")]
    for dest, table in (("Pu", "lut"), ("Pv", "lut2")):
        if c.wants_pred(dest):
            expr: Expr = synthesise(c.imm(table) & 0xFF)
            mask = _masks(c, expr, inputs)
            held = c.pred_out(dest)  # commits come after both tables have been evaluated
            c.emit("s_mov_b32", held, mask)
            c.pred_commit(dest, held)


def sel(c: RuleEmitter) -> None:
    wide = c.reg("Rd").width
    mask = c.mask_reg("Pp")
    dst = c.dst_last() if wide == 1 else c.dst()
    for w in range(wide):
        c.emit("v_cndmask_b32", V(dst.index + w), c.isrc("Rb", w), c.isrc("Ra", w), mask)


def mov(c: RuleEmitter) -> None:
    mask = c.ins.get("mask")
    if isinstance(mask, Imm) and mask.value != 0xF:
        raise c.refuse("MOV with a partial byte mask")
    width = c.reg("Rd").width
    dst = c.dst_last() if width == 1 else c.dst()
    for w in range(width):
        c.emit("v_mov_b32", V(dst.index + w), c.isrc("Rb", w))


# --- shifts ---------------------------------------------------------------------------------------


def shf(c: RuleEmitter) -> None:
    wide = c.ins.has("U64") or c.ins.has("S64")
    arithmetic = c.ins.has("S64") or c.ins.has("S32")
    amount = shift_amount(c, 64 if wide else 32)
    if isinstance(amount, I):
        _shift_constant(c, amount.value, arithmetic)
    else:
        _shift_variable(c, amount, wide, arithmetic)


def _shift_constant(c: RuleEmitter, n: int, arithmetic: bool) -> None:
    """A funnel shift of Rc:Ra by a known amount (0 to 64); .HI wants the high word."""
    lo, hi = c.src("Ra"), c.src("Rc")
    high = c.ins.has("HI")
    dst = c.dst_last()
    right = "v_ashrrev_i32" if arithmetic else "v_lshrrev_b32"
    if c.ins.has("L"):
        if not high:
            _word(c, dst, "v_lshlrev_b32", n, lo, ZERO)
        elif n == 0:
            c.emit("v_mov_b32", dst, hi)
        elif n < 32:
            _funnel(c, dst, hi, lo, 32 - n)
        else:
            _word(c, dst, "v_lshlrev_b32", n - 32, lo, ZERO)
        return
    if high:
        if n >= 32 and arithmetic:
            c.emit("v_ashrrev_i32", dst, I(31), hi)
        else:
            _word(c, dst, right, n, hi, ZERO)
    elif n == 0:
        c.emit("v_mov_b32", dst, lo)
    elif n < 32:
        _funnel(c, dst, hi, lo, n)
    elif n >= 64 and arithmetic:
        c.emit("v_ashrrev_i32", dst, I(31), hi)
    else:
        _word(c, dst, right, n - 32, hi, ZERO)


def _funnel(c: RuleEmitter, dst: V, hi: Arg, lo: Arg, n: int) -> None:
    if hi == ZERO:
        c.emit("v_lshrrev_b32", dst, I(n), lo)
    elif lo == ZERO:
        c.emit("v_lshlrev_b32", dst, I(32 - n), hi)
    else:
        c.emit("v_alignbit_b32", dst, hi, lo, I(n))


def _word(c: RuleEmitter, dst: V, op: str, n: int, value: Arg, beyond: Arg) -> None:
    if n == 0:
        c.emit("v_mov_b32", dst, value)
    elif n >= 32:
        c.emit("v_mov_b32", dst, beyond)
    else:
        c.emit(op, dst, I(n), value)


def _shift_variable(c: RuleEmitter, amount: Arg, wide: bool, arithmetic: bool) -> None:
    """The general case: 64 bits at once; amounts of 64 leave zeros or signs."""
    pair = c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), c.src("Ra"))
    c.emit("v_mov_b32", V(pair.index + 1), c.src("Rc"))
    out = c.vtemp(2)
    left = c.ins.has("L")
    op = "v_lshlrev_b64" if left else "v_ashrrev_i64" if arithmetic else "v_lshrrev_b64"
    if not wide or c.ins.has("W"):
        c.emit(op, out, amount, pair)
    else:
        inner = c.vtemp()
        c.emit("v_min_u32", inner, I(63), amount)
        c.emit(op, out, inner, pair)
        if left or not arithmetic:
            beyond = c.stemp()
            c.emit("v_cmp_lt_u32", beyond, I(63), amount)
            word = V(out.index + c.ins.has("HI"))
            c.emit("v_cndmask_b32", word, word, ZERO, beyond)
    c.emit("v_mov_b32", c.dst_last(), V(out.index + c.ins.has("HI")))


# --- bytes and bits -------------------------------------------------------------------------------


def _choose(c: RuleEmitter, choices: list[list[int]]) -> V:
    """The byte selector that Rb's bits 1:0 select."""
    out, number, hit = c.vtemp(), c.vtemp(), c.stemp()
    words = [sum(byte << 8 * n for n, byte in enumerate(choice)) for choice in choices]
    c.emit("v_and_b32", number, I(3), c.src("Rb"))
    c.emit("v_mov_b32", out, I(words[0]))
    for n, word in enumerate(words[1:], 1):
        value = c.vtemp()
        c.emit("v_mov_b32", value, I(word))
        c.emit("v_cmp_eq_u32", hit, I(n), number)
        c.emit("v_cndmask_b32", out, out, value, hit)
    return out


def prmt(c: RuleEmitter) -> None:
    """Four bytes of Rc:Ra by the nibbles of Rb; bit 3 of a nibble spreads the byte's sign."""
    lo, hi = c.src("Ra"), c.src("Rc")
    known = const_value(c.ins.get("Rb"))
    mode = next((m for m in PRMT_MODES if c.ins.has(m)), None)
    if mode is not None:
        choices = [PRMT_MODES[mode](n) for n in range(4)]
        if known is not None:
            _prmt_known(c, lo, hi, choices[known & 3])
            return
        c.emit("v_perm_b32", c.dst_last(), hi, lo, _choose(c, choices))
        return
    if known is not None:
        _prmt_known(c, lo, hi, [known >> 4 * n & 15 for n in range(4)])
        return
    spread = c.vtemp()
    c.emit("v_and_b32", spread, I(0xFFFF), c.src("Rb"))
    c.emit("v_lshl_or_b32", spread, spread, I(8), spread)
    c.emit("v_and_b32", spread, I(0x00FF00FF), spread)
    c.emit("v_lshl_or_b32", spread, spread, I(4), spread)
    c.emit("v_and_b32", spread, I(0x0F0F0F0F), spread)
    index, taken, signs = c.vtemp(), c.vtemp(), c.vtemp()
    c.emit("v_and_b32", index, I(0x07070707), spread)
    c.emit("v_perm_b32", taken, hi, lo, index)
    c.emit("v_lshrrev_b32", signs, I(3), spread)
    c.emit("v_and_b32", signs, I(0x01010101), signs)
    _spread_signs(c, taken, signs)


def _spread_signs(c: RuleEmitter, taken: V, signs: Arg) -> None:
    """Replaces the bytes of ``taken`` named by the ones of ``signs`` by copies of their top bit."""
    where, bits = c.vtemp(), c.vtemp()
    c.emit("v_mul_lo_u32", where, I(0xFF), signs)
    c.emit("v_lshrrev_b32", bits, I(7), taken)
    c.emit("v_and_b32", bits, bits, signs)
    c.emit("v_mul_lo_u32", bits, I(0xFF), bits)
    c.emit("v_bfi_b32", c.dst_last(), where, bits, taken)


def _prmt_known(c: RuleEmitter, lo: Arg, hi: Arg, nibbles: list[int]) -> None:
    # v_perm_b32: 0-3 are bytes of its second source, 4-7 of its first, 12 is zero; 8 to 11 spread
    # the signs of bytes 1, 3, 5 and 7.
    zero_lo, zero_hi = lo == ZERO, hi == ZERO
    codes: list[int] = []
    even_sign = False
    for n in nibbles:
        index = n & 7
        if (index < 4 and zero_lo) or (index >= 4 and zero_hi):
            codes.append(12)
        elif n & 8 and index & 1:
            codes.append(8 + index // 2)
        else:
            codes.append(index)
            even_sign |= bool(n & 8)
    if [n & 15 for n in nibbles] == [0, 8, 8, 8]:
        c.emit("v_bfe_i32", c.dst_last(), lo, ZERO, I(8))
        return
    selector = I(sum(code << 8 * n for n, code in enumerate(codes)))
    if not even_sign:
        c.emit("v_perm_b32", c.dst_last(), hi, lo, selector)
        return
    taken = c.vtemp()
    c.emit("v_perm_b32", taken, hi, lo, selector)
    signs = sum(1 << 8 * n for n, v in enumerate(nibbles) if v & 8 and not v & 1)
    _spread_signs(c, taken, I(signs))


# --- predicates as bits ---------------------------------------------------------------------------


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "LOP3": "LUT PAND",
    "PLOP3": "LUT",
    "SEL": "64",
    "MOV": "64 SPILL",
    "SHF": "L R HI W U32 S32 U64 S64",
    "PRMT": "F4E B4E RC8 ECL ECR RC16",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("lop3", "LOP3", lop3),
    Rule("ulop3", "ULOP3", lop3),
    Rule("plop3", "PLOP3", plop3),
    Rule("uplop3", "UPLOP3", plop3),
    Rule("sel", "SEL", sel),
    Rule("usel", "USEL", sel),
    Rule("mov", "MOV", mov),
    Rule("umov", "UMOV", mov),
    Rule("shf", "SHF", shf),
    Rule("ushf", "USHF", shf),
    Rule("prmt", "PRMT", prmt),
    Rule("uprmt", "UPRMT", prmt),
)

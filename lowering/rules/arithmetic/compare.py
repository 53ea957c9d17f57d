"""Comparisons that set predicates, integer and floating point, and float selection by predicate."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, S
from sassxlate.disasm.sass.instruction import Instruction, Pred
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.modes import ftz
from sassxlate.lowering.rules.arithmetic.operands import signed
from sassxlate.lowering.rules.modifiers import FLOAT_RELATIONS
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ALL_ONES, EXEC, ZERO

INT = {"LT": "lt", "EQ": "eq", "LE": "le", "GT": "gt", "NE": "ne", "GE": "ge"}
# An unordered SASS comparison is the negation of the opposite ordered one: AMD's n-forms.
FLOAT = {
    "LT": "lt", "EQ": "eq", "LE": "le", "GT": "gt", "NE": "lg", "GE": "ge", "NUM": "o", "NAN": "u",
    "LTU": "nge", "EQU": "nlg", "LEU": "ngt", "GTU": "nle", "NEU": "neq", "GEU": "nlt",
}  # fmt: skip
JOIN = {"AND": "s_and_b32", "OR": "s_or_b32", "XOR": "s_xor_b32"}


def relation(c: RuleEmitter, names: dict[str, str]) -> str | None:
    """AMD's name of the comparison; None for F and T."""
    for m in c.ins.modifiers:
        if m in names:
            return names[m]
    return None


def constant_relation(ins: Instruction) -> bool | None:
    if ins.has("T"):
        return True
    return False if ins.has("F") else None


def write_results(c: RuleEmitter, hit: S, clean: bool = True) -> None:
    """Pu = hit op Pp, Pv = !hit op Pp.  ``hit`` is clean: zero outside EXEC."""
    op = next((JOIN[m] for m in c.ins.modifiers if m in JOIN), "s_and_b32")
    other = c.operand("Pp")
    simple = isinstance(other, Pred) and other.is_true and op == "s_and_b32"
    accumulator: Arg = ZERO if simple else c.pred("Pp")
    results: list[tuple[str, S]] = []
    if c.wants_pred("Pu"):
        if simple:
            results.append(("Pu", hit))
        else:
            joined = c.stemp()
            c.emit(op, joined, hit, accumulator)
            results.append(("Pu", joined))
    if c.wants_pred("Pv"):
        joined = c.stemp()
        c.emit("s_not_b32", joined, hit)
        if not simple:
            c.emit(op, joined, joined, accumulator)
        results.append(("Pv", joined))
    for role, mask in results:
        c.pred_commit(role, mask, clean=clean and simple and role == "Pu")


def constant_hit(c: RuleEmitter, value: bool) -> S:
    hit = c.stemp()
    c.emit("s_mov_b32", hit, EXEC if value else ZERO)
    return hit


def isetp(c: RuleEmitter) -> None:
    ins = c.ins
    fixed = constant_relation(ins)
    if fixed is not None:
        write_results(c, constant_hit(c, fixed))
        return
    name = relation(c, INT)
    if name is None:
        raise c.refuse("comparison not known")
    wide = any(ins.has(m) for m in ("64", "U64", "S64"))
    sort = ("u" if ins.has("U32") or ins.has("U64") else "i") + ("64" if wide else "32")
    hit = c.pred_out("Pu")
    if wide:
        if ins.has("EX"):
            raise c.refuse("64-bit comparison with a carried part")
        c.emit(f"v_cmp_{name}_{sort}", hit, c.src64("Ra"), c.src64("Rb"))
        write_results(c, hit)
        return
    a, b = signed(c, "Ra"), signed(c, "Rb")
    if not ins.has("EX"):
        c.emit(f"v_cmp_{name}_{sort}", hit, a, b)
        write_results(c, hit)
        return
    # .EX: the low words were compared before, and decide (Pq) if the high words are equal.
    low = c.pred("Pq")
    same = c.stemp()
    if name in ("eq", "ne"):
        c.emit(f"v_cmp_{name}_{sort}", hit, a, b)
        if name == "eq":
            c.emit("s_and_b32", hit, hit, low)
        else:
            c.emit("s_or_b32", hit, hit, low)
            write_results(c, hit, clean=False)
            return
    else:
        strict = {"ge": "gt", "le": "lt"}.get(name, name)
        c.emit(f"v_cmp_{strict}_{sort}", hit, a, b)
        c.emit(f"v_cmp_eq_{sort}", same, a, b)
        c.emit("s_and_b32", same, same, low)
        c.emit("s_or_b32", hit, hit, same)
    write_results(c, hit)


def fset(c: RuleEmitter) -> None:
    """FSET.BF: 1.0 if the comparison, joined with Pp, holds, otherwise 0."""
    fixed = constant_relation(c.ins)
    if fixed is not None:
        hit = constant_hit(c, fixed)
    else:
        name = relation(c, FLOAT)
        if name is None:
            raise c.refuse("comparison not known")
        hit = c.stemp()
        a, b = c.src("Ra"), c.src("Rb")
        with ftz(c):
            c.emit(f"v_cmp_{name}_f32", hit, a, b, **c.fneg("Ra", "Rb"))
    op = next((JOIN[m] for m in c.ins.modifiers if m in JOIN), "s_and_b32")
    c.emit(op, hit, hit, c.pred("Pp"))
    c.emit("v_cndmask_b32", c.dst_last(), ZERO, I(0x3F800000), hit)


def fsetp(c: RuleEmitter) -> None:
    fixed = constant_relation(c.ins)
    if fixed is not None:
        write_results(c, constant_hit(c, fixed))
        return
    name = relation(c, FLOAT)
    if name is None:
        raise c.refuse("comparison not known")
    hit = c.pred_out("Pu")
    a, b = c.src("Ra"), c.src("Rb")
    with ftz(c):
        c.emit(f"v_cmp_{name}_f32", hit, a, b, **c.fneg("Ra", "Rb"))
    write_results(c, hit)


def dsetp(c: RuleEmitter) -> None:
    if c.ins.has("MIN") or c.ins.has("MAX"):
        dsetp_minmax(c)
        return
    fixed = constant_relation(c.ins)
    if fixed is not None:
        write_results(c, constant_hit(c, fixed))
        return
    name = relation(c, FLOAT)
    if name is None:
        raise c.refuse("comparison not known")
    hit = c.pred_out("Pu")
    c.emit(f"v_cmp_{name}_f64", hit, c.src64("Ra"), c.src64("Rb"), **c.fneg("Ra", "Rb"))
    write_results(c, hit)


def dsetp_minmax(c: RuleEmitter) -> None:
    """DSETP.MIN/.MAX: Pu selects Ra; Pv: both are NaN and Rb must be quieted.
    Pu is joined with Pp, Pv is not.

    The code after it selects with Pu and then ORs the quiet bit under Pv.  Measured on an H200:
    -0 is less than +0; for equal numbers .MIN takes Ra, .MAX Rb; a NaN is not taken.
    """
    a, b = c.src64("Ra"), c.src64("Rb")
    signs = c.fneg("Ra", "Rb")
    hit, zeros, more, nan_a, nan_b = (c.stemp() for _ in range(5))
    # Equal numbers with different bits are +0 and -0.
    c.emit("v_cmp_eq_f64", zeros, a, b, **signs)
    c.emit("v_cmp_lt_u32", more, float_bits(c, "Ra", 1), c.to_v(float_bits(c, "Rb", 1)))
    c.emit("s_and_b32", zeros, zeros, more)  # +0 and -0
    if c.ins.has("MIN"):
        c.emit("v_cmp_le_f64", hit, a, b, **signs)
        c.emit("s_and_not1_b32", hit, hit, zeros)
    else:
        c.emit("v_cmp_gt_f64", hit, a, b, **signs)
        c.emit("s_or_b32", hit, hit, zeros)
    c.emit("v_cmp_u_f64", nan_a, a, a)
    c.emit("v_cmp_u_f64", nan_b, b, b)
    c.emit("s_or_b32", hit, hit, nan_b)
    c.emit("s_and_not1_b32", hit, hit, nan_a)
    if c.wants_pred("Pv"):
        c.emit("s_and_b32", nan_b, nan_a, nan_b)
        c.pred_commit("Pv", nan_b)
    if c.wants_pred("Pu"):
        other, op = c.pred("Pp"), next(JOIN[m] for m in c.ins.modifiers if m in JOIN)
        if op != "s_and_b32" or other != ALL_ONES:
            c.emit(op, hit, hit, other)
    c.pred_commit("Pu", hit)


def float_bits(c: RuleEmitter, role: str, word: int = 0) -> Arg:
    """A float source word with its |x| and - applied to the bits (of the high word of a double)."""
    operand = c.operand(role)
    arg = c.src(role, word)
    if word + 1 < getattr(operand, "width", 1):
        return arg
    absolute, negative = getattr(operand, "abs", False), getattr(operand, "neg", False)
    if isinstance(arg, I):
        value = arg.value & (0x7FFFFFFF if absolute else 0xFFFFFFFF)
        return I(value ^ (0x80000000 if negative else 0))
    if not absolute and not negative:
        return arg
    temp = c.vtemp()
    if absolute:
        c.emit("v_and_b32", temp, I(0x7FFFFFFF), arg)
        arg = temp
    if negative:
        c.emit("v_xor_b32", temp, I(0x80000000), arg)
    return temp


def fsel(c: RuleEmitter) -> None:
    if c.ins.has("FTZ"):
        raise c.refuse("FSEL.FTZ")
    mask = c.mask_reg("Pp")
    c.emit("v_cndmask_b32", c.dst_last(), float_bits(c, "Rb"), float_bits(c, "Ra"), mask)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "ISETP": "F LT EQ LE GT NE GE T AND OR XOR EX U32 U64 S64 64",
    "FSETP": f"FTZ {FLOAT_RELATIONS}",
    "FSET": f"BF FTZ {FLOAT_RELATIONS}",
    "DSETP": f"{FLOAT_RELATIONS} MIN MAX",
    "FSEL": "FTZ",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("isetp", "ISETP", isetp),
    Rule("uisetp", "UISETP", isetp),
    Rule("fsetp", "FSETP", fsetp),
    Rule("ufsetp", "UFSETP", fsetp),
    Rule("fset", "FSET", fset),
    Rule("ufset", "UFSET", fset),
    Rule("dsetp", "DSETP", dsetp),
    Rule("fsel", "FSEL", fsel),
    Rule("ufsel", "UFSEL", fsel),
)

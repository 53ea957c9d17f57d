"""FP16 pairs: HADD2, HMUL2, HFMA2 and their comparisons; also HFMA2's use as a constant move."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.sass.instruction import Imm, Instruction, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic import bfloat, halfwise
from sassxlate.lowering.rules.arithmetic.compare import (
    FLOAT,
    JOIN,
    constant_hit,
    constant_relation,
    relation,
)
from sassxlate.lowering.rules.arithmetic.modes import FLUSH_F16, KEEP_DENORMALS, rounding
from sassxlate.lowering.rules.arithmetic.operands import is_zero
from sassxlate.lowering.rules.modifiers import FLOAT_RELATIONS
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO


def _pair(c: RuleEmitter, role: str, n: int, mods: dict[str, int]) -> Arg:
    """Source ``n`` of a packed instruction, in a VGPR, with its swizzle and signs in ``mods``."""
    operand = c.operand(role)
    value = c.src(role)
    select = getattr(operand, "select", "")
    if isinstance(operand, Reg | Imm) and isinstance(value, I):
        value = c.to_v(value)
    if getattr(operand, "abs", False):
        temp = c.vtemp()
        c.emit("v_and_b32", temp, I(0x7FFF7FFF), value)
        value = temp
    if select in halfwise.HIGH:
        mods["op_sel"] |= 1 << n
    if select in halfwise.LOW:
        mods["op_sel_hi"] &= ~(1 << n)
    elif select == halfwise.NEGATED_HIGH:
        mods["op_sel"] |= 1 << n
        mods["op_sel_hi"] &= ~(1 << n)
        if not getattr(operand, "abs", False):
            mods["neg"] ^= 1 << n
    elif select not in halfwise.HIGH and select not in ("", "H1_H0"):
        raise c.refuse(f"half selector {select}")
    if getattr(operand, "neg", False):
        mods["neg"] ^= 1 << n
        mods["neg_hi"] |= 1 << n
    return value


def _check(c: RuleEmitter) -> None:
    if any(c.ins.has(m) for m in ("BF16_V2", "BF16", "FMZ", "OOB")):
        raise c.refuse("this form of a half-precision instruction")


def packed(c: RuleEmitter, op: str, roles: tuple[str, ...]) -> None:
    _check(c)
    mods = {"op_sel": 0, "op_sel_hi": 7, "neg": 0, "neg_hi": 0}
    args = [_pair(c, r, n, mods) for n, r in enumerate(roles)]
    if c.ins.has("RELU"):
        total = c.vtemp()
        c.emit(op, total, *args, **mods)
        halfwise.finish(c, halfwise.one_nan(c, total))
        return
    with _flushing(c):
        c.emit(op, c.dst_last(), *args, clamp=c.ins.has("SAT"), **mods)


@contextmanager
def _flushing(c: RuleEmitter) -> Generator[None]:
    """Flushes denormal halves inside if the instruction says .FTZ."""
    flush = c.ins.has("FTZ")
    if flush:
        c.raw(Inst("s_denorm_mode", (), imm=FLUSH_F16))
    yield
    if flush:
        c.raw(Inst("s_denorm_mode", (), imm=KEEP_DENORMALS))


def _f32(c: RuleEmitter, role: str) -> V:
    """A half selected from a register, as f32."""
    operand = c.operand(role)
    value = c.src(role)
    select = getattr(operand, "select", "")
    out = c.vtemp()
    if isinstance(value, I) and value == ZERO:
        c.emit("v_mov_b32", out, I(0x80000000 if getattr(operand, "neg", False) else 0))
        return out
    if select in halfwise.HIGH:
        temp = c.vtemp()
        c.emit("v_lshrrev_b32", temp, I(16), value)
        value = temp
    c.emit("v_cvt_f32_f16", out, value, **c.fneg(role))
    return halfwise.flushed(c, out) if c.ins.has("FTZ") else out


def hadd2_f32(c: RuleEmitter) -> None:
    """HADD2.F32: the f32 sum of one half of each operand; with -RZ, a conversion."""
    a, b = _f32(c, "Ra"), _f32(c, "Rb")
    c.emit("v_add_f32", c.dst_last(), a, b, clamp=c.ins.has("SAT"))


def _has_single(ins: Instruction) -> bool:
    """HADD2 Rd, -RZ, Rb.F32, before sm_80: a binary32 number as a half, twice."""
    return any(getattr(ins.get(role), "select", "") == "F32" for role in ("Ra", "Rb"))


def _narrowed(c: RuleEmitter, role: str, source: Arg) -> V:
    """A source with the selector .F32 as a half, rounded towards zero, in the low bits."""
    half = c.vtemp()
    with rounding(c, "RZ"):
        c.emit("v_cvt_f16_f32", half, source, clamp=c.ins.has("SAT"), **c.fneg(role))
    return half


def hadd2_single(c: RuleEmitter) -> None:
    """ptxas takes it for cvt.rz.f16.f32, and for constants of both halves, whose bits are read as
    integers, too."""
    role, other = ("Ra", "Rb") if getattr(c.operand("Ra"), "select", "") == "F32" else ("Rb", "Ra")
    zero = c.operand(other)
    c.operand(role)
    minus_zero = is_zero(zero) and getattr(zero, "neg", False) and not getattr(zero, "abs", False)
    if not minus_zero or c.ins.has("FTZ"):
        raise c.refuse("sum of a half and a binary32 number")
    source = c.vsrc(role)
    half = _narrowed(c, role, source)
    c.emit("v_and_b32", half, I(0xFFFF), half)  # its high half is the old one
    if not c.ins.has("SAT"):
        nan = c.stemp()
        c.emit("v_cmp_u_f32", nan, source, source)
        c.emit("v_cndmask_b32", half, half, I(0x7FFF), nan)
    halfwise.joined(c, c.dst_last(), half, half)


def hadd2(c: RuleEmitter) -> None:
    packed(c, "v_pk_add_f16", ("Ra", "Rb"))


def hmul2(c: RuleEmitter) -> None:
    packed(c, "v_pk_mul_f16", ("Ra", "Rb"))


def hmul2_general(c: RuleEmitter) -> None:
    halfwise.products(c, ("Ra", "Rb"))


def hfma2(c: RuleEmitter) -> None:
    packed(c, "v_pk_fma_f16", ("Ra", "Rb", "Rc"))


def hfma2_general(c: RuleEmitter) -> None:
    halfwise.products(c, ("Ra", "Rb", "Rc"))


def hmnmx2(c: RuleEmitter) -> None:
    which = c.operand("Pp")
    packed(c, "v_pk_max_f16" if getattr(which, "inv", False) else "v_pk_min_f16", ("Ra", "Rb"))


def constant_move(ins: Instruction) -> bool:
    """HFMA2 Rd, -RZ, RZ, c, c is exactly c: -0 * 0 + c."""
    if ins.has("FTZ") or ins.has("SAT") or ins.has("RELU") or ins.has("F32"):
        return False
    return is_zero(ins.get("Ra")) and is_zero(ins.get("Rb")) and isinstance(ins.get("Rc"), Imm)


def hfma2_mov(c: RuleEmitter) -> None:
    c.flag("Ra", "select")  # both halves of RZ are 0
    c.flag("Rb", "select")
    if c.flag("Ra", "neg") == c.flag("Rb", "neg"):  # +0 + -0 would be +0
        raise c.refuse("this constant sum")
    c.emit("v_mov_b32", c.dst_last(), c.src("Rc"))


def _hits(c: RuleEmitter) -> tuple[S, S]:
    """The comparisons of the low and the high halves, as lane masks."""
    fixed = constant_relation(c.ins)
    if fixed is not None:
        for role in ("Ra", "Rb"):
            c.operand(role)  # its value does not matter
        return constant_hit(c, fixed), constant_hit(c, fixed)
    name = relation(c, FLOAT)
    if name is None:
        raise c.refuse("comparison not known")
    return _hits_bf16(c, name) if bfloat.is_bf16(c.ins) else _hits_f16(c, name)


def _hits_bf16(c: RuleEmitter, name: str) -> tuple[S, S]:
    if c.ins.has("FTZ"):
        raise c.refuse("this form of a bf16 instruction")
    low, high = c.stemp(), c.stemp()
    for hit, part in ((low, 0), (high, 1)):
        a, b = bfloat.widened(c, "Ra", part), bfloat.widened(c, "Rb", part)
        c.emit(f"v_cmp_{name}_f32", hit, a, b, **c.fneg("Ra", "Rb"))
    return low, high


def _compared(c: RuleEmitter, role: str, n: int, mods: dict[str, int]) -> Arg:
    """:func:`_pair`, or a binary32 number, which stands for both halves."""
    if getattr(c.operand(role), "select", "") != "F32":
        return _pair(c, role, n, mods)
    if c.ins.has("FTZ"):
        raise c.refuse("half selector F32")
    mods["op_sel_hi"] &= ~(1 << n)
    return _narrowed(c, role, c.vsrc(role))


def _hits_f16(c: RuleEmitter, name: str) -> tuple[S, S]:
    mods = {"op_sel": 0, "op_sel_hi": 7, "neg": 0, "neg_hi": 0}
    values = [_compared(c, r, n, mods) for n, r in enumerate(("Ra", "Rb"))]
    if c.ins.has("FTZ"):
        values = [_flushed_pair(c, v) for v in values]
    low, high = c.stemp(), c.stemp()
    for hit, selected in ((low, mods["op_sel"]), (high, mods["op_sel_hi"])):
        args: list[Arg] = []
        for n, v in enumerate(values):
            if selected >> n & 1:
                temp = c.vtemp()
                c.emit("v_lshrrev_b32", temp, I(16), v)
                v = temp
            args.append(v)
        c.emit(f"v_cmp_{name}_f16", hit, *args, neg=mods["neg"])
    return low, high


def _flushed_pair(c: RuleEmitter, value: Arg) -> V:
    """Two halves, a denormal as a zero of its sign."""
    out, one = c.vtemp(), c.to_v(I(0x3C003C00))
    with _flushing(c):
        c.emit("v_pk_mul_f16", out, c.to_v(value), one)
    return out


def _join(c: RuleEmitter) -> str:
    return next((JOIN[m] for m in c.ins.modifiers if m in JOIN), "s_and_b32")


def hsetp2(c: RuleEmitter) -> None:
    """Compares both halves: Pu is the low one's result, Pv the high one's.  With .H_AND Pu is their
    AND, Pv its negation."""
    low, high = _hits(c)
    if c.ins.has("H_AND"):
        c.emit("s_and_b32", low, low, high)
        c.emit("s_not_b32", high, low)
    other = c.pred("Pp")
    for role, hit in (("Pu", low), ("Pv", high)):
        if c.wants_pred(role):
            c.emit(_join(c), hit, hit, other)
            c.pred_commit(role, hit)


def hset2(c: RuleEmitter) -> None:
    """Ones, or with .BF the number 1, in the halves whose comparison, joined with Pp, holds."""
    one = 0xFFFF
    if c.ins.has("BF"):
        one = 0x3F80 if bfloat.is_bf16(c.ins) else 0x3C00
    other = c.pred("Pp")
    out: list[V] = []
    for hit, shift in zip(_hits(c), (0, 16), strict=True):
        c.emit(_join(c), hit, hit, other)
        out.append(c.vtemp())
        c.emit("v_cndmask_b32", out[-1], ZERO, I(one << shift), hit)
    c.emit("v_or_b32", c.dst_last(), *out)


def vhmnmx(c: RuleEmitter) -> None:
    """The extreme of three."""
    which = c.operand("Pp")
    if halfwise.is_general_extreme(c.ins) or c.ins.has("FTZ") or bfloat.is_bf16(c.ins):
        halfwise.extreme3(c)
        return
    op = "v_pk_max_f16" if getattr(which, "inv", False) else "v_pk_min_f16"
    first = c.vtemp()
    mods = {"op_sel": 0, "op_sel_hi": 7, "neg": 0, "neg_hi": 0}
    args = [_pair(c, r, n, mods) for n, r in enumerate(("Ra", "Rb"))]
    c.emit(op, first, *args, **mods)
    mods = {"op_sel": 0, "op_sel_hi": 7, "neg": 0, "neg_hi": 0}
    last = _pair(c, "Rc", 0, mods)
    c.emit(op, c.dst_last(), last, first, **mods)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "hfma2_mov": "MMA BF16_V2",
    "hmul2_general": "BF16_V2 FTZ SAT FMZ F32",
    "hfma2_general": "MMA BF16_V2 FTZ SAT FMZ RELU OOB F32",
    "hmnmx2_general": "BF16_V2 FTZ NAN XORSIGN IS_A",
    "HADD2": "F32 FTZ SAT",
    "HMUL2": "FTZ SAT FMZ",
    "HFMA2": "MMA FTZ SAT FMZ RELU",
    "HMNMX2": "FTZ NAN XORSIGN",
    "HSETP2": f"BF16_V2 FTZ H_AND {FLOAT_RELATIONS}",
    "HSET2": f"BF BF16_V2 FTZ {FLOAT_RELATIONS}",
    "VHMNMX": "FTZ NAN XORSIGN BF16_V2",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("hfma2_mov", "HFMA2", hfma2_mov, constant_move),
    Rule("hmul2_general", "HMUL2", hmul2_general, halfwise.is_general),
    Rule("hfma2_general", "HFMA2", hfma2_general, halfwise.is_general),
    Rule("hmnmx2_general", "HMNMX2", halfwise.extreme, halfwise.is_general_extreme),
    *bfloat.RULES,
    Rule("hadd2_f32", "HADD2", hadd2_f32, lambda i: i.has("F32")),
    Rule("hadd2_single", "HADD2", hadd2_single, _has_single),
    Rule("hadd2", "HADD2", hadd2),
    Rule("hmul2", "HMUL2", hmul2),
    Rule("hfma2", "HFMA2", hfma2),
    Rule("hmnmx2", "HMNMX2", hmnmx2),
    Rule("hsetp2", "HSETP2", hsetp2),
    Rule("hset2", "HSET2", hset2),
    Rule("vhmnmx", "VHMNMX", vhmnmx),
)

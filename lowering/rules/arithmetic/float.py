"""FP32 arithmetic, minimum and maximum, the multi-function unit, FCHK."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.rdna3.instruction import Arg, I, V
from sassxlate.disasm.sass.instruction import Pred
from sassxlate.disasm.sass.semantics.arithmetic.float import (
    EX2_ONE,
    ODD_RESULT,
    RSQ_MANTISSA,
    TANH_ITSELF,
)
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.compare import float_bits
from sassxlate.lowering.rules.arithmetic.modes import ftz, rounding
from sassxlate.lowering.rules.modifiers import ROUND
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

# FMUL's factors of its product: powers of two, as exponents.
_SCALES = {"D2": -1, "D4": -2, "D8": -3, "M2": 1, "M4": 2, "M8": 3}


def _no_oddities(c: RuleEmitter) -> None:
    if c.ins.has("FMZ"):
        raise c.refuse(".FMZ (0 times anything is 0)")
    if any(c.ins.has(m) for m in _SCALES):
        raise c.refuse("scaled product")


def binary(c: RuleEmitter, op: str) -> None:
    _no_oddities(c)
    a, b = c.src("Ra"), c.src("Rb")
    with rounding(c), ftz(c):
        c.emit(op, c.dst_last(), a, b, clamp=c.ins.has("SAT"), **c.fneg("Ra", "Rb"))


def fadd(c: RuleEmitter) -> None:
    binary(c, "v_add_f32")


def fmul(c: RuleEmitter) -> None:
    scale = next((_SCALES[m] for m in c.ins.modifiers if m in _SCALES), None)
    if scale is None:
        binary(c, "v_mul_f32")
        return
    if c.ins.has("FMZ"):
        raise c.refuse(".FMZ (0 times anything is 0)")
    # The exact product is scaled, then rounded once: in binary64 both are exact.
    wide = [c.vtemp(2), c.vtemp(2)]
    with rounding(c), ftz(c):
        for role, out in zip(("Ra", "Rb"), wide, strict=True):
            c.emit("v_cvt_f64_f32", out, c.src(role), **c.fneg(role))
        c.emit("v_mul_f64", wide[0], wide[0], wide[1])
        c.emit("v_ldexp_f64", wide[0], wide[0], I(scale & 0xFFFFFFFF))
        c.emit("v_cvt_f32_f64", c.dst_last(), wide[0], clamp=c.ins.has("SAT"))


def ffma(c: RuleEmitter) -> None:
    _no_oddities(c)
    a, b, addend = c.src("Ra"), c.src("Rb"), c.src("Rc")
    with rounding(c), ftz(c):
        mods = c.fneg("Ra", "Rb", "Rc")
        c.emit("v_fma_f32", c.dst_last(), a, b, addend, clamp=c.ins.has("SAT"), **mods)


def _least_or_most(c: RuleEmitter, dst: V, a: Arg, b: Arg, mods: dict[str, int]) -> None:
    """The minimum if Pp holds, otherwise the maximum."""
    which = c.operand("Pp")
    with ftz(c):
        if isinstance(which, Pred) and which.index == 7:
            c.emit("v_max_f32" if which.inv else "v_min_f32", dst, a, b, **mods)
            return
        low, high = c.vtemp(), c.vtemp()
        c.emit("v_min_f32", low, a, b, **mods)
        c.emit("v_max_f32", high, a, b, **mods)
    c.emit("v_cndmask_b32", dst, high, low, c.mask_reg("Pp"))


def fmnmx(c: RuleEmitter) -> None:
    """Pp true: the minimum.  A NaN gives the other operand, two the canonical NaN; -0 < +0.

    With .NAN, any NaN gives the canonical one.  .XORSIGN takes the sign of the sources' product,
    whatever - and || they have; .IS_A: Pu is true if the result is Ra.
    """
    a, b = c.src("Ra"), c.src("Rb")
    mods = c.fneg("Ra", "Rb")
    if not any(c.ins.has(m) for m in ("NAN", "XORSIGN", "IS_A")):
        _least_or_most(c, c.dst_last(), a, b, mods)
        return
    value, out, nan = c.vtemp(), c.vtemp(), c.stemp()
    _least_or_most(c, value, a, b, mods)
    if c.ins.has("NAN"):
        c.emit("v_cmp_u_f32", nan, a, c.to_v(b), **mods)
    else:
        c.emit("v_cmp_u_f32", nan, value, value)
    c.emit("v_cndmask_b32", out, value, I(0x7FFFFFFF), nan)
    chosen = out
    if c.ins.has("XORSIGN"):
        sign, signed_ = c.vtemp(), c.vtemp()
        c.emit("v_xor_b32", sign, a, b)
        c.emit("v_bfi_b32", signed_, I(0x7FFFFFFF), chosen, sign)
        out = c.vtemp()
        c.emit("v_cndmask_b32", out, signed_, chosen, nan)
    if c.wants_pred("Pu"):
        first, same, other, none = c.to_v(float_bits(c, "Ra")), c.stemp(), c.stemp(), c.stemp()
        c.emit("v_cmp_eq_u32", same, chosen, first)
        c.emit("v_cmp_eq_u32", other, out, first)
        c.emit("s_and_b32", same, same, other)
        c.emit("v_cmp_u_f32", none, first, first)
        c.emit("s_and_b32", none, none, nan)
        c.emit("s_or_b32", same, same, none)
        c.pred_commit("Pu", same)
    c.emit("v_mov_b32", c.dst_last(), out)


# --- the multi-function unit ----------------------------------------------------------------------

_MUFU = {
    "RCP": "v_rcp_f32", "RSQ": "v_rsq_f32", "SQRT": "v_sqrt_f32", "EX2": "v_exp_f32",
    "LG2": "v_log_f32", "SIN": "v_sin_f32", "COS": "v_cos_f32",
}  # fmt: skip


def mufu(c: RuleEmitter) -> None:
    """One-ulp approximations.  Both units take SIN, COS arguments in revolutions, and flush
    denormals in EX2, LG2."""
    name = next((m for m in c.ins.modifiers if m in _MUFU), None)
    if name is None:
        raise c.refuse("this function of MUFU")
    with ftz(c, wanted=True):  # the unit flushes denormal inputs; the code around it scales
        if name in ODD_RESULT:
            _odd_result(c, name)
        else:
            c.emit(_MUFU[name], c.dst_last(), c.src("Rb"), **c.fneg("Rb"))


_NORMAL = 1 << 3 | 1 << 8  # v_cmp_class: negative and positive normal numbers


def _odd_result(c: RuleEmitter, name: str) -> None:
    """RCP and RSQ with the argument of ``ODD_RESULT`` repaired, if the result is normal.

    nvcc's divisions and roots correct an approximation that may err by an ulp, and come out exactly
    rounded for every argument except one per function and binade, where NVIDIA's unit gives the
    better neighbour and AMD's need not.  A denormal argument with these bits counts as 0.  RCP's
    better neighbour is the upper one, RSQ's the lower.
    """
    bits, value = ODD_RESULT[name]
    last, hit, normal, out = c.vtemp(), c.stemp(), c.stemp(), c.vtemp()
    c.emit("v_and_b32", last, I(bits), float_bits(c, "Rb"))
    c.emit(_MUFU[name], out, c.src("Rb"), **c.fneg("Rb"))
    c.emit("v_cmp_eq_u32", hit, I(value), last)
    c.emit("v_cmp_class_f32", normal, out, I(_NORMAL))
    c.emit("s_and_b32", hit, hit, normal)
    if name == "RSQ":
        c.emit("v_mov_b32", last, I(RSQ_MANTISSA))
        c.emit("v_bfi_b32", last, I(0x7FFFFF), last, out)
        c.emit("v_cndmask_b32", c.dst_last(), out, last, hit)
        return
    c.emit("v_cndmask_b32", last, ZERO, I(1), hit)
    c.emit("v_or_b32", c.dst_last(), out, last)


def tanh(c: RuleEmitter) -> None:
    _tanh(c, c.dst_last(), float_bits(c, "Rb"))


def _tanh(c: RuleEmitter, dst: V, value: Arg) -> None:
    """tanh|x| = 1 - 2 / (exp(2|x|) + 1), the sign restored; below 2**-5 the first terms of the odd
    series.

    Up to 2**-8 it is the argument itself, as on an H200.
    """
    x, small, t, series = c.vtemp(), c.stemp(), c.vtemp(), c.vtemp()
    c.emit("v_and_b32", x, I(0x7FFFFFFF), value)
    c.emit("v_mul_f32", t, I(0x4038AA3B), x)  # 2 * log2(e)
    c.emit("v_exp_f32", t, t)
    c.emit("v_add_f32", t, I(0x3F800000), t)
    c.emit("v_rcp_f32", t, t)
    c.emit("v_fma_f32", t, I(0xC0000000), t, I(0x3F800000))
    c.emit("v_mul_f32", series, x, x)
    c.emit("v_fma_f32", series, series, I(0xBEAAAAAB), I(0x3F800000))  # 1 - x*x/3
    c.emit("v_mul_f32", series, series, x)
    c.emit("v_cmp_lt_f32", small, x, I(0x3D000000))
    c.emit("v_cndmask_b32", t, t, series, small)
    c.emit("v_cmp_le_f32", small, x, I(TANH_ITSELF))
    c.emit("v_cndmask_b32", t, t, x, small)
    c.emit("v_bfi_b32", dst, I(0x7FFFFFFF), t, value)


def mufu16(c: RuleEmitter) -> None:
    """The function of the half as binary32, its lower bits dropped; infinite from 65,536 on."""
    name = next((m for m in c.ins.modifiers if m in _MUFU or m == "TANH"), None)
    if name is None:
        raise c.refuse("this function of MUFU")
    high = getattr(c.operand("Rb"), "select", "") == "H1"
    _mufu16(c, c.dst_last(), name, bf16=c.ins.has("BF16"), high=high)


def mufu16x2(c: RuleEmitter) -> None:
    """The function of each half (sm_103)."""
    if not c.ins.has("EX2") or getattr(c.operand("Rb"), "select", "") != "":
        raise c.refuse("this function of two halves")
    low, upper = c.vtemp(), c.vtemp()
    for out, is_upper in ((low, False), (upper, True)):
        with c.scope():
            _mufu16(c, out, "EX2", bf16=c.ins.has("BF16x2"), high=is_upper)
    c.emit("v_lshl_or_b32", c.dst_last(), upper, I(16), low)


def _mufu16(c: RuleEmitter, dst: V, name: str, *, bf16: bool, high: bool) -> None:
    half, wide, out, nan = c.vtemp(), c.vtemp(), c.vtemp(), c.stemp()
    if bf16:
        wide = half
        if high:
            c.emit("v_and_b32", half, I(0xFFFF0000), c.src("Rb"))
        else:
            c.emit("v_lshlrev_b32", half, I(16), c.src("Rb"))
        if c.flag("Rb", "abs"):
            c.emit("v_and_b32", half, I(0x7FFFFFFF), half)
        if c.flag("Rb", "neg"):
            c.emit("v_xor_b32", half, I(0x80000000), half)
    else:
        c.emit("v_lshrrev_b32", half, I(16 if high else 0), c.src("Rb"))
        c.emit("v_cvt_f32_f16", wide, half, **c.fneg("Rb"))
    if name == "TANH":
        _tanh(c, out, wide)
    else:
        if name == "EX2":  # truncation of any result below 1 would show
            c.emit("v_cmp_gt_f32", nan, I(EX2_ONE), wide, abs=2)
            c.emit("v_cndmask_b32", wide, wide, ZERO, nan)
        with ftz(c, wanted=True):
            c.emit(_MUFU[name], out, wide)
    c.emit("v_cmp_u_f32", nan, out, out)
    if bf16:
        c.emit("v_lshrrev_b32", half, I(16), out)
    else:
        _cut_to_half(c, half, out)
    c.emit("v_cndmask_b32", dst, half, I(0x7FFF), nan)


def _cut_to_half(c: RuleEmitter, dst: V, value: V) -> None:
    size, sign, huge = c.vtemp(), c.vtemp(), c.stemp()
    with rounding(c, "RZ"):
        c.emit("v_cvt_f16_f32", dst, value)
    c.emit("v_and_b32", dst, I(0xFFFF), dst)  # its high half is the old one
    c.emit("v_and_b32", size, I(0x7FFFFFFF), value)
    c.emit("v_cmp_lt_u32", huge, I(0x477FFFFF), size)
    c.emit("v_lshrrev_b32", sign, I(16), value)
    c.emit("v_and_b32", sign, I(0x8000), sign)
    c.emit("v_or_b32", sign, I(0x7C00), sign)
    c.emit("v_cndmask_b32", dst, dst, sign, huge)


def fchk(c: RuleEmitter) -> None:
    """True if Ra / Rb needs the slow path.

    The biased exponents decide (all pairs were measured on an H200): the fast path is for ea in 25
    to 254, eb in 2 to 251 and ea - eb in -124 to 126.
    """
    for role in ("Ra", "Rb"):
        c.operand(role)  # signs have no effect
    slow, out = c.stemp(), c.stemp()
    ea, eb, far = c.vtemp(), c.vtemp(), c.vtemp()
    c.emit("v_bfe_u32", ea, c.src("Ra"), I(23), I(8))
    c.emit("v_bfe_u32", eb, c.src("Rb"), I(23), I(8))
    c.emit("v_sub_nc_u32", far, ea, eb)
    c.emit("v_add_nc_u32", far, I(124), far)
    c.emit("v_cmp_lt_u32", slow, I(124 + 126), far)
    for e, low, high in ((ea, 25, 254), (eb, 2, 251)):
        c.emit("v_subrev_nc_u32", e, I(low), e)
        c.emit("v_cmp_lt_u32", out, I(high - low), e)
        c.emit("s_or_b32", slow, slow, out)
    c.pred_commit("Pu", slow, clean=True)


def fmnmx3(c: RuleEmitter) -> None:
    """With .NAN, any NaN gives the canonical one."""
    which = c.operand("Pp")
    if not (isinstance(which, Pred) and which.index == 7):
        raise c.refuse("this form of FMNMX3")
    op = "v_max3_f32" if which.inv else "v_min3_f32"
    args: list[Arg] = [c.src(r) for r in ("Ra", "Rb", "Rc")]
    mods = c.fneg("Ra", "Rb", "Rc")
    if not c.ins.has("NAN"):
        with ftz(c):
            c.emit(op, c.dst_last(), *args, **mods)
        return
    value, some, last = c.vtemp(), c.stemp(), c.stemp()
    with ftz(c):
        c.emit(op, value, *args, **mods)
    c.emit("v_cmp_u_f32", some, args[0], c.to_v(args[1]))
    c.emit("v_cmp_u_f32", last, args[2], c.to_v(args[2]))
    c.emit("s_or_b32", some, some, last)
    c.emit("v_cndmask_b32", c.dst_last(), value, I(0x7FFFFFFF), some)


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "FADD": f"FTZ SAT {ROUND}",
    "FMUL": f"FTZ SAT FMZ D2 D4 D8 M2 M4 M8 {ROUND}",
    "FFMA": f"FTZ SAT FMZ {ROUND}",
    "FMNMX": "FTZ NAN XORSIGN IS_A",
    "FMNMX3": "FTZ NAN",
    "MUFU": "RCP RSQ SQRT EX2 LG2 SIN COS TANH F16 BF16 F16x2 BF16x2",
    "FCHK": "",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("fadd", "FADD", fadd),
    Rule("ufadd", "UFADD", fadd),
    Rule("fmul", "FMUL", fmul),
    Rule("ufmul", "UFMUL", fmul),
    Rule("ffma", "FFMA", ffma),
    Rule("uffma", "UFFMA", ffma),
    Rule("fmnmx", "FMNMX", fmnmx),
    Rule("ufmnmx", "UFMNMX", fmnmx),
    Rule("fmnmx3", "FMNMX3", fmnmx3),
    Rule("mufu16", "MUFU", mufu16, lambda i: i.has("F16") or i.has("BF16")),
    Rule("mufu16x2", "MUFU", mufu16x2, lambda i: i.has("F16x2") or i.has("BF16x2")),
    Rule("mufu_tanh", "MUFU", tanh, lambda i: i.has("TANH")),
    Rule("mufu", "MUFU", mufu),
    Rule("fchk", "FCHK", fchk),
)

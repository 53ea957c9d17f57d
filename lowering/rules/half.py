"""FP16 pairs: HADD2, HMUL2, HFMA2 and their comparisons; also HFMA2's use as a constant move."""

from __future__ import annotations

from sassxlate.disasm.rdna3.ir import Arg, I, Inst, V
from sassxlate.disasm.sass.ir import Imm, Instruction, Reg

from ..context import ZERO, Ctx, Rule
from .compare import FLOAT, JOIN, relation
from .integer import is_zero
from .modes import FLUSH_F16, KEEP_DENORMALS

_LOW = {"H0_H0", "H0", "H0_NH0"}
_HIGH = {"H1_H1", "H1"}


def _pair(c: Ctx, role: str, n: int, mods: dict[str, int]) -> Arg:
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
    if select in _HIGH:
        mods["op_sel"] |= 1 << n
    if select in _LOW:
        mods["op_sel_hi"] &= ~(1 << n)
    elif select not in _HIGH and select not in ("", "H1_H0"):
        raise c.refuse(f"half selector {select}")
    if getattr(operand, "neg", False):
        mods["neg"] |= 1 << n
        mods["neg_hi"] |= 1 << n
    return value


def _check(c: Ctx) -> None:
    if any(c.ins.has(m) for m in ("BF16_V2", "BF16", "FMZ", "RELU")):
        raise c.refuse("this form of a half-precision instruction")


def packed(c: Ctx, op: str, roles: tuple[str, ...]) -> None:
    _check(c)
    mods = {"op_sel": 0, "op_sel_hi": 7, "neg": 0, "neg_hi": 0}
    args = [_pair(c, r, n, mods) for n, r in enumerate(roles)]
    flush = c.ins.has("FTZ")
    if flush:
        c.raw(Inst("s_denorm_mode", (), imm=FLUSH_F16))
    c.emit(op, c.dst_last(), *args, clamp=c.ins.has("SAT"), **mods)
    if flush:
        c.raw(Inst("s_denorm_mode", (), imm=KEEP_DENORMALS))


def _f32(c: Ctx, role: str) -> V:
    """A half selected from a register, as f32."""
    operand = c.operand(role)
    value = c.src(role)
    select = getattr(operand, "select", "")
    out = c.vtemp()
    if isinstance(value, I) and value == ZERO:
        c.emit("v_mov_b32", out, I(0x80000000 if getattr(operand, "neg", False) else 0))
        return out
    if select in _HIGH:
        temp = c.vtemp()
        c.emit("v_lshrrev_b32", temp, I(16), value)
        value = temp
    c.emit("v_cvt_f32_f16", out, value, **c.fneg(role))
    return out


def hadd2_f32(c: Ctx) -> None:
    """HADD2.F32: the f32 sum of one half of each operand; with -RZ, a conversion."""
    a, b = _f32(c, "Ra"), _f32(c, "Rb")
    c.emit("v_add_f32", c.dst_last(), a, b, clamp=c.ins.has("SAT"))


def hadd2(c: Ctx) -> None:
    packed(c, "v_pk_add_f16", ("Ra", "Rb"))


def _no_flush(c: Ctx) -> None:
    """NVIDIA flushes what is tiny before it is rounded; of AMD's halves that is not known."""
    if c.ins.has("FTZ"):
        raise c.refuse("half-precision product that flushes denormals")


def hmul2(c: Ctx) -> None:
    _no_flush(c)
    packed(c, "v_pk_mul_f16", ("Ra", "Rb"))


def hfma2(c: Ctx) -> None:
    _no_flush(c)
    packed(c, "v_pk_fma_f16", ("Ra", "Rb", "Rc"))


def hmnmx2(c: Ctx) -> None:
    which = c.operand("Pp")
    if getattr(which, "index", 0) != 7 or c.ins.has("NAN") or c.ins.has("XORSIGN"):
        raise c.refuse("this form of HMNMX2")
    packed(c, "v_pk_max_f16" if getattr(which, "inv", False) else "v_pk_min_f16", ("Ra", "Rb"))


def constant_move(ins: Instruction) -> bool:
    """HFMA2 Rd, -RZ, RZ, c, c is exactly c: -0 * 0 + c."""
    if ins.has("FTZ") or ins.has("SAT") or ins.has("RELU") or ins.has("F32"):
        return False
    return is_zero(ins.get("Ra")) and is_zero(ins.get("Rb")) and isinstance(ins.get("Rc"), Imm)


def hfma2_mov(c: Ctx) -> None:
    if c.flag("Ra", "neg") == c.flag("Rb", "neg"):  # +0 + -0 would be +0
        raise c.refuse("this constant sum")
    c.emit("v_mov_b32", c.dst_last(), c.src("Rc"))


def hsetp2(c: Ctx) -> None:
    """Compares both halves: Pu is the low one's result, Pv the high one's (.H_AND joins them)."""
    _check(c)
    if c.ins.has("FTZ") or c.ins.has("H_AND"):
        raise c.refuse("this form of HSETP2")
    name = relation(c, FLOAT)
    if name is None:
        raise c.refuse("comparison not known")
    join = next((JOIN[m] for m in c.ins.modifiers if m in JOIN), "s_and_b32")
    mods = {"op_sel": 0, "op_sel_hi": 7, "neg": 0, "neg_hi": 0}
    values = [_pair(c, r, n, mods) for n, r in enumerate(("Ra", "Rb"))]
    other = c.pred("Pp")
    for role, half in (("Pu", 0), ("Pv", 1)):
        if not c.wants_pred(role):
            continue
        args: list[Arg] = []
        for n, v in enumerate(values):
            wanted = (mods["op_sel"] if half == 0 else mods["op_sel_hi"]) >> n & 1
            if wanted:
                temp = c.vtemp()
                c.emit("v_lshrrev_b32", temp, I(16), v)
                v = temp
            args.append(v)
        hit = c.stemp()
        c.emit(f"v_cmp_{name}_f16", hit, *args, neg=mods["neg"])
        c.emit(join, hit, hit, other)
        c.pred_commit(role, hit)


RULES: tuple[Rule, ...] = (
    Rule("hadd2_f32", "HADD2", hadd2_f32, lambda i: i.has("F32")),
    Rule("hadd2", "HADD2", hadd2),
    Rule("hmul2", "HMUL2", hmul2),
    Rule("hfma2_mov", "HFMA2", hfma2_mov, constant_move),
    Rule("hfma2", "HFMA2", hfma2),
    Rule("hmnmx2", "HMNMX2", hmnmx2),
    Rule("hsetp2", "HSETP2", hsetp2),
)

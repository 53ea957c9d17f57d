"""Defects to seed: SASS, and the change to its translation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.verify import BlockPair, Placed

from .one import block_of

Code: TypeAlias = list[Placed]
Change: TypeAlias = Callable[[Code], Code]
CONTROL = "[B------:R-:W-:Y:S15] "


@dataclass(frozen=True, slots=True)
class Defect:
    """``text``: instructions; ``change``: of the code of the first of them."""

    name: str
    text: str
    change: Change
    merged: tuple[int, ...] = ()  # predicates that waiting lanes need


def block(text: str, merged: Sequence[int] = ()) -> BlockPair:
    """The instructions of a text, each translated alone, as one block."""
    parts = [block_of(assemble(f"{CONTROL}{line.strip()} ;", 90)) for line in text.split(";")]
    made = replace(
        parts[0],
        sass=[i for p in parts for i in p.sass],
        rdna=[code for p in parts for code in p.rdna],
        tail=parts[-1].tail,
    )
    return replace(made, merged=frozenset(RegRef("P", p) for p in merged)) if merged else made


def broken(defect: Defect) -> BlockPair:
    """The block with its defect."""
    good = block(defect.text, defect.merged)
    first, *rest = good.rdna
    changed = defect.change(list(first))
    assert changed != list(first), "nothing was changed"
    return replace(good, rdna=[changed, *rest])


def _one(code: Code, name: str, change: Callable[[Inst], Inst | None], number: int = 0) -> Code:
    """Changes instruction ``number`` of those whose mnemonic begins so; None: leaves it out."""
    places = [i for i, s in enumerate(code) if s.inst.op.startswith(name)]
    at = places[number]
    new = change(code[at].inst)
    here = [] if new is None else [replace(code[at], inst=new)]
    return [*code[:at], *here, *code[at + 1 :]]


def op(old: str, new: str, number: int = 0) -> Change:
    return lambda code: _one(code, old, lambda i: replace(i, op=i.op.replace(old, new, 1)), number)


def drop(name: str, number: int = 0) -> Change:
    return lambda code: _one(code, name, lambda _: None, number)


def arg(name: str, index: int, value: Arg, number: int = 0) -> Change:
    def change(inst: Inst) -> Inst:
        return replace(inst, args=(*inst.args[:index], value, *inst.args[index + 1 :]))

    return lambda code: _one(code, name, change, number)


def swap(name: str, i: int, j: int, number: int = 0) -> Change:
    def change(inst: Inst) -> Inst:
        args = list(inst.args)
        args[i], args[j] = args[j], args[i]
        return replace(inst, args=tuple(args))

    return lambda code: _one(code, name, change, number)


def imm(name: str, value: int, number: int = 0) -> Change:
    return lambda code: _one(code, name, lambda i: replace(i, imm=value), number)


def sign(name: str, sources: int = 1) -> Change:
    return lambda code: _one(code, name, lambda i: replace(i, neg=i.neg ^ sources))


def size(name: str, number: int = 0) -> Change:
    """No absolute value."""
    return lambda code: _one(code, name, lambda i: replace(i, abs=i.abs ^ 1), number)


def later(name: str, number: int = 0) -> Change:
    """Moves the instruction after the next one."""

    def change(code: Code) -> Code:
        at = [i for i, s in enumerate(code) if s.inst.op.startswith(name)][number]
        return [*code[:at], code[at + 1], code[at], *code[at + 2 :]]

    return change


def first(inst: Inst) -> Change:
    """Adds one instruction before the code."""
    return lambda code: [Placed(inst, code[0].pc, code[0].pc), *code]


def last(inst: Inst) -> Change:
    """Adds one instruction after the code."""
    return lambda code: [*code, Placed(inst, code[-1].next, code[-1].next)]


_EXEC = Sp("exec_lo")
DEFECTS: tuple[Defect, ...] = (
    # carries
    Defect("carry taken for a borrow", "IADD3.X R10, R4, R2, RZ, P0, !PT",
           op("v_add_co_ci_u32", "v_sub_co_ci_u32")),
    Defect("carry of the wrong half", "IADD3 R10, P3, R4, R2, R5", op("s_or_b32", "s_and_b32")),
    Defect("carry left out", "IADD3 R10, P3, R4, R2, RZ", arg("v_add_co_u32", 1, Sp("null"))),
    # operands
    Defect("swapped operands of a difference", "IADD3 R10, R4, -R2, RZ", swap("v_sub_nc", 1, 2)),
    Defect("swapped operands of a comparison", "ISETP.LT.AND P3, PT, R4, R2, PT",
           swap("v_cmp", 1, 2)),
    Defect("swapped arms of a choice", "SEL R10, R4, R2, P0", swap("v_cndmask", 1, 2)),
    Defect("another register", "IMAD.MOV.U32 R10, RZ, RZ, R4", arg("v_mov", 1, V(5))),
    Defect("another destination", "IMAD.MOV.U32 R10, RZ, RZ, R4", arg("v_mov", 0, V(11))),
    Defect("a constant one too large", "IADD3 R10, R4, 0x64, RZ",
           arg("v_add_nc", 2, I(0x65))),
    Defect("one more register written", "IADD3 R10, R4, R2, RZ",
           last(Inst("v_mov_b32", (V(9), I(0))))),
    # integers
    Defect("less or equal for less", "ISETP.LT.AND P3, PT, R4, R2, PT",
           op("v_cmp_lt_i32", "v_cmp_le_i32")),
    Defect("signed for unsigned", "ISETP.GE.U32.AND P3, PT, R4, R2, PT",
           op("v_cmp_ge_u32", "v_cmp_ge_i32")),
    Defect("sign of a product", "IMAD.WIDE.U32 R10, R4, R2, R8",
           op("v_mad_u64_u32", "v_mad_i64_i32")),
    Defect("one half of a product", "IMAD.WIDE R10, R4, R2, RZ",
           last(Inst("v_mov_b32", (V(11), I(0))))),
    Defect("shift clamped one too low", "SHF.R.U32.HI R10, RZ, R4, R2",
           arg("v_min_u32", 1, I(31))),
    Defect("shift without a clamp", "SHF.L.U32 R10, R2, R4, RZ", op("v_min_u32", "v_max_u32")),
    Defect("logic shift of a sign", "SHF.R.S32.HI R10, RZ, R4, R2",
           op("v_ashrrev_i64", "v_lshrrev_b64")),
    Defect("and for or", "LOP3.LUT R10, R4, R2, RZ, 0xc0, !PT", op("v_and_b32", "v_or_b32")),
    Defect("bytes the wrong way", "PRMT R10, R4, 0x3210, R2", op("v_perm_b32", "v_bfi_b32")),
    Defect("count from one", "POPC R10, R4", arg("v_bcnt", 2, I(1))),
    Defect("absolute value of an unsigned", "IABS R10, R4", op("v_max_i32", "v_max_u32")),
    Defect("minimum for maximum", "IMNMX R10, R4, R2, PT", op("v_min_i32", "v_max_i32")),
    Defect("shift of an address", "LEA R10, R4, R2, 0x2", arg("v_lshl_add", 2, I(3))),
    # floats
    Defect("denormals kept under FTZ", "FADD.FTZ R10, R4, R2", imm("s_denorm_mode", 15)),
    Defect("denormals flushed without FTZ", "FADD R10, R4, R2",
           lambda code: first(Inst("s_denorm_mode", (), imm=12))(
               last(Inst("s_denorm_mode", (), imm=15))(code))),
    Defect("another rounding", "FADD.RM R10, R4, R2", imm("s_round_mode", 1)),
    Defect("rounding not put back", "FADD.RM R10, R4, R2", drop("s_round_mode", 1)),
    Defect("sum for difference", "FADD R10, R4, -R2", sign("v_add_f32", 2)),
    Defect("sign of a factor", "DMUL R10, R4, R2", sign("v_mul_f64")),
    Defect("size of a term", "FADD R10, |R4|, R2", size("v_add_f32")),
    Defect("unordered for ordered", "FSETP.LT.AND P3, PT, R4, R2, PT",
           op("v_cmp_lt_f32", "v_cmp_nge_f32")),
    Defect("product rounded before the sum", "FFMA R10, R4, R2, R5",
           lambda code: [replace(code[0], inst=Inst("v_mul_f32", (V(17), V(4), V(2)))),
                         replace(code[0], inst=Inst("v_add_f32", (V(10), V(17), V(5))))]),
    Defect("halves swapped", "HADD2 R10, R4.H0_H0, R2",
           lambda code: _one(code, "v_pk_add_f16", lambda i: replace(i, op_sel=i.op_sel ^ 1))),
    # lanes
    Defect("lost bit of a waiting lane", "ISETP.LT.AND P3, PT, R4, R2, PT",
           last(Inst("s_mov_b32", (S(12), I(0)))), (0,)),
    Defect("write of a lane that is not active", "IADD3 R10, R4, R2, RZ",
           first(Inst("s_mov_b32", (_EXEC, I(0xFFFFFFFF))))),
    Defect("EXEC not put back", "@P0 IADD3 R10, R4, R2, RZ", drop("s_mov_b32", -1)),
    Defect("guard of the wrong sense", "@P0 IADD3 R10, R4, R2, RZ",
           op("s_and_saveexec_b32", "s_and_not0_saveexec_b32")),
    Defect("guard left out", "@P0 STG.E desc[UR4][R2.64], R4", drop("s_and_saveexec")),
    Defect("guard by another predicate", "@P0 STG.E desc[UR4][R2.64], R4",
           arg("s_and_saveexec", 1, S(60))),
    Defect("predicate not negated", "SEL R10, R4, R2, !P0", op("s_not_b32", "s_mov_b32")),
    # memory
    Defect("offset of a load", "LDG.E R10, desc[UR4][R2.64+0x8]", imm("global_load", 12)),
    Defect("offset of shared memory", "LDS R10, [R2+0x4]", imm("ds_load", 0)),
    Defect("width of a store", "STG.E desc[UR4][R2.64], R4",
           op("global_store_b32", "global_store_b16")),
    Defect("width of a shared store", "STS.64 [R2], R4", op("ds_store_b64", "ds_store_b32")),
    Defect("sign of a byte", "LDG.E.S8 R10, desc[UR4][R2.64]",
           op("global_load_i8", "global_load_u8")),
    Defect("data of a store", "STG.E desc[UR4][R2.64], R4", arg("global_store", 1, V(5))),
    Defect("store left out", "STG.E desc[UR4][R2.64], R4", drop("global_store")),
    Defect("store done twice", "STG.E desc[UR4][R2.64], R4",
           lambda code: [*code, *(s for s in code if s.inst.op.startswith("global_store"))]),
    Defect("shared for global", "STS [R2], R4", op("ds_store_b32", "scratch_store_b32")),
    Defect("store left out before a load",
           "STG.E desc[UR4][R2.64], R4; LDG.E R10, desc[UR4][R2.64]", lambda code: []),
    Defect("another atomic", "ATOMG.E.ADD.STRONG.GPU PT, R10, desc[UR4][R2.64], R4",
           op("global_atomic_add", "global_atomic_sub")),
    Defect("sign of an atomic", "ATOMG.E.MIN.S32.STRONG.GPU PT, R10, desc[UR4][R2.64], R4",
           op("global_atomic_min_i32", "global_atomic_min_u32")),
    Defect("compared and new value swapped", "ATOMS.CAS R10, [R2], R4, R5",
           swap("ds_cmpstore", 2, 3)),
    Defect("reduction left out", "REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R4",
           drop("global_atomic")),
    Defect("index of a constant", "LDC R10, c[0x3][R2+0x28]", arg("v_add_nc", 2, I(0x24))),
    # waits and fences
    Defect("no wait for a load", "LDG.E R10, desc[UR4][R2.64]", drop("s_waitcnt")),
    Defect("wait for all but the last load", "LDG.E R10, desc[UR4][R2.64]",
           imm("s_waitcnt", 1 << 10 | 63 << 4 | 7)),
    Defect("wait for the other counter", "LDC R10, c[0x3][R2+0x28]",
           imm("s_waitcnt", 0 << 10 | 63 << 4 | 7)),
    Defect("no wait for a scalar load", "LDC R10, c[0x3][R2+0x28]", drop("s_waitcnt")),
    Defect("fence without a wait", "MEMBAR.SC.GPU", drop("s_waitcnt_vscnt")),
    Defect("fence that empties one cache", "MEMBAR.SC.GPU", drop("buffer_gl1_inv")),
    # what the kernel keeps, and temporaries
    Defect("temporary read before it is written", "SHF.R.U32.HI R10, RZ, R4, R2",
           later("v_mov_b32", 1)),
    Defect("block number overwritten", "IADD3 R10, R4, R2, RZ",
           last(Inst("s_mov_b32", (S(13), I(0))))),
    Defect("argument pointer overwritten", "IADD3 R10, R4, R2, RZ",
           last(Inst("s_mov_b32", (S(0), I(0))))),
)  # fmt: skip

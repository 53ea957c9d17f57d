"""Which SASS instructions read floats as numbers, which as bits, and which make a NaN that is
another than SASS's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntFlag

from sassxlate.disasm.sass.ir import Imm, Instruction, Mem, Operand, Reg, RegRef


class Nan(IntFlag):
    """What a register's bits may be.  0: a number, or the NaN of binary32 that SASS makes."""

    SINGLE = 1  # another NaN than SASS has, where that has 0x7fffffff
    HALVES = 2  # the same of either half, where that has 0x7fff
    LOW = 4  # of a double that is NaN on both sides
    HIGH = 8
    FREE32 = 16  # as SASS has them, and maybe another NaN of binary32 than 0x7fffffff
    FREE16 = 32  # as SASS has them, and maybe another NaN of a half than 0x7fff


BITS = Nan.FREE32 | Nan.FREE16
DIRTY = Nan.SINGLE | Nan.HALVES | Nan.LOW | Nan.HIGH
WIDE = Nan.LOW | Nan.HIGH


# --- what instructions read and make -------------------------------------------------------------

# Roles that are read as numbers: (registers' roles, what of a NaN they do not see).
_SINGLES = Nan.SINGLE | Nan.HIGH  # the high word of a double that is NaN is NaN
_READS: Mapping[str, tuple[str, ...]] = {
    "FADD": ("Ra", "Rb"), "FMUL": ("Ra", "Rb"), "FFMA": ("Ra", "Rb", "Rc"),
    "UFADD": ("Ra", "Rb"), "UFMUL": ("Ra", "Rb"), "UFFMA": ("Ra", "Rb", "Rc"),
    "FMNMX": ("Ra", "Rb"), "UFMNMX": ("Ra", "Rb"), "FMNMX3": ("Ra", "Rb", "Rc"),
    "FSETP": ("Ra", "Rb"), "UFSETP": ("Ra", "Rb"), "FSET": ("Ra", "Rb"), "UFSET": ("Ra", "Rb"),
    "FCHK": ("Ra", "Rb"), "F2IP": ("Ra", "Rb"),
    "MUFU": ("Rb",), "FRND": ("Rb",), "UFRND": ("Rb",), "F2I": ("Rb",), "UF2I": ("Rb",),
    "F2F": ("Rb",), "UF2F": ("Rb",), "F2FP": ("Ra", "Rb"),
}  # fmt: skip
_HALVES: Mapping[str, tuple[str, ...]] = {
    "HADD2": ("Ra", "Rb"), "HMUL2": ("Ra", "Rb"), "HFMA2": ("Ra", "Rb", "Rc"),
    "HMNMX2": ("Ra", "Rb"), "VHMNMX": ("Ra", "Rb", "Rc"), "HSETP2": ("Ra", "Rb"),
    "HSET2": ("Ra", "Rb"),
}  # fmt: skip
_DOUBLES: Mapping[str, tuple[str, ...]] = {
    "DADD": ("Ra", "Rb"), "DMUL": ("Ra", "Rb"), "DFMA": ("Ra", "Rb", "Rc"), "DSETP": ("Ra", "Rb"),
}  # fmt: skip
_MOVES: Mapping[str, tuple[str, ...]] = {
    "MOV": ("Rb",), "UMOV": ("Rb",), "SEL": ("Ra", "Rb"), "USEL": ("Ra", "Rb"),
    "FSEL": ("Ra", "Rb"), "UFSEL": ("Ra", "Rb"),
}  # fmt: skip


# Of floats, too, these look at bits: signs of the registers, one pattern, which source was taken.
_BITWISE = ("XORSIGN", "OOB", "IS_A")


def numeric(ins: Instruction) -> tuple[tuple[str, ...], Nan]:
    """The roles that an instruction reads as numbers, and which NaN it does not tell apart.

    Every other register that it reads is read as bits.
    """
    name = ins.mnemonic
    if any(ins.has(m) for m in _BITWISE):
        return (), Nan(0)
    if name in _HALVES:
        none = ins.has("BF16_V2") or ins.has("BF16") or _reads_single(ins)
        return ((), Nan(0)) if none else (_HALVES[name], Nan.HALVES)
    if name in _DOUBLES:
        return _DOUBLES[name], WIDE
    if name in ("F2F", "UF2F"):
        kinds = [m for m in ins.modifiers if m in ("F16", "F32", "F64", "BF16")]
        if kinds == ["F32", "F64"]:  # see carries
            return ("Rb",), WIDE
        if "F64" in kinds or kinds[1:] == ["BF16"]:  # keeps a NaN's sign and payload, or reads bits
            return (), Nan(0)
        return ("Rb",), Nan.HALVES if kinds[1:] == ["F16"] else _SINGLES
    if name in ("FRND", "UFRND", "F2I", "UF2I"):
        if ins.has("BF16"):
            return (), Nan(0)
        if ins.has("F64"):
            return ("Rb",), WIDE
        return ("Rb",), Nan.HALVES if ins.has("F16") else _SINGLES
    if name == "MUFU":
        if ins.has("RCP64H") or ins.has("RSQ64H"):
            return ("Rb",), Nan.HIGH
        if ins.has("F16") or ins.has("BF16"):
            return (("Rb",), Nan.HALVES) if ins.has("F16") else ((), Nan(0))
    if name == "F2FP" and not _packs(ins):
        return (), Nan(0)
    return _READS.get(name, ()), _SINGLES


def _reads_single(ins: Instruction) -> bool:
    """HADD2 of a binary32 number, before sm_80: its bits are no halves; the rule looks for NaN."""
    return any(getattr(o, "select", "") == "F32" for o in ins.operands.values())


def _packs(ins: Instruction) -> bool:
    """Whether an F2FP makes halves, bf16 or TF32 of binary32: those look at a NaN's bits in no
    way.  Up to sm_89 the source's type is not printed."""
    unlike = ("SATFINITE", "E4M3", "E5M2", "UNPACK_B")
    return not any(ins.has(m) for m in unlike)


def moved(ins: Instruction) -> tuple[str, ...]:
    """The roles of which one is the result, bit for bit; none where the result is another."""
    roles = _MOVES.get(ins.mnemonic, ())
    if ins.mnemonic in ("IMAD", "UIMAD"):
        plain = not any(ins.has(m) for m in ("WIDE", "HI", "X", "SHL"))
        if plain and any(_zero(ins, role) for role in ("Ra", "Rb")):
            roles = ("Rc",)
    if _constant_move(ins):
        return ("Rc",)
    signs = ("neg", "abs", "inv")
    if any(getattr(ins.get(role), sign, False) for role in roles for sign in signs):
        return ()
    return roles


def _constant_move(ins: Instruction) -> bool:
    """HFMA2 of zeros and an immediate, as nvcc writes constants."""
    if ins.mnemonic != "HFMA2" or not isinstance(ins.get("Rc"), Imm):
        return False
    return _zero(ins, "Ra") and _zero(ins, "Rb")


def _zero(ins: Instruction, role: str) -> bool:
    operand = ins.get(role)
    return (isinstance(operand, Reg) and operand.is_zero) or (
        isinstance(operand, Imm) and operand.value == 0
    )


def sources_of_doubles(ins: Instruction) -> tuple[str, ...]:
    """The roles whose NaN an instruction passes on, where they hold doubles or high words of them:
    what reads the bits of the result reads theirs."""
    name = ins.mnemonic
    if name in ("DADD", "DMUL", "DFMA"):
        return _DOUBLES[name]
    return ("Rb",) if carries(ins) or made(ins) & WIDE else ()


# These take what a register of this role holds elsewhere, as it is: nothing is decided by it there.
_AWAY: Mapping[str, str] = {"ST": "Rb", "STG": "Rb", "STL": "Rb", "STS": "Rb", "SHFL": "Ra"}


def takes_away(ins: Instruction, ref: RegRef) -> bool:
    """Whether an instruction stores or shuffles what a register holds, and reads it as nothing
    else: no address, no lane's number."""
    value = _AWAY.get(ins.mnemonic)
    if ins.mnemonic != "SHFL" and not (ins.has("64") or ins.has("128")):
        return False  # a word of a double is taken apart
    others: list[Operand | None] = []
    for role, operand in ins.operands.items():
        if isinstance(operand, Mem):
            others += [operand.base, operand.ureg, operand.desc]
        elif role not in (value, "Rd"):
            others.append(operand)
    return value is not None and not any(_holds(o, ref) for o in others)


def _holds(operand: Operand | None, ref: RegRef) -> bool:
    if not isinstance(operand, Reg) or operand.is_zero or operand.file != ref.file:
        return False
    return operand.index <= ref.index < operand.index + operand.width


# As $__internal_0_$__cuda_sm20_div_rn_f64_full, ..._dsqrt_rn_f64_mediumpath_v1, ..._dblrcp_rn_...
_ROUTINE = re.compile(r"__cuda_sm\d+x?_(?:d|dbl)?(?:div|rcp|sqrt|rsqrt)_\w*$")


def nvcc_routine(symbol: str) -> bool:
    """Whether a function is nvcc's own for a quotient or root of doubles.  NaN and infinities leave
    it by ways of their own, before any bits are read that are computed there."""
    return bool(_ROUTINE.search(symbol))


def carries(ins: Instruction) -> bool:
    """Whether the result is a float with the sign and payload of a double's NaN."""
    kinds = [m for m in ins.modifiers if m in ("F16", "F32", "F64", "BF16")]
    return ins.mnemonic in ("F2F", "UF2F") and kinds == ["F32", "F64"]


def made(ins: Instruction) -> Nan:
    """Which NaN an instruction's result may have that is another than SASS makes.

    Of those that are left out the rule's code gives SASS's NaN, or there is none.
    """
    name = ins.mnemonic
    if name in ("DADD", "DMUL", "DFMA"):
        return WIDE
    if name in _HALVES:
        if _constant_move(ins):
            return Nan(0)
        if ins.has("BF16_V2") or ins.has("BF16") or name in ("HSETP2", "HSET2"):
            return Nan(0)
        if _reads_single(ins):
            return Nan(0)
        if name == "HADD2" and ins.has("F32"):
            return Nan.SINGLE
        return Nan(0) if name == "HMNMX2" and ins.has("NAN") else Nan.HALVES
    if name in ("FADD", "FMUL", "FFMA", "FMNMX3", "UFADD", "UFMUL", "UFFMA"):
        return Nan.SINGLE
    if name in ("FMNMX", "UFMNMX"):
        return Nan(0) if ins.has("NAN") else Nan.SINGLE
    if name == "MUFU":
        if ins.has("RCP64H") or ins.has("RSQ64H"):
            return Nan.HIGH
        return Nan(0) if ins.has("F16") or ins.has("BF16") else Nan.SINGLE
    if name in ("FRND", "UFRND"):
        if ins.has("F64"):
            return WIDE
        return Nan(0) if ins.has("F16") or ins.has("BF16") else Nan.SINGLE
    if name in ("F2F", "UF2F"):
        kinds = [m for m in ins.modifiers if m in ("F16", "F32", "F64", "BF16")]
        made_of = {("F16", "F32"): Nan.HALVES, ("F32", "F16"): Nan.SINGLE}
        return made_of.get((kinds[0], kinds[-1]), Nan(0)) if kinds else Nan(0)
    if name == "F2FP" and _packs(ins):  # with .RELU and of other types the rule looks for NaN
        plain = not any(ins.has(m) for m in ("RELU", "BF16", "TF32"))
        return Nan.HALVES if plain else Nan(0)
    return Nan(0)


__all__ = [
    "BITS", "DIRTY", "WIDE", "Nan", "carries", "made", "moved", "numeric", "nvcc_routine",
    "sources_of_doubles", "takes_away",
]  # fmt: skip

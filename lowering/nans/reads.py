"""The SASS instructions that read floats as numbers, those that read them as bits, and those that
make a NaN other than SASS's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntFlag
from typing import Final

from sassxlate.disasm.containers.values import Symbol
from sassxlate.disasm.sass.instruction import (
    Const,
    Imm,
    Instruction,
    Mem,
    Operand,
    Pred,
    Reg,
    RegRef,
)
from sassxlate.disasm.sass.traits import QUOTIENTS, traits


class Nan(IntFlag):
    """Possible deviations of a register's bits.  0: a number, or SASS's NaN of binary32."""

    SINGLE = 1  # a NaN other than SASS's 0x7fffffff
    HALVES = 2  # the same for either half, other than 0x7fff
    LOW = 4  # low word of a double that is NaN on both sides
    HIGH = 8
    FREE32 = 16  # same as SASS's, possibly a NaN of binary32 other than 0x7fffffff
    FREE16 = 32  # same as SASS's, possibly a NaN of a half other than 0x7fff
    BRAIN = 64  # a NaN of bf16 in either half, other than 0x7fff; by the optimising tier alone
    # Beside LOW: perhaps not the low word of the double whose high word comes next.
    # Beside HIGH: perhaps a NaN of binary32, with a double's sign and payload.
    ALONE = 128


BITS: Final = Nan.FREE32 | Nan.FREE16
DIRTY: Final = Nan.SINGLE | Nan.HALVES | Nan.LOW | Nan.HIGH | Nan.BRAIN
WIDE: Final = Nan.LOW | Nan.HIGH
# Members by themselves: to look one up in its class, or to join two, takes as long as everything
# else here.
_NOTHING: Final = Nan(0)
_SINGLE: Final = Nan.SINGLE
_HALVES: Final = Nan.HALVES
_HIGH: Final = Nan.HIGH
_BRAIN: Final = Nan.BRAIN


# --- what instructions read and make -------------------------------------------------------------

# Roles that are read as numbers: (roles of registers, NaN differences that have no effect).
_SINGLES: Final = Nan.SINGLE | Nan.HIGH  # the high word of a double that is NaN is NaN
_QUOTIENT_WORDS: Final = WIDE | Nan.SINGLE


# These read bits even of floats: signs of registers, one pattern, the choice of a source.
_BITWISE: Final = frozenset({"XORSIGN", "OOB", "IS_A"})
_FORMATS: Final = frozenset({"F16", "F32", "F64", "BF16"})


_SMALL: Final = frozenset({"F16", "BF16", "F16x2", "BF16x2"})
_PAIRED: Final = frozenset({"BF16_V2", "BF16", "MMA"})


_MOVES: Final = frozenset({"MOV", "SEL", "FSEL", "IMAD"})


def is_plain(ins: Instruction) -> bool:
    """Whether an instruction neither reads nor makes nor moves a float, like most do: then all that
    :func:`numeric`, :func:`made`, :func:`moved` and :func:`carries` find is nothing."""
    t = traits(ins)
    return not (t.number or t.converts or t.base in _MOVES)


def of_brains(ins: Instruction) -> bool:
    """Sums and products of pairs of bf16, which see of a NaN only that it is one."""
    if traits(ins).number != "f16" or "Pp" in ins.operands:  # for .RELU, and of comparisons
        return False
    plain = _PAIRED.issuperset(ins.modifiers) and not _constant_move(ins)
    return plain and (ins.has("BF16_V2") or ins.has("BF16"))


def numeric(ins: Instruction, *, tier: bool = False) -> tuple[tuple[str, ...], Nan]:
    """The roles that an instruction reads as numbers, and the NaN differences that have no effect
    on it.

    Every other register that it reads is read as bits.  ``tier``: in the optimising tier's code.
    """
    if tier and of_brains(ins):
        return _sources(ins), _BRAIN
    t = traits(ins)
    name = t.base
    if not t.number or not _BITWISE.isdisjoint(ins.modifiers):
        return (), _NOTHING
    if t.number == "f16":
        none = ins.has("BF16_V2") or ins.has("BF16") or _reads_single(ins)
        return ((), _NOTHING) if none else (_sources(ins), _HALVES)
    if name in QUOTIENTS and t.number == "f64":  # a word in each role
        return _words_of_quotients(ins), _QUOTIENT_WORDS
    if t.number == "f64":
        return _sources(ins), WIDE
    if name == "F2F":
        kinds = [m for m in ins.modifiers if m in _FORMATS]
        if kinds == ["F32", "F64"]:  # see carries
            return ("Rb",), WIDE
        if "F64" in kinds or kinds[1:] == ["BF16"]:  # keeps a NaN's sign and payload, or reads bits
            return (), _NOTHING
        return ("Rb",), _HALVES if kinds[1:] == ["F16"] else _SINGLES
    if name in ("FRND", "F2I"):
        if ins.has("BF16"):
            return (), _NOTHING
        if ins.has("F64"):
            return ("Rb",), WIDE
        return ("Rb",), _HALVES if ins.has("F16") else _SINGLES
    if name == "MUFU":
        if ins.has("RCP64H") or ins.has("RSQ64H"):
            return ("Rb",), _HIGH
        if ins.has("F16") or ins.has("F16x2"):
            return ("Rb",), _HALVES
        if ins.has("BF16") or ins.has("BF16x2"):
            return (), _NOTHING
    if name == "F2FP" and not _packs(ins):
        return (), _NOTHING
    return _sources(ins), _SINGLES


def _sources(ins: Instruction) -> tuple[str, ...]:
    """The operands that are read as numbers; a source that is packed with others (Rc) is bits."""
    roles = ("Ra", "Rb") if traits(ins).converts else ("Ra", "Rb", "Rc")
    return tuple(role for role in roles if role in ins.operands)


def _words_of_quotients(ins: Instruction) -> tuple[str, ...]:
    """The roles of DDIV and DSQRT, of one register each."""
    return tuple(r for r in ("Ra", "Rah", "Rb", "Rbh") if isinstance(ins.get(r), Reg))


def _reads_single(ins: Instruction) -> bool:
    """HADD2 of a binary32 number, before sm_80: its bits are not halves; the rule tests for NaN."""
    return any(getattr(o, "select", "") == "F32" for o in ins.operands.values())


def _packs(ins: Instruction) -> bool:
    """Whether an F2FP makes halves, bf16 or TF32 of binary32: those never read a NaN's bits.
    Up to sm_89 the source's type is not printed."""
    unlike = ("SATFINITE", "E4M3", "E5M2", "UNPACK_B")
    return not any(ins.has(m) for m in unlike)


def moved(ins: Instruction, *, tier: bool = False) -> tuple[str, ...]:
    """The roles that the result may copy bit for bit; none if it copies no operand.

    ``tier``: a shuffle does, as for the optimising tier.  What it takes is in the same register of
    another lane at the same place of the code, so that the same is known of it.
    """
    base = traits(ins).base
    if tier and ins.mnemonic == "SHFL":
        return () if _signed(ins.get("Ra")) else ("Ra",)
    roles: tuple[str, ...] = ()
    if base == "MOV":
        roles = ("Rb",)
    elif base in ("SEL", "FSEL"):
        roles = ("Ra", "Rb")
    elif base == "IMAD":
        plain = not any(ins.has(m) for m in ("WIDE", "HI", "X", "SHL"))
        if plain and any(_zero(ins, role) for role in ("Ra", "Rb")):
            roles = ("Rc",)
    if _constant_move(ins):
        return ("Rc",)
    for role in roles:
        if _signed(ins.get(role)):
            return ()
    return roles


def _signed(operand: Operand | None) -> bool:
    if isinstance(operand, Reg | Const):
        return operand.neg or operand.abs or operand.inv
    return isinstance(operand, Imm | Pred) and (operand.inv or getattr(operand, "neg", False))


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
    """The roles whose NaN an instruction passes on, if they hold doubles or high words of doubles:
    a read of the result's bits is a read of theirs."""
    if ins.mnemonic in QUOTIENTS and made(ins) & WIDE:
        return _words_of_quotients(ins)
    if traits(ins).number == "f64" and "Rd" in ins.operands:
        return _sources(ins)
    return ("Rb",) if carries(ins) or made(ins) & WIDE else ()


def takes_away(ins: Instruction, ref: RegRef) -> bool:
    """Whether an instruction stores or shuffles the value of a register, and does not use it
    otherwise, as an address or a lane number."""
    t = traits(ins)
    # The role that they move unchanged: it decides nothing there.
    stores = t.reaches(("store",), "generic", "global", "local", "shared") and not t.lanes
    value = "Rb" if stores else "Ra" if ins.mnemonic == "SHFL" else None
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
    it on separate paths, before any bits are read that are computed there."""
    return bool(_ROUTINE.search(symbol))


def routines_in(callees: Iterable[Symbol]) -> frozenset[int]:
    """The entries of such functions among those that a kernel calls."""
    return frozenset(f.value for f in callees if nvcc_routine(f.name))


def carries(ins: Instruction) -> bool:
    """Whether the result is a float with the sign and payload of a double's NaN."""
    if traits(ins).base != "F2F":
        return False
    return [m for m in ins.modifiers if m in _FORMATS] == ["F32", "F64"]


def words_of_doubles(ins: Instruction) -> tuple[tuple[str, str], ...]:
    """The roles in which an instruction reads the low and the high words of doubles as numbers; the
    same for both where a role has both, or the high word alone."""
    if QUOTIENTS.get(ins.mnemonic) == "f64":
        return tuple((r, r + "h") for r in ("Ra", "Rb") if isinstance(ins.get(r), Reg))
    roles, blind = numeric(ins)
    return tuple((r, r) for r in roles) if blind & Nan.LOW or blind == Nan.HIGH else ()


def made(ins: Instruction, *, tier: bool = False) -> Nan:
    """The NaN of an instruction's result that may differ from SASS's.

    For all other instructions the rule's code gives SASS's NaN, or there is none.  ``tier``: of the
    optimising tier's code, which may leave that of pairs of bf16 as it is, too.
    """
    if tier and of_brains(ins):
        return _BRAIN
    t = traits(ins)
    name = t.base
    if "Rd" not in ins.operands or not t.number:
        return _NOTHING
    if t.number == "f64":
        return WIDE
    if t.number == "f16":
        if _constant_move(ins):
            return _NOTHING
        if ins.has("BF16_V2") or ins.has("BF16") or name == "HSET2":
            return _NOTHING
        if _reads_single(ins):
            return _NOTHING
        if name == "HADD2" and ins.has("F32"):
            return _SINGLE
        return _NOTHING if name == "HMNMX2" and ins.has("NAN") else _HALVES
    if name == "FMNMX":
        return _NOTHING if ins.has("NAN") else _SINGLE
    if name == "MUFU":
        if ins.has("RCP64H") or ins.has("RSQ64H"):
            return _HIGH
        return _NOTHING if _SMALL.intersection(ins.modifiers) else _SINGLE
    if name == "FRND":
        if ins.has("F64"):
            return WIDE
        return _NOTHING if ins.has("F16") or ins.has("BF16") else _SINGLE
    if name == "F2F":
        kinds = [m for m in ins.modifiers if m in _FORMATS]
        made_of = {("F16", "F32"): _HALVES, ("F32", "F16"): _SINGLE}
        return made_of.get((kinds[0], kinds[-1]), _NOTHING) if kinds else _NOTHING
    if name == "F2FP" and _packs(ins):  # with .RELU and for other types the rule tests for NaN
        plain = not any(ins.has(m) for m in ("RELU", "BF16", "TF32"))
        return _HALVES if plain else _NOTHING
    return _NOTHING if t.converts or name == "FSET" else _SINGLE


__all__ = [
    "BITS", "DIRTY", "WIDE", "Nan", "carries", "is_plain", "made", "moved", "numeric",
    "nvcc_routine", "of_brains", "routines_in", "sources_of_doubles", "takes_away",
    "words_of_doubles",
]  # fmt: skip

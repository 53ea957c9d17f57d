"""The operand layout that arithmetic instructions share.

Bits 9 to 11 of the opcode choose a *form*: which of the sources B and C is a register, an
immediate, a constant or (with bit 91) a uniform register.

====  =========  =========  =========
form  A          B          C
====  =========  =========  =========
1     R 24       R 32       R 64
2     R 24       R 64       imm 32
3     R 24       R 64       const
4     R 24       imm 32     R 64
5     R 24       const      R 64
6     R 24       UR 32      R 64
7     R 24       R 64       UR 32
====  =========  =========  =========

Sign bits belong to the place, not to the source: 72 and 73 (negate, absolute) for bits 24 to 31,
63 and 62 for bits 32 to 63, 75 and 74 for bits 64 to 71.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sassxlate.disasm.sass.tables.spec import (
    C,
    Fixed,
    I,
    Idiom,
    Mod,
    Operand,
    P,
    R,
    Row,
    Select,
    Width,
    bits,
    enum,
    flag,
)

# nvdisasm's selectors for the parts of a register that holds two halves.
HALVES: Mapping[int, str] = {0: "", 2: "H0_H0", 3: "H1_H1"}
HALVES_F32: Mapping[int, str] = {0: "", 1: "F32", 2: "H0_H0", 3: "H1_H1"}


@dataclass(frozen=True, slots=True)
class Place:
    """A place of a register source: its bits, and those of its sign and selector."""

    lo: int
    neg: int
    abs: int
    reuse: int
    select: int


PLACES: Mapping[str, Place] = {
    "a": Place(24, 72, 73, 122, 74),
    "b": Place(32, 63, 62, 123, 60),
    "c": Place(64, 75, 74, 124, 81),
}
# Reuse bits belong to the source, whatever its place.
REUSE: Mapping[str, int] = {"Ra": 122, "Rb": 123, "Rc": 124}
# Half-precision instructions keep the sign of C above its selector.
HALF_PLACES: Mapping[str, Place] = {**PLACES, "c": Place(64, 84, 83, 124, 81)}

# For each kind of source list, form -> source -> place; upper case: placed at 32 by forms 2 to 7.
LAYOUTS: Mapping[str, Mapping[int, Mapping[str, str]]] = {
    "abc": {
        1: {"Ra": "a", "Rb": "b", "Rc": "c"},
        2: {"Ra": "a", "Rb": "c", "Rc": "imm"},
        3: {"Ra": "a", "Rb": "c", "Rc": "const"},
        4: {"Ra": "a", "Rb": "imm", "Rc": "c"},
        5: {"Ra": "a", "Rb": "const", "Rc": "c"},
        6: {"Ra": "a", "Rb": "ur", "Rc": "c"},
        7: {"Ra": "a", "Rb": "c", "Rc": "ur"},
    },
    "ab": {
        1: {"Ra": "a", "Rb": "b"},
        4: {"Ra": "a", "Rb": "imm"},
        5: {"Ra": "a", "Rb": "const"},
        6: {"Ra": "a", "Rb": "ur"},
    },
    # A second source that the hardware reads as C, although registers are at 32 ...
    "ab2": {
        1: {"Ra": "a", "Rb": "b"},
        2: {"Ra": "a", "Rb": "imm"},
        3: {"Ra": "a", "Rb": "const"},
        7: {"Ra": "a", "Rb": "ur"},
    },
    # ... or at 64.
    "ac": {
        1: {"Ra": "a", "Rb": "c"},
        2: {"Ra": "a", "Rb": "imm"},
        3: {"Ra": "a", "Rb": "const"},
        7: {"Ra": "a", "Rb": "ur"},
    },
    "b": {
        1: {"Rb": "b"},
        4: {"Rb": "imm"},
        5: {"Rb": "const"},
        6: {"Rb": "ur"},
    },
}


@dataclass(frozen=True, slots=True)
class Src:
    """A source of an arithmetic instruction, without the place that its form gives it."""

    width: Width = 1
    neg: bool = False
    abs: bool = False
    inv: bool = False  # the sign bit prints ~
    inv_if: str = ""  # ... if this modifier is set
    imm: Literal["hex", "shex", "f32", "f64", "pair"] = "hex"
    signed_by: int | None = None  # the bit that gives an immediate its sign
    select: Mapping[int, str] | None = None
    select_lo: int | None = None
    bf16: str = ""
    suffix: str = ""
    tight: bool = False  # a constant of halves without the space between its brackets


_IMM_KIND: Mapping[str, Literal["int", "f32", "f64", "f16x2"]] = {
    "hex": "int", "shex": "int", "f32": "f32", "f64": "f64", "pair": "f16x2",
}  # fmt: skip


def place(
    src: Src,
    where: str,
    places: Mapping[str, Place] = PLACES,
    file: Literal["R", "UR"] = "R",
    reuse: int | None = None,
) -> Operand:
    """The operand slot of a source at a place."""
    if where == "imm":
        return I(
            bits(32, 32), _IMM_KIND[src.imm], src.imm,
            64 if src.imm == "f64" else 32, bf16=src.bf16, signed_by=src.signed_by,
        )  # fmt: skip
    at = places["b" if where in ("const", "ur") else where]
    neg = at.neg if src.neg or src.inv_if else None
    absolute = at.abs if src.abs else None
    inv = at.neg if src.inv else None
    select = None
    if src.select is not None:
        lo = src.select_lo if src.select_lo is not None else at.select
        select = Select(bits(lo, 2), src.select, inside=where in ("const", "ur"))
    if where == "const":
        gap = src.imm == "pair" and not src.tight
        return C(src.width, neg, absolute, inv, src.inv_if, select, gap=gap)
    uniform = where == "ur" or file == "UR"
    return R(
        at.lo, src.width, "UR" if uniform else "R", neg, absolute, inv, src.inv_if, select,
        src.suffix, None if uniform else reuse if reuse is not None else at.reuse,
    )  # fmt: skip


def alu(
    mnemonic: str,
    base: int,
    text: str,
    sources: Mapping[str, Src],
    *,
    forms: Iterable[int],
    layout: str = "abc",
    mods: Sequence[Mod | Idiom] = (),
    dst: Mapping[str, Operand] | None = None,
    extra: Mapping[str, Operand] | None = None,
    since: int = 75,
    until: int = 999,
    const_until: int = 90,
    uniform: bool = False,
    places: Mapping[str, Place] = PLACES,
    **row: object,
) -> list[Row]:
    """The rows of an arithmetic instruction, one for each form.

    ``dst`` is ``Rd`` at bit 16 unless given; ``extra`` are predicates, look-up tables and other
    operands that no form moves.  Constant operands ended with sm_90 (``const_until``).  A
    ``uniform`` instruction has uniform registers everywhere and bit 91 set.
    """
    file: Literal["R", "UR"] = "UR" if uniform else "R"
    reuse = {**REUSE, "Rb": 124} if layout in ("ab2", "ac") else REUSE
    rows: list[Row] = []
    for form in forms:
        operands: dict[str, Operand] = dict(dst if dst is not None else {"Rd": rd(file=file)})
        for role, where in LAYOUTS[layout][form].items():
            if role in sources:
                operands[role] = place(sources[role], where, places, file, reuse[role])
        for role, slot in (extra or {}).items():
            operands[role] = slot
        constant = form in (3, 5)
        if constant and since > const_until:
            continue
        rows.append(
            Row(
                mnemonic,
                base | form << 9 | (0x1000 if uniform or form >= 6 else 0),
                operands,
                text,
                tuple(mods),
                since,
                min(until, const_until) if constant else until,
                guard="UP" if uniform else "P",
                **row,  # type: ignore[arg-type]
            )
        )
        if constant and not uniform:
            rows.append(_bindless(rows[-1]))
    return rows


def _bindless(row: Row) -> Row:
    """The same form with bit 91: the constant's bank is a descriptor in a uniform register."""
    slots = {
        role: replace(slot, bindless=32) if isinstance(slot, C) else slot
        for role, slot in row.operands.items()
    }
    return row.with_(opcode=row.opcode | 0x1000, operands=slots)


def rd(lo: int = 16, width: Width = 1, file: Literal["R", "UR"] = "R") -> R:
    """A destination register."""
    return R(lo, width, file, write=True)


def pd(lo: int = 81, file: Literal["P", "UP"] = "P") -> P:
    """A destination predicate."""
    return P(lo, None, file, write=True)


def ps(
    lo: int = 87, inv: int | None = None, file: Literal["P", "UP"] = "P", false: bool = False
) -> P:
    """A source predicate, its ``!`` bit after it; ``false`` if !PT is the usual value."""
    return P(lo, lo + 3 if inv is None else inv, file, default_inv=false)


PT_FIXED = Fixed("P")
NOT_PT = Fixed("P", inv=True)
UPT_FIXED = Fixed("UP")
NOT_UPT = Fixed("UP", inv=True)

ROUND = enum("round", 78, 2, "_ RM RP RZ")
FTZ = flag("FTZ", 80)
SAT = flag("SAT", 77)

__all__ = [
    "FTZ", "HALF_PLACES", "HALVES", "HALVES_F32", "NOT_PT", "NOT_UPT", "PLACES", "PT_FIXED",
    "ROUND", "SAT", "UPT_FIXED", "Place", "Src", "alu", "pd", "place", "ps", "rd", "replace",
]  # fmt: skip

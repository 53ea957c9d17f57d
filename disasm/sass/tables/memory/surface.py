"""Surfaces: loads and stores of texels, formatted (``.P``) or as bits (``.D``), atomics, queries.

The address is a list of coordinates, the layer of an array last; ``.UAI`` (sm_120) takes that
from a uniform register.  The source of the handle is the form, as for textures.
"""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import pd
from sassxlate.disasm.sass.tables.memory.modifiers import (
    AT_75,
    EVICT,
    LD_75,
    LD_80,
    PRIVATE,
    ST_75,
    ST_80,
)
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    Count,
    I,
    Mod,
    N,
    Operand,
    R,
    Row,
    bits,
    const,
    enum,
    flag,
    join,
)

_DIM = enum("dim", 61, 3, "1D 1D_BUFFER 1D_ARRAY 2D 2D_ARRAY 3D - -")
_COORDINATES = (1, 1, 2, 2, 3, 3, 0, 0)
_ARRAYS = (2, 4)
_CLAMP = enum("clamp", 59, 2, "IGN _ TRAP -")
_BA = flag("BA", 72)  # byte addresses
_UAI = flag("UAI", 58)
_SIZE = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 128 -", {"64": 2, "128": 4})
_PARTS = Mod("parts", bits(72, 4), {1: "R", 3: "RG", 15: ""}, {3: 2, 15: 4})
_OP = enum("op", 87, 4, "ADD MIN MAX INC DEC AND OR XOR EXCH - - - - - - -")
_RED_OP = enum("op", 87, 3, "ADD MIN MAX INC DEC AND OR XOR")
_TYPE = enum("type", 73, 3, "_ S32 U64 F32.FTZ.RN F16x2.RN S64 SD32 SD64",
             {"U64": 2, "S64": 2, "SD64": 2})  # fmt: skip


def _swap_type(wide: str) -> Mod:
    """The types of compare-and-swap; its data are the comparand and the new value."""
    return Mod("type", bits(73, 3), {0: "", 1: "S32", 2: wide}, {2: 2})


_SWAPPED = Count(bits(73, 3), lambda word: 4 if word >> 73 & 7 == 2 else 2)


_SPANS = ((75, 75), (80, 89), (86, 89), (90, 90))


def _address(shared: bool) -> R:
    """The coordinates; with ``shared`` the layer may be in a uniform register."""
    field = join((58, 1), (61, 3)) if shared else bits(61, 3)

    def of(word: int) -> int:
        dim = word >> 61 & 7
        apart = shared and word >> 58 & 1 and dim in _ARRAYS
        return _COORDINATES[dim] - (1 if apart else 0)

    return R(24, Count(Bits(field.parts), of), wrap="[{}]", real=True)


def _forms(
    name: str,
    base: int,
    constant: int,
    register: int,
    operands: Mapping[str, Operand],
    text: str,
    mods: Mapping[int, tuple[Mod, ...]],
) -> list[Row]:
    """The rows of an instruction; its handle follows its other operands.

    ``constant`` and ``register`` are the forms (bits 9 to 11) with a constant's and a register's
    handle; ``mods`` the modifiers by the first architecture.
    """
    rows: list[Row] = []

    def add(
        opcode: int, where: Mapping[str, Operand], since: int, until: int, mods: tuple[Mod, ...]
    ) -> None:
        known = {role.rstrip("?"): slot for role, slot in where.items()}
        address = {"Ra": _address(_UAI in mods)}
        rows.append(
            Row(name, opcode, {**operands, **address, **known}, ", ".join((text, *where)), mods,
                since, until, ones=(bits(48, 8),) if since == 100 else ())
        )  # fmt: skip

    under = 0 if name == "SUQUERY" else 1  # the next opcode takes the handle from a register
    bank, offset = I(bits(54, 5)), I(bits(40, 14))
    split: Mapping[str, Operand] = {
        "bank": bank, "offset": I(bits(40, 6)), "offset2": I(bits(46, 8)),
    }  # fmt: skip
    spans = [(since, until) for since, until in _SPANS if since in mods]
    for since, until in spans:
        some = mods[since]
        add(constant << 9 | base, {"bank": bank, "offset": offset}, since, until, some)
        add(0x600 | base, split, since, until, some)
        add(0x1E00 | base, {"Uc": R(40, 1, "UR"), "offset": I(bits(46, 8))}, since, until, some)
        add(register << 9 | base + under, {"Rc": R(64)}, since, until, some)
    add(0x1E00 | base, {"Uc": R(40, 1, "UR")}, 100, 110, mods[90])
    add(register << 9 | base + under, {"Rc": R(64)}, 100, 110, mods[90])
    lead, rest = mods[90][: mods[90].index(_DIM) + 1], mods[90][mods[90].index(_DIM) + 1 :]
    late = (*lead, _UAI, *rest)
    extra = R(48, 1, "UR")
    both = 0x1E00 if under else 0x1C00
    add(0x1E00 | base, {"Uc": R(40, 1, "UR"), "Ue?": extra}, 120, 999, late)
    add(register << 9 | base + under, {"Rc": R(64), "Ue?": extra}, 120, 999, late)
    add(both | base + under, {"Rc": R(64), "Uc": R(40, 1, "UR"), "Ue": extra}, 120, 999, late)
    return rows


def _ordered(
    kind: tuple[Mod, ...], middle: tuple[Mod, ...], first: Mod, later: Mod, end: tuple[Mod, ...]
) -> dict[int, tuple[Mod, ...]]:
    """Modifiers in print order, with the memory order of sm_75 and of the others."""
    lead = (*kind, _DIM, *middle)
    return {
        75: (*lead, first, PRIVATE, *end, _CLAMP),
        80: (*lead, later, *end, _CLAMP),
        90: (*lead, later, *end, _CLAMP),
    }


_D, _P = (const("D"), _BA), (const("P"),)
_PU = pd(81)


def _rows() -> list[Row]:
    rows: list[Row] = []
    load, store = "Pu?, Rd, Ra", "Ra, Rb"
    for width, kind, middle, end, base in (
        ("parts", _P, (EVICT,), (_PARTS,), 0x197), ("size", _D, (EVICT, _SIZE), (), 0x199),
    ):  # fmt: skip
        rows += _forms("SULD", base, 5, 4, {"Pu": _PU, "Rd": R(16, width, write=True)}, load,
                       _ordered(kind, middle, LD_75, LD_80, end))  # fmt: skip
    for width, kind, middle, end, base in (
        ("parts", _P, (EVICT,), (_PARTS,), 0x19B), ("size", _D, (EVICT, _SIZE), (), 0x19D),
    ):  # fmt: skip
        rows += _forms("SUST", base, 5, 4, {"Rb": R(32, width)}, store,
                       _ordered(kind, middle, ST_75, ST_80, end))  # fmt: skip
    rows += _forms(
        "SUATOM", 0x193, 2, 1,
        {"Pu": _PU, "Rd": R(16, "type", write=True), "Rb": R(32, "type")}, "Pu?, Rd, Ra, Rb",
        _ordered(_D, (_OP, EVICT, _TYPE), AT_75, ST_80, ()),
    )  # fmt: skip
    swap: dict[str, Operand] = {
        "Pu": _PU, "Rd": R(16, "type", write=True), "Rb": R(32, _SWAPPED),
    }  # fmt: skip
    cas = {
        since: _ordered(_D, (const("CAS"), EVICT, _swap_type(wide)), AT_75, ST_80, ())[since]
        for since, wide in ((75, "64"), (80, "U64"), (90, "64"))
    }
    rows += _forms("SUATOM", 0x195, 2, 1, swap, "Pu?, Rd, Ra, Rb", cas)
    rows += _forms("SURED", 0x19F, 2, 1, {"Rb": R(32, "type")}, "Ra, Rb",
                   _ordered(_D, (_RED_OP, EVICT, _TYPE), AT_75, ST_80, ()))  # fmt: skip
    return rows


def _queries() -> list[Row]:
    mods = {86: (_BA, _DIM), 90: (_BA, _DIM)}
    operands: dict[str, Operand] = {
        "Pu": _PU, "Rd": R(16, write=True), "query": N(bits(87), {0: "COMP_STATUS"}),
    }  # fmt: skip
    return _forms("SUQUERY", 0x1B3, 5, 4, operands, "Pu?, Rd, Ra, query", mods)


ROWS: list[Row] = [*_rows(), *_queries()]

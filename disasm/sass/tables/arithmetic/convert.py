"""Conversions between number formats.

A field for the destination's type (bits 75 to 77), one for the source's (84 to 86); a 64-bit
number on either side has its own opcode.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from sassxlate.disasm.sass.tables.arithmetic.forms import FTZ, ROUND, Src, alu, rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    C,
    I,
    Mod,
    R,
    Row,
    Select,
    bits,
    const,
    enum,
    flag,
    join,
)

_FLOATS: Mapping[int, str] = {1: "F16", 2: "F32", 3: "F64", 4: "BF16"}
_INTS: Mapping[int, str] = {
    0: "U8", 1: "S8", 2: "U16", 3: "S16", 4: "U32", 5: "", 6: "U64", 7: "S64",
}  # fmt: skip
_ROUND_INT = enum("round", 78, 2, "_ FLOOR CEIL TRUNC")
_HALF = {0: "", 1: "H1"}


def _float_name(code: int) -> str:
    return "" if code == 2 else _FLOATS[code]


def _pairs(pairs: list[tuple[int, int]], wide: int = 3) -> Mod:
    """Destination and source types of F2F, both printed; the source's field has ``wide`` bits."""
    return Mod(
        "types",
        join((75, 3), (84, wide)),
        {d | s << 3: f"{_FLOATS[d]}.{_FLOATS[s]}" for d, s in pairs},
    )


def _same(codes: list[int], wide: int = 3) -> Mod:
    """FRND's only type, which is in both fields."""
    return Mod(
        "types", join((75, wide), (84, wide)), {c | c << wide: _float_name(c) for c in codes}
    )


def _to_int(codes: list[int], sizes: list[int], wide: int = 3) -> Mod:
    """F2I: the integer's size and sign, the float's type."""
    return Mod(
        "types",
        join((72, 1), (75, 2), (84, wide)),
        {
            i | f << 3: ".".join(n for n in (_INTS[i], _float_name(f)) if n)
            for f in codes
            for i in range(8)
            if i >> 1 in sizes
        },
    )


def _from_int(codes: list[int], sizes: list[int], wide: int = 3) -> Mod:
    """I2F: the float's type, the integer's size and sign."""
    return Mod(
        "types",
        join((74, 1), (84, 2), (75, wide)),
        {
            i | f << 3: ".".join(n for n in (_float_name(f), _INTS[i]) if n)
            for f in codes
            for i in range(8)
            if i >> 1 in sizes
        },
    )


# The half of the source that holds an F16; the byte or half that holds an integer.
def _f16_part(wide: int) -> Select:
    return Select(
        join((60, 2), (84, wide)),
        {
            p | f << 2: (_HALF[p] if f in (1, 4) else "")
            for f in range(1 << wide)
            for p in range(2 if f in (1, 4) else 4)
        },
        inside=True,
        spaced=frozenset(p | f << 2 for f in (1, 4) for p in range(2)),
    )


_INT_PART = Select(
    join((60, 2), (84, 2)),
    {
        **{p: f"B{p}" if p else "" for p in range(4)},
        **{p | 4: _HALF[p] for p in range(2)},
        **{p | size << 2: "" for p in range(4) for size in (2, 3)},
    },
    spaced=frozenset(range(8)),
)


def _convert(
    mnemonic: str,
    base: int,
    text: str,
    types: Mod,
    dst: int,
    src: int,
    before: tuple[Mod, ...],
    after: tuple[Mod, ...],
    part: Select | None,
    since: int,
    until: int,
    integer: bool = False,
    forms: tuple[int, ...] = (1, 4, 5, 6),
) -> list[Row]:
    imm: Literal["hex", "f64", "f32"] = "hex" if integer else "f64" if src == 2 else "f32"
    rows = alu(
        mnemonic, base, text,
        {"Rb": Src(src, neg=not integer, abs=not integer, imm=imm,
                   signed_by=74 if integer else None)},
        forms=forms, layout="b", mods=(*before, types, *after), dst={"Rd": rd(width=dst)},
        since=since, until=until,
    )  # fmt: skip
    if imm == "f32":
        rows = _by_source(rows, bits(84, 2 if since < 90 else 3))
    if part is None:
        return rows
    return [
        r.with_(operands={**r.operands, "Rb": _with_part(r.operands["Rb"], part)}) for r in rows
    ]


def _with_part(slot: object, part: Select) -> object:
    return replace(slot, select=part) if isinstance(slot, R | C) else slot


def _by_source(rows: list[Row], source: Bits) -> list[Row]:
    """An immediate has 16 bits if the source is half precision: a row for each kind of source."""
    out: list[Row] = []
    for row in rows:
        slot = row.operands["Rb"]
        types = next(m for m in row.mods if m.name == "types")
        if not (isinstance(slot, I) and isinstance(types, Mod) and slot.style == "f32"):
            out.append(row)
            continue
        for code, style in _SOURCES:
            at = _place(types.field, source)
            names = {value: name for value, name in types.names.items() if value >> at == code}
            if not names:
                continue
            value = slot if style is None else I(bits(32, 16), "f16x2", style, 16)
            kept = tuple(dataclasses.replace(types, names=names) if m is types else m
                         for m in row.mods)  # fmt: skip
            fixed = (*(f for f in row.fixed if f[0] != source), (source, code))
            out.append(
                row.with_(operands={**row.operands, "Rb": value}, mods=kept, fixed=fixed,
                          free=() if style is None else (bits(48, 16),))
            )  # fmt: skip
    return out


def _place(field: Bits, last: Bits) -> int:
    """The bit of a field's value at which its last part begins."""
    assert field.parts[-1:] == last.parts, (field, last)
    return sum(width for _, width in field.parts[:-1])


_SOURCES: tuple[tuple[int, Literal["f16", "bf16"] | None], ...] = (
    (1, "f16"), (2, None), (4, "bf16"),
)  # fmt: skip


def _conversions() -> list[Row]:
    """Each conversion by the widths of both sides: a 64-bit side has its own opcode."""
    rows: list[Row] = []
    ntz = flag("NTZ", 77)
    # Up to sm_89 the float's type has two bits, which cannot encode bf16.
    for since, until, codes, w in (
        (75, 75, [1, 2], 2), (80, 89, [1, 2], 2), (90, 999, [1, 2, 4], 3),
    ):  # fmt: skip
        source_at, part = bits(84, w), _f16_part(w)
        narrow = [(1, 2), (2, 1)]
        if since == 80:
            narrow = [(1, 2), (2, 1), (4, 2)]
        elif since == 90:
            narrow = [(1, 2), (1, 4), (2, 1), (2, 4), (4, 1), (4, 2)]
        rows += _convert("F2F", 0x104, "Rd, Rb", _pairs(narrow, w), 1, 1, (FTZ,), (ROUND,),
                         part, since, until)  # fmt: skip
        for d, s in ((2, 1), (1, 2)):
            types = [(3, c) for c in codes] if d == 2 else [(c, 3) for c in codes]
            for to, source in types:
                rows += [
                    r.with_(fixed=((bits(75, 3), to), (source_at, source)))
                    for r in _convert("F2F", 0x110, "Rd, Rb", _pairs([(to, source)], w), d, s,
                                      (FTZ,), (ROUND,), part if s == 1 else None, since,
                                      until)
                ]  # fmt: skip
        rows += _convert("F2I", 0x105, "Rd, Rb", _to_int(codes, [0, 1, 2], w), 1, 1, (FTZ,),
                         (_ROUND_INT, ntz), part, since, until)  # fmt: skip
        rows += [
            r.with_(fixed=((source_at, 3), (bits(76), 1), (bits(75), 0)))
            for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([3], [2], w), 1, 2, (FTZ,),
                              (_ROUND_INT, ntz), None, since, until)
        ]  # fmt: skip
        rows += [
            r.with_(fixed=((source_at, 3), (bits(76), 0)))
            for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([3], [0, 1], w), 1, 2, (FTZ,),
                              (_ROUND_INT, ntz), None, since, until)
        ]  # fmt: skip
        rows += [
            r.with_(fixed=((source_at, 3), (bits(75, 2), 3)))
            for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([3], [3], w), 2, 2, (FTZ,),
                              (_ROUND_INT, ntz), None, since, until)
        ]  # fmt: skip
        for code in codes:
            rows += [
                r.with_(fixed=((source_at, code), (bits(75, 2), 3)))
                for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([code], [3], w), 2, 1, (FTZ,),
                                  (_ROUND_INT, ntz), part, since, until)
            ]  # fmt: skip
        rows += _convert("I2F", 0x106, "Rd, Rb", _from_int(codes, [0, 1, 2], w), 1, 1, (), (ROUND,),
                         _INT_PART, since, until, True)  # fmt: skip
        rows += [
            r.with_(fixed=((bits(75, w), 3), (bits(84, 2), 3)))
            for r in _convert("I2F", 0x112, "Rd, Rb", _from_int([3], [3], w), 2, 2, (), (ROUND,),
                              None, since, until, True)
        ]  # fmt: skip
        for size in (0, 1, 2):
            rows += [
                r.with_(fixed=((bits(75, w), 3), (bits(84, 2), size)))
                for r in _convert("I2F", 0x112, "Rd, Rb", _from_int([3], [size], w), 2, 1, (),
                                  (ROUND,), _INT_PART, since, until, True,
                                  (1, 4, 5, 6) if size == 2 else (1, 5, 6))
            ]  # fmt: skip
        for code in codes:
            rows += [
                r.with_(fixed=((bits(75, w), code), (bits(84, 2), 3)))
                for r in _convert("I2F", 0x112, "Rd, Rb", _from_int([code], [3], w), 1, 2, (),
                                  (ROUND,), None, since, until, True)
            ]  # fmt: skip
        rows += _convert("FRND", 0x107, "Rd, Rb", _same(codes, w), 1, 1, (FTZ,), (_ROUND_INT,),
                         part, since, until)  # fmt: skip
        rows += _convert("FRND", 0x113, "Rd, Rb", _same([3], w), 2, 2, (FTZ,), (_ROUND_INT,), None,
                         since, until)  # fmt: skip
    return rows


_I2FP = Mod("types", join((74, 1), (75, 3), (84, 2)),
            {0 | 2 << 1 | 2 << 4: "F32.U32", 1 | 2 << 1 | 2 << 4: "F32.S32"})  # fmt: skip
_I2FP_ROUND = enum("round", 78, 2, "_ - - RZ")
I2FP = alu(
    "I2FP", 0x045, "Rd, Rb", {"Rb": Src(signed_by=74)}, forms=(1, 4, 5, 6), layout="b",
    mods=(_I2FP, _I2FP_ROUND),
    since=86,
)  # fmt: skip
_LOW_BIT = {0: "", 1: "H1", 2: "", 3: "H1"}
INTEGER_CONVERSIONS = [
    *alu("I2I", 0x038, "Rd, Rb", {"Rb": Src(imm="shex")}, forms=(1, 4, 5, 6), layout="b",
         mods=(enum("type", 76, 2, "U8 S8 U16 S16"), const("S32.SAT"))),
    *(row
      for since, until, sat in ((75, 80, const("SAT")),
                                (86, 89, enum("sat", 74, 2, "SAT _ SATRELU -")),
                                (90, 999, flag("SAT", 74)))
      for names, at, code, rest in (("U8 S8 U16 S16", 2, 0, Src(select=_LOW_BIT, select_lo=72)),
                                    ("U4 S4", 1, 3, Src(suffix="24")),
                                    ("U2 S2", 1, 2, Src(suffix="28")))
      for row in alu("I2IP", 0x039, "Rd, Ra, Rb, Rc",
                     {"Ra": Src(), "Rb": Src(imm="shex"), "Rc": rest}, forms=(1, 4, 5, 6),
                     mods=(enum("type", 76, at, names), const("S32"), sat), since=since,
                     until=until,
                     fixed=((bits(78), 0), (bits(73), 0)) if at == 2 else (
                         (bits(77, 2), code), (bits(72, 2), 2 if code == 3 else 3)))),
]  # fmt: skip

_F2IP_ROUND = enum("round", 78, 2, "_ - - TRUNC")
_F2IP = {
    "Ra": Src(neg=False, imm="f32"), "Rb": Src(imm="f32"),
    "Rc": Src(imm="f32", select=_LOW_BIT, select_lo=72),
}  # fmt: skip
_BYTES = alu(
    "F2IP", 0x043, "Rd, Ra, Rb, Rc", _F2IP, forms=(1, 2, 3, 4, 5, 6, 7),
    mods=(enum("type", 76, 2, "U8 S8 - -"), const("F32"), _F2IP_ROUND, flag("NTZ", 74),
          flag("RELU", 75)), since=86,
)  # fmt: skip

PACKED_BYTES = [  # nvdisasm prints a space if the constant has a part selector
    r.with_(operands={**r.operands, "Rc": dataclasses.replace(slot, gap=True)})
    if isinstance(slot := r.operands["Rc"], C)
    else r
    for r in _BYTES
]

_BF = [1, 2, 4]
_NARROW = [(1, 2), (1, 4), (2, 1), (2, 4), (4, 1), (4, 2)]
_UFB = {"Rb": Src(neg=True, abs=True, imm="f32", select=_HALF)}
UNIFORM = [
    *(r.with_(operands={**r.operands, "Rb": _with_part(r.operands["Rb"], _f16_part(3))})
      for r in _by_source(
        [*alu("UF2F", 0x05B, "Rd, Rb", _UFB, forms=(1, 4), layout="b",
              mods=(FTZ, _pairs(_NARROW), ROUND), uniform=True, since=120),
         *alu("UFRND", 0x05D, "Rd, Rb", _UFB, forms=(1, 4), layout="b",
              mods=(FTZ, _same(_BF), _ROUND_INT), uniform=True, since=120),
         *alu("UF2I", 0x05C, "Rd, Rb", _UFB, forms=(1, 4), layout="b",
              mods=(FTZ, _to_int(_BF, [0, 1, 2]), _ROUND_INT, flag("NTZ", 77)), uniform=True,
              since=120)], bits(84, 3))),
    *(r.with_(operands={**r.operands, "Rb": _with_part(r.operands["Rb"], _INT_PART)})
      for r in alu("UI2F", 0x05A, "Rd, Rb", {"Rb": Src()}, forms=(1, 4), layout="b",
                   mods=(_from_int(_BF, [0, 1, 2]), ROUND), uniform=True, since=120)),
    *alu("UI2FP", 0x05E, "Rd, Rb", {"Rb": Src()}, forms=(1, 4), layout="b",
         mods=(_I2FP, _I2FP_ROUND), uniform=True, since=120),
    *alu("UI2I", 0x04E, "Rd, Rb", {"Rb": Src(imm="shex")}, forms=(1, 4), layout="b",
         mods=(enum("type", 76, 2, "U8 S8 U16 S16"), const("S32.SAT")), uniform=True, since=120),
]  # fmt: skip

ROWS: list[Row] = [*_conversions(), *I2FP, *INTEGER_CONVERSIONS, *PACKED_BYTES, *UNIFORM]

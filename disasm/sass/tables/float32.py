"""Single and double precision: arithmetic, comparisons, special functions, conversions."""

from __future__ import annotations

from collections.abc import Mapping

from ..spec import I, Mod, R, Row, Select, bits, const, enum, flag, join
from .forms import FTZ, ROUND, SAT, Src, alu, pd, ps, rd

_F = Src(neg=True, abs=True, imm="f32")
_D = Src(2, neg=True, abs=True, imm="f64")
_FF = {"Ra": _F, "Rb": _F}
_DD = {"Ra": _D, "Rb": _D}
_FFF = {**_FF, "Rc": _F}
_DDD = {**_DD, "Rc": _D}
_ALL = (1, 2, 3, 4, 5, 6, 7)
FLUSH = Mod("flush", join((76, 1), (80, 1)), {0: "", 1: "FMZ", 2: "FTZ"})
_SCALE = Mod("scale", bits(84, 3), {4: "", 1: "D8", 2: "D4", 3: "D2", 5: "M2", 6: "M4", 7: "M8"})

FCMP = enum("compare", 76, 4, "F LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU T")
DCMP = enum("compare", 76, 4, "MIN LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU MAX")
BOOL = enum("bool", 74, 2, "AND OR XOR -")
_SETP = {"Pu": pd(81), "Pv": pd(84), "Pp": ps(87)}
_XORSIGN = flag("XORSIGN", 82)
_NAN = flag("NAN", 81)

ARITHMETIC = [
    *alu("FADD", 0x021, "Rd, Ra, Rb", _FF, forms=(1, 2, 3, 7), layout="ab2",
         mods=(FTZ, ROUND, SAT)),
    *alu("FMUL", 0x020, "Rd, Ra, Rb", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(FLUSH, _SCALE, ROUND, SAT)),
    *alu("FFMA", 0x023, "Rd, Ra, Rb, Rc", _FFF, forms=_ALL, mods=(FLUSH, ROUND, SAT)),
    *alu("DADD", 0x029, "Rd, Ra, Rb", _DD, forms=(1, 2, 3, 7), layout="ac", mods=(ROUND,),
         dst={"Rd": rd(width=2)}),
    *alu("DMUL", 0x028, "Rd, Ra, Rb", _DD, forms=(1, 4, 5, 6), layout="ab", mods=(ROUND,),
         dst={"Rd": rd(width=2)}),
    *alu("DFMA", 0x02B, "Rd, Ra, Rb, Rc", _DDD, forms=_ALL, mods=(ROUND,),
         dst={"Rd": rd(width=2)}),
]  # fmt: skip

COMPARISONS = [
    *alu("FSETP", 0x00B, "Pu, Pv, Ra, Rb, Pp", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(FCMP, FTZ, BOOL), dst={}, extra=_SETP),
    *alu("DSETP", 0x02A, "Pu, Pv, Ra, Rb, Pp", _DD, forms=(1, 2, 3, 7), layout="ab2",
         mods=(DCMP, BOOL), dst={}, extra=_SETP),
    *alu("FSET", 0x00A, "Rd, Ra, Rb, Pp", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(const("BF"), FCMP, FTZ, BOOL), extra={"Pp": ps()}),
    *alu("FSEL", 0x008, "Rd, Ra, Rb, Pp", _FF, forms=(1, 4, 5, 6), layout="ab", mods=(FTZ,),
         extra={"Pp": ps()}),
    *alu("FMNMX", 0x009, "Rd, Ra, Rb, Pp", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(FTZ, _NAN, _XORSIGN), extra={"Pp": ps()}),
    *alu("FMNMX3", 0x076, "Rd, Ra, Rb, Rc, Pp", _FFF, forms=(1, 2, 4, 6, 7),
         mods=(FTZ, _NAN), extra={"Pp": ps()}, since=100),
    *alu("FCHK", 0x102, "Pu, Ra, Rb", _FF, forms=(1, 4, 5, 6), layout="ab", dst={},
         extra={"Pu": pd(81)}),
]  # fmt: skip

_MUFU = enum("op", 74, 4, "COS SIN EX2 LG2 RCP RSQ RCP64H RSQ64H SQRT TANH - - - - - -")
_FB = {"Rb": Src(neg=True, abs=True, imm="f32", select={0: "", 1: "H1"})}
SPECIAL = [
    *alu("MUFU", 0x108, "Rd, Rb", _FB, forms=(1, 4, 5, 6), layout="b",
         mods=(_MUFU, enum("type", 73, 1, "_ F16")), until=89),
    *alu("MUFU", 0x108, "Rd, Rb", _FB, forms=(1, 4, 5, 6), layout="b",
         mods=(_MUFU, enum("type", 72, 2, "_ F16 BF16 -")), since=90),
]  # fmt: skip

# ---- conversions: a field for the destination's type (75-77), one for the source's (84-86)

_FLOATS: Mapping[int, str] = {1: "F16", 2: "F32", 3: "F64", 4: "BF16"}
_INTS: Mapping[int, str] = {
    0: "U8", 1: "S8", 2: "U16", 3: "S16", 4: "U32", 5: "", 6: "U64", 7: "S64",
}  # fmt: skip
_ROUND_INT = enum("round", 78, 2, "_ FLOOR CEIL TRUNC")
_HALF = {0: "", 1: "H1"}


def _float_name(code: int) -> str:
    return "" if code == 2 else _FLOATS[code]


def _pairs(pairs: list[tuple[int, int]]) -> Mod:
    """Destination and source of F2F, printed both."""
    return Mod(
        "types",
        join((75, 3), (84, 3)),
        {d | s << 3: f"{_FLOATS[d]}.{_FLOATS[s]}" for d, s in pairs},
    )


def _same(codes: list[int]) -> Mod:
    """FRND's one type, which stands in both fields."""
    return Mod("types", join((75, 3), (84, 3)), {c | c << 3: _float_name(c) for c in codes})


def _to_int(codes: list[int], sizes: list[int]) -> Mod:
    """F2I: the integer's size and sign, the float's type."""
    return Mod(
        "types",
        join((72, 1), (75, 2), (84, 3)),
        {
            i | f << 3: ".".join(n for n in (_INTS[i], _float_name(f)) if n)
            for f in codes
            for i in range(8)
            if i >> 1 in sizes
        },
    )


def _from_int(codes: list[int], sizes: list[int]) -> Mod:
    """I2F: the float's type, the integer's size and sign."""
    return Mod(
        "types",
        join((74, 1), (84, 2), (75, 3)),
        {
            i | f << 3: ".".join(n for n in (_float_name(f), _INTS[i]) if n)
            for f in codes
            for i in range(8)
            if i >> 1 in sizes
        },
    )


# Which half of the source an F16 is in; which byte or half an integer is in.
_F16_PART = Select(
    join((60, 2), (84, 3)),
    {p | f << 2: (_HALF[p] if f in (1, 4) else "") for f in range(8) for p in (0, 1)},
)
_INT_PART = Select(
    join((60, 2), (84, 2)),
    {
        **{p: f"B{p}" if p else "" for p in range(4)},
        **{p | 4: _HALF[p] for p in range(2)},
        8: "",
        12: "",
    },
)


def _source(width: int, part: Select | None) -> dict[str, Src]:
    return {"Rb": Src(width, neg=True, abs=True, imm="f64" if width == 2 else "f32")}


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
    imm = "hex" if integer else "f64" if src == 2 else "f32"
    rows = alu(
        mnemonic, base, text,
        {"Rb": Src(src, neg=not integer, abs=not integer, imm=imm)},  # type: ignore[arg-type]
        forms=forms, layout="b", mods=(*before, types, *after), dst={"Rd": rd(width=dst)},
        since=since, until=until,
    )  # fmt: skip
    if part is None:
        return rows
    return [
        r.with_(operands={**r.operands, "Rb": _with_part(r.operands["Rb"], part)}) for r in rows
    ]


def _with_part(slot: object, part: Select) -> object:
    if isinstance(slot, R) and slot.file == "R":
        return R(
            slot.lo, slot.width, slot.file, slot.neg, slot.abs, slot.inv, slot.inv_if, part,
            slot.suffix, slot.reuse,
        )  # fmt: skip
    return slot


def _conversions() -> list[Row]:
    """Each conversion by the widths of both ends: a 64-bit end has an opcode of its own."""
    rows: list[Row] = []
    ntz = flag("NTZ", 77)
    for since, until, codes in ((75, 75, [1, 2]), (80, 89, [1, 2]), (90, 999, [1, 2, 4])):
        narrow = [(1, 2), (2, 1)]
        if since == 80:
            narrow = [(1, 2), (2, 1), (4, 2)]
        elif since == 90:
            narrow = [(1, 2), (1, 4), (2, 1), (2, 4), (4, 1), (4, 2)]
        rows += _convert("F2F", 0x104, "Rd, Rb", _pairs(narrow), 1, 1, (FTZ,), (ROUND,),
                         _F16_PART, since, until)  # fmt: skip
        for d, s in ((2, 1), (1, 2)):
            types = [(3, c) for c in codes] if d == 2 else [(c, 3) for c in codes]
            field = _pairs(types)
            rows += [
                r.with_(fixed=((bits(75, 3), 3),) if d == 2 else ((bits(84, 3), 3),))
                for r in _convert("F2F", 0x110, "Rd, Rb", field, d, s, (FTZ,), (ROUND,),
                                  _F16_PART if s == 1 else None, since, until)
            ]  # fmt: skip
        rows += _convert("F2I", 0x105, "Rd, Rb", _to_int(codes, [0, 1, 2]), 1, 1, (FTZ,),
                         (_ROUND_INT, ntz), _F16_PART, since, until)  # fmt: skip
        rows += [
            r.with_(fixed=((bits(84, 3), 3), (bits(76), 1), (bits(75), 0)))
            for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([3], [2]), 1, 2, (FTZ,),
                              (_ROUND_INT, ntz), None, since, until)
        ]  # fmt: skip
        rows += [
            r.with_(fixed=((bits(84, 3), 3), (bits(76), 0)))
            for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([3], [0, 1]), 1, 2, (FTZ,),
                              (_ROUND_INT, ntz), None, since, until)
        ]  # fmt: skip
        rows += [
            r.with_(fixed=((bits(84, 3), 3), (bits(75, 2), 3)))
            for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([3], [3]), 2, 2, (FTZ,),
                              (_ROUND_INT, ntz), None, since, until)
        ]  # fmt: skip
        for code in codes:
            rows += [
                r.with_(fixed=((bits(84, 3), code), (bits(75, 2), 3)))
                for r in _convert("F2I", 0x111, "Rd, Rb", _to_int([code], [3]), 2, 1, (FTZ,),
                                  (_ROUND_INT, ntz), _F16_PART, since, until)
            ]  # fmt: skip
        rows += _convert("I2F", 0x106, "Rd, Rb", _from_int(codes, [0, 1, 2]), 1, 1, (), (ROUND,),
                         _INT_PART, since, until, True)  # fmt: skip
        rows += [
            r.with_(fixed=((bits(75, 3), 3), (bits(84, 2), 3)))
            for r in _convert("I2F", 0x112, "Rd, Rb", _from_int([3], [3]), 2, 2, (), (ROUND,),
                              None, since, until, True)
        ]  # fmt: skip
        for size in (0, 1, 2):
            rows += [
                r.with_(fixed=((bits(75, 3), 3), (bits(84, 2), size)))
                for r in _convert("I2F", 0x112, "Rd, Rb", _from_int([3], [size]), 2, 1, (),
                                  (ROUND,), _INT_PART, since, until, True)
            ]  # fmt: skip
        for code in codes:
            rows += [
                r.with_(fixed=((bits(75, 3), code), (bits(84, 2), 3)))
                for r in _convert("I2F", 0x112, "Rd, Rb", _from_int([code], [3]), 1, 2, (),
                                  (ROUND,), None, since, until, True)
            ]  # fmt: skip
        rows += _convert("FRND", 0x107, "Rd, Rb", _same(codes), 1, 1, (FTZ,), (_ROUND_INT,),
                         _F16_PART, since, until)  # fmt: skip
        rows += _convert("FRND", 0x113, "Rd, Rb", _same([3]), 2, 2, (FTZ,), (_ROUND_INT,), None,
                         since, until)  # fmt: skip
    return rows


I2FP = alu(
    "I2FP", 0x045, "Rd, Rb", {"Rb": Src()}, forms=(1, 4, 5, 6), layout="b",
    mods=(Mod("types", join((74, 1), (75, 3), (84, 2)),
              {0 | 2 << 1 | 2 << 4: "F32.U32", 1 | 2 << 1 | 2 << 4: "F32.S32"}),
          enum("round", 78, 2, "_ - - RZ")),
    since=86,
)  # fmt: skip
INTEGER_CONVERSIONS = [
    *alu("I2I", 0x038, "Rd, Rb", {"Rb": Src()}, forms=(1, 4, 5, 6), layout="b",
         mods=(enum("type", 76, 2, "U8 S8 U16 S16"), const("S32.SAT"))),
    *alu("I2IP", 0x039, "Rd, Ra, Rb, Rc", {"Ra": Src(), "Rb": Src(), "Rc": Src()},
         forms=(1, 4, 5, 6),
         mods=(enum("type", 76, 2, "U8 S8 U16 S16"), const("S32"),
               Mod("sat", bits(74, 2), {0: "SAT", 1: "SAT"}))),
]  # fmt: skip

ROWS: list[Row] = [
    *ARITHMETIC, *COMPARISONS, *SPECIAL, *_conversions(), *I2FP, *INTEGER_CONVERSIONS,
]  # fmt: skip
__all__ = ["ROWS", "I"]

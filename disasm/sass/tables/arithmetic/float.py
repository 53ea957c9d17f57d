"""Single and double precision: arithmetic, comparisons, special functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from sassxlate.disasm.sass.tables.arithmetic.forms import FTZ, ROUND, SAT, Src, alu, pd, ps, rd
from sassxlate.disasm.sass.tables.spec import (
    C,
    I,
    Mod,
    Operand,
    R,
    Row,
    Select,
    bits,
    const,
    enum,
    flag,
    join,
)

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
         mods=(FTZ, ROUND, SAT), reserved=(bits(81),), reserved_since=100),
    *alu("FMUL", 0x020, "Rd, Ra, Rb", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(FLUSH, _SCALE, ROUND, SAT)),
    *alu("FFMA", 0x023, "Rd, Ra, Rb, Rc", _FFF, forms=_ALL, mods=(FLUSH, ROUND, SAT),
         reserved=(bits(81),), reserved_since=100),
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
         mods=(FTZ,), extra={"Pp": ps()}, until=75),
    *alu("FMNMX", 0x009, "Rd, Ra, Rb, Pp", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(FTZ, _NAN), extra={"Pp": ps()}, since=80, until=80),
    *alu("FMNMX", 0x009, "Rd, Ra, Rb, Pp", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(FTZ, _NAN, _XORSIGN), extra={"Pp": ps()}, since=86),
    *alu("FMNMX", 0x009, "Rd, Pu, Ra, Rb, Pp", _FF, forms=(1, 4, 5, 6), layout="ab",
         mods=(FTZ, _NAN, _XORSIGN, const("IS_A")), extra={"Pu": pd(66), "Pp": ps()}, since=90,
         fixed=((bits(65), 1),)),
    *alu("FMNMX3", 0x076, "Rd, Ra, Rb, Rc, Pp", _FFF, forms=(1, 4, 6),
         mods=(FTZ, _NAN), extra={"Pp": ps()}, since=100, until=110),
    *alu("FCHK", 0x102, "Pu, Ra, Rb", _FF, forms=(1, 4, 5, 6), layout="ab", dst={},
         extra={"Pu": pd(81)}),
]  # fmt: skip

_MUFU_OPS = "COS SIN EX2 LG2 RCP RSQ RCP64H RSQ64H SQRT TANH".split()


def _mufu(types: dict[int, str], high: bool = True, pairs: bool = False) -> Mod:
    """Function and type; the functions on the high word of a double have no type."""
    field, names = join((74, 4), (72, 2)), dict[int, str]()
    if pairs:  # EX2 of two halves at once, sm_103
        field, names = join((74, 4), (72, 2), (80, 1)), {0x32: "EX2.F16x2", 0x42: "EX2.BF16x2"}
    return Mod(
        "op",
        field,
        names
        | {
            op | code << 4: f"{name}.{kind}" if kind else name
            for op, name in enumerate(_MUFU_OPS)
            for code, kind in types.items()
            if not ((kind or not high) and name.endswith("64H"))
        },
    )


def _mufu_rows(types: dict[int, str], since: int, until: int, pairs: bool = False) -> list[Row]:
    """A half-precision argument may be in the upper half of its register."""
    halves = {
        p | t << 2: "H1" if p and names else ""
        for t, names in types.items()
        for p in range(2 if names else 4)
    }
    if pairs:
        halves |= {p | 3 << 2: "" for p in range(4)}
    spaced = frozenset(p | t << 2 for t, names in types.items() for p in range(2) if names)
    part = Select(join((60, 2), (72, 2)), halves, inside=True, spaced=spaced)
    rows = alu(
        "MUFU", 0x108, "Rd, Rb", {"Rb": Src(neg=True, abs=True, imm="f32")}, forms=(1, 5, 6),
        layout="b", mods=(_mufu(types, pairs=pairs),), since=since, until=until,
    )  # fmt: skip
    rows += alu(
        "MUFU", 0x108, "Rd, Rb", {"Rb": Src(imm="f32")}, forms=(4,), layout="b",
        mods=(_mufu({t: "" for t in types if not types[t]}, False),), since=since, until=until,
    )  # fmt: skip
    typed = bits(73) if since < 90 else bits(72, 2)
    for code, style in ((2, "F16"),) if since < 90 else ((1, "F16"), (2, "BF16")):
        half: Literal["f16", "bf16"] = "f16" if style == "F16" else "bf16"
        names = {t: name for t, name in types.items() if name == style}
        rows.append(
            Row("MUFU", 0x908, {"Rd": rd(), "Rb": I(bits(32, 16), style=half, bits=16)}, "Rd, Rb",
                (_mufu(names),), since, until, fixed=((typed, code >> (since < 90)),),
                free=(bits(48, 16),))
        )  # fmt: skip
    untyped = (typed, 0)
    for code, name in ((6, "RCP64H"), (7, "RSQ64H")):  # these take a double's high word
        rows += alu(
            "MUFU", 0x108, "Rd, Rb", {"Rb": Src(imm="f64")}, forms=(4,), layout="b",
            mods=(const(name),), fixed=((bits(74, 4), code), untyped),
            free=(bits(72),) if since < 90 else (), since=since, until=until,
        )  # fmt: skip
    return [
        r.with_(operands={**r.operands, "Rb": replace(slot, select=part)})
        if isinstance(slot := r.operands["Rb"], R | C)
        else r
        for r in rows
    ]


SPECIAL = [
    *_mufu_rows({0: "", 1: "", 2: "F16", 3: "F16"}, 75, 89),
    *_mufu_rows({0: "", 1: "F16", 2: "BF16"}, 90, 100),
    *_mufu_rows({0: "", 1: "F16", 2: "BF16"}, 103, 103, True),
    *_mufu_rows({0: "", 1: "F16", 2: "BF16"}, 110, 999),
]

# Pairs of single-precision numbers, sm_100.
_PAIR_HALF = {0: "F32x2.HI_LO", 1: "F32x2.LO_HI", 2: "F32", 4: "F32x2.HI_LO.NP",
              5: "F32x2.LO_HI.NP", 6: "F32.NP"}  # fmt: skip


def _packed(mnemonic: str, base: int, roles: str, selects: tuple[int, ...], flush: Mod) -> Row:
    slots = {
        "Ra": R(24, 2, neg=72, abs=73, reuse=122),
        "Rb": R(32, 2, neg=63, abs=62, reuse=123),
        "Rc": R(64, 2, neg=75, abs=74, reuse=124),
    }
    operands: dict[str, Operand] = {"Rd": rd(width=2)}
    for role, lo in zip(roles.split(), selects, strict=True):
        wide = 2 if lo == 87 else 3  # this source has no .NP
        names = {i: name for i, name in _PAIR_HALF.items() if i < 1 << wide}
        operands[role] = replace(slots[role], select=Select(bits(lo, wide), names))
    text = ", ".join(("Rd", *roles.split()))
    return Row(mnemonic, base | 0x200, operands, text, (flush, ROUND), 100, 103)


PACKED = [
    _packed("FADD2", 0x04B, "Ra Rb", (81, 84), FTZ),
    _packed("FMUL2", 0x04A, "Ra Rb", (81, 87), FLUSH),
    _packed("FFMA2", 0x049, "Ra Rb Rc", (81, 87, 84), FLUSH),
]

# The uniform datapath of sm_120 has single-precision arithmetic.
_UF = Src(neg=True, abs=True, imm="f32")
_UFF = {"Ra": _UF, "Rb": _UF}
_UPS = ps(file="UP")
UNIFORM = [
    *alu("UFADD", 0x054, "Rd, Ra, Rb", _UFF, forms=(1, 2), layout="ac", mods=(FTZ, ROUND, SAT),
         uniform=True, since=120),
    *alu("UFMUL", 0x056, "Rd, Ra, Rb", _UFF, forms=(1, 4), layout="ab",
         mods=(FLUSH, _SCALE, ROUND, SAT), uniform=True, since=120),
    *alu("UFFMA", 0x055, "Rd, Ra, Rb, Rc", {**_UFF, "Rc": _UF}, forms=(1, 2, 4),
         mods=(FLUSH, ROUND, SAT), uniform=True, since=120),
    *alu("UFMNMX", 0x050, "Rd, Ra, Rb, Pp", _UFF, forms=(1, 4), layout="ab",
         mods=(FTZ, _NAN, _XORSIGN), extra={"Pp": _UPS}, uniform=True, since=120),
    *alu("UFMNMX", 0x050, "Rd, Pu, Ra, Rb, Pp", _UFF, forms=(1, 4), layout="ab",
         mods=(FTZ, _NAN, _XORSIGN, const("IS_A")),
         extra={"Pu": pd(66, "UP"), "Pp": _UPS}, uniform=True, since=120,
         fixed=((bits(65), 1),)),
    *alu("UFSEL", 0x051, "Rd, Ra, Rb, Pp", _UFF, forms=(1, 4), layout="ab", mods=(FTZ,),
         extra={"Pp": _UPS}, uniform=True, since=120),
    *alu("UFSET", 0x052, "Rd, Ra, Rb, Pp", _UFF, forms=(1, 4), layout="ab",
         mods=(const("BF"), FCMP, FTZ, BOOL), extra={"Pp": _UPS}, uniform=True, since=120),
    *alu("UFSETP", 0x053, "Pu, Pv, Ra, Rb, Pp", _UFF, forms=(1, 4), layout="ab",
         mods=(FCMP, FTZ, BOOL), dst={},
         extra={"Pu": pd(81, "UP"), "Pv": pd(84, "UP"), "Pp": _UPS}, uniform=True, since=120),
]  # fmt: skip

ROWS: list[Row] = [*ARITHMETIC, *COMPARISONS, *SPECIAL, *PACKED, *UNIFORM]

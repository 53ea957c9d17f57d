"""Integer arithmetic: sums, products, comparisons, selections, counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sassxlate.disasm.sass.tables.arithmetic.forms import (
    NOT_PT,
    NOT_UPT,
    PT_FIXED,
    UPT_FIXED,
    Src,
    alu,
    pd,
    ps,
    rd,
)
from sassxlate.disasm.sass.tables.spec import (
    Fixed,
    I,
    Idiom,
    Mod,
    Operand,
    R,
    Row,
    When,
    bits,
    const,
    enum,
    flag,
    join,
)

X = flag("X", 74)
U32 = Mod("U32", bits(73), {0: "U32", 1: ""})
COMPARE = enum("compare", 76, 3, "F LT EQ LE GT NE GE T")
BOOL = enum("bool", 74, 2, "AND OR XOR -")
EX = flag("EX", 72)

_SUM = {"Ra": Src(neg=True, inv_if="X"), "Rb": Src(neg=True, inv_if="X", imm="shex"),
        "Rc": Src(neg=True, inv_if="X")}  # fmt: skip
_CARRIES: Mapping[str, Operand] = {
    "Pu": pd(81), "Pv": pd(84),
    "Pp": When("X", ps(87, false=True), NOT_PT), "Pq": When("X", ps(77, false=True), NOT_PT),
}  # fmt: skip
_UCARRIES: Mapping[str, Operand] = {
    "Pu": pd(81, "UP"), "Pv": pd(84, "UP"),
    "Pp": When("X", ps(87, file="UP", false=True), NOT_UPT),
    "Pq": When("X", ps(77, file="UP", false=True), NOT_UPT),
}  # fmt: skip
_SUM_TEXT = "Rd, Pu?, Pv?, Ra, Rb, Rc, Pp:X, Pq:X"
_SUM_TEXT_100 = "Rd, Pu, Pv, Ra, Rb, Rc, Pp:X, Pq:X"

_WIDE_SUM = {
    "Ra": Src(2, neg=True, inv_if="X"), "Rb": Src(2, neg=True, inv_if="X", imm="shex"),
    "Rc": Src(2, neg=True, inv_if="X"),
}  # fmt: skip

_VADD_NAMES = ("32", "16x2", "S32", "S16x2", "U8x4", "S8x4")
_VADD = Mod(
    "type",
    join((73, 3), (80, 1)),
    {
        **dict(enumerate(_VADD_NAMES)),
        **{i + 8: f"{name}.ISAT" for i, name in enumerate(_VADD_NAMES)},
    },
)

SUMS = [
    *alu("IADD3", 0x010, _SUM_TEXT, _SUM, forms=(1, 4, 5, 6), mods=(X,), extra=_CARRIES, until=90),
    *alu("IADD3", 0x010, _SUM_TEXT_100, _SUM, forms=(1, 4, 6), mods=(X,), extra=_CARRIES,
         since=100),
    # Without carries between the bits.
    *alu("IADD", 0x010, "Rd, Pu, Ra, Rb, Rc, Pp:X", _SUM, forms=(1, 4, 6), mods=(X, const("XOR")),
         extra={"Pu": pd(81), "Pp": _CARRIES["Pp"]}, since=100, until=103,
         fixed=((bits(76), 1),), free=(bits(77, 4),), ones=(bits(84, 3),)),
    *alu("UIADD3", 0x090, _SUM_TEXT, _SUM, forms=(1, 4), mods=(X,), extra=_UCARRIES, until=90,
         uniform=True),
    *alu("UIADD3", 0x090, _SUM_TEXT_100, _SUM, forms=(1, 4), mods=(X,), extra=_UCARRIES,
         since=100, uniform=True),
    *alu("UIADD3", 0x097, _SUM_TEXT, _WIDE_SUM, forms=(1, 4), mods=(const("64"), X),
         dst={"Rd": rd(width=2, file="UR")}, extra=_UCARRIES, until=90, uniform=True),
    *alu("UIADD3", 0x097, _SUM_TEXT_100, _WIDE_SUM, forms=(1, 4), mods=(const("64"), X),
         dst={"Rd": rd(width=2, file="UR")}, extra=_UCARRIES, since=100, uniform=True),
    *alu("VIADD", 0x036, "Rd, Ra, Rb", {"Ra": Src(), "Rb": Src(neg=True)}, forms=(1, 4, 5, 6),
         layout="ab", mods=(flag("16x2", 73),), since=90, until=103),
    *alu("VIADD", 0x036, "Rd, Ra, Rb", {"Ra": Src(neg=True), "Rb": Src(neg=True)},
         forms=(1, 4, 6), layout="ab", mods=(_VADD,), since=120),
]  # fmt: skip

_TWO = enum("64", 73, 1, "_ 64", {"64": 2})
_IADD = [
    *alu("IADD", 0x035, "Rd, Pu?, Ra, Rb, Pp:X",
         {"Ra": Src("64", neg=True, inv_if="X"), "Rb": Src("64", neg=True, inv_if="X", imm="shex")},
         forms=(1, 4, 6), layout="ab", mods=(_TWO, X), dst={"Rd": rd(width="64")},
         extra={"Pu": pd(81), "Pp": When("X", ps(87, false=True), NOT_PT)}, since=120,
         free=(bits(64, 8),)),
]  # fmt: skip


def _product_idiom(word: int) -> str:
    """IMAD's pseudo-modifier: a product that is trivial, or a shift.  Form 7 has none."""
    a = word >> 24 & 255
    form = word >> 9 & 7
    if word >> 74 & 1 or form >= 6 or word >> 91 & 1:
        return ""
    if form == 4:
        b, c = word >> 32 & 0xFFFFFFFF, word >> 64 & 255
        if a == 255 or b == 0:
            return "MOV"
        if b == 1:
            return "MOV" if c == 255 else "IADD"
        # nvdisasm excludes 2**16 and the sign bit.
        power = b & (b - 1) == 0 and b not in (1 << 16, 1 << 31)
        return "SHL" if power and c == 255 else ""
    if form == 5:
        return "MOV" if a == 255 else ""
    b = word >> (32 if form == 1 else 64) & 255
    return "MOV" if 255 in (a, b) else ""


_IDIOM = Idiom("idiom", join((9, 3), (24, 8), (32, 32), (64, 8), (74, 1), (91, 1)), _product_idiom)
_PRODUCT = {"Ra": Src(), "Rb": Src(imm="shex"), "Rc": Src(neg=True, inv_if="X", imm="shex")}
_WIDE = {**_PRODUCT, "Rc": Src(2, neg=True, inv_if="X", imm="shex")}
_MAD_EXTRA: Mapping[str, Operand] = {"Pu": PT_FIXED, "Pp": When("X", ps(87, false=True), NOT_PT)}
_WIDE_EXTRA: Mapping[str, Operand] = {"Pu": pd(81), "Pp": When("X", ps(87, false=True), NOT_PT)}
_UCARRY_IN = When("X", ps(87, file="UP", false=True), NOT_UPT)
_UMAD_EXTRA: Mapping[str, Operand] = {"Pu": UPT_FIXED, "Pp": _UCARRY_IN}
_UWIDE_EXTRA: Mapping[str, Operand] = {"Pu": pd(81, "UP"), "Pp": _UCARRY_IN}
_ALL = (1, 2, 3, 4, 5, 6, 7)
_NO_LONG = (1, 3, 4, 5, 6, 7)  # a 64-bit addend cannot be an immediate
# Dot products of four bytes, or of two halves and two of four bytes; then the type of A.
_DOT = Mod(
    "mode",
    join((76, 2), (73, 1)),
    {
        mode | sign << 2: f"{name}.{'SU'[1 - sign]}{width}"
        for mode, name, width in ((0, "4A", 8), (1, "2A.LO", 16), (3, "2A.HI", 16))
        for sign in (0, 1)
    },
)

PRODUCTS = [
    *alu("IMAD", 0x024, "Rd, Ra, Rb, Rc, Pp:X", _PRODUCT, forms=_ALL, mods=(_IDIOM, U32, X),
         extra=_MAD_EXTRA, ones=(bits(81, 3),)),
    *alu("IMAD", 0x025, "Rd, Pu?, Ra, Rb, Rc, Pp:X", _WIDE, forms=_NO_LONG,
         mods=(const("WIDE"), U32, X), dst={"Rd": rd(width=2)}, extra=_WIDE_EXTRA),
    *alu("IMUL", 0x024, "Rd, Ra, Rb, Rc", {**_PRODUCT, "Rc": Src(imm="shex")},
         forms=(1, 2, 4, 6, 7), mods=(const("XOR"), U32), since=100, until=103,
         fixed=((bits(76), 1), (bits(74), 0)), free=(bits(75), bits(87, 4)), ones=(bits(81, 3),)),
    *alu("IMUL", 0x025, "Rd, Ra, Rb, Rc", {**_PRODUCT, "Rc": Src(2, imm="shex")},
         forms=(1, 4, 6, 7), mods=(const("WIDE.XOR"), U32), dst={"Rd": rd(width=2)}, since=100,
         until=103, fixed=((bits(76), 1), (bits(74), 0)), free=(bits(75), bits(87, 4)),
         ones=(bits(81, 3),)),
    *alu("IMAD", 0x027, "Rd, Pu?, Ra, Rb, Rc, Pp:X", _WIDE, forms=_NO_LONG,
         mods=(const("HI"), U32, X), extra=_WIDE_EXTRA),
    *alu("UIMAD", 0x0a4, "Rd, Ra, Rb, Rc, Pp:X", _PRODUCT, forms=(1, 2, 4), mods=(U32, X),
         extra=_UMAD_EXTRA, uniform=True, ones=(bits(81, 3),)),
    *alu("UIMAD", 0x0a5, "Rd, Pu?, Ra, Rb, Rc, Pp:X", _WIDE, forms=(1, 4),
         mods=(const("WIDE"), U32, X), dst={"Rd": rd(width=2, file="UR")}, extra=_UWIDE_EXTRA,
         uniform=True),
    *alu("UIMAD", 0x0a6, "Rd, Pu?, Ra, Rb, Rc, Pp:X", _WIDE, forms=(1, 4),
         mods=(const("HI"), U32, X), extra=_UWIDE_EXTRA, uniform=True, since=120),
    *alu("IDP", 0x026, "Rd, Ra, Rb, Rc",
         {"Ra": Src(), "Rb": Src(), "Rc": Src(neg=True)}, forms=(1, 5, 6),
         mods=(_DOT, enum("tb", 74, 1, "U8 S8")), free=(bits(81, 3),)),
]  # fmt: skip

_LEA = {"Ra": Src(neg=True, inv_if="X"), "Rb": Src(neg=True, inv_if="X"), "Rc": Src()}
_SHIFT = I(bits(75, 5))
_NO_RC, _NO_URC = Fixed("R", 255), Fixed("UR", 255)


def _lea(
    name: str, base: int, forms: tuple[int, ...], uniform: bool, since: int, until: int
) -> list[Row]:
    file: Literal["P", "UP"] = "UP" if uniform else "P"
    none = NOT_UPT if uniform else NOT_PT
    carry: Mapping[str, Operand] = {
        "Pu": pd(81, file), "Pp": When("X", ps(87, file=file, false=True), none),
    }  # fmt: skip
    no_rc = _NO_URC if uniform else _NO_RC
    without = {k: v for k, v in _LEA.items() if k != "Rc"}
    rz = bits(64, 6 if uniform and until < 100 else 8)
    free = (bits(70, 2),) if uniform and until < 100 else ()
    low = (bits(80), 0), (bits(73), 0)
    high = (bits(80), 1), (bits(73), 0)
    sign = (bits(80), 1), (bits(73), 1)
    return [
        *alu(name, base, "Rd, Pu?, Ra, Rb, shift, Pp:X", without, forms=forms, mods=(X,),
             extra={**carry, "Rc": no_rc, "shift": _SHIFT}, fixed=low,
             free=free, ones=(rz,), uniform=uniform, since=since, until=until),
        *alu(name, base, "Rd, Pu?, Ra, Rb, Rc, shift, Pp:X", _LEA, forms=forms,
             mods=(const("HI"), X), extra={**carry, "shift": _SHIFT}, fixed=high,
             uniform=uniform, since=since, until=until),
        *alu(name, base, "Rd, Pu?, Ra, Rb, Rc, shift, Pp:X",
             {**_LEA, "Rb": Src()}, forms=(2,),
             mods=(const("HI"), X), extra={**carry, "shift": _SHIFT}, fixed=high,
             uniform=uniform, since=since, until=until),
        *alu(name, base, "Rd, Pu?, Ra, Rb, shift, Pp:X", without, forms=forms,
             mods=(const("HI"), X, const("SX32")),
             extra={**carry, "Rc": no_rc, "shift": _SHIFT}, fixed=sign,
             free=free, ones=(rz,), uniform=uniform, since=since, until=until),
    ]  # fmt: skip


LEAS = [
    *_lea("LEA", 0x011, (1, 4, 5, 6), False, 75, 999),
    *_lea("ULEA", 0x091, (1, 4), True, 75, 90),
    *_lea("ULEA", 0x091, (1, 4), True, 100, 999),
]

_PAIR = {"Ra": Src(), "Rb": Src(imm="shex")}
_SETP: Mapping[str, Operand] = {
    "Pu": pd(81), "Pv": pd(84), "Pp": ps(87), "Pq": When("EX", ps(68), PT_FIXED),
}  # fmt: skip
_USETP: Mapping[str, Operand] = {
    "Pu": pd(81, "UP"), "Pv": pd(84, "UP"), "Pp": ps(87, file="UP"),
    "Pq": When("EX", ps(68, file="UP"), UPT_FIXED),
}  # fmt: skip
_SETP_TEXT = "Pu, Pv, Ra, Rb, Pp, Pq:EX"
_SIZE = Mod(
    "type", join((73, 1), (80, 1)), {0: "U32", 1: "", 2: "U64", 3: "S64"}, {2: 2, 3: 2}
)  # fmt: skip
_PAIR64 = {"Ra": Src("type"), "Rb": Src("type", imm="shex")}

COMPARISONS = [
    # On sm_75 the last predicate is printed if it is not PT, with or without .EX.
    *alu("ISETP", 0x00C, "Pu, Pv, Ra, Rb, Pp, Pq?", _PAIR, forms=(1, 4, 5, 6), layout="ab",
         mods=(COMPARE, U32, BOOL, EX), dst={}, extra={**_SETP, "Pq": ps(68)}, until=75),
    *alu("ISETP", 0x00C, _SETP_TEXT, _PAIR, forms=(1, 4, 5, 6), layout="ab",
         mods=(COMPARE, U32, BOOL, EX), dst={}, extra=_SETP, since=80, until=110),
    *alu("ISETP", 0x00C, _SETP_TEXT, _PAIR64, forms=(1, 4, 6), layout="ab",
         mods=(COMPARE, _SIZE, BOOL, EX), dst={}, extra=_SETP, since=120),
    *alu("UISETP", 0x08C, _SETP_TEXT, _PAIR, forms=(1, 4), layout="ab",
         mods=(COMPARE, U32, BOOL, EX), dst={}, extra=_USETP, uniform=True, until=110),
    *alu("UISETP", 0x08C, _SETP_TEXT, _PAIR64, forms=(1, 4), layout="ab",
         mods=(COMPARE, _SIZE, BOOL, EX), dst={}, extra=_USETP, uniform=True, since=120),
]  # fmt: skip

_SEL = {"Ra": Src(), "Rb": Src()}
_SEL64 = {"Ra": Src(2), "Rb": Src(2)}
_MIN = enum("type", 73, 1, "U32 _")
_VMIN = enum("type", 72, 2, "U32 _ U16x2 S16x2")
_VMIN120 = enum("type", 72, 3, "U32 S32 U16x2 S16x2 U8x4 S8x4 - -")
RELU = flag("RELU", 76)

SELECTIONS = [
    *alu("SEL", 0x007, "Rd, Ra, Rb, Pp", _SEL, forms=(1, 4, 5, 6), layout="ab",
         extra={"Pp": ps()}),
    *alu("USEL", 0x087, "Rd, Ra, Rb, Pp", _SEL, forms=(1, 4), layout="ab",
         extra={"Pp": ps(file="UP")}, uniform=True),
    Row("SEL", 0x407,
        {"Rd": rd(width=2), "Ra": R(24, 2, reuse=122),
         "Rb": I(bits(32, 33), style="shex", bits=64, signed=True), "Pp": ps()},
        "Rd, Ra, Rb, Pp", (const("64"),), since=120),
    Row("SEL", 0x607,
        {"Rd": rd(width=2), "Ra": R(24, 2, reuse=122), "Rb": R(32, 2, reuse=123), "Pp": ps()},
        "Rd, Ra, Rb, Pp", (const("64"),), since=120),
    Row("SEL", 0x1E07,
        {"Rd": rd(width=2), "Ra": R(24, 2, reuse=122), "Rb": R(32, 2, "UR"), "Pp": ps()},
        "Rd, Ra, Rb, Pp", (const("64"),), since=120),
    *alu("IMNMX", 0x017, "Rd, Ra, Rb, Pp", _PAIR, forms=(1, 4, 5, 6), layout="ab",
         mods=(_MIN,), extra={"Pp": ps()}, until=90),
    *alu("IMNMX", 0x017, "Rd, Ra, Rb, Pp", _PAIR, forms=(1, 4, 6), layout="ab",
         mods=(_MIN,), extra={"Pp": ps()}, since=100, until=110, ones=(bits(77, 10),)),
    *alu("IMNMX", 0x017, "Pu, Pv, Rd, Ra, Rb, Pp, Pq",
         {"Ra": Src("type"), "Rb": Src("type", imm="shex")}, forms=(1, 4, 6), layout="ab",
         mods=(Mod("type", bits(73, 2), {0: "U32", 1: "", 2: "U64", 3: "S64"}, {2: 2, 3: 2}),),
         dst={"Rd": rd(width="type")},
         extra={"Pu": pd(81), "Pv": pd(84), "Pp": ps(), "Pq": ps(77, false=True)}, since=120),
    *alu("VIMNMX", 0x048, "Rd, Ra, Rb, Pp", _PAIR, forms=(1, 4, 5, 6), layout="ab",
         mods=(_VMIN, RELU), extra={"Pu": PT_FIXED, "Pv": pd(84), "Pp": ps()}, since=90,
         until=90, fixed=((bits(81, 3), 7),)),
    *alu("VIMNMX", 0x048, "Rd, Pu, Pv, Ra, Rb, Pp", _PAIR, forms=(1, 4, 5, 6), layout="ab",
         mods=(_VMIN, RELU),
         extra={"Pu": pd(81), "Pv": pd(84), "Pp": ps()}, since=90, until=90),
    *alu("VIMNMX", 0x048, "Rd, Pu, Pv, Ra, Rb, Pp", _PAIR, forms=(1, 4, 6), layout="ab",
         mods=(_VMIN, RELU), extra={"Pu": pd(81), "Pv": pd(84), "Pp": ps()}, since=100,
         until=103),
    *alu("VIMNMX", 0x048, "Rd, Ra, Rb, Pp", _PAIR, forms=(1, 4, 6), layout="ab",
         mods=(_VMIN120, RELU), extra={"Pp": ps()}, since=120, ones=(bits(81, 6),),
         free=(bits(77, 4),)),
    *alu("UVIMNMX", 0x04A, "Rd, Ra, Rb, Pp", _PAIR, forms=(1, 4), layout="ab",
         mods=(_VMIN120, RELU), extra={"Pp": ps(file="UP")}, uniform=True, since=120,
         ones=(bits(81, 6),), free=(bits(77, 4),)),
    *alu("UVIADD", 0x049, "Rd, Ra, Rb", {"Ra": Src(neg=True), "Rb": Src(neg=True)},
         forms=(1, 4), layout="ab", mods=(_VADD,), uniform=True, since=120),
    *alu("USEL", 0x087, "Rd, Ra, Rb, Pp", _SEL64, forms=(6,), layout="ab",
         mods=(const("64"),), dst={"Rd": rd(width=2, file="UR")}, extra={"Pp": ps(file="UP")},
         uniform=True, since=120),
    Row("USEL", 0x1487,
        {"Rd": rd(width=2, file="UR"), "Ra": R(24, 2, "UR"),
         "Rb": I(bits(32, 33), style="shex", bits=64, signed=True), "Pp": ps(file="UP")},
        "Rd, Ra, Rb, Pp", (const("64"),), since=120, guard="UP"),
    *alu("UIMNMX", 0x085, "Pu, Pv, Rd, Ra, Rb, Pp, Pq",
         {"Ra": Src("type"), "Rb": Src("type", imm="shex")}, forms=(1, 4), layout="ab",
         mods=(Mod("type", bits(73, 2), {0: "U32", 1: "", 2: "U64", 3: "S64"}, {2: 2, 3: 2}),),
         dst={"Rd": rd(width="type", file="UR")},
         extra={"Pu": pd(81, "UP"), "Pv": pd(84, "UP"), "Pp": ps(file="UP"),
                "Pq": ps(77, file="UP", false=True)}, uniform=True, since=120),
    *alu("VIMNMX3", 0x00F, "Rd, Ra, Rb, Rc, Pp",
         {"Ra": Src(), "Rb": Src(), "Rc": Src()}, forms=(1, 4, 5, 6),
         mods=(_VMIN, RELU), extra={"Pp": ps()}, since=90, until=103),
    *alu("VIADDMNMX", 0x046, "Rd, Ra, Rb, Rc, Pp",
         {"Ra": Src(), "Rb": Src(neg=True), "Rc": Src()}, forms=(1, 2, 3, 4, 5, 6, 7),
         mods=(_VMIN, RELU), extra={"Pp": ps()}, since=90, until=103),
]  # fmt: skip

_COUNT_PRED = {"Pu": pd(81)}
_NOT = {"Rb": Src(inv=True)}
COUNTS = [
    *alu("IABS", 0x013, "Rd, Rb", {"Rb": Src(imm="shex")}, forms=(1, 4, 5, 6), layout="b"),
    *alu("UIABS", 0x04D, "Rd, Rb", {"Rb": Src(imm="shex")}, forms=(1, 4), layout="b", uniform=True,
         since=120),
    *alu("POPC", 0x109, "Rd, Rb", _NOT, forms=(1, 4, 5, 6), layout="b"),
    *alu("FLO", 0x100, "Rd, Pu?, Rb", _NOT, forms=(1, 4, 5, 6), layout="b",
         mods=(Mod("U32", bits(73), {0: "U32", 1: ""}), flag("SH", 74)), extra=_COUNT_PRED),
    *alu("BREV", 0x101, "Rd, Rb", {"Rb": Src()}, forms=(1, 4, 5, 6), layout="b"),
    *alu("UPOPC", 0x0BF, "Rd, Rb", _NOT, forms=(1, 4), layout="b", uniform=True),
    *alu("UFLO", 0x0BD, "Rd, Pu?, Rb", _NOT, forms=(1, 4), layout="b", uniform=True,
         mods=(Mod("U32", bits(73), {0: "U32", 1: ""}), flag("SH", 74)),
         extra={"Pu": pd(81, "UP")}),
    *alu("UBREV", 0x0BE, "Rd, Rb", {"Rb": Src()}, forms=(1, 4), layout="b", uniform=True),
]  # fmt: skip

ROWS: list[Row] = [*SUMS, *_IADD, *PRODUCTS, *LEAS, *COMPARISONS, *SELECTIONS, *COUNTS]
__all__ = ["ROWS"]

"""Moves, logic, shifts, permutations and predicate logic."""

from __future__ import annotations

from typing import Literal

from sassxlate.disasm.sass.tables.arithmetic.forms import HALVES, PT_FIXED, Src, alu, pd, ps, rd
from sassxlate.disasm.sass.tables.spec import (
    Fixed,
    I,
    Mod,
    P,
    R,
    Row,
    S,
    Select,
    bits,
    const,
    enum,
    flag,
    join,
)

_ONE = {"Rb": Src()}
_MASK = {"mask": I(bits(72, 4), elide=15)}

MOVES = [
    *alu("MOV", 0x002, "Rd, Rb, mask?", _ONE, forms=(1, 4, 5), layout="b", extra=_MASK,
         until=110),
    *alu("MOV", 0x002, "Rd, Rb, mask?", _ONE, forms=(6,), layout="b", extra=_MASK, until=90),
    *alu("MOV", 0x002, "Rd, Rb, mask?", _ONE, forms=(6,), layout="b", extra=_MASK,
         mods=(flag("SPILL", 88),), since=100, until=110),
    *alu("MOV", 0x002, "Rd, Rb, mask?", _ONE, forms=(4,), layout="b", extra=_MASK, since=120),
    *alu("MOV", 0x002, "Rd, Rb, mask?:!kind", {"Rb": Src("kind")}, forms=(1,), layout="b",
         mods=(Mod("kind", bits(80), {0: "", 1: "64"}, {1: 2}),),
         dst={"Rd": rd(width="kind")}, extra=_MASK, since=120, free=(bits(88),)),
    *alu("MOV", 0x002, "Rd, Rb, mask?:!kind", {"Rb": Src("kind")}, forms=(6,), layout="b",
         mods=(Mod("kind", join((80, 1), (88, 1)), {0: "", 1: "64", 2: "SPILL"}, {1: 2}),),
         dst={"Rd": rd(width="kind")}, extra=_MASK, since=120),
    Row("MOV", 0x402, {"Rd": rd(width=2), "Rb": I(bits(24, 64), bits=64),
                       "mask": Fixed("int", 15)},
        "Rd, Rb", (const("64"),), since=120),
    # UMOV from an immediate lacks bit 91, unlike other uniform instructions.
    Row("UMOV", 0x882, {"Rd": rd(file="UR"), "Rb": I(bits(32, 32))}, "Rd, Rb", guard="UP"),
    Row("UMOV", 0x1C82, {"Rd": rd(file="UR"), "Rb": R(32, 1, "UR")}, "Rd, Rb", guard="UP",
        until=110),
    Row("UMOV", 0x1C82, {"Rd": rd(width="size", file="UR"), "Rb": R(32, "size", "UR")}, "Rd, Rb",
        (enum("size", 80, 1, "_ 64", {"64": 2}),), guard="UP", since=120),
    Row("UMOV", 0x1482, {"Rd": rd(width=2, file="UR"), "Rb": I(bits(24, 64), bits=64)}, "Rd, Rb",
        (const("64"),), guard="UP", since=120),
    Row("S2R", 0x919, {"Rd": rd(), "sr": S()}, "Rd, sr"),
    Row("S2UR", 0x9C3, {"Rd": rd(file="UR"), "sr": S()}, "Rd, sr", guard="UP"),
    Row("CS2R", 0x805, {"Rd": rd(width="size"), "sr": S()}, "Rd, sr",
        (enum("size", 80, 1, "32 _", {"_": 2}),)),
    Row("CS2UR", 0x8CB, {"Rd": rd(width="size", file="UR"), "sr": S()}, "Rd, sr",
        (enum("size", 80, 1, "32 _", {"_": 2}),), guard="UP", since=120),
    Row("R2UR", 0x3C2, {"Rd": rd(file="UR"), "Pu": pd(), "Ra": R(24)}, "Pu:OR, Pu?:!OR, Rd, Ra",
        (flag("OR", 84),), until=89),
    Row("R2UR", 0x2CA, {"Rd": rd(file="UR"), "Pu": pd(), "Ra": R(24, reuse=122)},
        "Pu:OR, Pu?:!OR, Rd, Ra", (flag("OR", 84),), since=90, until=90),
    Row("R2UR", 0x2CA, {"Rd": rd(file="UR"), "Pu": pd(), "Ra": R(24, reuse=122)},
        "Pu:OR, Pu?:!OR, Rd, Ra",
        (flag("OR", 84), flag("BROADCAST", 87), flag("FILL", 86)), since=100),
]  # fmt: skip

_LOGIC = {"Ra": Src(), "Rb": Src(), "Rc": Src()}
_LUT = I(bits(72, 8))
_SHIFT_TYPE = enum("type", 73, 2, "S64 U64 S32 U32")
_SHIFT_MODS = (enum("direction", 76, 1, "L R"), flag("W", 75), _SHIFT_TYPE, flag("HI", 80))
_PRMT_MODE = enum("mode", 72, 3, "_ F4E B4E RC8 ECL ECR RC16 -")
_SIGN = Mod("U32", bits(73), {0: "U32", 1: ""})

LOGIC = [
    *alu("LOP3", 0x012, "Pu?, Rd, Ra, Rb, Rc, lut, Pp", _LOGIC, forms=(1, 4, 5, 6),
         mods=(const("LUT"), flag("PAND", 80)),
         extra={"Pu": pd(), "lut": _LUT, "Pp": ps(false=True)}),
    *alu("ULOP3", 0x092, "Pu?, Rd, Ra, Rb, Rc, lut, Pp", _LOGIC, forms=(1, 4), uniform=True,
         mods=(const("LUT"), flag("PAND", 80)),
         extra={"Pu": pd(file="UP"), "lut": _LUT, "Pp": ps(file="UP", false=True)}),
    *(row for mods, since, until in (
        (_SHIFT_MODS, 75, 90), ((flag("XOR", 77), *_SHIFT_MODS), 100, 103), (_SHIFT_MODS, 110, 999),
    ) for row in alu("SHF", 0x019, "Rd, Ra, Rb, Rc", _LOGIC, forms=(1, 2, 3, 4, 5, 6, 7), mods=mods,
                     since=since, until=until)),
    *alu("USHF", 0x099, "Rd, Ra, Rb, Rc", _LOGIC, forms=(1, 2, 4), mods=_SHIFT_MODS,
         uniform=True),
    *alu("PRMT", 0x016, "Rd, Ra, Rb, Rc", _LOGIC, forms=(1, 2, 3, 4, 5, 6, 7),
         mods=(_PRMT_MODE,)),
    *alu("UPRMT", 0x096, "Rd, Ra, Rb, Rc", _LOGIC, forms=(1, 4), uniform=True),
    *alu("SGXT", 0x01A, "Rd, Ra, Rb", {"Ra": Src(), "Rb": Src()}, forms=(1, 4, 5, 6),
         layout="ab", mods=(flag("W", 75), _SIGN)),
    *alu("USGXT", 0x09A, "Rd, Ra, Rb", {"Ra": Src(), "Rb": Src()}, forms=(1, 4), layout="ab",
         mods=(flag("W", 75), _SIGN), uniform=True),
    *alu("BMSK", 0x01B, "Rd, Ra, Rb", {"Ra": Src(), "Rb": Src()}, forms=(1, 4, 5, 6),
         layout="ab", mods=(flag("W", 75),)),
    *alu("UBMSK", 0x09B, "Rd, Ra, Rb", {"Ra": Src(), "Rb": Src()}, forms=(1, 4), layout="ab",
         mods=(flag("W", 75),), uniform=True),
]  # fmt: skip

_LUT1 = I(join((64, 3), (72, 5)))
_LUT2 = I(bits(16, 8))
_BYTE = enum("byte", 76, 2, "_ B1 B2 B3")
_BYTE_OF = Select(bits(76, 2), {0: "", 1: "B1", 2: "B2", 3: "B3"})

_P2R_STYLES: tuple[tuple[int, int, Literal["hex", "shex"]], ...] = (
    (75, 89, "shex"), (90, 999, "hex"),
)  # fmt: skip

PREDICATES = [
    Row("PLOP3", 0x81C,
        {"Pu": pd(81), "Pv": pd(84), "Pp": ps(87), "Pq": ps(77), "Pr": ps(68),
         "lut": _LUT1, "lut2": _LUT2},
        "Pu, Pv, Pp, Pq, Pr, lut, lut2", (const("LUT"),), fixed=((bits(67), 0),)),
    Row("PLOP3", 0x81C,
        {"Pu": pd(81), "Pv": pd(84), "Pp": ps(87), "Pq": ps(77), "Pr": ps(68, file="UP"),
         "lut": _LUT1, "lut2": _LUT2},
        "Pu, Pv, Pp, Pq, Pr, lut, lut2", (const("LUT"),), fixed=((bits(67), 1),)),
    Row("UPLOP3", 0x89C,
        {"Pu": pd(81, "UP"), "Pv": pd(84, "UP"), "Pp": ps(87, file="UP"),
         "Pq": ps(77, file="UP"), "Pr": ps(68, file="UP"), "lut": _LUT1, "lut2": _LUT2},
        "Pu, Pv, Pp, Pq, Pr, lut, lut2", (const("LUT"),), guard="UP"),
    # PLOP3 over the signs of three registers.
    Row("PLOP3", 0x21F,
        {"Pu": pd(81), "Pv": pd(84), "Pp": R(24, suffix="SIGN", reuse=122),
         "Pq": R(32, suffix="SIGN", reuse=123), "Pr": R(64, suffix="SIGN", reuse=124),
         "lut": I(bits(72, 8)), "lut2": _LUT2},
        "Pu, Pv, Pp, Pq, Pr, lut, lut2", (const("LUT"),)),
    *(Row("P2R", 0x803,
          {"Rd": rd(), "Ra": R(24, reuse=122), "mask": I(bits(32, 32), style=style)},
          "Rd, 'PR', Ra, mask", (_BYTE,), since, until, effect="p2r")
      for since, until, style in _P2R_STYLES),
    Row("R2P", 0x804, {"Ra": R(24, reuse=122, select=_BYTE_OF), "mask": I(bits(32, 32), elide=255)},
        "'PR', Ra, mask?", effect="r2p"),
    Row("UP2UR", 0x1883, {"Rd": rd(file="UR"), "Ra": R(24, 1, "UR"), "mask": I(bits(32, 32))},
        "Rd, 'UPR', Ra, mask", (_BYTE,), effect="up2ur", guard="UP"),
    Row("UR2UP", 0x1884,
        {"Ra": R(24, 1, "UR", select=_BYTE_OF), "mask": I(bits(32, 32), elide=0xFF)},
        "'UPR', Ra, mask?", effect="ur2up", guard="UP"),
]  # fmt: skip

_VOTE = enum("mode", 72, 2, "ALL ANY EQ -")
_VABS = {"Ra": Src(), "Rb": Src(), "Rc": Src()}

WARP = [
    Row("VOTE", 0x806, {"Rd": rd(), "Pu": pd(81), "Pp": ps(87)}, "Rd?, Pu, Pp", (_VOTE,)),
    Row("VOTEU", 0x886, {"Rd": rd(file="UR"), "Pu": pd(81, "UP"), "Pp": ps(87)}, "Rd?, Pu, Pp",
        (_VOTE,)),
    *alu("VABSDIFF", 0x014, "Rd, Pu?, Ra, Rb, Rc", _VABS, forms=(1, 2, 3, 4, 5, 6, 7),
         mods=(enum("type", 73, 1, "U32 _"),), extra={"Pu": pd(81)}, until=110),
    *alu("VABSDIFF4", 0x015, "Rd, Pu?, Ra, Rb, Rc", _VABS, forms=(1, 2, 3, 4, 5, 6, 7),
         mods=(enum("type", 73, 1, "U8 _"), flag("ACC", 75)), extra={"Pu": pd(81)}, until=110),
]  # fmt: skip

ROWS: list[Row] = [*MOVES, *LOGIC, *PREDICATES, *WARP]
__all__ = ["HALVES", "PT_FIXED", "ROWS", "P"]

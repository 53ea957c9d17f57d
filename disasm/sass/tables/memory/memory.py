"""Loads, stores, atomics, constants, cache control, asynchronous copies."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import PT_FIXED, pd, ps, rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    C,
    Fixed,
    I,
    M,
    Mod,
    Operand,
    P,
    R,
    Row,
    bits,
    const,
    enum,
    flag,
    join,
)

_WIDTHS = {"64": 2, "128": 4}
SIZE = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 128 -", _WIDTHS)
SIZE_75 = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 128 U.128", {**_WIDTHS, "U.128": 4})
E = flag("E", 72)
EVICT = enum("evict", 84, 3, "EF _ EL LU EU NA - -")
PREFETCH = enum("prefetch", 68, 2, "_ LTC64B LTC128B LTC256B")

# Memory order and scope.  sm_75 has a scope (77-78) and an order (79-80); later architectures
# one field of sixteen values.
_SCOPES = ("CTA", "SM", "GPU", "SYS")
_STRONG: Mapping[int, str] = {
    0: "", 1: "CONSTANT.PRIVATE", 2: "CONSTANT.CTA", 3: "CONSTANT.CTA.PRIVATE", 4: "CONSTANT",
    5: "STRONG.SM", 6: "STRONG.GPU.PRIVATE", 7: "STRONG.GPU", 8: "MMIO.GPU", 9: "CONSTANT.SM",
    10: "STRONG.SYS", 11: "CONSTANT.SM.PRIVATE", 12: "MMIO.SYS", 13: "CONSTANT.VC",
    14: "CONSTANT.VC.PRIVATE", 15: "CONSTANT.GPU",
}  # fmt: skip
_STRONG_ST = {**_STRONG, 4: "STRONG.SM.PRIVATE"}
_ORDERED = {13: "SYS.ORDERED", 14: "STRONG.SYS.ORDERED", 15: "MMIO.SYS.ORDERED"}  # STG, sm_100
COPIED: Mapping[int, str] = {
    **_STRONG, 5: "MMIO.CTA", 6: "GPU.PRIVATE", 7: "MMIO.CTA.PRIVATE", 8: "MMIO.SM",
    10: "MMIO.VC", 12: "MMIO.GPU",
}  # fmt: skip


def _order75(orders: Mapping[int, str]) -> Mod:
    return Mod(
        "order",
        bits(77, 4),
        {s | o << 2: f"{n}.{_SCOPES[s]}" if n else _SCOPES[s]
         for o, n in orders.items() for s in range(4)},
    )  # fmt: skip


LD_75 = _order75({0: "CONSTANT", 1: "", 2: "STRONG", 3: "MMIO"})
ST_75 = _order75({1: "", 2: "STRONG", 3: "MMIO"})
AT_75 = _order75({1: "", 2: "STRONG"})
PRIVATE = flag("PRIVATE", 76)
LD_80 = Mod("order", bits(77, 4), _STRONG)
ST_80 = Mod("order", bits(77, 4), _STRONG_ST)
STG_100 = Mod("order", bits(77, 4), {**_STRONG_ST, **_ORDERED})


def _loads() -> list[Row]:
    rows: list[Row] = []
    for mnemonic, base, offset in (("LDG", 0x381, (40, 24)), ("LD", 0x980, (32, 32))):
        extra: dict[str, Operand] = {"Rd": rd(width="size"), "Pp": P(64, 67, flip=7)}
        if mnemonic == "LDG":
            extra["Pu"] = pd(81)
            text = "Pu?, Rd, mem, Pp?"
        else:
            extra["Pu"] = PT_FIXED
            text = "Rd, mem, Pp?"
        free = () if mnemonic == "LDG" else (bits(81, 3),)
        mem = M(offset=bits(*offset), wide=72)
        umem = M(offset=bits(*offset), ureg=32, wide=72, uwide=90)
        if mnemonic == "LD":
            # LD with a uniform register has LDG's layout.
            umem = M(offset=bits(40, 24), ureg=32, wide=72, uwide=90, narrow_rz=True)
        mods75 = (E, EVICT, PREFETCH, SIZE_75, LD_75, PRIVATE)
        mods80 = (E, EVICT, PREFETCH, SIZE, LD_80)
        op = base
        uop = (0x981 if mnemonic == "LDG" else 0x980) | 0x1000
        rows += [
            *(
                Row(
                    mnemonic,
                    opcode,
                    {**extra, "mem": where, "Pu": pd(81)},
                    "Pu, Rd, mem, Pp?",
                    (*mods75, const("ZD")),
                    until=75,
                    fixed=((bits(87), 1),),
                )
                for opcode, where in ((op, mem), (uop, umem))
            ),
            Row(mnemonic, op, {**extra, "mem": mem}, text, mods75, until=75, free=free),
            Row(mnemonic, uop, {**extra, "mem": umem}, text, (E, *mods75[1:]), until=75, free=free),
            Row(mnemonic, op, {**extra, "mem": mem}, text, mods80, since=80, free=free),
            *_desc(mnemonic, uop, extra, text, (E, *mods80[1:]), 32, free),
        ]
    return rows


def _desc(
    mnemonic: str,
    opcode: int,
    operands: Mapping[str, Operand],
    text: str,
    mods: tuple[Mod, ...],
    ureg: int,
    free: tuple[Bits, ...] = (),
    desc: int = 76,
    desc_100: int | None = None,
    ureg_100: int | None = None,
    wide: int = 90,
) -> list[Row]:
    """The rows with a uniform register or a descriptor, sm_80 and later."""
    later = ureg_100 if ureg_100 is not None else ureg
    flag_100 = desc_100 if desc_100 is not None else desc
    offset = bits(40, 24)

    def row(mem: M, since: int, until: int) -> Row:
        return Row(
            mnemonic, opcode, {**operands, "mem": mem}, text, mods, since, until,
            free=free,
        )  # fmt: skip

    return [
        row(M(offset=offset, ureg=ureg, wide=72, uwide=wide, desc=desc, desc_low=True,
              desc_shown=101), 80, 89),
        row(M(offset=offset, ureg=ureg, wide=72, uwide=wide, desc=desc), 90, 90),
        row(M(offset=offset, ureg=later, wide=72, uwide=wide, desc=flag_100), 100, 999),
    ]  # fmt: skip


def _stores() -> list[Row]:
    rows: list[Row] = []
    mods75 = (E, EVICT, SIZE_75, ST_75, PRIVATE)
    mods80 = (E, EVICT, SIZE, ST_80)
    data32: dict[str, Operand] = {"Rb": R(32, "size", reuse=123)}
    data64: dict[str, Operand] = {"Rb": R(64, "size", reuse=124)}
    plain_g = M(offset=bits(40, 24), wide=72)
    plain = M(offset=bits(32, 32), wide=72)
    umem75 = M(offset=bits(40, 24), ureg=64, wide=72, uwide=90)
    mods100 = (E, EVICT, SIZE, STG_100)
    for since, until, mods, modsg in (
        (75, 75, mods75, mods75), (80, 90, mods80, mods80), (100, 999, mods80, mods100),
    ):  # fmt: skip
        rows += [
            Row("STG", 0x386, {"mem": plain_g, **data32}, "mem, Rb", modsg, since, until),
            Row("ST", 0x385, {"mem": plain, **data64}, "mem, Rb", mods, since, until),
        ]
    for mnemonic, opcode, late in (("STG", 0x1986, mods100), ("ST", 0x1985, mods80)):
        rows += [
            Row(mnemonic, opcode, {"mem": umem75, **data32}, "mem, Rb", (E, *mods75[1:]), 75, 75),
            *(row for row in _desc(mnemonic, opcode, data32, "mem, Rb", (E, *mods80[1:]), 64)
              if row.since < 100),
            *(row for row in _desc(mnemonic, opcode, data32, "mem, Rb", (E, *late[1:]), 64)
              if row.since >= 100),
        ]  # fmt: skip
    return rows


_SCALE = bits(78, 2)


def _shared_local() -> list[Row]:
    rows: list[Row] = []
    unsigned = flag("U", 76)
    local = M(offset=bits(40, 24))
    descriptors: tuple[tuple[int, int, int | None, int | None], ...] = (
        (75, 75, None, None), (80, 89, 76, 101), (90, 999, 76, None),
    )  # fmt: skip
    shared = M(offset=bits(40, 24), scale=_SCALE)
    ushared = M(offset=bits(40, 24), ureg=32, scale=_SCALE)
    rows += [
        Row("LDL", 0x983, {"Rd": rd(width="size"), "mem": local}, "Rd, mem", (EVICT, SIZE)),
        *(Row("LDL", 0x1983,
              {"Rd": rd(width="size"), "mem": M(offset=bits(40, 24), ureg=32, desc=desc,
                                              desc_low=low is not None, desc_shown=low)},
              "Rd, mem", (EVICT, SIZE), since, until) for since, until, desc, low in descriptors),
        Row("STL", 0x387, {"mem": local, "Rb": R(32, "size", reuse=123)}, "mem, Rb",
            (EVICT, SIZE)),
        *(Row("STL", 0x1987, {"mem": M(offset=bits(40, 24), ureg=64, desc=desc,
                                       desc_low=low is not None, desc_shown=low),
                              "Rb": R(32, "size", reuse=123)}, "mem, Rb", (EVICT, SIZE), since,
              until) for since, until, desc, low in descriptors),
        *(Row("LDS", opcode, {"Pu": pd(81), "Rd": rd(width="size"), "mem": mem}, "Pu, Rd, mem",
              (unsigned, SIZE, const("ZD")), until=75, fixed=((bits(87), 1),))
          for opcode, mem in ((0x984, shared), (0x1984, ushared))),
        Row("LDS", 0x984, {"Rd": rd(width="size"), "mem": shared}, "Rd, mem", (unsigned, SIZE),
            until=75),
        Row("LDS", 0x1984, {"Rd": rd(width="size"), "mem": ushared}, "Rd, mem", (unsigned, SIZE),
            until=75),
        Row("LDS", 0x984, {"Rd": rd(width="size"), "mem": shared}, "Rd, mem", (SIZE,), since=80),
        Row("LDS", 0x1984, {"Rd": rd(width="size"), "mem": ushared}, "Rd, mem", (SIZE,),
            since=80),
        Row("STS", 0x388, {"mem": shared, "Rb": R(32, "size", reuse=123)}, "mem, Rb", (SIZE,)),
        Row("STS", 0x1988, {"mem": M(offset=bits(40, 24), ureg=64, scale=_SCALE),
                            "Rb": R(32, "size", reuse=123)}, "mem, Rb", (SIZE,)),
    ]  # fmt: skip
    return rows


_COUNT = enum("count", 72, 2, "_ 2 4 -", {"2": 2, "4": 4})
_SHAPE = enum("shape", 78, 2, "M88 MT88 M816 M832")
_SHAPE_100 = enum("shape", 78, 3, "M88 MT88 M816 M832 MT1616 - - -")
_ELEMENT_100 = Mod("element", bits(75, 3), {0: "16", 5: "U4x16P64TO8", 6: "U6x16P32TO8", 7: "8"})
_STORED = Mod("shape", bits(78), {0: "M88", 1: "MT88"})
_STORED_100 = enum("shape", 78, 2, "M88 MT88 MT168 -")
MATRIX = [
    *(Row("LDSM", opcode, {"Rd": rd(width="count"), "mem": M(offset=bits(40, 24), ureg=ureg)},
          "Rd, mem", (element, shape, _COUNT), since, until)
      for opcode, ureg in ((0x83B, None), (0x183B, 32))
      for element, shape, since, until in (
          (const("16"), _SHAPE, 75, 90), (_ELEMENT_100, _SHAPE_100, 100, 999),
      )),
    *(Row("STSM", opcode, {"mem": M(offset=bits(40, 24), ureg=ureg), "Rb": R(32, "count")},
          "mem, Rb", (element, shape, _COUNT), since, until)
      for opcode, ureg in ((0x844, None), (0x1844, 64))
      for element, shape, since, until in (
          (const("16"), _STORED, 90, 90),
          (Mod("element", bits(75), {0: "16", 1: "8"}), _STORED_100, 100, 999),
      )),
]  # fmt: skip

_BYTES = bits(38, 16)
_CONST_MODE = enum("mode", 78, 2, "_ IL IS ISL")
_LDC_SIZE = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 - -", _WIDTHS)
CONSTANTS = [
    Row("LDC", 0xB82,
        {"Rd": rd(width="size"), "src": C("size", index=24, offset=_BYTES, scale=1)},
        "Rd, src", (_LDC_SIZE, _CONST_MODE)),
    Row("ULDC", 0xAB9,
        {"Rd": rd(width="size", file="UR"), "src": C("size", offset=_BYTES, scale=1)},
        "Rd, src", (_LDC_SIZE,), guard="UP", until=90),
    Row("ULDC", 0x1AB9,
        {"Rd": rd(width="size", file="UR"), "src": C("size", offset=_BYTES, scale=1, bindless=24)},
        "Rd, src", (_LDC_SIZE,), guard="UP", until=90),
    Row("ULDC", 0x1ABB,
        {"Rd": rd(width="size", file="UR"),
         "src": C("size", index=24, index_file="UR", offset=_BYTES, scale=1)},
        "Rd, src", (_LDC_SIZE,), guard="UP", until=90),
    Row("LDCU", 0x17AC,
        {"Rd": rd(width="size", file="UR"),
         "src": C("size", offset=bits(37, 17), scale=1, index=24, index_file="UR")},
        "Rd, src", (SIZE, enum("unpack", 80, 2, "_ TEXUNPACK HDRUNPACK -")), guard="UP",
        since=120),
    Row("LDCU", 0x17AC,
        {"Rd": rd(width="size", file="UR"),
         "src": C("size", offset=bits(37, 17), scale=1, index=24, index_file="UR")},
        "Rd, src", (SIZE, flag("TEXUNPACK", 80)), guard="UP", since=100, until=110),
]  # fmt: skip

# ---- atomics

_AT_OP = enum("op", 87, 4, "ADD MIN MAX INC DEC AND OR XOR EXCH - - - - - - -")
_ATG_OP = enum("op", 87, 4, "ADD MIN MAX INC DEC AND OR XOR EXCH SAFEADD - - - - - -")
_RED_OP = enum("op", 87, 3, "ADD MIN MAX INC DEC AND OR XOR")
_AT_TYPE_W = {"64": 2, "S64": 2, "F64.RN": 2}
_AT_TYPE_75 = enum("type", 73, 3, "_ S32 64 F32.FTZ.RN F16x2.RN S64 F64.RN -", _AT_TYPE_W)
_AT_TYPE_90 = enum("type", 73, 3, "_ S32 64 S64 128 - - -", {"64": 2, "S64": 2, "128": 4})
_RED_TYPE_90 = enum("type", 73, 3, "_ S32 64 S64 - - - -", {"64": 2, "S64": 2})
_CAS_TYPE = enum("type", 73, 2, "_ S32 64 -", {"64": 2})
_CAS_TYPE_90 = enum("type", 73, 3, "_ S32 64 - 128 - - -", {"64": 2, "128": 4})
_FLOAT_NAMES = (
    "F16x2.RN F16x4.RN F16x8.RN BF16x2.RN BF16x4.RN BF16x8.RN - - - "
    "F32.FTZ.RN F32x2.FTZ.RN F32x4.FTZ.RN F32.RN F32x2.RN F32x4.RN F64.RN"
)
_AT_FLOAT = enum("type", 73, 4, _FLOAT_NAMES, {
    "F16x4.RN": 2, "F16x8.RN": 4, "BF16x4.RN": 2, "BF16x8.RN": 4, "F32x2.FTZ.RN": 2,
    "F32x4.FTZ.RN": 4, "F32x2.RN": 2, "F32x4.RN": 4, "F64.RN": 2,
})  # fmt: skip
_FLOAT_OP = enum("op", 88, 2, "ADD MIN MAX -")
_NO_RC = (bits(64, 8),)
_SPIN = Mod("op", bits(87, 2), {0: "CAS", 1: "CAST", 2: "CAS", 3: "CAST.SPIN"})


def _atomics() -> list[Row]:
    rows: list[Row] = []
    dst: dict[str, Operand] = {"Rd": rd(width="type"), "Pu": pd(81)}
    data: dict[str, Operand] = {"Rb": R(32, "type", reuse=123), "Rc": Fixed("R", 255)}
    swap: dict[str, Operand] = {"Rb": R(32, "type", reuse=123), "Rc": R(64, "type", reuse=124)}
    mem = M(offset=bits(40, 24), wide=72)
    text = "Pu, Rd, mem, Rb"
    swap_text = "Pu, Rd, mem, Rb, Rc"
    umem75 = M(offset=bits(40, 24), ureg=64, wide=72, uwide=70)
    for since, until, types, order, private in (
        (75, 75, _AT_TYPE_75, AT_75, (PRIVATE,)),
        (80, 89, _AT_TYPE_75, ST_80, ()),
        (90, 999, _AT_TYPE_90, ST_80, ()),
    ):
        mods = (E, _AT_OP, EVICT, types, order, *private)
        red = (E, _RED_OP, EVICT, types, order, *private)
        swapped = _CAS_TYPE_90 if since >= 90 else _CAS_TYPE
        cas = (E, _SPIN, EVICT, swapped, order, *private)
        casg = (E, const("CAS"), EVICT, swapped, order, *private)
        zeros, ones = ((), _NO_RC) if since == 75 else (_NO_RC, ())
        rows += [
            Row("ATOM", 0x38A, {**dst, "mem": mem, **data}, text, mods, since, until, free=zeros,
                ones=ones),
            Row("ATOMG", 0x3A8, {**dst, "mem": mem, **data}, text,
                (E, _ATG_OP, *mods[2:]), since, until, free=zeros, ones=ones),
            Row("ATOM", 0x38B, {**dst, "mem": mem, **swap}, swap_text, cas, since, until),
            Row("ATOMG", 0x3A9, {**dst, "mem": mem, **swap}, swap_text, casg, since, until),
            Row("RED" if since < 90 else "REDG", 0x98E, {"mem": mem, "Rb": data["Rb"]},
                "mem, Rb", red, since, until),
        ]  # fmt: skip
        for mnemonic, opcode in (("ATOM", 0x198A), ("ATOMG", 0x19A8)):
            if since == 75:
                rows.append(
                    Row(mnemonic, opcode, {**dst, "mem": umem75, **data}, text, mods, 75, 75)
                )
        if since == 75:
            rows.append(
                Row(
                    "RED",
                    0x198E,
                    {"mem": M(offset=bits(40, 24), ureg=64, wide=72, uwide=90), "Rb": data["Rb"]},
                    "mem, Rb",
                    red,
                    75,
                    75,
                )
            )
    # With a descriptor the 64-bit address has no bit of its own up to sm_90: 71 is the descriptor.
    for mnemonic, opcode, mods in (
        ("ATOM", 0x198A, (E, _AT_OP, EVICT)),
        ("ATOMG", 0x19A8, (E, _ATG_OP, EVICT)),
    ):
        rows += _atom_desc(mnemonic, opcode, {**dst, **data}, text, mods, _AT_TYPE_75, 80, 89)
        rows += _atom_desc(mnemonic, opcode, {**dst, **data}, text, mods, _AT_TYPE_90, 90, 999)
    float_data = {"Rb": data["Rb"]}
    floats = (_AT_FLOAT, ST_80)
    rows += [
        Row(
            "ATOM",
            0x3A2,
            {**dst, "mem": mem, **data},
            text,
            (E, _FLOAT_OP, EVICT, *floats),
            90,
            free=_NO_RC,
        ),
        Row(
            "ATOMG",
            0x3A3,
            {**dst, "mem": mem, **data},
            text,
            (E, _FLOAT_OP, EVICT, *floats),
            90,
            free=_NO_RC,
        ),
        Row(
            "REDG", 0x9A6, {"mem": mem, **float_data}, "mem, Rb", (E, _FLOAT_OP, EVICT, *floats), 90
        ),
    ]
    for mnemonic, opcode in (("ATOM", 0x19A2), ("ATOMG", 0x19A3)):
        rows += _atom_desc(mnemonic, opcode, {**dst, **data}, text, (E, _FLOAT_OP, EVICT),
                           _AT_FLOAT, 90, 999)  # fmt: skip
    red_data: dict[str, Operand] = {"Rb": data["Rb"]}
    rows += _atom_desc("RED", 0x198E, red_data, "mem, Rb", (E, _RED_OP, EVICT), _AT_TYPE_75,
                       80, 89, 90)  # fmt: skip
    rows += _atom_desc("REDG", 0x198E, red_data, "mem, Rb", (E, _RED_OP, EVICT), _RED_TYPE_90,
                       90, 999, 90)  # fmt: skip
    rows += _atom_desc("REDG", 0x19A6, red_data, "mem, Rb", (E, _FLOAT_OP, EVICT), _AT_FLOAT,
                       90, 999, 90)  # fmt: skip
    return rows


def _atom_desc(
    mnemonic: str,
    opcode: int,
    operands: Mapping[str, Operand],
    text: str,
    mods: tuple[Mod, ...],
    types: Mod,
    since: int,
    until: int,
    wide: int | None = None,
) -> list[Row]:
    rows: list[Row] = []
    for first, last in ((80, 89), (90, 90), (100, 999)):
        if last < since or first > until:
            continue
        if first < 100:
            desc, uwide = 71, 70
        else:
            desc, uwide = (90 if types is _AT_FLOAT else 76), 63
        if wide is not None:
            desc, uwide = (71 if first < 100 else 81), wide
        mem = M(
            offset=bits(40, 23 if uwide == 63 else 24), ureg=64, wide=72, uwide=uwide, desc=desc,
            desc_low=first == 80, desc_shown=101 if first == 80 else None,
        )  # fmt: skip
        rows.append(
            Row(mnemonic, opcode, {**operands, "mem": mem}, text, (*mods, types, ST_80), first,
                last)
        )  # fmt: skip
    return rows


_ATS_TYPE = enum("type", 73, 2, "_ S32 64 -", {"64": 2})
_ATS_TYPE_90 = enum("type", 73, 3, "_ S32 64 - 128 - - -", {"64": 2, "128": 4})
_ATS_OP = enum("op", 87, 4, "ADD MIN MAX INC DEC AND OR XOR EXCH - - - - - - -")


def _shared_atomics() -> list[Row]:
    rows: list[Row] = []
    mem = M(offset=bits(40, 24), scale=_SCALE)
    umem = M(offset=bits(40, 24), ureg=64, scale=_SCALE)
    dst: dict[str, Operand] = {"Rd": rd(width="type"), "Pu": PT_FIXED}
    data: dict[str, Operand] = {"Rb": R(32, "type", reuse=123), "Rc": Fixed("R", 255)}
    swap: dict[str, Operand] = {"Rb": R(32, "type", reuse=123), "Rc": R(64, "type", reuse=124)}
    for since, until, types in ((75, 75, _ATS_TYPE), (80, 89, _ATS_TYPE), (90, 999, _ATS_TYPE_90)):
        zeros, ones = ((), _NO_RC) if since == 75 else (_NO_RC, ())
        rows += [
            Row("ATOMS", 0x38C, {**dst, "mem": mem, **data}, "Rd, mem, Rb", (_ATS_OP, types),
                since, until, free=zeros, ones=ones),
            Row("ATOMS", 0x198C, {**dst, "mem": umem, **data}, "Rd, mem, Rb", (_ATS_OP, types),
                since, until),
            Row("ATOMS", 0x38D, {**dst, "mem": mem, **swap}, "Rd, mem, Rb, Rc", (_SPIN, types),
                since, until),
        ]  # fmt: skip
    # From sm_100 on the compare-and-swap loop's success is a predicate, not a register.
    rows += [
        Row("ATOMS", 0x58D, {"Pu": pd(81), "Rd": Fixed("R", 255), "mem": mem, **swap},
            "Pu, mem, Rb, Rc", (const(name), _ATS_TYPE_90), since=100,
            fixed=((bits(87, 2), code),))
        for code, name in ((1, "CAST"), (3, "CAST.SPIN"))
    ]  # fmt: skip
    for since, until, code in ((75, 89, 10), (90, 999, 11)):
        popc = const("POPC.INC.32")
        rows += [
            Row("ATOMS", opcode, {"Rd": rd(), "Pu": PT_FIXED, "mem": where}, "Rd, mem", (popc,),
                max(since, 80), until, fixed=((bits(87, 4), code),))
            for opcode, where in ((0x1F8C, umem),)
        ]  # fmt: skip
    # An arrival at a barrier in shared memory; its token, 64 bits, is the result.
    rows.append(
        Row("ATOMS", 0x1F8C, {"Rd": rd(width=2), "Pu": PT_FIXED, "mem": umem}, "Rd, mem",
            (const("ARRIVE.64"),), 80, 89, fixed=((bits(87, 4), 9), (bits(73, 2), 2)))
    )  # fmt: skip
    return rows


# ---- cache control and asynchronous copies

_CACHE_KIND = enum("cache", 78, 2, "_ U C I")
_CCTL_AT_75 = enum("op", 87, 4, "PF1 PF2 WB IV - RS - - - - - - - - - -")
_CCTL_AT = enum("op", 87, 4, "PF1 PF2 WB IV - RS - - - PML2 DML2 RML2 - - - -")
CACHE = [
    *(Row("CCTL", 0x98F, {}, "", (_CACHE_KIND, const(name)),
          fixed=((bits(87, 4), code), (bits(24, 8), 255)), free=(bits(32, 32),))
      for code, name in ((4, "IVALL"), (6, "IVALLP"), (7, "WBALL"), (8, "WBALLP"))),
    Row("CCTL", 0x98F, {"mem": M(offset=bits(32, 32), wide=72)}, "mem",
        (E, _CACHE_KIND, _CCTL_AT_75), until=75),
    Row("CCTL", 0x98F, {"mem": M(offset=bits(32, 32), wide=72)}, "mem",
        (E, _CACHE_KIND, _CCTL_AT), since=80),
    Row("CCTL", 0x1540, {"mem": M(base=None, ureg=24, offset=bits(32, 32), wide=91)}, "mem",
        (const("E.C.LDCU.IV"), flag("DEEP", 86)), since=100,
        fixed=((bits(78, 3), 2), (bits(87, 4), 3))),
    Row("LDGDEPBAR", 0x9AF, {}, "", since=80),
    Row("ERRBAR", 0x9AB, {}, ""),
    Row("CGAERRBAR", 0x5AB, {}, "", since=90),
    Row("QSPC", 0x3AA, {"Pu": pd(81), "Rd": rd(), "mem": M(offset=bits(40, 24), wide=72)},
        "Pu, Rd, mem", (E, enum("space", 73, 2, "G L S -")), until=89),
    Row("QSPC", 0x3AA, {"Pu": pd(81), "Rd": rd(), "mem": M(offset=bits(40, 24), wide=72)},
        "Pu, Rd, mem", (E, enum("space", 73, 2, "G L S D")), since=90),
    *(Row("QSPC", 0x19AA,
          {"Pu": pd(81), "Rd": rd(),
           "mem": M(offset=bits(40, 24), ureg=32, wide=72, uwide=90)},
          "Pu, Rd, mem", (E, enum("space", 73, 2, names)), since, until)
      for since, until, names in ((75, 89, "G L S -"), (90, 999, "G L S D"))),
]  # fmt: skip

# LDGSTS copies from global (``mem``) to shared memory (``dst``); its source address is 64 bits
# wide, and a false predicate makes it write zeros or skip.


_PAIR = 1  # a bit of the opcode that is always set: the uniform base is a pair beside .U32, too


def _ldgsts() -> list[Row]:
    rows: list[Row] = []
    to = M(base=16, offset=bits(44, 20))
    bypass = Mod("bypass", bits(81), {0: "BYPASS", 1: ""})
    order = Mod("order", bits(77, 4), COPIED)
    zfill = flag("ZFILL", 82)
    for since, until in ((80, 89), (90, 90), (100, 999)):
        later = since >= 100
        wide = 83 if later else 70
        mem = M(
            offset=bits(32, 12), ureg=64, wide=_PAIR, uwide=wide, desc=76, desc_low=since == 80,
            desc_shown=101 if since == 80 else None, hide_urz=True, show_rz=True,
        )  # fmt: skip
        size = enum("size", 73, 3, "- - - - _ 64 128 -")
        if later:
            size = enum("size", 74, 2, "_ 64 128 -")
        ltc = enum("prefetch", 72 if later else 71, 2, "_ LTC64B LTC128B LTC256B")
        rows.append(
            Row("LDGSTS", 0x1FAE, {"dst": to, "mem": mem, "Pp": P(87, 90)}, "dst, mem, Pp?",
                (const("E"), bypass, EVICT, ltc, size, zfill, order), since, until)
        )  # fmt: skip
        if not later:  # the uniform register belongs to the shared address
            rows.append(
                Row("LDGSTS", 0x1DAE,
                    {"dst": M(base=16, offset=bits(44, 20), ureg=64),
                     "mem": M(offset=bits(32, 12), wide=70, uwide=70), "Pp": P(87, 90)},
                    "dst, mem, Pp?", (const("E"), bypass, EVICT, ltc, size, zfill, order), since,
                    until)
            )  # fmt: skip
    return rows


ROWS: list[Row] = [
    *_loads(), *_stores(), *_shared_local(), *MATRIX, *CONSTANTS, *_atomics(),
    *_shared_atomics(), *CACHE, *_ldgsts(),
]  # fmt: skip
__all__ = ["ROWS", "I", "join", "ps"]

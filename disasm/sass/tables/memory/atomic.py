"""Encoding rows of atomics on global, generic and shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import PT_FIXED, pd, rd
from sassxlate.disasm.sass.tables.memory.modifiers import AT_75, EVICT, PRIVATE, SCALE, ST_80, E
from sassxlate.disasm.sass.tables.spec import (
    Fixed,
    M,
    Mod,
    Operand,
    R,
    Row,
    bits,
    const,
    enum,
)

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


def atomics() -> list[Row]:
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
    # By a generic address, on sm_80 to sm_89: an arrival at a barrier, whose token, 64 bits, is the
    # result, and an increment by each lane.
    plain = M(offset=bits(40, 24), ureg=64, wide=72, uwide=70)
    rows += [
        Row("ATOM", 0x1F8A, {"Rd": rd(width=width), "Pu": pd(81), "mem": plain}, "Pu, Rd, mem",
            (Mod("E", bits(72), {1: "E"}), const(name), EVICT, const(size), ST_80), 80, 89,
            fixed=((bits(87, 4), code), (bits(73, 4), kind)))
        for name, size, width, code, kind in (
            ("ARRIVE", "64", 2, 9, 2),
            ("POPC.INC", "32", 1, 10, 0),
        )
    ]  # fmt: skip
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


def shared_atomics() -> list[Row]:
    rows: list[Row] = []
    mem = M(offset=bits(40, 24), scale=SCALE)
    umem = M(offset=bits(40, 24), ureg=64, scale=SCALE)
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

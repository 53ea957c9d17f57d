"""Loads, stores, constants, cache control, asynchronous copies; the rows of memory."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import PT_FIXED, pd, ps, rd
from sassxlate.disasm.sass.tables.memory.atomic import atomics, shared_atomics
from sassxlate.disasm.sass.tables.memory.modifiers import (
    COPIED,
    EVICT,
    LD_75,
    LD_80,
    PREFETCH,
    PRIVATE,
    SCALE,
    SIZE,
    SIZE_75,
    ST_75,
    ST_80,
    STG_100,
    WIDTHS,
    E,
)
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    C,
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


def _shared_local() -> list[Row]:
    rows: list[Row] = []
    unsigned = flag("U", 76)
    local = M(offset=bits(40, 24))
    descriptors: tuple[tuple[int, int, int | None, int | None], ...] = (
        (75, 75, None, None), (80, 89, 76, 101), (90, 999, 76, None),
    )  # fmt: skip
    shared = M(offset=bits(40, 24), scale=SCALE)
    ushared = M(offset=bits(40, 24), ureg=32, scale=SCALE)
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
        Row("STS", 0x1988, {"mem": M(offset=bits(40, 24), ureg=64, scale=SCALE),
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
_LDC_SIZE = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 - -", WIDTHS)
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
    *_loads(), *_stores(), *_shared_local(), *MATRIX, *CONSTANTS, *atomics(),
    *shared_atomics(), *CACHE, *_ldgsts(),
]  # fmt: skip
__all__ = ["ROWS", "I", "join", "ps"]

"""Graphics: attributes of vertices and their interpolation, pixels, primitives, buffers."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import pd, ps, rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    C,
    Fixed,
    I,
    M,
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

_SIZE = enum("size", 74, 2, "_ 64 96 128", {"64": 2, "96": 3, "128": 4})
_O, _P = flag("O", 79), const("P")
_NONE = (bits(76, 2), 0)
_OF_PATCH = (bits(76, 2), 1)
_PHYSICAL = (bits(76, 2), 2)
_NO_INDEX = (bits(24, 8), 255)


def _attribute(base: int | None = None, ureg: int | None = None) -> M:
    """a[...]: a place in the memory of attributes."""
    plain = base is None and ureg is None
    return M(base=base, ureg=ureg, offset=bits(40, 10 if plain else 11), signed=not plain,
             space="a")  # fmt: skip


def _attributes() -> list[Row]:
    """Loads and stores: of this thread, of the patch, or at a physical address.

    The last operand chooses a vertex of the primitive.
    """
    rows: list[Row] = []
    data: dict[str, Operand] = {"Rd": rd(width="size")}
    stored: dict[str, Operand] = {"Rb": R(32, "size")}
    for opcode, opcode_st, mem, where in (
        (0x321, 0x322, _attribute(), (_NO_INDEX,)), (0x1521, 0x1522, _attribute(ureg=24), ()),
    ):  # fmt: skip
        rows += [
            Row("ALD", opcode, {**data, "mem": mem, "vertex": R(32)}, "Rd, mem, vertex?",
                (_O, _SIZE), fixed=(*where, _NONE)),
            Row("ALD", opcode, {**data, "mem": mem}, "Rd, mem", (_O, _P, _SIZE),
                fixed=(*where, _OF_PATCH, (bits(32, 8), 255))),
            Row("AST", opcode_st, {"mem": mem, **stored, "vertex": R(64)}, "mem, Rb, vertex?",
                (_SIZE,), fixed=(*where, _NONE)),
            Row("AST", opcode_st, {"mem": mem, **stored, "vertex": R(64)}, "mem, Rb, vertex?",
                (_P, _SIZE), fixed=(*where, _OF_PATCH)),
        ]  # fmt: skip
    at = _attribute(24)
    physical = M(offset=Bits(()), signed=False, space="a")
    rows += [
        Row("ALD", 0x321, {**data, "mem": at}, "Rd, mem", (_O, _P, _SIZE),
            fixed=(_OF_PATCH, (bits(32, 8), 255))),
        Row("ALD", 0x321, {**data, "mem": physical, "vertex": R(32)}, "Rd, mem, vertex?",
            (_O, const("PHYS"), _SIZE), fixed=(_PHYSICAL,)),
        Row("AST", 0x322, {"mem": at, **stored, "vertex": R(64)}, "mem, Rb, vertex?",
            (_P, _SIZE), fixed=(_OF_PATCH,)),
        Row("AST", 0x322, {"mem": physical, **stored, "vertex": R(64)}, "mem, Rb, vertex?",
            (const("PHYS"), _SIZE), fixed=(_PHYSICAL,)),
        Row("AL2P", 0x920, {"Rd": rd(), "Ra": R(24),
                            "offset": I(bits(40, 11), style="shex", signed=True)},
            "Rd, Ra, offset", (_O, _SIZE)),
        Row("AL2P", 0x920, {"Rd": rd(), "Ra": Fixed("R", 255), "offset": I(bits(40, 10))},
            "Rd, offset", (_O, _SIZE), fixed=(_NO_INDEX,)),
    ]  # fmt: skip
    return rows


_INTERPOLATION = enum("mode", 78, 2, "PASS CONSTANT STATE -")
_SAMPLE = enum("sample", 76, 2, "_ CENTROID - -")
_OFFSET = const("OFFSET")


def _interpolation() -> list[Row]:
    """IPA; an offset from the pixel's centre is a register, an immediate or a constant."""
    rows: list[Row] = []
    fixed = ((bits(76, 2), 2),)
    for mem, high in (
        (M(base=None, offset=bits(64, 8), signed=False, unit=4, space="a"), 0),
        (M(base=None, ureg=24, offset=bits(64, 8), signed=False, unit=4, space="a"), 0x1000),
    ):
        dst: dict[str, Operand] = {"Rd": rd(), "Pu": pd(81), "mem": mem}
        text = "Rd, Pu?, mem"
        sources: list[tuple[int, Operand, int]] = [
            (0x526 if high else 0x326, R(32), 999), (0x926, I(bits(32, 32)), 999),
        ]  # fmt: skip
        if not high:
            sources.append((0xB26, C(), 90))
        rows.append(Row("IPA", high | sources[0][0], dst, text, (_INTERPOLATION, _SAMPLE)))
        rows += [
            Row("IPA", high | opcode, {**dst, "offset": slot}, f"{text}, offset",
                (_INTERPOLATION, _OFFSET), until=until, fixed=fixed)
            for opcode, slot, until in sources
        ]  # fmt: skip
    return rows


_EMIT = (enum("op", 78, 2, "- EMIT - EMIT_THEN_CUT"),)
_PIXEL = enum("what", 78, 3, "_ COVMASK CENTROID_OFFSET MY_INDEX INNER_COVERAGE - - -")
_BUFFER_SIZE = enum("size", 74, 2, "_ U16 32 -")
_SKEW = flag("SKEW", 78)
_WHICH = enum("which", 76, 2, "_ PATCH PRIM ATTR")
_WRITTEN = enum("which", 76, 2, "_ - - ATTR")

# Four lanes of a quad: what is done to each, two letters for the two bits of a lane.
_SWIZZLES: Mapping[int, str] = {
    value: "".join(("PP", "PN", "NP", "ZP")[value >> at & 3] for at in (6, 4, 2, 0))
    for value in range(256)
}
_NDV = flag("NDV", 77)
_FSWZADD: dict[str, Operand] = {
    "Rd": rd(), "Ra": R(24), "Rb": R(64), "swizzle": N(bits(32, 8), _SWIZZLES),
}  # fmt: skip
_ROUND = enum("round", 78, 2, "_ RM RP RZ")
_FTZ = flag("FTZ", 80)


def _buffers() -> list[Row]:
    rows: list[Row] = []
    offset = M(offset=bits(40, 16), signed=False)
    plain: R | M = R(24, wrap="[{}]")
    for since, until, mem in ((75, 80, plain), (86, 999, offset)):
        rows.append(
            Row("ISBERD", 0x923, {"Rd": rd(), "mem": mem}, "Rd, mem",
                (_O, _WHICH, _SKEW, _BUFFER_SIZE), since, until)
        )  # fmt: skip
        if since == 75:
            since = 80
        rows.append(
            Row("ISBEWR", 0x927, {"mem": mem, "Rb": R(32)},
                "mem, Rb", (const("O"), _WRITTEN, _SKEW, _BUFFER_SIZE), since, until,
                fixed=((bits(79), 1),))
        )  # fmt: skip
    return rows


PRIMITIVES = [
    Row("OUT", 0x324, {"Rd": rd(), "Ra": R(24), "Rb": R(32)}, "Rd, Ra, Rb", _EMIT),
    Row("OUT", 0x324, {"Rd": rd(), "Ra": R(24), "Rb": R(32)}, "Rd, Ra, Rb", (const("CUT"),),
        fixed=((bits(78, 2), 2),)),
    Row("OUT", 0x324, {"Ra": R(24)}, "Ra", (const("FINAL"),),
        fixed=((bits(78, 2), 0), (bits(16, 8), 255), (bits(32, 8), 255))),
    Row("OUT", 0x924, {"Rd": rd(), "Ra": R(24), "Rb": I(bits(32, 32), style="shex")},
        "Rd, Ra, Rb", _EMIT),
    Row("OUT", 0x1D24, {"Rd": rd(), "Ra": R(24), "Rb": R(32, 1, "UR")}, "Rd, Ra, Rb", _EMIT),
    *_buffers(),
]  # fmt: skip

PIXELS = [
    Row("PIXLD", 0x925, {"Rd": rd(), "Pu": pd(81)}, "Rd, Pu?", (_PIXEL,)),
    Row("LDTRAM", 0x13AD,
        {"Rd": rd(width="part"),
         "mem": M(base=None, ureg=24, offset=bits(64, 8), signed=False, unit=4, space="a",
                  hide_urz=True)},
        "Rd, mem", (enum("part", 72, 1, "AB C", {"AB": 2}),)),
    Row("KILL", 0x95B, {"Pp": ps()}, "Pp?"),
    Row("FSWZADD", 0x822, _FSWZADD, "Rd, Ra, Rb, swizzle", (_FTZ, _ROUND, _NDV), until=110),
    Row("FSWZADD", 0x822, _FSWZADD, "Rd, Ra, Rb, swizzle",
        (_FTZ, _ROUND, flag("NDV", 77)), since=120, fixed=((bits(81), 0),)),
    Row("FSWZADD", 0x822, _FSWZADD, "Rd, Ra, Rb, swizzle",
        (_FTZ, _ROUND, const("DXY")), since=120, fixed=((join((77, 1), (81, 1)), 3),)),
    Row("CSMTEST", 0x80D,
        {"Pu": pd(81), "Pv": pd(84), "mask": I(bits(32, 28)), "Pp": ps()},
        "Pu, Pv, mask, Pp",
        (enum("of", 62, 2, "- R A RA"),
         enum("test", 76, 3, "F CSM_TA CSM_TR CSM_MX T FCSM_TA FCSM_TR FCSM_MX"),
         enum("bool", 74, 2, "AND OR XOR -"))),
]  # fmt: skip

ROWS: list[Row] = [*_attributes(), *_interpolation(), *PRIMITIVES, *PIXELS]

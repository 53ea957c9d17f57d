"""Textures: filtered, fetched and gathered reads, level of detail, queries, footprints.

A read returns up to four components: the first two of those in ``mask`` go to ``Rd`` and the
next register, the others to ``Rd2``.  ``Ra`` holds the coordinates, after the layer of an
array; ``Rb`` the other inputs, in this order: the handle (``.B``), the sample or the level of
detail, the offsets, the reference of a depth comparison.  ``.SCR`` packs both lists into as few
registers as an instruction with two operands of two can name.  Where the handle comes from is
the form: a constant, a bank that a uniform register describes, ``Rb``, or from sm_100 on a uniform
register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sassxlate.disasm.sass.tables.arithmetic.forms import pd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    Count,
    Fixed,
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

_NAMES = ("1D", "2D", "3D", "CUBE", "ARRAY_1D", "ARRAY_2D", "", "ARRAY_CUBE")
_COORDINATES = (1, 2, 3, 3, 2, 3, 0, 4)
_DIM = bits(61, 3)
_ARRAYS = (4, 5, 7)
_MASK = bits(72, 4)
_HALVES = bits(79, 2)
_MAX_PACKED = 4

_EVICT = enum("evict", 84, 3, "EF _ EL LU EU NA - -")
_F16 = enum("type", 79, 2, "_ F16.RN F16.RZ -")
_SCR, _B = flag("SCR", 60), flag("B", 59)
_NODEP = flag("NODEP", 90)
_DC = flag("DC", 78)
_LOD = enum("lod", 87, 3, "_ LZ LB LL LC LB.LC LC.FDV -")
_LODS_100 = ("", "LZ", "LB", "LL", "LC", "LB.LC")
_LODS_120 = (*_LODS_100, "ULB", "ULL", "ULC", "ULB.LC", "LB.ULC")
_LOD_100 = Mod("lod", join((59, 1), (87, 3)), dict(enumerate(_LODS_100)))
_LOD_120 = Mod("lod", _LOD_100.field, dict(enumerate(_LODS_120)))
_OFFSET = flag("AOFFI", 76)
_OFFSET_100 = Mod("offset", bits(56, 2), {0: "", 1: "AOFFI"})
_OFFSET_120 = Mod("offset", bits(56, 2), {0: "", 1: "AOFFI", 2: "UAOFFI"})
_UAI = flag("UAI", 58)  # the layer of an array is in a uniform register
_NDV = flag("NDV", 77)
_NDV_100 = enum("ndv", 76, 2, "_ NDV FDV -")
_NDV_120 = enum("ndv", 76, 2, "_ NDV - DXY")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a generation encodes the modifiers that lengthen the lists, and which of their values
    do.

    ``more`` are fields that add a register to ``Rb`` for some of their values, ``doubles`` those
    that add two, ``clamp`` a field that adds one to ``Ra`` unless there is a layer to share with.
    """

    more: Sequence[tuple[Bits, tuple[int, ...]]] = ()
    doubles: Sequence[tuple[Bits, tuple[int, ...]]] = ()
    clamp: Sequence[tuple[Bits, tuple[int, ...]]] = ()
    layer: Bits | None = None  # the bit that removes the layer from the list


@dataclass(frozen=True, slots=True)
class _Kind:
    """An instruction: its first opcode, dimensions, modifiers before and after the handle."""

    name: str
    base: int
    dims: tuple[int, ...]
    lead: tuple[Mod, ...]
    mods: Mapping[int, tuple[Mod, ...]]  # by the first generation
    places: Mapping[int, _Place] = field(default_factory=dict[int, _Place])
    packs: bool = True
    handle_in_a: bool = False
    derivatives: bool = False
    predicate: bool = True
    elides_b: bool = True


def _set(word: int, fields: Sequence[tuple[Bits, tuple[int, ...]]]) -> int:
    return sum(where.get(word) in values for where, values in fields)


def _packed(a: int, b: int, packs: bool) -> tuple[int, int]:
    """The register counts of both operands; one register is named even if it holds nothing."""
    total = a + b
    if packs and total > _MAX_PACKED:
        return 2, 1
    if packs:
        return min(2, max(1, total - 1)), 2 if total == _MAX_PACKED else 1
    return a, max(1, b)


def _widths(kind: _Kind, since: int, handle: bool | None) -> tuple[Count, Count]:
    """The register counts of ``Ra`` and of ``Rb``; if ``handle`` is None, bit 59 tells whether
    there is one."""
    place = kind.places[since]
    seen = _DIM.mask | (_SCR.field.mask if kind.packs else 0) | (1 << 59 if handle is None else 0)
    for where, _ in (*place.more, *place.doubles, *place.clamp):
        seen |= where.mask
    if place.layer is not None:
        seen |= place.layer.mask
    used = Bits(tuple((i, 1) for i in range(128) if seen >> i & 1))

    def lists(word: int) -> tuple[int, int]:
        dim = _DIM.get(word)
        a, b = _COORDINATES[dim], 0
        bound = bool(word >> 59 & 1) if handle is None else handle
        if kind.handle_in_a:
            a += bound
        else:
            b += bound
        a += dim not in _ARRAYS and _set(word, place.clamp) > 0
        if place.layer is not None and place.layer.get(word) and dim in _ARRAYS:
            a -= 1
        if kind.derivatives:
            return a, 2 * (_COORDINATES[dim] - (dim in _ARRAYS))
        b += _set(word, place.more) + 2 * _set(word, place.doubles)
        return _packed(a, b, kind.packs and bool(_SCR.field.get(word)))

    return Count(used, lambda word: lists(word)[0]), Count(used, lambda word: lists(word)[1])


def _components(first: bool, typed: bool) -> Count:
    """The registers of one destination: at most two components, or four halves, in each."""

    def of(word: int) -> int:
        if typed and _HALVES.get(word):
            return 1
        found = _MASK.get(word).bit_count()
        return 2 if found >= (2 if first else 4) else 1

    return Count(Bits(((72, 4), (79, 2)) if typed else ((72, 4),)), of)


def _rows(kind: _Kind) -> list[Row]:
    """All forms of an instruction."""
    typed = any(_F16 in mods for mods in kind.mods.values())
    rows: list[Row] = []
    dims = N(_DIM, {i: _NAMES[i] for i in kind.dims})
    for since, until in ((75, 90), (100, 110), (120, 999)):
        mods = (*kind.mods[since], _NODEP)

        def add(
            opcode: int,
            where: Mapping[str, Operand],
            handle: bool | None,
            since: int = since,
            until: int = until,
            mods: tuple[Mod, ...] = mods,
        ) -> None:
            a, b = _widths(kind, since, handle)
            operands: dict[str, Operand] = {"Pu": pd(81)} if kind.predicate else {}
            text = ["Pu?"] if kind.predicate else []
            operands["Rd2"] = R(64, _components(False, typed), write=True)
            operands["Rd"] = R(16, _components(True, typed), write=True)
            real = kind.packs and handle is True
            operands |= {"Ra": R(24, a, real=kind.predicate), "Rb": R(32, b, real=real)}
            operands |= {role.rstrip("?"): slot for role, slot in where.items()}
            operands |= {"dim": dims, "mask": I(_MASK, elide=15)}
            other = "Rb"
            if kind.elides_b and handle is not True:
                other = "Rb?" if handle is False else "Rb?:!B, Rb:B"
            text += ["Rd2", "Rd", "Ra", other, *where, "dim", "mask?"]
            bound = (_B,) if handle is None else (const("B"),) if handle else ()
            lead = (_SCR, *kind.lead) if kind.packs else kind.lead
            fixed = ((bits(59), 1),) if handle and since < 100 else ()
            ones = (bits(48, 8),) if since == 100 and kind.predicate else ()
            rows.append(
                Row(kind.name, opcode, operands, ", ".join(text), (*lead, *bound, *mods), since,
                    until, fixed=fixed, ones=ones)
            )  # fmt: skip

        base = kind.base
        if since == 75:
            add(0xA00 | base, {"bank": I(bits(54, 5)), "offset": I(bits(40, 14))}, None)
            add(0xA00 | base + 2,
                {"bank": I(bits(54, 5)), "offset": I(bits(40, 6)), "offset2": I(bits(46, 8))},
                True)  # fmt: skip
            add(0x1E00 | base, {"Uc": R(40, 2, "UR"), "offset": I(bits(46, 8))}, False)
            add(0x200 | base + 1, {}, True)
            continue
        more: Mapping[str, Operand] = {"Ue?": R(48, 1, "UR")} if _UAI in mods else {}
        fetch = since == 120 and kind.name == "TLD"  # no sampler
        uniform: dict[str, Operand] = {"Uc": R(40, 1 if fetch else 2, "UR")}
        add(0x1E00 | base, {**uniform, **more}, False)
        add((0x200 if kind.name == "TMML" else 0x1C00) | base + 1, more, True)
        if since == 120:
            shown = {role.rstrip("?"): slot for role, slot in more.items()}
            bound = 0x200 if kind.name == "TEX" else 0x1E00
            add(bound | base + 1, {**uniform, **shown}, True)
    return rows


_COMPONENT = enum("component", 87, 2, "R G B A")
_TLD_LOD = Mod("lod", bits(87, 3), {1: "LZ", 3: "LL"})
_TLD_LOD_100 = enum("lod", 87, 2, "LZ LL - -")
_TLD_LOD_120 = enum("lod", 87, 2, "LZ LL ULL -")
_MS, _CL = flag("MS", 78), flag("CL", 77)
_CL_100 = flag("CL", 76)
_MS_100, _MS_120 = enum("ms", 77, 2, "_ MS - -"), enum("ms", 77, 2, "_ MS UMS -")
_ON = (1,)
_OLD_OFFSET, _NEW_OFFSET = (bits(76), _ON), (bits(56, 2), _ON)
_DEPTH = (bits(78), _ON)
_UAI_BIT = bits(58)

KINDS = (
    _Kind(
        "TEX", 0x160, (0, 1, 2, 3, 4, 5, 7), (),
        {
            75: (_F16, _LOD, _OFFSET, _DC, _EVICT, _NDV),
            100: (_F16, _LOD_100, _OFFSET_100, _DC, _EVICT, _NDV_100),
            120: (_F16, _LOD_120, _OFFSET_120, _UAI, _DC, _EVICT, _NDV_120),
        },
        {
            75: _Place(((_LOD.field, (2, 3, 5)), _OLD_OFFSET, _DEPTH),
                       clamp=((_LOD.field, (4, 5, 6)),)),
            100: _Place(((_LOD_100.field, (2, 3, 5)), _NEW_OFFSET, _DEPTH),
                        clamp=((_LOD_100.field, (4, 5)),)),
            120: _Place(((_LOD_120.field, (2, 3, 5, 10)), _NEW_OFFSET, _DEPTH),
                        clamp=((_LOD_120.field, (4, 5, 9)),), layer=_UAI_BIT),
        },
    ),
    _Kind(
        "TLD4", 0x163, (1, 3, 5, 7), (_COMPONENT,),
        {
            75: (_F16, enum("offset", 76, 2, "_ AOFFI PTP -"), _DC, _EVICT),
            100: (_F16, enum("offset", 76, 2, "_ AOFFI PTP -"), _DC, _EVICT),
            120: (_F16, enum("offset", 76, 2, "_ AOFFI PTP UAOFFI"), _UAI, _DC, _EVICT),
        },
        {
            75: _Place(((bits(76, 2), _ON), _DEPTH), ((bits(76, 2), (2,)),)),
            100: _Place(((bits(76, 2), _ON), _DEPTH), ((bits(76, 2), (2,)),)),
            120: _Place(((bits(76, 2), _ON), _DEPTH), ((bits(76, 2), (2,)),), layer=_UAI_BIT),
        },
    ),
    _Kind(
        "TLD", 0x166, (0, 1, 2, 4, 5), (),
        {
            75: (_F16, _TLD_LOD, _OFFSET, _EVICT, _MS, _CL),
            100: (_F16, _TLD_LOD_100, _OFFSET_100, _EVICT, _MS_100, _CL_100),
            120: (_F16, _TLD_LOD_120, _OFFSET_120, _UAI, _EVICT, _MS_120, _CL_100),
        },
        {
            75: _Place(((_TLD_LOD.field, (3,)), _OLD_OFFSET, (_MS.field, _ON))),
            100: _Place(((_TLD_LOD_100.field, _ON), _NEW_OFFSET, (_MS_100.field, _ON))),
            120: _Place(((_TLD_LOD_120.field, _ON), _NEW_OFFSET, (_MS_120.field, _ON)),
                        layer=_UAI_BIT),
        },
    ),
    _Kind(
        "TMML", 0x169, (0, 1, 2, 3, 4, 5, 7), (),
        {
            75: (const("LOD"), _NDV),
            100: (const("LOD"), enum("ndv", 76, 2, "_ NDV - -")),
            120: (const("LOD"), _NDV_120),
        },
        {75: _Place(), 100: _Place(), 120: _Place()},
        packs=False, predicate=False,
    ),
    _Kind(
        "TXD", 0x16C, (0, 1, 4, 5), (),
        {
            75: (_F16, flag("LC", 87), _OFFSET, _EVICT),
            100: (_F16, enum("lod", 87, 2, "_ LC - -"), _OFFSET_100, _EVICT),
            120: (_F16, enum("lod", 87, 2, "_ LC ULC -"), _OFFSET_120, _UAI, _EVICT),
        },
        {
            75: _Place(clamp=((bits(87), _ON), _OLD_OFFSET)),
            100: _Place(clamp=((bits(87, 2), _ON), _NEW_OFFSET)),
            120: _Place(clamp=((bits(87, 2), _ON), _NEW_OFFSET), layer=_UAI_BIT),
        },
        packs=False, handle_in_a=True, derivatives=True, elides_b=False,
    ),
)  # fmt: skip

# ---- queries

_QUERY = N(bits(62, 2), {
    0: "TEX_HEADER_DIMENSION", 1: "TEX_HEADER_TEXTURE_TYPE", 2: "TEX_HEADER_SAMPLER_POS",
})  # fmt: skip


# The level follows the handle; only dimensions depend on it.
_BOUND = Count(Bits(((59, 1), (62, 2))), lambda word: 1 + (word >> 59 & 1) * (not word >> 62 & 3))
_HANDLE = Count(bits(62, 2), lambda word: 1 + (not word >> 62 & 3))


def _queries() -> list[Row]:
    rows: list[Row] = []

    def add(
        opcode: int, handle: bool | None, where: Mapping[str, Operand], since: int, until: int
    ) -> None:
        operands: dict[str, Operand] = {
            "Rd2": R(64, _components(False, False), write=True),
            "Rd": R(16, _components(True, False), write=True),
            "Ra": R(24, _HANDLE if handle else 1 if handle is False else _BOUND),
            "query": _QUERY, **where, "mask": I(_MASK),
        }  # fmt: skip
        rows.append(
            Row("TXQ", opcode, operands, ", ".join(operands),
                (*((_B,) if handle is None else (const("B"),) if handle else ()), _NODEP),
                since, until, fixed=((bits(59), 1),) if handle and since < 100 else (),
                ones=(bits(59),) if handle and since >= 100 else ())
        )  # fmt: skip

    bank, offset = I(bits(54, 5)), I(bits(40, 14))
    add(0xB6F, None, {"bank": bank, "offset": offset}, 75, 90)
    add(0xB71, True, {"bank": bank, "offset": I(bits(40, 6)), "offset2": I(bits(46, 8))}, 75, 90)
    add(0x1F6F, False, {"Uc": R(40, 2, "UR"), "offset": I(bits(46, 8))}, 75, 90)
    add(0x370, True, {}, 75, 90)
    add(0x370, True, {}, 100, 999)
    add(0x1F6F, False, {"Uc": R(40, 2, "UR"), "offset": Fixed("int", 0)}, 100, 999)
    add(0x1F70, True, {"Uc": R(40, 2, "UR")}, 120, 999)
    return rows


# ---- footprints: which texels a read would touch

_COARSE = flag("COARSE", 76), _LOD, _NDV
_COARSE_100 = (flag("COARSE", 57), Mod("lod", bits(87, 3), _LOD_100.names))
_READS = enum("of", 78, 1, "TEX TXD")


def _footprint_widths(handle: bool | None) -> tuple[Count, Count]:
    """As :func:`_widths`: one register precedes the coordinates."""
    lod = bits(87, 3)
    used = Bits(((59, 1), (60, 1), (61, 3), (78, 1), (87, 3)))

    def lists(word: int) -> tuple[int, int]:
        a = 1 + _COORDINATES[_DIM.get(word)]
        if _READS.field.get(word):
            return a, _MAX_PACKED
        bound = word >> 59 & 1 if handle is None else int(handle)
        return _packed(a, bound + (lod.get(word) in (2, 3, 5)), bool(_SCR.field.get(word)))

    return Count(used, lambda word: lists(word)[0]), Count(used, lambda word: lists(word)[1])


def _footprints() -> list[Row]:
    rows: list[Row] = []

    def add(
        opcode: int, handle: bool | None, where: Mapping[str, Operand], since: int, until: int
    ) -> None:
        mods = {75: _COARSE, 100: (*_COARSE_100, _NDV_100), 120: (*_COARSE_100, _NDV_120)}[since]
        bound = (_B,) if handle is None else (const("B"),) if handle else ()
        a, b = _footprint_widths(handle)
        operands: dict[str, Operand] = {
            "Pu": pd(81), "Rd2": R(64, 2, write=True), "Rd": R(16, 2, write=True),
            "Ra": R(24, a), "Rb": R(32, b), **where, "dim": N(_DIM, {1: "2D", 2: "3D"}),
        }  # fmt: skip
        other = "Rb" if handle else "Rb?" if handle is False else "Rb?:!B, Rb:B"
        text = f"Pu?, Rd2, Rd, Ra, {other}, {', '.join((*where, 'dim'))}"
        rows.append(
            Row("FOOTPRINT", opcode, operands, text, (_SCR, *bound, _READS, *mods, _NODEP), since,
                until, fixed=((bits(59), 1),) if handle and since < 100 else ())
        )  # fmt: skip

    bank, offset = I(bits(54, 5)), I(bits(40, 14))
    add(0xB72, None, {"bank": bank, "offset": offset}, 75, 90)
    add(0xB74, True, {"bank": bank, "offset": I(bits(40, 6)), "offset2": I(bits(46, 8))}, 75, 90)
    add(0x1F74, False, {"Uc": R(40, 2, "UR"), "offset": I(bits(46, 8))}, 75, 90)
    add(0x373, True, {}, 75, 90)
    for since, until in ((100, 110), (120, 999)):
        add(0x1F74, False, {"Uc": R(40, 2, "UR")}, since, until)
        add(0x1D73, True, {}, since, until)
    add(0x1F73, True, {"Uc": R(40, 2, "UR")}, 120, 999)
    return rows


ROWS: list[Row] = [*_footprints(), *(row for kind in KINDS for row in _rows(kind)), *_queries()]

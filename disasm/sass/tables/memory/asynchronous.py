"""Clusters and asynchronous engines of sm_90 and later: mbarriers, bulk and tensor copies,
reductions over a multicast object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sassxlate.disasm.sass.tables.arithmetic.forms import pd, ps, rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    Count,
    Fixed,
    I,
    M,
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

_MEM = M(offset=bits(40, 24), ureg=64)
_NO_UR = Fixed("UR", 255)


def _ur(lo: int, width: int | str = 1, wrap: str = "[{}]") -> R:
    """A uniform register that holds an address or a descriptor."""
    return R(lo, width, "UR", wrap=wrap)


# ---- mbarriers

_ACTION = enum("action", 73, 3, "_ TMASK RED - OPTOUT TMASK.OPTOUT RED.OPTOUT -")
_COUNTS = enum("counts", 84, 3, "_ A1T0 A0T1 A0TR A0TX ART0 - -")


def _syncs() -> list[Row]:
    rows: list[Row] = []
    for since, until, mode in ((90, 90, bits(70, 2)), (100, 999, bits(76, 2))):
        rows += [
            Row("SYNCS", 0x15A7, {"Pu": pd(81), "mem": _MEM, "Rb": R(32)}, "Pu, mem, Rb",
                (const("PHASECHK.TRANS64"), flag("TRYWAIT", 72)), since, until,
                fixed=((mode, 1),)),
            Row("SYNCS", 0x19A7, {"Rd": rd(width=2), "mem": _MEM, "Rb": R(32)}, "Rd, mem, Rb",
                (const("ARRIVE.TRANS64"), _ACTION, _COUNTS), since, until, fixed=((mode, 0),)),
        ]  # fmt: skip
    return rows


SYNC = [
    *_syncs(),
    Row("SYNCS", 0x15B2,
        {"Rd": rd(width=2, file="UR"), "mem": M(base=None, offset=bits(40, 24), ureg=24),
         "Rb": R(32, 2, "UR")}, "Rd, mem, Rb", (const("EXCH.64"),), since=90, guard="UP",
        fixed=((bits(72, 2), 1),)),
    Row("SYNCS", 0x19B1, {"mem": _MEM}, "mem", (const("CCTL"), enum("op", 72, 1, "IV WB")),
        since=90, fixed=((bits(73), 0),)),
    Row("SYNCS", 0x9B1, {}, "", (const("CCTL"), enum("op", 72, 1, "IVALL WBALL")), since=90,
        fixed=((bits(73), 0),)),
    Row("ELECT", 0x82F, {"Pu": pd(81), "Rd": rd(file="UR"), "Pp": ps(87)}, "Pu, Rd, Pp",
        (flag("IGNOREKILL", 85),), since=90),
    Row("ELECT", 0x182F, {"Pu": pd(81), "Rd": rd(file="UR"), "Ra": R(24, 1, "UR")},
        "Pu, Rd, Ra", (flag("IGNOREKILL", 85),), since=90),
    Row("UCGABAR_ARV", 0x19C7, {}, "", since=90, guard="UP", reserved=(bits(72),)),
    Row("UCGABAR_WAIT", 0x1DC7, {}, "", since=90, guard="UP"),
    Row("ACQBULK", 0x82E, {}, "", since=90),
    Row("PREEXIT", 0x82D, {}, "", since=90),
]  # fmt: skip

# ---- shared memory and registers that a block may take or give back; work from other blocks

_ARRIVED = "_ ARVCNT TRANSCNT -"
_UMEM = M(base=None, offset=bits(40, 24), ureg=24)
_GLOBAL = M(base=None, offset=bits(40, 24), ureg=24, wide=91)  # the address is always a pair
_L2 = enum("evict", 83, 2, "EFL2 _ ELL2 -")
_FAR = Mod("order", bits(77, 4), {7: "STRONG.GPU", 8: "MMIO.GPU", 10: "STRONG.SYS", 12: "MMIO.SYS"})


def _registers() -> list[Row]:
    rows: list[Row] = []
    for opcode, count in ((0x13C8, R(32, 1, "UR")), (0x19C8, I(bits(32, 10)))):
        rows += [
            Row("USETMAXREG", opcode, {"count": count}, "count", (const("DEALLOC.CTAPOOL"),),
                since=90, fixed=((bits(72, 3), 5),), guard="UP", free=(bits(81, 3),)),
            Row("USETMAXREG", opcode, {"Pu": pd(81, "UP"), "count": count}, "Pu, count",
                (const("TRY_ALLOC.CTAPOOL"),), since=90, fixed=((bits(72, 3), 6),), guard="UP"),
        ]  # fmt: skip
    return rows


BLOCK = [
    *(Row("ARRIVES", 0x19B0, {"mem": _MEM}, "mem",
          (const("LDGSTSBAR.64"), enum("count", at, 2, _ARRIVED)), since, until,
          fixed=((bits(72, 4), 10),))
      for since, until, at in ((80, 90, 70), (100, 999, 76))),
    Row("SYNCS", 0x15B1, {"Rd": rd(width=2), "mem": _MEM}, "Rd, mem",
        (const("LD.64"), flag("WATCH", 74)), since=90, fixed=((bits(73), 1),)),
    Row("SYNCS", 0x19B2, {"Rd": rd(width=2, file="UR"), "mem": _UMEM}, "Rd, mem",
        (const("LD.64"),), since=90, fixed=((bits(72, 2), 0),), guard="UP"),
    Row("SYNCS", 0x3A7, {}, "", (const("FLUSH"),), since=100, fixed=((bits(76, 2), 2),)),
    *_registers(),
    Row("USTGR", 0x1377, {"mem": _GLOBAL, "Rb": R(32, "size", "UR")}, "mem, Rb",
        (const("E.NA"), _L2, enum("size", 73, 3, "U8 S8 U16 S16 _ 64 - -", {"64": 2}), _FAR), 100,
        100, guard="UP"),
    Row("UREDGR", 0x1378, {"mem": _GLOBAL, "Rb": R(32, "type", "UR")}, "mem, Rb",
        (const("E.ADD.NA"), _L2, enum("type", 73, 3, "_ S32 64 - - - - -", {"64": 2}), _FAR), 100,
        103, fixed=((bits(87, 3), 0),), guard="UP"),
]  # fmt: skip

# ---- bulk copies: the destination's pair is an address and its mbarrier, or a global address

_DESC = Mod("desc", bits(76), {0: "", 1: ""})
_CACHE: Operand = When("desc", _ur(40, 2, "desc[{}]"), _NO_UR)
_LTC = enum("prefetch", 81, 2, "_ LTC64B LTC128B LTC256B")
_MULTICAST = flag("MULTICAST", 75)
_TO, _FROM = enum("to", 73, 1, "G S"), enum("from", 74, 1, "G S", {"G": 2, "S": 1})
_RED_OP = enum("op", 87, 3, "ADD MIN MAX INC DEC AND OR XOR")
_RED_TYPE = Mod("type", bits(81, 4), {
    0: "", 1: "S32", 2: "U64", 3: "S64", 4: "F16.RN", 5: "F32.RN", 6: "F32.FTZ.RN", 7: "F64.RN",
    8: "BF16.RN",
})  # fmt: skip
_COUNTED = flag("COUNTED", 85)


def _bulk() -> list[Row]:
    copy: dict[str, Operand] = {
        "dst": _ur(32, 2), "src": _ur(24, "from"), "size": R(64, 1, "UR"), "cache": _CACHE,
    }  # fmt: skip
    red = {**copy, "src": _ur(24)}
    text = "dst, src, size, cache:desc"
    rows: list[Row] = []
    for since, until in ((90, 90), (100, 110), (120, 999)):
        late = (_COUNTED,) if since == 100 else ()
        mask = (flag("DST_G_BYTE_MASK", 84),) if since >= 100 else ()
        rows += [
            Row("UBLKCP", 0x13BA, copy, text,
                (_TO, _FROM, _MULTICAST, *mask, _LTC, flag("SEQUENCED", 83), *late, _DESC),
                since, until, guard="UP", reserved=(bits(77, 4),)),
            Row("UBLKRED", 0x13BB, red, text,
                (_TO, const("S"), _RED_OP, *late, _RED_TYPE, _DESC), since, until, guard="UP",
                fixed=((bits(74), 1),), reserved=(bits(77, 4),)),
        ]  # fmt: skip
    rows.append(
        Row("UBLKPF", 0x13BC, {"src": _ur(24, 2), "size": R(64, 1, "UR"), "cache": _CACHE},
            "src, size, cache:desc", (const("L2"), _DESC), since=90, guard="UP")
    )  # fmt: skip
    return rows


# ---- tensor copies: the first operand holds up to two addresses and five coordinates

_DIM = enum("dim", 79, 3, "1D 2D 3D 4D 5D - - -")
# The operands before the coordinates: addresses in shared memory and of an mbarrier.
_ADDRESSES: Mapping[str, int] = {"UTMALDG": 2, "UTMASTG": 1, "UTMAREDG": 1, "UTMAPF": 0}


def _box(name: str, mods: tuple[Mod, ...]) -> Count:
    """Addresses and coordinates; four rows that are gathered or scattered have one each."""
    four = [(m.field, v) for m in mods for v, n in m.names.items() if n in ("GATHER4", "SCATTER4")]

    def registers(word: int) -> int:
        coordinates = 5 if any(f.get(word) == v for f, v in four) else _DIM.field.get(word) + 1
        return _ADDRESSES[name] + min(coordinates, 5)

    parts = [part for field, _ in four for part in field.parts]
    return Count(Bits((*_DIM.field.parts, *parts)), registers)


def _tensor() -> list[Row]:
    rows: list[Row] = []

    def add(
        name: str, opcode: int, wide: bool, mods: tuple[Mod, ...], since: int, until: int
    ) -> None:
        operands: dict[str, Operand] = {
            "box": R(32, _box(name, mods), "UR", wrap="[{}]"), "map": _ur(24, 2),
            "cache": _CACHE,
        }  # fmt: skip
        text = "box, map, cache:desc"
        if wide:
            operands["Rc"] = R(64, 1, "UR")
            text = "box, map, Rc, cache:desc"
        rows.append(Row(name, opcode, operands, text, (*mods, _DESC), since, until, guard="UP"))

    im2col = flag("IM2COL", 82)
    add("UTMALDG", 0x15B4, False, (_DIM,), 90, 90)
    add("UTMALDG", 0x13B4, True, (_DIM, im2col, _MULTICAST), 90, 90)
    cta2 = flag("2CTA", 85)
    add("UTMALDG", 0x15B4, False,
        (_DIM, enum("mode", 82, 3, "_ - - - GATHER4 - - -"), cta2), 100, 999)  # fmt: skip
    add("UTMALDG", 0x13B4, True,
        (_DIM, enum("mode", 82, 3, "_ IM2COL W128 W GATHER4 - - -"), _MULTICAST, cta2),
        100, 999)  # fmt: skip
    add("UTMASTG", 0x13B5, False, (_DIM, im2col), 90, 90)
    add("UTMASTG", 0x13B5, False, (_DIM, enum("mode", 82, 2, "_ IM2COL SCATTER4 -")),
        100, 999)  # fmt: skip
    add("UTMAREDG", 0x13B6, False, (_DIM, im2col, _RED_OP), 90, 999)
    for since, until, mode in (
        (90, 90, ()), (100, 999, (enum("mode", 82, 3, "_ - - - GATHER4 - - -"),)),
    ):  # fmt: skip
        add("UTMAPF", 0x15B8, False, (const("L2"), _DIM, *mode), since, until)
    add("UTMAPF", 0x13B8, True, (const("L2"), _DIM, enum("mode", 82, 1, "- IM2COL")), 90,
        90)  # fmt: skip
    add(
        "UTMAPF",
        0x13B8,
        True,
        (const("L2"), _DIM, enum("mode", 82, 3, "- IM2COL W128 W - - - -")),
        100,
        999,
    )
    return rows


TENSOR = [
    *_tensor(),
    Row("UTMACCTL", 0x19B9, {"map": _ur(24, 2)}, "map", (enum("op", 82, 1, "IV PF"),), since=90,
        guard="UP"),
    Row("UTMACCTL", 0x9B9, {}, "", (const("IVALL"),), since=90, fixed=((bits(83), 1),),
        guard="UP"),
    Row("UTMACMDFLUSH", 0x9B7, {}, "", since=90, guard="UP"),
]  # fmt: skip

# ---- other blocks' shared memory, and multicast objects

_STRONG = Mod("order", bits(77, 4), {10: "STRONG.SYS"})
_INT_TYPE = enum("type", 73, 3, "32 S32 64 S64 - - - -", {"64": 2, "S64": 2})
_INT_OP = enum("op", 87, 4, "ADD MIN MAX - - AND OR XOR - - - - - - - -")
_NAMES = "F16x2 F16x4 F16x8 BF16x2 BF16x4 BF16x8 - - - - - - F32 F32x2 F32x4 F64".split()
_BYTE_NAMES = "- E5M2x4 E5M2x8 E5M2x16 E4M3x4 E4M3x8 E4M3x16".split()
_WIDTH: Mapping[str, int] = {
    "F16x4": 2, "F16x8": 4, "BF16x4": 2, "BF16x8": 4, "F32x2": 2, "F32x4": 4, "F64": 2,
    "E5M2x8": 2, "E5M2x16": 4, "E4M3x8": 2, "E4M3x16": 4,
}  # fmt: skip


def _reduced(names: Sequence[str]) -> Mod:
    known = {i: name for i, name in enumerate(names) if name != "-"}
    return Mod("type", join((73, 4), (87, 1)), {i: f"{name}.RN" for i, name in known.items()},
               {i: _WIDTH[name] for i, name in known.items() if name in _WIDTH})  # fmt: skip


def _multicast() -> list[Row]:
    rows: list[Row] = []
    for since, until, wide, desc in ((90, 90, 70, 71), (100, 999, 81, 82)):
        mem = M(offset=bits(40, 24), ureg=64, wide=72, uwide=wide, desc=desc, show_rz=True)
        operands: dict[str, Operand] = {"Rd": rd(width="type"), "mem": mem}
        e = Mod("E", bits(72), {1: "E"})
        late = since >= 100
        rows += [
            Row("LDGMC", 0x19A4, operands, "Rd, mem", (e, _INT_OP, _INT_TYPE, _STRONG), since,
                until),
            Row("LDGMC", 0x19A5, operands, "Rd, mem",
                (e, enum("op", 88, 2, f"ADD MIN MAX {'HPADD' if late else 'F32ADD'}"),
                 _reduced([*_NAMES, *_BYTE_NAMES] if late else _NAMES), _STRONG), since, until),
        ]  # fmt: skip
    return rows


REMOTE = [
    *_multicast(),
    Row("STAS", 0x1DBD,
        {"mem": M(offset=bits(40, 24), ureg=64, wide=90, uwide=90, hide_urz=True),
         "Rb": R(32, "size")}, "mem, Rb",
        (enum("size", 73, 3, "- - - - _ 64 128 -", {"64": 2, "128": 4}),), since=90,
        reserved=(bits(77, 4),)),
    Row("REDAS", 0x1DBE,
        {"mem": M(offset=bits(40, 24), ureg=64, wide=72, uwide=72, hide_urz=True),
         "Rb": R(32, "type")}, "mem, Rb",
        (enum("op", 87, 4, "ADD MIN MAX INC DEC AND OR XOR - - - - - - - -"),
         enum("type", 73, 3, "_ S32 64 - - - - -", {"64": 2})), since=90,
        reserved=(bits(77, 4),)),
]  # fmt: skip

ROWS: list[Row] = [*SYNC, *BLOCK, *_bulk(), *TENSOR, *REMOTE]

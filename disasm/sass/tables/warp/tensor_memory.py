"""The tensor memory of sm_100, 103 and 110: its loads, stores, copies and allocation, and the
matrix products that work on it.  One thread issues them, with uniform registers."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import pd, rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    I,
    M,
    Mod,
    Operand,
    P,
    R,
    Row,
    Select,
    bits,
    const,
    enum,
    flag,
    join,
)

_LAST = 110  # sm_120 has no tensor memory
_OFFSET = join((40, 24), (72, 8))


def _tmem(lo: int) -> M:
    """An address: a uniform register and a displacement."""
    return M(base=None, offset=_OFFSET, ureg=lo, space="tmem")


# ---- loads and stores

# Lanes and bits that one step moves, and its number of registers; then the steps.
_SHAPES = (
    ("16dp128bit", 2), ("16dp256bit", 4), ("", 1), ("16dp64bit", 1), ("16dp32bit_t0_t15", 1),
    ("16dp32bit_t16_t31", 1),
)  # fmt: skip


def _shapes(only: tuple[int, ...]) -> Mod:
    names: dict[int, str] = {}
    widths: dict[int, int] = {}
    for code in only:
        name, registers = _SHAPES[code]
        for step in range(8):
            value = code | step << 3
            count = f"x{1 << step}" if step else ""
            names[value] = ".".join(part for part in (name, count) if part)
            widths[value] = registers << step
    return Mod("shape", join((81, 2), (87, 1), (83, 3)), names, widths)


_SHAPE = _shapes(tuple(range(6)))
_STATISTIC = Mod("op", bits(66, 2), {0: "MAX", 1: "MAXABS", 2: "MIN", 3: "MINABS"})
MOVES = [
    Row("LDTM", 0x19EE, {"Rd": rd(width="shape"), "mem": _tmem(32)}, "Rd, mem",
        (_SHAPE, flag("PACK16BIT", 80)), 100, _LAST, guard="UP"),
    Row("LDTM", 0x15EE,
        {"Rs": rd(24), "Rd": rd(width="shape"), "mem": _tmem(32)}, "Rs, Rd, mem",
        (const("STAT"), _shapes((2, 4, 5)), _STATISTIC, enum("type", 64, 2, "_ S32 F32 -"),
         flag("NAN", 68)), 103, _LAST, guard="UP"),
    Row("STTM", 0x19ED, {"mem": _tmem(64), "Rb": R(32, "shape")}, "mem, Rb",
        (_SHAPE, flag("EXPAND16BIT", 80)), 100, _LAST, guard="UP"),
]  # fmt: skip

# ---- products

_KEEP_A: Mapping[int, str] = {0: "", 1: "A_KEEP", 2: "A_REUSE", 3: "A_REUSE.A_KEEP"}
_KEEP_B: Mapping[int, str] = {
    i | k << 2: ".".join(
        part for part in ("B_REUSE" * (k >> 1), "B_KEEP" * (k & 1), f"BUFFER{i}" if i else "")
        if part
    )
    for i in range(4) for k in range(4)
}  # fmt: skip
_PAIR = bits(85)


def _products() -> list[Row]:
    rows: list[Row] = []
    keep = Select(join((84, 1), (86, 1)), _KEEP_A)

    def add(
        name: str, opcode: int, from_tmem: bool, pair: bool, scaled: bool, mods: tuple[Mod, ...],
        fixed: tuple[tuple[int, int, int], ...], since: int = 100, until: int = _LAST,
        absent: tuple[int, ...] = (), extra: bool = False, ones: tuple[Bits, ...] = (),
    ) -> None:  # fmt: skip
        first = ("tmem[{}]", 1) if from_tmem else ("gdesc[{}]", 2)
        last = None if pair or scaled else Select(bits(79, 4), _KEEP_B)
        lanes = R(48, 2, "UR", wrap="tmem[{}]") if scaled else R(48, "WS", "UR")
        operands: dict[str, Operand] = {
            "Ra": R(24, first[1], "UR", wrap=first[0], select=keep),
            "Rb": R(32, 2, "UR", wrap="gdesc[{}]", select=last),
            "Rd": R(64, 1, "UR", wrap="tmem[{}]"),
            "Re": R(40, 2, "UR", wrap="tmem[{}], idesc[{next}]"),
            "scale" if scaled else "lanes": lanes,
            "Pp": P(87, 90, "UP"),
        }  # fmt: skip
        text = f"Ra, Rb, Rd, Re, {'scale' if scaled else 'lanes?'}, Pp"
        if extra:
            operands["shift"] = I(bits(75, 4), elide=0)
            text += ", shift?"
        rows.append(
            Row(name, opcode, operands, text, (const("2CTA"),) * pair + mods, since, until, absent,
                (*((bits(lo, width), value) for lo, width, value in fixed), (_PAIR, int(pair))),
                ones=ones, guard="UP")
        )  # fmt: skip

    for pair in (False, True):
        # A mask of the output's lanes; with stationary weights, one of its columns.
        shared = Mod("WS", bits(83), {0: "", 1: "WS"}, {0: 8 if pair else 4, 1: 2})
        for from_tmem in (False, True):
            mods = (shared, flag("ASHIFT", 74)) if from_tmem else (shared,)
            opcode = 0x19EA if from_tmem else 0x15EA
            for name, kind in (("UTCHMMA", 0), ("UTCIMMA", 1), ("UTCQMMA", 3)):
                add(name, opcode, from_tmem, pair, False, mods, ((72, 2, kind), (63, 1, 0)),
                    absent=(103,) if kind == 1 else (), extra=kind == 0)  # fmt: skip
            for scales, absent in (("4X _", (103,)), ("BLOCK16 _", (100, 110))):
                add("UTCOMMA", opcode, from_tmem, pair, True, (enum("scales", 62, 1, scales),),
                    ((72, 2, 0), (63, 1, 1)), absent=absent)  # fmt: skip
            opcode = 0x1FEA if from_tmem else 0x1DEA
            add("UTCQMMA", opcode, from_tmem, pair, True, (), ((72, 2, 3), (63, 1, 0)), until=100)
            add("UTCQMMA", opcode, from_tmem, pair, True, (), (), since=103, ones=(bits(72, 2),))
    return rows


# ---- copies, barriers, allocation

_2CTA = flag("2CTA", 85)
_COPY = Mod("shape", join((83, 2), (88, 1)), {
    0: "", 2: "4dp256bit", 3: "128dp128bit", 4: "2x64dp128bit_lw02_lw13",
    5: "2x64dp128bit_lw01_lw23", 6: "4x32dp128bit",
})  # fmt: skip


def _barriers() -> list[Row]:
    operands: dict[str, Operand] = {
        "mem": R(24, 1, "UR", wrap="[{}]"), "Rb": R(32, 1, "UR"),
        "Rc": R(64, 1, "UR"),
    }  # fmt: skip
    counts, all_ctas = flag("A0TX", 77), flag("MULTICAST", 75)
    return [
        Row("UTCBAR", 0x13E9, operands, "mem, Rb, Rc?", mods, 100, _LAST,
            fixed=((_PAIR, int(pair)),), guard="UP")
        for pair, mods in (
            (False, (counts, flag("WAKEUP", 76), all_ctas)),
            (True, (const("2CTA"), counts, all_ctas)),
        )
    ]  # fmt: skip


CONTROL = [
    Row("UTCCP", 0x19E7, {"mem": _tmem(24), "Rb": R(32, 2, "UR", wrap="gdesc[{}]")}, "mem, Rb",
        (const("T.S"), _2CTA, _COPY, enum("format", 80, 2, "_ U4x16P64 U6x16P32 -")), 100, _LAST,
        fixed=((bits(86, 2), 0),), guard="UP"),
    Row("UTCSHIFT", 0x19E6, {"mem": _tmem(24)}, "mem", (_2CTA, const("DOWN")), 100, _LAST,
        fixed=((bits(80), 1),), guard="UP"),
    *_barriers(),
    Row("UTCBAR", 0x9E9, {}, "", (const("FLUSH"),), 100, _LAST, fixed=((_PAIR, 0),), guard="UP"),
    Row("UTCATOMSWS", 0x13E3,
        {"Pu": pd(81, "UP"), "Rd": rd(file="UR"), "Rb": R(32, 1, "UR"), "Rc": R(64, 1, "UR")},
        "Pu, Rd, Rb, Rc", (_2CTA, const("CAS")), 100, _LAST, guard="UP"),
    Row("UTCATOMSWS", 0x15E3,
        {"Pu": pd(81, "UP"), "Rd": rd(file="UR"), "Rb": R(32, 1, "UR")}, "Pu, Rd, Rb",
        (_2CTA, const("FIND_AND_SET"), flag("ALIGN", 75)), 100, _LAST, guard="UP"),
    Row("UTCATOMSWS", 0x19E3, {"Rd": rd(file="UR"), "Rb": R(32, 1, "UR")}, "Rd, Rb",
        (_2CTA, enum("op", 87, 1, "AND OR")), 100, _LAST, guard="UP"),
    Row("UVIRTCOUNT", 0x84C, {"count": I(bits(32, 32))}, "count", (const("DEALLOC.SMPOOL"),), 100,
        guard="UP"),
    Row("UVIRTCOUNT", 0x144C, {"Ra": R(24, 1, "UR")}, "Ra", (const("DEALLOC.SMPOOL"),), 100,
        guard="UP"),
]  # fmt: skip

ROWS: list[Row] = [*MOVES, *_products(), *CONTROL]

"""Small floating-point numbers: packing and unpacking them, arithmetic on four in a register, and
sums and products that take halves of a register into single precision."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import ROUND, SAT, Src, alu, rd
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    Fixed,
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

# ---- FHADD, FHFMA: A and B are halves


def _halves(row: Row) -> Row:
    """The bit that chooses a half is bit 83 for A, bit 84 for B."""
    slots = dict(row.operands)
    for role, at in (("Ra", 83), ("Rb", 84)):
        slot = slots.get(role)
        if isinstance(slot, R) and (at == 83 or "Rc" in slots):
            select = Select(bits(at), {0: "", 1: "H1"})
            slots[role] = R(slot.lo, 1, slot.file, slot.neg, slot.abs, select=select,
                            reuse=slot.reuse)  # fmt: skip
    return row.with_(operands=slots)


_SIGNED = Src(neg=True, abs=True)
_TYPE = enum("type", 82, 1, "_ BF16")
MIXED = [
    _halves(row)
    for row in (
        *alu("FHADD", 0x021, "Rd, Ra, Rb", {"Ra": _SIGNED, "Rb": _SIGNED}, forms=(1, 7),
             layout="ab2", mods=(_TYPE, ROUND, SAT), since=100, fixed=((bits(81), 1),)),
        *alu("FHFMA", 0x023, "Rd, Ra, Rb, Rc", {"Ra": _SIGNED, "Rb": _SIGNED, "Rc": _SIGNED},
             forms=(1, 6, 7), mods=(_TYPE, ROUND, SAT), since=100, fixed=((bits(81), 1),)),
    )
]  # fmt: skip

_BYTE = Select(bits(80, 2), {0: "", 1: "B1", 2: "B2", 3: "B3"})
UNIFORM = [
    Row("UFHADD", 0x1254,
        {"Rd": rd(file="UR"),
         "Ra": R(24, 1, "UR", 72, 73, select=Select(bits(83), {0: "", 1: "H1"})),
         "Rb": R(64, 1, "UR", 75, 74)}, "Rd, Ra, Rb", (_TYPE, ROUND, SAT), 120,
        fixed=((bits(81), 1),), guard="UP"),
    Row("UFHFMA", 0x1255,
        {"Rd": rd(file="UR"),
         "Ra": R(24, 1, "UR", 72, 73, select=Select(bits(83), {0: "", 1: "H1"})),
         "Rb": R(32, 1, "UR", 63, 62, select=Select(bits(84), {0: "", 1: "H1"})),
         "Rc": R(64, 1, "UR", 75, 74)}, "Rd, Ra, Rb, Rc", (_TYPE, ROUND, SAT), 120,
        fixed=((bits(81), 1),), guard="UP"),
]  # fmt: skip

# Two numbers of four bits become halves.
NIBBLES = [
    Row("I2FP", opcode, {"Rd": rd(), "Rb": source}, "Rd, Rb",
        (const("F16x2"), enum("type", 74, 1, "U4x2 S4x2"), enum("round", 78, 2, "_ - - RZ")), 100,
        103)
    for opcode, source in ((0x445, R(32, 1, select=_BYTE, reuse=123)),
                           (0x1E45, R(32, 1, "UR", select=_BYTE)))
]  # fmt: skip

# ---- QADD4, QMUL4, QFMA4

_BYTES = {0: "B3210", 1: "B3", 2: "B2", 3: "B1", 4: "B0", 5: "N7654", 6: "N3210", 7: "N6420"}
_FOUR = {
    0: "E5M2x4", 1: "E4M3x4", 3: "E3M2x4", 4: "E2M3x4", 5: "E2M1x4", 6: "E0M3x4", 7: "E8x4",
}  # fmt: skip
_QUADS: Mapping[str, tuple[int, int, int, int, int]] = {  # register, sign, absolute, bytes, reuse
    "Ra": (24, 73, 72, 74, 122), "Rb": (32, 63, 62, 59, 123), "Rc": (64, 84, 83, 85, 124),
}  # fmt: skip


def _quad(role: str, kind: str) -> Operand:
    lo, neg, absolute, at, reuse = _QUADS[role]
    if kind == "imm":
        return I(bits(32, 32))
    names = {i: n for i, n in _BYTES.items() if i < 5 or role != "Rc"}
    uniform = kind == "ur"
    return R(
        lo,
        1,
        "UR" if uniform else "R",
        neg,
        absolute,
        select=Select(bits(at, 3), names, inside=uniform),
        reuse=None if uniform else reuse,
    )


def _quads() -> list[Row]:
    rows: list[Row] = []
    types = (
        enum("td", 88, 2, "E5M2x4 E4M3x4 - -"), Mod("ta", bits(77, 3), _FOUR),
        Mod("tb", bits(80, 3), _FOUR), flag("SATFINITE", 90),
    )  # fmt: skip
    kinds = {1: "", 2: "imm", 4: "imm", 6: "ur", 7: "ur"}
    for name, base, roles, forms, mods in (
        ("QFMA4", 0x7B, ("Ra", "Rb", "Rc"), (1, 2, 4, 6, 7), types),
        ("QMUL4", 0x7C, ("Ra", "Rb"), (1, 4, 6), types),
        ("QADD4", 0x7D, ("Ra", "Rc"), (1, 2, 7), (types[0], types[1], types[3])),
    ):
        for form in forms:
            special = "Rb" if form in (4, 6) else "Rc"
            operands: dict[str, Operand] = {"Rd": rd()}
            for role in roles:
                operands[role] = _quad(role, kinds[form] if role == special else "")
            if form == 2 and "Rb" in roles:
                operands |= {"Rb": _quad("Rc", ""), "Rc": _quad("Rb", "imm")}
            rows.append(
                Row(name, base | form << 9 | (form >= 6) << 12, operands,
                    ", ".join(("Rd", *roles)), mods, 100, 103)
            )  # fmt: skip
    return rows


# ---- F2FP from sm_100 on

_DST = {
    0: "F16", 1: "BF16", 2: "E0M3", 3: "E2M1", 5: "TF32", 6: "E2M3", 7: "E3M2", 8: "E5M2",
    9: "E4M3", 11: "S2_6", 12: "E8",
}  # fmt: skip
_SRC = {
    0: "F32", 1: "F16", 2: "E5M2", 3: "E4M3", 4: "E0M3", 5: "E2M1", 6: "E2M3", 7: "E3M2",
    9: "BF16", 11: "E8",
}  # fmt: skip
_DST_AT, _SRC_AT, _MODE = join((76, 1), (85, 3)), join((73, 2), (82, 2)), join((78, 1), (89, 2))
_ROUND_AT = bits(79, 3)
_TO_ZERO = Mod("round", _ROUND_AT, {0: "", 3: "RZ"})
_DIRECTED = Mod("round", _ROUND_AT, {0: "", 2: "RP", 3: "RZ"})
_NEAREST = Mod("round", _ROUND_AT, {0: ""})
_RANDOM = Mod("round", _ROUND_AT, {4: "RS"})  # C holds the random bits
_SATFINITE, _RELU = flag("SATFINITE", 77), flag("RELU", 75)
_ALWAYS = Mod("sat", bits(77), {1: "SATFINITE"})
_SAT_OFF = enum("sat", 77, 1, "SATFINITE _")  # the bit turns it off
_NEVER = Mod("sat", bits(77), {0: ""})
_WORDS, _SIXES, _FOURS = (0, 1), (6, 7, 8, 9), (2, 3)
_HALF_C = Select(bits(72), {0: "", 1: "H1"})
_HALF_B = Select(bits(88), {0: "", 1: "H1"})
_BYTE_B = Select(join((72, 1), (88, 1)), {0: "", 1: "B1", 2: "B2", 3: "B3"})


def _types(dst: tuple[int, ...], src: tuple[int, ...]) -> Mod:
    """Both types in one modifier, with only the legal pairs."""
    return Mod("types", Bits((*_DST_AT.parts, *_SRC_AT.parts)),
               {d | s << 4: f"{_DST[d]}.{_SRC[s]}" for d in dst for s in src})  # fmt: skip


def _f2fp() -> list[Row]:
    rows: list[Row] = []

    def add(
        mode: int, name: str, roles: str, types: Mod, roundings: Mod, sat: Mod = _SATFINITE,
        relu: Mod = _RELU, until: int = 999,
    ) -> None:  # fmt: skip
        sources = {f"R{c}": Src(imm="f32") for c in roles}
        forms = [1]
        if "b" in roles:
            forms += [4, 6]
        if "c" in roles:
            forms += [2, 7]
        rounded = roundings.names
        fixed: tuple[tuple[Bits, int], ...] = ((_MODE, mode), (bits(81), int(4 in rounded)))
        fixed += _common(types, _DST_AT, 4, 0) + _common(types, _SRC_AT, 4, 4)
        fixed += ((bits(77), next(iter(sat.names))),) if len(sat.names) == 1 else ()
        text = ", ".join(("Rd", *(f"R{c}" for c in roles)))
        fours = {value & 15 for value in types.names}
        nibbles = {value >> 4 for value in types.names} == {4, 5}
        for row in alu("F2FP", 0x03E, text, sources, forms=forms,
                       mods=(sat, relu, types, const(name), roundings), since=100,
                       until=until, fixed=fixed):  # fmt: skip
            slots = dict(row.operands)
            ones = [
                bits(lo, 8) for role, lo in (("a", 24), ("b", 32), ("c", 64)) if role not in roles
                if not any(isinstance(s, R) and s.lo == lo for s in slots.values())
            ]  # fmt: skip
            for role, select, wanted in (
                ("Rc", _HALF_C, "MERGE_C" in name and fours != {2, 3} and 4 not in rounded),
                ("Rb", _BYTE_B if nibbles else _HALF_B, name == "UNPACK_B"),
            ):  # fmt: skip
                slot = slots.get(role)
                if wanted and isinstance(slot, R):
                    slots[role] = R(slot.lo, 1, slot.file, select=select, reuse=slot.reuse)
            for role in ("Ra", "Rc"):
                slots.setdefault(role, Fixed("R", 255))
            rows.append(row.with_(operands=slots, ones=tuple(ones)))

    add(0, "PACK_AB", "ab", _types(_WORDS, (0,)), _TO_ZERO)
    add(0, "PACK_AB", "abc", _types(_WORDS, (0,)), _RANDOM, until=103)
    add(1, "MERGE_C", "bc", _types(_WORDS, (0,)), _TO_ZERO)
    for some in (_FOURS, _SIXES):
        add(1, "MERGE_C", "abc", _types(some, (0,)), _RANDOM, until=103)
        add(5, "PACK_AB_MERGE_C", "abc", _types(some, (0,)), _RANDOM, until=103)
    add(5, "PACK_AB_MERGE_C", "abc", _types(_SIXES, (0,)), _DIRECTED)
    add(5, "PACK_AB_MERGE_C", "abc", _types((12,), (0,)), _DIRECTED)
    add(5, "PACK_AB_MERGE_C", "abc", _types(_FOURS, (0,)), _NEAREST, _ALWAYS)
    add(5, "PACK_AB_MERGE_C", "abc", _types((11,), (0,)), _NEAREST, _SAT_OFF)
    add(3, "PACK_B", "b", _types((5,), (0,)), _TO_ZERO)
    for sources in ((2, 3), (4, 5), (6, 7)):
        add(2, "UNPACK_B", "b", _types((0,), sources), _NEAREST, _NEVER)
    either = Mod("relu", bits(75), {0: "", 1: ""})
    add(2, "UNPACK_B", "b", _types((1,), (11,)), _NEAREST, _NEVER, either)
    add(4, "UNPACK_B_MERGE_C", "bc", _types((*_SIXES, 12), (1, 9)), _DIRECTED)
    add(4, "UNPACK_B_MERGE_C", "bc", _types(_FOURS, (1, 9)), _NEAREST, _ALWAYS)
    add(4, "UNPACK_B_MERGE_C", "bc", _types((11,), (9,)), _NEAREST, _SAT_OFF)
    return rows


def _common(types: Mod, field: Bits, width: int, shift: int) -> tuple[tuple[Bits, int], ...]:
    """The bits of a field that are the same in all types, which distinguish rows."""
    values = [value >> shift & (1 << width) - 1 for value in types.names]
    positions = [lo + i for lo, n in field.parts for i in range(n)]
    return tuple(
        (bits(position), values[0] >> i & 1)
        for i, position in enumerate(positions)
        if len({value >> i & 1 for value in values}) == 1
    )


ROWS: list[Row] = [*MIXED, *UNIFORM, *NIBBLES, *_quads(), *_f2fp()]

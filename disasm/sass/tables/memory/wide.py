"""Accesses of 256 bits and arithmetic on pairs of floats of sm_100, and other additions of sm_100
and sm_120 that compilers rarely write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sassxlate.disasm.sass.tables.arithmetic.float import FLUSH
from sassxlate.disasm.sass.tables.arithmetic.forms import FTZ, ROUND, Src, alu, ps, rd
from sassxlate.disasm.sass.tables.memory.modifiers import (
    COPIED,
    EVICT,
    LD_80,
    PREFETCH,
    SIZE,
    STG_100,
)
from sassxlate.disasm.sass.tables.spec import (
    Bits,
    C,
    Count,
    Fixed,
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

_LAST = 103

# ---- pairs of floats, where one source is an immediate or uniform

_HALF: Mapping[int, str] = {
    0: "F32x2.HI_LO", 1: "F32x2.LO_HI", 2: "F32", 4: "F32x2.HI_LO.NP", 5: "F32x2.LO_HI.NP",
    6: "F32.NP",
}  # fmt: skip
_FEW: Mapping[int, str] = {i: _HALF[i] for i in range(3)}
_A = R(24, 2, neg=72, abs=73, select=Select(bits(81, 3), _HALF), reuse=122)
_B = R(64, 2, neg=75, abs=74, select=Select(bits(87, 2), _FEW), reuse=123)
_C = R(64, 2, neg=75, abs=74, select=Select(bits(84, 3), _HALF), reuse=124)
_IMM = I(bits(32, 32), "f32", "f32")


def _uniform(lo: int, width: int) -> R:
    names = _HALF if width == 3 else _FEW
    return R(32, 2, "UR", neg=63, abs=62, select=Select(bits(lo, width), names, inside=True))


def _pair(name: str, opcode: int, sources: Mapping[str, Operand], flush: Mod, marked: bool) -> Row:
    text = ", ".join(("Rd", *sources))
    return Row(
        name, opcode, {"Rd": rd(width=2), **sources}, text, (flush, ROUND), 100, _LAST,
        reserved=(bits(86),) if marked else (),
    )  # fmt: skip


PAIRS = [
    _pair("FADD2", 0x44B, {"Ra": _A, "Rb": _IMM}, FTZ, True),
    _pair("FADD2", 0x1E4B, {"Ra": _A, "Rb": _uniform(84, 3)}, FTZ, False),
    _pair("FMUL2", 0x84A, {"Ra": _A, "Rb": _IMM}, FLUSH, False),
    _pair("FMUL2", 0x1C4A, {"Ra": _A, "Rb": _uniform(87, 2)}, FLUSH, False),
    _pair("FFMA2", 0x449, {"Ra": _A, "Rb": _B, "Rc": _IMM}, FLUSH, True),
    _pair("FFMA2", 0x849, {"Ra": _A, "Rb": _IMM, "Rc": _C}, FLUSH, False),
    _pair("FFMA2", 0x1C49, {"Ra": _A, "Rb": _uniform(87, 2), "Rc": _C}, FLUSH, False),
    _pair("FFMA2", 0x1E49, {"Ra": _A, "Rb": _B, "Rc": _uniform(84, 3)}, FLUSH, False),
]

# ---- 256 bits: two times four registers, of which a mask may exclude some

_L2 = enum("l2", 81, 2, "EFL2 ENL2 ELL2 -")
_ALWAYS = 1  # a bit of the opcode that is always set: the uniform base is a pair


def _wide(offset: int, ureg: int) -> M:
    return M(offset=bits(40, offset), unit=32, ureg=ureg, wide=_ALWAYS, uwide=75, desc=76)


def _chosen(low: Bits) -> Count:
    """The registers of one half of a load: only the words that the mask names are written, to
    registers that follow each other."""
    return Count(low, lambda word: max(low.get(word).bit_count(), 1))


_FIRST_WORDS, _LAST_WORDS = bits(57, 4), join((61, 3), (72, 1))
_GLOBAL = [
    Row("LDG", 0x197E,
        {"Rd2": R(64, _chosen(_LAST_WORDS), write=True),
         "Rd": R(16, _chosen(_FIRST_WORDS), write=True), "mem": _wide(17, 32),
         "mask": I(join((57, 7), (72, 1))), "Pp": P(87, 90, flip=7)},
        "Rd2, Rd, mem, mask, Pp?", (const("E"), EVICT, _L2, replace(PREFETCH, field=bits(73, 2)),
                                    const("256"), LD_80), since=100),
    Row("STG", 0x197F,
        {"mem": _wide(19, 64), "Rb": R(32, 4), "Rb2": R(16, 4),
         "mask": I(join((59, 5), (88, 3)))}, "mem, Rb, Rb2, mask",
        (const("E"), EVICT, _L2, const("256"), STG_100), since=100),
]  # fmt: skip
_COPY = Row(  # the uniform register belongs to the shared address
    "LDGSTS", 0x1DAE,
    {"dst": M(base=16, offset=bits(44, 20), ureg=64),
     "mem": M(offset=bits(32, 12), wide=83, uwide=83), "Pp": P(87, 90)}, "dst, mem, Pp?",
    (const("E"), Mod("bypass", bits(81), {0: "BYPASS", 1: ""}), EVICT,
     replace(PREFETCH, field=bits(72, 2)), enum("size", 74, 2, "_ 64 128 -"), flag("ZFILL", 82),
     Mod("order", bits(77, 4), COPIED)), since=100, fixed=((bits(76), 0), (bits(83), 1)),
)  # fmt: skip
_UMASK = I(join((32, 4), (80, 4)))
_TWO: Mapping[str, Operand] = {"Rd2": rd(72, 4, "UR"), "Rd": rd(16, 4, "UR")}
_INNER = bits(37, 17)
_LDCU_SIZE = replace(SIZE, names={i: n for i, n in SIZE.names.items() if i < 7})
_UNPACK = flag("TEXUNPACK", 80)
_BOUND = C("size", index=64, index_file="UR", offset=_INNER, scale=1, bindless=24, signed=True)


def _constants() -> list[Row]:
    rows: list[Row] = []
    one: dict[str, Operand] = {"Rd": rd(width="size", file="UR"), "src": _BOUND}
    for since, until, unpack in (
        (100, 110, (_UNPACK,)), (120, 999, (_UNPACK, flag("HDRUNPACK", 81))),
    ):  # fmt: skip
        rows.append(
            Row("LDCU", 0x1BAC, one, "Rd, src", (_LDCU_SIZE, *unpack), since, until, guard="UP")
        )
    width = const("256")
    rows += [
        Row("LDCU", 0x13AC,
            {**_TWO, "mem": M(base=None, ureg=24, offset=bits(38, 32)), "mask": _UMASK,
             "Pp": ps(87, file="UP")}, "Rd2, Rd, mem, mask, Pp", (width,), since=120,
            guard="UP"),
        Row("LDCU", 0x15AC, {**_TWO, "src": replace(_BOUND, width=8), "mask": _UMASK},
            "Rd2, Rd, src, mask", (width,), since=120, guard="UP"),
        Row("LDCU", 0x1DAC,
            {**_TWO, "src": C(8, index=24, index_file="UR", offset=_INNER, scale=1),
             "mask": _UMASK}, "Rd2, Rd, src, mask", (width,), since=120, guard="UP"),
    ]  # fmt: skip
    return rows


# ---- the uniform datapath of sm_120, and other engines

_H1 = {0: "", 1: "H1"}
_PACKS = (flag("SAT", 74), flag("RELU", 75))
_STRONG = Mod("order", bits(77, 4), {
    7: "STRONG.GPU", 8: "MMIO.GPU", 10: "STRONG.SYS", 12: "MMIO.SYS",
})  # fmt: skip
_L2_U = enum("l2", 83, 2, "EFL2 _ ELL2 -")
_STORED = M(base=None, ureg=24, offset=bits(40, 24), wide=4, hide_urz=True, sign_alone=True)
_NIBBLES = enum("from", 74, 1, "U4x2 S4x2")
_BYTE = Select(bits(80, 2), {0: "", 1: "B1", 2: "B2", 3: "B3"})

OTHERS = [
    *alu("UF2IP", 0x059, "Rd, Ra, Rb, Rc",
         {"Ra": Src(imm="f32"), "Rb": Src(imm="f32"),
          "Rc": Src(imm="f32", select={**_H1, 2: "", 3: "H1"}, select_lo=72)}, forms=(1, 2, 4),
         mods=(enum("type", 76, 2, "U8 S8 - -"), const("F32"),
               enum("round", 78, 2, "_ - - TRUNC"), flag("NTZ", 74), flag("RELU", 75)),
         uniform=True, since=120),
    *alu("UI2IP", 0x04F, "Rd, Ra, Rb, Rc",
         {"Ra": Src(), "Rb": Src(imm="shex"), "Rc": Src(select=_H1, select_lo=72)}, forms=(1, 4),
         mods=(enum("type", 76, 3, "U8 S8 U16 S16 - - - -"), const("S32"), *_PACKS),
         uniform=True, since=120),
    Row("MOV64IUR", 0x554, {"Rd": rd(width=2), "Rb": I(bits(24, 64), bits=64)}, "Rd, Rb",
        since=120),
    Row("MOV64IUR", 0x1F54, {"Rd": rd(width=2), "Rb": R(32, 2, "UR")}, "Rd, Rb", since=120),
    Row("UMEMSETS", 0x13CB,
        {"mem": M(base=None, ureg=24, offset=bits(40, 24)), "Rb": Fixed("UR", 255),
         "Rc": R(64, 1, "UR")}, "mem, Rb, Rc", (const("64"),), since=100, guard="UP",
        fixed=((bits(32, 8), 255),)),
    Row("UGETNEXTWORKID", 0x13CA, {"Ra": R(24, 2, "UR", wrap="[{}], [{next}]")}, "Ra",
        (enum("cast", 72, 1, "SELFCAST BROADCAST"),), since=100, guard="UP"),
    Row("USTGR", 0x1377, {"mem": _STORED, "Rb": R(32, "size", "UR")}, "mem, Rb",
        (const("E.NA"), _L2_U, _LDCU_SIZE, _STRONG), 103, 110, guard="UP"),
    Row("UREDGR", 0x1378, {"mem": _STORED, "Rb": R(32, "type", "UR")}, "mem, Rb",
        (const("E.ADD.NA"), _L2_U, enum("type", 73, 3, "_ S32 64 - - - - -", {"64": 2}), _STRONG),
        110, 110, guard="UP", fixed=((bits(87, 3), 0),)),
]  # fmt: skip

ROWS: list[Row] = [*PAIRS, *_GLOBAL, _COPY, *_constants(), *OTHERS]

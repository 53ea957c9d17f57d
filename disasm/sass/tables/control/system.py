"""Instructions that compilers rarely write: absolute jumps, program counters, the state of warps,
caches by line, predicates in registers, and a few registers of the machine."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import pd, ps, rd
from sassxlate.disasm.sass.tables.control.control import FAR, FAR_90, INC, MODE, MODE_90, STATE
from sassxlate.disasm.sass.tables.spec import (
    SB,
    B,
    Bits,
    C,
    Fixed,
    I,
    L,
    M,
    Mask,
    Mod,
    N,
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

_PP = ps(87)
_ANY = Mod("mode", bits(32, 2), {0: "", 1: "U", 2: "DIV", 3: "CONV"})
_LANES = Mod("mode", bits(32, 2), {2: "DIV", 3: "CONV"})
_BOUND = C(bindless=32)


def _jumps() -> list[Row]:
    """JMP to an absolute address or to one in a constant; JMX and JMXU to a register's."""
    rows: list[Row] = []
    for since, until, field in ((75, 89, FAR), (90, 90, FAR_90), (100, 999, FAR_90)):
        target = L(field, relative=False)
        late = since >= 90
        places: list[tuple[int, Mapping[str, Operand]]] = [(0x94A, {"target": target})]
        if not since >= 100:
            places.append((0xB4A, {"src": C()}))
        for opcode, where in places:
            role = next(iter(where))
            uniform = P(24, 27, "UP")
            lanes = R(24, 1, "UR", inv=82 if since >= 100 else 30)
            rows += [
                Row("JMP", opcode, {**where, "Pp": _PP}, f"Pp?, {role}",
                    (INC, MODE_90 if late else MODE), since, until),
                Row("JMP", opcode & 0x1FF | (0x1400 if opcode == 0x94A else 0x1600),
                    {**where, "Ra": uniform, "Pp": _PP}, f"Pp?, Ra, {role}",
                    (INC, const("U"), *((flag("ANY", 84),) if late else ())), max(since, 80), until,
                    fixed=((bits(32, 2), 1),)),
                Row("JMP", opcode | 0x1000, {**where, "Ra": lanes, "Pp": _PP},
                    f"Pp?, Ra, {role}", (INC, _LANES), max(since, 80), until),
            ]  # fmt: skip
        away = I(field, style="shex", signed=True, scale=4, bits=64, elide=0)
        rows += [
            Row("JMX", 0x94C, {"Ra": R(24, 2), "disp": away, "Pp": _PP}, "Pp?, Ra disp?", (INC,),
                since, until),
            Row("JMXU", 0x1959, {"Ra": R(24, 2, "UR"), "disp": away, "Pp": _PP},
                "Pp?, Ra disp?", (INC, _ANY), since, until),
        ]  # fmt: skip
        rows.append(
            Row("BRXU", 0x1958, {"Ra": R(24, 2, "UR"), "disp": away, "Pp": _PP},
                "Pp?, Ra disp?", (INC, _ANY), since, until)
        )  # fmt: skip
        if since < 100:
            rows.append(
                Row("CALL", 0xB43, {"src": C(width=2), "Pp": _PP}, "Pp?, src",
                    (const("ABS"), flag("NOINC", 86)), since, until)
            )  # fmt: skip
        base: dict[str, Operand] = {"Ra": R(24, 2, "UR"), "Pp": _PP}
        near = L(field, displacement=True)
        far = L(field, relative=False, displacement=True, elide_zero=True)
        rows += [
            Row("CALL", 0x1944, {**base, "disp": near}, "Pp?, Ra disp",
                (const("REL"), flag("NOINC", 86)), since, until),
            Row("CALL", 0x1943, {**base, "disp": far}, "Pp?, Ra disp?",
                (const("ABS"), flag("NOINC", 86)), since, until),
            Row("RET", 0x1950, {**base, "disp": near}, "Pp?, Ra disp",
                (const("REL"), flag("NODEC", 86)), since, until, fixed=((bits(85), 0),)),
            Row("RET", 0x1950, {**base, "disp": far}, "Pp?, Ra disp?",
                (const("ABS"), flag("NODEC", 86)), since, until, fixed=((bits(85), 1),)),
        ]  # fmt: skip
    rows += [
        Row("BRA", 0x1547, {"Ra": P(24, 27, "UP"), "target": L(FAR), "Pp": _PP},
            "Pp?, Ra, target", (INC, const("U")), 80, 89, fixed=((bits(32, 2), 1),)),
    ]  # fmt: skip
    return rows


_RPC = N(bits(31), {0: "Rpc.LO", 1: "Rpc.HI"})
_ADDRESS = I(bits(34, 47), scale=4, bits=64)
_ADDRESS_90 = I(join((16, 8), (34, 47)), scale=4, bits=64)


def _moves() -> list[Row]:
    """The program counter that a call saves, and the continuation of lanes that exit."""
    rows: list[Row] = []
    half: list[tuple[int, Operand, int]] = [
        (0x352, R(32), 999), (0x952, I(bits(32, 32)), 999), (0xB52, C(), 90),
        (0x1B52, _BOUND, 90), (0x1D52, R(32, 1, "UR"), 999),
    ]  # fmt: skip
    rows += [
        Row("RPCMOV", opcode, {"pc": _RPC, "Ra": slot}, "pc, Ra", (const("32"),), until=until)
        for opcode, slot, until in half
    ]
    rows.append(Row("RPCMOV", 0x353, {"Rd": rd(), "pc": _RPC}, "Rd, pc", (const("32"),)))
    whole: list[tuple[int, int, Operand, int]] = [
        (0x354, 0x357, R(32, 2), 999), (0x954, 0x957, _ADDRESS, 89),
        (0x954, 0x957, _ADDRESS_90, 999),
        (0xB54, 0xB57, C(width=2), 90), (0x1B54, 0x1B57, C(width=2, bindless=32), 90),
        (0x1D54, 0x1D57, R(32, 2, "UR"), 999),
    ]  # fmt: skip
    for opcode, state, slot, until in whole:
        since = 90 if slot is _ADDRESS_90 else 75
        if opcode != 0x354:
            rows.append(
                Row("RPCMOV", opcode, {"Ra": slot}, "'Rpc', Ra", (const("64"),), since, until)
            )
        rows.append(
            Row("BMOV", state, {"Ra": slot}, "'ATEXIT_PC', Ra", (const("64"),), since, until)
        )
    return rows


_ANY_STATE = B(bits(24, 5), STATE, write=True, read=False)
_BARRIER = B(bits(16, 4), write=True, read=False)
STATES = [
    *(Row("BMOV", opcode, {"B": _ANY_STATE, "Ra": slot}, "B, Ra",
          (const("32"), flag("PQUAD", 84)), until=until, reserved=(bits(29),))
      for opcode, slot, until in ((0xB56, C(), 90), (0x1B56, _BOUND, 90),
                                  (0x1D56, R(32, 1, "UR"), 999))),
    Row("BMOV", 0xF56, {"B": _ANY_STATE, "Bs": B(bits(16, 4))}, "B, Bs",
        (const("32"), flag("PQUAD", 84)), reserved=(bits(29),)),
    Row("BMOV", 0xF55,
        {"Bd": _BARRIER, "B": B(bits(24, 5), {i: n for i, n in STATE.items() if i >= 16})},
        "Bd, B", (const("32"),), fixed=((bits(84), 0),), reserved=(bits(29),)),
]  # fmt: skip

_CACHE_KIND = enum("cache", 78, 2, "_ U C I")
_LINE = enum("op", 87, 4, "PF1 PF2 WB IV - RS - - - - - - - - - -")
_LINE_80 = enum("op", 87, 4, "PF1 PF2 WB IV - RS - - - PML2 DML2 RML2 - - - -")
_NEXT_TO = M(offset=Bits(()), signed=False, ureg=32)
CACHES = [
    Row("CCTL", 0x1D8F, {"mem": M(offset=Bits(()), signed=False, ureg=32, wide=72)}, "mem",
        (flag("E", 72), _CACHE_KIND, _LINE), until=75, reserved=(bits(80),)),
    Row("CCTL", 0x1D8F, {"mem": M(offset=Bits(()), signed=False, ureg=32, wide=72)}, "mem",
        (flag("E", 72), _CACHE_KIND, _LINE_80), since=80, reserved=(bits(80),)),
    Row("CCTLL", 0x990, {"mem": M()}, "mem", (_LINE,)),
    Row("CCTLL", 0x1D90, {"mem": _NEXT_TO}, "mem", (_LINE,)),
    Row("CCTLT", 0x391, {"Rb": R(32, real=True)}, "Rb", (const("IVTH"),),
        fixed=((bits(85, 2), 1),)),
    Row("CCTLT", 0x391, {}, "", (const("IVALL"),), fixed=((bits(85, 2), 2),),
        ones=(bits(32, 8),)),
    Row("CCTLT", 0xB91, {"bank": I(bits(54, 5)), "offset": I(bits(40, 14))}, "bank, offset",
        (const("IVTH"),), until=90, fixed=((bits(85, 2), 1),)),
    Row("CCTLT", 0x1D91, {"Rb": R(32, 1, "UR")}, "Rb", (const("IVTH"),),
        fixed=((bits(85, 2), 1),)),
]  # fmt: skip

_BYTE = enum("byte", 76, 2, "_ B1 B2 B3")
_BYTE_OF = Select(bits(76, 2), {0: "", 1: "B1", 2: "B2", 3: "B3"})
_SIGN = Select(Bits(()), {0: "SIGN"})
_LUT, _LUT2 = I(bits(72, 8)), I(bits(16, 8))


def _packed() -> list[Row]:
    """Predicates packed into a register under a mask that is not an immediate."""
    rows: list[Row] = []
    masks: list[tuple[int, Operand, int]] = [
        (0x200, R(32, reuse=123), 999), (0xA00, C(), 90), (0x1A00, _BOUND, 90),
        (0x1C00, R(32, 1, "UR"), 999),
    ]  # fmt: skip
    for form, slot, until in masks:
        rows += [
            Row("P2R", form | 3, {"Rd": rd(), "Ra": R(24, reuse=122), "mask": slot},
                "Rd, 'PR', Ra, mask", (_BYTE,), until=until, effect="p2r"),
            Row("R2P", form | 4, {"Ra": R(24, reuse=122, select=_BYTE_OF), "mask": slot},
                "'PR', Ra, mask", until=until, effect="r2p"),
        ]  # fmt: skip
    uniform = R(32, 1, "UR")
    rows += [
        Row("UP2UR", 0x1C83, {"Rd": rd(file="UR"), "Ra": R(24, 1, "UR"), "mask": uniform},
            "Rd, 'UPR', Ra, mask", (_BYTE,), effect="up2ur", guard="UP"),
        Row("UR2UP", 0x1C84, {"Ra": R(24, 1, "UR", select=_BYTE_OF), "mask": uniform},
            "'UPR', Ra, mask", effect="ur2up", guard="UP"),
    ]  # fmt: skip
    return rows


def _signs() -> list[Row]:
    """PLOP3 with the second source, the last two or all three being signs of registers."""
    rows: list[Row] = []
    text = "Pu, Pv, Pp, Pq, Pr, lut, lut2"
    lut = (const("LUT"),)
    seconds: list[tuple[int, Operand, int]] = [
        (0x200, R(32, suffix="SIGN", reuse=123), 999), (0xA00, C(select=_SIGN, gap=True), 90),
        (0x1A00, C(select=_SIGN, gap=True, bindless=32), 90),
        (0x1C00, R(32, 1, "UR", suffix="SIGN"), 999),
    ]  # fmt: skip
    first = R(24, suffix="SIGN", reuse=122)
    third = R(64, suffix="SIGN", reuse=124)
    for form, second, until in seconds:
        for low, a, c in ((0x1D, ps(87), ps(68)), (0x1E, ps(87), third), (0x1F, first, third)):
            if form == 0x200 and low == 0x1F:
                continue  # among the forms that compilers write
            rows.append(
                Row("PLOP3", form | low,
                    {"Pu": pd(81), "Pv": pd(84), "Pp": a, "Pq": second, "Pr": c, "lut": _LUT,
                     "lut2": _LUT2}, text, lut, until=until)
            )  # fmt: skip
    for low, a, c in (
        (0x9D, ps(87, file="UP"), ps(68, file="UP")),
        (0x9E, ps(87, file="UP"), R(64, 1, "UR", suffix="SIGN")),
        (0x9F, R(24, 1, "UR", suffix="SIGN"), R(64, 1, "UR", suffix="SIGN")),
    ):
        rows.append(
            Row("UPLOP3", 0x1200 | low,
                {"Pu": pd(81, "UP"), "Pv": pd(84, "UP"), "Pp": a,
                 "Pq": R(32, 1, "UR", suffix="SIGN"), "Pr": c, "lut": _LUT, "lut2": _LUT2},
                text, lut, guard="UP")
        )  # fmt: skip
    return rows


_NS = enum("mode", 85, 2, "_ WARP RAND RAND.WARP")
_NS_90 = enum("mode", 84, 3, "_ SYNCS WARP WARP.SYNCS RAND RAND.SYNCS RAND.WARP RAND.WARP.SYNCS")
_CONSTANT_SIZE = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 - -", {"64": 2, "128": 4})
_INDEXED_MODE = enum("mode", 78, 2, "_ IL IS ISL")
_UP = ps(87, file="UP")
_ALONE = M(base=None, offset=bits(38, 32), signed=False)
_ALONE_SIGNED = M(base=None, offset=bits(38, 32), sign_alone=True)
_LDCU_SIZE = enum("size", 73, 3, "U8 S8 U16 S16 _ 64 128 -", {"64": 2, "128": 4})

_UCLEA: tuple[tuple[int, R | I], ...] = (
    (0x18BC, I(bits(32, 16))), (0x1CBC, R(32, 1, "UR")),
)  # fmt: skip

MACHINE = [
    Row("PMTRIG", 0x801, {"Pp": _PP, "mask": I(bits(32, 16))}, "Pp?, mask"),
    Row("GETLMEMBASE", 0x3C0, {"Rd": rd(width=2)}, "Rd"),
    Row("SETLMEMBASE", 0x3C1, {"Ra": R(24, 2)}, "Ra"),
    Row("SETCTAID", 0x31F, {"Ra": R(24, "part")}, "Ra",
        (enum("part", 78, 2, "X Y Z _", {"_": 2}),)),
    Row("__HIR0X1E0", 0x94F, {}, "", until=75),
    Row("LEPC", 0x34E, {"Rd": rd(width=2)}, "Rd", since=90),
    Row("ULEPC", 0x13CE, {"Rd": rd(width=2, file="UR")}, "Rd", since=90, guard="UP"),
    Row("ULEPC", 0x19CE, {"Rd": rd(width=2, file="UR"), "target": L(bits(24, 58), 1)},
        "Rd, target", since=90, guard="UP"),
    Row("USETSHMSZ", 0x13C9, {"Rb": R(32, 1, "UR")}, "Rb", since=90, guard="UP"),
    Row("USETSHMSZ", 0x19C9, {"Rb": I(bits(32, 20))}, "Rb", since=90, guard="UP",
        fixed=((bits(72), 0),)),
    Row("USETSHMSZ", 0x19C9, {}, "", (const("FLUSH"),), since=90, guard="UP",
        fixed=((bits(72), 1),), free=(bits(32, 20),)),
    Row("ACQSHMINIT", 0x877, {}, "", since=100),
    *(Row("UCLEA", opcode,
          {"Rd": rd(width=2, file="UR"), "Pu": pd(81, "UP"), "Ra": R(24, 2, "UR"), "Rb": slot,
           "shift": I(bits(73, width))}, "Rd, Pu, Ra, Rb, shift", (), since, until, guard="UP")
      for since, until, width in ((75, 90, 4), (100, 999, 5))
      for opcode, slot in _UCLEA),
    *(Row("LDC", 0x1582,
          {"Rd": rd(width="size"),
           "src": C("size", index=64, offset=bits(38, 16), scale=1, bindless=24, signed=True)},
          "Rd, src", (_CONSTANT_SIZE, *modes), since, until)
      for modes, since, until in (((), 75, 75), ((_INDEXED_MODE,), 80, 999))),
    Row("ULDC", 0x18B8,
        {"Rd": rd(width="size", file="UR"), "mem": _ALONE, "Pp": Fixed("UP")}, "Rd, mem",
        (_CONSTANT_SIZE,), guard="UP", until=90, fixed=((bits(24, 6), 63),),
        ones=(bits(87, 3),), free=(bits(90),)),
    Row("LDCU", 0x19AC,
        {"Rd": rd(width="size", file="UR"), "mem": _ALONE_SIGNED, "Pp": _UP}, "Rd, mem, Pp",
        (_LDCU_SIZE, flag("TEXUNPACK", 80)), guard="UP", since=100,
        fixed=((bits(24, 8), 255),)),
    Row("ULDC", 0x18B8,
        {"Rd": rd(width="size", file="UR"), "mem": M(base=None, ureg=24, offset=bits(38, 32)),
         "Pp": _UP}, "Rd, mem, Pp", (_CONSTANT_SIZE,), guard="UP", until=90),
    Row("LDCU", 0x19AC,
        {"Rd": rd(width="size", file="UR"), "mem": M(base=None, ureg=24, offset=bits(38, 32)),
         "Pp": _UP}, "Rd, mem, Pp", (_LDCU_SIZE, flag("TEXUNPACK", 80)),
        guard="UP", since=100),
    *(Row("DEPBAR", 0x1D1A,
          {"sb": SB(bits(44, 3)), "count": R(32, 1, "UR"), "also": Mask(bits(lo, 6))},
          "sb, count, also?", (const("LE"),), since, until, fixed=((bits(47), 1),))
      for since, until, lo in ((90, 90, 38), (100, 999, 48))),
    Row("WARPSYNC", 0x1B48, {"Ra": _BOUND, "Pp": _PP}, "Pp?, Ra", until=89),
    Row("WARPSYNC", 0x1D48, {"Ra": R(32, 1, "UR"), "Pp": _PP}, "Pp?, Ra", until=89),
    Row("NANOSLEEP", 0x1B5D, {"Rb": _BOUND, "Pp": _PP}, "Pp?, Rb", (_NS,), until=89,
        free=(bits(84),)),
    Row("NANOSLEEP", 0x1D5D, {"Rb": R(32, 1, "UR"), "Pp": _PP}, "Pp?, Rb", (_NS,), until=89,
        free=(bits(84),)),
    Row("NANOSLEEP", 0x1B5D, {"Rb": _BOUND, "Pp": _PP}, "Pp?, Rb", (_NS_90,), 90, 90),
    Row("NANOSLEEP", 0x1D5D, {"Rb": R(32, 1, "UR"), "Pp": _PP}, "Pp?, Rb", (_NS_90,), since=90),
]  # fmt: skip

ROWS: list[Row] = [*_jumps(), *_moves(), *STATES, *CACHES, *_packed(), *_signs(), *MACHINE]

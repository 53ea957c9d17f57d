"""Control flow, convergence, barriers, fences and waits."""

from __future__ import annotations

from collections.abc import Mapping

from sassxlate.disasm.sass.tables.arithmetic.forms import PT_FIXED, pd, ps, rd
from sassxlate.disasm.sass.tables.spec import (
    SB,
    B,
    C,
    Fixed,
    I,
    L,
    Mask,
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

_PP = ps(87)
FAR = bits(34, 48)
FAR_90 = join((16, 8), (34, 48))
INC = enum("count", 85, 2, "_ INC DEC -")


_MODES = ("", "U", "DIV", "CONV")
MODE = Mod("mode", bits(32, 2), dict(enumerate(_MODES)))
# Which lanes take a uniform branch; in the other modes the two bits have no meaning.
_LANES = ("U", "U.NOT_TID0", "U.ANY", "U.ANY.NOT_TID0")
MODE_90 = Mod(
    "mode",
    join((32, 2), (83, 2)),
    {m | n << 2: _LANES[n & 2] if m == 1 else _MODES[m] for m in range(4) for n in range(4)},
)
_MODE_100 = Mod(
    "mode",
    MODE_90.field,
    {m | n << 2: _LANES[n] if m == 1 else _MODES[m] for m in range(4) for n in range(4)},
)


def _branches() -> list[Row]:
    rows: list[Row] = []
    for since, until, field, mode in (
        (75, 89, FAR, MODE), (90, 90, FAR_90, MODE_90), (100, 999, FAR_90, _MODE_100)
    ):  # fmt: skip
        target = L(field)
        base: dict[str, Operand] = {"target": target, "Pp": _PP}
        rows += [
            Row("BRA", 0x947, base, "Pp?, target", (INC, mode), since, until),
            Row("CALL", 0x944, base, "Pp?, target",
                (const("REL"), flag("NOINC", 86)), since, until),
            Row("CALL", 0x943,
                {"target": L(field, relative=False), "Pp": _PP},
                "Pp?, target", (const("ABS"), flag("NOINC", 86)), since, until),
            Row("CALL", 0x344,
                {"disp": L(field, displacement=True), "Pp": _PP, "Ra": R(24, 2)}, "Pp?, Ra disp",
                (const("REL"), flag("NOINC", 86)), since, until),
            Row("CALL", 0x343,
                {"disp": L(field, relative=False, displacement=True, elide_zero=True),
                 "Pp": _PP, "Ra": R(24, 2)}, "Pp?, Ra disp?",
                (const("ABS"), flag("NOINC", 86)), since, until),
            Row("RET", 0x950,
                {"Ra": R(24, 2), "disp": L(field, displacement=True), "Pp": _PP}, "Pp?, Ra disp",
                (const("REL"), Mod("NODEC", bits(86), {0: "", 1: "NODEC"})), since, until,
                fixed=((bits(85), 0),)),
            Row("RET", 0x950,
                {"Ra": R(24, 2), "disp": L(field, relative=False, displacement=True), "Pp": _PP},
                "Pp?, Ra disp", (const("ABS"), flag("NODEC", 86)), since, until,
                fixed=((bits(85), 1),)),
            Row("BRX", 0x949,
                {"Ra": R(24, 2),
                 "disp": I(field, style="shex", signed=True, scale=4, bits=64, elide=0),
                 "Pp": _PP}, "Pp?, Ra disp?", (INC,), since, until),
        ]  # fmt: skip
    for since, until, field, inv in ((80, 89, FAR, 30), (90, 90, FAR_90, 30),
                                     (100, 999, FAR_90, 82)):  # fmt: skip
        rows.append(
            Row("BRA", 0x1947,
                {"Ra": R(24, 1, "UR", inv=inv), "target": L(field), "Pp": _PP},
                "Pp?, Ra, target", (INC, Mod("mode", bits(32, 2), {2: "DIV", 3: "CONV"})),
                since, until)
        )  # fmt: skip
    rows += [
        Row("BRA", 0x1547, {"Ra": P(24, 27, "UP"), "target": L(FAR_90), "Pp": _PP},
            "Pp?, Ra, target",
            (INC, Mod("mode", bits(32, 2), {1: "U"}), flag("ANY", 84)), since=90),
    ]  # fmt: skip
    return rows


_EXIT = (
    enum("mode", 84, 2, "_ KEEPREFCOUNT PREEMPTED -"),
    flag("NO_ATEXIT", 86),
)
_B16 = bits(16, 4)
_RECONVERGE = Mod("mode", bits(72, 2), {0: "", 1: "RELIABLE", 2: "RECONVERGENT"})
STATE: Mapping[int, str] = {
    **{i: f"B{i}" for i in range(16)},
    **{16 + i: f"THREAD_STATE_ENUM.{i}" for i in range(5)},
    21: "TRAP_RETURN_PC.LO", 22: "TRAP_RETURN_PC.HI", 23: "TRAP_RETURN_MASK", 24: "MEXITED",
    25: "MKILL", 26: "MACTIVE", 27: "MATEXIT", 28: "OPT_STACK", 29: "API_CALL_DEPTH",
    30: "ATEXIT_PC.LO", 31: "ATEXIT_PC.HI",
}  # fmt: skip

CONVERGENCE = [
    Row("EXIT", 0x94D, {"Pp": _PP}, "Pp?", _EXIT),
    Row("BSSY", 0x945, {"B": B(_B16, write=True, read=False), "target": L(bits(34, 30)),
                        "Pp": _PP}, "Pp?, B, target", until=90),
    Row("BSSY", 0x945, {"B": B(_B16, write=True, read=False), "target": L(bits(34, 30)),
                        "Pp": _PP}, "Pp?, B, target", (_RECONVERGE,), since=100),
    Row("BSYNC", 0x941, {"B": B(_B16), "Pp": _PP}, "Pp?, B", until=90),
    Row("BSYNC", 0x941, {"B": B(_B16), "Pp": _PP}, "Pp?, B", (_RECONVERGE,), since=100),
    Row("BREAK", 0x942, {"B": B(_B16, write=True), "Pp": _PP}, "Pp?, B", until=90),
    Row("BREAK", 0x942, {"B": B(_B16, write=True), "Pp": _PP}, "Pp?, B", (_RECONVERGE,),
        since=100),
    Row("BMOV", 0x355, {"Rd": rd(), "B": B(bits(24, 5), STATE)}, "Rd, B",
        (const("32"),), fixed=((bits(84), 0),)),
    Row("BMOV", 0x355, {"Rd": rd(), "B": B(bits(24, 5), STATE, write=True)}, "Rd, B",
        (const("32.CLEAR"),), fixed=((bits(84), 1),)),
    Row("BMOV", 0x356, {"B": B(bits(24, 5), STATE, write=True, read=False), "Ra": R(32)},
        "B, Ra", (const("32"), flag("PQUAD", 84))),
    Row("BMOV", 0xF55, {"Bd": B(_B16, write=True, read=False),
                        "B": B(bits(24, 4), write=True)}, "Bd, B", (const("32.CLEAR"),),
        since=80, fixed=((bits(84), 1),), reserved=(bits(28, 2),)),
    Row("BMOV", 0x956, {"B": B(bits(24, 5), STATE, write=True, read=False),
                        "Ra": I(bits(32, 32))}, "B, Ra", (const("32"), flag("PQUAD", 84)),
        reserved=(bits(29),)),
    Row("YIELD", 0x946, {"Pp": _PP}, "Pp?"),
    Row("NOP", 0x918, {}, ""),
    Row("BPT", 0x95C, {"trap": I(bits(34, 3), elide=0)}, "trap?", (const("TRAP"),),
        fixed=((bits(84, 3), 3),)),
    *(Row("BPT", 0x95C, {"trap": I(bits(34, 3), elide=0)}, "trap?", (const(name),), until=until,
          fixed=((bits(84, 3), code),))
      for code, name, until in ((2, "PAUSE", 75), (4, "INT", 999), (5, "DRAIN", 75))),
    Row("ENDCOLLECTIVE", 0x91B, {"Pp": _PP}, "Pp?", since=90),
    Row("LEPC", 0x34E, {"Rd": rd(width=2)}, "Rd", until=89),
    Row("LEPC", 0x94E, {"Rd": rd(width=2), "target": L(bits(24, 58), 1)}, "Rd, target", since=90),
]  # fmt: skip


def _warpsync() -> list[Row]:
    exclusive = flag("EXCLUSIVE", 86)
    exclusive_90 = Mod("mode", bits(85, 2), {0: "", 1: "EXCLUSIVE"})
    return [
        Row("WARPSYNC", 0x348, {"Ra": R(32), "Pp": _PP}, "Pp?, Ra", until=75),
        Row("WARPSYNC", 0x348, {"Ra": R(32), "Pp": _PP}, "Pp?, Ra", (exclusive,), 80, 89),
        Row("WARPSYNC", 0x948, {"Ra": I(bits(32, 32)), "Pp": _PP}, "Pp?, Ra", until=89),
        Row("WARPSYNC", 0xB48, {"Ra": C(), "Pp": _PP}, "Pp?, Ra", until=89),
        Row("WARPSYNC", 0x348, {"Ra": R(24), "Pp": _PP}, "Pp?, Ra", (exclusive_90,), since=90,
            fixed=((bits(86), 0),)),
        Row("WARPSYNC", 0x348, {"Ra": R(24), "target": L(FAR_90), "Pp": _PP},
            "Pp?, Ra, target", (const("COLLECTIVE"),), since=90, fixed=((bits(85, 2), 2),)),
        Row("WARPSYNC", 0x948, {"Pp": _PP}, "Pp?", (const("ALL"),), since=90,
            fixed=((bits(86), 0),)),
        Row("WARPSYNC", 0x948, {"target": L(FAR_90), "Pp": _PP}, "Pp?, target",
            (const("COLLECTIVE.ALL"),), since=90, fixed=((bits(86), 1),)),
    ]  # fmt: skip


_DEFER = Mod("defer", bits(80), {0: "", 1: "DEFER_BLOCKING"})
_BAR_IMM = I(bits(54, 4))
_BAR_COUNT = I(bits(42, 12), elide=0)


def _bar() -> list[Row]:
    """BAR: the barrier is a register (forms 1, 2) or a number; so is the count.

    A count of RZ, all threads, is printed beside a number up to sm_89 only.
    """
    rows: list[Row] = []
    counted: dict[str, Operand] = {"barrier": _BAR_IMM, "count": R(32)}
    shapes: list[tuple[int, dict[str, Operand], str, int, int]] = [
        (0xB1D, {"barrier": _BAR_IMM, "count": _BAR_COUNT}, "barrier, count?", 75, 999),
        (0x31D, {"barrier": R(32), "count": R(32)}, "barrier, count", 75, 999),
        (0x51D, {"barrier": R(32), "count": _BAR_COUNT}, "barrier, count?", 75, 999),
        (0x91D, counted, "barrier, count", 75, 89),
        (0x91D, counted, "barrier, count?", 90, 999),
    ]
    red = enum("red", 74, 2, "POPC AND OR -")
    for opcode, operands, text, since, until in shapes:
        rows += [
            Row("BAR", opcode, {**operands, "Pp": PT_FIXED}, text,
                (const("SYNC"), _DEFER), since, until,
                fixed=((bits(77, 3), 0),), free=(bits(87, 4),)),
            Row("BAR", opcode, {**operands, "Pp": PT_FIXED},
                text.replace("count?", "count"),
                (const("ARV"),), since, until, fixed=((bits(77, 3), 1),), free=(bits(87, 4),)),
            Row("BAR", opcode, {**operands, "Pp": _PP}, f"{text}, Pp",
                (const("RED"), red, _DEFER), since, until, fixed=((bits(77, 3), 2),)),
            Row("BAR", opcode, {**operands, "Pp": _PP}, f"{text.replace('?', '')}, Pp",
                (const("SCAN"),), since, until, fixed=((bits(77, 3), 3),)),
        ]  # fmt: skip
    rows.append(
        Row("BAR", 0xB1D, {"barrier": Fixed("int", 0), "count": Fixed("int", 0), "Pp": PT_FIXED},
            "", (const("SYNCALL"), _DEFER), until=87, fixed=((bits(77, 3), 4),),
            free=(bits(87, 4),))
    )  # fmt: skip
    return rows


_SCOPE = enum("scope", 76, 3, "CTA SM GPU SYS - VC - -")
_SEM = enum("sem", 79, 2, "SC ALL _ MMIO")
_NS = (enum("mode", 85, 2, "_ WARP RAND RAND.WARP"),)
_NS_90 = (*_NS, flag("SYNCS", 84))
_SCOPE_90 = enum("scope", 76, 3, "CTA SM GPU SYS - VC CTA.PARTIAL -")

WAITS = [
    Row("MEMBAR", 0x992, {}, "", (enum("sem", 79, 2, "SC ALL _ -"), _SCOPE,
                                  flag("MMIO", 72)), until=75),
    Row("MEMBAR", 0x992, {}, "", (_SEM, _SCOPE), since=80, until=89),
    Row("MEMBAR", 0x992, {}, "", (_SEM, _SCOPE_90), since=90, fixed=((bits(73), 0),)),
    Row("MEMBAR", 0x992, {}, "", (const("VC.ASYNC"),), since=90,
        fixed=((bits(73), 1), (bits(76, 3), 5)), free=(bits(79, 2),)),
    Row("DEPBAR", 0x91A, {"sb": SB(bits(44, 3)), "count": I(bits(38, 6)),
                          "also": Mask(bits(32, 6))}, "sb, count, also?", (const("LE"),),
        fixed=((bits(47), 1),)),
    Row("DEPBAR", 0x91A, {"also": Mask(bits(32, 6))}, "also?", fixed=((bits(47), 0),)),
    *(row for mods, since, until in ((_NS, 75, 89), (_NS_90, 90, 999)) for row in (
        Row("NANOSLEEP", 0x35D, {"Rb": R(32), "Pp": _PP}, "Pp?, Rb", mods, since, until),
        Row("NANOSLEEP", 0x95D, {"Rb": I(bits(32, 32)), "Pp": _PP}, "Pp?, Rb", mods, since,
            until),
        Row("NANOSLEEP", 0xB5D, {"Rb": C(), "Pp": _PP}, "Pp?, Rb", mods, since, min(until, 90)),
    )),
    Row("NANOSLEEP", 0x95D, {"Pp": _PP}, "Pp?", (const("CLEAR"),), since=80,
        fixed=((bits(83), 1),), free=(bits(84, 3),)),
    Row("B2R", 0x31C, {"Rd": rd(), "Pu": pd(81)}, "Rd, Pu?", (const("RESULT"),),
        fixed=((bits(78, 2), 1),)),
    Row("B2R", 0x31C, {"Rd": rd(), "barrier": I(bits(54, 4))}, "Rd, barrier",
        fixed=((bits(78, 2), 0),)),
    Row("B2R", 0x31C, {"Rd": rd()}, "Rd", (const("WARP"),), fixed=((bits(78, 2), 2),)),
    *(Row("FENCE", 0x3C6, {}, "", (const("VIEW.ASYNC"), space), since, until)
      for space, since, until in (
          (enum("space", 72, 1, "S G"), 90, 90), (enum("space", 72, 2, "S G T -"), 100, 110),
          (enum("space", 72, 2, "S G - -"), 120, 999),
      )),
]  # fmt: skip

_SHFL = enum("mode", 58, 2, "IDX UP DOWN BFLY")
_LANE, _CLAMP = I(bits(53, 5)), I(bits(40, 13))


def _warp() -> list[Row]:
    rows: list[Row] = []
    for opcode, lane, clamp in (
        (0x389, R(32), R(64)), (0x589, R(32), _CLAMP), (0x989, _LANE, R(64)),
        (0xF89, _LANE, _CLAMP),
    ):  # fmt: skip
        rows.append(
            Row("SHFL", opcode, {"Pu": pd(81), "Rd": rd(), "Ra": R(24), "Rb": lane, "Rc": clamp},
                "Pu, Rd, Ra, Rb, Rc", (_SHFL,))
        )  # fmt: skip
    size = enum("type", 73, 1, "_ U64", {"U64": 2})
    rows += [
        Row("MATCH", 0x3A1, {"Pu": PT_FIXED, "Rd": rd(), "Ra": R(24, "type")}, "Rd, Ra",
            (const("ANY"), size), fixed=((bits(79), 1),), ones=(bits(81, 3),)),
        Row("MATCH", 0x3A1, {"Pu": pd(81), "Rd": rd(), "Ra": R(24, "type")}, "Pu, Rd, Ra",
            (const("ALL"), size), fixed=((bits(79), 0),)),
        Row("REDUX", 0x3C4, {"Rd": rd(file="UR"), "Ra": R(24)}, "Rd, Ra",
            (enum("op", 78, 3, "_ OR XOR SUM MIN MAX - -"), flag("S32", 73)), since=80),
        Row("CREDUX", 0x2CC, {"Rd": rd(file="UR"), "Ra": R(24, reuse=122)}, "Rd, Ra",
            (enum("op", 78, 2, "MAX MAXABS MIN MINABS"), enum("type", 73, 2, "_ S32 F32 -"),
             flag("NAN", 77)), since=100, until=103),
    ]  # fmt: skip
    return rows


ROWS: list[Row] = [*_branches(), *CONVERGENCE, *_warpsync(), *_bar(), *WAITS, *_warp()]

"""Listings whose lanes record, at each event, which lanes run with them and the values of B0 to B3.

A kernel is run by one warp.  Lane i reads its data from ``a[i]`` to R8, has its number in R0, and
writes 32 bytes an event, at R2, from ``out + 2048 i`` on: the event's number, the lanes that run,
the clock, B0 to B3 and R16.  R14 is a stack of its own, from ``out + 65536 + 2048 i`` on.
"""

from __future__ import annotations

from collections.abc import Iterable

EVENTS = 63  # at most, of a lane
WIDTH = 2048  # bytes per lane
_HEAD = """
S2R R0, SR_LANEID
ULDC.64 UR4, c[0x0][0x210]
MOV R14, UR4
MOV R15, UR5
IMAD.WIDE R14, R0, 0x4, R14
ULDC.64 UR6, c[0x0][0x208]
LDG.E R8, desc[UR6][R14.64]
ULDC.64 UR4, c[0x0][0x220]
MOV R2, UR4
MOV R3, UR5
IMAD.WIDE R2, R0, 0x800, R2
IADD3 R14, R2, 0x10000, RZ
MOV R15, R3
MOV R16, RZ
MOV R17, RZ
MOV R18, RZ
MOV R41, RZ
MOV R43, RZ
BMOV.32 B0, R16
BMOV.32 B1, R16
BMOV.32 B2, R16
BMOV.32 B3, R16
WARPSYNC.ALL
"""
_TAIL = """
EXIT
.END:
BRA `(.END)
"""
_LATE = frozenset("S2R LDC LDG CS2R".split())


def _event(number: int, heavy: bool) -> list[str]:
    """``heavy``: the barriers are read as well."""
    lines = [f"MOV R20, {number:#x}", "VOTE.ANY R21, PT, PT", "CS2R.32 R22, SR_CLOCKLO"]
    if heavy:
        lines += [f"BMOV.32 R{23 + k}, B{k}" for k in range(4)]
        lines += ["MOV R27, R16", "STG.E.128 desc[UR6][R2.64], R20"]
        lines += ["STG.E.128 desc[UR6][R2.64+0x10], R24"]
    else:
        lines += ["MOV R23, R16", "STG.E.128 desc[UR6][R2.64], R20"]
    return [*lines, "IADD3 R2, R2, 0x20, RZ"]


def expanded(lines: Iterable[str], heavy: bool) -> list[str]:
    """The whole kernel; a line ``EV`` is an event, numbered from 1 in the order of the lines."""
    out = [line for line in _HEAD.splitlines() if line]
    number = 0
    for line in lines:
        if line == "EV":
            number += 1
            out += _event(number, heavy)
        else:
            out.append(line)
    return out + [line for line in _TAIL.splitlines() if line]


def scheduled(lines: Iterable[str]) -> list[str]:
    """Each instruction waits for all before it."""
    out: list[str] = []
    for line in lines:
        if line.endswith(":"):
            out.append(line)
            continue
        words = line.split()
        at = 1 if words[0].startswith("@") else 0
        name, target = words[at], words[at + 1] if len(words) > at + 1 else ""
        head, read, write = name.partition(".")[0], "-", "-"
        if head == "BMOV":
            read, write = ("-", "0") if target.startswith("R") else ("1", "-")
        elif head in _LATE:
            write = "0"
        elif head == "STG":
            read = "1"
        out.append(f"[B012345:R{read}:W{write}:Y:S15] {line} ;")
    return out

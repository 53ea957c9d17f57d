"""Joins the two shifts of a pair of registers to one of 64 bits.

SASS shifts 64 bits in two steps: one word alone, and one that gets bits of the other.  LLVM makes
the second a funnel shift and does not see that both are one v_lshlrev_b64 or v_lshrrev_b64; asked
for that before its passes, it takes the shift apart again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sassxlate.lowering.tier.compiler.ssa import LABEL, NAME

_RESULT = re.compile(rf"  ({NAME}) = ")
_FUNNEL = re.compile(
    rf"  ({NAME}) = (?:tail )?call i32 @llvm\.fshl\.i32\(i32 ({NAME}), i32 ({NAME}), i32 (\d+)\)"
    r"(.*)"
)
_SHIFT = re.compile(
    rf"  ({NAME}) = (shl|lshr|ashr)(?: nuw| nsw| exact)* i32 ({NAME}), (\d+)(?=,|$)"
)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The lines of the two shifts, the words of the value, and the one operation's."""

    funnel: int
    alone: int
    high: str
    low: str
    op: str
    count: int
    names: tuple[str, str]  # of the result's lower and upper word


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first line and the last of each block of all functions."""
    start = None
    for at, line in enumerate(lines):
        if line.startswith("define "):
            start = at + 1
        elif start is not None and (LABEL.match(line) or line == "}"):
            yield start, at
            start = None if line == "}" else at + 1


def _pairs(lines: Sequence[str], start: int, end: int) -> Iterator[_Pair]:
    shifts: dict[tuple[str, str, int], tuple[int, str]] = {}
    for at in range(start, end):
        if found := _SHIFT.match(lines[at]):
            shifts.setdefault((found[2], found[3], int(found[4])), (at, found[1]))
    for at in range(start, end):
        funnel = _FUNNEL.match(lines[at])
        if funnel is None:
            continue
        name, high, low, left = funnel[1], funnel[2], funnel[3], int(funnel[4])
        if high == low or not 0 < left < 32:  # a rotation is one operation
            continue
        for op, word, count in (("shl", low, left), ("lshr", high, 32 - left),
                                ("ashr", high, 32 - left)):  # fmt: skip
            if (op, word, count) in shifts:
                alone, other = shifts.pop((op, word, count))
                names = (other, name) if op == "shl" else (name, other)
                yield _Pair(at, alone, high, low, op, count, names)
                break


def _place(pair: _Pair, lines: Sequence[str], start: int, defined: Mapping[str, int]) -> int | None:
    """The line where both words are there and no result was wanted yet; None if there is none."""
    first, last = sorted((pair.funnel, pair.alone))
    if all(defined.get(word, start - 1) < first for word in (pair.high, pair.low)):
        return first
    early = _RESULT.match(lines[first])
    assert early is not None
    used = re.compile(rf"{re.escape(early[1])}(?![-\w.$])")
    return None if any(used.search(line) for line in lines[first + 1 : last + 1]) else last


def _written(pair: _Pair, number: int, note: str) -> list[str]:
    p, (low, high) = f"%pair.{number}", pair.names
    return [
        f"  {p}.l = insertelement <2 x i32> poison, i32 {pair.low}, i64 0{note}",
        f"  {p}.w = insertelement <2 x i32> {p}.l, i32 {pair.high}, i64 1{note}",
        f"  {p}.i = bitcast <2 x i32> {p}.w to i64{note}",
        f"  {p}.s = {pair.op} i64 {p}.i, {pair.count}{note}",
        f"  {p}.v = bitcast i64 {p}.s to <2 x i32>{note}",
        f"  {low} = extractelement <2 x i32> {p}.v, i64 0{note}",
        f"  {high} = extractelement <2 x i32> {p}.v, i64 1{note}",
    ]


def _note(line: str) -> str:
    """The debug location of a line."""
    found = re.search(r", !dbg !\d+", line)
    return found[0] if found else ""


def _rename(lines: list[str], at: int, names: Sequence[str]) -> None:
    """Gives values of a function names instead of numbers, which must follow the lines' order."""
    if not names:
        return
    start = max(line for line in range(at) if lines[line].startswith("define "))
    end = lines.index("}", at)
    numbers = "|".join(name[1:] for name in names)
    value = re.compile(rf"%({numbers})(?![-\w.$])")
    lines[start:end] = [value.sub(r"%value.\1", line) for line in lines[start:end]]


def joined(text: str) -> str:
    """A module as LLVM prints it after its passes, with such pairs as shifts of 64 bits."""
    lines = text.split("\n")
    if "@llvm.fshl.i32(" not in text:
        return text
    number = 0
    for start, end in reversed(list(_blocks(lines))):
        defined = {m[1]: at for at in range(start, end) if (m := _RESULT.match(lines[at]))}
        new: dict[int, list[str]] = {}
        gone = set[int]()
        for pair in _pairs(lines, start, end):
            at = _place(pair, lines, start, defined)
            if at is None:
                continue
            new[at] = _written(pair, number, _note(lines[pair.funnel]))
            defined |= dict.fromkeys(pair.names, at)  # for pairs of which they are words
            gone |= {pair.funnel, pair.alone}
            number += 1
        body: list[str] = []
        for at in range(start, end):
            body += new.get(at, [] if at in gone else [lines[at]])
        lines[start:end] = body
        _rename(lines, start, sorted(name for name in defined if new and name[1:].isdigit()))
    return "\n".join(lines)


__all__ = ["joined"]

"""The words of a table in shared memory at the ends of an unrolled search: loaded at last.

A search that keeps the words at its ends, too, chooses them in each turn as it chooses the ends.
At last it takes the table's first or last word if an end never moved, and so did not get a word.
What it has then is the word at the end, in every case: one load instead of a choice in each turn.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from sassxlate.lowering.tier.compiler.ssa import NAME, Function, keeps_memory

_SHARED: Final = r"ptr addrspace\(3\)"
_LOAD: Final = re.compile(rf"  {NAME} = load i32, {_SHARED} ({NAME}), align \d+(?=,|$)")
_CONSTANT: Final = re.compile(
    rf"  {NAME} = load i32, {_SHARED} (?:null|inttoptr \(i32 (\d+) to {_SHARED}\)), align \d+"
    r"(?=,|$)"
)
_BESIDE: Final = re.compile(
    rf"  {NAME} = getelementptr (?:\w+ )*i8, {_SHARED} ({NAME}), i32 (\d+)(?=,|$)"
)
_TURNS: Final = 3  # choices that it takes the place of


@dataclass(frozen=True, slots=True)
class Word:
    """A choice that is the table's word at an ``end``: the line, and the table's address; its words
    are at places shifted by ``count``."""

    at: int
    name: str
    end: str
    table: int
    count: int


class _Tables:
    """What is loaded in a function."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def at(self, name: str) -> tuple[str, int, int] | None:
        """The place that a load's address is made of (empty for none), how it is shifted, and the
        number that is added."""
        value = self.function.values.get(name)
        if value is None or value.op != "load":
            return None
        line = self.function.lines[value.at]
        if found := _CONSTANT.match(line):
            return "", 0, int(found[1] or 0)
        loaded = _LOAD.match(line)
        pointer = self.function.values.get(loaded[1]) if loaded else None
        offset = 0
        if pointer is not None and pointer.op == "getelementptr":
            beside = _BESIDE.match(self.function.lines[pointer.at])
            if beside is None:
                return None
            pointer, offset = self.function.values.get(beside[1]), int(beside[2])
        if pointer is None or pointer.op != "inttoptr" or pointer.type != "i32":
            return None
        shift = self.function.values.get(pointer.args[0])
        if shift is None or shift.op != "shl" or not shift.args[1].isdigit():
            return None
        return shift.args[0], int(shift.args[1]), offset


class _Proof:
    """Whether a value is the word at a place, or the place is the one at which none is known."""

    def __init__(self, function: Function, unknown: str) -> None:
        self.function, self.unknown = function, unknown
        self.tables = _Tables(function)
        self.table: tuple[int, int] | None = None  # the count, and the address
        self.constants: list[tuple[int, int]] = []  # a place, and an address that is loaded there
        self.loads: list[int] = []

    def word(self, value: str, place: str) -> int:
        """How many choices; 0 if it is not so."""
        if place == self.unknown:
            return 1
        chosen, where = (self.function.values.get(name) for name in (value, place))
        if (
            chosen is not None and where is not None
            and chosen.op == where.op == "select" and chosen.args[0] == where.args[0]
        ):  # fmt: skip
            counts = [
                self.word(*pair) for pair in zip(chosen.args[1:], where.args[1:], strict=True)
            ]
            return 1 + max(counts) if all(counts) else 0
        loaded = self.tables.at(value)
        if loaded is None or chosen is None:
            return 0
        self.loads.append(chosen.at)
        if place.isdigit() and not loaded[0]:
            self.constants.append((int(place), loaded[2]))
            return 1
        if loaded[0] != place or self.table not in (None, loaded[1:]):
            return 0
        self.table = loaded[1], loaded[2]
        return 1

    def holds(self) -> bool:
        """Whether words at places that are numbers are the table's, too."""
        if self.table is None:
            return False
        count, table = self.table
        return all(table + (place << count) == at for place, at in self.constants)


def words(function: Function) -> list[Word]:
    """Such choices, with no change of memory since the first of the words was loaded."""
    found: list[Word] = []
    starts = function.starts()
    for name, value in function.values.items():
        if value.op != "select" or value.type != "i32":
            continue
        test = function.values.get(value.args[0])
        if test is None or test.op != "icmp eq" or not test.args[1].isdigit():
            continue
        (end, unknown), (known, carried) = test.args, value.args[1:]
        if function.uses.get(carried, ()) != [value.at]:
            continue
        proof = _Proof(function, unknown)
        first = proof.tables.at(known)
        if first is None or first[0] or proof.word(carried, end) <= _TURNS:
            continue
        proof.constants.append((int(unknown), first[2]))
        proof.loads.append(function.values[known].at)
        since = min(proof.loads)
        if (
            proof.table is not None and proof.holds() and since < value.at
            and bisect_right(starts, since) == bisect_right(starts, value.at)
            and all(keeps_memory(line) for line in function.lines[since : value.at])
        ):  # fmt: skip
            count, table = proof.table
            found.append(Word(value.at, name, end, table, count))
    return found


def load(function: Function, word: Word, place: str, number: int, floor: int | None) -> None:
    """Loads a word at a place and a number, but not below ``floor``, where it is needed."""
    name, at = f"%word.{word.at}", word.at
    table, step = word.table, number << word.count
    function.insert(at, f"{name}.s = shl i32 {place}, {word.count}")
    last = f"{name}.s"
    if floor is not None:
        given = f"i32 {name}.e, i32 {floor << word.count}"
        function.insert(at, f"{name}.e = add i32 {last}, {step}")
        function.insert(at, f"{name}.m = call i32 @llvm.smax.i32({given})")
        last = f"{name}.m"
    elif table + step < 0:
        function.insert(at, f"{name}.e = add i32 {last}, {step}")
        last = f"{name}.e"
    else:
        table += step
    shared = "ptr addrspace(3)"
    function.insert(at, f"{name}.p = inttoptr i32 {last} to {shared}")
    function.insert(at, f"{name}.w = getelementptr i8, {shared} {name}.p, i32 {table}")
    function.replace(at, f"load i32, {shared} {name}.w, align 4")


__all__ = ["Word", "load", "words"]

"""The registers that the instructions of a section read and write, as columns."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.codec.columns import U64, Columns, Gather, Indices, word_of
from sassxlate.disasm.sass.codec.decode import CompiledRow, index
from sassxlate.disasm.sass.codec.operand_bits import settling_mods, touching_bits
from sassxlate.disasm.sass.instruction import Instruction, RegRef

FILES: Final[tuple[Literal["R", "UR", "P", "UP", "B"], ...]] = ("R", "UR", "P", "UP", "B")
_REMEMBERED = 1 << 16  # most entries of a dictionary before it is cleared


@dataclass(frozen=True, slots=True)
class Accesses:
    """One row per operand and run of registers: ``count`` registers from ``first`` of a file.

    ``word`` is the instruction's index in the section, ascending; ``file`` an index into
    :data:`FILES`.  RZ and PT never occur; a register may occur twice for one instruction.
    """

    word: NDArray[np.int32]
    file: NDArray[np.uint8]
    first: NDArray[np.uint8]
    count: NDArray[np.uint8]
    write: NDArray[np.bool_]


# (file, first, count, write)
_Run = tuple[int, int, int, bool]


def _runs(reads: Iterable[RegRef], writes: Iterable[RegRef]) -> tuple[_Run, ...]:
    """Sets of registers as runs."""
    out: list[_Run] = []
    for write, refs in ((False, reads), (True, writes)):
        for file, at in sorted((FILES.index(r.file), r.index) for r in refs):
            if out:
                known, first, count, kind = out[-1]
                if (known, first + count, kind) == (file, at, write):
                    out[-1] = (file, first, count + 1, write)
                    continue
            out.append((file, at, 1, write))
    return tuple(out)


class _Table:
    """Distinct lists of runs by number."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[tuple[_Run, ...], int] = {}
        self._lists: list[tuple[_Run, ...]] = []

    def __len__(self) -> int:
        return len(self._lists)

    def number(self, runs: tuple[_Run, ...]) -> int:
        """The number of a list of runs."""
        with self._lock:
            known = self._numbers.setdefault(runs, len(self._lists))
            if known == len(self._lists):
                self._lists.append(runs)
            return known

    def flat(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """All runs, and the start of each list in them, with the end of the last."""
        lists = self._lists[:]
        runs = [run for some in lists for run in some] or [(0, 0, 0, False)]
        counts = np.array([0, *map(len, lists)], np.int64)
        return np.array(runs, np.uint8), np.cumsum(counts)


_tables = [_Table()]


def _table() -> _Table:
    """The present table; one that has grown too large is replaced."""
    if len(_tables[0]) > _REMEMBERED:
        _tables[0] = _Table()
    return _tables[0]


class _Toucher:
    """The registers that one operand of a form accesses, by the bits that decide it."""

    def __init__(self, row: CompiledRow, at: int) -> None:
        self._row = row
        self._at = at
        slot = list(row.row.operands.values())[at]
        mask = touching_bits(slot, row.generation)
        self.none = not mask
        mods = settling_mods(slot)
        for mod in row.row.mods:
            if mods is None or mod.name in mods:
                mask |= mod.field.mask
        self._gather = Gather(mask)
        self._seen: tuple[_Table, dict[int, int]] = (_tables[0], {})

    def numbers(self, table: _Table, low: U64, high: U64) -> list[int]:
        """The lists of runs that the words access."""
        seen = self._seen[1]
        if self._seen[0] is not table or len(seen) > _REMEMBERED:
            seen = {}
            self._seen = table, seen
        keys = self._gather(low, high).tolist()
        out = list(map(seen.get, keys))
        if None in out:
            for i, number in enumerate(out):
                if number is None:
                    number = seen.get(keys[i])
                    if number is None:
                        slot = self._row.variant(word_of(low, high, i)).slots[self._at]
                        value = slot.decode(word_of(low, high, i), 0)
                        number = table.number(_runs(value.reads, value.writes))
                        seen[keys[i]] = number
                    out[i] = number
        return out  # type: ignore[return-value]


@cache
def _touchers(generation: int, number: int) -> tuple[_Toucher, ...]:
    row = index(generation).form(number)
    found = (_Toucher(row, at) for at in range(len(row.row.operands)))
    return tuple(toucher for toucher in found if not toucher.none)


def _guards(table: _Table, row: CompiledRow, low: U64) -> NDArray[np.int64]:
    file = row.row.guard
    found = [table.number(_runs([RegRef(file, i)], ()) if i < 7 else ()) for i in range(8)]
    numbers = np.array(found, np.int64)
    return numbers[(low >> np.uint64(12) & np.uint64(7)).astype(np.intp)]


def _whole(table: _Table, row: CompiledRow, columns: Columns, where: Indices) -> list[int]:
    """The accesses of forms that access more than their operands."""
    out: list[int] = []
    for at in where.tolist():
        found: Instruction = row.decode(columns.word(at), 0, columns.arch, False)
        out.append(table.number(_runs(found.reads, found.writes)))
    return out


def accesses(columns: Columns, start: int, stop: int) -> Accesses:
    """The accesses of words; indices count from ``start``."""
    rows, table = index(columns.generation), _table()
    words: list[Indices] = []
    lists: list[NDArray[np.int64]] = []
    for number, where in columns.by_form(start, stop):
        if number < 0:
            continue
        row = rows.form(number)
        low, high = columns.words[where, 0], columns.words[where, 1]
        if row.row.effect:
            found = [np.array(_whole(table, row, columns, where))]
        else:
            found = [
                np.array(t.numbers(table, low, high)) for t in _touchers(row.generation, number)
            ]
            found.append(_guards(table, row, low))
        lists += found
        words += [where - start] * len(found)
    word = np.concatenate(words) if words else np.zeros(0, np.int64)
    which = np.concatenate(lists) if lists else np.zeros(0, np.int64)
    flat, starts = table.flat()
    counts = (starts[1:] - starts[:-1])[which]
    order = np.repeat(np.arange(len(which)), counts)
    inside = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    runs = flat[starts[which[order]] + inside]
    by_word = np.argsort(word[order], kind="stable")
    runs = runs[by_word]
    return Accesses(
        word[order][by_word].astype(np.int32),
        runs[:, 0].copy(),
        runs[:, 1].copy(),
        runs[:, 2].copy(),
        runs[:, 3].astype(np.bool_),
    )

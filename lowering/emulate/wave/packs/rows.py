"""Rows of dwords: what each of eight lanes loads side by side, turned into a vector for each dword.

A gather takes a dword of each lane; eight loads take all of a row each, in a tenth of the host's
operations, and 24 to 32 shuffles turn 8 rows of 16 dwords.  It pays where the dwords are indices
of a table, too: the gather from the table is then done for rows, 16 dwords at a time, and its
results are turned instead (`loads`).  SpMV's blocks take 0.7 of the time so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.lowering.emulate.wave.packs.state import LANES, V32, PackedFunction
from sassxlate.lowering.llvm.ir_text import Val

V512 = "<16 x i32>"
_WIDTH = 16  # dwords of a vector of the host
_LINE = 64  # bytes of a line of the host's caches


@dataclass(frozen=True, slots=True)
class Half:
    """The eight lanes' dwords that are the lower half of a vector of 16, or the upper one."""

    both: str
    upper: bool

    def take(self, fn: PackedFunction) -> Val:
        first = LANES if self.upper else 0
        index = ", ".join(f"i32 {first + lane}" for lane in range(LANES))
        text = f"shufflevector {V512} {self.both}, {V512} poison, <{LANES} x i32> <{index}>"
        return Val(fn.emit(text), 32, True, None, LANES)


def _lanes_of(dwords: int) -> list[tuple[int, ...]]:
    """Which lanes' rows of so many dwords each vector has, in the order that `turned` wants."""
    if dwords == 16:
        return [(lane,) for lane in range(8)]
    if dwords == 8:
        return [(lane, lane + 4) for lane in range(4)]
    return [(0, 2, 4, 6), (1, 3, 5, 7)]


def columns(dwords: int) -> list[tuple[int, int]]:
    """Which columns' eight dwords each vector of `turned` has, the lower half's first."""
    if dwords == 16:
        return [(8 * q + j, 8 * q + 4 + j) for j in range(4) for q in (0, 1)]
    return [(j, j + 4) for j in range(4)] if dwords == 8 else [(0, 1), (2, 3)]


def load(fn: PackedFunction, where: Sequence[str], dwords: int, offset: int) -> list[str]:
    """The vectors of the rows that are so many bytes beyond the eight lanes' pointers."""
    out: list[str] = []
    for lanes in _lanes_of(dwords):
        starts = [where[lane] for lane in lanes]
        if offset:
            starts = [fn.emit_new(f"getelementptr i8, ptr {at}, i64 {offset}") for at in starts]
        parts = [fn.emit_new(f"load <{dwords} x i32>, ptr {at}, align 4") for at in starts]
        width = dwords
        while len(parts) > 1:
            index = ", ".join(f"i32 {n}" for n in range(2 * width))
            type_ = f"<{width} x i32>"
            parts = [
                fn.emit_new(
                    f"shufflevector {type_} {a}, {type_} {b}, <{2 * width} x i32> <{index}>"
                )
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            width *= 2
        out += parts
    return out


def wait(fn: PackedFunction, vectors: Sequence[str]) -> None:
    """Keeps LLVM from loading rows where it turns them: after all gathers, so that what is not in
    the cache is waited for."""
    fn.module.declare("void @llvm.fake.use(...)")
    args = ", ".join(f"{V512} {one}" for one in vectors)
    fn.do(f"call void (...) @llvm.fake.use({args})")


def prefetch(fn: PackedFunction, start: str, first: str, lines: int) -> None:
    """Reads so many lines ahead for a pack whose first lane's number is ``first``; ``start`` is
    where the first pack does.  A processor reads a few lines ahead of what is read line after line;
    those of a wave are wanted at once, and then none for long."""
    fn.module.declare("void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    base = fn.emit(f"inttoptr i64 {start} to ptr")
    number = fn.emit(f"zext i32 {first} to i64")
    by = fn.emit_new(f"mul i64 {number}, {_LINE * lines // LANES}")
    at = fn.emit_new(f"getelementptr i8, ptr {base}, i64 {by}")
    for n in range(lines):
        line = fn.emit_new(f"getelementptr i8, ptr {at}, i64 {_LINE * n}")
        fn.do(f"call void @llvm.prefetch.p0(ptr {line}, i32 0, i32 3, i32 1)")


def _shuffled(fn: PackedFunction, a: str, b: str, index: Sequence[int], name: str = "") -> str:
    numbers = ", ".join(f"i32 {n}" for n in index)
    text = f"shufflevector {V512} {a}, {V512} {b}, <{_WIDTH} x i32> <{numbers}>"
    if not name:
        return fn.emit_new(text)
    fn.do(f"{name} = {text}")
    return name


def _between(fn: PackedFunction, a: str, b: str, unit: int, *, upper: bool) -> str:
    """Elements of so many dwords of a and b by turns, of a half of each 128 bits."""
    index: list[int] = []
    for lane in range(0, _WIDTH, 4):
        for n in range(0, 2, unit):
            at = lane + 2 * upper + n
            index += [*range(at, at + unit), *range(_WIDTH + at, _WIDTH + at + unit)]
    return _shuffled(fn, a, b, index)


def turned(fn: PackedFunction, rows: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    """Vectors of two columns each (`columns`), of the vectors that `load` makes; by ``names``."""
    names = names or [""] * len(rows)
    dwords = 2 * len(rows)
    made = [
        _between(fn, a, b, 1, upper=upper)
        for a, b in zip(rows[::2], rows[1::2], strict=True)
        for upper in (False, True)
    ]
    if dwords == 4:  # of each 128 bits two lanes' dwords of two columns
        index = [2 * n + d for first in (0, 1) for n in range(first, 8, 2) for d in (0, 1)]
        return [
            _shuffled(fn, a, "poison", index, name) for a, name in zip(made, names, strict=True)
        ]
    four = [
        _between(fn, made[at + i], made[at + 2 + i], 2, upper=upper)
        for at in range(0, len(made), 4)
        for i in (0, 1)
        for upper in (False, True)
    ]
    if dwords == 8:
        index = [n for first in (0, 8, 4, 12) for n in range(first, first + 4)]
        return [
            _shuffled(fn, a, "poison", index, name) for a, name in zip(four, names, strict=True)
        ]
    out: list[str] = []
    for j in range(4):
        for q in (0, 1):
            starts = (8 * q, _WIDTH + 8 * q, 8 * q + 4, _WIDTH + 8 * q + 4)
            index = [n for first in starts for n in range(first, first + 4)]
            out.append(_shuffled(fn, four[j], four[4 + j], index, names[len(out)]))
    return out


def halves(dwords: int, vectors: Sequence[str]) -> list[Half]:
    """By column, where it is in the vectors of `turned`."""
    where = dict[int, Half]()
    for both, (low, high) in zip(vectors, columns(dwords), strict=True):
        where[low], where[high] = Half(both, upper=False), Half(both, upper=True)
    return [where[column] for column in range(dwords)]


def joined(fn: PackedFunction, low: str, high: str, name: str) -> None:
    """Two columns as one vector."""
    index = ", ".join(f"i32 {n}" for n in range(_WIDTH))
    fn.do(f"{name} = shufflevector {V32} {low}, {V32} {high}, <{_WIDTH} x i32> <{index}>")


__all__ = ["V512", "Half", "columns", "halves", "joined", "load", "prefetch", "turned", "wait"]

"""Where two sides of waves differ: bit by bit, except for the payloads of NaN that a rule
computes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits

Words: TypeAlias = "NDArray[np.uint32]"
Mask: TypeAlias = "NDArray[np.bool_]"
Pair: TypeAlias = "tuple[Words, Words]"  # SASS, RDNA3: (waves, words of the place)
_HALVES = {"F16x2": 0x7C00, "BF16x2": 0x7F80}  # infinity
_ONES = np.uint32(0xFFFFFFFF)
_MEMORIES = ("shared memory", "global memory")


@dataclass(frozen=True, slots=True)
class Different:
    """A wave in which the two sides differ: the place, its lane, both values."""

    place: str
    lane: int
    sass: int
    rdna: int
    count: int

    def __str__(self) -> str:
        values = f"SASS {self.sass:#x}, RDNA3 {self.rdna:#x}"
        return f"{self.place} of lane {self.lane}: {values}; {self.count} values differ"


def float_kind(ins: Instruction) -> str:
    """The floating-point type of an instruction's result, if its NaN are interchangeable; otherwise
    "".  HMMA has one NaN.  FTZ: for atomic sums, where AMD keeps a denormal sum of normal
    numbers until it is an operand again."""
    t = traits(ins)
    if t.lanes == "whole":
        return "F64" if ins.mnemonic == "DMMA" else ""
    for modifier in ins.modifiers:
        kind, _, count = modifier.partition("x")
        if kind in ("F16", "BF16") and count:  # for a vector, its parts: F16x8
            return f"{kind}x2"
        if kind == "F32" and ins.has("FTZ") and t.reaches(("atomic", "reduction")):
            return "F32 FTZ"
        if kind in ("F32", "F64"):
            return kind
    return ""


def first_difference(
    pairs: Sequence[tuple[str, Words, Words]], written: Collection[RegRef], kind: str
) -> Different | None:
    """The first place of ``pairs`` (name, SASS's words, RDNA3's: uint32, (waves, words)) that
    differs.

    ``kind`` is the floating-point type that an instruction computes, or "".  Two NaN of it are
    equal in the general registers ``written`` and in memory; predicates, masks of lanes, uniform
    registers and all that the instruction does not write are compared exactly.
    """
    computed = {f"R{ref.index}" for ref in written if ref.file == "R"}
    words = {name: (a, b) for name, a, b in pairs}
    for name, a, b in pairs:
        if kind and (name in computed or name in _MEMORIES):
            first = 0 if name in _MEMORIES else _run(int(name[1:]), computed)
            sides = [_one_nan(name, words, side, kind, first) for side in (0, 1)]
            wrong = sides[0] != sides[1]
        else:
            wrong = a != b
        if wrong.any():
            wave, lane = (int(i) for i in np.argwhere(wrong)[0])
            return Different(name, lane, int(a[wave, lane]), int(b[wave, lane]), int(wrong.sum()))
    return None


def _run(number: int, computed: Collection[str]) -> int:
    """The first register of the consecutive run of written ones that ends here."""
    while f"R{number - 1}" in computed:
        number -= 1
    return number


def _one_nan(name: str, words: Mapping[str, Pair], side: int, kind: str, first: int) -> Words:
    """One side's words of a place, with all ones for each NaN.

    A binary64 number is a pair of registers, counted from ``first`` on, or an aligned pair of
    words in memory.
    """
    mine = words[name][side]
    if kind.startswith("F32"):
        single: Words = np.where(mine & 0x7FFFFFFF > 0x7F800000, _ONES, mine)
        if kind == "F32 FTZ":
            single = np.where(mine & 0x7F800000 == 0, mine & 0x80000000, single)
        return single
    if kind in _HALVES:
        low, high = mine & 0xFFFF, mine >> 16
        infinity = _HALVES[kind]
        low, high = (np.where(h & 0x7FFF > infinity, 0xFFFF, h) for h in (low, high))
        return np.asarray(low | high << 16, dtype=np.uint32)
    if name in _MEMORIES:
        pair = mine.reshape(*mine.shape[:-1], -1, 2)
        nan = _nan64(pair[..., 0], pair[..., 1])
        return np.where(nan[..., None], _ONES, pair).reshape(mine.shape)
    number = int(name[1:]) - first
    other = words.get(f"R{(number ^ 1) + first}")
    if other is None:
        return mine
    nan = _nan64(other[side], mine) if number % 2 else _nan64(mine, other[side])
    return np.where(nan, _ONES, mine)


def _nan64(low: Words, high: Words) -> Mask:
    top = high & 0x7FFFFFFF
    found: Mask = (top > 0x7FF00000) | ((top == 0x7FF00000) & (low != 0))
    return found


__all__ = ["Different", "first_difference", "float_kind"]

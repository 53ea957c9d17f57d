"""Sets of registers as integers, one bit for each register.

Analyses that visit every instruction several times use them: a union, a difference or a test of a
set is one operation on an integer, and a set of a whole kernel's registers takes 100 bytes.  Others
get the same sets as frozensets.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import lru_cache
from typing import Final, Literal

from sassxlate.disasm.sass.instruction import RegRef

_File = Literal["R", "UR", "P", "UP", "B"]
# A tuple that begins at a file's last register does not reach the next file.
_COUNT: Final[dict[_File, int]] = {"P": 8, "UP": 8, "B": 16, "R": 264, "UR": 264}
FIRST: Final[dict[_File, int]] = {"P": 0, "UP": 8, "B": 16, "R": 32, "UR": 296}
ALL: Final[tuple[RegRef, ...]] = tuple(
    RegRef(file, i) for file in FIRST for i in range(_COUNT[file])
)


def bit_number(ref: RegRef) -> int:
    """The number of a register's bit."""
    return FIRST[ref.file] + ref.index


def of_files(*files: _File) -> int:
    """All registers of some files."""
    return sum((1 << _COUNT[file]) - 1 << FIRST[file] for file in files)


_BITS: Final[dict[Set[RegRef], int]] = {}
_TRACKED: Final[dict[frozenset[RegRef], tuple[int, ...]]] = {}
_MOST: Final = 1 << 16


def bits_of(refs: Set[RegRef]) -> int:
    """A set (one that has a hash) as an integer.  Remembered: a decoder's sets are few, and are the
    same objects."""
    known = _BITS.get(refs)
    if known is not None:
        return known
    bits = 0
    for ref in refs:
        bits |= 1 << FIRST[ref.file] + ref.index
    if len(_BITS) >= _MOST:
        _BITS.clear()
    _BITS[refs] = bits
    return bits


def tracked(refs: frozenset[RegRef]) -> tuple[int, ...]:
    """The numbers of a set's general registers, R and UR.  Remembered, as :func:`bits_of`."""
    known = _TRACKED.get(refs)
    if known is not None:
        return known
    found = tuple([FIRST[ref.file] + ref.index for ref in refs if ref.file in ("R", "UR")])
    if len(_TRACKED) >= _MOST:
        _TRACKED.clear()
    _TRACKED[refs] = found
    return found


@lru_cache(maxsize=1 << 10)
def refs_of(bits: int) -> frozenset[RegRef]:
    """An integer as a set."""
    return frozenset(ALL[number] for number in numbers(bits))


def numbers(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low

"""Machine code with some instructions replaced by others, between changes of the mode."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from sassxlate.lowering.tier.numbers import far
from sassxlate.lowering.tier.numbers.modes import NEAREST, Change, entered, left
from sassxlate.lowering.tier.numbers.pieces import Opcodes, Piece
from sassxlate.lowering.tier.refusal import BACKEND, refused

_NOWHERE: Final = 0  # the line of what is no instruction of SASS

# Resolves the calls of functions; an instruction that is left out has no bytes.
Calls: TypeAlias = "Callable[[Sequence[Piece]], list[Piece]]"


@dataclass(frozen=True, slots=True)
class Woven:
    """The code, its table of lines (offset, line), and the texts of its instructions."""

    code: bytes
    lines: tuple[tuple[int, int], ...]
    texts: tuple[str, ...]


def woven(
    pieces: Sequence[Piece],
    lines: Iterable[tuple[int, int]],
    encoded: Callable[[Change], bytes],
    ops: Opcodes,
    *,
    flushes: bool,
) -> Woven:
    """The instructions, which follow each other, with the real ones in their places.  Branches that
    do not reach any more go over islands.  ``flushes``: the function's mode flushes denormal
    binary32 numbers.

    Raises Refused SX0464 if these do not suffice.
    """

    def change(at: int, to: Change) -> Piece:
        return Piece(at, encoded(to), text=to.text)

    out = _with_modes(pieces, change, flushes=flushes)  # with their old offsets
    places = _places(out)
    if any(not _reaches(p, at, places) for p, at in zip(out, _offsets(out), strict=False)):
        out = far.with_islands(out, ops)
        places = _places(out)
    begins = sorted(at for at in places if at >= 0)
    rows = {places[begins[bisect_right(begins, at) - 1]]: line for at, line in lines}
    return Woven(
        b"".join(_moved(p, at, places) for p, at in zip(out, _offsets(out), strict=False)),
        tuple(_rows(out, rows)),
        tuple(piece.text for piece in out if piece.data),
    )


def _with_modes(
    pieces: Sequence[Piece], change: Callable[[int, Change], Piece], *, flushes: bool
) -> list[Piece]:
    """The real instructions between changes of the mode.  A mode stays for the next that needs it
    if all in between do the same in every mode, and no branch goes to any of these."""
    out: list[Piece] = []
    targets = {p.target for p in pieces}
    mode, end = NEAREST, 0  # the mode that could stay, and the place of what ends it
    for piece in pieces:
        if piece.at in targets or (piece.real is None and not piece.blind):
            mode = NEAREST
        if piece.real is None:
            out.append(piece)
            continue
        real = Piece(piece.at, piece.real, text=piece.text)
        if piece.mode == NEAREST:
            mode = NEAREST
            out.append(real)
            continue
        if mode == piece.mode:
            del out[end]
        else:
            out.append(change(piece.at, entered(piece.mode, flushes=flushes)))
        out += [real, change(piece.at, left(piece.mode, flushes=flushes))]
        mode, end = piece.mode, len(out) - 1
    return out


def _offsets(pieces: Iterable[Piece]) -> Iterator[int]:
    """The new offset of each, and of the end."""
    return accumulate((len(p.data) for p in pieces), initial=0)


def _places(pieces: Sequence[Piece]) -> dict[int, int]:
    """The new offset of the first at each old one."""
    places: dict[int, int] = {}
    for piece, here in zip(pieces, _offsets(pieces), strict=False):
        places.setdefault(piece.at, here)
    return places


def _rows(pieces: Sequence[Piece], rows: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """The table of lines, with the islands, which are of no line."""
    line, before = _NOWHERE, False
    for piece, at in zip(pieces, _offsets(pieces), strict=False):
        if not piece.data:
            continue
        if at in rows:
            line = rows[at]
        island = piece.at < 0
        if at in rows or island != before:
            yield at, _NOWHERE if island else line
        before = island


def _words(piece: Piece, here: int, places: Mapping[int, int]) -> int:
    """A branch's distance, from its end."""
    to = None if piece.target is None else places.get(piece.target)
    if to is None:
        raise refused(BACKEND, "a branch into an instruction")
    return (to - here - 4) // 4


def _reaches(piece: Piece, here: int, places: Mapping[int, int]) -> bool:
    return piece.target is None or -far.REACH <= _words(piece, here, places) < far.REACH


def _moved(piece: Piece, here: int, places: Mapping[int, int]) -> bytes:
    """Its bytes; a branch has its distance in bits 15:0."""
    if piece.target is None:
        return piece.data
    if not _reaches(piece, here, places):
        raise refused(BACKEND, "a branch too far")
    words = _words(piece, here, places)
    return (words & 0xFFFF).to_bytes(2, "little") + piece.data[2:]


__all__ = ["Calls", "Woven", "woven"]

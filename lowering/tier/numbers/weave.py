"""Machine code with some instructions replaced by others, between changes of the rounding mode."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sassxlate.lowering.tier.refusal import BACKEND, refused

NEAREST: Final = 0
_REACH: Final = 1 << 15  # words that a branch goes forward; one more backward


@dataclass(frozen=True, slots=True)
class Piece:
    """An instruction at its offset.  ``target`` is the offset that a branch goes to; ``real`` what
    it stands for, which needs the rounding mode ``mode``.  ``text`` is what a listing has."""

    at: int
    data: bytes
    target: int | None = None
    real: bytes | None = None
    mode: int = NEAREST
    text: str = ""


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
    set_mode: Callable[[int], bytes],
) -> Woven:
    """The instructions, which follow each other, with the real ones in their places; a change of
    the mode stays for the next one if that needs the same and no branch goes to it.

    Raises Refused SX0464 if a branch does not reach any more.
    """
    places: dict[int, int] = {}  # of old offsets
    out: list[Piece] = []  # with their old offsets
    targets = {p.target for p in pieces}
    back = set_mode(NEAREST)
    here, mode, end = 0, NEAREST, 0
    for piece in pieces:
        places[piece.at] = here
        end = piece.at + len(piece.data)
        new = [piece]
        if piece.real is not None:
            new = [Piece(piece.at, piece.real, text=piece.text)]
            if piece.mode != NEAREST:
                new = [
                    _change(piece.at, piece.mode, set_mode),
                    *new,
                    _change(piece.at, 0, set_mode),
                ]
                if mode == piece.mode and piece.at not in targets:  # it follows one with this mode
                    here -= len(back)
                    out.pop()
                    places[piece.at] = here
                    new = new[1:]
        mode = piece.mode
        out += new
        here += sum(len(p.data) for p in new)
    places[end] = here
    starts = sorted(places)
    return Woven(
        b"".join(_moved(piece, places) for piece in out),
        tuple((places[starts[bisect_right(starts, at) - 1]], line) for at, line in lines),
        tuple(piece.text for piece in out if piece.data),
    )


def _change(at: int, mode: int, set_mode: Callable[[int], bytes]) -> Piece:
    return Piece(at, set_mode(mode), text=f"s_round_mode {mode:#x}")


def _moved(piece: Piece, places: dict[int, int]) -> bytes:
    """Its bytes; a branch has its distance, in words from its end, in bits 15:0."""
    if piece.target is None:
        return piece.data
    words = (places[piece.target] - places[piece.at] - 4) // 4
    if not -_REACH <= words < _REACH:
        raise refused(BACKEND, "a branch too far")
    return (words & 0xFFFF).to_bytes(2, "little") + piece.data[2:]


__all__ = ["NEAREST", "Calls", "Piece", "Woven", "woven"]

"""Compares memory after a run of the reference interpreter and after one of the translation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.interpreter import GlobalMemory, Launch, Order, ScheduleOptions, run
from sassxlate.errors import InterpretError

Bytes = NDArray[np.uint8]
Places = dict[int, NDArray[np.int64]]  # the words that differ, by piece
_INCOMPLETE = frozenset(("SX0211", "SX0215"))  # the interpreter's own limits


@dataclass(frozen=True, slots=True)
class Same:
    """Every byte is equal, except for the differences that ``modulo`` names."""

    modulo: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Different:
    """``offset`` is that of the SASS instruction that wrote the first differing word, and ``lane``
    identifies its lane: block, warp in the block, number; None if no lane wrote the word."""

    words: int
    address: int
    sass: int
    rdna: int
    offset: int | None
    lane: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not decided, with the reason."""

    reason: str


Verdict = Same | Different | Unknown


def compare(
    launch: Launch,
    after: Mapping[int, Bytes],
    approximate: frozenset[int],
    limit: int,
    apart: frozenset[int] = frozenset(),
) -> Verdict:
    """Runs a launch and compares memory with ``after`` it; ``approximate`` are the code offsets of
    instructions that give approximations, ``apart`` those of instructions whose approximations
    differ between the two sides.

    If memory differs, other orders are tried, since the order of atomics and of racing stores is
    free.  Words that depend on it decide nothing.
    """
    found: list[tuple[Order, GlobalMemory, _Compared]] = []
    for order in (Order.TOGETHER, Order.WARPS, Order.REVERSED):
        try:
            done = run(launch, ScheduleOptions(order, limit))
        except InterpretError as error:
            if error.code in _INCOMPLETE:
                return Unknown(str(error))
            raise
        seen = _Compared(done.device, after)
        if not seen.differing:
            modulo = ["MUFU"] if approximate & done.seen else []
            modulo += ["NaN payload"] if seen.payloads else []
            modulo += [f"order ({order.value})"] if order != Order.TOGETHER else []
            return Same(tuple(modulo))
        if apart & done.seen:
            return Unknown("MUFU.TANH is approximated differently")
        found.append((order, done.device, seen))
    (_, first, seen), *others = found
    unstable = _unstable(first, [device for _, device, _ in others])
    stable = {
        piece: some
        for piece, words in seen.differing.items()
        if len(some := words[~np.isin(words, unstable.get(piece, np.zeros(0, np.int64)))])
    }
    many = sum(map(len, seen.differing.values()))
    if not stable:
        return Unknown(f"the order of atomics or of racing stores decides {many} words")
    return _first(launch, first, after, stable)


def first_difference(
    launch: Launch, device: GlobalMemory, after: Mapping[int, Bytes]
) -> Different | None:
    """The first word in which memory differs, and its writer; None if memory is equal."""
    found = _Compared(device, after)
    return _first(launch, device, after, found.differing) if found.differing else None


def _first(
    launch: Launch, device: GlobalMemory, after: Mapping[int, Bytes], places: Places
) -> Different:
    piece = min(places)
    word = int(places[piece][0])
    number = next(n for n, p in enumerate(device.pieces) if p.base == piece)
    writer = device.writer_of(number, 4 * word)
    lane = None
    if writer is not None:
        warp, place = divmod(writer[1], 32)
        lane = (*divmod(warp, (launch.threads + 31) // 32), place)
    return Different(
        sum(map(len, places.values())),
        piece + 4 * word,
        int(_words(device.data(number))[word]),
        int(_words(after[piece])[word]),
        None if writer is None else writer[0],
        lane,
    )


def _words(data: Bytes) -> NDArray[np.uint32]:
    if len(data) % 8:
        data = np.concatenate([data, np.zeros(-len(data) % 8, np.uint8)])
    return np.ascontiguousarray(data).view(np.uint32)


class _Compared:
    """The words in which pieces of memory differ; those of doubles that are NaN on both
    sides do not."""

    def __init__(self, device: GlobalMemory, after: Mapping[int, Bytes]) -> None:
        self.differing: Places = {}
        self.payloads = 0
        for number, piece in enumerate(device.pieces):
            if piece.base not in after:
                continue
            ours, theirs = _words(device.data(number)), _words(after[piece.base])
            different = np.flatnonzero(ours != theirs)
            if not len(different):
                continue
            nan = both_nan(ours, theirs, different)
            self.payloads += int(np.count_nonzero(nan))
            if not nan.all():
                self.differing[piece.base] = different[~nan]


def both_nan(
    a: NDArray[np.uint32], b: NDArray[np.uint32], at: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """For some words of SASS and of RDNA3: whether they are parts of doubles that are NaN on both
    sides.  The NaN of other floats are equal to the bit."""

    def nan(bits: NDArray[Any], infinity: int, sign: int) -> NDArray[np.bool_]:
        word = bits.dtype.type
        out: NDArray[np.bool_] = (bits & word(sign - 1)) > word(infinity)
        return out

    p, q = a.view(np.uint64)[at >> 1], b.view(np.uint64)[at >> 1]
    double = nan(p, 0x7FF << 52, 1 << 63) & nan(q, 0x7FF << 52, 1 << 63)
    out: NDArray[np.bool_] = double & (a[at] != 0x7FFFFFFF)  # which is binary32's NaN
    return out


def _unstable(first: GlobalMemory, others: list[GlobalMemory]) -> Places:
    """The words that get another value in another order."""
    out: Places = {}
    for number, piece in enumerate(first.pieces):
        ours = _words(first.data(number))
        moved = np.zeros(len(ours), np.bool_)
        for other in others:
            moved |= ours != _words(other.data(number))
        if moved.any():
            out[piece.base] = np.flatnonzero(moved)
    return out


__all__ = ["Different", "Same", "Unknown", "Verdict", "compare", "first_difference"]

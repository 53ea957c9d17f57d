"""Dwords of LDS whose places relative to each other are expected (`lane_patterns`), for AVX-512.

One comparison with a constant vector says whether they are as expected.  Each half's dwords are in
32 that follow each other then, which two vectors of the host hold: a load takes those and
shuffles by a constant, a store spreads the half's dwords and EXEC's bits, and leaves the gaps
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)
_HALF = LANES // 2
_PART, _WINDOW = f"<{_HALF} x i32>", f"<{LANES} x i32>"


@dataclass(frozen=True, slots=True)
class Pattern:
    """``bytes``: the lanes' distances from lane 0.  ``starts``: where each half's 32 dwords begin,
    in dwords from lane 0; ``places``: by half, where in these its lanes are."""

    bytes: tuple[int, ...]
    starts: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]

    @property
    def span(self) -> int:
        """Bytes from the first lane's dword to the end of the last one's."""
        return self.bytes[-1] + 4


def suitable(bytes_: Sequence[int]) -> Pattern | None:
    """The pattern, if its lanes are whole dwords apart, in ascending order, and not too far."""
    if bytes_[0] or any(b % 4 for b in bytes_):
        return None
    dwords = [b // 4 for b in bytes_]
    if dwords[-1] == LANES - 1:  # side by side
        return None
    if any(b <= a for a, b in pairwise(dwords)):
        return None
    starts = tuple(min(dwords[h], dwords[-1] + 1 - LANES) for h in (0, _HALF))
    places = tuple(
        tuple(at - start for at in dwords[h : h + _HALF])
        for h, start in zip((0, _HALF), starts, strict=True)
    )
    if any(place[-1] >= LANES for place in places):
        return None
    return Pattern(tuple(bytes_), starts, places)


def holds(c: Context, lo: Val, pattern: Pattern) -> tuple[Val, Val]:
    """(whether the active lanes are as expected, lane 0's address)."""
    d = c.d
    first = Val(c.fn.emit(f"extractelement {V32} {lo.ref}, i64 0"), 32, False)
    away = Val("<" + ", ".join(f"i32 {b}" for b in pattern.bytes) + ">", 32, True)
    hit = d.eq(lo, d.add(d.splat(first), away))
    return c.state.every_active(hit), first


def _window(c: Context, p: str, pattern: Pattern, half: int) -> str:
    return c.fn.emit(f"getelementptr i8, ptr {p}, i64 {4 * pattern.starts[half]}")


def load(c: Context, p: str, pattern: Pattern) -> Val:
    """``p``: lane 0's place."""
    fn, halves = c.fn, list[str]()
    for half, places in enumerate(pattern.places):
        at = _window(c, p, pattern, half)
        next_ = fn.emit(f"getelementptr i8, ptr {at}, i64 {4 * _HALF}")
        low, high = (fn.emit_new(f"load {_PART}, ptr {q}, align 4") for q in (at, next_))
        halves.append(fn.emit(f"shufflevector {_PART} {low}, {_PART} {high}, {_index(places)}"))
    both = f"{_PART} {halves[0]}, {_PART} {halves[1]}"
    return Val(fn.emit(f"shufflevector {both}, {_index(range(LANES))}"), 32, True)


def store(c: Context, p: str, pattern: Pattern, data: Val) -> None:
    """The active lanes' dwords."""
    fn, exec_ = c.fn, c.state.exec_mask()
    c.module.declare("i32 @llvm.x86.bmi.pdep.32(i32, i32)")
    name = f"llvm.masked.store.v{LANES}i32.p0"
    c.module.declare(f"void @{name}({_WINDOW}, ptr, <{LANES} x i1>)")
    for half, places in enumerate(pattern.places):
        lanes = {place: _HALF * half + lane for lane, place in enumerate(places)}
        spread = [f"i32 {lanes[i]}" if i in lanes else "i32 poison" for i in range(LANES)]
        index = f"<{LANES} x i32> <{', '.join(spread)}>"
        value = fn.emit(f"shufflevector {V32} {data.ref}, {V32} poison, {index}")
        active = c.d.lshr(exec_, const(_HALF * half, 32))
        bits = sum(1 << place for place in places)
        mask = fn.emit(f"call i32 @llvm.x86.bmi.pdep.32(i32 {active.ref}, i32 {bits})")
        wanted = fn.emit(f"bitcast i32 {mask} to <{LANES} x i1>")
        at = _window(c, p, pattern, half)
        fn.do(f"call void @{name}({_WINDOW} {value}, ptr align 4 {at}, <{LANES} x i1> {wanted})")


def _index(numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {n}' for n in numbers)}>"


__all__ = ["Pattern", "holds", "load", "store", "suitable"]

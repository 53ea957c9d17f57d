"""Accesses whose lanes lie side by side, in each half of 16 lanes: two vectors, inline.

Blocks of 16 threads a row are common; a warp of one is two rows, each of them contiguous.  Where a
warp is one row, its second half simply begins where the first one ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.lowering.emulate.wave.access import memory_helpers
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)
HALF = LANES // 2
_BOTH = (0, HALF)  # the halves' first lanes


def _list(numbers: Sequence[int]) -> str:
    return "<" + ", ".join(f"i32 {n}" for n in numbers) + ">"


@dataclass(frozen=True, slots=True)
class Starts:
    """``hit``: the active lanes are side by side; ``lower`` the lower one of lane 0's and lane 16's
    address without the base, ``offsets`` how far they lie above it, ``width`` the greater of these.
    All of 64 bits, and the same values for all accesses by one address register, whatever
    their bases."""

    hit: Val
    lower: Val
    offsets: tuple[Val, Val]
    width: Val


def _of_two(c: Context, what: str, a: Val, b: Val) -> Val:
    """umin or umax of scalars."""
    name = f"llvm.{what}.{a.type}"
    c.module.declare(f"{a.type} @{name}({a.type}, {a.type})")
    ref = c.fn.emit(f"call {a.type} @{name}({a.type} {a.ref}, {a.type} {b.ref})")
    return Val(ref, a.width, False)


def _halves(c: Context, value: Val) -> tuple[tuple[Val, Val], Val]:
    """(lane 0's and lane 16's value, a vector of these)."""
    if not value.vec:
        return (value, value), value
    fn, type_ = c.fn, value.type
    low, high = (
        Val(fn.emit(f"extractelement {type_} {value.ref}, i64 {i}"), value.width, False)
        for i in _BOTH
    )
    index = _list([i // HALF * HALF for i in range(LANES)])
    text = f"shufflevector {type_} {value.ref}, {type_} poison, <{LANES} x i32> {index}"
    return (low, high), Val(fn.emit(text), value.width, True)


def starts(c: Context, lo: Val, hi: Val | None, bytes_: int, *, short: bool) -> Starts:
    """Whether the lanes of each half are at its first lane's address + i * ``bytes_``.

    ``short``: an address that leaves 32 bits is out of range anyway.
    """
    d = c.d
    steps = Val(_list([i % HALF * bytes_ for i in range(LANES)]), 32, True)
    (first, second), vector = _halves(c, lo)
    hit = d.eq(d.splat(lo), d.add(d.splat(vector), steps))
    low, high = d.zext(first, 64), d.zext(second, 64)
    if hi is not None:
        (above, above_second), vector = _halves(c, hi)
        if hi.vec:
            hit = d.and_(hit, d.eq(hi, vector))
        low, high = d.concat(above, first), d.concat(above_second, second)
    ok = d.eq(d.or_(d.mask_of(hit), d.not_(c.state.exec_mask())), const(-1, 32))
    if not short:
        end = const((1 << 32) - HALF * bytes_, 32)
        ok = d.and_(ok, d.ult(_of_two(c, "umax", first, second), end))
    lower = _of_two(c, "umin", low, high)
    offsets = d.sub(low, lower), d.sub(high, lower)
    return Starts(ok, lower, offsets, d.or_(*offsets))  # one of them is 0


# --- loads -----------------------------------------------------------------------------------


def load(
    c: Context, at: Sequence[str], bytes_: int, signed: bool, align: int, volatile: bool, buf: str
) -> list[Val]:
    """The dwords of 32 elements, in two runs of 16 at the pointers ``at``."""
    fn, how = c.fn, "load volatile" if volatile else "load"
    n = max(1, bytes_ // 4)
    if n > 1 and not c.d.avx512:
        from_ = ", ".join(f"ptr {p}" for p in at)
        fn.do(f"call void {memory_helpers.deal(c.module, n, align)}({from_}, ptr {buf})")
        out: list[Val] = []
        for k in range(n):
            p = fn.emit_new(f"getelementptr i8, ptr {buf}, i64 {128 * k}")
            out.append(Val(fn.emit_new(f"load {V32}, ptr {p}, align 64"), 32, True))
        return out
    width = 8 * min(bytes_, 4)
    if n > 1:
        how = "load volatile"  # whole vectors: otherwise LLVM moves single dwords (see access64)
    type_ = f"<{HALF * n} x i{width}>"
    align = min(bytes_, align)
    a, b = (fn.emit_new(f"{how} {type_}, ptr {p}, align {align}") for p in at)
    out = []
    for k in range(n):
        index = _list([n * i + k for i in range(LANES)])
        part = fn.emit(f"shufflevector {type_} {a}, {type_} {b}, <{LANES} x i32> {index}")
        out.append(Val(part, width, True))
    if bytes_ < 4:
        return [c.d.sext(out[0], 32) if signed else c.d.zext(out[0], 32)]
    return out


# --- stores ----------------------------------------------------------------------------------


def _half(c: Context, type_: str, value: str, half: int, count: int) -> str:
    """``count`` elements of a vector, from the half's first lane on."""
    index = _list([half * count + i for i in range(count)])
    return c.fn.emit(f"shufflevector {type_} {value}, {type_} poison, <{count} x i32> {index}")


def _interleave(c: Context, data: Sequence[Val]) -> list[str]:
    """The halves' dwords in the order of memory: [lane][dword]."""
    fn, n = c.fn, len(data)
    vs = [c.d.splat(v).ref for v in data]
    if n == 1:
        return [_half(c, V32, vs[0], half, HALF) for half in (0, 1)]
    out: list[str] = []
    for half in (0, 1):
        lanes = range(half * HALF, half * HALF + HALF)
        both = _list([i + LANES * k for i in lanes for k in (0, 1)])
        pairs = [
            fn.emit(f"shufflevector {V32} {vs[k]}, {V32} {vs[k + 1]}, <{LANES} x i32> {both}")
            for k in range(0, n, 2)
        ]
        if n > 2:
            order = _list(
                [2 * i + k + LANES * p for i in range(HALF) for p in (0, 1) for k in (0, 1)]
            )
            text = f"shufflevector {V32} {pairs[0]}, {V32} {pairs[1]}, <{2 * LANES} x i32> {order}"
            out.append(fn.emit(text))
        else:
            out += pairs
    return out


def store(
    c: Context, at: Sequence[str], bytes_: int, data: Sequence[Val], align: int, buf: str
) -> None:
    """All lanes are active.  The lower half first: lanes are written in ascending order."""
    n = max(1, bytes_ // 4)
    if bytes_ < 4:
        w = 8 * bytes_
        v = c.d.splat(c.d.extract(c.d.splat(data[0]), 0, w))
        for half, p in enumerate(at):
            part = _half(c, v.type, v.ref, half, HALF)
            c.fn.do(f"store <{HALF} x i{w}> {part}, ptr {p}, align {min(bytes_, align)}")
        return
    if n > 1 and not c.d.avx512:
        for k, value in enumerate(data):
            v = c.d.splat(value)
            q = c.fn.emit_new(f"getelementptr i8, ptr {buf}, i64 {128 * k}")
            c.fn.do(f"store {v.type} {v.ref}, ptr {q}, align 64")
        to = ", ".join(f"ptr {p}" for p in at)
        c.fn.do(f"call void {memory_helpers.collect(c.module, n, align)}({to}, ptr {buf})")
        return
    how = "store volatile" if n > 1 else "store"  # as in `load`
    for p, text in zip(at, _interleave(c, data), strict=True):
        c.fn.do(f"{how} <{HALF * n} x i32> {text}, ptr {p}, align {align}")


def masked_store(c: Context, at: Sequence[str], data: Val, align: int, lanes: Val) -> None:
    """Of dwords; the other lanes' are not touched."""
    part, mask = f"<{HALF} x i32>", f"<{HALF} x i1>"
    name = f"llvm.masked.store.v{HALF}i32.p0"
    c.module.declare(f"void @{name}({part}, ptr, {mask})")
    data, lanes = c.d.splat(data), c.d.splat(lanes)
    for half, p in enumerate(at):
        value = _half(c, V32, data.ref, half, HALF)
        active = _half(c, lanes.type, lanes.ref, half, HALF)
        c.fn.do(f"call void @{name}({part} {value}, ptr align {align} {p}, {mask} {active})")


def blend(c: Context, at: Sequence[str], data: Val, lanes: Val) -> None:
    """The same to memory that no other host thread accesses, 4-byte aligned."""
    part, mask = f"<{HALF} x i32>", f"<{HALF} x i1>"
    data, lanes = c.d.splat(data), c.d.splat(lanes)
    for half, p in enumerate(at):
        old = c.fn.emit_new(f"load {part}, ptr {p}, align 4")
        value = _half(c, V32, data.ref, half, HALF)
        active = _half(c, lanes.type, lanes.ref, half, HALF)
        new = c.fn.emit(f"select {mask} {active}, {part} {value}, {part} {old}")
        c.fn.do(f"store {part} {new}, ptr {p}, align 4")


__all__ = ["Starts", "blend", "load", "masked_store", "starts", "store"]

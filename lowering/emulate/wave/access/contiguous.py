"""Accesses whose lanes lie side by side, all 32 or those of each half: vectors, inline.

Blocks of 16 threads a row are common; a warp of one is two rows, each of them contiguous.  So in a
kernel whose blocks have rows (`Context.rows`) each half is a run of its own, the second one at any
distance above the first; in others a warp is one run, and one vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.lowering.emulate.wave import rows
from sassxlate.lowering.emulate.wave.access import memory_helpers
from sassxlate.lowering.emulate.wave.addresses import threads
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)
HALF = LANES // 2


def _list(numbers: Sequence[int]) -> str:
    return "<" + ", ".join(f"i32 {n}" for n in numbers) + ">"


@dataclass(frozen=True, slots=True)
class Starts:
    """``hit``: the active lanes of each run are side by side, modulo 2**64; ``heads``: the runs'
    first addresses without the base, 64 bits wide, and the same values for all accesses by one
    address register, whatever their bases."""

    hit: Val
    heads: list[Val]


def run_length(c: Context) -> int:
    """The lanes of one run."""
    return HALF if c.rows else LANES


def heads(c: Context, value: Val) -> list[Val]:
    """The value of each run's first lane."""
    length = run_length(c)
    if not value.vec:
        return [value] * (LANES // length)
    return [Val(threads.lane(c, value, i), value.width, False) for i in range(0, LANES, length)]


def firsts(c: Context, value: Val) -> tuple[list[Val], Val]:
    """(the value of each run's first lane, a vector of these)."""
    length, first = run_length(c), heads(c, value)
    if not value.vec:
        return first, value
    fn, type_ = c.fn, value.type
    index = _list([i // length * length for i in range(LANES)])
    text = f"shufflevector {type_} {value.ref}, {type_} poison, <{LANES} x i32> {index}"
    return first, Val(fn.emit(text), value.width, True)


def starts(c: Context, lo: Val, hi: Val | None, bytes_: int, *, short: bool) -> Starts:
    """Whether the lanes of each run are at its first lane's address + i * ``bytes_``.

    ``short``: an address that leaves 32 bits is out of range anyway.
    """
    d, length = c.d, run_length(c)
    known = d.whole(hi, lo) if d.avx512 and hi is not None else None
    if known is not None:
        return _wide_starts(c, known, bytes_)
    in_rows = rows.grows(c, lo, bytes_, length) if hi is None else None
    if in_rows is not None:
        return _row_starts(c, lo, in_rows, 0 if short else length * bytes_)
    steps = Val(_list([i % length * bytes_ for i in range(LANES)]), 32, True)
    lows, vector = firsts(c, lo)
    hit = d.eq(d.splat(lo), d.add(d.splat(vector), steps))
    wide = [d.zext(low, 64) for low in lows]
    if hi is not None:
        highs, vector = firsts(c, hi)
        if hi.vec:
            hit = d.and_(hit, d.eq(hi, vector))
        wide = [d.concat(high, low) for high, low in zip(highs, lows, strict=True)]
    ok = c.state.every_active(hit)
    for low in () if short else lows:
        ok = d.and_(ok, d.ult(low, const((1 << 32) - length * bytes_, 32)))
    return Starts(ok, wide)


def _row_starts(c: Context, lo: Val, ok: Val, span: int) -> Starts:
    """The same of addresses of 32 bits that are side by side if ``ok``, of ``span`` bytes."""
    d, lows = c.d, heads(c, lo)
    for low in lows if span else ():
        ok = d.and_(ok, d.ult(low, const((1 << 32) - span, 32)))
    return Starts(ok, [d.zext(low, 64) for low in lows])


def _wide_starts(c: Context, address: Val, bytes_: int) -> Starts:
    """The same of addresses that are there as vectors of 64 bits, which takes half the work."""
    d, length = c.d, run_length(c)
    first, vector = firsts(c, address)
    offsets = ", ".join(f"i64 {i % length * bytes_}" for i in range(LANES))
    hit = d.eq(address, d.add(d.splat(vector), Val(f"<{offsets}>", 64, True)))
    ok = c.state.every_active(hit)
    return Starts(ok, first)


# --- loads -----------------------------------------------------------------------------------


def load(
    c: Context, at: Sequence[str], bytes_: int, signed: bool, align: int, volatile: bool, buf: str
) -> list[Val]:
    """The dwords of 32 elements, in runs at the pointers ``at``."""
    fn, how = c.fn, "load volatile" if volatile else "load"
    n = max(1, bytes_ // 4)
    if n > 1 and not c.d.avx512:
        fn.do(
            f"call void {memory_helpers.deal(c.module, n, align)}({_two(c, at, bytes_)}, ptr {buf})"
        )
        out: list[Val] = []
        for k in range(n):
            p = fn.emit_new(f"getelementptr i8, ptr {buf}, i64 {128 * k}")
            out.append(Val(fn.emit_new(f"load {V32}, ptr {p}, align 64"), 32, True))
        return out
    width = 8 * min(bytes_, 4)
    if n > 1:
        how = "load volatile"  # whole vectors: otherwise LLVM moves single dwords (see access64)
    type_ = f"<{LANES // len(at) * n} x i{width}>"
    align = min(bytes_, align)
    got = [fn.emit_new(f"{how} {type_}, ptr {p}, align {align}") for p in at]
    second = got[1] if len(got) > 1 else "poison"
    out = []
    for k in range(n):
        index = _list([n * i + k for i in range(LANES)])
        text = f"shufflevector {type_} {got[0]}, {type_} {second}, <{LANES} x i32> {index}"
        part = got[0] if n == len(at) == 1 else fn.emit(text)
        out.append(Val(part, width, True))
    if bytes_ < 4:
        return [c.d.sext(out[0], 32) if signed else c.d.zext(out[0], 32)]
    return out


def overlapping_load(
    c: Context, at: Sequence[str], bytes_: int, align: int, volatile: bool
) -> list[Val]:
    """Of lanes 4 bytes apart, each of which loads all but its first dword for its neighbours, too:
    LLVM joins loads of neighbouring elements.  Each dword is a load of lanes side by side."""
    out: list[Val] = []
    for offset in range(0, bytes_, 4):
        there = [c.fn.emit(f"getelementptr i8, ptr {p}, i64 {offset}") for p in at]
        out += load(c, there, 4, False, align, volatile, "")
    return out


def _two(c: Context, at: Sequence[str], bytes_: int) -> str:
    """The halves' pointers as arguments."""
    if len(at) == 1:
        at = [at[0], c.fn.emit_new(f"getelementptr i8, ptr {at[0]}, i64 {HALF * bytes_}")]
    return ", ".join(f"ptr {p}" for p in at)


# --- stores ----------------------------------------------------------------------------------


def _part(c: Context, type_: str, value: str, run: int, count: int) -> str:
    """The ``count`` elements of a vector that are the run's."""
    if count == LANES:
        return value
    index = _list([run * count + i for i in range(count)])
    return c.fn.emit(f"shufflevector {type_} {value}, {type_} poison, <{count} x i32> {index}")


def _interleave(c: Context, data: Sequence[Val], length: int) -> list[str]:
    """The runs' dwords in the order of memory: [lane][dword]."""
    fn, n = c.fn, len(data)
    vs = [c.d.splat(v).ref for v in data]
    if n == 1:
        return [_part(c, V32, vs[0], run, length) for run in range(LANES // length)]
    out: list[str] = []
    for start in range(0, LANES, length):
        lanes = range(start, start + length)
        both = _list([i + LANES * k for i in lanes for k in (0, 1)])
        pairs = [
            fn.emit(f"shufflevector {V32} {vs[k]}, {V32} {vs[k + 1]}, <{2 * length} x i32> {both}")
            for k in range(0, n, 2)
        ]
        if n > 2:
            order = _list(
                [2 * (i + length * p) + k for i in range(length) for p in (0, 1) for k in (0, 1)]
            )
            of = f"<{2 * length} x i32>"
            text = f"shufflevector {of} {pairs[0]}, {of} {pairs[1]}, <{4 * length} x i32> {order}"
            out.append(fn.emit(text))
        else:
            out += pairs
    return out


def store(
    c: Context, at: Sequence[str], bytes_: int, data: Sequence[Val], align: int, buf: str
) -> None:
    """All lanes are active.  The lower half first: lanes are written in ascending order."""
    n, length = max(1, bytes_ // 4), LANES // len(at)
    if bytes_ < 4:
        w = 8 * bytes_
        v = c.d.splat(c.d.extract(c.d.splat(data[0]), 0, w))
        for run, p in enumerate(at):
            part = _part(c, v.type, v.ref, run, length)
            c.fn.do(f"store <{length} x i{w}> {part}, ptr {p}, align {min(bytes_, align)}")
        return
    if n > 1 and not c.d.avx512:
        for k, value in enumerate(data):
            v = c.d.splat(value)
            q = c.fn.emit_new(f"getelementptr i8, ptr {buf}, i64 {128 * k}")
            c.fn.do(f"store {v.type} {v.ref}, ptr {q}, align 64")
        to = _two(c, at, bytes_)
        c.fn.do(f"call void {memory_helpers.collect(c.module, n, align)}({to}, ptr {buf})")
        return
    how = "store volatile" if n > 1 else "store"  # as in `load`
    for p, text in zip(at, _interleave(c, data, length), strict=True):
        c.fn.do(f"{how} <{length * n} x i32> {text}, ptr {p}, align {align}")


def masked_store(c: Context, at: Sequence[str], data: Val, align: int, lanes: Val) -> None:
    """Of dwords; the other lanes' are not touched."""
    length = LANES // len(at)
    part, mask = f"<{length} x i32>", f"<{length} x i1>"
    name = f"llvm.masked.store.v{length}i32.p0"
    c.module.declare(f"void @{name}({part}, ptr, {mask})")
    data, lanes = c.d.splat(data), c.d.splat(lanes)
    for run, p in enumerate(at):
        value = _part(c, V32, data.ref, run, length)
        active = _part(c, lanes.type, lanes.ref, run, length)
        c.fn.do(f"call void @{name}({part} {value}, ptr align {align} {p}, {mask} {active})")


def blend(c: Context, at: Sequence[str], data: Sequence[Val], lanes: Val) -> None:
    """The same of whole dwords to memory that no other host thread accesses, 4-byte aligned."""
    length, n, lanes = LANES // len(at), len(data), c.d.splat(lanes)
    type_ = f"<{length * n} x i32>"
    for run, (p, text) in enumerate(zip(at, _interleave(c, data, length), strict=True)):
        index = _list([run * length + i for i in range(length) for _ in range(n)])
        active = lanes.ref
        if n > 1 or length < LANES:
            what = f"{lanes.type} {lanes.ref}, {lanes.type} poison, <{length * n} x i32> {index}"
            active = c.fn.emit(f"shufflevector {what}")
        old = c.fn.emit_new(f"load {type_}, ptr {p}, align 4")
        new = c.fn.emit(f"select <{length * n} x i1> {active}, {type_} {text}, {type_} {old}")
        c.fn.do(f"store {type_} {new}, ptr {p}, align 4")


__all__ = [
    "Starts",
    "blend",
    "firsts",
    "heads",
    "load",
    "masked_store",
    "run_length",
    "starts",
    "store",
]

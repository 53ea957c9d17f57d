"""What packs keep in memory, and whether dwords that lanes load are inside of the arena."""

from __future__ import annotations

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.access import vector_access
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.packs import rows
from sassxlate.lowering.emulate.wave.packs.groups import Span
from sassxlate.lowering.emulate.wave.packs.state import LANES
from sassxlate.lowering.llvm.ir_text import Function, Val, const

_FAR = 1 << 16  # bytes from one wave's rows to the next one's beyond which they are not expected


def offset(n: int) -> Val:
    return const(n % (1 << 64), 64)


def word(ref: str, width: int) -> Val:
    return Val(ref, width, True, None, LANES)


def gather(c: Context, where: str, mask: str, width: int, lanes: int = LANES) -> str:
    type_ = f"<{lanes} x i{width}>"
    gather = f"@llvm.masked.gather.v{lanes}i{width}.v{lanes}p0"
    c.module.declare(f"{type_} {gather}(<{lanes} x ptr>, <{lanes} x i1>, {type_})")
    args = f"<{lanes} x ptr> align 4 {where}, <{lanes} x i1> {mask}, {type_} zeroinitializer"
    return c.fn.emit_new(f"call {type_} {gather}({args})")


def arena(c: Context) -> tuple[Val, Val]:
    base, size = WaveLayout.ARENA_BASE, WaveLayout.ARENA_SIZE
    return (
        Val(vector_access.member(c, base), 64, False),
        Val(vector_access.member(c, size), 64, False),
    )


def inside(c: Context, at: Val, dwords: int, base: Val, size: Val) -> Val:
    """The lanes whose so many dwords from an address on are inside, and aligned: an offset
    rotated right by two bits is below the number of dwords only if it is a multiple of 4."""
    d, fn = c.d, c.fn
    fn.module.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    whole = d.lshr(size, const(2, 64))
    call = f"call i64 @llvm.usub.sat.i64(i64 {whole.ref}, i64 {dwords - 1})"
    count = Val(fn.emit(call), 64, False)
    off = d.sub(at, base)
    rotate = f"@llvm.fshr.v{at.lanes}i64"
    fn.module.declare(f"{at.type} {rotate}({at.type}, {at.type}, {at.type})")
    args = f"{at.type} {off.ref}, {at.type} {off.ref}, {at.type} splat (i64 2)"
    number = Val(fn.emit(f"call {at.type} {rotate}({args})"), 64, True, None, at.lanes)
    return d.ult(number, count)


def _row(c: Context, place: str, lane: Val) -> Val:
    number = c.d.zext(c.d.and_(lane, const(31, 32)), 64)
    at = c.fn.emit_new(f"getelementptr i64, ptr {place}, i64 {number.ref}")
    return Val(c.fn.emit_new(f"load i64, ptr {at}, align 8"), 64, False)


def first(c: Context, place: str) -> Val:
    """The first active lane's row, which the last pack takes where it has no lane, too."""
    row = _row(c, place, c.d.ctz(c.state.exec_mask()))
    at = c.fn.emit(f"getelementptr i64, ptr {place}, i64 32")
    c.fn.do(f"store i64 {row.ref}, ptr {at}, align 8")
    return row


def extent(c: Context, place: str, span: Span, start: Val) -> Val:
    """Bytes from the first active lane's row to the end of the last one's, if they are few: rows of
    a matrix lie one after the other, and the next wave's begin where those of this one end."""
    d = c.d
    last = _row(c, place, d.sub(const(31, 32), d.clz(c.state.exec_mask())))
    extent = d.add(d.sub(last, start), const(4 * span.dwords, 64))
    return d.select(d.ult(extent, const(_FAR, 64)), extent, const(0, 64))


def order(fn: Function) -> str:
    return fn.buffer("pack.order", 128)


def store(fn: Function, type_: str, value: str, of: str, lanes: range, place: str) -> None:
    """Stores some lanes of a vector in their places: 32 bytes, of which the host forwards any."""
    index = ", ".join(f"i32 {lane}" for lane in lanes)
    part = f"<{len(lanes)} x {of}>"
    text = f"shufflevector {type_} {value}, {type_} poison, <{len(lanes)} x i32> <{index}>"
    to = fn.emit(f"getelementptr {of}, ptr {place}, i64 {lanes.start}")
    fn.do(f"store volatile {part} {fn.emit(text)}, ptr {to}, align 32")


def zeros(c: Context) -> str:
    """Memory that can be read in place of what is outside."""
    fn, place = c.fn, "%pack.zeros"
    if not any(line.startswith(f"  {place} ") for line in fn.entry):
        fn.entry.append(f"  {place} = alloca {rows.V512}, align 64")
        fn.entry.append(f"  store {rows.V512} zeroinitializer, ptr {place}, align 64")
    return place


def sort_numbers(c: Context, name: str) -> str:
    """Numbers of the lower dwords of eight pairs, then of the upper ones, from memory."""
    fn, place, type_ = c.fn, "%pack.sorted", "<16 x i32>"
    if not any(line.startswith(f"  {place} ") for line in fn.entry):
        numbers = ", ".join(f"i32 {2 * lane + half}" for half in (0, 1) for lane in range(LANES))
        fn.entry.append(f"  {place} = alloca {type_}, align 64")
        fn.entry.append(f"  store volatile {type_} <{numbers}>, ptr {place}, align 64")
    fn.do(f"{name} = load volatile {type_}, ptr {place}, align 64")
    return name


__all__ = [
    "arena",
    "extent",
    "first",
    "gather",
    "inside",
    "offset",
    "order",
    "sort_numbers",
    "store",
    "word",
    "zeros",
]

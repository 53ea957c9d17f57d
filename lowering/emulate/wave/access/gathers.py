"""Gathers that are inline, for AVX-512: nothing has to leave its register for a call.

*Dwords of a table*, by indices of 32 bits in its lanes: ``base + 4 * sext(index)``, the most common
address that is not side by side.  The host gathers twice as many lanes at a time by offsets of 32
bits, and half the vectors are checked; the 64-bit addresses are made where the check fails alone.
What multiplies the index is often a register that another block has set: that it is 4 in all active
lanes is tested, too.

*Pairs*: neighbouring dwords of lanes that are far apart (`adjacent_loads`).  One check is for all
pairs by the same addresses; where it fails, each load is done alone, at its own place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sassxlate.lowering.emulate.wave.access import dword_helpers
from sassxlate.lowering.emulate.wave.access.arms import either
from sassxlate.lowering.emulate.wave.addresses.adjacent_loads import Mate
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type
from sassxlate.lowering.target import LANES

V32, _MASK, _PTRS = "<32 x i32>", "<32 x i1>", "<32 x ptr>"
_V64, _HALF = vec_type(64), "<16 x i32>"
_STEPS = 4  # additions that are looked through


@dataclass(frozen=True, slots=True)
class Table:
    """Addresses base + 4 * sext(index), if every active lane's ``factor`` is 4, where there is
    one.  ``offset``: base + an offset of 32 bits, which is 4 * index while that is below 2**30."""

    index: Val
    base: Val
    factor: Val | None
    offset: bool = False


def find(d: LlvmDomain, lo: Val, hi: Val | None) -> Table | None:
    """How a vector of 64-bit addresses, or of offsets, is made; None if in another way."""
    if hi is None:
        return _offsets(d, lo)
    top = d.whole(hi, lo)
    if top is None or not top.vec:
        return None
    base = const(0, 64)
    for _ in range(_STEPS):
        op, parts = d.origins.get(top.ref, ("", ()))
        if op == "add" and not all(part.vec for part in parts):
            top, scalar = parts if parts[0].vec else parts[::-1]
            base = d.add(base, scalar)
            continue
        if op == "mul":
            return _product(d, parts[0], parts[1], base)
        if op == "shl" and parts[1].const == 2:
            index = _extended(d, parts[0])
            return None if index is None else Table(index, base, None)
        break
    return None


def _offsets(d: LlvmDomain, lo: Val) -> Table:
    """Rotated right by two bits, an offset that is no multiple of 4 is no index below 2**30."""
    op, parts = d.origins.get(lo.ref, ("", ()))
    shifted = op == "shl" and parts[0].vec and parts[1].const == 2
    index = parts[0] if shifted else d.pair_shifted(lo, lo, 2)
    return Table(index, const(0, 64), None, offset=True)


def _extended(d: LlvmDomain, value: Val) -> Val | None:
    op, parts = d.origins.get(value.ref, ("", ()))
    return parts[0] if op == "sext" and parts[0].vec and parts[0].width == 32 else None


def _product(d: LlvmDomain, a: Val, b: Val, base: Val) -> Table | None:
    index = _extended(d, a)
    if index is None:
        return None
    if b.const is not None:
        return Table(index, base, None) if b.const == 4 else None
    factor = _extended(d, b)
    return None if factor is None else Table(index, base, factor)


def limits(c: Context, base: Val, arena: Val, size: Val, *, up: bool) -> tuple[Val, Val, Val]:
    """(whether ``base`` is inside and aligned, how many dwords are inside below it, and that plus
    those above the first), each of the two within 32 bits.  ``up``: none below it, and those above
    the first are at most 2**30 - 1."""
    d, fn = c.d, c.fn
    c.module.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    c.module.declare("i64 @llvm.umin.i64(i64, i64)")

    def least(dwords: Val, most: int) -> Val:
        return Val(fn.emit(f"call i64 @llvm.umin.i64(i64 {dwords.ref}, i64 {most})"), 64, False)

    room = Val(fn.emit(f"call i64 @llvm.usub.sat.i64(i64 {size.ref}, i64 3)"), 64, False)
    offset = d.sub(base, arena)
    below = const(0, 64) if up else least(d.lshr(offset, const(2, 64)), 1 << 31)
    rest = d.sub(d.sub(size, offset), const(4, 64))
    span = d.add(below, least(d.lshr(rest, const(2, 64)), (1 << (30 if up else 31)) - 1))
    aligned = d.eq(d.and_(base, const(3, 64)), const(0, 64))
    return d.and_(d.ult(offset, room), aligned), d.extract(below, 0, 32), d.extract(span, 0, 32)


def inside(c: Context, table: Table, base: Val, arena: Val, size: Val) -> Val:
    """Whether every active lane's dword is inside of the arena, of so many bytes, and aligned.

    An index is inside if its distance from the least one is no more than the greatest one's; both
    are as far as the arena reaches and 32 bits do.  A base outside of the arena, or one that is not
    aligned, is left to the other forms.
    """
    d = c.d
    ok, below, span = limits(c, base, arena, size, up=table.offset)
    lanes = d.not_(d.ult(span, d.add(table.index, below)))
    if table.factor is not None:
        lanes = d.and_(lanes, d.eq(table.factor, const(4, 32)))
    return d.and_(ok, c.state.every_active(lanes))


def load(c: Context, table: Table, base: Val) -> list[Val]:
    """The active lanes' dwords, of which all are `inside`."""
    return [Val(_gathered(c, base, "i32", f"{V32} {table.index.ref}", 32), 32, True)]


def _gathered(c: Context, base: Val, step: str, offsets: str, width: int) -> str:
    """The active lanes' elements of ``width`` bits, ``offsets`` of ``step`` from base."""
    fn = c.fn
    out = f"<{LANES} x i{width}>"
    gather = f"@llvm.masked.gather.v{LANES}i{width}.v{LANES}p0"
    c.module.declare(f"{out} {gather}({_PTRS}, {_MASK}, {out})")
    start = fn.emit_new(f"inttoptr i64 {base.ref} to ptr")
    places = fn.emit_new(f"getelementptr {step}, ptr {start}, {offsets}")
    lanes = c.state.lanes_here()
    return fn.emit_new(
        f"call {out} {gather}({_PTRS} align 4 {places}, {_MASK} {lanes}, {out} zeroinitializer)"
    )


# --- anywhere ------------------------------------------------------------------------------------


def anywhere(c: Context, at: Val, arena: Val, size: Val) -> tuple[Val, Callable[[], list[Val]]]:
    """Dwords at vectors of 64-bit addresses: whether all active lanes' are inside and aligned, and
    what loads them.  An offset rotated right by two bits is below the number of dwords only if it
    is a multiple of 4."""
    d, fn = c.d, c.fn
    rotate, out = f"@llvm.fshr.v{LANES}i64", V32
    c.module.declare(f"{_V64} {rotate}({_V64}, {_V64}, {_V64})")
    off = d.sub(at, arena).ref
    number = fn.emit(f"call {_V64} {rotate}({_V64} {off}, {_V64} {off}, {_V64} splat (i64 2))")
    lanes = d.ult(Val(number, 64, True), d.lshr(size, const(2, 64)))
    found = c.state.every_active(lanes)

    def gathered() -> list[Val]:
        gather = f"@llvm.masked.gather.v{LANES}i32.v{LANES}p0"
        c.module.declare(f"{out} {gather}({_PTRS}, {_MASK}, {out})")
        where = fn.emit_new(f"inttoptr {_V64} {at.ref} to {_PTRS}")
        active = c.state.lanes_here()
        args = f"{_PTRS} align 4 {where}, {_MASK} {active}, {out} zeroinitializer"
        return [Val(fn.emit_new(f"call {out} {gather}({args})"), 32, True)]

    return found, gathered


# --- pairs --------------------------------------------------------------------------------------

_EVEN = "%pairs.even"


def _dwords(c: Context, parts: list[str], first: int) -> Val:
    """Each second dword of four vectors, of which one operation takes two at a time.  LLVM would
    have the lower ones truncated, which takes five on the shuffle port; so it is not told
    which they are: the function begins by putting their numbers into memory."""
    fn = c.fn
    permute = "@llvm.x86.avx512.vpermi2var.d.512"
    c.module.declare(f"{_HALF} {permute}({_HALF}, {_HALF}, {_HALF})")
    index = ", ".join(f"i32 {2 * lane + first}" for lane in range(16))
    numbers = f"<{index}>"
    if first == 0:
        if not any(line.startswith(f"  {_EVEN} ") for line in fn.entry):
            fn.entry.append(f"  {_EVEN} = alloca {_HALF}, align 64")
            fn.entry.append(f"  store volatile {_HALF} {numbers}, ptr {_EVEN}, align 64")
        numbers = fn.emit_new(f"load volatile {_HALF}, ptr {_EVEN}, align 64")
    halves = [
        fn.emit_new(f"call {_HALF} {permute}({_HALF} {low}, {_HALF} {numbers}, {_HALF} {high})")
        for low, high in (parts[:2], parts[2:])
    ]
    every = ", ".join(f"i32 {lane}" for lane in range(LANES))
    both = f"{_HALF} {halves[0]}, {_HALF} {halves[1]}, <{LANES} x i32> <{every}>"
    return Val(fn.emit_new(f"shufflevector {both}"), 32, True)


def _gather(c: Context, at: Val, base: Val) -> tuple[Val, Val]:
    """The dwords at base + address, and those after them."""
    fn = c.fn
    got = _gathered(c, base, "i8", f"{_V64} {at.ref}", 64)
    flat = fn.emit_new(f"bitcast {_V64} {got} to <64 x i32>")
    parts: list[str] = []
    for part in range(4):
        index = ", ".join(f"i32 {16 * part + n}" for n in range(16))
        parts.append(
            fn.emit_new(f"shufflevector <64 x i32> {flat}, <64 x i32> poison, <16 x i32> <{index}>")
        )
    return _dwords(c, parts, 0), _dwords(c, parts, 1)


def load_pair(
    c: Context, at: Val, base: Val, mate: Mate, alone: Callable[[], list[Val]]
) -> list[Val]:
    """The dwords at base + address, of vectors, with those of ``mate``; by ``alone`` where a lane
    has anything of the pairs outside."""
    d = c.d
    exec_ = c.state.exec_mask()
    there = c.spans.get(mate.first)
    if there is None:
        start = d.splat(d.add(at, d.add(base, const(mate.low % (1 << 64), 64))))
        helper = dword_helpers.inside(c.module, mate.dwords)
        args = f"ptr %w, {start.type} {start.ref}, i32 {exec_.ref}"
        there = Val(c.fn.emit_new(f"call i1 {helper}({args})"), 1, False)
        c.spans[mate.first] = there

    def together() -> list[Val]:
        if mate.above:
            return [*_gather(c, at, base)]
        low, high = _gather(c, at, d.sub(base, const(4, 64)))
        return [high, low]

    own, other = either(c, there, together, lambda: [*alone(), d.splat(const(0, 32))])
    c.held[mate.pc] = other, there
    return [own]


__all__ = ["Table", "find", "inside", "limits", "load", "load_pair"]

"""One vector memory access: the fast forms inline, everything else by a helper.

Contiguous lanes (the usual case) are vector loads or stores after a check of their ranges
(`contiguous`); an address that all lanes share, or those of a half, is one scalar load (`shared`).
Which of the forms is tried, if any, is what the code makes probable (`lane_strides`).  The check
fails on anything it cannot prove to be in range, so it never admits an access out of range.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave import run
from sassxlate.lowering.emulate.wave.access import (
    access64,
    contiguous,
    dword_helpers,
    gathers,
    limits,
    linear,
    memory_helpers,
    patterned,
    scratch_rows,
    shared,
)
from sassxlate.lowering.emulate.wave.access.arms import either
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type

V32 = vec_type(32)


@dataclass(frozen=True, slots=True)
class VectorAccess:
    """The data moved: `bytes` in memory, and for d16 the half of the register."""

    bytes: int
    signed: bool = False
    half: int | None = None

    @property
    def dwords(self) -> int:
        return max(1, self.bytes // 4)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Of an access's address, in bytes: less than `needed` is a fault, less than `fast` is left to
    the helper."""

    needed: int
    fast: int


@dataclass(frozen=True, slots=True)
class Address:
    """The lanes' addresses: base + lo, or base + (hi:lo); `space` as in memory_helpers.

    ``base`` is a 64-bit scalar; ``lo`` and ``hi`` are 32 bits wide, scalars if all lanes agree.
    """

    space: str
    lo: Val
    hi: Val | None
    base: Val

    def full(self, c: Context, form: linear.Linear | None = None) -> Val:
        """The 64-bit addresses; by ``form``, if there is one, anew."""
        d = c.d
        if form is not None:
            wide = d.zext(linear.vector(c, form), 64)
        else:
            wide = d.zext(self.lo, 64) if self.hi is None else d.concat(self.hi, self.lo)
        return d.splat(d.add(wide, self.base))

    @property
    def uniform(self) -> bool:
        return not self.lo.vec and (self.hi is None or not self.hi.vec)


def member(c: Context, at: WaveLayout, type_: str = "i64") -> str:
    """A member of SxWave that never changes during a wave."""
    shared = run.member(c.fn, at, type_)
    if shared is not None:
        return shared
    p = c.fn.emit(f"getelementptr i8, ptr %w, i64 {int(at)}")
    return c.fn.emit(f"load {type_}, ptr {p}, !invariant.load !0")


def _arena(c: Context) -> tuple[Val, Val]:
    """Its first address, and its bytes."""
    base, size = WaveLayout.ARENA_BASE, WaveLayout.ARENA_SIZE
    return Val(member(c, base), 64, False), Val(member(c, size), 64, False)


def _aligned(c: Context, address: Val, align: int) -> Val:
    d = c.d
    return d.eq(d.and_(address, const(align - 1, 64)), const(0, 64))


def _inside(
    c: Context, space: str, address: Val, span: int, base: Val | None = None
) -> tuple[Val, str]:
    """(whether `span` bytes, at least 1, from a scalar address, or from base + address, are inside,
    the host pointer).  Accesses that differ in a constant base alone share most of the work."""
    d, fn = c.d, c.fn
    base = base or const(0, 64)
    whole = d.add(address, base)
    if space == "l":
        size = d.zext(Val(member(c, WaveLayout.LDS_SIZE, "i32"), 32, False), 64)
        inside = d.not_(d.ult(size, d.add(whole, const(span, 64))))
        lds = member(c, WaveLayout.LDS, "ptr")
        return inside, fn.emit(f"getelementptr i8, ptr {lds}, i64 {whole.ref}")
    base_, size_ = _arena(c)
    c.module.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    room = fn.emit(f"call i64 @llvm.usub.sat.i64(i64 {size_.ref}, i64 {span - 1})")
    inside = d.ult(d.add(d.sub(address, base_), base), Val(room, 64, False))
    return inside, fn.emit(f"inttoptr i64 {whole.ref} to ptr")


def _aligned_all(c: Context, addresses: Sequence[Val], base: Val, align: int) -> Val:
    """Whether base + address is aligned, of each."""
    d = c.d
    if base.const is None or base.const % align:
        addresses, base = [d.add(address, base) for address in addresses], const(0, 64)
    return _aligned(c, functools.reduce(d.or_, addresses), align)


def _side_by_side(
    c: Context, a: Address, bytes_: int, align: int, more: int = 0
) -> tuple[Val, list[str], linear.Linear | None]:
    """(whether the lanes of each run are side by side, aligned and inside, the runs' pointers, how
    the addresses are made, if it is known).  ``more``: how far the last one reaches past that."""
    d, length, short = c.d, contiguous.run_length(c), a.space == "l"
    form = linear.find(d, a.lo, a.hi, bytes_, short=short)
    if form is not None and not short and limits.applies(c, form, a.base, align):
        return *limits.side_by_side(c, form, a.base, bytes_, align, more), form
    if form is None:
        starts = contiguous.starts(c, a.lo, a.hi, bytes_, short=short)
    else:
        starts = linear.starts(c, form)
    ok = d.and_(starts.hit, _aligned_all(c, starts.heads, a.base, align))
    at: list[str] = []
    for head in starts.heads:
        inside, p = _inside(c, a.space, head, length * bytes_ + more, a.base)
        ok = d.and_(ok, inside)
        at.append(p)
    return ok, at, form


def _apart(c: Context, shape: VectorAccess) -> bool:
    """Whether the lanes are probably neither side by side nor at one address."""
    return c.lane_stride not in (None, 0, shape.bytes)


def _equal(c: Context, a: Address, bytes_: int, align: int) -> tuple[Val, list[str]]:
    """(whether the lanes of each run share an address, aligned and inside, the runs' pointers)."""
    d = c.d
    ok, firsts = shared.starts(c, a.lo, a.hi)
    at: list[str] = []
    for first in firsts:
        inside, p = _inside(c, a.space, first, bytes_, a.base)
        ok = d.and_(ok, inside)
        at.append(p)
    return d.and_(ok, _aligned_all(c, firsts, a.base, align)), at


def _pattern(c: Context, a: Address, shape: VectorAccess) -> patterned.Pattern | None:
    """Where the lanes' dwords in LDS probably are, if they are not side by side."""
    if c.pattern is None or c.rows or not _in_registers(c, a, shape) or not a.lo.vec:
        return None
    return patterned.suitable(c.pattern)


def _as_expected(c: Context, a: Address, pattern: patterned.Pattern, align: int) -> tuple[Val, str]:
    """(whether the active lanes are where they are expected, aligned and inside, lane 0's
    pointer)."""
    ok, first = patterned.holds(c, a.lo, pattern)
    start = c.d.zext(first, 64)
    inside, p = _inside(c, "l", start, pattern.span, a.base)
    ok = c.d.and_(ok, _aligned_all(c, [start], a.base, align))
    return _some(c, c.d.and_(ok, inside), c.state.exec_mask()), p


def scalar_pointer(c: Context, address: Val, base: Val, span: int) -> str:
    """The host pointer of `span` bytes at base + address of device memory, aligned to 4."""
    fn = c.fn
    inside, near = _inside(c, "g", address, span, base)
    ok = c.d.and_(inside, _aligned_all(c, [address], base, 4))
    address = c.d.add(address, base)
    n, here = fn.fresh("s"), fn.block
    fn.do(f"br i1 {ok.ref}, label %join.{n}, label %far.{n}, !prof !1")
    with fn.arm(f"far.{n}"):
        helper = memory_helpers.resolve(c.module, span)
        far = fn.emit_new(f"call ptr {helper}(ptr %w, i64 {address.ref}, i32 {c.pc_ref})")
        fn.do(f"br label %join.{n}")
    fn.label(f"join.{n}", keep=True)
    return fn.emit_new(f"phi ptr [ {near}, %{here} ], [ {far}, %far.{n} ]")


def _scratch_row(c: Context, a: Address, bytes_: int) -> tuple[Val, str]:
    """The dword row of a scratch address that all lanes share; see memory_helpers for the
    layout."""
    d = c.d
    offset = d.add(d.zext(a.lo, 64), a.base)
    size = Val(member(c, WaveLayout.SCRATCH_SIZE), 64, False)
    inside = d.not_(d.ult(size, d.add(offset, const(bytes_, 64))))
    ok = d.and_(inside, _aligned(c, offset, 4))
    base = member(c, WaveLayout.SCRATCH, "ptr")
    row = d.shl(offset, const(5, 64))
    return ok, c.fn.emit(f"getelementptr i8, ptr {base}, i64 {row.ref}")


def _known_row(c: Context, a: Address, bytes_: int, align: int) -> str | None:
    """The row of a constant scratch address that every launch has; otherwise None."""
    at = a.lo.const
    if at is None or a.base.const != 0 or at % max(align, 4) or at + bytes_ > c.scratch:
        return None
    return c.fn.emit(f"getelementptr i8, ptr {member(c, WaveLayout.SCRATCH, 'ptr')}, i64 {32 * at}")


# --- buffers of the helpers ------------------------------------------------------------------


def put(c: Context, buffer: str, value: Val, at: int) -> None:
    v = c.d.splat(value)
    p = c.fn.emit_new(f"getelementptr i8, ptr {buffer}, i64 {at}")
    c.fn.do(f"store {v.type} {v.ref}, ptr {p}, align 64")


def get(c: Context, buffer: str, at: int) -> Val:
    p = c.fn.emit_new(f"getelementptr i8, ptr {buffer}, i64 {at}")
    return Val(c.fn.emit_new(f"load {V32}, ptr {p}, align 64"), 32, True)


def call(c: Context, helper: str, address: Val, data: str, exec_: Val) -> None:
    buf = c.fn.buffer("addr", 256)
    c.fn.do(f"store {vec_type(64)} {address.ref}, ptr {buf}, align 64")
    c.fn.do(f"call void {helper}(ptr %w, ptr {buf}, ptr {data}, i32 {exec_.ref}, i32 {c.pc_ref})")


def _in_registers(c: Context, a: Address, shape: VectorAccess) -> bool:
    """Whether the helper takes vectors, not buffers."""
    return c.d.avx512 and dword_helpers.handles(a.space, shape.bytes)


def _dword_arguments(c: Context, a: Address, form: linear.Linear | None = None) -> str:
    if a.space == "l":
        address = c.d.splat(a.lo) if form is None else linear.vector(c, form)
    else:
        address = a.full(c, form)
    return f"ptr %w, {address.type} {address.ref}"


def data_buffer(c: Context) -> str:
    return c.fn.buffer("data", 128 * 4)


# --- loads -----------------------------------------------------------------------------------


def _uniform_load(c: Context, p: str, space: str, shape: VectorAccess, volatile: bool) -> list[Val]:
    how = "load volatile" if volatile else "load"
    if shape.bytes < 4:
        w = 8 * shape.bytes
        raw = Val(c.fn.emit_new(f"{how} i{w}, ptr {p}, align {shape.bytes}"), w, False)
        return [c.d.sext(raw, 32) if shape.signed else c.d.zext(raw, 32)]
    out: list[Val] = []
    step = 8 if access64.in_pairs(space, shape.bytes) else 4
    for at in range(0, shape.bytes, step):
        q = c.fn.emit(f"getelementptr i8, ptr {p}, i64 {at}")
        got = Val(c.fn.emit_new(f"{how} i{8 * step}, ptr {q}, align 4"), 8 * step, False)
        out.extend(c.d.extract(got, low, 32) for low in range(0, 8 * step, 32))
    return out


def _shared_load(
    c: Context, at: Sequence[str], space: str, shape: VectorAccess, volatile: bool
) -> list[Val]:
    runs = [_uniform_load(c, p, space, shape, volatile) for p in at]
    return [shared.spread(c, words) for words in zip(*runs, strict=True)]


def _with_mate(c: Context, a: Address, alone: Callable[[], list[Val]]) -> list[Val]:
    """Scattered dwords, together with those of a later load where there is one
    (`adjacent_loads`)."""
    if c.loaded is not None:
        value, there = c.loaded
        return either(c, there, lambda: [value], alone)
    if c.mate is None and a.space == "g" and not c.strict:
        ok, gathered = gathers.anywhere(c, a.full(c), *_arena(c))
        return either(c, ok, gathered, alone)
    if c.mate is None:
        return alone()
    at = replace(a, base=const(0, 64)).full(c)
    return gathers.load_pair(c, at, a.base, c.mate, alone)


def _table(c: Context, a: Address, shape: VectorAccess) -> gathers.Table | None:
    """Dwords that are probably loaded by indices of 32 bits, alone."""
    if a.space != "g" or shape.bytes != 4 or not c.d.avx512 or c.strict:
        return None
    if c.mate is not None or c.loaded is not None:
        return None
    return gathers.find(c.d, a.lo, a.hi)


def load(
    c: Context, a: Address, shape: VectorAccess, aligned: Alignment, volatile: bool
) -> list[Val]:
    """The dwords that the active lanes read."""
    d, align = c.d, aligned.fast
    exec_ = c.state.exec_mask()

    def by_lanes() -> str:
        return memory_helpers.load(
            c.module, a.space, shape.bytes, aligned.needed, shape.signed, avx512=d.avx512
        )

    def slow(form: linear.Linear | None = None) -> list[Val]:
        if _in_registers(c, a, shape):
            helper = dword_helpers.load(c.module, a.space, aligned.needed, by_lanes)
            rest = f"i32 {exec_.ref}, i32 {c.pc_ref}"
            got = c.fn.emit_new(f"call {V32} {helper}({_dword_arguments(c, a, form)}, {rest})")
            return [Val(got, 32, True)]
        buf = data_buffer(c)
        call(c, by_lanes(), a.full(c, form), buf, exec_)
        return [get(c, buf, 128 * i) for i in range(shape.dwords)]

    if a.space == "s":
        if not a.uniform or shape.bytes < 4:
            return slow()
        known = _known_row(c, a, shape.bytes, align)
        if known is not None:  # also without active lanes: the value is not used then
            return scratch_rows.load(c, known, shape.dwords)
        ok, p = _scratch_row(c, a, shape.bytes)
        ok = d.and_(ok, _natural(c, a, align))
        return either(c, _some(c, ok, exec_), lambda: scratch_rows.load(c, p, shape.dwords), slow)
    if a.uniform:
        address = d.zext(a.lo, 64) if a.hi is None else d.concat(a.hi, a.lo)
        inside, p = _inside(c, a.space, address, shape.bytes, a.base)
        ok = _some(c, d.and_(inside, _aligned_all(c, [address], a.base, align)), exec_)
        return either(c, ok, lambda: _uniform_load(c, p, a.space, shape, volatile), slow)
    pattern = _pattern(c, a, shape)
    if pattern is not None:
        ok, p = _as_expected(c, a, pattern, align)
        return either(c, ok, lambda: [patterned.load(c, p, pattern)], slow)
    overlap = c.lane_stride == 4 < shape.bytes and aligned.needed <= 4
    if not overlap and (shape.bytes == 12 or _apart(c, shape)):
        table = _table(c, a, shape)
        if table is not None:
            base = d.add(table.base, a.base)
            ok = gathers.inside(c, table, base, *_arena(c))
            return either(c, ok, lambda: gathers.load(c, table, base), slow)
        return _with_mate(c, a, slow) if _in_registers(c, a, shape) else slow()
    if c.lane_stride == 0:
        ok, at = _equal(c, a, shape.bytes, align)
        return either(c, ok, lambda: _shared_load(c, at, a.space, shape, volatile), slow)
    step = 4 if overlap else shape.bytes
    ok, at, form = _side_by_side(c, a, step, align, shape.bytes - step)

    def fast() -> list[Val]:
        if overlap:
            return contiguous.overlapping_load(c, at, shape.bytes, min(align, 4), volatile)
        buf = data_buffer(c)
        return contiguous.load(c, at, shape.bytes, shape.signed, min(align, 4), volatile, buf)

    return either(c, ok, fast, lambda: slow(form))


def _some(c: Context, ok: Val, exec_: Val) -> Val:
    """``ok``, and some lane is active: without one no memory may be accessed."""
    return c.d.and_(ok, c.d.not_(c.d.eq(exec_, const(0, 32))))


def _natural(c: Context, a: Address, align: int) -> Val:
    return _aligned(c, c.d.add(c.d.zext(a.lo, 64), a.base), align)


# --- stores ----------------------------------------------------------------------------------


def store(c: Context, a: Address, shape: VectorAccess, aligned: Alignment, data: list[Val]) -> None:
    d, align = c.d, aligned.fast
    exec_, lanes = c.state.exec_mask(), c.state.exec_lanes()
    data = [d.splat(v) for v in data]

    def by_lanes() -> str:
        return memory_helpers.store(c.module, a.space, shape.bytes, aligned.needed, avx512=d.avx512)

    def slow(form: linear.Linear | None = None) -> list[Val]:
        if _in_registers(c, a, shape):
            helper = dword_helpers.store(c.module, a.space, aligned.needed, by_lanes)
            rest = f"{V32} {data[0].ref}, i32 {exec_.ref}, i32 {c.pc_ref}"
            c.fn.do(f"call void {helper}({_dword_arguments(c, a, form)}, {rest})")
            return []
        buf = data_buffer(c)
        for i, value in enumerate(data):
            put(c, buf, value, 128 * i)
        call(c, by_lanes(), a.full(c, form), buf, exec_)
        return []

    if a.space == "s":
        if not a.uniform or shape.bytes < 4:
            slow()
            return
        known = _known_row(c, a, shape.bytes, align)
        if known is not None:
            scratch_rows.store(c, known, data, lanes)
            return
        ok, p = _scratch_row(c, a, shape.bytes)

        def rows() -> list[Val]:
            scratch_rows.store(c, p, data, lanes)
            return []

        either(c, _some(c, d.and_(ok, _natural(c, a, align)), exec_), rows, slow)
        return
    pattern = _pattern(c, a, shape)
    if pattern is not None:
        ok, p = _as_expected(c, a, pattern, align)

        def spread() -> list[Val]:
            patterned.store(c, p, pattern, data[0])
            return []

        either(c, ok, spread, slow)
        return
    if a.uniform or shape.bytes == 12 or _apart(c, shape):
        slow()
        return
    ok, at, form = _side_by_side(c, a, shape.bytes, align)
    # Other host threads have no part in LDS: what inactive lanes have there may be written again.
    blended = a.space == "l" and shape.bytes in ((4, 8) if d.avx512 else (4,))
    masked = blended or (shape.bytes == 4 and d.avx512)
    if not masked:
        ok = d.and_(ok, d.eq(exec_, const(-1, 32)))

    def fast() -> list[Val]:
        if not masked:
            contiguous.store(c, at, shape.bytes, data, min(align, 4), data_buffer(c))
        elif blended:
            contiguous.blend(c, at, data, lanes)
        else:
            contiguous.masked_store(c, at, data[0], 4, lanes)
        return []

    either(c, ok, fast, lambda: slow(form))


__all__ = [
    "Address",
    "Alignment",
    "VectorAccess",
    "call",
    "data_buffer",
    "get",
    "load",
    "put",
    "store",
]

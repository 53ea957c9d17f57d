"""One vector memory access: the fast forms inline, everything else by a helper.

Contiguous lanes (the usual case) are one vector load or store after one check of the whole
range; an address that all lanes share is one scalar load.  The check fails on anything it cannot
prove to be in range, so it never admits an access out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.access import access64, memory_helpers
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type
from sassxlate.lowering.target import LANES

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

    def full(self, c: Context) -> Val:
        """The 64-bit addresses."""
        d = c.d
        wide = d.zext(self.lo, 64) if self.hi is None else d.concat(self.hi, self.lo)
        return d.splat(d.add(wide, self.base))

    @property
    def uniform(self) -> bool:
        return not self.lo.vec and (self.hi is None or not self.hi.vec)


def member(c: Context, at: WaveLayout, type_: str = "i64") -> str:
    """A member of SxWave that never changes during a wave."""
    p = c.fn.emit(f"getelementptr i8, ptr %w, i64 {int(at)}")
    return c.fn.emit(f"load {type_}, ptr {p}, !invariant.load !0")


def _first(c: Context, a: Val) -> Val:
    """Lane 0's value."""
    if not a.vec:
        return a
    return Val(c.fn.emit(f"extractelement {a.type} {a.ref}, i64 0"), a.width, False)


def _all_active(c: Context, lanes: Val, exec_: Val) -> Val:
    """Whether a truth value holds in every active lane."""
    d = c.d
    bits = d.mask_of(lanes)
    return d.eq(d.or_(bits, d.not_(exec_)), const(-1, 32))


def _side_by_side(c: Context, a: Address, bytes_: int, exec_: Val) -> tuple[Val, Val]:
    """(whether lane i is at lane 0's address + i * bytes_, lane 0's address)."""
    d = c.d
    first = _first(c, a.lo)
    steps = Val("<" + ", ".join(f"i32 {i * bytes_}" for i in range(LANES)) + ">", 32, True)
    hit = d.eq(d.splat(a.lo), d.add(d.splat(first), steps))
    start = d.zext(first, 64)
    if a.hi is not None:
        high = _first(c, a.hi)
        if a.hi.vec:
            hit = d.and_(hit, d.eq(a.hi, d.splat(high)))
        start = d.concat(high, first)
    fits = d.ult(first, const((1 << 32) - LANES * bytes_, 32))
    return d.and_(_all_active(c, hit, exec_), fits), d.add(start, a.base)


def _aligned(c: Context, address: Val, align: int) -> Val:
    d = c.d
    return d.eq(d.and_(address, const(align - 1, 64)), const(0, 64))


def _pointer(c: Context, space: str, address: Val, span: int) -> tuple[Val, str]:
    """(whether `span` bytes from a scalar address are inside, the host pointer)."""
    d = c.d
    if space == "l":
        size = d.zext(Val(member(c, WaveLayout.LDS_SIZE, "i32"), 32, False), 64)
        end = d.add(address, const(span, 64))
        inside = d.not_(d.ult(size, end))
        base = member(c, WaveLayout.LDS, "ptr")
        return inside, c.fn.emit(f"getelementptr i8, ptr {base}, i64 {address.ref}")
    base_, size_ = (
        Val(member(c, m), 64, False) for m in (WaveLayout.ARENA_BASE, WaveLayout.ARENA_SIZE)
    )
    c.module.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    room = c.fn.emit(f"call i64 @llvm.usub.sat.i64(i64 {size_.ref}, i64 {span - 1})")
    inside = d.ult(d.sub(address, base_), Val(room, 64, False))
    return inside, c.fn.emit(f"inttoptr i64 {address.ref} to ptr")


def scalar_pointer(c: Context, address: Val, span: int) -> str:
    """The host pointer of `span` bytes at a scalar address of device memory, aligned to 4."""
    fn = c.fn
    inside, near = _pointer(c, "g", address, span)
    ok = c.d.and_(inside, _aligned(c, address, 4))
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


def either(
    c: Context, cond: Val, fast: Callable[[], list[Val]], slow: Callable[[], list[Val]]
) -> list[Val]:
    """Values of one arm or the other; neither arm may read registers that are not cached yet."""
    fn = c.fn
    n = fn.fresh("m")
    fn.do(f"br i1 {cond.ref}, label %fast.{n}, label %slow.{n}, !prof !1")
    ends: list[tuple[list[Val], str]] = []
    for name, arm in (("fast", fast), ("slow", slow)):
        with fn.arm(f"{name}.{n}"):
            values = [c.d.splat(v) for v in arm()]
            ends.append((values, fn.block))
            fn.do(f"br label %join.{n}")
    fn.label(f"join.{n}", keep=True)
    out: list[Val] = []
    for a, b in zip(ends[0][0], ends[1][0], strict=True):
        ref = fn.emit_new(f"phi {a.type} [ {a.ref}, %{ends[0][1]} ], [ {b.ref}, %{ends[1][1]} ]")
        out.append(Val(ref, a.width, True))
    return out


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


def data_buffer(c: Context) -> str:
    return c.fn.buffer("data", 128 * 4)


# --- loads -----------------------------------------------------------------------------------


def _wide_load(c: Context, p: str, shape: VectorAccess, align: int, volatile: bool) -> list[Val]:
    """The dwords of 32 contiguous elements."""
    fn, how = c.fn, "load volatile" if volatile else "load"
    if shape.bytes < 4:
        narrow = f"<{LANES} x i{8 * shape.bytes}>"
        raw = Val(
            fn.emit_new(f"{how} {narrow}, ptr {p}, align {shape.bytes}"), 8 * shape.bytes, True
        )
        return [c.d.sext(raw, 32) if shape.signed else c.d.zext(raw, 32)]
    n = shape.dwords
    if n > 1 and not c.d.avx512:
        buf = data_buffer(c)
        fn.do(f"call void {memory_helpers.deal(c.module, n, align)}(ptr {p}, ptr {buf})")
        return [get(c, buf, 128 * k) for k in range(n)]
    ty = f"<{LANES * n} x i32>"
    if n > 1:
        how = "load volatile"  # whole vectors: otherwise LLVM moves single dwords (see access64)
    ref = fn.emit_new(f"{how} {ty}, ptr {p}, align {align}")
    if n == 1:
        return [Val(ref, 32, True)]
    out: list[Val] = []
    for k in range(n):
        index = ", ".join(f"i32 {n * i + k}" for i in range(LANES))
        part = fn.emit(f"shufflevector {ty} {ref}, {ty} poison, <{LANES} x i32> <{index}>")
        out.append(Val(part, 32, True))
    return out


def _rows_load(c: Context, p: str, n: int) -> list[Val]:
    out: list[Val] = []
    for k in range(n):
        q = c.fn.emit(f"getelementptr i8, ptr {p}, i64 {128 * k}")
        out.append(Val(c.fn.emit_new(f"load {V32}, ptr {q}, align 4"), 32, True))
    return out


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


def load(
    c: Context, a: Address, shape: VectorAccess, aligned: Alignment, volatile: bool
) -> list[Val]:
    """The dwords that the active lanes read."""
    d, align = c.d, aligned.fast
    exec_ = c.state.exec_mask()
    helper = memory_helpers.load(
        c.module, a.space, shape.bytes, aligned.needed, shape.signed, avx512=d.avx512
    )
    buf = data_buffer(c)

    def slow() -> list[Val]:
        call(c, helper, a.full(c), buf, exec_)
        return [get(c, buf, 128 * i) for i in range(shape.dwords)]

    if a.space == "s":
        if not a.uniform or shape.bytes < 4:
            return slow()
        known = _known_row(c, a, shape.bytes, align)
        if known is not None:  # also without active lanes: the value is not used then
            return _rows_load(c, known, shape.dwords)
        ok, p = _scratch_row(c, a, shape.bytes)
        ok = d.and_(ok, _natural(c, a, align))
        return either(c, _some(c, ok, exec_), lambda: _rows_load(c, p, shape.dwords), slow)
    if a.uniform:
        address = d.add(d.zext(a.lo, 64) if a.hi is None else d.concat(a.hi, a.lo), a.base)
        inside, p = _pointer(c, a.space, address, shape.bytes)
        ok = _some(c, d.and_(inside, _aligned(c, address, align)), exec_)
        return either(c, ok, lambda: _uniform_load(c, p, a.space, shape, volatile), slow)
    if shape.bytes == 12:
        return slow()
    near, start = _side_by_side(c, a, shape.bytes, exec_)
    inside, p = _pointer(c, a.space, start, LANES * shape.bytes)
    ok = d.and_(d.and_(near, inside), _aligned(c, start, align))
    return either(c, ok, lambda: _wide_load(c, p, shape, min(align, 4), volatile), slow)


def _some(c: Context, ok: Val, exec_: Val) -> Val:
    """``ok``, and some lane is active: without one no memory may be accessed."""
    return c.d.and_(ok, c.d.not_(c.d.eq(exec_, const(0, 32))))


def _natural(c: Context, a: Address, align: int) -> Val:
    return _aligned(c, c.d.add(c.d.zext(a.lo, 64), a.base), align)


# --- stores ----------------------------------------------------------------------------------


def _interleave(c: Context, data: Sequence[Val]) -> str:
    """The lanes' dwords in the order of memory: [lane][dword]."""
    fn, n = c.fn, len(data)
    vs = [c.d.splat(v).ref for v in data]
    if n == 1:
        return vs[0]
    both = ", ".join(f"i32 {i}" for i in range(2 * LANES))
    joined = [
        fn.emit(f"shufflevector {V32} {vs[k]}, {V32} {vs[k + 1]}, <{2 * LANES} x i32> <{both}>")
        for k in range(0, n, 2)
    ]
    half = f"<{2 * LANES} x i32>"
    if n == 2:
        index = ", ".join(f"i32 {i + LANES * k}" for i in range(LANES) for k in range(2))
        return fn.emit(
            f"shufflevector {half} {joined[0]}, {half} poison, <{2 * LANES} x i32> <{index}>"
        )
    index = ", ".join(f"i32 {i + LANES * k}" for i in range(LANES) for k in range(4))
    return fn.emit(
        f"shufflevector {half} {joined[0]}, {half} {joined[1]}, <{4 * LANES} x i32> <{index}>"
    )


def _wide_store(c: Context, p: str, shape: VectorAccess, data: Sequence[Val], align: int) -> None:
    """All lanes are active."""
    if shape.bytes < 4:
        w = 8 * shape.bytes
        v = c.d.extract(c.d.splat(data[0]), 0, w)
        c.fn.do(f"store {vec_type(w)} {v.ref}, ptr {p}, align {shape.bytes}")
        return
    if shape.dwords > 1 and not c.d.avx512:
        buf = data_buffer(c)
        for k, value in enumerate(data):
            put(c, buf, value, 128 * k)
        c.fn.do(
            f"call void {memory_helpers.collect(c.module, shape.dwords, align)}(ptr {p}, ptr {buf})"
        )
        return
    ty = f"<{LANES * shape.dwords} x i32>"
    how = "store volatile" if shape.dwords > 1 else "store"  # as in _wide_load
    c.fn.do(f"{how} {ty} {_interleave(c, data)}, ptr {p}, align {align}")


def _masked_store(c: Context, p: str, data: Val, align: int, lanes: Val) -> None:
    mask = f"<{LANES} x i1>"
    c.module.declare(f"void @llvm.masked.store.v{LANES}i32.p0({V32}, ptr, i32 immarg, {mask})")
    c.fn.do(
        f"call void @llvm.masked.store.v{LANES}i32.p0({V32} {data.ref}, ptr {p}, i32 {align}, "
        f"{mask} {lanes.ref})"
    )


def _blend_row(c: Context, p: str, data: Val, lanes: Val) -> None:
    """A store to memory that no other host thread accesses."""
    old = Val(c.fn.emit_new(f"load {V32}, ptr {p}, align 4"), 32, True)
    c.fn.do(f"store {V32} {c.d.select(lanes, data, old).ref}, ptr {p}, align 4")


def _rows_store(c: Context, p: str, data: Sequence[Val], lanes: Val) -> None:
    for k, v in enumerate(data):
        _blend_row(c, c.fn.emit(f"getelementptr i8, ptr {p}, i64 {128 * k}"), v, lanes)


def store(c: Context, a: Address, shape: VectorAccess, aligned: Alignment, data: list[Val]) -> None:
    d, align = c.d, aligned.fast
    exec_, lanes = c.state.exec_mask(), c.state.exec_lanes()
    data = [d.splat(v) for v in data]
    helper = memory_helpers.store(c.module, a.space, shape.bytes, aligned.needed, avx512=d.avx512)
    buf = data_buffer(c)

    def slow() -> list[Val]:
        for i, value in enumerate(data):
            put(c, buf, value, 128 * i)
        call(c, helper, a.full(c), buf, exec_)
        return []

    if a.space == "s":
        if not a.uniform or shape.bytes < 4:
            slow()
            return
        known = _known_row(c, a, shape.bytes, align)
        if known is not None:
            _rows_store(c, known, data, lanes)
            return
        ok, p = _scratch_row(c, a, shape.bytes)

        def rows() -> list[Val]:
            _rows_store(c, p, data, lanes)
            return []

        either(c, _some(c, d.and_(ok, _natural(c, a, align)), exec_), rows, slow)
        return
    if a.uniform or shape.bytes == 12:
        slow()
        return
    near, start = _side_by_side(c, a, shape.bytes, exec_)
    inside, p = _pointer(c, a.space, start, LANES * shape.bytes)
    ok = d.and_(d.and_(near, inside), _aligned(c, start, align))
    masked = shape.bytes == 4 and (d.avx512 or a.space == "l")
    if not masked:
        ok = d.and_(ok, d.eq(exec_, const(-1, 32)))

    def fast() -> list[Val]:
        if not masked:
            _wide_store(c, p, shape, data, min(align, 4))
        elif a.space == "l":
            _blend_row(c, p, data[0], lanes)
        else:
            _masked_store(c, p, data[0], 4, lanes)
        return []

    either(c, ok, fast, slow)


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

"""Dwords that eight active lanes load from anywhere, for runs of instructions in packs (`loop`).

The fast form gathers for the lanes whose dwords are inside of the arena and aligned, and takes the
others out of what the pack's end compares.  If any is missing, the pack is computed again with the
careful form: a helper that visits its lanes.  There a fault is only noted, since a later pack may
have one at an earlier instruction; the first one by instruction and lane counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.lowering.emulate.image.abi import Access, DeviceFault, Rt, WaveLayout
from sassxlate.lowering.emulate.wave.access import gathers, memory, vector_access
from sassxlate.lowering.emulate.wave.access.helpers.all_lanes import member
from sassxlate.lowering.emulate.wave.access.memory_helpers import ATTRIBUTES, runtime_call
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.emulate.wave.packs.groups import Group, Span
from sassxlate.lowering.emulate.wave.packs.state import LANES, MASK, V32, V64
from sassxlate.lowering.llvm.ir_text import Module, Val, const, literal

# Bytes of a noted fault: its offset, its lane's number among the active ones, its kind, 4 of
# nothing, the address.
NOTE = 24
_PTRS = f"<{LANES} x ptr>"


@dataclass(slots=True)
class Pack:
    """A pack under construction, in its fast form or the careful one.

    ``outer`` makes what all packs share.  ``active`` is the mask of the lanes, ``good`` of those
    whose loads were all inside so far.  ``groups`` are those of all loads, ``note`` is where a
    fault is noted, and ``sort`` the vector of `sort_numbers`.
    """

    c: Context
    outer: Context
    first: str
    active: str
    groups: dict[int, Group]
    note: str
    sort: str
    careful: bool
    good: str
    place: int = 0  # of the instruction, in the code
    held: dict[int, Val] = field(default_factory=dict[int, Val])
    rows: dict[int, _Rows] = field(default_factory=dict[int, "_Rows"])  # by their span's number


def load(p: Pack, inst: Inst) -> None:
    """One global_load_b32 of scattered lanes."""
    c = p.c
    dst, addr, saddr = inst.args
    c.write32(inst, dst, _loaded(p, inst, memory.vector_address(c, inst, addr, saddr, "g")))


def _loaded(p: Pack, inst: Inst, a: vector_access.Address) -> Val:
    c = p.c
    held = p.held.pop(p.place, None)
    if held is not None:
        return held
    if p.careful:
        return _one_by_one(p, a.full(c))
    group = p.groups[p.place]
    if group.span.dwords == 1:
        table = None if a.uniform else gathers.find(c.d, a.lo, a.hi)
        if table is not None:
            return _from_table(p, table, c.d.add(table.base, a.base))
    rows = p.rows.get(group.span.number)
    if rows is None:
        start = replace(a, base=c.d.add(a.base, _bytes(group.span.low - inst.imm)))
        rows = p.rows[group.span.number] = _Rows(p, start.full(c), group.span)
    words = rows.load(group)
    p.held.update(zip(group.places, words, strict=True))
    return p.held.pop(p.place)


def _bytes(n: int) -> Val:
    return const(n % (1 << 64), 64)


def _value(ref: str, width: int) -> Val:
    return Val(ref, width, True, None, LANES)


def _gather(c: Context, where: str, lanes: str, width: int) -> str:
    type_ = f"<{LANES} x i{width}>"
    gather = f"@llvm.masked.gather.v{LANES}i{width}.v{LANES}p0"
    c.module.declare(f"{type_} {gather}({_PTRS}, {MASK}, {type_})")
    args = f"{_PTRS} align 4 {where}, {MASK} {lanes}, {type_} zeroinitializer"
    return c.fn.emit_new(f"call {type_} {gather}({args})")


def _wanted(p: Pack, inside: Val) -> str:
    """The active lanes that are ``inside``; the pack is right only if all are."""
    lanes = p.c.fn.emit(f"and {MASK} {inside.ref}, {p.active}")
    p.good = p.c.fn.emit(f"and {MASK} {p.good}, {inside.ref}")
    return lanes


def _arena(c: Context) -> tuple[Val, Val]:
    base, size = WaveLayout.ARENA_BASE, WaveLayout.ARENA_SIZE
    return (
        Val(vector_access.member(c, base), 64, False),
        Val(vector_access.member(c, size), 64, False),
    )


def _inside(p: Pack, at: Val, dwords: int) -> str:
    """The active lanes whose so many dwords from an address on are inside, and aligned: an offset
    rotated right by two bits is below the number of dwords only if it is a multiple of 4."""
    d, fn = p.c.d, p.c.fn
    base, size = _arena(p.outer)
    p.outer.module.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    whole = p.outer.d.lshr(size, const(2, 64))
    call = f"call i64 @llvm.usub.sat.i64(i64 {whole.ref}, i64 {dwords - 1})"
    count = Val(p.outer.fn.emit(call), 64, False)
    off = d.sub(at, base)
    rotate = f"@llvm.fshr.v{LANES}i64"
    fn.module.declare(f"{V64} {rotate}({V64}, {V64}, {V64})")
    args = f"{V64} {off.ref}, {V64} {off.ref}, {V64} splat (i64 2)"
    return _wanted(p, d.ult(_value(fn.emit(f"call {V64} {rotate}({args})"), 64), count))


def _from_table(p: Pack, table: gathers.Table, base: Val) -> Val:
    """Dwords by indices of 32 bits (`gathers`)."""
    c, d, outer = p.c, p.c.d, p.outer
    ok, below, span = gathers.limits(outer, base, *_arena(outer), up=table.offset)
    # Of 2**32 dwords the last one is left to the careful form.
    outer.module.declare("i32 @llvm.umin.i32(i32, i32)")
    least = outer.fn.emit(f"call i32 @llvm.umin.i32(i32 {span.ref}, i32 {literal(-2, 32)})")
    count = outer.d.add(Val(least, 32, False), const(1, 32))
    inside = d.ult(d.add(table.index, below), outer.d.select(ok, count, const(0, 32)))
    if table.factor is not None:
        inside = d.and_(inside, d.eq(table.factor, const(4, 32)))
    lanes = _wanted(p, inside)
    start = outer.fn.emit(f"inttoptr i64 {base.ref} to ptr")
    where = c.fn.emit_new(f"getelementptr i32, ptr {start}, {V32} {table.index.ref}")
    return _value(_gather(c, where, lanes, 32), 32)


class _Rows:
    """The lanes' dwords by one vector of addresses, of which one check is enough; two side by side
    are gathered as 64 bits."""

    def __init__(self, p: Pack, at: Val, span: Span) -> None:
        self.p, self.at, self.span = p, at, span
        self.lanes = _inside(p, at, span.dwords)

    def load(self, group: Group) -> list[Val]:
        c = self.p.c
        at = c.d.add(self.at, _bytes(group.low - self.span.low))
        where = c.fn.emit(f"inttoptr {V64} {at.ref} to {_PTRS}")
        if len(group.places) == 1:
            return [_value(_gather(c, where, self.lanes, 32), 32)]
        return _halves(self.p, _gather(c, where, self.lanes, 64))


def _halves(p: Pack, pairs: str) -> list[Val]:
    """The lower and the upper dwords.  LLVM would truncate twice, which takes four on the shuffle
    port instead of two; so it is not told which dwords the vector of numbers names."""
    fn = p.c.fn
    both, permute = "<16 x i32>", "@llvm.x86.avx512.permvar.si.512"
    fn.module.declare(f"{both} {permute}({both}, {both})")
    flat = fn.emit_new(f"bitcast {V64} {pairs} to {both}")
    sorted_ = fn.emit_new(f"call {both} {permute}({both} {flat}, {both} {p.sort})")
    parts: list[Val] = []
    for half in (0, 8):
        index = ", ".join(f"i32 {half + lane}" for lane in range(LANES))
        text = f"shufflevector {both} {sorted_}, {both} poison, <{LANES} x i32> <{index}>"
        parts.append(_value(fn.emit_new(text), 32))
    return parts


def sort_numbers(c: Context, name: str) -> str:
    """Numbers of the lower dwords of eight pairs, then of the upper ones, from memory."""
    fn, place, type_ = c.fn, "%pack.sorted", "<16 x i32>"
    if not any(line.startswith(f"  {place} ") for line in fn.entry):
        numbers = ", ".join(f"i32 {2 * lane + half}" for half in (0, 1) for lane in range(LANES))
        fn.entry.append(f"  {place} = alloca {type_}, align 64")
        fn.entry.append(f"  store volatile {type_} <{numbers}>, ptr {place}, align 64")
    fn.do(f"{name} = load volatile {type_}, ptr {place}, align 64")
    return name


# --- the careful form ---------------------------------------------------------------------------


def _one_by_one(p: Pack, at: Val) -> Val:
    c = p.c
    args = f"ptr %w, {V64} {at.ref}, i8 {p.active}.bits, i32 {p.first}, i32 {c.pc}, ptr {p.note}"
    return _value(c.fn.emit_new(f"call {V32} {_helper(c.module)}({args})"), 32)


def _helper(m: Module) -> str:
    """@load.pack(w, addresses, active, first, pc, note) -> dwords."""
    name = "load.pack"
    if name in m.functions:
        return f"@{name}"
    m.declare("i32 @llvm.cttz.i32(i32, i1)")
    found = runtime_call(Rt.FIND, "ptr", f"ptr %w, i64 %a, i32 4, i32 {int(Access.READ)}")
    m.functions[name] = (
        f"define internal {V32} @{name}(ptr %w, {V64} %at, i8 %active, i32 %first, i32 %pc, "
        f"ptr %note) noinline cold {ATTRIBUTES} {{\nentry:\n"
        f"  %addr = alloca {V64}, align 64\n  %out = alloca {V32}, align 32\n"
        f"  store {V64} %at, ptr %addr, align 64\n"
        f"  store {V32} zeroinitializer, ptr %out, align 32\n"
        + member("base", "i64", WaveLayout.ARENA_BASE)
        + member("size", "i64", WaveLayout.ARENA_SIZE)
        + "  %left = zext i8 %active to i32\n  br label %head\nhead:\n"
        "  %m = phi i32 [ %left, %entry ], [ %m.rest, %next ]\n"
        "  %none = icmp eq i32 %m, 0\n  br i1 %none, label %done, label %lane\nlane:\n"
        "  %l = call i32 @llvm.cttz.i32(i32 %m, i1 true)\n"
        "  %m.less = sub i32 %m, 1\n  %m.rest = and i32 %m, %m.less\n"
        "  %l.64 = zext i32 %l to i64\n"
        "  %a.p = getelementptr i64, ptr %addr, i64 %l.64\n  %a = load i64, ptr %a.p\n"
        "  %low = and i64 %a, 3\n  %odd = icmp ne i64 %low, 0\n"
        "  br i1 %odd, label %bad, label %aligned\naligned:\n"
        "  %off = sub i64 %a, %base\n  %lim = sub i64 %size, 4\n"
        "  %in.1 = icmp ule i64 %off, %lim\n  %in.2 = icmp uge i64 %size, 4\n"
        "  %in = and i1 %in.1, %in.2\n  br i1 %in, label %near, label %far\nnear:\n"
        "  %here = inttoptr i64 %a to ptr\n  br label %get\nfar:\n"
        + found
        + "  %lost = icmp eq ptr %rt.r, null\n  br i1 %lost, label %bad, label %get\nget:\n"
        "  %from = phi ptr [ %here, %near ], [ %rt.r, %far ]\n"
        "  %got = load volatile i32, ptr %from, align 4\n"
        "  %to = getelementptr i32, ptr %out, i64 %l.64\n  store i32 %got, ptr %to\n"
        "  br label %next\nbad:\n"
        f"  %kind = phi i32 [ {int(DeviceFault.MISALIGNED)}, %lane ], "
        f"[ {int(DeviceFault.ADDRESS)}, %far ]\n"
        "  %noted = load i32, ptr %note\n  %earlier = icmp ult i32 %pc, %noted\n"
        "  br i1 %earlier, label %write, label %next\nwrite:\n"
        "  store i32 %pc, ptr %note\n  %n = add i32 %first, %l\n"
        "  %note.n = getelementptr i8, ptr %note, i64 4\n  store i32 %n, ptr %note.n\n"
        "  %note.k = getelementptr i8, ptr %note, i64 8\n  store i32 %kind, ptr %note.k\n"
        "  %note.a = getelementptr i8, ptr %note, i64 16\n  store i64 %a, ptr %note.a\n"
        "  br label %next\nnext:\n  br label %head\ndone:\n"
        f"  %all = load {V32}, ptr %out, align 32\n  ret {V32} %all\n}}\n"
    )
    return f"@{name}"


__all__ = ["NOTE", "Pack", "load", "sort_numbers"]

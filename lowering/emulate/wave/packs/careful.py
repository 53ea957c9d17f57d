"""The careful form of loads in packs: a helper that visits the active lanes.

A fault is only noted, since a later pack may have one at an earlier instruction; the first one by
instruction and lane counts.
"""

from __future__ import annotations

from sassxlate.lowering.emulate.image.abi import Access, DeviceFault, Rt, WaveLayout
from sassxlate.lowering.emulate.wave.access.gathers import Table
from sassxlate.lowering.emulate.wave.access.helpers.all_lanes import member
from sassxlate.lowering.emulate.wave.access.memory_helpers import ATTRIBUTES, runtime_call
from sassxlate.lowering.emulate.wave.packs.state import LANES, MASK, V32, V64, PackedFunction
from sassxlate.lowering.llvm.ir_text import Module, Val

# Bytes of a noted fault: its offset, its lane's number among the active ones, its kind, 4 of
# nothing, the address.
NOTE = 24


def _value(ref: str) -> Val:
    return Val(ref, 32, True, None, LANES)


def alone(fn: PackedFunction, at: Val, given: str) -> Val:
    """Dwords by a vector of addresses; ``given`` are the helper's last four arguments."""
    args = f"ptr %w, {V64} {at.ref}, {given}"
    return _value(fn.emit_new(f"call {V32} {_helper(fn.module)}({args})"))


def of_rows(fn: PackedFunction, place: str, lanes: str, offset: int, given: str) -> Val:
    """The same by addresses that are in memory, by the lanes' numbers, and so many bytes beyond."""
    args = f"ptr %w, ptr {place}, ptr {lanes}, i64 {offset}, {given}"
    return _value(fn.emit_new(f"call {V32} {_rows_helper(fn.module)}({args})"))


def of_table(fn: PackedFunction, table: Table, base: Val, given: str) -> Val:
    """The same by indices of a table (not by offsets), whose addresses only the helper makes."""
    factor = "splat (i32 4)" if table.factor is None else table.factor.ref
    args = f"ptr %w, {V32} {table.index.ref}, {V32} {factor}, i64 {base.ref}, {given}"
    return _value(fn.emit_new(f"call {V32} {_table_helper(fn.module)}({args})"))


def ordered(fn: PackedFunction, given: Val, lanes: str) -> Val:
    """The pack's lanes of a value of the wave, whose numbers are in memory."""
    v, low = "<16 x i32>", "poison, <16 x i32> <"
    halves = [
        fn.outer.emit(
            f"shufflevector {given.type} {given.ref}, {given.type} {low}"
            + ", ".join(f"i32 {first + lane}" for lane in range(16))
            + ">"
        )
        for first in (0, 16)
    ]
    permute = "@llvm.x86.avx512.vpermi2var.d.512"
    fn.module.declare(f"{v} {permute}({v}, {v}, {v})")
    eight = ", ".join(f"i32 {lane}" for lane in range(LANES))
    numbers = fn.emit_new(f"load {V32}, ptr {lanes}, align 4")
    wide = f"shufflevector {V32} {numbers}, {V32} {low}{eight}, {eight}>"
    numbers = fn.emit_new(wide)
    args = f"{v} {halves[0]}, {v} {numbers}, {v} {halves[1]}"
    both = fn.emit_new(f"call {v} {permute}({args})")
    return _value(fn.emit_new(f"shufflevector {v} {both}, {v} poison, <{LANES} x i32> <{eight}>"))


_GIVEN = "i8 %active, i32 %first, i32 %pc, ptr %note"


def _table_helper(m: Module) -> str:
    """@load.table(w, indices, factors, base, active, first, pc, note) -> dwords."""
    name = "load.table"
    if name not in m.functions:
        m.functions[name] = (
            f"define internal {V32} @{name}(ptr %w, {V32} %index, {V32} %factor, i64 %base, "
            f"{_GIVEN}) noinline cold {ATTRIBUTES} {{\n"
            f"  %i = sext {V32} %index to {V64}\n  %f = sext {V32} %factor to {V64}\n"
            f"  %p = mul {V64} %i, %f\n"
            f"  %b = insertelement {V64} poison, i64 %base, i64 0\n"
            f"  %s = shufflevector {V64} %b, {V64} poison, {V32} zeroinitializer\n"
            f"  %at = add {V64} %p, %s\n"
            f"  %r = call {V32} {_helper(m)}(ptr %w, {V64} %at, {_GIVEN})\n  ret {V32} %r\n}}\n"
        )
    return f"@{name}"


def _rows_helper(m: Module) -> str:
    """@load.rows(w, addresses by lane, lanes, offset, active, first, pc, note) -> dwords."""
    name = "load.rows"
    if name not in m.functions:
        ptrs, gather = f"<{LANES} x ptr>", f"@llvm.masked.gather.v{LANES}i64.v{LANES}p0"
        m.declare(f"{V64} {gather}({ptrs}, {MASK}, {V64})")
        m.functions[name] = (
            f"define internal {V32} @{name}(ptr %w, ptr %places, ptr %lanes, i64 %offset, "
            f"{_GIVEN}) noinline cold {ATTRIBUTES} {{\n"
            f"  %n = load {V32}, ptr %lanes, align 4\n"
            f"  %p = getelementptr i64, ptr %places, {V32} %n\n"
            f"  %a = call {V64} {gather}({ptrs} align 8 %p, {MASK} splat (i1 true), {V64} poison)\n"
            f"  %o = insertelement {V64} poison, i64 %offset, i64 0\n"
            f"  %s = shufflevector {V64} %o, {V64} poison, {V32} zeroinitializer\n"
            f"  %at = add {V64} %a, %s\n"
            f"  %r = call {V32} {_helper(m)}(ptr %w, {V64} %at, {_GIVEN})\n  ret {V32} %r\n}}\n"
        )
    return f"@{name}"


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


__all__ = ["NOTE", "alone", "of_rows", "of_table", "ordered"]

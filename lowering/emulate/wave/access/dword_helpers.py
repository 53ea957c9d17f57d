"""Helpers' code for scattered dwords, in LLVM IR for AVX-512: lanes' addresses and data in vectors.

A call takes and returns registers of the host, not buffers: a lane's address that was just stored
is slow to load while older stores wait for memory.  One unsigned comparison per lane is the whole
check: an offset rotated right by two bits is below the number of dwords only if it is a multiple
of 4 and inside.  What fails the check goes to the helper that visits the lanes one by one, which
reports faults.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.access.helpers.all_lanes import member
from sassxlate.lowering.llvm.ir_text import Module
from sassxlate.lowering.target import LANES

V32, _MASK, _PTRS = "<32 x i32>", "<32 x i1>", "<32 x ptr>"
ATTRIBUTES = 'nounwind "min-legal-vector-width"="512"'
# Lane 0's value in the lower half, lane 16's in the upper one.
_FIRSTS = ", ".join(f"i32 {lane // 16 * 16}" for lane in range(LANES))
_ZEROS = "<32 x i32> zeroinitializer"


def handles(space: str, bytes_: int) -> bool:
    """Whether accesses of a space (see memory_helpers) and a size have helpers here."""
    return bytes_ == 4 and space != "s"


def address_type(space: str) -> str:
    """The lanes' addresses as an argument: those of LDS have 32 bits."""
    return V32 if space == "l" else "<32 x i64>"


def inside_text(m: Module, space: str, dwords: int = 1) -> str:
    """%all: every active lane's ``dwords`` are inside; %wanted: the active lanes."""
    type_, bits = address_type(space), 32 if space == "l" else 64
    m.declare(f"{type_} @llvm.fshr.v32i{bits}({type_}, {type_}, {type_})")
    m.declare(f"i{bits} @llvm.usub.sat.i{bits}(i{bits}, i{bits})")
    if space == "l":
        text, off = member("size", "i32", WaveLayout.LDS_SIZE), "%at"
    else:
        off = "%off"
        text = (
            member("base", "i64", WaveLayout.ARENA_BASE)
            + member("size", "i64", WaveLayout.ARENA_SIZE)
            + f"  %base.1 = insertelement {type_} poison, i64 %base, i64 0\n"
            f"  %base.v = shufflevector {type_} %base.1, {type_} poison, {_ZEROS}\n"
            f"  %off = sub {type_} %at, %base.v\n"
        )
    return text + (
        f"  %numbers = call {type_} @llvm.fshr.v32i{bits}({type_} {off}, {type_} {off}, "
        f"{type_} splat (i{bits} 2))\n"
        f"  %whole = lshr i{bits} %size, 2\n"
        f"  %count = call i{bits} @llvm.usub.sat.i{bits}(i{bits} %whole, i{bits} {dwords - 1})\n"
        f"  %count.1 = insertelement {type_} poison, i{bits} %count, i64 0\n"
        f"  %count.v = shufflevector {type_} %count.1, {type_} poison, {_ZEROS}\n"
        f"  %in = icmp ult {type_} %numbers, %count.v\n  %in.m = bitcast {_MASK} %in to i32\n"
        "  %inactive = xor i32 %exec, -1\n  %all.m = or i32 %in.m, %inactive\n"
        f"  %all = icmp eq i32 %all.m, -1\n  %wanted = bitcast i32 %exec to {_MASK}\n"
    )


def _pointers(space: str) -> str:
    """%ptrs.  Offsets of 32 bits in LDS: the host moves twice as many at a time by them."""
    if space != "l":
        return f"  %ptrs = inttoptr <32 x i64> %at to {_PTRS}\n"
    return (
        member("lds", "ptr", WaveLayout.LDS) + f"  %ptrs = getelementptr i8, ptr %lds, {V32} %at\n"
    )


def _pointer(space: str, name: str, at: str) -> str:
    """%{name}.p of a scalar address."""
    if space != "l":
        return f"  %{name}.p = inttoptr i64 {at} to ptr\n"
    lds = member(f"{name}.lds", "ptr", WaveLayout.LDS)
    return f"{lds}  %{name}.p = getelementptr i8, ptr %{name}.lds, i32 {at}\n"


def _shared(space: str) -> str:
    """From `once`: to `shared` if the wave is whole and the lanes of each half agree; otherwise to
    `anywhere`.  Lane 1 is looked at first, so that other forms hardly pay for the test."""
    type_, bits = address_type(space), 32 if space == "l" else 64
    one = f"i{bits}"
    return (
        f"  %at.0 = extractelement {type_} %at, i64 0\n"
        f"  %at.1 = extractelement {type_} %at, i64 1\n"
        f"  %maybe = icmp eq {one} %at.0, %at.1\n"
        "  br i1 %maybe, label %compare, label %anywhere\ncompare:\n"
        f"  %firsts = shufflevector {type_} %at, {type_} poison, <32 x i32> <{_FIRSTS}>\n"
        f"  %same.l = icmp eq {type_} %at, %firsts\n  %same.m = bitcast {_MASK} %same.l to i32\n"
        "  %same.x = and i32 %same.m, %exec\n  %same = icmp eq i32 %same.x, -1\n"
        "  br i1 %same, label %shared, label %anywhere\nshared:\n"
        f"  %at.16 = extractelement {type_} %at, i64 16\n"
        + _pointer(space, "low", "%at.0")
        + _pointer(space, "high", "%at.16")
        + "  %low = load volatile i32, ptr %low.p, align 4\n"
        "  %high = load volatile i32, ptr %high.p, align 4\n"
        f"  %both.0 = insertelement {V32} poison, i32 %low, i64 0\n"
        f"  %both.1 = insertelement {V32} %both.0, i32 %high, i64 16\n"
        f"  %both = shufflevector {V32} %both.1, {V32} poison, <32 x i32> <{_FIRSTS}>\n"
        f"  ret {V32} %both\n"
    )


def _windows(m: Module) -> str:
    """To `window` if each half's lanes are in 32 dwords, of which the host takes any 16 at a time
    faster than it gathers: a network that sorts, or a butterfly, is so.  Otherwise to `gather`.
    Lane 15 is looked at first, so that other forms hardly pay for the test."""
    m.declare("i32 @llvm.umax.i32(i32, i32)")
    m.declare("i32 @llvm.usub.sat.i32(i32, i32)")
    half = "<16 x i32>"
    permute = "@llvm.x86.avx512.vpermi2var.d.512"
    m.declare(f"{half} {permute}({half}, {half}, {half})")
    text = (
        f"  %lane.15 = extractelement {V32} %at, i64 15\n"
        "  %far = xor i32 %at.0, %lane.15\n  %near = icmp ult i32 %far, 128\n"
        "  br i1 %near, label %windows, label %gather\nwindows:\n"
        f"  %lane.16 = extractelement {V32} %at, i64 16\n"
        f"  %heads = shufflevector {V32} %at, {V32} poison, <32 x i32> <{_FIRSTS}>\n"
        f"  %away = xor {V32} %at, %heads\n"
        f"  %with = icmp ult {V32} %away, splat (i32 128)\n"
        f"  %with.m = bitcast {_MASK} %with to i32\n  %with.x = or i32 %with.m, %inactive\n"
        "  %together = icmp eq i32 %with.x, -1\n"
        "  %start.0 = and i32 %at.0, -128\n  %start.1 = and i32 %lane.16, -128\n"
        "  %last = call i32 @llvm.umax.i32(i32 %start.0, i32 %start.1)\n"
        "  %whole.s = call i32 @llvm.usub.sat.i32(i32 %size, i32 127)\n"
        "  %there = icmp ult i32 %last, %whole.s\n  %use = and i1 %together, %there\n"
        "  br i1 %use, label %window, label %gather\nwindow:\n"
        + member("lds.w", "ptr", WaveLayout.LDS)
        + f"  %dwords = lshr {V32} %at, splat (i32 2)\n"
    )
    for which in (0, 1):
        index = ", ".join(f"i32 {16 * which + lane}" for lane in range(16))
        n = f"%w{which}"
        text += (
            f"  {n}.p = getelementptr i8, ptr %lds.w, i32 %start.{which}\n"
            f"  {n}.q = getelementptr i8, ptr {n}.p, i64 64\n"
            f"  {n}.a = load {half}, ptr {n}.p, align 4\n"
            f"  {n}.b = load {half}, ptr {n}.q, align 4\n"
            f"  {n}.i = shufflevector {V32} %dwords, {V32} poison, <16 x i32> <{index}>\n"
            f"  {n} = call {half} {permute}({half} {n}.a, {half} {n}.i, {half} {n}.b)\n"
        )
    index = ", ".join(f"i32 {lane}" for lane in range(LANES))
    return text + (
        f"  %found = shufflevector {half} %w0, {half} %w1, <32 x i32> <{index}>\n"
        f"  ret {V32} %found\n"
    )


def by_lanes_text(space: str, call: str) -> str:
    """The addresses in a buffer, for the helper that visits the lanes; `call` is text."""
    wide = "%at"
    text = ""
    if space == "l":
        wide, text = "%wide", f"  %wide = zext {V32} %at to <32 x i64>\n"
    return (
        f"  %addr = alloca [256 x i8], align 64\n  %data = alloca [128 x i8], align 64\n{text}"
        f"  store <32 x i64> {wide}, ptr %addr, align 64\n{call}"
    )


def load(m: Module, space: str, align: int, by_lanes: Callable[[], str]) -> str:
    """@gather.*(w, addresses, exec, pc) -> dwords; ``by_lanes`` names the other helper."""
    name = f"gather.{space}.{align}"
    if name in m.functions:
        return f"@{name}"
    m.declare(f"{V32} @llvm.masked.gather.v32i32.v32p0({_PTRS}, {_MASK}, {V32})")
    args = f"ptr %w, {address_type(space)} %at, i32 %exec, i32 %pc"
    call = f"  call void {by_lanes()}(ptr %w, ptr %addr, ptr %data, i32 %exec, i32 %pc)\n"
    m.functions[f"{name}.lanes"] = (
        f"define internal {V32} @{name}.lanes({args}) noinline cold {ATTRIBUTES} {{\n"
        + by_lanes_text(space, call)
        + f"  %got = load {V32}, ptr %data, align 64\n  ret {V32} %got\n}}\n"
    )
    m.functions[name] = (
        f"define internal {V32} @{name}({args}) noinline {ATTRIBUTES} {{\nentry:\n"
        + inside_text(m, space)
        + "  br i1 %all, label %once, label %lanes, !prof !1\nlanes:\n"
        f"  %slow = tail call {V32} @{name}.lanes({args})\n  ret {V32} %slow\nonce:\n"
        + _shared(space)
        + "anywhere:\n"
        + (_windows(m) if space == "l" else "  br label %gather\n")
        + "gather:\n"  # LLVM sees offsets of 32 bits in the gather's own block alone
        + _pointers(space)
        + f"  %got = call {V32} @llvm.masked.gather.v32i32.v32p0({_PTRS} align 4 %ptrs, "
        f"{_MASK} %wanted, {V32} zeroinitializer)\n  ret {V32} %got\n}}\n"
    )
    return f"@{name}"


def inside(m: Module, dwords: int) -> str:
    """@inside.g.*(w, addresses, exec) -> whether so many dwords of global memory from each active
    lane's address on are inside, and aligned."""
    name = f"inside.g.{dwords}"
    if name not in m.functions:
        args = f"ptr %w, {address_type('g')} %at, i32 %exec"
        m.functions[name] = (
            f"define internal i1 @{name}({args}) noinline {ATTRIBUTES} {{\n"
            + inside_text(m, "g", dwords)
            + "  ret i1 %all\n}\n"
        )
    return f"@{name}"


def store(m: Module, space: str, align: int, by_lanes: Callable[[], str]) -> str:
    """@scatter.*(w, addresses, dwords, exec, pc).  Lanes are written in ascending order, as the
    hardware's scatter does."""
    name = f"scatter.{space}.{align}"
    if name in m.functions:
        return f"@{name}"
    m.declare(f"void @llvm.masked.scatter.v32i32.v32p0({V32}, {_PTRS}, {_MASK})")
    args = f"ptr %w, {address_type(space)} %at, {V32} %put, i32 %exec, i32 %pc"
    call = (
        f"  store {V32} %put, ptr %data, align 64\n"
        f"  call void {by_lanes()}(ptr %w, ptr %addr, ptr %data, i32 %exec, i32 %pc)\n"
    )
    m.functions[f"{name}.lanes"] = (
        f"define internal void @{name}.lanes({args}) noinline cold {ATTRIBUTES} {{\n"
        + by_lanes_text(space, call)
        + "  ret void\n}\n"
    )
    m.functions[name] = (
        f"define internal void @{name}({args}) noinline {ATTRIBUTES} {{\nentry:\n"
        + inside_text(m, space)
        + "  br i1 %all, label %once, label %lanes, !prof !1\nlanes:\n"
        f"  tail call void @{name}.lanes({args})\n  ret void\nonce:\n"
        + _pointers(space)
        + f"  call void @llvm.masked.scatter.v32i32.v32p0({V32} %put, {_PTRS} align 4 %ptrs, "
        f"{_MASK} %wanted)\n  ret void\n}}\n"
    )
    return f"@{name}"


__all__ = [
    "ATTRIBUTES",
    "V32",
    "address_type",
    "by_lanes_text",
    "handles",
    "inside",
    "inside_text",
    "load",
    "store",
]

"""Out-of-line functions of an image, in LLVM IR: loads and stores lane by lane.

A helper takes the lanes' addresses and data in buffers of the caller's frame, [k][lane] dwords,
and visits the set bits of EXEC from lane 0 up.  Spaces: ``g`` global, ``f`` flat, ``l`` LDS,
``s`` scratch.  Scratch holds dword d of lane l at (d * 32 + l) * 4, so that the lanes of a spilled
register are contiguous.
"""

from __future__ import annotations

from sassxlate.lowering.emulate.image.abi import (
    PRIVATE_APERTURE_HI,
    SHARED_APERTURE_HI,
    Access,
    DeviceFault,
    Rt,
    WaveLayout,
)
from sassxlate.lowering.emulate.wave.access import access64, dword_helpers, unaligned
from sassxlate.lowering.emulate.wave.access.helpers.all_lanes import (
    gather_all,
    member,
    pieces,
    scatter_all,
)
from sassxlate.lowering.llvm.ir_text import Module

ATTRIBUTES = "nounwind"


def runtime_call(rt: Rt, result: str, args: str, indent: str = "  ") -> str:
    """Text of a call through SxRuntime; `%w` is the wave.  The result is %rt.r."""
    head = "%rt.r = " if result != "void" else ""
    return (
        f"{indent}%rt.p = getelementptr i8, ptr %w, i64 {int(WaveLayout.RT)}\n"
        f"{indent}%rt.t = load ptr, ptr %rt.p\n"
        f"{indent}%rt.s = getelementptr ptr, ptr %rt.t, i64 {int(rt)}\n"
        f"{indent}%rt.f = load ptr, ptr %rt.s\n"
        f"{indent}{head}call {result} %rt.f({args})\n"
    )


def fault(m: Module) -> str:
    """@fault(w, kind, pc, lane, addr): ends the launch."""
    name = "fault"
    if name not in m.functions:
        m.functions[name] = (
            "define internal void @fault(ptr %w, i32 %kind, i32 %pc, i32 %lane, i64 %addr) "
            f"noinline noreturn cold {ATTRIBUTES} {{\n"
            + runtime_call(Rt.FAULT, "void", "ptr %w, i32 %kind, i32 %pc, i32 %lane, i64 %addr")
            + "  unreachable\n}\n"
        )
    return "@fault"


def _misaligned(align: int) -> str:
    if align == 1:
        return "  br label %aligned\naligned:\n"
    return (
        f"  %low = and i64 %a, {align - 1}\n"
        "  %bad = icmp ne i64 %low, 0\n"
        "  br i1 %bad, label %misaligned, label %aligned\n"
        "misaligned:\n"
        f"  call void @fault(ptr %w, i32 {int(DeviceFault.MISALIGNED)}, i32 %pc, i32 %lane"
        f", i64 %a)\n"
        "  unreachable\n"
        "aligned:\n"
    )


def _global(bytes_: int, access: int) -> str:
    """From block `global`, goes to `found` with %gp."""
    call = runtime_call(
        Rt.RESOLVE,
        "ptr",
        f"ptr %w, i64 %a, i32 {bytes_}, i32 {access}, i32 %pc, i32 %lane",
    )
    return (
        member("base", "i64", WaveLayout.ARENA_BASE)
        + member("size", "i64", WaveLayout.ARENA_SIZE)
        + "  %off = sub i64 %a, %base\n"
        f"  %lim = sub i64 %size, {bytes_}\n"
        "  %in1 = icmp ule i64 %off, %lim\n"
        f"  %in2 = icmp uge i64 %size, {bytes_}\n"
        "  %in = and i1 %in1, %in2\n"
        "  br i1 %in, label %fast, label %slow\n"
        "slow:\n" + call + "  br label %fast\n"
        "fast:\n"
        "  %direct = inttoptr i64 %a to ptr\n"
        "  %gp = select i1 %in, ptr %direct, ptr %rp\n"
    ).replace("fast:\n", "fast:\n  %rp = phi ptr [ null, %global ], [ %rt.r, %slow ]\n", 1)


def _lds(bytes_: int, mask: int = -1) -> str:
    return (
        f"  %la = and i64 %a, {mask}\n"
        + member("lsize", "i32", WaveLayout.LDS_SIZE)
        + "  %lsize64 = zext i32 %lsize to i64\n"
        f"  %lend = add i64 %la, {bytes_}\n"
        "  %lin = icmp ule i64 %lend, %lsize64\n"
        "  br i1 %lin, label %lok, label %lbad\n"
        "lbad:\n"
        f"  call void @fault(ptr %w, i32 {int(DeviceFault.LDS)}, i32 %pc, i32 %lane, i64 %la)\n"
        "  unreachable\n"
        "lok:\n"
        + member("lbase", "ptr", WaveLayout.LDS)
        + "  %lp = getelementptr i8, ptr %lbase, i64 %la\n"
    )


def _scratch(bytes_: int, *, refuse: bool = False) -> str:
    return (
        "  %sa = and i64 %a, 4294967295\n"
        + member("ssize", "i64", WaveLayout.SCRATCH_SIZE)
        + f"  %send = add i64 %sa, {bytes_}\n"
        f"  %sin = icmp {'ult i64 %ssize, 0' if refuse else 'ule i64 %send, %ssize'}\n"
        "  br i1 %sin, label %sok, label %sbad\n"
        "sbad:\n"
        f"  call void @fault(ptr %w, i32 {int(DeviceFault.SCRATCH)}, i32 %pc, i32 %lane, i64 %sa)\n"
        "  unreachable\n"
        "sok:\n"
        + member("sbase", "ptr", WaveLayout.SCRATCH)
        + "  %sdw = lshr i64 %sa, 2\n  %srow = shl i64 %sdw, 7\n"
        "  %sbyte = and i64 %sa, 3\n  %slane = zext i32 %lane to i64\n"
        "  %scol = shl i64 %slane, 2\n  %so1 = add i64 %srow, %scol\n"
        "  %so = add i64 %so1, %sbyte\n"
        "  %sp = getelementptr i8, ptr %sbase, i64 %so\n"
    )


def locate(m: Module, space: str, bytes_: int, align: int, access: Access) -> str:
    """@locate.*(w, addr, pc, lane) -> {ptr, i64}: the place of the bytes, and the distance between
    an address's consecutive dwords there."""
    fault(m)
    name = f"locate.{space}.{bytes_}.{align}.{int(access)}"
    if name in m.functions:
        return f"@{name}"
    body = _misaligned(align)
    if space == "g":
        body += "  br label %global\nglobal:\n" + _global(bytes_, access)
        found = "%gp", "4"
    elif space == "l":
        body += _lds(bytes_)
        found = "%lp", "4"
    elif space == "s":
        body += _scratch(bytes_)
        found = "%sp", "128"
    else:
        split = access == Access.ATOMIC and bytes_ > 4  # scratch separates the dwords
        body += (
            "  %hi64 = lshr i64 %a, 32\n"
            "  %hi = trunc i64 %hi64 to i32\n"
            f"  switch i32 %hi, label %global [ i32 {SHARED_APERTURE_HI}, label %shared\n"
            f"    i32 {PRIVATE_APERTURE_HI}, label %private ]\n"
            "shared:\n" + _lds(bytes_, 0xFFFFFFFF) + "  br label %found\n"
            "private:\n" + _scratch(bytes_, refuse=split) + "  br label %found\n"
            "global:\n" + _global(bytes_, access) + "  br label %found\n"
            "found:\n"
            "  %fp = phi ptr [ %lp, %lok ], [ %sp, %sok ], [ %gp, %fast ]\n"
            "  %fs = phi i64 [ 4, %lok ], [ 128, %sok ], [ 4, %fast ]\n"
        )
        found = "%fp", "%fs"
    m.functions[name] = (
        f"define internal {{ptr, i64}} @{name}(ptr %w, i64 %a, i32 %pc, i32 %lane) "
        f"alwaysinline {ATTRIBUTES} {{\nentry:\n{body}"
        f"  %r0 = insertvalue {{ptr, i64}} poison, ptr {found[0]}, 0\n"
        f"  %r1 = insertvalue {{ptr, i64}} %r0, i64 {found[1]}, 1\n"
        "  ret {ptr, i64} %r1\n}\n"
    )
    return f"@{name}"


def resolve(m: Module, bytes_: int) -> str:
    """@resolve.*(w, addr, pc) -> ptr: the place of a scalar load's bytes, or a fault."""
    where = locate(m, "g", bytes_, 4, Access.READ)
    name = f"resolve.{bytes_}"
    m.functions[name] = (
        f"define internal ptr @{name}(ptr %w, i64 %a, i32 %pc) noinline cold {ATTRIBUTES} {{\n"
        f"  %f = call {{ptr, i64}} {where}(ptr %w, i64 %a, i32 %pc, i32 0)\n"
        "  %p = extractvalue {ptr, i64} %f, 0\n  ret ptr %p\n}\n"
    )
    return f"@{name}"


def _every(n: int, first: int) -> str:
    return ", ".join(f"i32 {n * i + first}" for i in range(32))


def deal(m: Module, n: int, align: int) -> str:
    """@deal.*(p, q, out): 16 contiguous elements of n dwords at p and 16 at q, as n vectors of one
    dword per lane.

    Without AVX-512 this is long code, so it is not inlined at each access.  Volatile, like the
    store of `collect`: otherwise LLVM moves single dwords, and 64 bits are no longer one access
    (see access64).
    """
    name = f"deal.{n}.{align}"
    ty = f"<{16 * n} x i32>"
    body = "".join(
        f"  %half.{p} = load volatile {ty}, ptr %{p}, align {align}\n" for p in ("p", "q")
    )
    for k in range(n):
        body += (
            f"  %v{k} = shufflevector {ty} %half.p, {ty} %half.q, <32 x i32> <{_every(n, k)}>\n"
            f"  %q{k} = getelementptr i8, ptr %out, i64 {128 * k}\n"
            f"  store <32 x i32> %v{k}, ptr %q{k}, align 64\n"
        )
    m.functions[name] = (
        f"define internal void @{name}(ptr %p, ptr %q, ptr %out) noinline {ATTRIBUTES} {{\n"
        f"{body}  ret void\n}}\n"
    )
    return f"@{name}"


def collect(m: Module, n: int, align: int) -> str:
    """@collect.*(p, q, data): the inverse of @deal, p first."""
    name = f"collect.{n}.{align}"
    ty, half = f"<{32 * n} x i32>", f"<{16 * n} x i32>"
    body = f"  %rows = load {ty}, ptr %data, align 64\n"
    for at, lanes in (("p", range(16)), ("q", range(16, 32))):
        # The vectors are consecutive: dword k of lane i is number 32 * k + i.
        index = ", ".join(f"i32 {32 * k + i}" for i in lanes for k in range(n))
        body += (
            f"  %half.{at} = shufflevector {ty} %rows, {ty} poison, <{16 * n} x i32> <{index}>\n"
            f"  store volatile {half} %half.{at}, ptr %{at}, align {align}\n"
        )
    m.functions[name] = (
        f"define internal void @{name}(ptr %p, ptr %q, ptr %data) noinline {ATTRIBUTES} {{\n"
        f"{body}  ret void\n}}\n"
    )
    return f"@{name}"


def lane_loop(m: Module, name: str, args: str, body: str, prologue: str = "") -> str:
    """A helper that visits the active lanes: `body` has %a, %lane, %lane64, %p and %stride.
    `prologue` may handle all lanes at once and go to %done; otherwise it goes to %lanes."""
    m.declare("i32 @llvm.cttz.i32(i32, i1)")
    m.functions[name] = (
        f"define internal void @{name}(ptr %w, ptr %addr, {args}i32 %exec, i32 %pc) "
        f"noinline {ATTRIBUTES} {{\nentry:\n"
        "  %none = icmp eq i32 %exec, 0\n"
        f"  br i1 %none, label %done, label %{'all' if prologue else 'lanes'}\n{prologue}"
        "lanes:\n  br label %loop\nloop:\n"
        "  %m = phi i32 [ %exec, %lanes ], [ %m2, %next ]\n"
        "  %lane = call i32 @llvm.cttz.i32(i32 %m, i1 true)\n"
        "  %m1 = sub i32 %m, 1\n  %m2 = and i32 %m, %m1\n"
        "  %lane64 = zext i32 %lane to i64\n"
        "  %a.p = getelementptr i64, ptr %addr, i64 %lane64\n"
        "  %a = load i64, ptr %a.p\n"
        f"{body}"
        "  br label %next\n"
        "next:\n"
        "  %more = icmp ne i32 %m2, 0\n"
        "  br i1 %more, label %loop, label %done\n"
        "done:\n  ret void\n}\n"
    )
    return f"@{name}"


def located(m: Module, space: str, bytes_: int, align: int, access: Access) -> str:
    loc = locate(m, space, bytes_, align, access)
    return (
        f"  %loc = call {{ptr, i64}} {loc}(ptr %w, i64 %a, i32 %pc, i32 %lane)\n"
        "  %p = extractvalue {ptr, i64} %loc, 0\n"
        "  %stride = extractvalue {ptr, i64} %loc, 1\n"
    )


def _piece(i: int, kind: str) -> str:
    """Address %q{i} of the i-th dword in memory and %b{i} in the buffer."""
    return (
        f"  %o{i} = mul i64 %stride, {i}\n"
        f"  %q{i} = getelementptr i8, ptr %p, i64 %o{i}\n"
        f"  %c{i} = add i64 %lane64, {32 * i}\n"
        f"  %b{i} = getelementptr i32, ptr %{kind}, i64 %c{i}\n"
    )


def _apart(space: str, bytes_: int, align: int) -> bool:
    """Whether an access may have to go byte by byte (`unaligned`)."""
    return align == 1 and bytes_ > 1 and space in ("s", "f")


def load(
    m: Module, space: str, bytes_: int, align: int, signed: bool, *, avx512: bool = False
) -> str:
    """@load.*(w, addr, out, exec, pc)"""
    name = f"load.{space}.{bytes_}.{align}{'s' if signed else ''}"
    if name in m.functions:
        return f"@{name}"
    body = located(m, space, bytes_, align, Access.READ)
    if _apart(space, bytes_, align):
        body += unaligned.in_bytes(bytes_) + unaligned.load_bytes(bytes_, signed) + "dwords:\n"
    apart = ""
    for i in range(pieces(bytes_)):
        apart += _piece(i, "out")
        if bytes_ < 4:
            op = "sext" if signed else "zext"
            apart += (
                f"  %n{i} = load volatile i{8 * bytes_}, ptr %q{i}, align {min(bytes_, align)}\n"
                f"  %v{i} = {op} i{8 * bytes_} %n{i} to i32\n"
            )
        else:
            apart += f"  %v{i} = load volatile i32, ptr %q{i}, align {min(align, 4)}\n"
        apart += f"  store i32 %v{i}, ptr %b{i}\n"
    body += access64.whole_or_apart(space, bytes_, align, apart, access64.load_pair, "out")
    # A partial dword at scratch's end is not special-cased: such bytes go lane by lane.
    at_once = avx512 and not dword_helpers.handles(space, bytes_) and (bytes_ >= 4 or space != "s")
    first = gather_all(m, space, bytes_, align, signed) if at_once else ""
    return lane_loop(m, name, "ptr %out, ", body, first)


def store(m: Module, space: str, bytes_: int, align: int, *, avx512: bool = False) -> str:
    """@store.*(w, addr, data, exec, pc)"""
    name = f"store.{space}.{bytes_}.{align}"
    if name in m.functions:
        return f"@{name}"
    body = located(m, space, bytes_, align, Access.WRITE)
    if _apart(space, bytes_, align):
        body += unaligned.in_bytes(bytes_) + unaligned.store_bytes(bytes_) + "dwords:\n"
    apart = ""
    for i in range(pieces(bytes_)):
        apart += _piece(i, "data") + f"  %v{i} = load i32, ptr %b{i}\n"
        if bytes_ < 4:
            apart += (
                f"  %n{i} = trunc i32 %v{i} to i{8 * bytes_}\n"
                f"  store volatile i{8 * bytes_} %n{i}, ptr %q{i}, align {min(bytes_, align)}\n"
            )
        else:
            apart += f"  store volatile i32 %v{i}, ptr %q{i}, align {min(align, 4)}\n"
    body += access64.whole_or_apart(space, bytes_, align, apart, access64.store_pair, "data")
    at_once = avx512 and not dword_helpers.handles(space, bytes_) and bytes_ >= 4
    first = scatter_all(m, space, bytes_, align) if at_once else ""
    return lane_loop(m, name, "ptr %data, ", body, first)

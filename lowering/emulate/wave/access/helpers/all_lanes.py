"""Helpers' code for all lanes at once, in LLVM IR for AVX-512: one check of the active lanes, then
the cheapest form that their addresses allow.

The forms are decided for each half of 16 lanes, a register of the host: blocks of 16 threads a row
are common, whose warps are two rows.  Lanes that agree on an address load once; everything else is
a gather or a scatter.  A half's first *active* lane says where it is, since the others' addresses
may be anything.  Dwords outside of scratch have `dword_helpers`.
"""

from __future__ import annotations

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.access import access64
from sassxlate.lowering.llvm.ir_text import Module

V32, V64 = "<32 x i32>", "<32 x i64>"
# Element 0 for the lower half, element 1 for the upper one.
_SPREAD = ", ".join(f"i32 {i // 16}" for i in range(32))


def member(name: str, type_: str, at: WaveLayout) -> str:
    """Text: %{name}, a member of SxWave."""
    return (
        f"  %{name}.p = getelementptr i8, ptr %w, i64 {int(at)}\n"
        f"  %{name} = load {type_}, ptr %{name}.p\n"
    )


def pieces(bytes_: int) -> int:
    """The dwords of the registers that an access of so many bytes moves."""
    return max(1, bytes_ // 4)


# --- the check -------------------------------------------------------------------------------


def _all_at_once(space: str, bytes_: int, align: int) -> str:
    """From block `all`: if every active lane is in range, to `at.once` with %wide (the lanes'
    addresses), %ptrs or %off32 (`_dword_pointers`) and %lanes.m; otherwise to `lanes`."""
    if space == "l":
        base = member("vbase", "i64", WaveLayout.LDS) + (
            member("vsize32", "i32", WaveLayout.LDS_SIZE) + "  %vsize = zext i32 %vsize32 to i64\n"
        )
        off = f"  %voff = add {V64} %wide, zeroinitializer\n"
    elif space == "s":
        base = member("vbase", "i64", WaveLayout.SCRATCH) + member(
            "vsize", "i64", WaveLayout.SCRATCH_SIZE
        )
        off = f"  %voff = and {V64} %wide, splat (i64 4294967295)\n"
    else:
        base = member("vbase", "i64", WaveLayout.ARENA_BASE) + member(
            "vsize", "i64", WaveLayout.ARENA_SIZE
        )
        off = f"  %voff = sub {V64} %wide, %vb\n"
    at = "%voff"
    place = ""
    if space == "s":
        lanes = ", ".join(f"i64 {4 * i}" for i in range(32))
        place = (
            f"  %vdw = lshr {V64} %voff, splat (i64 2)\n"
            f"  %vrow = shl {V64} %vdw, splat (i64 7)\n  %vin = add {V64} %vrow, <{lanes}>\n"
        )
        at = "%vin"
    elif bytes_ < 4:
        place = f"  %vin = and {V64} %voff, splat (i64 -4)\n"
        at = "%vin"
    if space == "l":
        place += f"  %off32 = trunc {V64} {at} to {V32}\n  %start = inttoptr i64 %vbase to ptr\n"
    else:
        place += f"  %vaddr = add {V64} %vb, {at}\n  %ptrs = inttoptr {V64} %vaddr to <32 x ptr>\n"
    return (
        f"all:\n  %wide = load {V64}, ptr %addr, align 64\n"
        + base
        + f"  %vb.1 = insertelement {V64} poison, i64 %vbase, i64 0\n"
        f"  %vb = shufflevector {V64} %vb.1, {V64} poison, <32 x i32> zeroinitializer\n"
        + off
        + f"  %vlim.s = call i64 @llvm.usub.sat.i64(i64 %vsize, i64 {max(bytes_, 4) - 1})\n"
        f"  %vlim.1 = insertelement {V64} poison, i64 %vlim.s, i64 0\n"
        f"  %vlim = shufflevector {V64} %vlim.1, {V64} poison, <32 x i32> zeroinitializer\n"
        f"  %vc1 = icmp ult {V64} %voff, %vlim\n"
        f"  %vlow = and {V64} %wide, splat (i64 {max(align, min(bytes_, 4)) - 1})\n"
        f"  %vc2 = icmp eq {V64} %vlow, zeroinitializer\n"
        "  %vc = and <32 x i1> %vc1, %vc2\n  %vm = bitcast <32 x i1> %vc to i32\n"
        "  %inactive = xor i32 %exec, -1\n  %vm1 = or i32 %vm, %inactive\n"
        "  %vall = icmp eq i32 %vm1, -1\n"
        "  br i1 %vall, label %at.once, label %lanes\n"
        "at.once:\n" + place + "  %lanes.m = bitcast i32 %exec to <32 x i1>\n"
    )


# --- the halves ------------------------------------------------------------------------------


def _first(half: str, mask: int) -> str:
    """%lane.{half} and %first.{half}: the half's first active lane, or the other half's if it has
    none, and that lane's address."""
    return (
        f"  %ex.{half} = and i32 %exec, {mask}\n  %has.{half} = icmp ne i32 %ex.{half}, 0\n"
        f"  %pick.{half} = select i1 %has.{half}, i32 %ex.{half}, i32 %exec\n"
        f"  %lane.{half}.n = call i32 @llvm.cttz.i32(i32 %pick.{half}, i1 true)\n"
        f"  %lane.{half} = zext i32 %lane.{half}.n to i64\n"
        f"  %first.{half}.p = getelementptr i64, ptr %addr, i64 %lane.{half}\n"
        f"  %first.{half} = load i64, ptr %first.{half}.p\n"
    )


def _guess() -> str:
    """To `same` if the lower half's first and last active lane agree, otherwise to `anywhere`, so
    that other addresses do not pay for the test of all."""
    return (
        "  %last.n = call i32 @llvm.ctlz.i32(i32 %pick.low, i1 true)\n"
        "  %last.i = xor i32 %last.n, 31\n  %last = zext i32 %last.i to i64\n"
        "  %last.p = getelementptr i64, ptr %addr, i64 %last\n  %last.a = load i64, ptr %last.p\n"
        "  %shared.q = icmp eq i64 %last.a, %first.low\n"
        "  br i1 %shared.q, label %same, label %anywhere\n"
    )


def _spread(name: str, low: str, high: str, type_: str) -> str:
    """%{name}: a scalar in all lanes of the lower half, another in those of the upper one."""
    vector = f"<32 x {type_}>"
    return (
        f"  %{name}.a = insertelement {vector} poison, {type_} {low}, i64 0\n"
        f"  %{name}.b = insertelement {vector} %{name}.a, {type_} {high}, i64 1\n"
        f"  %{name} = shufflevector {vector} %{name}.b, {vector} poison, <32 x i32> <{_SPREAD}>\n"
    )


def _where(name: str, expected: str, yes: str, no: str) -> str:
    """Goes to `yes` if the active lanes' addresses are as expected."""
    return (
        f"  %{name}.e = icmp eq {V64} %wide, {expected}\n"
        f"  %{name}.m = bitcast <32 x i1> %{name}.e to i32\n"
        f"  %{name}.o = or i32 %{name}.m, %inactive\n  %{name} = icmp eq i32 %{name}.o, -1\n"
        f"  br i1 %{name}, label %{yes}, label %{no}\n"
    )


def _pointers(space: str, source: str) -> str:
    """%{source}.low.ptr and %{source}.high.ptr, of the addresses of these names."""
    out = ""
    for half in ("low", "high"):
        at = f"%{source}.{half}"
        if space == "l":
            out += f"  {at}.ptr = getelementptr i8, ptr %start, i64 {at}\n"
        else:
            out += f"  {at}.ptr = inttoptr i64 {at} to ptr\n"
    return out


def _shared(space: str, bytes_: int, signed: bool) -> str:
    """Block `shared`: each half loads from one address."""
    out = "shared:\n" + _pointers(space, "first")
    step = 8 if access64.in_pairs(space, bytes_) else min(bytes_, 4)
    for at in range(0, bytes_, step):
        for half in ("low", "high"):
            n = f"%h{at}.{half}"
            out += (
                f"  {n}.p = getelementptr i8, ptr %first.{half}.ptr, i64 {at}\n"
                f"  {n}.v = load volatile i{8 * step}, ptr {n}.p, align {min(step, 4)}\n"
            )
            if step < 4:
                op = "sext" if signed else "zext"
                out += f"  {n}.w0 = {op} i{8 * step} {n}.v to i32\n"
            elif step == 4:
                out += f"  {n}.w0 = add i32 {n}.v, 0\n"
            else:
                out += (
                    f"  {n}.w0 = trunc i64 {n}.v to i32\n  {n}.s = lshr i64 {n}.v, 32\n"
                    f"  {n}.w1 = trunc i64 {n}.s to i32\n"
                )
        for part in range(max(1, step // 4)):
            dword = at // 4 + part
            low, high = (f"%h{at}.{half}.w{part}" for half in ("low", "high"))
            out += (
                _spread(f"both{dword}", low, high, "i32")
                + f"  %both{dword}.p = getelementptr i8, ptr %out, i64 {128 * dword}\n"
                f"  store {V32} %both{dword}, ptr %both{dword}.p, align 64\n"
            )
    return out + "  br label %done\n"


# --- gathers and scatters --------------------------------------------------------------------


def _dword_pointers(space: str, i: int) -> str:
    """%ptrs.{i}, of the i-th dwords: in LDS by offsets of 32 bits, which the host gathers twice as
    many of at a time."""
    if space == "l":
        return (
            f"  %start.{i} = getelementptr i8, ptr %start, i64 {4 * i}\n"
            f"  %ptrs.{i} = getelementptr i8, ptr %start.{i}, {V32} %off32\n"
        )
    step = 4 * i if space != "s" else 128 * i
    return f"  %ptrs.{i} = getelementptr i8, <32 x ptr> %ptrs, i64 {step}\n"


def gather_all(m: Module, space: str, bytes_: int, align: int, signed: bool) -> str:
    """From block `all` of a load: to `done`, or to `lanes`."""
    m.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    m.declare("i32 @llvm.ctlz.i32(i32, i1)")
    m.declare(f"{V32} @llvm.masked.gather.v32i32.v32p0(<32 x ptr>, <32 x i1>, {V32})")
    out = _all_at_once(space, bytes_, align)
    if space != "s":
        out += _first("low", 0xFFFF) + _first("high", -0x10000)
        out += _guess() + "same:\n"
        out += _spread("firsts", "%first.low", "%first.high", "i64")
        out += _where("equal", "%firsts", "shared", "anywhere")
        out += _shared(space, bytes_, signed)
        out += "anywhere:\n"
    if access64.in_pairs(space, bytes_):
        return out + access64.gather_pairs(m, bytes_) + "  br label %done\n"
    for i in range(pieces(bytes_)):
        out += (
            _dword_pointers(space, i)
            + f"  %g.{i} = call {V32} @llvm.masked.gather.v32i32.v32p0(<32 x ptr> align 4 "
            f"%ptrs.{i}, <32 x i1> %lanes.m, {V32} zeroinitializer)\n"
        )
        value = f"%g.{i}"
        if bytes_ < 4:
            up, shift = 32 - 8 * bytes_, "ashr" if signed else "lshr"
            out += (
                f"  %byte64 = and {V64} %wide, splat (i64 3)\n"
                f"  %byte = trunc {V64} %byte64 to {V32}\n"
                f"  %bit = shl {V32} %byte, splat (i32 3)\n"
                f"  %low.v = lshr {V32} {value}, %bit\n"
                f"  %top.v = shl {V32} %low.v, splat (i32 {up})\n"
                f"  %cut.v = {shift} {V32} %top.v, splat (i32 {up})\n"
            )
            value = "%cut.v"
        out += (
            f"  %out.{i} = getelementptr i8, ptr %out, i64 {128 * i}\n"
            f"  store {V32} {value}, ptr %out.{i}, align 64\n"
        )
    return out + "  br label %done\n"


def scatter_all(m: Module, space: str, bytes_: int, align: int) -> str:
    """From block `all` of a store: to `done`, or to `lanes`.  Lanes are written in ascending order,
    as the hardware's scatter does."""
    m.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    m.declare("i32 @llvm.ctlz.i32(i32, i1)")
    m.declare(f"void @llvm.masked.scatter.v32i32.v32p0({V32}, <32 x ptr>, <32 x i1>)")
    out = _all_at_once(space, bytes_, align)
    if access64.in_pairs(space, bytes_):
        return out + access64.scatter_pairs(m, bytes_) + "  br label %done\n"
    for i in range(pieces(bytes_)):
        out += (
            _dword_pointers(space, i) + f"  %in.{i} = getelementptr i8, ptr %data, i64 {128 * i}\n"
            f"  %s.{i} = load {V32}, ptr %in.{i}, align 64\n"
            f"  call void @llvm.masked.scatter.v32i32.v32p0({V32} %s.{i}, <32 x ptr> align 4 "
            f"%ptrs.{i}, <32 x i1> %lanes.m)\n"
        )
    return out + "  br label %done\n"

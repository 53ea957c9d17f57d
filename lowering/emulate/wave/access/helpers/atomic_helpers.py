"""Out-of-line functions of an image, in LLVM IR: atomics lane by lane."""

from __future__ import annotations

from sassxlate.lowering.emulate.image.abi import (
    Access,
)
from sassxlate.lowering.emulate.wave.access.memory_helpers import lane_loop, located
from sassxlate.lowering.llvm.ir_text import Module

# Operations of atomicrmw; the others are compare-and-swap loops.
_RMW = {
    "add": "add", "sub": "sub", "min_i": "min", "min_u": "umin", "max_i": "max",
    "max_u": "umax", "and": "and", "or": "or", "xor": "xor", "swap": "xchg",
    "inc": "uinc_wrap", "dec": "udec_wrap",
}  # fmt: skip
# AMD says nothing of the NaN that the atomic unit makes.  Ours makes NVIDIA's: a program that looks
# at memory then sees what it sees on an NVIDIA GPU, and not this host's negative one.
_SUM = (
    "  %fn = fadd float %fw, %fd\n  %sum = bitcast float %fn to i32\n"
    "  %nan = fcmp uno float %fn, %fn\n  %new = select i1 %nan, i32 2147483647, i32 %sum\n"
)


def _data(i: int, width: int, name: str) -> str:
    """Loads %{name} of `width` bits from the i-th dword (or pair) of %data."""
    out = (
        f"  %{name}.i = add i64 %lane64, {32 * i}\n"
        f"  %{name}.q = getelementptr i32, ptr %data, i64 %{name}.i\n"
    )
    if width == 32:
        return out + f"  %{name} = load i32, ptr %{name}.q\n"
    return (
        out + f"  %{name}.l = load i32, ptr %{name}.q\n"
        f"  %{name}.r = getelementptr i32, ptr %{name}.q, i64 32\n"
        f"  %{name}.h = load i32, ptr %{name}.r\n"
        f"  %{name}.l64 = zext i32 %{name}.l to i64\n  %{name}.h64 = zext i32 %{name}.h to i64\n"
        f"  %{name}.s = shl i64 %{name}.h64, 32\n  %{name} = or i64 %{name}.l64, %{name}.s\n"
    )


def _result(width: int) -> str:
    """Stores %old in place of the lane's first data dwords."""
    if width == 32:
        return "  store i32 %old, ptr %d0.q\n"
    return (
        "  %old.l = trunc i64 %old to i32\n  %old.s = lshr i64 %old, 32\n"
        "  %old.h = trunc i64 %old.s to i32\n"
        "  store i32 %old.l, ptr %d0.q\n  store i32 %old.h, ptr %d0.r\n"
    )


def _without_denormals(name: str) -> str:
    """%{name}.n: binary32 %{name}, or a zero of its sign."""
    return (
        f"  %{name}.e = and i32 %{name}, 2139095040\n  %{name}.0 = and i32 %{name}, -2147483648\n"
        f"  %{name}.t = icmp eq i32 %{name}.e, 0\n"
        f"  %{name}.n = select i1 %{name}.t, i32 %{name}.0, i32 %{name}\n"
    )


# The same as values, of %was and %d0.
_PLAIN = {
    "add": "add {t} %was, %d0", "sub": "sub {t} %was, %d0", "and": "and {t} %was, %d0",
    "or": "or {t} %was, %d0", "xor": "xor {t} %was, %d0", "swap": "add {t} %d0, 0",
}  # fmt: skip
_COMPARED = {"min_i": "slt", "min_u": "ult", "max_i": "sgt", "max_u": "ugt"}


def own_memory(op: str, width: int) -> str:
    """%old, and the new value is stored: in LDS, whose workgroup has one host thread at a time, so
    that nothing needs the bus."""
    ty, bytes_ = f"i{width}", width // 8
    if op in _PLAIN:
        value = f"  %new = {_PLAIN[op].format(t=ty)}\n"
    elif op in _COMPARED:
        value = (
            f"  %keep = icmp {_COMPARED[op]} {ty} %was, %d0\n"
            f"  %new = select i1 %keep, {ty} %was, {ty} %d0\n"
        )
    elif op == "inc":
        value = (
            f"  %wraps = icmp uge {ty} %was, %d0\n  %up = add {ty} %was, 1\n"
            f"  %new = select i1 %wraps, {ty} 0, {ty} %up\n"
        )
    elif op == "dec":
        value = (
            f"  %zero = icmp eq {ty} %was, 0\n  %above = icmp ugt {ty} %was, %d0\n"
            f"  %wraps = or i1 %zero, %above\n  %down = sub {ty} %was, 1\n"
            f"  %new = select i1 %wraps, {ty} %d0, {ty} %down\n"
        )
    elif op == "cmpswap":
        value = f"  %same = icmp eq {ty} %was, %d1\n  %new = select i1 %same, {ty} %d0, {ty} %was\n"
    else:
        value = _new_value(op, width, cache=False)
    return (
        f"  %was = load volatile {ty}, ptr %p, align {bytes_}\n{value}"
        f"  store volatile {ty} %new, ptr %p, align {bytes_}\n  %old = add {ty} %was, 0\n"
    )


def _new_value(op: str, width: int, *, cache: bool) -> str:
    """%new from %was (the old value) and %d0, %d1.  Outside LDS the unit that adds binary32
    flushes denormal operands in every mode (RDNA3 ISA, 13.2).  Of sums AMD says nothing; they are
    flushed, too, as NVIDIA's .FTZ are (docs/rdna3.md)."""
    ty, fl = f"i{width}", {32: "float", 64: "double"}[width]
    if op == "csub":
        return (
            f"  %ge = icmp uge {ty} %was, %d0\n  %diff = sub {ty} %was, %d0\n"
            f"  %new = select i1 %ge, {ty} %diff, {ty} 0\n"
        )
    if op == "rsub":
        return f"  %new = sub {ty} %d0, %was\n"
    if op == "mskor":
        return (
            f"  %inv = xor {ty} %d0, -1\n  %kept = and {ty} %was, %inv\n"
            f"  %new = or {ty} %kept, %d1\n"
        )
    if op == "wrap":
        return (
            f"  %ge = icmp uge {ty} %was, %d0\n  %dn = sub {ty} %was, %d0\n"
            f"  %up = add {ty} %was, %d1\n  %new = select i1 %ge, {ty} %dn, {ty} %up\n"
        )
    if op == "add_f" and cache and width == 32:
        return (
            _without_denormals("was")
            + _without_denormals("d0")
            + "  %fw = bitcast i32 %was.n to float\n  %fd = bitcast i32 %d0.n to float\n"
            + _SUM.replace("%new", "%all")
            + _without_denormals("all")
            + "  %new = add i32 %all.n, 0\n"
        )
    bits = f"  %fw = bitcast {ty} %was to {fl}\n  %fd = bitcast {ty} %d0 to {fl}\n"
    if op == "add_f" and width == 32:
        return bits + _SUM
    if op == "add_f":
        return bits + f"  %fn = fadd {fl} %fw, %fd\n  %new = bitcast {fl} %fn to {ty}\n"
    if op == "cmp_f":
        return (
            f"  %fc = bitcast {ty} %d1 to {fl}\n  %fw = bitcast {ty} %was to {fl}\n"
            f"  %same = fcmp oeq {fl} %fw, %fc\n  %new = select i1 %same, {ty} %d0, {ty} %was\n"
        )
    less, both = ("olt", "or") if op == "min_f" else ("ogt", "and")
    return (
        bits + f"  %c1 = fcmp {less} {fl} %fw, %fd\n  %c2 = fcmp {less} {fl} %fd, %fw\n"
        f"  %eq = {both} {ty} %was, %d0\n"
        f"  %s1 = select i1 %c2, {ty} %d0, {ty} %eq\n  %s2 = select i1 %c1, {ty} %was, {ty} %s1\n"
        f"  %n1 = fcmp uno {fl} %fd, %fd\n  %s3 = select i1 %n1, {ty} %was, {ty} %s2\n"
        f"  %n2 = fcmp uno {fl} %fw, %fw\n  %new = select i1 %n2, {ty} %d0, {ty} %s3\n"
    )


TWO_OPERANDS = frozenset({"cmpswap", "cmp_f", "mskor", "wrap"})


def atomic(m: Module, space: str, op: str, width: int) -> str:
    """@atomic.*(w, addr, data, exec, pc): each lane in turn; the old values replace the data.

    Two-operand forms have the second in the dwords after the first: the comparand of cmpswap and
    cmp_f, the bits to set of mskor, the addend of wrap.
    """
    name = f"atomic.{space}.{op}.{width}"
    if name in m.functions:
        return f"@{name}"
    ty, bytes_ = f"i{width}", width // 8
    body = located(m, space, bytes_, bytes_, Access.ATOMIC) + _data(0, width, "d0")
    if op in TWO_OPERANDS:
        body += _data(width // 32, width, "d1")
    if space == "l":
        body += own_memory(op, width)
    elif op in _RMW:
        body += f"  %old = atomicrmw {_RMW[op]} ptr %p, {ty} %d0 seq_cst, align {bytes_}\n"
    elif op == "cmpswap":
        body += (
            f"  %pair = cmpxchg ptr %p, {ty} %d1, {ty} %d0 seq_cst seq_cst, align {bytes_}\n"
            f"  %old = extractvalue {{{ty}, i1}} %pair, 0\n"
        )
    else:
        body += (
            f"  %first = load atomic {ty}, ptr %p monotonic, align {bytes_}\n"
            "  br label %again\nagain:\n"
            f"  %was = phi {ty} [ %first, %loop ], [ %old, %again ]\n"
            + _new_value(op, width, cache=True)
            + f"  %pair = cmpxchg ptr %p, {ty} %was, {ty} %new seq_cst seq_cst, align {bytes_}\n"
            f"  %old = extractvalue {{{ty}, i1}} %pair, 0\n"
            f"  %won = extractvalue {{{ty}, i1}} %pair, 1\n"
            "  br i1 %won, label %stored, label %again\nstored:\n"
        )
    return lane_loop(m, name, "ptr %data, ", body + _result(width))

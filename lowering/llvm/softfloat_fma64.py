"""binary64 multiply-add with a directed rounding, in integers, lane by lane.

Both addends are brought to one 256-bit frame in which the larger has its top bit near bit 205, so
bits shifted out below only matter as a sticky bit ("something was there").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sassxlate.domain.interface import Domain, Round, fabs, is_zero
from sassxlate.lowering.llvm.ir_text import Function, Val, const, vec_type
from sassxlate.lowering.target import LANES

if TYPE_CHECKING:
    from sassxlate.lowering.llvm.lanes import LlvmLanes
T = TypeVar("T")

W = 256
_MAX = 0x7FEFFFFFFFFFFFFF
_INF = 0x7FF << 52


def _unpack(d: Domain[T], a: T) -> tuple[T, T]:
    """(53-bit significand with its top bit set, exponent of its last bit), 64 bits each; a is
    finite and not zero."""
    size = fabs(d, a)
    biased = d.lshr(size, d.const(52, 64))
    fraction = d.and_(size, d.const((1 << 52) - 1, 64))
    denormal = is_zero(d, biased)
    up = d.sub(d.clz(d.or_(fraction, d.const(1, 64))), d.const(11, 64))
    normal = d.or_(fraction, d.const(1 << 52, 64))
    m = d.select(denormal, d.shl(fraction, d.and_(up, d.const(63, 64))), normal)
    e = d.select(denormal, d.sub(d.const(-1074, 64), up), d.sub(biased, d.const(1075, 64)))
    return m, e


def _shift_sticky(d: Domain[T], a: T, count: T) -> T:
    """a >> count (64 bits, not negative), with bit 0 set if ones were lost."""
    far = d.not_(d.ult(count, d.const(W, 64)))
    n = d.zext(d.select(far, d.const(W - 1, 64), count), W)
    low = d.lshr(a, n)
    lost = d.not_(d.eq(d.shl(low, n), a))
    return d.or_(low, d.zext(lost, W))


def _sticky_sum(d: Domain[T], p: T, ep: T, np: T, c: T, ec: T, nc: T) -> tuple[T, T, T]:
    """(magnitude, exponent, sign) of the sum of two signed numbers in their frames."""
    zero = d.const(0, 64)
    gap = d.sub(ep, ec)
    c_low = d.slt(zero, gap)
    e = d.select(c_low, ep, ec)
    p = _shift_sticky(d, p, d.select(c_low, zero, d.sub(zero, gap)))
    c = _shift_sticky(d, c, d.select(c_low, gap, zero))
    differ = d.xor(np, nc)
    less = d.ult(p, c)
    apart = d.select(less, d.sub(c, p), d.sub(p, c))
    sign = d.select(d.and_(differ, less), nc, np)
    return d.select(differ, apart, d.add(p, c)), e, sign


def _round(d: Domain[T], m: T, e: T, sign: T, how: Round) -> T:
    """m * 2 ** e, m not zero, as binary64."""
    msb = d.sub(d.const(W - 1, 64), d.extract(d.clz(m), 0, 64))
    keep = d.sub(msb, d.const(52, 64))
    least = d.sub(d.const(-1074, 64), e)
    sh = d.select(d.slt(keep, least), least, keep)
    far = d.not_(d.ult(sh, d.const(W, 64)))
    n = d.zext(d.select(far, d.const(W - 1, 64), sh), W)
    q = d.lshr(m, n)
    rest = d.sub(m, d.shl(q, n))
    inexact = d.not_(is_zero(d, rest))
    if how == Round.NEAREST:
        half = d.shl(d.const(1, W), d.sub(n, d.const(1, W)))
        odd = d.extract(q, 0, 1)
        more = d.or_(d.ult(half, rest), d.and_(d.eq(half, rest), odd))
    elif how == Round.ZERO:
        more = d.const(0, 1)
    else:
        more = d.and_(inexact, sign if how == Round.DOWN else d.not_(sign))
    biased = d.add(d.add(e, sh), d.const(1074, 64))
    bits = d.add(d.shl(biased, d.const(52, 64)), d.add(d.extract(q, 0, 64), d.zext(more, 64)))
    over = d.or_(d.slt(d.const(2045, 64), biased), d.not_(d.ult(bits, d.const(_INF, 64))))
    inf, top = d.const(_INF, 64), d.const(_MAX, 64)
    if how == Round.NEAREST:
        big = inf
    elif how == Round.ZERO:
        big = top
    else:
        big = d.select(sign, *((inf, top) if how == Round.DOWN else (top, inf)))
    bits = d.select(over, big, bits)
    return d.or_(bits, d.shl(d.zext(sign, 64), d.const(63, 64)))


def fma(d: Domain[T], a: T, b: T, c: T, special: T, how: Round) -> T:
    """a * b + c; `special` is the result if an operand is infinite or NaN."""
    na, nb, nc = (d.extract(v, 63, 1) for v in (a, b, c))
    np = d.xor(na, nb)
    za, zb, zc = (is_zero(d, fabs(d, v)) for v in (a, b, c))
    ma, ea = _unpack(d, a)
    mb, eb = _unpack(d, b)
    mc, ec = _unpack(d, c)
    product = d.mul(d.zext(ma, 128), d.zext(mb, 128))
    p = d.shl(d.zext(product, W), d.const(100, W))
    q = d.select(zc, d.const(0, W), d.shl(d.zext(mc, W), d.const(153, W)))
    ep = d.sub(d.add(ea, eb), d.const(100, 64))
    ec = d.select(zc, ep, d.sub(ec, d.const(153, 64)))
    m, e, sign = _sticky_sum(d, p, ep, np, q, ec, nc)
    out = _round(d, d.or_(m, d.zext(is_zero(d, m), W)), e, sign, how)
    minus = d.const(1 << 63 if how == Round.DOWN else 0, 64)
    out = d.select(is_zero(d, m), minus, out)
    both = d.select(d.xor(np, nc), minus, d.and_(c, d.const(1 << 63, 64)))
    out = d.select(d.or_(za, zb), d.select(zc, both, c), out)
    finite = d.const(1, 1)
    for v in (a, b, c):
        finite = d.and_(finite, d.ult(fabs(d, v), d.const(_INF, 64)))
    return d.select(finite, out, special)


def _scalar(d: LlvmLanes, how: Round) -> str:
    """@fma64.MODE(a, b, c)"""

    name = f"fma64.{how.name.lower()}"
    if name not in d.fn.module.functions:
        f = Function(
            d.fn.module, f"internal i64 @{name}(i64 %a, i64 %b, i64 %c)", "noinline nounwind"
        )
        inner = d.over(f)
        a, b, c = (Val(f"%{x}", 64, False) for x in "abc")
        special = inner.float_call("fma", a, b, c)
        f.do(f"ret i64 {fma(inner, a, b, c, special, how).ref}")
        f.finish(name)
    return f"@{name}"


def call(d: LlvmLanes, op: str, args: tuple[Val, ...], how: Round) -> Val:
    """fma(a, b, c) or mul(a, b) of binary64 values, rounded by `how`."""
    if op == "mul":  # a zero of the product's sign changes nothing
        sign = d.and_(d.xor(args[0], args[1]), const(1 << 63, 64))
        args = (*args, sign)
    scalar = _scalar(d, how)
    if not any(a.vec for a in args):
        text = ", ".join(f"i64 {a.ref}" for a in args)
        return Val(d.fn.emit(f"call i64 {scalar}({text})"), 64, False)
    name = f"{scalar[1:]}.lanes"
    buffers = [d.fn.buffer(f"wide{i}", 8 * LANES) for i in range(3)]
    ty = vec_type(64)
    for a, buffer in zip(args, buffers, strict=True):
        d.fn.do(f"store {ty} {d.splat(a).ref}, ptr {buffer}, align 64")
    d.fn.module.functions.setdefault(
        name,
        f"define internal void @{name}(ptr %a, ptr %b, ptr %c) noinline nounwind {{\n"
        "entry:\n  br label %loop\nloop:\n"
        "  %i = phi i64 [ 0, %entry ], [ %j, %loop ]\n"
        "  %pa = getelementptr i64, ptr %a, i64 %i\n  %x = load i64, ptr %pa\n"
        "  %pb = getelementptr i64, ptr %b, i64 %i\n  %y = load i64, ptr %pb\n"
        "  %pc = getelementptr i64, ptr %c, i64 %i\n  %z = load i64, ptr %pc\n"
        f"  %r = call i64 {scalar}(i64 %x, i64 %y, i64 %z)\n  store i64 %r, ptr %pa\n"
        "  %j = add i64 %i, 1\n  %more = icmp ult i64 %j, 32\n"
        "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n",
    )
    d.fn.do(f"call void @{name}(ptr {buffers[0]}, ptr {buffers[1]}, ptr {buffers[2]})")
    return Val(d.fn.emit_new(f"load {ty}, ptr {buffers[0]}, align 64"), 64, True)


__all__ = ["call", "fma"]

"""The approximate functions for the LLVM domain, almost exactly rounded.

AMD states 1 ulp for binary32 (RDNA3 ISA, 16.8); computing in binary64 and rounding once
is within 0.5001.  The longer ones are called as separate functions.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from sassxlate.domain.interface import Approximation, fabs
from sassxlate.lowering.llvm.ir_text import Function, Val, const, vec_type
from sassxlate.lowering.target import LANES

if TYPE_CHECKING:
    from sassxlate.lowering.llvm.lanes import LlvmLanes


def _f64(x: float) -> Val:
    import struct

    return const(int.from_bytes(struct.pack("<d", x), "little"), 64)


def _one(width: int) -> Val:
    return const({16: 0x3C00, 32: 0x3F800000, 64: 0x3FF << 52}[width], width)


def _horner(d: LlvmLanes, x: Val, coefficients: list[float]) -> Val:
    """Coefficients in ascending order, the constant first."""
    out = _f64(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = d.float_call("fma", out, x, _f64(c))
    return out


_EXP2 = [math.log(2) ** k / math.factorial(k) for k in range(11)]
_LOG2 = [2 / math.log(2) / (2 * k + 1) for k in range(8)]
_SIN = [float(Fraction((-1) ** k, math.factorial(2 * k + 1))) for k in range(9)]


def _exp2(d: LlvmLanes, x: Val) -> Val:
    """2 ** x of binary64 values that fit binary32's range of arguments."""
    low = d.select(d.fcmp("olt", x, _f64(-400.0)), _f64(-400.0), x)
    low = d.select(d.fcmp("ogt", low, _f64(400.0)), _f64(400.0), low)
    n = d.float_call("roundeven", low)
    y = _horner(d, d.float_op("fsub", low, n), _EXP2)
    # n + 1.5 * 2 ** 52 has n in its low bits.
    bits = d.float_op("fadd", n, _f64(6755399441055744.0))
    return d.add(y, d.shl(bits, const(52, 64)))


def _log2(d: LlvmLanes, x: Val) -> Val:
    # The mantissa is brought into [sqrt(1/2), sqrt(2)), so that there is no cancellation near 1.
    bias = 0x3FE6A09E667F3BCD
    shifted = d.sub(x, const(bias, 64))
    exponent = d.ashr(shifted, const(52, 64))
    m = d.sub(x, d.shl(exponent, const(52, 64)))
    e = d.int_to_float(d.extract(exponent, 0, 32), 64, True)
    t = d.float_op("fdiv", d.float_op("fsub", m, _one(64)), d.float_op("fadd", m, _one(64)))
    series = _horner(d, d.float_op("fmul", t, t), _LOG2)
    out = d.float_call("fma", t, series, e)
    inf = const(0x7FF << 52, 64)
    nan = const(0x7FF8 << 48, 64)
    out = d.select(d.fcmp("oeq", x, inf), inf, out)
    out = d.select(d.fcmp("oeq", x, const(0, 64)), const(0xFFF << 52, 64), out)
    return d.select(d.fcmp("uge", x, const(0, 64)), d.select(d.fcmp("uno", x, x), nan, out), nan)


def _sine_of(d: LlvmLanes, r: Val) -> Val:
    """sin(2 pi r), |r| <= 1/4."""
    y = d.float_op("fmul", r, _f64(2 * math.pi))
    return d.float_op("fmul", y, _horner(d, d.float_op("fmul", y, y), _SIN))


def _fraction(d: LlvmLanes, x: Val) -> Val:
    return d.float_op("fsub", x, d.float_call("roundeven", x))


def _sin(d: LlvmLanes, x: Val) -> Val:
    r = _fraction(d, x)
    size = fabs(d, r)
    sign = d.and_(r, const(1 << 63, 64))
    far = d.or_(d.float_op("fsub", _f64(0.5), size), sign)
    r = d.select(d.fcmp("ogt", size, _f64(0.25)), far, r)
    return d.select(d.fcmp("oeq", x, const(0, 64)), x, _sine_of(d, r))


def _cos(d: LlvmLanes, x: Val) -> Val:
    return _sine_of(d, d.float_op("fsub", _f64(0.25), fabs(d, _fraction(d, x))))


_CORE: dict[str, Callable[[LlvmLanes, Val], Val]] = {
    "exp2": _exp2, "log2": _log2, "sin": _sin, "cos": _cos,
}  # fmt: skip


def _short(d: LlvmLanes, fn: Approximation, a: Val) -> Val:
    """rcp, rsq and sqrt: IEEE operations."""
    wide = a.width
    if wide == 16 or (wide == 32 and fn == "rsq"):
        a = d.float_convert("fpext", a, 2 * wide)
    out = a if fn == "rcp" else d.float_call("sqrt", a)
    if fn != "sqrt":
        out = d.float_op("fdiv", _one(out.width), out)
    return out if out.width == wide else d.float_convert("fptrunc", out, wide)


def _f32(x: float) -> Val:
    import struct

    return const(int.from_bytes(struct.pack("<f", x), "little"), 32)


# The hosts' estimates of 1 / sqrt(x) of binary32 by ISA: function, arguments after the vector,
# lanes.  AVX-512's is relatively within 2 ** -14, AVX2's within 1.5 * 2 ** -12.
_ESTIMATES = {
    True: ("@llvm.x86.avx512.rsqrt14.ps.512", ("<16 x float> zeroinitializer", "i16 -1"), 16),
    False: ("@llvm.x86.avx.rsqrt.ps.256", (), 8),
}


def _estimate(d: LlvmLanes, x: Val) -> Val:
    name, others, lanes = _ESTIMATES[d.avx512]
    part, whole = f"<{lanes} x float>", f"<{LANES} x float>"
    d.fn.module.declare(
        f"{part} {name}({', '.join([part, *(o.rsplit(' ', 1)[0] for o in others)])})"
    )
    text, parts = d.as_float(x, True), list[str]()
    for first in range(0, LANES, lanes):
        index = ", ".join(f"i32 {first + i}" for i in range(lanes))
        piece = d.fn.emit(
            f"shufflevector {whole} {text}, {whole} poison, <{lanes} x i32> <{index}>"
        )
        parts.append(d.fn.emit(f"call {part} {name}({', '.join([f'{part} {piece}', *others])})"))
    while len(parts) > 1:
        count = 2 * LANES // len(parts)
        ty, index = f"<{count // 2} x float>", ", ".join(f"i32 {i}" for i in range(count))
        parts = [
            d.fn.emit(f"shufflevector {ty} {a}, {ty} {b}, <{count} x i32> <{index}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return d.from_float(parts[0], 32, True)


def _nearer(d: LlvmLanes, y: Val, e: Val) -> Val:
    """y / sqrt(1 - e) by the series' terms in e and e * e, rounded once."""
    square = d.float_op("fmul", e, e)
    step = d.float_call("fma", square, _f32(3 / 8), d.float_op("fmul", e, _f32(1 / 2)))
    return d.float_call("fma", y, step, y)


def _error(d: LlvmLanes, x: Val, y: Val) -> Val:
    """1 - x * y * y of y near 1 / sqrt(x), within 2 ** -48 of 1."""
    high = d.float_op("fmul", x, y)
    low = d.float_call("fma", x, y, d.float_op("fneg", high))  # exact
    e = d.float_call("fma", d.float_op("fneg", high), y, _one(32))
    return d.float_call("fma", d.float_op("fneg", low), y, e)


def _rsq(d: LlvmLanes, a: Val) -> Val:
    """rsq of binary32 in all lanes, correctly rounded, in binary32 alone.

    A step makes the host's estimate the nearest number or one beside it.  From each of these
    three the second step ends at the nearest, of all 2 ** 24 mantissas and exponents' parities
    (tests/lowering/emulate/test_reciprocal_roots.py), so the bits are those of a root and a
    division in binary64, whatever the host estimates.  The instruction flushes a denormal
    argument before (`_approx` of the meanings), so there is none here.
    """
    estimate = y = _estimate(d, a)
    # The first step's error may be rounded; its square counts if the estimate has 12 bits only.
    high = d.float_op("fmul", a, y)
    e = d.float_call("fma", d.float_op("fneg", high), y, _one(32))
    if d.avx512:
        y = d.float_call("fma", d.float_op("fmul", y, _f32(1 / 2)), e, y)
    else:
        y = _nearer(d, y, e)
    y = _nearer(d, y, _error(d, a, y))
    # Of zeros, infinity, NaNs and negative numbers the estimate is the result.
    usual = d.ult(d.sub(a, const(1, 32)), const(0x7F7FFFFF, 32))
    return d.select(usual, y, estimate)


def approx(d: LlvmLanes, fn: Approximation, a: Val) -> Val:
    if fn == "rsq" and a.width == 32 and a.vec:
        return _rsq(d, a)
    if fn in ("rcp", "rsq", "sqrt"):
        return _short(d, fn, a)
    return _called(d, fn, a)


def _called(d: LlvmLanes, fn: Approximation, a: Val) -> Val:

    module = d.fn.module
    name = f"{fn}.f{a.width}{'' if a.vec else '.one'}"
    ty = vec_type(a.width) if a.vec else f"i{a.width}"
    if name not in module.functions:
        f = Function(module, f"internal {ty} @{name}({ty} %a)", f"noinline {d.fn.attributes}")
        inner = d.over(f)
        x = Val("%a", a.width, a.vec)
        while x.width < 64:
            x = inner.float_convert("fpext", x, 2 * x.width)
        y = _CORE[fn](inner, x)
        while y.width > a.width:
            y = inner.float_convert("fptrunc", y, y.width // 2)
        f.do(f"ret {ty} {y.ref}")
        f.finish(name)
    return Val(d.fn.emit(f"call {ty} @{name}({ty} {a.ref})"), a.width, a.vec)


# --- strict mode -----------------------------------------------------------------------------

# How far a result may be from the exact one: binary32 1 ulp, so that it is one of the two numbers
# around it; binary64 2 ** 29 ulp; binary16 0.51 ulp, so that only a value near the middle of two
# numbers may become the other one (AMD's RDNA3 ISA document, V_RCP_F16 to V_COS_F32).
_F64_SHIFT = 2  # shift of a signed 32-bit number: at most 2 ** 29
_F16_WIDE = 80  # ulps of binary32: just under 0.01 ulp of binary16


def perturb(d: LlvmLanes, fn: Approximation, a: Val, out: Val) -> Val:
    """The result moved by an error that depends on the seed, the function and the argument.

    Zeros, denormals, infinities and NaNs stay, and so do exact results in binary32 and binary16,
    among them the document's examples (rcp(-2), rsq(4), sqrt(4), exp(0), sin(1/4)).
    """
    if out.width == 16:
        return _perturb_half(d, fn, a, out)
    noise = _noise(d, fn, a)
    if out.width == 64:
        moved = d.add(out, d.sext(d.ashr(noise, const(_F64_SHIFT, 32)), 64))
        return d.select(d.or_(_is_special(d, out), _is_special(d, moved)), out, moved)
    true = fabs(d, approx(d, fn, d.float_convert("fpext", a, 64)))
    size = d.float_convert("fpext", fabs(d, out), 64)
    # The true value is known to 2 ** -40: a value closer than that to a binary32 number is that
    # number.
    low = d.float_op("fmul", size, _f64(1 - 2.0**-38))
    high = d.float_op("fmul", size, _f64(1 + 2.0**-38))
    less, more = d.fcmp("ogt", true, high), d.fcmp("olt", true, low)
    step = d.sub(d.zext(less, 32), d.zext(more, 32))
    moved = d.add(out, d.mul(step, d.and_(noise, const(1, 32))))
    return d.select(d.or_(_is_special(d, out), _is_special(d, moved)), out, moved)


def _perturb_half(d: LlvmLanes, fn: Approximation, a: Val, out: Val) -> Val:
    wide = approx(d, fn, d.float_convert("fpext", a, 32))
    noise = _noise(d, fn, a)
    sign = d.or_(d.ashr(noise, const(31, 32)), const(1, 32))
    step = d.mul(d.mul(sign, d.and_(noise, const(1, 32))), const(_F16_WIDE, 32))
    moved = d.float_convert("fptrunc", d.add(wide, step), 16)
    keep = d.or_(_is_special(d, out), _is_special(d, moved))
    return d.select(keep, out, moved)


def _is_special(d: LlvmLanes, x: Val) -> Val:
    """Zero, denormal, infinity or NaN."""
    m, e = {16: (10, 5), 32: (23, 8), 64: (52, 11)}[x.width]
    exponent = d.and_(d.lshr(x, const(m, x.width)), const((1 << e) - 1, x.width))
    # Only 0 and all ones become less than 2 when 1 is added.
    return d.ult(
        d.and_(d.add(exponent, const(1, x.width)), const((1 << e) - 1, x.width)),
        const(2, x.width),
    )


def _noise(d: LlvmLanes, fn: Approximation, a: Val) -> Val:
    """32 bits from the seed, the function and the argument; 0 without a seed."""
    seed = Val(d.fn.emit(f"getelementptr i8, ptr %w, i64 {d.seed_offset}"), 64, False)
    word = Val(d.fn.emit(f"load i64, ptr {seed.ref}, !invariant.load !0"), 64, False)
    low, high = d.extract(word, 0, 32), d.extract(word, 32, 32)
    x = d.zext(a, 32) if a.width == 16 else d.extract(a, 0, 32)
    if a.width == 64:
        x = d.xor(x, d.mul(d.extract(a, 32, 32), const(0x85EBCA6B, 32)))
    x = d.xor(x, d.add(low, const(zlib.crc32(fn.encode()), 32)))
    for factor, shift in ((0x9E3779B1, 15), (0xC2B2AE35, 13), (0x27D4EB2F, 16)):
        x = d.mul(x, const(factor, 32))
        x = d.xor(x, d.lshr(x, const(shift, 32)))
        x = d.add(x, high)
    return d.select(d.eq(word, const(0, 64)), const(0, 32), x)

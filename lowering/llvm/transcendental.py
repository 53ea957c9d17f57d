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


# (1 - e) ** -1/2 is 1 + e times the series of these.
_ROOT = [1 / 2, 3 / 8, 5 / 16, 35 / 128]


def _estimate(d: LlvmLanes, x: Val) -> Val:
    """AVX-512's estimate of 1 / sqrt(x) of binary64, relatively within 2 ** -14."""
    part, whole, name = "<8 x double>", "<32 x double>", "@llvm.x86.avx512.rsqrt14.pd.512"
    d.fn.module.declare(f"{part} {name}({part}, {part}, i8)")
    text, parts = d.as_float(x, True), list[str]()
    for first in range(0, LANES, 8):
        index = ", ".join(f"i32 {first + i}" for i in range(8))
        eight = d.fn.emit(f"shufflevector {whole} {text}, {whole} poison, <8 x i32> <{index}>")
        parts.append(
            d.fn.emit(f"call {part} {name}({part} {eight}, {part} zeroinitializer, i8 -1)")
        )
    while len(parts) > 1:
        count = 2 * LANES // len(parts)
        ty, index = f"<{count // 2} x double>", ", ".join(f"i32 {i}" for i in range(count))
        parts = [
            d.fn.emit(f"shufflevector {ty} {a}, {ty} {b}, <{count} x i32> <{index}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return d.from_float(parts[0], 64, True)


def _rsq(d: LlvmLanes, a: Val) -> Val:
    """rsq of binary32 in all lanes, the same bits as by a root and a division in binary64, which
    take longer.

    Of all binary32 numbers none has a reciprocal root nearer than 2 ** -51.74 to the middle of two,
    relatively; the root and the division err by 2 ** -52 at most, and so does the series, whose
    sum is wrong by its last rounding, half of that of e, and 2 ** -66 left out.
    """
    x = d.float_convert("fpext", a, 64)
    y = _estimate(d, x)
    e = d.float_call("fma", d.float_op("fneg", d.float_op("fmul", x, y)), y, _one(64))
    better = d.float_call("fma", d.float_op("fmul", y, e), _horner(d, e, _ROOT), y)
    # Of zeros, infinity, NaNs and negative numbers the estimate is the result.
    usual = d.and_(d.fcmp("ogt", a, const(0, 32)), d.fcmp("olt", a, const(0x7F800000, 32)))
    return d.float_convert("fptrunc", d.select(usual, better, y), 32)


def approx(d: LlvmLanes, fn: Approximation, a: Val) -> Val:
    if fn == "rsq" and a.width == 32 and a.vec and d.avx512:
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

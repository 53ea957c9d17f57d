"""Two halves at once, mixed precision, and dot products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics import integer, logic
from sassxlate.disasm.rdna3.semantics.float import fadd, ffma, fmax, fmin, fmul
from sassxlate.disasm.rdna3.semantics.rows import Fn, Mode, Semantics, frow, row
from sassxlate.domain.interface import IEEE, Domain, fabs, is_zero, smax, smin, umax, umin

T = TypeVar("T")


def mix(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    return d.ffma(a, b, c, mode.f32)


def mix_half(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    return d.fcvt(d.ffma(a, b, c, mode.f32), 16, mode.f16_64)


def _halves(d: Domain[T], a: T) -> tuple[T, T]:
    return d.extract(a, 0, 16), d.extract(a, 16, 16)


def dot2_f32(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    """The products of halves are exact in binary32; added to c low half first."""
    total = c
    for x, y in zip(_halves(d, a), _halves(d, b), strict=True):
        total = d.ffma(d.fcvt(x, 32, IEEE), d.fcvt(y, 32, IEEE), total, mode.f32)
    return total


def _bf16(d: Domain[T], a: T) -> T:
    return d.concat(a, d.const(0, 16))


def dot2_f32_bf16(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    total = c
    for x, y in zip(_halves(d, a), _halves(d, b), strict=True):
        total = d.ffma(_bf16(d, x), _bf16(d, y), total, mode.f32)
    return total


def dot2_f16(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    total = c
    for x, y in zip(_halves(d, a), _halves(d, b), strict=True):
        total = d.fadd(d.fmul(x, y, mode.f16_64), total, mode.f16_64)
    return total


def _dot_ints(bits: int, mixed: bool) -> Fn:
    def fn(d: Domain[T], a: T, b: T, c: T, *signs: T) -> T:
        total = c
        for i in range(32 // bits):
            x, y = d.extract(a, bits * i, bits), d.extract(b, bits * i, bits)
            left, right = d.zext(x, 32), d.zext(y, 32)
            if mixed:  # neg selects the signed operands
                left = d.select(d.extract(signs[0], 0, 1), d.sext(x, 32), left)
                right = d.select(d.extract(signs[0], 1, 1), d.sext(y, 32), right)
            total = d.add(total, d.mul(left, right))
        return total

    return fn


def _dot_saturated(bits: int, mixed: bool) -> Fn:
    def fn(d: Domain[T], a: T, b: T, c: T, *signs: T) -> T:
        """The sum in 64 bits, saturated at the end."""
        total = d.sext(c, 64) if mixed else d.zext(c, 64)
        exact: T = _dot_ints(bits, mixed)(d, a, b, d.const(0, 32), *signs)
        if mixed:
            total = d.add(total, d.sext(exact, 64))
            low, high = d.const(-(1 << 31), 64), d.const((1 << 31) - 1, 64)
            return d.extract(smax(d, smin(d, total, high), low), 0, 32)
        total = d.add(total, d.zext(exact, 64))
        return d.extract(umin(d, total, d.const(0xFFFFFFFF, 64)), 0, 32)

    return fn


def mullit(d: Domain[T], mode: Mode, a: T, b: T, c: T) -> T:
    """The specular term of DX9 lighting: a * b; -FLT_MAX if the exponent is not positive."""
    least = d.const(0xFF7FFFFF, 32)
    out = fmul(d, mode, a, b)
    bad = d.or_(d.eq(b, least), d.fcmp("ole", c, d.const(0, 32)))
    for v in (b, c):
        bad = d.or_(bad, d.fcmp("uno", v, v))
    inf = d.and_(d.eq(fabs(d, b), d.const(0x7F800000, 32)), d.slt(b, d.const(0, 32)))
    bad = d.or_(bad, inf)
    zero = d.or_(is_zero(d, fabs(d, a)), is_zero(d, fabs(d, b)))
    return d.select(bad, least, d.select(zero, d.const(0, 32), out))


def rows() -> Iterator[Semantics]:
    two, three = "p16 p16", "p16 p16 p16"
    yield row("v_pk_add_u16", "p16", two, integer.add, saturating=integer.uadd_sat)
    yield row("v_pk_sub_u16", "p16", two, integer.sub, saturating=integer.usub_sat)
    yield row("v_pk_add_i16", "p16", two, integer.add, saturating=integer.sadd_sat)
    yield row("v_pk_sub_i16", "p16", two, integer.sub, saturating=integer.ssub_sat)
    yield row("v_pk_mul_lo_u16", "p16", two, integer.mul)
    yield row("v_pk_mad_u16", "p16", three, integer.mad, saturating=integer.mad_u16_sat)
    yield row("v_pk_mad_i16", "p16", three, integer.mad, saturating=integer.mad_i16_sat)
    yield row("v_pk_min_u16", "p16", two, umin)
    yield row("v_pk_max_u16", "p16", two, umax)
    yield row("v_pk_min_i16", "p16", two, smin)
    yield row("v_pk_max_i16", "p16", two, smax)
    yield row("v_pk_lshlrev_b16", "p16", two, logic.lshlrev)
    yield row("v_pk_lshrrev_b16", "p16", two, logic.lshrrev)
    yield row("v_pk_ashrrev_i16", "p16", two, logic.ashrrev)
    for op, n, fn in (
        ("add", 2, fadd), ("mul", 2, fmul), ("fma", 3, ffma), ("min", 2, fmin), ("max", 2, fmax),
    ):  # fmt: skip
        yield frow(f"v_pk_{op}_f16", "pf16", " ".join(["pf16"] * n), fn)
    yield frow("v_pk_fmac_f16", "pf16", "pf16 pf16 acc:pf16", ffma)
    yield frow("v_fma_mix_f32", "f32", "mix mix mix", mix)
    yield frow("v_fma_mixlo_f16", "f16lo", "mix mix mix", mix_half)
    yield frow("v_fma_mixhi_f16", "f16hi", "mix mix mix", mix_half)
    yield frow("v_dot2_f32_f16", "f32", "pair pair f32", dot2_f32)
    yield frow("v_dot2acc_f32_f16", "f32", "b32 b32 acc:f32", dot2_f32)
    yield frow("v_dot2_f32_bf16", "f32", "pair pair f32", dot2_f32_bf16)
    yield frow("v_dot2_f16_f16", "f16", "b32 b32 f16", dot2_f16)
    for op, bits, mixed in (
        ("v_dot4_i32_iu8", 8, True), ("v_dot8_i32_iu4", 4, True),
        ("v_dot4_u32_u8", 8, False), ("v_dot8_u32_u4", 4, False),
    ):  # fmt: skip
        extra = " neg" if mixed else ""
        fn = _dot_ints(bits, mixed)
        sat = _dot_saturated(bits, mixed)
        yield row(op, "b32", "raw raw raw" + extra, fn, saturating=sat)
    yield frow("v_mullit_f32", "f32", "f32 f32 f32", mullit)

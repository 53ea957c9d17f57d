"""Conversions of the vector ALU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics.integer import clamp_signed, clamp_unsigned
from sassxlate.disasm.rdna3.semantics.rows import Fn, Mode, Semantics, frow, row
from sassxlate.domain.interface import IEEE, Domain, Fp, Round, flush

T = TypeVar("T")


def _fcvt(width: int) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T) -> T:
        """Denormals are flushed by the mode of each side's format; conversions that involve
        binary16 or binary64 use the rounding mode of those formats."""
        w = d.width(a)
        if mode.fp(w).flush_in:
            a = flush(d, a)
        how = mode.fp(w).round if w > width == 32 else mode.fp(width).round
        return d.fcvt(a, width, Fp(how, False, mode.fp(width).flush_out))

    return fn


def _ftoi(width: int, signed: bool) -> Fn:
    def fn(d: Domain[T], a: T) -> T:
        return d.ftoi(a, width, signed)

    return fn


def _rounded(how: Round, half: bool) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T) -> T:
        if half:
            a = d.fadd(a, d.const(0x3F000000, 32), mode.f32)
        return d.ftoi(d.frint(a, how), 32, True)

    return fn


def _itof(width: int, signed: bool) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T) -> T:
        return d.itof(a, width, signed, Fp(mode.fp(width).round))

    return fn


def _ubyte(i: int) -> Fn:
    def fn(d: Domain[T], a: T) -> T:
        return d.itof(d.zext(d.extract(a, 8 * i, 8), 32), 32, False, IEEE)

    return fn


def off_i4(d: Domain[T], a: T) -> T:
    """A signed nibble, in sixteenths."""
    n = d.itof(d.sext(d.extract(a, 0, 4), 32), 32, True, IEEE)
    return d.fmul(n, d.const(0x3D800000, 32), IEEE)


def pk_rtz(d: Domain[T], mode: Mode, a: T, b: T) -> T:
    fp = Fp(Round.ZERO, False, mode.f16_64.flush_out)
    return d.concat(d.fcvt(b, 16, fp), d.fcvt(a, 16, fp))


def _pack_ints(signed: bool) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        lo, hi = (clamp_signed(d, v, 16) if signed else clamp_unsigned(d, v, 16) for v in (a, b))
        return d.concat(d.extract(hi, 0, 16), d.extract(lo, 0, 16))

    return fn


def _pack_floats(signed: bool) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        return d.concat(d.ftoi(b, 16, signed), d.ftoi(a, 16, signed))

    return fn


def _norm(d: Domain[T], a: T, signed: bool) -> T:
    """A float of [-1, 1] or [0, 1] as a 16-bit integer, to nearest even; binary32 is enough."""
    if d.width(a) == 16:
        a = d.fcvt(a, 32, IEEE)
    scale = 0x46FFFE00 if signed else 0x477FFF00  # 32767, 65535
    low = d.const(0xBF800000 if signed else 0, 32)
    one = d.const(0x3F800000, 32)
    a = d.select(d.fcmp("olt", a, low), low, a)
    a = d.select(d.fcmp("ogt", a, one), one, a)
    scaled = d.fmul(a, d.const(scale, 32), IEEE)
    return d.ftoi(d.frint(scaled, Round.NEAREST), 16, signed)


def _norm_one(signed: bool) -> Fn:
    def fn(d: Domain[T], a: T) -> T:
        return _norm(d, a, signed)

    return fn


def _norm_two(signed: bool) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        return d.concat(_norm(d, b, signed), _norm(d, a, signed))

    return fn


def pk_u8(d: Domain[T], a: T, at: T, c: T) -> T:
    """c with the byte that `at` selects replaced by `a` converted."""
    count = d.shl(d.and_(at, d.const(3, 32)), d.const(3, 32))
    hole = d.not_(d.shl(d.const(255, 32), count))
    byte = clamp_unsigned(d, d.ftoi(a, 32, False), 8)
    return d.or_(d.and_(c, hole), d.shl(byte, count))


def sat_pk_u8(d: Domain[T], a: T) -> T:
    """Two signed halves as two bytes."""

    def byte(i: int) -> T:
        v = d.sext(d.extract(a, i, 16), 32)
        zero, top = d.const(0, 32), d.const(255, 32)
        v = d.select(d.slt(v, zero), zero, d.select(d.slt(top, v), top, v))
        return d.extract(v, 0, 8)

    return d.concat(byte(16), byte(0))


def pack(d: Domain[T], mode: Mode, a: T, b: T) -> T:
    if mode.f16_64.flush_in:
        a, b = flush(d, a), flush(d, b)
    return d.concat(b, a)


def _extend(signed: bool) -> Fn:
    def fn(d: Domain[T], a: T) -> T:
        return d.sext(a, 32) if signed else d.zext(a, 32)

    return fn


def rows() -> Iterator[Semantics]:
    for a, b in ((32, 16), (16, 32), (64, 32), (32, 64)):
        yield frow(f"v_cvt_f{a}_f{b}", f"f{a}", f"f{b}", _fcvt(a))
    for kind, signed in (("i", True), ("u", False)):
        yield row(f"v_cvt_{kind}32_f32", "b32", "f32", _ftoi(32, signed))
        yield row(f"v_cvt_{kind}32_f64", "b32", "f64", _ftoi(32, signed))
        yield row(f"v_cvt_{kind}16_f16", "b16", "f16", _ftoi(16, signed))
        yield frow(f"v_cvt_f32_{kind}32", "f32", "b32", _itof(32, signed))
        yield frow(f"v_cvt_f64_{kind}32", "f64", "b32", _itof(64, signed))
        yield frow(f"v_cvt_f16_{kind}16", "f16", "b16", _itof(16, signed))
        yield row(f"v_cvt_{kind}32_{kind}16", "b32", "b16", _extend(signed))
        yield row(f"v_cvt_pk_{kind}16_{kind}32", "b32", "b32 b32", _pack_ints(signed))
        yield row(f"v_cvt_pk_{kind}16_f32", "b32", "f32 f32", _pack_floats(signed))
        yield row(f"v_cvt_norm_{kind}16_f16", "b16", "f16", _norm_one(signed))
        yield row(f"v_cvt_pk_norm_{kind}16_f16", "b32", "f16 f16", _norm_two(signed))
        yield row(f"v_cvt_pk_norm_{kind}16_f32", "b32", "f32 f32", _norm_two(signed))
    for i in range(4):
        yield row(f"v_cvt_f32_ubyte{i}", "f32", "b32", _ubyte(i))
    yield row("v_cvt_off_f32_i4", "f32", "b32", off_i4)
    yield frow("v_cvt_nearest_i32_f32", "b32", "f32", _rounded(Round.DOWN, True))
    yield frow("v_cvt_floor_i32_f32", "b32", "f32", _rounded(Round.DOWN, False))
    yield frow("v_cvt_pk_rtz_f16_f32", "b32", "f32 f32", pk_rtz)
    yield row("v_cvt_pk_u8_f32", "b32", "f32 b32 b32", pk_u8)
    yield row("v_sat_pk_u8_i16", "b16", "b32", sat_pk_u8)
    yield frow("v_pack_b32_f16", "b32", "f16 f16", pack)

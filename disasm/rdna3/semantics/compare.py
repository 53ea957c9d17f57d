"""Comparisons: v_cmp, v_cmpx, s_cmp and the float classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics.rows import Fn, Mode, Semantics, frow, row
from sassxlate.domain.interface import (
    Domain,
    FloatPredicate,
    fabs,
    flush,
    is_denormal,
    is_inf,
    is_nan,
    is_zero,
    mantissa_bits,
)

T = TypeVar("T")


def _signed(d: Domain[T], a: T, b: T) -> T:
    return d.slt(a, b)


def _unsigned(d: Domain[T], a: T, b: T) -> T:
    return d.ult(a, b)


def _integer(less: Fn, name: str) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        out: T
        if name == "lt":
            out = less(d, a, b)
        elif name == "gt":
            out = less(d, b, a)
        elif name == "le":
            out = d.not_(less(d, b, a))
        elif name == "ge":
            out = d.not_(less(d, a, b))
        else:
            out = d.eq(a, b) if name == "eq" else d.not_(d.eq(a, b))
        return out

    return fn


INTEGER = ("lt", "eq", "le", "gt", "ne", "ge")

# AMD's name of a float comparison to IEEE's predicate (o: false, u: true where unordered).
FLOAT: dict[str, FloatPredicate] = {
    "lt": "olt", "eq": "oeq", "le": "ole", "gt": "ogt", "lg": "one", "ge": "oge",
    "o": "ord", "u": "uno", "nge": "ult", "nlg": "ueq", "ngt": "ule", "nle": "ugt",
    "neq": "une", "nlt": "uge",
}  # fmt: skip


def _float(predicate: FloatPredicate) -> Fn:
    def fn(d: Domain[T], mode: Mode, a: T, b: T) -> T:
        if mode.fp(d.width(a)).flush_in:
            a, b = flush(d, a), flush(d, b)
        return d.fcmp(predicate, a, b)

    return fn


def _always(value: int) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        return d.const(value, 1)

    return fn


def fclass(d: Domain[T], a: T, mask: T) -> T:
    """Whether `a` belongs to a class in `mask`: sNaN, qNaN, -inf, -normal, -denormal, -0,
    +0, +denormal, +normal, +inf from bit 0 on."""
    w = d.width(a)
    m = mantissa_bits(w)
    quiet_bit = d.extract(a, m - 1, 1)
    negative = d.extract(a, w - 1, 1)
    nan, inf, den = is_nan(d, a), is_inf(d, a), is_denormal(d, a)
    zero = is_zero(d, fabs(d, a))

    def bit(i: int) -> T:
        return d.extract(mask, i, 1)

    def signed(minus: int, plus: int) -> T:
        return d.select(negative, bit(minus), bit(plus))

    # Neither of these exponents plus one has another bit than the lowest: 0, and all ones.
    next_exponent = d.add(a, d.const(1 << m, w))
    other = d.const(((1 << w - 1) - 1) & ~((2 << m) - 1), w)
    special = d.eq(d.and_(next_exponent, other), d.const(0, w))
    out = d.select(inf, signed(2, 9), d.const(0, 1))
    out = d.select(den, signed(4, 7), out)
    out = d.select(zero, signed(5, 6), out)
    out = d.select(nan, d.select(quiet_bit, bit(1), bit(0)), out)
    return d.select(special, out, signed(3, 8))


def _bitcmp(want: int) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        w = d.width(a)
        count = d.and_(d.zext(b, w) if w > d.width(b) else b, d.const(w - 1, w))
        bit = d.extract(d.lshr(a, count), 0, 1)
        return bit if want else d.not_(bit)

    return fn


def vector() -> Iterator[Semantics]:
    """v_cmp rows; v_cmpx's are the same with EXEC as destination."""
    for w in (16, 32, 64):
        for kind, less in (("i", _signed), ("u", _unsigned)):
            for name in INTEGER:
                yield row(f"v_cmp_{name}_{kind}{w}", "m", f"b{w} b{w}", _integer(less, name))
            if w != 16:
                yield row(f"v_cmp_f_{kind}{w}", "m", f"b{w} b{w}", _always(0))
                yield row(f"v_cmp_t_{kind}{w}", "m", f"b{w} b{w}", _always(1))
        for name, predicate in FLOAT.items():
            yield frow(f"v_cmp_{name}_f{w}", "m", f"f{w} f{w}", _float(predicate))
        yield row(f"v_cmp_f_f{w}", "m", f"f{w} f{w}", _always(0))
        yield row(f"v_cmp_t_f{w}", "m", f"f{w} f{w}", _always(1))
        yield row(f"v_cmp_class_f{w}", "m", f"f{w} b32", fclass)


def rows() -> Iterator[Semantics]:
    for r in vector():
        yield r
        yield Semantics(r.op.replace("v_cmp_", "v_cmpx_"), ("execm",), r.src, r.fn, r.mode)
    for kind, less in (("i", _signed), ("u", _unsigned)):
        for name in INTEGER:
            op = "lg" if name == "ne" else name
            fn = _integer(less, name)
            yield row(f"s_cmp_{op}_{kind}32", "scc", "b32 b32", fn)
            yield row(f"s_cmpk_{op}_{kind}32", "scc", f"b32 {'imm' if kind == 'i' else 'immz'}", fn)
    yield row("s_cmp_eq_u64", "scc", "b64 b64", _integer(_unsigned, "eq"))
    yield row("s_cmp_lg_u64", "scc", "b64 b64", _integer(_unsigned, "ne"))
    for want in (0, 1):
        yield row(f"s_bitcmp{want}_b32", "scc", "b32 b32", _bitcmp(want))
        yield row(f"s_bitcmp{want}_b64", "scc", "b64 b32", _bitcmp(want))

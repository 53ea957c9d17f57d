"""The scalar ALU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.semantics.integer import smul_hi, umul_hi
from sassxlate.disasm.rdna3.semantics.logic import cls_i32, clz_u32, ctz_b32
from sassxlate.disasm.rdna3.semantics.rows import Fn, Semantics, row
from sassxlate.domain.interface import Domain, is_zero, mask_bits, neg

T = TypeVar("T")


def _nonzero(d: Domain[T], a: T) -> T:
    return d.not_(is_zero(d, a))


def mov(d: Domain[T], a: T) -> T:
    return a


def add_u32(d: Domain[T], a: T, b: T) -> tuple[T, T]:
    s = d.add(a, b)
    return s, d.ult(s, a)


def addc_u32(d: Domain[T], a: T, b: T, c: T) -> tuple[T, T]:
    s = d.add(a, b)
    t = d.add(s, d.zext(c, 32))
    return t, d.or_(d.ult(s, a), d.ult(t, s))


def sub_u32(d: Domain[T], a: T, b: T) -> tuple[T, T]:
    return d.sub(a, b), d.ult(a, b)


def subb_u32(d: Domain[T], a: T, b: T, c: T) -> tuple[T, T]:
    s = d.sub(d.sub(a, b), d.zext(c, 32))
    return s, d.or_(d.ult(a, b), d.and_(d.eq(a, b), c))


def add_i32(d: Domain[T], a: T, b: T) -> tuple[T, T]:
    s = d.add(a, b)
    overflow = d.and_(d.not_(d.xor(a, b)), d.xor(a, s))
    return s, d.extract(overflow, 31, 1)


def sub_i32(d: Domain[T], a: T, b: T) -> tuple[T, T]:
    s = d.sub(a, b)
    overflow = d.and_(d.xor(a, b), d.xor(a, s))
    return s, d.extract(overflow, 31, 1)


def mul(d: Domain[T], a: T, b: T) -> T:
    return d.mul(a, b)


def addk(d: Domain[T], k: T, a: T) -> tuple[T, T]:
    return add_i32(d, a, k)


def cmov(d: Domain[T], a: T, old: T, scc: T) -> T:
    return d.select(scc, a, old)


def cselect(d: Domain[T], a: T, b: T, scc: T) -> T:
    return d.select(scc, a, b)


def _pick(less: Fn, swap: bool) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> tuple[T, T]:
        first: T = less(d, b, a) if swap else less(d, a, b)
        return d.select(first, a, b), first

    return fn


def _slt(d: Domain[T], a: T, b: T) -> T:
    return d.slt(a, b)


def _ult(d: Domain[T], a: T, b: T) -> T:
    return d.ult(a, b)


def _uge(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.ult(a, b))


def _sge(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.slt(a, b))


def _and(d: Domain[T], a: T, b: T) -> T:
    return d.and_(a, b)


def _or(d: Domain[T], a: T, b: T) -> T:
    return d.or_(a, b)


def _xor(d: Domain[T], a: T, b: T) -> T:
    return d.xor(a, b)


def _nand(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.and_(a, b))


def _nor(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.or_(a, b))


def _xnor(d: Domain[T], a: T, b: T) -> T:
    return d.not_(d.xor(a, b))


def _and_not1(d: Domain[T], a: T, b: T) -> T:
    return d.and_(a, d.not_(b))


def _or_not1(d: Domain[T], a: T, b: T) -> T:
    return d.or_(a, d.not_(b))


def _and_not0(d: Domain[T], a: T, b: T) -> T:
    return d.and_(d.not_(a), b)


def _or_not0(d: Domain[T], a: T, b: T) -> T:
    return d.or_(d.not_(a), b)


LOGIC: dict[str, Fn] = {
    "and": _and, "or": _or, "xor": _xor, "nand": _nand, "nor": _nor, "xnor": _xnor,
    "and_not1": _and_not1, "or_not1": _or_not1,
}  # fmt: skip
NOT0: dict[str, Fn] = {"and_not0": _and_not0, "or_not0": _or_not0}


def _scc(f: Fn) -> Fn:
    """The result, and whether it is not zero."""

    def fn(d: Domain[T], *args: T) -> tuple[T, T]:
        out: T = f(d, *args)
        return out, _nonzero(d, out)

    return fn


def _saveexec(f: Fn) -> Fn:
    def fn(d: Domain[T], a: T, exec_: T) -> tuple[T, T, T]:
        new: T = f(d, a, exec_)
        return exec_, new, _nonzero(d, new)

    return fn


def _wrexec(f: Fn) -> Fn:
    def fn(d: Domain[T], a: T, exec_: T) -> tuple[T, T, T]:
        new: T = f(d, a, exec_)
        return new, new, _nonzero(d, new)

    return fn


def _not(d: Domain[T], a: T) -> T:
    return d.not_(a)


def _shift(kind: str) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        w = d.width(a)
        count = mask_bits(d, b, w - 1)
        count = d.zext(count, w) if w > 32 else count
        if kind == "shl":
            return d.shl(a, count)
        return d.lshr(a, count) if kind == "lshr" else d.ashr(a, count)

    return fn


def _lshl_add(n: int) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> tuple[T, T]:
        wide = d.add(d.shl(d.zext(a, 64), d.const(n, 64)), d.zext(b, 64))
        return d.extract(wide, 0, 32), _nonzero(d, d.extract(wide, 32, 32))

    return fn


def bfe(signed: bool) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        """Offset in the low bits of b, width in bits 22 to 16; past the top there are zeros, or
        copies of the sign."""
        w = d.width(a)
        offset = mask_bits(d, b, w - 1)
        count = d.zext(d.extract(b, 16, 7), 32)
        if w > 32:
            offset, count = d.zext(offset, w), d.zext(count, w)
        low = d.ashr(a, offset) if signed else d.lshr(a, offset)
        full = d.not_(d.ult(count, d.const(w, w)))
        short = mask_bits(d, count, w - 1)
        one = d.const(1, w)
        field = d.and_(low, d.sub(d.shl(one, short), one))
        if signed:
            up = mask_bits(d, d.sub(d.const(w, w), count), w - 1)
            field = d.ashr(d.shl(field, up), up)
            field = d.select(is_zero(d, count), d.const(0, w), field)
        return d.select(full, low, field)

    return fn


def bfm(w: int) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        one = d.const(1, w)
        n, at = mask_bits(d, a, w - 1), mask_bits(d, b, w - 1)
        if w > 32:
            n, at = d.zext(n, w), d.zext(at, w)
        return d.shl(d.sub(d.shl(one, n), one), at)

    return fn


def _count(f: Fn) -> Fn:
    def fn(d: Domain[T], a: T) -> T:
        """Bits of a 64-bit value, in 32; -1 if there is none."""
        n: T = f(d, a)
        return d.select(is_zero(d, a), d.const(-1, 32), d.extract(n, 0, 32))

    return fn


def _ctz(d: Domain[T], a: T) -> T:
    return d.ctz(a)


def _clz(d: Domain[T], a: T) -> T:
    return d.clz(a)


def cls_i64(d: Domain[T], a: T) -> T:
    folded = d.xor(a, d.ashr(a, d.const(63, 64)))
    n = d.extract(d.clz(folded), 0, 32)
    return d.select(is_zero(d, folded), d.const(-1, 32), n)


def _bcnt(of_ones: bool) -> Fn:
    def fn(d: Domain[T], a: T) -> T:
        n = d.popcount(a if of_ones else d.not_(a))
        return d.extract(n, 0, 32) if d.width(a) > 32 else n

    return fn


def _brev(d: Domain[T], a: T) -> T:
    return d.bitreverse(a)


def _sext(bits: int) -> Fn:
    def fn(d: Domain[T], a: T) -> T:
        return d.sext(d.extract(a, 0, bits), 32)

    return fn


def _bitset(value: int) -> Fn:
    def fn(d: Domain[T], a: T, old: T) -> T:
        w = d.width(old)
        at = mask_bits(d, a, w - 1)
        bit = d.shl(d.const(1, w), d.zext(at, w) if w > 32 else at)
        return d.or_(old, bit) if value else d.and_(old, d.not_(bit))

    return fn


def iabs(d: Domain[T], a: T) -> T:
    return d.select(d.slt(a, d.const(0, 32)), neg(d, a), a)


def absdiff(d: Domain[T], a: T, b: T) -> T:
    return iabs(d, d.sub(a, b))


def _pack(hi: int, lo: int) -> Fn:
    def fn(d: Domain[T], a: T, b: T) -> T:
        return d.concat(d.extract(b, 16 * hi, 16), d.extract(a, 16 * lo, 16))

    return fn


def quadmask(d: Domain[T], a: T) -> T:
    """Bit i: whether any bit of the i-th group of four is set."""
    w = d.width(a)
    out = d.const(0, w)
    for i in range(w // 4):
        hit = _nonzero(d, d.extract(a, 4 * i, 4))
        out = d.or_(out, d.shl(d.zext(hit, w), d.const(i, w)))
    return out


def wqm(d: Domain[T], a: T) -> T:
    """Whole quads: every group of four with a set bit becomes all ones."""
    w = d.width(a)
    low = d.const(int("1" * (w // 4), 16), w)
    any_ = d.or_(a, d.lshr(a, d.const(1, w)))
    any_ = d.and_(d.or_(any_, d.lshr(any_, d.const(2, w))), low)
    return d.mul(any_, d.const(15, w))


def bitreplicate(d: Domain[T], a: T) -> T:
    """Every bit twice."""
    v = d.zext(a, 64)
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333), (1, 0x5555555555555555),
    ):  # fmt: skip
        v = mask_bits(d, d.or_(v, d.shl(v, d.const(shift, 64))), mask)
    return d.or_(v, d.shl(v, d.const(1, 64)))


def _logic() -> Iterator[Semantics]:
    for w in (32, 64):
        k = f"b{w}"
        for op, fn in LOGIC.items():
            yield row(f"s_{op}_b{w}", f"{k} scc", f"{k} {k}", _scc(fn))
        yield row(f"s_not_b{w}", f"{k} scc", k, _scc(_not))
        yield row(f"s_wqm_b{w}", f"{k} scc", k, _scc(wqm))
        yield row(f"s_quadmask_b{w}", f"{k} scc", k, _scc(quadmask))
    for op, fn in (LOGIC | NOT0).items():
        yield row(f"s_{op}_saveexec_b32", "b32 exec scc", "b32 exec", _saveexec(fn))
    for op in ("and_not0", "and_not1"):
        fn = (LOGIC | NOT0)[op]
        yield row(f"s_{op}_wrexec_b32", "b32 exec scc", "b32 exec", _wrexec(fn))


def _shifts() -> Iterator[Semantics]:
    for w in (32, 64):
        k = f"b{w}"
        yield row(f"s_lshl_b{w}", f"{k} scc", f"{k} b32", _scc(_shift("shl")))
        yield row(f"s_lshr_b{w}", f"{k} scc", f"{k} b32", _scc(_shift("lshr")))
        yield row(f"s_ashr_i{w}", f"{k} scc", f"{k} b32", _scc(_shift("ashr")))
        yield row(f"s_bfe_u{w}", f"{k} scc", f"{k} b32", _scc(bfe(False)))
        yield row(f"s_bfe_i{w}", f"{k} scc", f"{k} b32", _scc(bfe(True)))
        yield row(f"s_bfm_b{w}", k, "b32 b32", bfm(w))
        yield row(f"s_brev_b{w}", k, k, _brev)
        yield row(f"s_bcnt0_i32_b{w}", "b32 scc", k, _scc(_bcnt(False)))
        yield row(f"s_bcnt1_i32_b{w}", "b32 scc", k, _scc(_bcnt(True)))
        yield row(f"s_bitset0_b{w}", k, f"b32 acc:{k}", _bitset(0))
        yield row(f"s_bitset1_b{w}", k, f"b32 acc:{k}", _bitset(1))
    yield row("s_ctz_i32_b32", "b32", "b32", ctz_b32)
    yield row("s_ctz_i32_b64", "b32", "b64", _count(_ctz))
    yield row("s_clz_i32_u32", "b32", "b32", clz_u32)
    yield row("s_clz_i32_u64", "b32", "b64", _count(_clz))
    yield row("s_cls_i32", "b32", "b32", cls_i32)
    yield row("s_cls_i32_i64", "b32", "b64", cls_i64)
    yield row("s_bitreplicate_b64_b32", "b64", "b32", bitreplicate)


def rows() -> Iterator[Semantics]:
    two = "b32 b32"
    yield from _logic()
    yield from _shifts()
    for w in (32, 64):
        k = f"b{w}"
        yield row(f"s_mov_b{w}", k, k, mov)
        yield row(f"s_cmov_b{w}", k, f"{k} acc:{k} scc", cmov)
        yield row(f"s_cselect_b{w}", k, f"{k} {k} scc", cselect)
    yield row("s_add_u32", "b32 scc", two, add_u32)
    yield row("s_sub_u32", "b32 scc", two, sub_u32)
    yield row("s_add_i32", "b32 scc", two, add_i32)
    yield row("s_sub_i32", "b32 scc", two, sub_i32)
    yield row("s_addc_u32", "b32 scc", "b32 b32 scc", addc_u32)
    yield row("s_subb_u32", "b32 scc", "b32 b32 scc", subb_u32)
    yield row("s_mul_i32", "b32", two, mul)
    yield row("s_mul_hi_u32", "b32", two, umul_hi)
    yield row("s_mul_hi_i32", "b32", two, smul_hi)
    # SCC: the first operand was taken; equal operands count as the first only for max.
    yield row("s_min_i32", "b32 scc", two, _pick(_slt, False))
    yield row("s_min_u32", "b32 scc", two, _pick(_ult, False))
    yield row("s_max_i32", "b32 scc", two, _pick(_sge, False))
    yield row("s_max_u32", "b32 scc", two, _pick(_uge, False))
    yield row("s_abs_i32", "b32 scc", "b32", _scc(iabs))
    yield row("s_absdiff_i32", "b32 scc", two, _scc(absdiff))
    for n in (1, 2, 3, 4):
        yield row(f"s_lshl{n}_add_u32", "b32 scc", two, _lshl_add(n))
    yield row("s_sext_i32_i8", "b32", "b32", _sext(8))
    yield row("s_sext_i32_i16", "b32", "b32", _sext(16))
    for hi in (0, 1):
        for lo in (0, 1):
            yield row(f"s_pack_{'lh'[lo]}{'lh'[hi]}_b32_b16", "b32", two, _pack(hi, lo))
    yield row("s_movk_i32", "b32", "imm", mov)
    yield row("s_cmovk_i32", "b32", "imm acc:b32 scc", cmov)
    yield row("s_addk_i32", "b32 scc", "imm acc:b32", addk)
    yield row("s_mulk_i32", "b32", "imm acc:b32", mul)

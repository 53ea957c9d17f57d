"""A domain of values with their undefined bits: which bits of a result depend on undefined ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Val, const


@dataclass(frozen=True, slots=True)
class Pair:
    """A scalar and its shadow: ones where a bit is undefined."""

    v: Val
    u: Val


class PairDomain:
    """The operations of `Domain` on pairs of LLVM values: a scalar, and its undefined bits.  Only
    those on integers that the semantics of the scalar ALU use."""

    def __init__(self, d: LlvmDomain) -> None:
        self.d = d

    def const(self, n: int, width: int) -> Pair:
        return Pair(const(n, width), const(0, width))

    def width(self, a: Pair) -> int:
        return a.v.width

    def any_of(self, width: int, *args: Pair) -> Val:
        """All ones if a bit of some operand is undefined."""
        total: Val | None = None
        for a in args:
            if a.u.const == 0:
                continue
            some = self.d.not_(self.d.eq(a.u, const(0, a.u.width)))
            total = some if total is None else self.d.or_(total, some)
        if total is None:
            return const(0, width)
        return total if width == 1 else self.d.sext(total, width)

    def _strict(self, op: Callable[..., Val], *args: Pair) -> Pair:
        out = op(*(a.v for a in args))
        return Pair(out, self.any_of(out.width, *args))

    def _carried(self, op: Callable[..., Val], a: Pair, b: Pair) -> Pair:
        """Sums and products: an undefined bit makes itself and all higher bits undefined."""
        u = self.d.or_(a.u, b.u)
        if u.const == 0:
            return Pair(op(a.v, b.v), u)
        return Pair(op(a.v, b.v), self.d.or_(u, self.d.sub(const(0, u.width), u)))

    def add(self, a: Pair, b: Pair) -> Pair:
        return self._carried(self.d.add, a, b)

    def sub(self, a: Pair, b: Pair) -> Pair:
        return self._carried(self.d.sub, a, b)

    def mul(self, a: Pair, b: Pair) -> Pair:
        return self._carried(self.d.mul, a, b)

    def and_(self, a: Pair, b: Pair) -> Pair:
        d = self.d
        may = d.and_(d.or_(a.v, a.u), d.or_(b.v, b.u))  # bits that are not certainly 0
        return Pair(d.and_(a.v, b.v), d.and_(d.or_(a.u, b.u), may))

    def or_(self, a: Pair, b: Pair) -> Pair:
        return self.not_(self.and_(self.not_(a), self.not_(b)))

    def xor(self, a: Pair, b: Pair) -> Pair:
        return Pair(self.d.xor(a.v, b.v), self.d.or_(a.u, b.u))

    def not_(self, a: Pair) -> Pair:
        return Pair(self.d.not_(a.v), a.u)

    def _shift(self, op: Callable[[Val, Val], Val], a: Pair, count: Pair) -> Pair:
        u = self.d.or_(op(a.u, count.v), self.any_of(a.u.width, count))
        return Pair(op(a.v, count.v), u)

    def shl(self, a: Pair, count: Pair) -> Pair:
        return self._shift(self.d.shl, a, count)

    def lshr(self, a: Pair, count: Pair) -> Pair:
        return self._shift(self.d.lshr, a, count)

    def ashr(self, a: Pair, count: Pair) -> Pair:
        return self._shift(self.d.ashr, a, count)

    def eq(self, a: Pair, b: Pair) -> Pair:
        d = self.d
        out = d.eq(a.v, b.v)
        u = d.or_(a.u, b.u)
        if u.const == 0:
            return Pair(out, const(0, 1))
        zero = const(0, u.width)
        differs = d.not_(d.eq(d.and_(d.xor(a.v, b.v), d.not_(u)), zero))
        return Pair(out, d.and_(d.not_(d.eq(u, zero)), d.not_(differs)))

    def ult(self, a: Pair, b: Pair) -> Pair:
        return self._strict(self.d.ult, a, b)

    def slt(self, a: Pair, b: Pair) -> Pair:
        return self._strict(self.d.slt, a, b)

    def select(self, c: Pair, a: Pair, b: Pair) -> Pair:
        d = self.d
        u = d.or_(d.select(c.v, a.u, b.u), self.any_of(a.u.width, c))
        return Pair(d.select(c.v, a.v, b.v), u)

    def zext(self, a: Pair, width: int) -> Pair:
        return Pair(self.d.zext(a.v, width), self.d.zext(a.u, width))

    def sext(self, a: Pair, width: int) -> Pair:
        return Pair(self.d.sext(a.v, width), self.d.sext(a.u, width))

    def extract(self, a: Pair, lo: int, width: int) -> Pair:
        return Pair(self.d.extract(a.v, lo, width), self.d.extract(a.u, lo, width))

    def concat(self, hi: Pair, lo: Pair) -> Pair:
        return Pair(self.d.concat(hi.v, lo.v), self.d.concat(hi.u, lo.u))

    def popcount(self, a: Pair) -> Pair:
        return self._strict(self.d.popcount, a)

    def clz(self, a: Pair) -> Pair:
        return self._strict(self.d.clz, a)

    def ctz(self, a: Pair) -> Pair:
        return self._strict(self.d.ctz, a)

    def bitreverse(self, a: Pair) -> Pair:
        return Pair(self.d.bitreverse(a.v), self.d.bitreverse(a.u))

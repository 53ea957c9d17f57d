"""The solver's reader of meanings: bit vectors, and floating point as functions of its operands.

An IEEE operation is an uninterpreted function of the operation, the width and its rounding and
flushing: two computations are equal where they apply the same operations to equal operands.  What
is decided by bit patterns alone (comparisons, minimum, signs) is exact.  NaN have no payloads here.
"""

from __future__ import annotations

import z3

from sassxlate.domain import (
    Approximation,
    FloatPredicate,
    Fp,
    Round,
    exponent_bits,
    flush,
    mantissa_bits,
)

BV = z3.BitVecRef


def bit(condition: z3.BoolRef) -> BV:
    """A truth value as one bit."""
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def holds(a: BV) -> z3.BoolRef:
    return a == z3.BitVecVal(1, 1)


class Terms:
    """``Domain[BV]``."""

    payloads = False

    def __init__(self) -> None:
        self._functions: dict[tuple[str, int, tuple[int, ...]], z3.FuncDeclRef] = {}
        self.floats = False  # whether a floating-point operation occurred
        self._kept: list[BV] = []  # terms have a number for as long as they are kept

    def const(self, n: int, width: int) -> BV:
        return z3.BitVecVal(n, width)

    def width(self, a: BV) -> int:
        return int(a.size())

    # -- integers -------------------------------------------------------------------------

    def add(self, a: BV, b: BV) -> BV:
        return a + b

    def sub(self, a: BV, b: BV) -> BV:
        return a - b

    def mul(self, a: BV, b: BV) -> BV:
        return a * b

    def and_(self, a: BV, b: BV) -> BV:
        return a & b

    def or_(self, a: BV, b: BV) -> BV:
        return a | b

    def xor(self, a: BV, b: BV) -> BV:
        return a ^ b

    def not_(self, a: BV) -> BV:
        return ~a

    def shl(self, a: BV, count: BV) -> BV:
        return a << count

    def lshr(self, a: BV, count: BV) -> BV:
        return z3.LShR(a, count)

    def ashr(self, a: BV, count: BV) -> BV:
        return a >> count

    def eq(self, a: BV, b: BV) -> BV:
        return bit(a == b)

    def ult(self, a: BV, b: BV) -> BV:
        return bit(z3.ULT(a, b))

    def slt(self, a: BV, b: BV) -> BV:
        return bit(a < b)

    def select(self, c: BV, a: BV, b: BV) -> BV:
        return z3.If(holds(c), a, b)

    def zext(self, a: BV, width: int) -> BV:
        gap = width - self.width(a)
        return z3.ZeroExt(gap, a) if gap else a

    def sext(self, a: BV, width: int) -> BV:
        gap = width - self.width(a)
        return z3.SignExt(gap, a) if gap else a

    def extract(self, a: BV, lo: int, width: int) -> BV:
        return z3.Extract(lo + width - 1, lo, a)

    def concat(self, hi: BV, lo: BV) -> BV:
        return z3.Concat(hi, lo)

    def popcount(self, a: BV) -> BV:
        w = self.width(a)
        total = z3.BitVecVal(0, w)
        for i in range(w):
            total = total + self.zext(self.extract(a, i, 1), w)
        return total

    def _first(self, a: BV, order: range) -> BV:
        w = self.width(a)
        out: BV = z3.BitVecVal(w, w)
        for distance, i in reversed(list(enumerate(order))):
            out = self.select(self.extract(a, i, 1), z3.BitVecVal(distance, w), out)
        return out

    def clz(self, a: BV) -> BV:
        return self._first(a, range(self.width(a) - 1, -1, -1))

    def ctz(self, a: BV) -> BV:
        return self._first(a, range(self.width(a)))

    def bitreverse(self, a: BV) -> BV:
        return z3.Concat(*(self.extract(a, i, 1) for i in range(self.width(a))))

    # -- floating point -------------------------------------------------------------------

    def _apply(self, name: str, width: int, how: tuple[int, ...], *args: BV) -> BV:
        self.floats = True
        key = (name, width, (*how, *(self.width(a) for a in args)))
        function = self._functions.get(key)
        if function is None:
            sorts = [z3.BitVecSort(self.width(a)) for a in args]
            text = "_".join([name, str(width), *map(str, key[2])])
            function = z3.Function(text, *sorts, z3.BitVecSort(width))
            self._functions[key] = function
        return function(*args)

    def _sorted(self, a: BV, b: BV) -> tuple[BV, BV]:
        """Operands of a commutative operation in one order."""
        a, b = (z3.simplify(v) for v in (a, b))
        self._kept += (a, b)
        return (a, b) if a.get_id() <= b.get_id() else (b, a)

    @staticmethod
    def _how(fp: Fp) -> tuple[int, ...]:
        return int(fp.round), int(fp.flush_in), int(fp.flush_out)

    def fadd(self, a: BV, b: BV, fp: Fp) -> BV:
        return self._apply("fadd", self.width(a), self._how(fp), *self._sorted(a, b))

    def fmul(self, a: BV, b: BV, fp: Fp) -> BV:
        """A product with 1 is the other operand, flushed where the mode says so."""
        one = {16: 0x3C00, 32: 0x3F800000, 64: 0x3FF0000000000000}[self.width(a)]
        for x, y in ((a, b), (b, a)):
            value = z3.simplify(x)
            if z3.is_bv_value(value) and value.as_long() == one:
                self.floats = True
                return flush(self, y) if fp.flush_in or fp.flush_out else y
        return self._apply("fmul", self.width(a), self._how(fp), *self._sorted(a, b))

    def ffma(self, a: BV, b: BV, c: BV, fp: Fp) -> BV:
        p, q = self._sorted(a, b)
        return self._apply("ffma", self.width(a), self._how(fp), p, q, z3.simplify(c))

    def fcmp(self, predicate: FloatPredicate, a: BV, b: BV) -> BV:
        unordered = z3.Or(self._nan(a), self._nan(b))
        if predicate in ("ord", "uno"):
            found = unordered if predicate == "uno" else z3.Not(unordered)
            return bit(found)
        p, q = self._order(a), self._order(b)
        result = {
            "eq": p == q, "gt": p > q, "ge": p >= q, "lt": p < q, "le": p <= q, "ne": p != q,
        }[predicate[1:]]  # fmt: skip
        if predicate[0] == "u":
            return bit(z3.Or(unordered, result))
        return bit(z3.And(z3.Not(unordered), result))

    def _nan(self, a: BV) -> z3.BoolRef:
        w = self.width(a)
        inf = ((1 << exponent_bits(w)) - 1) << mantissa_bits(w)
        return z3.UGT(a & ((1 << w - 1) - 1), z3.BitVecVal(inf, w))

    def _order(self, a: BV) -> BV:
        """A signed number that orders floats; both zeros are 0."""
        w = self.width(a)
        size = a & ((1 << w - 1) - 1)
        return z3.If(a < 0, -size, size)

    def frint(self, a: BV, how: Round) -> BV:
        return self._apply("frint", self.width(a), (int(how),), z3.simplify(a))

    def fcvt(self, a: BV, width: int, fp: Fp) -> BV:
        how = self._how(fp)
        if width > self.width(a):  # exact
            how = (0, *how[1:])
        return self._apply("fcvt", width, how, z3.simplify(a))

    def ftoi(self, a: BV, width: int, signed: bool) -> BV:
        a = z3.simplify(a)
        if a.decl().name() == f"frint_{self.width(a)}_{int(Round.ZERO)}_{self.width(a)}":
            a = a.arg(0)  # the conversion truncates by itself
        return self._apply("ftoi", width, (int(signed),), a)

    def itof(self, a: BV, width: int, signed: bool, fp: Fp) -> BV:
        how = (int(signed), int(fp.round))
        return self._apply("itof", width, how, z3.simplify(a))

    def approx(self, fn: Approximation, a: BV) -> BV:
        return self._apply(fn, self.width(a), (), z3.simplify(a))

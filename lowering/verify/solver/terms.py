"""The semantics over solver terms: bit vectors, and floating point as uninterpreted functions.

An IEEE operation is an uninterpreted function of the operation, the width, its rounding and its
flushing: two computations are equal if they apply the same operations to equal operands.  Whatever
bit patterns alone decide (comparisons, minimum, signs) is exact.  NaN have no payloads here.
"""

from __future__ import annotations

from collections.abc import Callable

import z3
from z3 import z3core

from sassxlate.domain.interface import (
    Approximation,
    FloatPredicate,
    Fp,
    Round,
    exponent_bits,
    flush,
    mantissa_bits,
)
from sassxlate.domain.numpy_lanes import Vec, Vectors, vec
from sassxlate.lowering.verify.solver import raw_terms
from sassxlate.lowering.verify.solver.raw_terms import numeral

BV = z3.BitVecRef
# The one NaN that SASS makes in each format.
NAN = {16: 0x7FFF, 32: 0x7FFFFFFF, 64: 0xFFF8000000000000}
_NUMBERS = Vectors()
_COMMUTATIVE = frozenset({"fadd", "fmul", "ffma"})
_SPREAD = frozenset("fadd fmul ffma frint fcvt rcp rsq sqrt exp2 log2 sin cos tanh".split())
_ROUNDED = frozenset({"fadd", "fmul", "ffma", "fcvt"})


def _is_nan(n: int, width: int) -> bool:
    inf = ((1 << exponent_bits(width)) - 1) << mantissa_bits(width)
    return n & ((1 << width - 1) - 1) > inf


def bit(condition: z3.BoolRef) -> BV:
    """A truth value as one bit."""
    return z3.If(condition, numeral(1, 1), numeral(0, 1))


def holds(a: BV) -> z3.BoolRef:
    return a == numeral(1, 1)


class Terms:
    """The semantics' domain over z3 bit vectors, ``Domain[BV]``."""

    def __init__(self, products: bool = False) -> None:
        self.payloads = False  # whether the NaN of doubles are distinguished
        self.products = products  # whether products are an uninterpreted function
        self._functions: dict[tuple[str, int, tuple[int, ...]], z3.FuncDeclRef] = {}
        self.floats = False  # whether a floating-point operation occurred
        self.doubles = False  # whether one of doubles occurred, whose NaN are not distinguished
        self.approximate = False  # whether one of the multi-function unit occurred
        self.facts: list[z3.BoolRef] = []  # facts about operations, true for all operands
        self._plain: dict[int, BV] = {}  # by the result of one_nan
        self._any: dict[int, tuple[BV, BV]] = {}  # the source of each result of any_nan
        self._told: dict[int, BV] = {}
        self._kept: list[BV] = []  # a term's number is valid only while the term is kept

    def const(self, n: int, width: int) -> BV:
        return numeral(n, width)

    def width(self, a: BV) -> int:
        return raw_terms.width(a)

    def simple(self, a: BV) -> BV:
        return raw_terms.simplify(a)

    # -- integers -------------------------------------------------------------------------

    def add(self, a: BV, b: BV) -> BV:
        return raw_terms.binary(z3core.Z3_mk_bvadd, a, b)

    def sub(self, a: BV, b: BV) -> BV:
        return raw_terms.binary(z3core.Z3_mk_bvsub, a, b)

    def mul(self, a: BV, b: BV) -> BV:
        """A product of unknowns is built from one function of two words, so that products of
        different widths and signs share it."""
        w = self.width(a)
        a, b = raw_terms.simplify(a), raw_terms.simplify(b)
        if not self.products or w not in (32, 64) or self._narrow(a) or self._narrow(b):
            return a * b
        if w == 32:
            return self.extract(self._product(a, b), 0, 32)
        (al, ah), (bl, bh) = self._halves(a), self._halves(b)
        zero = numeral(0, 32)
        total = self._product(al, bl)
        for x, y in ((al, bh), (ah, bl)):
            total = total + z3.Concat(self._upper(x, y), zero)
        return total

    def _narrow(self, a: BV) -> bool:
        """Whether the solver can handle the product: a number, or at most half a word."""
        if raw_terms.is_numeral(a):
            return True
        rest = raw_terms.simplify(self.lshr(a, numeral(16, self.width(a))))
        return raw_terms.is_numeral(rest) and rest.as_long() == 0

    def _halves(self, a: BV) -> tuple[BV, BV]:
        return raw_terms.simplify(self.extract(a, 0, 32)), raw_terms.simplify(
            self.extract(a, 32, 32)
        )

    def _upper(self, x: BV, y: BV) -> BV:
        """The low word of a product; with a sign operand, 0 or the other operand negated."""
        for a, b in ((x, y), (y, x)):
            if raw_terms.is_numeral(a):
                return a * b
            if self._is_sign(a):
                return self.select(self.extract(a, 0, 1), -b, numeral(0, 32))
        return self.extract(self._product(x, y), 0, 32)

    def _is_sign(self, a: BV) -> bool:
        """Whether all bits are equal, as in a sign."""
        last = self.extract(a, 31, 1)
        return a.eq(raw_terms.simplify(self.sext(last, 32)))

    def _product(self, a: BV, b: BV) -> BV:
        """All 64 bits of an unsigned product of words."""
        a, b = (a, b) if a.get_id() <= b.get_id() else (b, a)
        self._kept += (a, b)
        word = z3.BitVecSort(32)
        function = z3.Function("product", word, word, z3.BitVecSort(64))
        out: BV = function(a, b)
        if out.get_id() not in self._told:
            self._told[out.get_id()] = out
            self.facts.append(out == function(b, a))
        return out

    def and_(self, a: BV, b: BV) -> BV:
        return raw_terms.binary(z3core.Z3_mk_bvand, a, b)

    def or_(self, a: BV, b: BV) -> BV:
        return raw_terms.binary(z3core.Z3_mk_bvor, a, b)

    def xor(self, a: BV, b: BV) -> BV:
        return raw_terms.binary(z3core.Z3_mk_bvxor, a, b)

    def not_(self, a: BV) -> BV:
        return raw_terms.negated(a)

    def shl(self, a: BV, count: BV) -> BV:
        return raw_terms.binary(z3core.Z3_mk_bvshl, a, count)

    def lshr(self, a: BV, count: BV) -> BV:
        return raw_terms.binary(z3core.Z3_mk_bvlshr, a, count)

    def ashr(self, a: BV, count: BV) -> BV:
        """A shift by a number is a sign extension, written in its one canonical form."""
        w, count = self.width(a), raw_terms.simplify(count)
        if raw_terms.is_numeral(count) and 0 < (bits := count.as_long()) < w:
            return self.sext(self.extract(a, bits, w - bits), w)
        return raw_terms.binary(z3core.Z3_mk_bvashr, a, count)

    def eq(self, a: BV, b: BV) -> BV:
        return raw_terms.condition(z3core.Z3_mk_eq, a, b)

    def ult(self, a: BV, b: BV) -> BV:
        return raw_terms.condition(z3core.Z3_mk_bvult, a, b)

    def slt(self, a: BV, b: BV) -> BV:
        return raw_terms.condition(z3core.Z3_mk_bvslt, a, b)

    def select(self, c: BV, a: BV, b: BV) -> BV:
        if raw_terms.is_numeral(a) and a.as_long() == NAN.get(self.width(a)):
            # Operations give no NaN but this one, and give it if an operand is NaN.
            value = raw_terms.simplify(b)
            if self._is_result(value):
                told = z3.simplify(holds(c))
                for x in (value, *self._spreading(value)):
                    if told.eq(z3.simplify(self._nan(x))):
                        return value
        if raw_terms.is_numeral(c):
            return a if c.as_long() else b
        return raw_terms.choice(c, a, b)

    def zext(self, a: BV, width: int) -> BV:
        gap = width - self.width(a)
        return raw_terms.extended(a, gap, False) if gap else a

    def sext(self, a: BV, width: int) -> BV:
        gap = width - self.width(a)
        return raw_terms.extended(a, gap, True) if gap else a

    def extract(self, a: BV, lo: int, width: int) -> BV:
        return raw_terms.extract(a, lo, width)

    def concat(self, hi: BV, lo: BV) -> BV:
        return raw_terms.concat(hi, lo)

    def popcount(self, a: BV) -> BV:
        w = self.width(a)
        total = numeral(0, w)
        for i in range(w):
            total = total + self.zext(self.extract(a, i, 1), w)
        return total

    def _first(self, a: BV, order: range) -> BV:
        w = self.width(a)
        out: BV = numeral(w, w)
        for distance, i in reversed(list(enumerate(order))):
            out = self.select(self.extract(a, i, 1), numeral(distance, w), out)
        return out

    def clz(self, a: BV) -> BV:
        return self._first(a, range(self.width(a) - 1, -1, -1))

    def ctz(self, a: BV) -> BV:
        return self._first(a, range(self.width(a)))

    def bitreverse(self, a: BV) -> BV:
        return z3.Concat(*(self.extract(a, i, 1) for i in range(self.width(a))))

    # -- floating point -------------------------------------------------------------------

    def one_nan(self, a: BV) -> BV:
        """A float with SASS's NaN; the result of an operation is returned unchanged."""
        if a.get_id() not in self._plain:
            a = raw_terms.simplify(a)
        if a.get_id() in self._any:
            a = self._any[a.get_id()][1]
        if self._is_result(a) or a.get_id() in self._plain:
            return a
        w = self.width(a)
        out = z3.simplify(z3.If(self._nan(a), numeral(NAN[w], w), a))
        self._plain[out.get_id()] = a
        self._kept += (out, a)
        return out

    def any_nan(self, a: BV) -> BV:
        """A result whose NaN has any bits: AMD does not document the NaN of its units."""
        a = raw_terms.simplify(a)
        if a.get_id() in self._any:
            a = self._any[a.get_id()][1]
        if raw_terms.is_numeral(a) and not _is_nan(a.as_long(), self.width(a)):
            return a
        w = self.width(a)
        other = z3.Function(f"nan_{w}", z3.BitVecSort(w), z3.BitVecSort(w))(a)
        out = z3.simplify(z3.If(self._nan(a), other, a))
        if out.get_id() not in self._any:
            self._any[out.get_id()] = (out, a)
            self._plain[out.get_id()] = self._plain.get(a.get_id(), a)
            self._kept += (out, a)
            self.facts.append(self._nan(other))
        return out

    def _is_result(self, a: BV) -> bool:
        return a.decl().kind() == z3.Z3_OP_UNINTERPRETED and a.num_args() > 0

    @staticmethod
    def _spreading(a: BV) -> list[BV]:
        """The operands of an operation that gives NaN whenever an operand is NaN."""
        name = a.decl().name().partition("_")[0]
        return a.children() if name in _SPREAD else []

    def _operand(self, a: BV) -> BV:
        """A float without the parts that only distinguish NaN: no operation depends on them."""
        if a.get_id() not in self._plain:
            a = raw_terms.simplify(a)
        if a.get_id() in self._plain:
            a = self._plain[a.get_id()]
        elif z3.is_app_of(a, z3.Z3_OP_ITE):
            told, yes, no = a.children()
            if raw_terms.is_numeral(no) and _is_nan(no.as_long(), self.width(a)):
                if told.eq(z3.simplify(z3.Not(self._nan(yes)))):
                    a = yes
            elif (
                raw_terms.is_numeral(yes)
                and _is_nan(yes.as_long(), self.width(a))
                and told.eq(z3.simplify(self._nan(no)))
            ):
                a = no
        self._kept.append(a)
        return a

    def _apply(self, name: str, width: int, how: tuple[int, ...], *args: BV) -> BV:
        self.floats = True
        if not self.payloads:
            self.doubles |= width == 64 or any(self.width(a) == 64 for a in args)
        key = (name, width, (*how, *(self.width(a) for a in args)))
        function = self._functions.get(key)
        if function is None:
            sorts = [z3.BitVecSort(self.width(a)) for a in args]
            text = "_".join([name, str(width), *map(str, key[2])])
            function = z3.Function(text, *sorts, z3.BitVecSort(width))
            self._functions[key] = function
        out: BV = function(*args)
        if name != "ftoi" and out.get_id() not in self._told:
            nan = numeral(NAN[width], width)
            spread = [self._nan(x) for x in self._spreading(out)]
            self._told[out.get_id()] = out
            self.facts.append(z3.Implies(z3.Or(self._nan(out), *spread), out == nan))
            if name in _ROUNDED:  # rounding does not decide whether it is NaN
                self.facts += self._nan_of(out, name, how[1], args)
            if sure := self._no_nan(name, args):
                self.facts.append(z3.Implies(z3.And(*sure), z3.Not(self._nan(out))))
            if name in _COMMUTATIVE:  # operands equal only to the solver may be in any order
                self.facts.append(out == function(args[1], args[0], *args[2:]))
        return out

    def _nan_of(self, out: BV, name: str, flushed: int, args: tuple[BV, ...]) -> list[z3.BoolRef]:
        """Whether a result is NaN is a function of the operands; for a product plus a number, of
        the product alone."""
        if name == "ffma" and raw_terms.is_numeral(args[2]) and not self._is_endless(args[2]):
            name, args = "fmul", args[:2]
        sorts = [z3.BitVecSort(self.width(a)) for a in args]
        widths = self.width(out), self.width(args[0])
        text = "_".join(["nan", name, *map(str, widths), str(flushed)])
        return [bit(self._nan(out)) == z3.Function(text, *sorts, z3.BitVecSort(1))(*args)]

    def _is_endless(self, a: BV) -> bool:
        w = self.width(a)
        inf = ((1 << exponent_bits(w)) - 1) << mantissa_bits(w)
        return (a.as_long() & ((1 << w - 1) - 1)) >= inf

    def _no_nan(self, name: str, args: tuple[BV, ...]) -> list[z3.BoolRef]:
        """The condition that makes a result a number, if known."""
        if name in ("fadd", "fmul", "ffma", "sin", "cos", "tanh"):
            return [z3.Not(self._endless(a)) for a in args]
        if name in ("frint", "fcvt", "exp2", "rcp"):
            return [z3.Not(self._nan(a)) for a in args]
        return [holds(numeral(1, 1))] if name == "itof" else []

    def _endless(self, a: BV) -> z3.BoolRef:
        """Infinite or NaN."""
        w = self.width(a)
        inf = ((1 << exponent_bits(w)) - 1) << mantissa_bits(w)
        return z3.UGT(a & ((1 << w - 1) - 1), numeral(inf - 1, w))

    def _sorted(self, a: BV, b: BV) -> tuple[BV, BV]:
        """Operands of a commutative operation in one order."""
        a, b = self._operand(a), self._operand(b)
        return (a, b) if a.get_id() <= b.get_id() else (b, a)

    def _known(
        self, fn: Callable[[Vectors], Callable[..., Vec]], *args: object, number: bool = True
    ) -> BV | None:
        """The result if all operands are numbers; ``number``: it is a float."""
        values: list[object] = []
        for a in args:
            if isinstance(a, z3.BitVecRef):
                known = raw_terms.simplify(a)
                if not raw_terms.is_numeral(known):
                    return None
                values.append(vec(known.as_long(), self.width(a)))
            else:
                values.append(a)
        out = fn(_NUMBERS)(*values)
        self.floats = True
        value = numeral(int(out.v[0]), out.w)
        return self.one_nan(value) if number else value

    def _flushed(self, a: BV, fp: Fp) -> BV:
        self.floats = True
        return self.one_nan(flush(self, a) if fp.flush_in or fp.flush_out else a)

    def _nothing(self, a: BV, fp: Fp) -> bool:
        """Whether adding ``a`` changes no number: -0, or +0 if sums round downwards."""
        zero = 0 if fp.round == Round.DOWN else 1 << self.width(a) - 1
        value = raw_terms.simplify(a)
        return raw_terms.is_numeral(value) and value.as_long() == zero

    @staticmethod
    def _how(fp: Fp) -> tuple[int, ...]:
        return int(fp.round), int(fp.flush_in), int(fp.flush_out)

    def fadd(self, a: BV, b: BV, fp: Fp) -> BV:
        if (out := self._known(lambda d: d.fadd, a, b, fp)) is not None:
            return out
        for x, y in ((a, b), (b, a)):
            if self._nothing(x, fp):
                return self._flushed(y, fp)
        return self._apply("fadd", self.width(a), self._how(fp), *self._sorted(a, b))

    def fmul(self, a: BV, b: BV, fp: Fp) -> BV:
        """A product with 1 is the other operand, flushed if the mode requires it."""
        if (out := self._known(lambda d: d.fmul, a, b, fp)) is not None:
            return out
        for x, y in ((a, b), (b, a)):
            if self._is_one(x):
                return self._flushed(y, fp)
        return self._apply("fmul", self.width(a), self._how(fp), *self._sorted(a, b))

    def _is_one(self, a: BV) -> bool:
        one = {16: 0x3C00, 32: 0x3F800000, 64: 0x3FF0000000000000}[self.width(a)]
        value = raw_terms.simplify(a)
        return raw_terms.is_numeral(value) and value.as_long() == one

    def ffma(self, a: BV, b: BV, c: BV, fp: Fp) -> BV:
        if (out := self._known(lambda d: d.ffma, a, b, c, fp)) is not None:
            return out
        for x, y in ((a, b), (b, a)):
            if self._is_one(x):
                return self.fadd(y, c, fp)
        if self._nothing(c, fp):
            return self.fmul(a, b, fp)
        p, q = self._sorted(a, b)
        return self._apply("ffma", self.width(a), self._how(fp), p, q, self._operand(c))

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
        return z3.UGT(a & ((1 << w - 1) - 1), numeral(inf, w))

    def _order(self, a: BV) -> BV:
        """A signed number that orders floats; both zeros are 0."""
        w = self.width(a)
        size = a & ((1 << w - 1) - 1)
        return z3.If(a < 0, -size, size)

    def frint(self, a: BV, how: Round) -> BV:
        if (out := self._known(lambda d: d.frint, a, how)) is not None:
            return out
        return self._apply("frint", self.width(a), (int(how),), self._operand(a))

    def fcvt(self, a: BV, width: int, fp: Fp) -> BV:
        if (out := self._known(lambda d: d.fcvt, a, width, fp)) is not None:
            return out
        how = self._how(fp)
        if width > self.width(a):  # exact
            how = (0, *how[1:])
        return self._apply("fcvt", width, how, self._operand(a))

    def ftoi(self, a: BV, width: int, signed: bool) -> BV:
        if (out := self._known(lambda d: d.ftoi, a, width, signed, number=False)) is not None:
            return out
        a = self._operand(a)
        if a.decl().name() == f"frint_{self.width(a)}_{int(Round.ZERO)}_{self.width(a)}":
            a = a.arg(0)  # the conversion itself truncates
        out = self._apply("ftoi", width, (int(signed),), a)
        if out.get_id() not in self._told:  # one value for every NaN, even under a guard
            self._told[out.get_id()] = out
            nan = z3.BitVecVal(NAN[self.width(a)], self.width(a))
            self.facts.append(z3.Implies(self._nan(a), out == out.decl()(nan)))
        return out

    def itof(self, a: BV, width: int, signed: bool, fp: Fp) -> BV:
        if (out := self._known(lambda d: d.itof, a, width, signed, fp)) is not None:
            return out
        how = (int(signed), int(fp.round))
        return self._apply("itof", width, how, raw_terms.simplify(a))

    def approx(self, fn: Approximation, a: BV) -> BV:
        self.approximate = True
        out = self._apply(fn, self.width(a), (), self._operand(a))
        if fn == "rsq":  # even for the largest number, far from denormal
            w = self.width(a)
            size = self.extract(out, 0, w - 1)
            least = numeral(1 << mantissa_bits(w), w - 1)
            self.facts.append(z3.Or(size == 0, z3.Not(z3.ULT(size, least))))
        return out

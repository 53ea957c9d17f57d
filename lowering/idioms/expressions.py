"""What registers hold, as expressions: a domain of the semantics whose values are nodes of a graph.

Equal expressions are one node.  Constants are folded and trivial identities applied as nodes are
made; `digest` then names an expression whatever the order of commutative operands and the names
of its inputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from sassxlate.domain.interface import (
    Approximation,
    FloatPredicate,
    Fp,
    Round,
    exponent_bits,
    mantissa_bits,
)

Key = tuple[str | int, ...]
_COMMUTATIVE: Final = frozenset({"add", "mul", "and", "or", "xor", "eq", "fadd", "fmul"})
_NARY: Final = frozenset({"add", "and", "or", "xor"})  # also associative
_BITWISE: Final = frozenset({"and", "or", "xor", "not"})
_CONE: Final = 6  # most operands whose logic is named by its truth table
_SYMMETRIC: Final = frozenset({"oeq", "one", "ord", "ueq", "une", "uno"})
_SWAPPED: Final[Mapping[str, FloatPredicate]] = {
    "ogt": "olt", "oge": "ole", "ugt": "ult", "uge": "ule",
}  # fmt: skip
_NEGATED: Final[Mapping[str, FloatPredicate]] = {
    "une": "oeq", "uno": "ord", "ult": "oge", "ule": "ogt", "ugt": "ole", "uge": "olt",
    "ueq": "one",
}  # fmt: skip


def _fp(fp: Fp) -> int:
    return int(fp.round) << 2 | fp.flush_in << 1 | fp.flush_out


class Expressions:
    """`Domain[int]`: a value is the number of a node.

    A node is its operation, its width, numbers that belong to the operation, and its operands.
    """

    payloads = True

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.widths: list[int] = []
        self.given: list[tuple[int, ...]] = []
        self.args: list[tuple[int, ...]] = []
        self._known: dict[tuple[str, int, tuple[int, ...], tuple[int, ...]], int] = {}

    def __len__(self) -> int:
        return len(self.ops)

    def node(self, op: str, width: int, args: Sequence[int] = (), given: Sequence[int] = ()) -> int:
        key = (op, width, tuple(given), tuple(args))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.ops)
            self.ops.append(op)
            self.widths.append(width)
            self.given.append(key[2])
            self.args.append(key[3])
        return found

    def value(self, a: int) -> int | None:
        """The constant that a node is."""
        return self.given[a][0] if self.ops[a] == "const" else None

    def leaf(self, kind: str, width: int, *numbers: int) -> int:
        """An input, told from others of its kind by numbers."""
        return self.node(kind, width, (), numbers)

    # -- the domain ----------------------------------------------------------

    def const(self, n: int, width: int) -> int:
        return self.node("const", width, (), (n & ((1 << width) - 1),))

    def width(self, a: int) -> int:
        return self.widths[a]

    def _two(self, a: int, b: int) -> tuple[int, int | None, int, int | None]:
        """The operands of a commutative operation, a constant last."""
        if self.value(a) is not None:
            a, b = b, a
        return a, self.value(a), b, self.value(b)

    def add(self, a: int, b: int) -> int:
        w = self.widths[a]
        a, x, b, y = self._two(a, b)
        if y is not None:
            if x is not None:
                return self.const(x + y, w)
            if y == 0:
                return a
            if self.ops[a] == "add" and (z := self.value(self.args[a][1])) is not None:
                return self.add(self.args[a][0], self.const(y + z, w))
            if self.ops[a] == "not" and w > 1:  # ~p is -p - 1
                return self.add(self._negative(self.args[a][0]), self.const(y - 1, w))
            return self.node("add", w, (a, b))
        for p, q in ((a, b), (b, a)):  # constants are added last
            if self.ops[p] == "add" and (z := self.value(self.args[p][1])) is not None:
                return self.add(self.add(self.args[p][0], q), self.const(z, w))
            if self.ops[p] == "not" and w > 1:
                sum_ = self.add(self._negative(self.args[p][0]), q)
                return self.add(sum_, self.const(-1, w))
        return self.node("add", w, (a, b))

    def sub(self, a: int, b: int) -> int:
        w = self.widths[a]
        y = self.value(b)
        if y is not None:
            return self.add(a, self.const(-y, w))
        if a == b:
            return self.const(0, w)
        return self.add(a, self._negative(b))

    def _negative(self, a: int) -> int:
        w = self.widths[a]
        x = self.value(a)
        if x is not None:
            return self.const(-x, w)
        if self.ops[a] == "neg":
            return self.args[a][0]
        if self.ops[a] == "add":
            return self.add(*(self._negative(b) for b in self.args[a]))
        return self.node("neg", w, (a,))

    def mul(self, a: int, b: int) -> int:
        w = self.widths[a]
        a, x, b, y = self._two(a, b)
        if y is not None:
            if x is not None:
                return self.const(x * y, w)
            if y == 0:
                return b
            if y == 1:
                return a
            if y == (1 << w) - 1:
                return self._negative(a)
            if y & (y - 1) == 0:
                return self.shl(a, self.const(y.bit_length() - 1, w))
            minus = -y & ((1 << w) - 1)
            if minus & (minus - 1) == 0:
                return self._negative(self.shl(a, self.const(minus.bit_length() - 1, w)))
        return self.node("mul", w, (a, b))

    def and_(self, a: int, b: int) -> int:
        w = self.widths[a]
        a, x, b, y = self._two(a, b)
        if a == b:
            return a
        if y is not None:
            if x is not None:
                return self.const(x & y, w)
            if y == 0:
                return b
            if y == (1 << w) - 1:
                return a
            if self.ops[a] == "and" and (z := self.value(self.args[a][1])) is not None:
                return self.and_(self.args[a][0], self.const(y & z, w))
        if self.not_(a) == b:
            return self.const(0, w)
        return self.node("and", w, (a, b))

    def or_(self, a: int, b: int) -> int:
        w = self.widths[a]
        if w == 1:  # one form of conditions
            return self.not_(self.and_(self.not_(a), self.not_(b)))
        a, x, b, y = self._two(a, b)
        if a == b:
            return a
        if y is not None:
            if x is not None:
                return self.const(x | y, w)
            if y == 0:
                return a
            if y == (1 << w) - 1:
                return b
        return self.node("or", w, (a, b))

    def xor(self, a: int, b: int) -> int:
        w = self.widths[a]
        a, x, b, y = self._two(a, b)
        if a == b:
            return self.const(0, w)
        if y is not None:
            if x is not None:
                return self.const(x ^ y, w)
            if y == 0:
                return a
            if y == (1 << w) - 1:
                return self.not_(a)
            if self.ops[a] == "xor" and (z := self.value(self.args[a][1])) is not None:
                return self.xor(self.args[a][0], self.const(y ^ z, w))
        return self.node("xor", w, (a, b))

    def not_(self, a: int) -> int:
        w = self.widths[a]
        x = self.value(a)
        if x is not None:
            return self.const(~x, w)
        if self.ops[a] == "not":
            return self.args[a][0]
        return self.node("not", w, (a,))

    def _shift(self, op: str, a: int, count: int) -> int:
        w = self.widths[a]
        x, n = self.value(a), self.value(count)
        if n == 0:
            return a
        if x is not None and n is not None:
            if op == "shl":
                return self.const(x << n, w)
            signed = x - (1 << w) if op == "ashr" and x >> (w - 1) else x
            return self.const(signed >> n, w)
        return self.node(op, w, (a, count))

    def shl(self, a: int, count: int) -> int:
        return self._shift("shl", a, count)

    def lshr(self, a: int, count: int) -> int:
        return self._shift("lshr", a, count)

    def ashr(self, a: int, count: int) -> int:
        return self._shift("ashr", a, count)

    def eq(self, a: int, b: int) -> int:
        a, x, b, y = self._two(a, b)
        if a == b:
            return self.const(1, 1)
        if x is not None and y is not None:
            return self.const(x == y, 1)
        if self.widths[a] == 1 and y is not None:
            return a if y else self.not_(a)
        return self.node("eq", 1, (a, b))

    def ult(self, a: int, b: int) -> int:
        """A constant is always on the right: c < a is not a < c + 1."""
        w = self.widths[a]
        x, y = self.value(a), self.value(b)
        if x is not None and y is not None:
            return self.const(x < y, 1)
        if x is not None:
            if x == (1 << w) - 1:
                return self.const(0, 1)
            return self.not_(self.ult(b, self.const(x + 1, w)))
        if y == 0:
            return self.const(0, 1)
        return self.eq(a, self.const(0, w)) if y == 1 else self.node("ult", 1, (a, b))

    def slt(self, a: int, b: int) -> int:
        w = self.widths[a]
        x, y = self.value(a), self.value(b)
        half = 1 << (w - 1)
        if x is not None and y is not None:
            return self.const((x ^ half) < (y ^ half), 1)
        if x is not None:
            if x == half - 1:
                return self.const(0, 1)
            return self.not_(self.slt(b, self.const(x + 1, w)))
        return self.node("slt", 1, (a, b))

    def select(self, c: int, a: int, b: int) -> int:
        w = self.widths[a]
        while self.ops[c] == "not":
            c, a, b = self.args[c][0], b, a
        x = self.value(c)
        if x is not None:
            return a if x & 1 else b
        if a == b:
            return a
        if w == 1 and (self.value(a), self.value(b)) in ((1, 0), (0, 1)):
            return c if self.value(a) else self.not_(c)
        if self.ops[a] == "select" and self.args[a][0] == c:
            return self.select(c, self.args[a][1], b)
        if self.ops[b] == "select" and self.args[b][0] == c:
            return self.select(c, a, self.args[b][2])
        return self.node("select", w, (c, a, b))

    def zext(self, a: int, width: int) -> int:
        x = self.value(a)
        if x is not None or width == self.widths[a]:
            return a if x is None else self.const(x, width)
        return self.node("zext", width, (a,))

    def sext(self, a: int, width: int) -> int:
        x, w = self.value(a), self.widths[a]
        if x is not None:
            return self.const(x - (1 << w) if x >> (w - 1) else x, width)
        return a if width == w else self.node("sext", width, (a,))

    def extract(self, a: int, lo: int, width: int) -> int:
        x, w = self.value(a), self.widths[a]
        if lo == 0 and width == w:
            return a
        if x is not None:
            return self.const(x >> lo, width)
        if self.ops[a] == "concat":
            high, low = self.args[a]
            n = self.widths[low]
            if lo + width <= n:
                return self.extract(low, lo, width)
            if lo >= n:
                return self.extract(high, lo - n, width)
        if self.ops[a] == "extract":
            return self.extract(self.args[a][0], self.given[a][0] + lo, width)
        return self.node("extract", width, (a,), (lo,))

    def concat(self, hi: int, lo: int) -> int:
        x, y = self.value(hi), self.value(lo)
        w = self.widths[hi] + self.widths[lo]
        if x is not None and y is not None:
            return self.const(x << self.widths[lo] | y, w)
        if self.ops[hi] == self.ops[lo] == "extract" and self.args[hi] == self.args[lo]:
            start = self.given[lo][0]
            if self.given[hi][0] == start + self.widths[lo]:
                return self.extract(self.args[lo][0], start, w)
        return self.node("concat", w, (hi, lo))

    def popcount(self, a: int) -> int:
        return self.node("popcount", self.widths[a], (a,))

    def clz(self, a: int) -> int:
        return self.node("clz", self.widths[a], (a,))

    def ctz(self, a: int) -> int:
        return self.node("ctz", self.widths[a], (a,))

    def bitreverse(self, a: int) -> int:
        return self.node("bitreverse", self.widths[a], (a,))

    def fadd(self, a: int, b: int, fp: Fp) -> int:
        return self.node("fadd", self.widths[a], (a, b), (_fp(fp),))

    def fmul(self, a: int, b: int, fp: Fp) -> int:
        return self.node("fmul", self.widths[a], (a, b), (_fp(fp),))

    def ffma(self, a: int, b: int, c: int, fp: Fp) -> int:
        """Zero times a number plus a number is known: ptxas writes constants with HFMA2."""
        w = self.widths[a]
        top, infinity = 1 << (w - 1), ((1 << exponent_bits(w)) - 1) << mantissa_bits(w)
        x, y, z = (self.value(v) for v in (a, b, c))
        nearest = fp.round == Round.NEAREST and not fp.flush_out
        if x is not None and y is not None and z is not None and nearest:
            finite = all(v & infinity != infinity for v in (x, y, z))
            if finite and not (x % top and y % top):
                if z % top:
                    return c
                return self.const((x ^ y) & z & top, w)  # rounded to nearest
        return self.node("ffma", self.widths[a], (a, b, c), (_fp(fp),))

    def fcmp(self, predicate: FloatPredicate, a: int, b: int) -> int:
        if predicate in _NEGATED:
            return self.not_(self.fcmp(_NEGATED[predicate], a, b))
        if predicate in _SWAPPED:
            predicate, a, b = _SWAPPED[predicate], b, a
        return self.node(f"fcmp {predicate}", 1, (a, b))

    def frint(self, a: int, how: Round) -> int:
        return self.node("frint", self.widths[a], (a,), (int(how),))

    def fcvt(self, a: int, width: int, fp: Fp) -> int:
        return self.node("fcvt", width, (a,), (_fp(fp),))

    def ftoi(self, a: int, width: int, signed: bool) -> int:
        return self.node("ftoi", width, (a,), (int(signed),))

    def itof(self, a: int, width: int, signed: bool, fp: Fp) -> int:
        return self.node("itof", width, (a,), (int(signed), _fp(fp)))

    def approx(self, fn: Approximation, a: int) -> int:
        return self.node(f"approx {fn}", self.widths[a], (a,))

    # -- names ----------------------------------------------------------

    def digest(self, roots: Sequence[int], inputs: Mapping[int, str], most: int = 4000) -> str:
        """The name of expressions of some inputs; "" if others are in them, or too much is.

        Operands of commutative operations are ordered by their own digests.
        """
        done: dict[int, bytes] = {n: name.encode() for n, name in inputs.items()}
        cones: dict[int, list[int]] = {}
        work = list(roots)
        while work:
            n = work[-1]
            if n in done:
                work.pop()
                continue
            op = self.ops[n]
            parts: Sequence[int] = self.args[n]
            if op in _BITWISE:
                if n not in cones:
                    cones[n] = self._cone(n, inputs)
                parts = cones[n] or (self._terms(n, inputs) if op in _NARY else parts)
            elif op == "add":
                parts = self._terms(n, inputs)
            if not parts and op != "const":
                return ""
            missing = [a for a in parts if a not in done]
            if missing:
                work += missing
                if len(work) > most:
                    return ""
                continue
            work.pop()
            texts = [done[a] for a in parts]
            if cones.get(n):
                head, texts = self._function(n, dict(zip(parts, texts, strict=True)))
                done[n] = hashlib.sha256(b"|".join([head, *texts])).digest()
                continue
            if op in _COMMUTATIVE or op[5:] in _SYMMETRIC:
                texts.sort()
            elif op == "ffma":
                texts[:2] = sorted(texts[:2])
            head = f"{op} {self.widths[n]} {self.given[n]}".encode()
            done[n] = hashlib.sha256(b"|".join([head, *texts])).digest()
        return hashlib.sha256(b"".join(done[n] for n in roots)).hexdigest()[:32]

    def _cone(self, n: int, inputs: Mapping[int, str]) -> list[int]:
        """The operands of nested logic operations; none if they are many."""
        out: list[int] = []
        work, seen = list(self.args[n]), set[int]()
        while work:
            a = work.pop()
            if a in seen:
                continue
            seen.add(a)
            if self.ops[a] in _BITWISE and a not in inputs:
                work += self.args[a]
            else:
                out.append(a)
                if len(out) > _CONE or len(seen) > 8 * _CONE:
                    return []
        return out

    def _function(self, n: int, names: Mapping[int, bytes]) -> tuple[bytes, list[bytes]]:
        """The truth table of nested logic operations over operands that are in order."""
        order = sorted(names, key=lambda a: names[a])
        rows = 1 << len(order)
        tables = {
            a: sum(1 << row for row in range(rows) if row >> i & 1) for i, a in enumerate(order)
        }
        table = self._table(n, tables, (1 << rows) - 1)
        texts = [names[a] for a in order]
        return f"logic {self.widths[n]} {len(order)} {table:x}".encode(), texts

    def _table(self, n: int, tables: dict[int, int], ones: int) -> int:
        if n not in tables:
            parts = [self._table(a, tables, ones) for a in self.args[n]]
            match self.ops[n]:
                case "and":
                    out = parts[0] & parts[1]
                case "or":
                    out = parts[0] | parts[1]
                case "xor":
                    out = parts[0] ^ parts[1]
                case _:
                    out = ones ^ parts[0]
            tables[n] = out
        return tables[n]

    def _terms(self, n: int, done: Mapping[int, str]) -> list[int]:
        """The operands of nested operations of one kind, inputs whole."""
        op, out, work = self.ops[n], list[int](), list(self.args[n])
        while work:
            a = work.pop()
            if self.ops[a] == op and a not in done:
                work += self.args[a]
            else:
                out.append(a)
        return out


__all__ = ["Expressions"]

"""Values, places and arithmetic of AMD's pseudocode.

Integers below 32 bits take part in arithmetic as 32 bits, as in C; binary16 is computed as
binary16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tools.witness.pcode import softfloat as sf


class NotDescribed(Exception):
    """The pseudocode does not define it: an undefined constant, a table, or prose."""


@dataclass(frozen=True, slots=True)
class Value:
    """``n`` as an unsigned pattern of ``w`` bits, interpreted as ``k``: u, i, b, f or bf."""

    n: int
    w: int
    k: str

    @property
    def signed(self) -> int:
        if self.k == "i" and self.n >> (self.w - 1):
            return self.n - (1 << self.w)
        return self.n


@dataclass(frozen=True, slots=True)
class Power:
    """2 ** n, of unlimited range, until a float takes it."""

    n: int
    w: int


def value(n: int, w: int, k: str) -> Value:
    return Value(n & ((1 << w) - 1), w, k)


def flag(x: bool) -> Value:
    return Value(int(x), 1, "u")


def form(v: Value) -> sf.Format:
    return sf.BF16 if v.k == "bf" else sf.FORMATS[v.w]


# --- storage -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Cell:
    """A variable or register."""

    n: int
    w: int
    k: str = "b"

    def get(self) -> int:
        return self.n

    def put(self, n: int) -> None:
        self.n = n


@dataclass(slots=True)
class Array:
    """``declare A : 32'I[4]``; elements may be any of the places below."""

    cells: list[Cell]


@dataclass(slots=True)
class Table:
    """The tables that the machine indexes: VGPR[lane][register], MEM[address]."""

    at: Callable[[int], Place]


@dataclass(slots=True)
class Slice:
    """``w`` bits from bit ``low``; ``back`` has them in reverse order."""

    base: Cell
    low: int
    w: int
    k: str
    back: bool = False

    def read(self, flush: Callable[[Value], Value]) -> Value:
        n = self.base.get() >> self.low & ((1 << self.w) - 1)
        if self.back:
            n = int(f"{n:0{self.w}b}"[::-1], 2)
        v = Value(n, self.w, self.k)
        return flush(v) if self.k == "f" else v

    def write(self, n: int) -> None:
        mask = (1 << self.w) - 1
        old = self.base.get()
        self.base.put(old & ~(mask << self.low) | (n & mask) << self.low)


Place: TypeAlias = "Cell | Array | Table | Slice"

# --- frames --------------------------------------------------------------------------------------


class Break(Exception):
    """Leaves a loop."""


@dataclass
class Return(Exception):
    """Leaves a lambda."""

    value: Value


Function: TypeAlias = "Callable[[Frame, list[Value]], Value]"
Body: TypeAlias = "tuple[list[str], Expr | list[Statement]]"  # of a lambda


@dataclass(slots=True)
class Frame:
    """The names visible to a run; ``flush`` is applied to floats as they are read."""

    names: dict[str, Place | Value]
    functions: dict[str, Function]
    rules: Callable[[int], sf.Rules]
    lambdas: dict[str, Body] = field(default_factory=dict[str, "Body"])

    def flush(self, v: Value) -> Value:
        f = form(v)
        return Value(sf.flushed(f, v.n, self.rules(v.w).flush_in), v.w, v.k)


Expr: TypeAlias = "Callable[[Frame], Value | Power | Place]"
Statement: TypeAlias = "Callable[[Frame], None]"


def rvalue(frame: Frame, got: Value | Power | Place) -> Value:
    if isinstance(got, Value):
        return got
    if isinstance(got, Slice):
        return got.read(frame.flush)
    if isinstance(got, Cell):
        return Slice(got, 0, got.w, got.k).read(frame.flush)
    if isinstance(got, Power):
        return Value(sf.pack(sf.FORMATS[got.w], 1, got.n, sf.Rules()), got.w, "f")
    raise NotDescribed("an array as a value")


def as_kind(v: Value, w: int, k: str) -> Value:
    """``w'K(v)``: a conversion, which for floats of a NaN keeps what kind of NaN it is."""
    if k in ("f", "bf"):
        to = sf.BF16 if k == "bf" else sf.FORMATS[w]
        if v.k in ("f", "bf"):
            move = sf.widened if to.width >= form(v).width else sf.narrowed
            return Value(move(form(v), v.n, to), w, k)
        if v.n >> 15 and v.k != "i":
            return Value(v.n & ((1 << w) - 1), w, k)  # 32'F(0xffc00000) is the pattern
        return Value(sf.from_integer(v.signed, to, sf.Rules()), w, k)
    if v.k in ("f", "bf"):
        raise NotDescribed("an integer of a float by a cast")
    return value(v.signed, w, k)


def truth(v: Value) -> bool:
    if v.k == "f":
        raise NotDescribed("a float as a condition")
    return v.n != 0


def promoted(a: Value, b: Value) -> tuple[int, str]:
    w = max(32, a.w, b.w)
    unsigned = any(v.k != "i" and v.w == w for v in (a, b))
    return w, "u" if unsigned else "i"


def _float_pair(a: Value, b: Value) -> tuple[sf.Format, Value, Value, str]:
    k = "bf" if "bf" in (a.k, b.k) else "f"
    w = max(v.w for v in (a, b) if v.k in ("f", "bf"))
    to = sf.BF16 if k == "bf" else sf.FORMATS[w]
    a, b = (v if v.k == k and v.w == w else as_kind(v, w, k) for v in (a, b))
    return to, a, b, k


def binary(frame: Frame, op: str, a: Value | Power, b: Value | Power) -> Value:
    if isinstance(a, Power) or isinstance(b, Power):
        return _scaled(frame, op, a, b)
    if "f" in (a.k, b.k) or "bf" in (a.k, b.k):
        return _float_op(frame, op, a, b)
    w, k = promoted(a, b)
    if op in ("<<", ">>"):
        w = max(32, a.w)
        if op == "<<":
            return value(a.n << b.n if b.n < 256 else 0, w, a.k)
        return value(a.signed >> b.n, w, a.k)
    x, y = value(a.signed, w, k).signed, value(b.signed, w, k).signed
    if op in _COMPARE:
        return flag(_COMPARE[op](x, y))
    return value(_INTEGER[op](x, y), w, k)


def _quotient(x: int, y: int) -> int:
    size = abs(x) // abs(y)
    return -size if (x < 0) != (y < 0) else size


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y, "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
    "<>": lambda x, y: x != y,
}  # fmt: skip
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
    "&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y,
    "/": _quotient, "%": lambda x, y: x - y * _quotient(x, y),
}  # fmt: skip


def _scaled(frame: Frame, op: str, a: Value | Power, b: Value | Power) -> Value:
    if isinstance(a, Power):
        a, b = b, a
    if op != "*" or not isinstance(a, Value) or not isinstance(b, Power):
        raise NotDescribed(f"a power in {op}")
    return Value(sf.scale(form(a), a.n, b.n, frame.rules(a.w)), a.w, a.k)


def _float_op(frame: Frame, op: str, a: Value, b: Value) -> Value:
    f, a, b, k = _float_pair(a, b)
    x, y = a.n, b.n
    if op in _COMPARE:
        lt, eq, gt = sf.less(f, x, y), sf.equal(f, x, y), sf.less(f, y, x)
        return flag({"<": lt, "<=": lt or eq, ">": gt, ">=": gt or eq, "==": eq,
                     "!=": not eq, "<>": lt or gt}[op])  # fmt: skip
    rules = frame.rules(f.width)
    if op == "-":
        op, y = "+", y ^ f.sign
    made = {"+": sf.add, "*": sf.mul, "/": sf.div}.get(op)
    if made is None:
        raise NotDescribed(f"{op} of floats")
    return Value(made(f, x, y, rules), f.width, k)


def loose(frame: Frame, name: str) -> bool:
    """Whether a variable got its type from an assignment, so that the next may change it."""
    return f"{name} is loose" in frame.names


def assign(place: Value | Power | Place, got: Value) -> None:
    if isinstance(place, Slice):
        if place.k in ("f", "bf") and got.k in ("f", "bf") and got.w != place.w:
            raise NotDescribed("a float assigned to another width")
        place.write(got.signed)
    elif isinstance(place, Cell):
        place.put(got.signed & ((1 << place.w) - 1))
    else:
        raise NotDescribed("an assignment to a value")

"""AMD's pseudocode: a parser, and an interpreter over typed bit patterns.

The language is that of the instruction descriptions in AMD's RDNA3 ISA manual: C's expressions,
``x.f32`` to look at bits as a type, ``x[7 : 0]`` to cut bits, ``32'U(x)`` to convert, ``{ a, b }``
to join, ``if .. then .. elsif .. else .. endif`` and ``for i in a : b do .. endfor``.  Integers
below 32 bits take part in arithmetic as 32 bits, as in C; binary16 is computed as binary16.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

from . import softfloat as sf


class NotDescribed(Exception):
    """The pseudocode does not say it: an undefined constant, a table, or prose."""


@dataclass(frozen=True, slots=True)
class Value:
    """``n`` as an unsigned pattern of ``w`` bits, looked at as ``k``: u, i, b, f or bf."""

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
    """What the machine indexes: VGPR[lane][register], MEM[address]."""

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

# --- tokens ------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<cast>\d+'(?:BF|[UIFB])(?![\w.]))
    |(?P<number>\d+'0x[0-9a-fA-F]+U?|\d+'\d+\.\d+|\d+'\d+U?|0x[0-9a-fA-F]+(?:ULL|LL|U)?
        |\d+\.\d+F?|\d+(?:ULL|LL|U)?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<op>\+:|<<|>>|<=|>=|==|!=|<>|&&|\|\||\*\*|\+=|-=|[-+*/%&|^~!<>=?:;,.(){}\[\]])""",
    re.VERBOSE,
)
_TYPE = re.compile(r"(bf|[uifb])(\d+)$")
WORDS = frozenset("if then elsif else endif for in do endfor break return declare lambda".split())


def tokens(text: str) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotDescribed(f"prose: {text[at : at + 20]!r}")
        at = match.end()
        kind = match.lastgroup or ""
        if kind != "space":
            out.append((kind, match.group()))
    return [*out, ("end", "")]


@cache
def literal(text: str) -> Value:
    width, _, rest = text.partition("'")
    if rest:
        w = int(width)
        if "." in rest:
            return _float(rest, w)
        return value(int(rest.rstrip("U"), 0), w, "u" if rest.endswith("U") else "i")
    if "." in text:
        return _float(text.rstrip("F"), 32 if text.endswith("F") else 64)
    body = text.rstrip("UL")
    suffix = text[len(body) :]
    n = int(body, 0)
    k = "u" if "U" in suffix or body[:2] == "0x" else "i"  # hexadecimal: a pattern
    return value(n, 64 if "LL" in suffix or n >= 1 << 32 else 32, k)


def _float(text: str, w: int) -> Value:
    whole, _, part = text.partition(".")
    n, d = int(whole + part), 10 ** len(part)
    f = sf.FORMATS[w]
    q, r = divmod(n << 80, d)
    return Value(sf.pack(f, q << 1 | (r != 0), -81, sf.Rules()), w, "f")


# --- the tree: closures over a frame --------------------------------------------------------------


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
    """The names that a run sees; ``flush`` is applied to floats as they are read."""

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


# --- the parser ----------------------------------------------------------------------------------

_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", "<=", ">", ">="),
    ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip


class Parser:
    """Recursive descent; what it makes are closures over a `Frame`."""

    def __init__(self, text: str) -> None:
        self.t = tokens(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.t[min(self.at + ahead, len(self.t) - 1)][1]

    def kind(self) -> str:
        return self.t[self.at][0]

    def next(self) -> str:
        self.at += 1
        return self.t[self.at - 1][1]

    def eat(self, *wanted: str) -> str:
        if self.peek() not in wanted:
            raise NotDescribed(f"{self.peek()!r} instead of {wanted}")
        return self.next()

    def skip(self, what: str) -> bool:
        if self.peek() == what and self.kind() != "end":
            self.at += 1
            return True
        return False

    # -- statements

    def program(self) -> list[Statement]:
        out = self.block(())
        if self.kind() != "end":
            raise NotDescribed(f"{self.peek()!r} is left")
        return out

    def block(self, ends: tuple[str, ...]) -> list[Statement]:
        out: list[Statement] = []
        while self.kind() != "end" and self.peek() not in ends:
            if not self.skip(";"):
                out.append(self.statement())
        return out

    def statement(self) -> Statement:
        word = self.peek()
        if word == "if":
            return self._if()
        if word == "for":
            return self._for()
        if word == "declare":
            return self._declare()
        if word == "break":
            self.next()

            def leave(frame: Frame) -> None:
                raise Break

            return leave
        if word == "return":
            self.next()
            expr = self.expression()

            def give(frame: Frame) -> None:
                raise Return(rvalue(frame, expr(frame)))

            return give
        return self._assignment()

    def _if(self) -> Statement:
        arms: list[tuple[Expr, list[Statement]]] = []
        self.next()
        while True:
            condition = self.expression()
            self.eat("then")
            arms.append((condition, self.block(("elsif", "else", "endif"))))
            if not self.skip("elsif"):
                break
        other = self.block(("endif",)) if self.skip("else") else []
        self.eat("endif")

        def run(frame: Frame) -> None:
            taken = next((b for c, b in arms if truth(rvalue(frame, c(frame)))), other)
            for s in taken:
                s(frame)

        return run

    def _for(self) -> Statement:
        self.next()
        name = self.next()
        self.eat("in")
        first = self.level(0)
        self.eat(":")
        last = self.expression()
        self.eat("do")
        body = self.block(("endfor",))
        self.eat("endfor")

        def run(frame: Frame) -> None:
            low, high = (rvalue(frame, e(frame)) for e in (first, last))
            try:
                for i in range(low.n, high.n + 1):
                    frame.names[name] = Value(i, max(low.w, 32), low.k)
                    for s in body:
                        s(frame)
            except Break:
                pass

        return run

    def _declare(self) -> Statement:
        self.next()
        name = self.next()
        self.eat(":")
        kind = self.next()
        width, _, letters = kind.partition("'")
        w, k = int(width), letters.lower()
        count = 0
        if self.skip("["):
            count = literal(self.next()).n
            self.eat("]")
        # The operands of an instruction are given, whatever the text declares again.
        given = name in _GIVEN

        def run(frame: Frame) -> None:
            if given and name in frame.names:
                return
            cells = [Cell(0, w, k) for _ in range(count or 1)]
            frame.names[name] = Array(cells) if count else cells[0]

        return run

    def _assignment(self) -> Statement:
        target = self.postfix(store=True)
        if self.peek() == "=" and self.peek(1) == "lambda":
            return self._lambda()
        name = self._last_name
        op = self.eat("=", "+=", "-=")
        expr = self.expression()

        def run(frame: Frame) -> None:
            got = rvalue(frame, expr(frame))
            new = name is not None and (name not in frame.names or _loose(frame, name))
            if name is not None and new and op == "=":
                frame.names[name] = Cell(got.n, got.w, got.k)
                frame.names[f"{name} is loose"] = Value(1, 1, "u")
                return
            place = target(frame)
            if op != "=":
                got = binary(frame, op[0], rvalue(frame, place), got)
            assign(place, got)

        return run

    _last_name: str | None = None

    def _lambda(self) -> Statement:
        name = self.t[self.at - 1][1]
        self.eat("=")
        self.eat("lambda")
        self.eat("(")
        parameters: list[str] = []
        while not self.skip(")"):
            parameters.append(self.next())
            self.skip(",")
        self.eat("(")
        statements = self.peek() in ("if", "declare", "for")
        body: Expr | list[Statement] = self.block((")",)) if statements else self.expression()
        self.eat(")")

        def run(frame: Frame) -> None:
            frame.lambdas[name] = (parameters, body)

        return run

    # -- expressions

    def expression(self) -> Expr:
        condition = self.level(0)
        if not self.skip("?"):
            return condition
        yes = self.expression()
        self.eat(":")
        no = self.expression()

        def run(frame: Frame) -> Value:
            taken = yes if truth(rvalue(frame, condition(frame))) else no
            return rvalue(frame, taken(frame))

        return run

    def level(self, n: int) -> Expr:
        if n == len(_LEVELS):
            return self.power()
        left = self.level(n + 1)
        while self.kind() == "op" and self.peek() in _LEVELS[n]:
            left = _operation(self.next(), left, self.level(n + 1))
        return left

    def power(self) -> Expr:
        base = self.unary()
        if not self.skip("**"):
            return base
        exponent = self.unary()

        def run(frame: Frame) -> Power:
            b, e = rvalue(frame, base(frame)), rvalue(frame, exponent(frame))
            if not sf.equal(form(b), b.n, literal("2.0").n if b.w == 64 else literal("2.0F").n):
                raise NotDescribed("a power of another base")
            return Power(e.signed, b.w)

        return run

    def unary(self) -> Expr:
        op = self.peek()
        if self.kind() != "op" or op not in ("-", "~", "!", "+"):
            return self.postfix()
        self.next()
        operand = self.unary()
        if op == "+":
            return operand

        def run(frame: Frame) -> Value:
            v = rvalue(frame, operand(frame))
            if op == "!":
                return flag(not truth(v))
            if op == "~":
                return value(~v.n, v.w, v.k)
            if v.k == "f":
                return Value(v.n ^ 1 << (v.w - 1), v.w, v.k)
            w = max(32, v.w)
            return value(-v.signed, w, "i" if v.w < 32 else v.k)

        return run

    def postfix(self, *, store: bool = False) -> Expr:
        self._last_name = None
        plain = self.kind() == "name" and self.peek(1) not in (".", "[", "(")
        name = self.peek()
        got = self.primary()
        while True:
            if self.peek() == "." and _TYPE.match(self.peek(1)):
                self.next()
                got = _typed(got, self.next())
            elif self.peek() == ".":
                self.next()
                name = f"{name}.{self.next()}"  # WAVE_MODE.IEEE
                got = _named(name)
            elif self.skip("["):
                got = self._index(got)
            else:
                break
        self._last_name = name if store and plain else None
        return got

    def _index(self, base: Expr) -> Expr:
        first = self.expression()
        if self.skip("]"):
            return _element(base, first)
        joint = self.eat(":", "+:")
        second = self.expression()
        self.eat("]")
        return _cut(base, first, second, joint)

    def primary(self) -> Expr:
        kind, text = self.t[self.at]
        if kind == "number":
            self.next()
            known = literal(text)
            return lambda frame: known
        if kind == "cast":
            self.next()
            return self._cast(text)
        if self.skip("("):
            inner = self.expression()
            self.eat(")")
            return inner
        if self.skip("{"):
            return self._join()
        if kind != "name" or text in WORDS - {"in"}:
            raise NotDescribed(f"{text!r}")
        self.next()
        if self.skip("("):
            return _call(text, self._arguments())
        return _named(text)

    def _arguments(self) -> list[Expr]:
        out: list[Expr] = []
        while not self.skip(")"):
            out.append(self.expression())
            self.skip(",")
        return out

    def _cast(self, text: str) -> Expr:
        width, _, letters = text.partition("'")
        w, k = int(width), letters.lower()
        self.eat("(")
        inner = self.expression()
        self.eat(")")

        def run(frame: Frame) -> Value | Power:
            got = inner(frame)
            return Power(got.n, w) if isinstance(got, Power) else as_kind(rvalue(frame, got), w, k)

        return run

    def _join(self) -> Expr:
        parts = [self.expression()]
        while self.skip(","):
            parts.append(self.expression())
        self.eat("}")

        def run(frame: Frame) -> Place:
            places = [p(frame) for p in parts]
            if all(isinstance(p, Slice) for p in places):
                return _Joined(0, 0, "b", [p for p in places if isinstance(p, Slice)], frame)
            n = w = 0
            for p in places:
                v = rvalue(frame, p)
                n, w = n << v.w | v.n, w + v.w
            return Cell(n, w, "u")

        return run


@dataclass(slots=True)
class _Joined(Cell):
    """Places side by side, the first at the top: read as their bits, or assigned together."""

    parts: list[Slice] = field(default_factory=list[Slice])
    frame: Frame | None = None

    def __post_init__(self) -> None:
        for p in self.parts:
            assert self.frame is not None
            self.n = self.n << p.w | p.read(self.frame.flush).n
            self.w += p.w
        self.k = "u"

    def put(self, n: int) -> None:
        for p in reversed(self.parts):
            p.write(n)
            n >>= p.w


_GIVEN = frozenset({"S", "OFFSET", "DATA0", "VDST", "ADDR", "OFFSET0", "OFFSET1"})


def _loose(frame: Frame, name: str) -> bool:
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


def _operation(op: str, left: Expr, right: Expr) -> Expr:
    if op in ("&&", "||"):

        def logic(frame: Frame) -> Value:
            first = truth(rvalue(frame, left(frame)))
            if first == (op == "||"):
                return flag(first)
            return flag(truth(rvalue(frame, right(frame))))

        return logic

    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        if isinstance(a, _Class) or isinstance(b, _Class):
            return _classified(frame, op, a, b)
        return binary(
            frame, op, a if isinstance(a, Power) else rvalue(frame, a),
            b if isinstance(b, Power) else rvalue(frame, b),
        )  # fmt: skip

    return run


@dataclass(frozen=True, slots=True)
class _Class(Value):
    """``DENORM.f32``: what equals it is a denormal."""


def _classified(frame: Frame, op: str, a: Value | Power | Place, b: Value | Power | Place) -> Value:
    v = rvalue(frame, b if isinstance(a, _Class) else a)
    if op != "==":
        raise NotDescribed("a class of numbers in an expression")
    return flag(sf.is_denormal(form(v), v.n))


def _typed(base: Expr, name: str) -> Expr:
    match = _TYPE.match(name)
    assert match is not None
    k, w = match[1], int(match[2])
    if k == "b" and w == 1:
        k = "u"

    def run(frame: Frame) -> Value | Place:
        got = base(frame)
        if isinstance(got, Slice):
            if got.w < w:
                return _wider(got, w, k, frame)
            return Slice(got.base, got.low, w, k, got.back)
        if isinstance(got, Cell):
            if got.w < w and not isinstance(got, _Joined):
                got.w = w
            return Slice(got, 0, w, k)
        if isinstance(got, _Class):
            return _Class(got.n, w, k)
        if isinstance(got, Value):
            if got.k == "f" and k == "f" and got.w != w:  # INF.f32
                return as_kind(got, w, k)
            return value(got.n if got.k != "i" else got.signed, w, k)
        raise NotDescribed(f"an array as {name}")

    return run


def _wider(got: Slice, w: int, k: str, frame: Frame) -> Value:
    """``S2.u32[24].u8``: a few bits as a larger number."""
    plain = Slice(got.base, got.low, got.w, "u", got.back)
    return Value(plain.read(frame.flush).n, w, k)


def _element(base: Expr, index: Expr) -> Expr:
    def run(frame: Frame) -> Place:
        got, i = base(frame), rvalue(frame, index(frame)).n
        if isinstance(got, Array):
            return got.cells[i]
        if isinstance(got, Table):
            return got.at(i)
        return _bits(got, i, 1)

    return run


def _bits(got: Value | Power | Place, low: int, w: int, *, back: bool = False) -> Slice:
    k = "u"
    if isinstance(got, Slice):
        return Slice(got.base, got.low + low, w, k, back)
    if isinstance(got, Cell):
        got.w = max(got.w, low + w) if not isinstance(got, _Joined) else got.w
        return Slice(got, low, w, k, back)
    if isinstance(got, Value):
        return Slice(Cell(got.n, got.w, got.k), low, w, k, back)
    raise NotDescribed("bits of an array")


def _cut(base: Expr, first: Expr, second: Expr, joint: str) -> Expr:
    def run(frame: Frame) -> Slice:
        got = base(frame)
        a, b = rvalue(frame, first(frame)).n, rvalue(frame, second(frame)).n
        if joint == "+:":
            return _bits(got, a, b)
        return _bits(got, min(a, b), abs(a - b) + 1, back=a < b)

    return run


def _named(name: str) -> Expr:
    if name == "INF":
        return lambda frame: Value(sf.FORMATS[64].infinity, 64, "f")
    if name == "NAN":
        return lambda frame: Value(sf.FORMATS[64].nan, 64, "f")
    if name == "DENORM":
        return lambda frame: _Class(0, 64, "f")
    if name == "MAX_FLOAT_F32":
        return lambda frame: Value(0x7F7FFFFF, 32, "f")

    def run(frame: Frame) -> Value | Place:
        got = frame.names.get(name)
        if got is None:
            if name.isupper() and len(name) > 3:
                raise NotDescribed(name)
            got = frame.names[name] = Cell(0, 1, "b")
        return got

    return run


def _call(name: str, arguments: list[Expr]) -> Expr:
    def run(frame: Frame) -> Value:
        args = [rvalue(frame, a(frame)) for a in arguments]
        if name in frame.lambdas:
            parameters, body = frame.lambdas[name]
            names: dict[str, Place | Value] = dict(zip(parameters, args, strict=True))
            inner = Frame(names, frame.functions, frame.rules, frame.lambdas)
            try:
                if not isinstance(body, list):
                    return rvalue(inner, body(inner))
                statements: list[Statement] = body
                for s in statements:
                    s(inner)
            except Return as r:
                return r.value
            raise NotDescribed(f"{name} gives nothing")
        function = frame.functions.get(name)
        if function is None:
            raise NotDescribed(f"{name}()")
        return function(frame, args)

    return run


@cache
def parse(text: str) -> tuple[Statement, ...]:
    """The statements of a description.  Raises `NotDescribed` where it is prose."""
    return tuple(Parser(text).program())


def execute(text: str, frame: Frame) -> None:
    for s in parse(text):
        s(frame)


def views(text: str, name: str) -> Iterator[str]:
    """The types that a description looks at an operand with."""
    for match in re.finditer(rf"\b{name}(?:\[[^\]]*\])?\.(bf16|[uifb]\d+)\b", text):
        yield match[1]

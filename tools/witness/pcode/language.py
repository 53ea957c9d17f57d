"""AMD's pseudocode: a parser, and an interpreter over typed bit patterns.

The language is that of the instruction descriptions in AMD's RDNA3 ISA manual: C's expressions,
``x.f32`` to look at bits as a type, ``x[7 : 0]`` to cut bits, ``32'U(x)`` to convert, ``{ a, b }``
to join, ``if .. then .. elsif .. else .. endif`` and ``for i in a : b do .. endfor``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tools.witness.pcode import softfloat as sf

from .nodes import TYPE, Joined, call, cut, element, named, operation, typed
from .values import (
    Array,
    Break,
    Cell,
    Expr,
    Frame,
    NotDescribed,
    Place,
    Power,
    Return,
    Slice,
    Statement,
    Value,
    as_kind,
    assign,
    binary,
    flag,
    form,
    loose,
    rvalue,
    truth,
    value,
)

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
            new = name is not None and (name not in frame.names or loose(frame, name))
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
            left = operation(self.next(), left, self.level(n + 1))
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
            if self.peek() == "." and TYPE.match(self.peek(1)):
                self.next()
                got = typed(got, self.next())
            elif self.peek() == ".":
                self.next()
                name = f"{name}.{self.next()}"  # WAVE_MODE.IEEE
                got = named(name)
            elif self.skip("["):
                got = self._index(got)
            else:
                break
        self._last_name = name if store and plain else None
        return got

    def _index(self, base: Expr) -> Expr:
        first = self.expression()
        if self.skip("]"):
            return element(base, first)
        joint = self.eat(":", "+:")
        second = self.expression()
        self.eat("]")
        return cut(base, first, second, joint)

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
            return call(text, self._arguments())
        return named(text)

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
                return Joined(0, 0, "b", [p for p in places if isinstance(p, Slice)], frame)
            n = w = 0
            for p in places:
                v = rvalue(frame, p)
                n, w = n << v.w | v.n, w + v.w
            return Cell(n, w, "u")

        return run


_GIVEN = frozenset({"S", "OFFSET", "DATA0", "VDST", "ADDR", "OFFSET0", "OFFSET1"})


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

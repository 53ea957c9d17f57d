"""The parts of an expression beyond plain arithmetic: places, calls, joined bits."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tools.witness.pcode import softfloat as sf

from .values import (
    Array,
    Cell,
    Expr,
    Frame,
    NotDescribed,
    Place,
    Power,
    Return,
    Slice,
    Table,
    Value,
    as_kind,
    binary,
    flag,
    form,
    rvalue,
    truth,
    value,
)

TYPE = re.compile(r"(bf|[uifb])(\d+)$")


@dataclass(slots=True)
class Joined(Cell):
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


def operation(op: str, left: Expr, right: Expr) -> Expr:
    if op in ("&&", "||"):

        def logic(frame: Frame) -> Value:
            first = truth(rvalue(frame, left(frame)))
            if first == (op == "||"):
                return flag(first)
            return flag(truth(rvalue(frame, right(frame))))

        return logic

    def run(frame: Frame) -> Value:
        a, b = left(frame), right(frame)
        if isinstance(a, Class) or isinstance(b, Class):
            return _classified(frame, op, a, b)
        return binary(
            frame, op, a if isinstance(a, Power) else rvalue(frame, a),
            b if isinstance(b, Power) else rvalue(frame, b),
        )  # fmt: skip

    return run


@dataclass(frozen=True, slots=True)
class Class(Value):
    """``DENORM.f32``: what equals it is a denormal."""


def _classified(frame: Frame, op: str, a: Value | Power | Place, b: Value | Power | Place) -> Value:
    v = rvalue(frame, b if isinstance(a, Class) else a)
    if op != "==":
        raise NotDescribed("a class of numbers in an expression")
    return flag(sf.is_denormal(form(v), v.n))


def typed(base: Expr, name: str) -> Expr:
    match = TYPE.match(name)
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
            if got.w < w and not isinstance(got, Joined):
                got.w = w
            return Slice(got, 0, w, k)
        if isinstance(got, Class):
            return Class(got.n, w, k)
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


def element(base: Expr, index: Expr) -> Expr:
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
        got.w = max(got.w, low + w) if not isinstance(got, Joined) else got.w
        return Slice(got, low, w, k, back)
    if isinstance(got, Value):
        return Slice(Cell(got.n, got.w, got.k), low, w, k, back)
    raise NotDescribed("bits of an array")


def cut(base: Expr, first: Expr, second: Expr, joint: str) -> Expr:
    def run(frame: Frame) -> Slice:
        got = base(frame)
        a, b = rvalue(frame, first(frame)).n, rvalue(frame, second(frame)).n
        if joint == "+:":
            return _bits(got, a, b)
        return _bits(got, min(a, b), abs(a - b) + 1, back=a < b)

    return run


def named(name: str) -> Expr:
    if name == "INF":
        return lambda frame: Value(sf.FORMATS[64].infinity, 64, "f")
    if name == "NAN":
        return lambda frame: Value(sf.FORMATS[64].nan, 64, "f")
    if name == "DENORM":
        return lambda frame: Class(0, 64, "f")
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


def call(name: str, arguments: list[Expr]) -> Expr:
    def run(frame: Frame) -> Value:
        args = [rvalue(frame, a(frame)) for a in arguments]
        if name in frame.lambdas:
            parameters, body = frame.lambdas[name]
            names: dict[str, Place | Value] = dict(zip(parameters, args, strict=True))
            inner = Frame(names, frame.functions, frame.rules, frame.lambdas)
            try:
                if callable(body):
                    return rvalue(inner, body(inner))
                for s in body:
                    s(inner)
            except Return as r:
                return r.value
            raise NotDescribed(f"{name} gives nothing")
        function = frame.functions.get(name)
        if function is None:
            raise NotDescribed(f"{name}()")
        return function(frame, args)

    return run

"""Expressions of a rewrite's constants: its condition, and the constants of its result.

Values are words of 32 bits; comparisons are unsigned.  Evaluated over integers where a rewrite is
applied, and over the solver's terms where it is proved: one meaning for both.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from typing import Final, TypeVar

from sassxlate.domain.integers import Bits, Reference
from sassxlate.domain.interface import Domain, ule

T = TypeVar("T")


@cache
def parsed(text: str) -> ast.expr:
    """ValueError for text that is no expression."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r}: {error.msg}") from None


def value(d: Domain[T], text: str, named: Mapping[str, T]) -> T:
    """The word that an expression stands for.  ValueError for what is not in the language."""
    return _word(d, parsed(text), named)


def holds(d: Domain[T], text: str, named: Mapping[str, T]) -> T:
    """The truth value, one bit, of a condition; that of no text is true."""
    return _truth(d, parsed(text), named) if text else d.const(1, 1)


_INTEGERS: Final = Reference()


def number(text: str, named: Mapping[str, int]) -> int:
    """:func:`value` of numbers."""
    return value(_INTEGERS, text, _bits(named)).n


def true(text: str, named: Mapping[str, int]) -> bool:
    """:func:`holds` of numbers."""
    return holds(_INTEGERS, text, _bits(named)).n == 1


def names(text: str) -> frozenset[str]:
    """The constants that an expression names."""
    functions = ("popcount", "ctz")
    found = {e.id for e in ast.walk(parsed(text)) if isinstance(e, ast.Name)}
    return frozenset(found.difference(functions))


def _bits(named: Mapping[str, int]) -> dict[str, Bits]:
    return {name: _INTEGERS.const(n, 32) for name, n in named.items()}


def _word(d: Domain[T], e: ast.expr, named: Mapping[str, T]) -> T:
    match e:
        case ast.Constant(value=int(n)):
            return d.const(n & 0xFFFFFFFF, 32)
        case ast.Name(id=name) if name in named:
            return named[name]
        case ast.UnaryOp(op=ast.Invert(), operand=a):
            return d.not_(_word(d, a, named))
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return d.sub(d.const(0, 32), _word(d, a, named))
        case ast.BinOp(left=a, op=op, right=b):
            return _both(d, op, _word(d, a, named), _word(d, b, named))
        case ast.Call(func=ast.Name(id="popcount"), args=[a]):
            return d.popcount(_word(d, a, named))
        case ast.Call(func=ast.Name(id="ctz"), args=[a]):
            return d.ctz(_word(d, a, named))
        case _:
            raise ValueError(f"{ast.unparse(e)}: no expression of a rewrite's constants")


def _both(d: Domain[T], op: ast.operator, a: T, b: T) -> T:
    match op:
        case ast.Add():
            return d.add(a, b)
        case ast.Sub():
            return d.sub(a, b)
        case ast.Mult():
            return d.mul(a, b)
        case ast.BitAnd():
            return d.and_(a, b)
        case ast.BitOr():
            return d.or_(a, b)
        case ast.BitXor():
            return d.xor(a, b)
        case ast.LShift():
            shift = d.shl
        case ast.RShift():
            shift = d.lshr
        case _:
            raise ValueError(f"{ast.dump(op)}: no operator of a rewrite's constants")
    count = d.and_(b, d.const(31, 32))
    return d.select(d.ult(b, d.const(32, 32)), shift(a, count), d.const(0, 32))


def _truth(d: Domain[T], e: ast.expr, named: Mapping[str, T]) -> T:
    match e:
        case ast.BoolOp(op=op, values=parts):
            join = d.and_ if isinstance(op, ast.And) else d.or_
            out = _truth(d, parts[0], named)
            for part in parts[1:]:
                out = join(out, _truth(d, part, named))
            return out
        case ast.Compare(left=left, ops=ops, comparators=others):
            words = [_word(d, part, named) for part in (left, *others)]
            out = d.const(1, 1)
            for a, how, b in zip(words, ops, words[1:], strict=False):
                out = d.and_(out, _compared(d, how, a, b))
            return out
        case _:
            raise ValueError(f"{ast.unparse(e)}: no condition of a rewrite")


def _compared(d: Domain[T], op: ast.cmpop, a: T, b: T) -> T:
    match op:
        case ast.Eq():
            return d.eq(a, b)
        case ast.NotEq():
            return d.not_(d.eq(a, b))
        case ast.Lt():
            return d.ult(a, b)
        case ast.LtE():
            return ule(d, a, b)
        case ast.Gt():
            return d.ult(b, a)
        case ast.GtE():
            return ule(d, b, a)
        case _:
            raise ValueError(f"{ast.dump(op)}: no comparison of a rewrite's constants")


__all__ = ["holds", "names", "number", "parsed", "true", "value"]

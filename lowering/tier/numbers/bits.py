"""Bitwise functions of three words, and shifts of a pair of words, in the operations that LLVM
knows best.

The semantics write a function of three words as the sum of its minterms, and a shift as one of 64
bits.  LLVM does not find v_xor3_b32, v_bfi_b32 and v_alignbit_b32 in all of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

from sassxlate.domain.interface import Domain, umin

T = TypeVar("T")
Shift: TypeAlias = Literal["shl", "lshr", "ashr"]
_ALL = 0xFF
_COLUMNS = (0xF0, 0xCC, 0xAA)  # the tables of the three operands themselves
_HIGH_BIT = (4, 2, 1)  # an operand's bit in the number of a row


def _halves(table: int, which: int) -> tuple[int, int]:
    """The tables where an operand's bit is 0 and where it is 1, as tables that do not depend on
    it."""
    step, ones = _HIGH_BIT[which], table & _COLUMNS[which]
    zeros = table & ~_COLUMNS[which]
    return zeros | zeros << step, ones | ones >> step


def _cost(table: int, left: int) -> int:
    """Operations of :func:`bitwise` over the first ``left`` operands that may still be used."""
    if table in (0, _ALL) or table in _COLUMNS or table ^ _ALL in _COLUMNS:
        return 0
    return min(_step(table, which, left)[0] for which in range(3) if left >> which & 1)


def _step(table: int, which: int, left: int) -> tuple[int, str]:
    """The cost of taking out an operand, and how."""
    zero, one = _halves(table, which)
    rest = left & ~(1 << which)
    if zero == one:
        return _cost(zero, rest), "neither"
    if zero == one ^ _ALL:
        return 1 + _cost(zero, rest), "xor"
    for how, needed in (("and", zero == 0), ("or", one == _ALL)):
        if needed:
            return 1 + _cost(one if how == "and" else zero, rest), how
    for how, needed in (("and not", one == 0), ("or not", zero == _ALL)):
        if needed:
            return 1 + _cost(zero if how == "and not" else one, rest), how
    if zero & ~one == 0:  # zero implies one
        return 2 + _cost(zero, rest) + _cost(one, rest), "and or"
    return 3 + _cost(zero, rest) + _cost(one, rest), "choice"


def bitwise(d: Domain[T], table: int, a: T, b: T, c: T) -> T:
    """The bitwise function whose bit 4a + 2b + c in ``table`` is its value."""
    return _written(d, table & _ALL, (a, b, c), 7)


def _written(d: Domain[T], table: int, words: tuple[T, T, T], left: int) -> T:
    width = d.width(words[0])
    if table in (0, _ALL):
        return d.const(-(table & 1), width)
    if table in _COLUMNS:
        return words[_COLUMNS.index(table)]
    if table ^ _ALL in _COLUMNS:
        return d.not_(words[_COLUMNS.index(table ^ _ALL)])
    which = min((n for n in range(3) if left >> n & 1), key=lambda n: _step(table, n, left)[0])
    word, rest = words[which], left & ~(1 << which)
    zero, one = _halves(table, which)

    def of(part: int) -> T:
        return _written(d, part, words, rest)

    match _step(table, which, left)[1]:
        case "neither":
            return of(zero)
        case "xor":
            return d.xor(word, of(zero))
        case "and":
            return d.and_(word, of(one))
        case "or":
            return d.or_(word, of(zero))
        case "and not":
            return d.and_(d.not_(word), of(zero))
        case "or not":
            return d.or_(d.not_(word), of(one))
        case "and or":
            return d.or_(d.and_(word, of(one)), of(zero))
        case _:
            return d.or_(d.and_(word, of(one)), d.and_(d.not_(word), of(zero)))


def funnel(
    d: Domain[T], how: Shift, hi: T, lo: T, count: T, known: int | None, *, high: bool
) -> T | None:
    """One word of the pair hi:lo, shifted by a count of at most 64; ``known`` is the count if it is
    a constant.  None where 64 bits are as good.

    A count that is not known: the high word of an arithmetic shift to the right by n is that of
    ``hi`` alone, by n or by 31 if that is less.  (From 32 on, all its bits are the sign.)
    """
    if known is None:
        return d.ashr(hi, umin(d, count, d.const(31, 32))) if how == "ashr" and high else None
    left, n = how == "shl", known
    if n > 32:
        return None
    if n == 0:
        return hi if high else lo
    near, far = (hi, lo) if left else (lo, hi)  # far's bits come into near
    if high == left:  # the word that gets bits of both
        if n == 32:
            return far
        back: Callable[[T, T], T] = d.lshr if left else d.shl
        forth: Callable[[T, T], T] = d.shl if left else d.lshr
        return d.or_(forth(near, d.const(n, 32)), back(far, d.const(32 - n, 32)))
    if how == "ashr":
        return d.ashr(hi, d.const(min(n, 31), 32))
    if n == 32:
        return d.const(0, 32)
    return d.shl(lo, d.const(n, 32)) if left else d.lshr(hi, d.const(n, 32))


__all__ = ["Shift", "bitwise", "funnel"]

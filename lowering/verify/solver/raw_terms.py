"""Solver terms made by z3's C functions: the same terms as by the operators of the Python binding,
without the binding's repeated query of each operand's sort.  The solver itself rejects an operand
of another width (Z3Exception).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import z3
from z3 import z3core

BV = z3.BitVecRef
_CONTEXT = z3.main_ctx()
_REF: Any = _CONTEXT.ref()


def _term(ast: Any, bits: int) -> BV:
    """Counts a new term.  The solver keeps it only until the next term is requested, so there may
    be no query in between, and ``bits`` is known beforehand."""
    out = z3.BitVecRef(ast, _CONTEXT)
    vars(out)["bits"] = bits
    return out


@lru_cache(maxsize=1 << 14)
def numeral(n: int, width: int) -> BV:
    """The term of a number, made once."""
    return z3.BitVecVal(n, width)


ONE, ZERO = numeral(1, 1), numeral(0, 1)


def width(a: BV) -> int:
    """The number of bits of a term, cached with it."""
    found: int | None = getattr(a, "bits", None)
    if found is None:
        found = int(a.size())
        vars(a)["bits"] = found
    return found


def is_numeral(a: BV) -> bool:
    """Whether a term is a number, by its class: simplified numbers are numerals."""
    return isinstance(a, z3.BitVecNumRef)


def simplify(a: BV) -> BV:
    """The term in the solver's simplified form."""
    bits = width(a)
    out = _term(z3core.Z3_simplify(_REF, a.ast), bits)
    if z3core.Z3_is_numeral_ast(_REF, out.ast):
        out.__class__ = z3.BitVecNumRef
    return out


def binary(make: Callable[[Any, Any, Any], Any], a: BV, b: BV) -> BV:
    """An operation on two terms whose result has their width."""
    bits = width(a)
    return _term(make(_REF, a.ast, b.ast), bits)


def negated(a: BV) -> BV:
    bits = width(a)
    return _term(z3core.Z3_mk_bvnot(_REF, a.ast), bits)


def condition(make: Callable[[Any, Any, Any], Any], a: BV, b: BV) -> BV:
    """A relation as one bit."""
    held = z3.BoolRef(make(_REF, a.ast, b.ast), _CONTEXT)
    return _term(z3core.Z3_mk_ite(_REF, held.ast, ONE.ast, ZERO.ast), 1)


def choice(c: BV, a: BV, b: BV) -> BV:
    """``a`` if the bit is set, otherwise ``b``."""
    bits = width(a)
    held = z3.BoolRef(z3core.Z3_mk_eq(_REF, c.ast, ONE.ast), _CONTEXT)
    return _term(z3core.Z3_mk_ite(_REF, held.ast, a.ast, b.ast), bits)


def extended(a: BV, gap: int, signed: bool) -> BV:
    """The term with ``gap`` more high bits, copies of its sign or zero."""
    make = z3core.Z3_mk_sign_ext if signed else z3core.Z3_mk_zero_ext
    bits = width(a) + gap
    return _term(make(_REF, gap, a.ast), bits)


def extract(a: BV, lo: int, bits: int) -> BV:
    return _term(z3core.Z3_mk_extract(_REF, lo + bits - 1, lo, a.ast), bits)


def concat(hi: BV, lo: BV) -> BV:
    bits = width(hi) + width(lo)
    return _term(z3core.Z3_mk_concat(_REF, hi.ast, lo.ast), bits)


__all__ = [
    "ONE", "ZERO", "binary", "choice", "concat", "condition", "extended", "extract", "is_numeral",
    "negated", "numeral", "simplify", "width",
]  # fmt: skip

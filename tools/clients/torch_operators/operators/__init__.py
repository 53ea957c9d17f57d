"""Every declaration, and the cases in the order in which they run."""

from __future__ import annotations

from ..declare import Case, Op
from . import moves, neural, pointwise, products, reductions

OPERATORS: tuple[Op, ...] = (
    *pointwise.OPERATORS,
    *reductions.OPERATORS,
    *moves.OPERATORS,
    *neural.OPERATORS,
    *products.OPERATORS,
)


def cases() -> tuple[Case, ...]:
    """All cases: each operator's first dtype, then each one's second, and so on, so that a run that
    a time limit ends has seen as many operators as possible."""
    rounds = max(len(op.dtypes) for op in OPERATORS)
    return tuple(
        Case(op, op.dtypes[n]) for n in range(rounds) for op in OPERATORS if n < len(op.dtypes)
    )

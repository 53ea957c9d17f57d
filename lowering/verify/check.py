"""The verdict on a block: by the solver for all inputs, by numbers where it cannot decide.

A difference that the solver finds is replayed on numbers: floating-point operations are functions
without properties to it, so that what it calls a counterexample need not be one.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from .relation import Block, Pair, run
from .replay import differential, replay
from .terms import BV, Terms
from .verdict import Proved, Refuted, Undecided, Unknown, Verdict

TIMEOUT_MS = 10_000
CUT_MS = 1_000  # for a single instruction; what is not decided then is left to the end
VECTORS = 4096


def verify(block: Block, *, timeout_ms: int = TIMEOUT_MS, vectors: int = VECTORS) -> Verdict:
    """Proved for all inputs, Refuted by one that was replayed, or Unknown.

    Where the solver cannot decide, ``vectors`` random inputs are tried: a difference refutes, none
    leaves it Unknown, with their number in the reason.
    """
    modulo: set[str] = set()
    for active in (True, False):
        d = Terms()
        memory: dict[str, BV] = {}

        def free(name: str, width: int, memory: dict[str, BV] = memory) -> BV:
            return memory.setdefault(name, z3.BitVec(name, width))

        try:
            outcome = run(block, d, free, active=active, cut=_same)
        except Undecided as reason:
            return Unknown(str(reason))
        modulo |= {"NaN payload"} if d.floats else set()
        modulo |= {"uniform values"} if outcome.uniform else set()
        found = _solve(outcome.pairs, timeout_ms)
        if found is not None:
            return _numbers(block, active, found, memory, vectors)
    return Proved(tuple(sorted(modulo)))


def _same(sass: BV, rdna: BV) -> BV | None:
    """One term for both sides, where they are proved equal behind an instruction."""
    a, b = z3.simplify(sass), z3.simplify(rdna)
    if not a.eq(b):
        solver = z3.Solver()
        solver.set("timeout", CUT_MS)
        solver.add(a != b)
        if solver.check() != z3.unsat:
            return None
    return a


def _numbers(
    block: Block, active: bool, found: z3.ModelRef | str, memory: dict[str, BV], vectors: int
) -> Verdict:
    """What numbers say where the solver has a difference, or gave up."""
    if isinstance(found, z3.ModelRef):
        inputs = {
            name: value.as_long()
            for name, term in memory.items()
            if (value := found[term]) is not None
        }
        shown = replay(block, inputs, active=active)
        if shown is not None:
            return shown
    refuted = differential(block, vectors, active=active)
    if refuted is not None:
        return refuted
    reason = found if isinstance(found, str) else "floating point beyond the solver"
    return Unknown(f"{reason}; {vectors} random inputs agree")


def _solve(pairs: Sequence[Pair[BV]], timeout_ms: int) -> z3.ModelRef | str | None:
    """None: equal for all inputs.  A model, or why the solver gave up."""
    open_: list[tuple[BV, BV]] = []
    for pair in pairs:
        a, b = z3.simplify(pair.sass), z3.simplify(pair.rdna)
        if not a.eq(b):
            open_.append((a, b))
    if not open_:
        return None
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(z3.Or(*(a != b for a, b in open_)))
    found = solver.check()
    if found == z3.unsat:
        return None
    if found == z3.unknown:
        return f"the solver gave up ({solver.reason_unknown()})"
    return solver.model()


__all__ = ["Block", "Proved", "Refuted", "Unknown", "verify"]

"""Whether a rewrite holds for all operands, and for all constants that its condition allows.

Both sides run over the solver's terms on the same registers.  A result in a vector register is
compared in active lanes, a mask for a lane that is active and for one that is not, a number in a
scalar register as it is.  Side effects are not compared: where a rewrite is applied, SCC is dead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

import z3

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, Sp, V
from sassxlate.disasm.rdna3.semantics.apply import apply, lookup
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.errors import SassxlateError
from sassxlate.lowering.optimize.rewrites.numbers import holds, names, number, true, value
from sassxlate.lowering.optimize.rewrites.pattern import SPECIALS, Line, Rewrite, kind
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.verify import Proved, Refuted, Unknown, Verdict
from sassxlate.lowering.verify.rdna3.registers import Registers
from sassxlate.lowering.verify.solver.raw_terms import numeral
from sassxlate.lowering.verify.solver.terms import BV, Terms
from sassxlate.lowering.verify.verdict import Undecided

TIMEOUT_MS: Final = 10_000


def proved(rule: Rewrite, timeout_ms: int = TIMEOUT_MS) -> Verdict:
    """Proved, Refuted with the operands, or Unknown."""
    if rule.cases:
        return _in_cases(rule, timeout_ms)
    verdict = _proved(rule, timeout_ms, products=True)
    if not isinstance(verdict, Unknown):
        return verdict
    return _proved(rule, timeout_ms, products=False)  # products as what they are


def case_values(rule: Rewrite) -> list[int]:
    """The values of the one constant of a rewrite with ``cases``, where its condition holds."""
    (name,) = rule.constants
    parts = sorted(names(rule.cases))
    made = {
        number(rule.cases, dict(zip(parts, shifts, strict=True)))
        for shifts in product(range(32), repeat=len(parts))
    }
    return sorted(n for n in made if not rule.when or true(rule.when, {name: n}))


def _in_cases(rule: Rewrite, timeout_ms: int) -> Verdict:
    """Each value of the constant by itself, and that the condition allows no other."""
    (name,) = rule.constants
    values = case_values(rule)
    d, constant = Terms(), z3.BitVec(name, 32)
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(holds(d, rule.when, {name: constant}) == numeral(1, 1), *d.facts)
    solver.add(*(constant != numeral(n, 32) for n in values))
    answer = solver.check()
    if answer == z3.sat:
        return Refuted(defect=f"another constant: {' '.join(str(solver.model()).split())}")
    if answer == z3.unknown:
        return Unknown("the solver gave up on the constants")
    for n in values:
        verdict = _proved(rule, timeout_ms, products=True, given={name: n})
        if not isinstance(verdict, Proved):
            return verdict
    return Proved()


def _proved(
    rule: Rewrite, timeout_ms: int, *, products: bool, given: Mapping[str, int] | None = None
) -> Verdict:
    for active in (True, False):
        verdict = _asked(rule, active, timeout_ms, products, given or {})
        if not isinstance(verdict, Proved):
            return verdict
    return Proved()


def _asked(
    rule: Rewrite, active: bool, timeout_ms: int, products: bool, given: Mapping[str, int]
) -> Verdict:
    d = Terms(products)
    places = _places(rule)
    known: dict[str, BV] = {name: z3.BitVec(name, 32) for name in rule.constants}
    known |= {name: d.const(n, 32) for name, n in given.items()}
    try:
        old = _run(d, rule.old, places, known, active)
        new = _run(d, rule.new, places, known, active)
        condition = holds(d, rule.when, known)
    except (Undecided, SassxlateError, NotImplementedError) as error:
        return Unknown(str(error))
    differ: list[z3.BoolRef] = []
    for name in sorted(rule.kept):
        place = places[name]
        if isinstance(place, V):
            if active:
                differ.append(old.vgpr(place.index) != new.vgpr(place.index))
        elif isinstance(place, S):
            a, b = old.sgpr(place.index), new.sgpr(place.index)
            if kind(name) == "mask":
                a, b = d.extract(a, 0, 1), d.extract(b, 0, 1)
            differ.append(a != b)
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(condition == numeral(1, 1), z3.Or(*differ), *d.facts)
    answer = solver.check()
    if answer == z3.unsat:
        return Proved()
    if answer == z3.unknown:
        return Unknown("the solver gave up")
    if d.floats or d.facts:
        return Unknown("an operation that the solver knows by name alone may decide it")
    return Refuted(defect=" ".join(str(solver.model()).split()))


def _places(rule: Rewrite) -> dict[str, Arg]:
    """A register for each name."""
    lines = (*rule.old, *rule.new)
    scalar = {a for at in lines if at.op.startswith("s_") for a in at.args if kind(a) == "word"}
    every = dict.fromkeys(arg for at in lines for arg in at.args)
    out: dict[str, Arg] = {}
    for n, arg in enumerate(every):
        match kind(arg):
            case "pair":
                out[arg] = V(100 + 2 * n, 2)
                out[f"{arg}.lo"], out[f"{arg}.hi"] = V(100 + 2 * n), V(101 + 2 * n)
            case "mask" | "scalar":
                out[arg] = S(n)
            case "constant":
                out[arg] = I(0)  # its term is put in where it is read
            case "number":
                special = SPECIALS.get(arg)
                out[arg] = Sp(special) if special else I(_signed(int(arg, 0)))
            case "word" if "." not in arg:
                out[arg] = S(n) if arg in scalar else V(n)
            case _:
                pass
    return out


def _signed(n: int) -> int:
    n &= 0xFFFFFFFF
    return n - (n >> 31 << 32)


def _run(
    d: Terms, lines: Sequence[Line], places: Mapping[str, Arg], known: Mapping[str, BV],
    active: bool,
) -> Registers[BV]:  # fmt: skip
    def free(name: str, width: int) -> BV:
        return z3.BitVec(name, width)

    regs: Registers[BV] = Registers(d, free, DEFAULT)
    regs.s[EXEC_LO] = d.const(0xFFFFFFFF if active else 0, 32)
    for name, place in places.items():
        if kind(name) == "mask" and isinstance(place, S):
            regs.masks.add(place.index)
    for at in lines:
        args = [_operand(d, regs, at, n, arg, places, known) for n, arg in enumerate(at.args)]
        inst = Inst(at.op, tuple(args))
        row = lookup(at.op)
        if row is None:
            raise Undecided(f"{at.op}: no semantics")
        apply(regs, inst, row)
    return regs


def _operand(
    d: Terms, regs: Registers[BV], at: Line, n: int, arg: str, places: Mapping[str, Arg],
    known: Mapping[str, BV],
) -> Arg:  # fmt: skip
    """An operand; a constant is a register that holds its term."""
    sort = kind(arg)
    if sort not in ("constant", "expression"):
        return places[arg]
    term = known[arg] if sort == "constant" else value(d, arg[1:], known)
    if at.op.startswith("s_"):
        regs.s[90 + n] = term
        return S(90 + n)
    regs.v[90 + n] = term
    return V(90 + n)


__all__ = ["TIMEOUT_MS", "case_values", "proved"]

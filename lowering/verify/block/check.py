"""The verdict on a block: from the solver for all inputs, from random inputs if it cannot decide.

A difference that the solver finds is replayed on numbers: the solver treats floating-point
operations as functions without properties, so its counterexample may be spurious.  If neither
decides an instruction whose rule was tested on inputs, it is passed over, see
:mod:`.trusted_instructions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

import z3

from sassxlate.lowering.verify.block.block import BlockPair, Obligation
from sassxlate.lowering.verify.block.relation import run
from sassxlate.lowering.verify.block.replay import Replay
from sassxlate.lowering.verify.block.trusted_instructions import Cut, cut_at, macro_cut
from sassxlate.lowering.verify.rdna3.wait_counters import waits
from sassxlate.lowering.verify.solver.terms import BV, Terms
from sassxlate.lowering.verify.verdict import (
    Defective,
    Proved,
    Refuted,
    Undecided,
    Unknown,
    Verdict,
)

TIMEOUT_MS = 10_000
CUT_MS = 6_000  # for a single instruction; an undecided one is left to the end
QUICK_MS = 100
VECTORS = 4096
_NOT_SHOWN = "the solver has a counterexample that numbers do not confirm"
_LOOKED_AT = 4000  # terms of a question searched for the conditions of its choices


def verify(
    block: BlockPair,
    *,
    timeout_ms: int = TIMEOUT_MS,
    vectors: int = VECTORS,
    tested: bool = False,
    cut_ms: int = CUT_MS,
) -> Verdict:
    """Proved for all inputs, Refuted by one that was replayed, or Unknown.

    If the solver cannot decide, ``vectors`` random inputs are tried: a difference refutes; if there
    is none the verdict stays Unknown, with their number in the reason.  ``tested``: instructions
    whose rule was tested on inputs are passed over, and the verdict names them.  ``timeout_ms`` is
    for one question to the solver, ``cut_ms`` for one about a single instruction.
    """
    code = [*chain.from_iterable(block.rdna), *block.tail]
    try:
        counted = waits(code)
    except Undecided as reason:
        return Unknown(str(reason))
    if counted.early is not None:
        return Refuted(where=counted.early.register, defect=f"missing wait: {counted.early}")
    try:
        return _Search(block, counted.done, timeout_ms, vectors, tested, cut_ms).verdict()
    except Defective as reason:
        return Refuted(defect=str(reason))
    except z3.Z3Exception as fault:  # accesses of different widths, which only their order pairs
        return Unknown(f"the solver rejects a term: {fault}")


@dataclass(slots=True)
class _Search:
    """The search for a verdict: what was found equal, and what had to be passed over."""

    block: BlockPair
    done: frozenset[int]
    timeout_ms: int
    vectors: int
    tested: bool
    cut_ms: int = CUT_MS
    modulo: set[str] = field(default_factory=set[str])
    floats: bool = False
    cuts: dict[int, Cut] = field(default_factory=dict[int, Cut])
    # A term's number is valid only while the term is kept.
    _equal: dict[tuple[int, int], bool] = field(default_factory=dict[tuple[int, int], bool])
    _kept: list[BV] = field(default_factory=list[BV])
    _open: set[int] = field(default_factory=set[int])

    def verdict(self) -> Verdict:
        for n in sorted(self.block.macros):
            try:
                cut = macro_cut(self.block, n)
            except Undecided as reason:
                cut = str(reason)
            if isinstance(cut, str):
                return Unknown(cut)
            self.cuts[n] = cut
        for active in (True, False):
            while True:
                try:
                    found = self._side(active)
                except Undecided as reason:
                    why = self._pass_over(reason.at)
                    if why is not None:
                        return Unknown(f"{reason}; {why}" if why else str(reason))
                    continue
                if found is None:
                    break
                if isinstance(found, Refuted) or not self._pass_open():
                    return found
        for cut in self.cuts.values():
            self.modulo.add(cut.name)
        for ins in self.block.sass:
            if ins.offset in self.block.wide:
                how = "stored" if ins.mnemonic.startswith("ST") else "read"
                self.modulo.add(f"NaN bits of doubles {how}")
        return Proved(tuple(sorted(self.modulo)))

    def _side(self, active: bool) -> Verdict | None:
        """None: equal for all inputs.  First instruction by instruction, each from any state that
        both sides share; if that fails, with the values known so far.  Raises Undecided."""
        self._open.clear()
        if self._ask(active, True, memory={}) is None:
            return None
        if self._pass_open():
            return self._side(active)
        memory: dict[str, BV] = {}
        found = self._ask(active, False, memory)
        return None if found is None else self._numbers(active, found, memory)

    def _pass_over(self, n: int | None) -> str | None:
        """Passes over an instruction and all others of its form; or returns the reason against."""
        if n is None or n in self.cuts or not self.tested:
            return ""
        mine = self.block.sass[n]
        for i, ins in enumerate(self.block.sass):
            if i in self.cuts or (ins.mnemonic, ins.modifiers) != (mine.mnemonic, mine.modifiers):
                continue
            try:
                cut = cut_at(self.block, i)
            except Undecided as reason:
                cut = str(reason)
            if isinstance(cut, Cut):
                self.cuts[i] = cut
            elif i == n:
                return cut
        return None

    def _pass_open(self) -> bool:
        """Passes over instructions not found equal by their results, if any was tested."""
        return any([self._pass_over(n) is None for n in sorted(self._open - self.cuts.keys())])

    def _ask(
        self, active: bool, any_state: bool, memory: dict[str, BV]
    ) -> z3.ModelRef | str | None:
        """None: equal.  ``any_state``: after each instruction both sides continue with a new free
        value; without it, only what is still open is checked again."""
        d = Terms(products=any_state)
        again = frozenset(self._open)
        self._open.clear()

        def free(name: str, width: int) -> BV:
            if name not in memory:
                memory[name] = _variable(name, width)
            return memory[name]

        def same(n: int, sass: BV, rdna: BV, shared: bool) -> BV | None:
            if not any_state and n not in again:
                # After an open difference, equality from equal values proves nothing.
                if not self._open:
                    return z3.simplify(sass)
                if not shared:  # the other lanes' bits of a uniform predicate are then known
                    return None
            value = self._same(n, sass, rdna, d)
            if not any_state or (value is not None and value.num_args() == 0):
                return value
            return free(f"mid{len(memory)}", d.width(sass))

        outcome = run(
            self.block,
            d,
            free,
            active=active,
            done=self.done,
            same=same,
            cuts=self.cuts,
            stepwise=any_state,
        )
        self.floats |= d.floats
        self.modulo |= {"NaN payload"} if d.doubles else set()
        self.modulo |= {"approximations"} if d.approximate else set()
        self.modulo |= {"uniform values"} if outcome.uniform else set()
        if any_state and self._open:
            return "not instruction by instruction"
        return _solve(outcome.pairs, d.facts, self.timeout_ms)

    def _same(self, n: int, sass: BV, rdna: BV, d: Terms) -> BV | None:
        """One term for both sides, if they are proved equal after an instruction."""
        a, b = z3.simplify(sass), z3.simplify(rdna)
        if a.eq(b):
            return a
        self._kept += (a, b)
        key = a.get_id(), b.get_id()
        if key not in self._equal:
            self._equal[key] = _refute(a != b, d.facts, self.cut_ms) is None
        if not self._equal[key]:
            self._open.add(n)
            return None
        return a

    def _numbers(self, active: bool, found: z3.ModelRef | str, memory: Mapping[str, BV]) -> Verdict:
        """The verdict by numbers, after the solver found a difference or gave up."""
        numbers = Replay(self.block, self.done, self.cuts, active)
        if isinstance(found, z3.ModelRef):
            shown = numbers.of(_inputs(found, memory)) or self._alike(active, numbers)
            if shown is not None:
                return shown
        refuted = numbers.random(self.vectors)
        if refuted is not None:
            return refuted
        reason = found if isinstance(found, str) else _NOT_SHOWN
        if reason is _NOT_SHOWN and self.floats:
            reason = "floating point beyond the solver"
        return Unknown(f"{reason}; {self.vectors} random inputs agree")

    def _alike(self, active: bool, numbers: Replay) -> Refuted | None:
        """A counterexample that numbers confirm, in a wave whose lanes agree on uniform values.
        The solver's first one may be of a wave that cannot exist."""
        if not any(ref.file == "UP" for ins in self.block.sass for ref in ins.writes):
            return None
        d = Terms()
        memory: dict[str, BV] = {}

        def free(name: str, width: int) -> BV:
            return memory.setdefault(name, _variable(name, width))

        outcome = run(self.block, d, free, active=active, done=self.done, cuts=self.cuts)
        found = _solve(outcome.pairs, d.facts, self.timeout_ms)
        return numbers.of(_inputs(found, memory)) if isinstance(found, z3.ModelRef) else None


def _inputs(found: z3.ModelRef, memory: Mapping[str, BV]) -> dict[str, int]:
    """The values of a model, by name."""
    return {
        name: value.as_long() for name, term in memory.items() if (value := found[term]) is not None
    }


@lru_cache(maxsize=1 << 14)
def _variable(name: str, width: int) -> BV:
    return z3.BitVec(name, width)


def _solve(
    pairs: Sequence[Obligation[BV]], facts: Sequence[z3.BoolRef], timeout_ms: int
) -> z3.ModelRef | str | None:
    """None: equal for all inputs.  A model, or why the solver gave up."""
    # One by one: all together is harder than the sum of the parts.
    for pair in pairs:
        if pair.sass is pair.rdna:
            continue
        a, b = z3.simplify(pair.sass), z3.simplify(pair.rdna)
        if not a.eq(b) and (found := _refute(a != b, facts, timeout_ms)) is not None:
            return found
    return None


def _refute(
    question: z3.BoolRef, facts: Sequence[z3.BoolRef], timeout_ms: int
) -> z3.ModelRef | str | None:
    """A model of the question, the reason for no answer, or None: it never holds."""
    # Easy questions are answered faster without the other solver's preprocessing.
    found = _asked(z3.SimpleSolver(), question, facts, QUICK_MS)
    if not isinstance(found, str):
        return found
    plain = _without_products(z3.simplify(question))
    if plain is not None and _asked(z3.Solver(), plain, facts, timeout_ms) is None:
        return None
    for case in _cases(question):
        found = _asked(z3.Solver(), case, facts, timeout_ms)
        if found is not None:
            return found
    return None


def _asked(
    solver: z3.Solver, question: z3.BoolRef, facts: Sequence[z3.BoolRef], timeout_ms: int
) -> z3.ModelRef | str | None:
    """Like :func:`_refute`.  Facts about floating-point operations are added only if the question
    cannot be decided without them."""
    solver.set("timeout", timeout_ms)
    solver.add(question)
    found = solver.check()
    if found == z3.sat and facts:
        solver.add(*facts)
        found = solver.check()
    if found == z3.unsat:
        return None
    if found == z3.sat:
        return solver.model()
    return f"the solver gave up ({solver.reason_unknown()})"


def _without_products(question: z3.BoolRef) -> z3.BoolRef | None:
    """The question with any value in place of the product of a word with a number, of one word
    and of two; None if there are none.  What holds for any value holds for the product."""
    found: list[tuple[z3.ExprRef, z3.ExprRef]] = []
    seen: set[int] = set()
    work: list[z3.ExprRef] = [question]
    while work and len(seen) < _LOOKED_AT:
        term = work.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        parts = term.children()
        work += parts
        if not isinstance(term, BV) or not z3.is_app_of(term, z3.Z3_OP_BMUL) or len(parts) != 2:
            continue
        number, other = parts
        if not isinstance(number, BV) or not z3.is_bv_value(number) or number.as_long() >> 32:
            continue
        if term.size() == 64:
            high, *low = other.children() if z3.is_app_of(other, z3.Z3_OP_CONCAT) else [other]
            zero = isinstance(high, BV) and z3.is_bv_value(high) and high.as_long() == 0
            if not zero or len(low) != 1:
                continue
            other = low[0]
        if isinstance(other, BV) and other.size() == 32:
            product = z3.BitVec(f"{number.as_long()} times {other.get_id()}", 64)
            found.append((term, product if term.size() == 64 else z3.Extract(31, 0, product)))
    out = z3.substitute(question, *found) if found else None
    return out if isinstance(out, z3.BoolRef) else None


def _cases(question: z3.BoolRef) -> Sequence[z3.BoolRef]:
    """The question split by the predicate that most of its choices depend on."""
    choices: Counter[BV] = Counter()
    seen: set[int] = set()
    work: list[z3.ExprRef] = [z3.simplify(question)]
    while work and len(seen) < _LOOKED_AT:
        term = work.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        work += term.children()
        if z3.is_app_of(term, z3.Z3_OP_ITE) and z3.is_eq(term.arg(0)):
            for side in term.arg(0).children():
                if isinstance(side, BV) and z3.is_const(side) and side.size() == 1:
                    choices[side] += not z3.is_bv_value(side)
    if not choices.total():
        return (question,)
    bit = choices.most_common(1)[0][0]
    values = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
    return [z3.And(bit == v, z3.substitute(question, (bit, v))) for v in values]


__all__ = ["BlockPair", "Proved", "Refuted", "Unknown", "verify"]

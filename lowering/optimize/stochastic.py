"""Stochastic search: random changes of short runs of integer code, accepted by cost and by chance.

After Schkufza, Sharma, Aiken: Stochastic Superoptimization (ASPLOS 2013).  A run is adjacent
instructions that only compute words from words.  A walk begins with the run as it is; a change is
another operation, another operand, another instruction, one that computes from another's operands,
two that swap places, or one less.  What
counts is the price and, on numbers, how many bits of the results are wrong; a dearer or a wrong
program is accepted with a probability that falls with the difference (Metropolis).  The cheapest
program that is right on all numbers takes the run's place in the draft, and is proved like every
change of the search.  Equal seeds and runs have equal results.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import RRef
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.rdna3.semantics.apply import apply, lookup
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.domain.numpy_lanes import Vec
from sassxlate.errors import SassxlateError
from sassxlate.lowering.optimize.cost import instruction
from sassxlate.lowering.optimize.draft import Draft, legal, line, plain
from sassxlate.lowering.optimize.peephole.enumerate_windows import operations
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.verify.block.replay import Numbers
from sassxlate.lowering.verify.rdna3.registers import Registers
from sassxlate.lowering.verify.verdict import Undecided

SHORTEST, LONGEST = 2, 10  # instructions of a run
INPUTS = 6  # most registers that a run reads
STEPS = 2_000  # changes tried on a run by one walk
_NUMBERS = 64  # that each program is tried on; what is right on them is tried on as many again
_HEAT = 10.0  # units of cost that are accepted once in e times
_WRONG = 8.0  # units for each wrong bit of a result, in the mean
_FIRST, _SCALARS = 32, 40  # where canonical runs keep results, and scalar inputs
_MORE = (("v_mov_b32", 1), ("v_mul_lo_u32", 2))


@dataclass(frozen=True, slots=True)
class Run:
    """A run in canonical registers: vector inputs from v0 on, scalar ones from s40, results from
    v32, unless they take an input's place.  ``outputs`` are the results that are read after it."""

    code: tuple[Inst, ...]
    inputs: tuple[V | S, ...]
    outputs: tuple[V, ...]

    @property
    def price(self) -> int:
        return sum(map(instruction, self.code))


def walk_runs(d: Draft, seed: int, steps: int = STEPS) -> int:
    """Replaces runs of a draft by what a walk finds; how many.  Nothing is proved here."""
    found = 0
    for first, end in reversed(list(_runs(d))):
        made = _canonical(d, first, end)
        if made is None:
            continue
        run, actual = made
        better = walk(run, seed, steps)
        if better is None:
            continue
        code = [_renamed(inst, actual) for inst in better]
        if not all(map(legal, code)):
            continue
        groups = [at.group for at in d.lines[first:end]]
        region = d.lines[first].region
        new = [line(inst, groups[-1]) for inst in code]
        for at in new:
            at.region = region
        d.join(groups)
        d.lines[first:end] = new
        d.changed = True
        found += 1
    d.settle()
    return found


_OPERATIONS = frozenset(op for op, _ in operations()) | {op for op, _ in _MORE}


def _fits(inst: Inst) -> bool:
    to = inst.args[0] if inst.args else None
    if inst.op not in _OPERATIONS or not plain(inst) or not isinstance(to, V) or to.n != 1:
        return False
    return all(isinstance(a, I) or (isinstance(a, V | S) and a.n == 1) for a in inst.args[1:])


def _runs(d: Draft) -> Iterator[tuple[int, int]]:
    """Adjacent lines that fit, under one guard or none."""
    first = 0
    while first < len(d.lines):
        end = first
        while (
            end < len(d.lines)
            and end - first < LONGEST
            and _fits(d.lines[end].inst)
            and d.lines[end].region == d.lines[first].region
        ):
            end += 1
        if end - first >= SHORTEST:
            yield first, end
        first = max(end, first + 1)


def _canonical(d: Draft, first: int, end: int) -> tuple[Run, dict[V | S, V | S]] | None:
    """A run in canonical registers, and the registers that it stands for."""
    names: dict[V | S, V | S] = {}
    inputs: list[V | S] = []
    results: list[V] = []
    code: list[Inst] = []
    for at in d.lines[first:end]:
        args: list[Arg] = []
        for arg in at.inst.args[1:]:
            if isinstance(arg, V | S):
                if arg not in names:
                    n = len(inputs)
                    names[arg] = V(n) if isinstance(arg, V) else S(_SCALARS + n)
                    inputs.append(names[arg])
                args.append(names[arg])
            elif isinstance(arg, I):
                args.append(I(arg.value & 0xFFFFFFFF))
        to = at.inst.args[0]
        assert isinstance(to, V)
        if to not in names:
            names[to] = V(_FIRST + len(results))
        if to not in results:
            results.append(to)
        code.append(Inst(at.inst.op, (names[to], *args)))
    guarded = d.guarded(first)
    kept = [r for r in results if guarded or not d.dead_at(end, RRef("v", r.index))]
    if not 0 < len(inputs) <= INPUTS or not kept:
        return None
    outputs = tuple(V(names[r].index) for r in kept)
    return Run(tuple(code), tuple(inputs), outputs), {v: k for k, v in names.items()}


def _renamed(inst: Inst, actual: dict[V | S, V | S]) -> Inst:
    args = tuple(actual[a] if isinstance(a, V | S) else a for a in inst.args)
    return Inst(inst.op, args)


@lru_cache(maxsize=1 << 14)
def walk(run: Run, seed: int, steps: int = STEPS) -> tuple[Inst, ...] | None:
    """The cheapest right program that a walk meets; None if none is cheaper than the run."""
    chance = random.Random(f"{seed} {run.code} {run.outputs}")
    numbers = numbers_of(len(run.inputs), 0)
    wanted = results_of(run.code, run, numbers)
    if wanted is None:
        return None
    results = tuple(dict.fromkeys(i.args[0] for i in run.code if isinstance(i.args[0], V)))
    pool = _pool(run, results)
    here, worth = run.code, float(run.price)
    best, least = None, run.price
    for _ in range(steps):
        new = _changed(here, chance, results, pool)
        if new is None:
            continue
        price = sum(map(instruction, new))
        # Whatever is wrong, this is accepted no more often.
        limit = worth - _HEAT * math.log(chance.random() or 1e-9)
        if price > limit:
            continue
        got = results_of(new, run, numbers)
        if got is None:
            continue
        wrong = _bits(got, wanted)
        total = price + _WRONG * wrong
        if total > limit:
            continue
        here, worth = new, total
        if wrong == 0 and price < least and _agree(new, run):
            best, least = new, price
    return best


def _pool(run: Run, results: Sequence[V]) -> tuple[Arg, ...]:
    """What an operand may be: inputs, results, and numbers that the run's own lead to."""
    own = [a.value for inst in run.code for a in inst.args if isinstance(a, I)]
    values = dict.fromkeys((*own, 0, 1, 0xFFFFFFFF, *(v for a in own for v in _near(a))))
    return (*run.inputs, *results, *(I(v) for v in list(values)[:8]))


def _near(value: int) -> tuple[int, ...]:
    """Numbers that another form of the same may have: widths, shifts and masks."""
    near = (value.bit_length(), ~value, 32 - value, -value, 1 << (value & 31))
    return tuple(v & 0xFFFFFFFF for v in near)


def _changed(
    code: tuple[Inst, ...], chance: random.Random, results: Sequence[V], pool: Sequence[Arg]
) -> tuple[Inst, ...] | None:
    """A program with one change; None if it cannot be encoded."""
    n = chance.randrange(len(code))
    inst = code[n]
    kind = chance.random()
    if kind < 0.15:
        return (*code[:n], *code[n + 1 :]) if len(code) > 1 else None
    if kind < 0.2 and len(code) > 1:
        m = chance.randrange(len(code))
        new = list(code)
        new[n], new[m] = new[m], new[n]
        return tuple(new)
    if kind < 0.55:
        made = _combined(code, n, chance, pool)
    elif kind < 0.65:
        args = list(inst.args)
        args[1 + chance.randrange(len(args) - 1)] = chance.choice(pool)
        made = Inst(inst.op, tuple(args))
    elif kind < 0.8:
        op = chance.choice(_by_count(len(inst.args) - 1))
        made = Inst(op, inst.args)
    else:
        count = chance.choice((1, 2, 2, 3, 3))
        to = chance.choice(results)
        args = [chance.choice(pool) for _ in range(count)]
        made = Inst(chance.choice(_by_count(count)), (to, *args))
    return (*code[:n], made, *code[n + 1 :]) if legal(made) else None


def _combined(code: tuple[Inst, ...], n: int, chance: random.Random, pool: Sequence[Arg]) -> Inst:
    """An instruction in the place of line ``n``, of its operands and of those of a line before that
    makes one of them."""
    inst = code[n]
    makers = [m for m in range(n) if code[m].args[0] in inst.args[1:]]
    args = list(inst.args[1:])
    if makers:
        maker = code[chance.choice(makers)]
        args = [a for a in args if a != maker.args[0]] + list(maker.args[1:])
    chance.shuffle(args)
    args = args[:3]
    if chance.random() < 0.4:
        k = chance.randrange(len(args))
        old = args[k]
        number = isinstance(old, I) and chance.random() < 0.7
        args[k] = I(chance.choice(_near(old.value))) if number else chance.choice(pool)  # type: ignore[union-attr]
    return Inst(chance.choice(_by_count(len(args))), (inst.args[0], *args))


@lru_cache
def _by_count(count: int) -> tuple[str, ...]:
    return tuple(op for op, n in (*operations(), *_MORE) if n == count)


@lru_cache
def numbers_of(count: int, which: int) -> tuple[Vec, ...]:
    """Words: corners, small ones, any."""
    chance = np.random.default_rng((11, which))
    edges = np.array([0, 1, 2, 31, 32, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint64)
    out: list[Vec] = []
    for _ in range(count):
        raw = chance.integers(0, 1 << 32, _NUMBERS, dtype=np.uint64)
        small = raw >> chance.integers(0, 32, _NUMBERS, dtype=np.uint64)
        kind = chance.random(_NUMBERS)
        other = np.where(kind < 0.6, small, raw)
        out.append(Vec(np.where(kind < 0.25, chance.choice(edges, _NUMBERS), other), 32))
    return tuple(out)


def results_of(
    code: Sequence[Inst], run: Run, numbers: Sequence[Vec]
) -> tuple[NDArray[np.uint64], ...] | None:
    """What a program writes to the run's outputs; None if it cannot be run, or reads a result that
    it did not write."""

    def zero(_: str, width: int) -> Vec:
        return Vec(np.zeros(1, np.uint64), width)

    regs: Registers[Vec] = Registers(Numbers(), zero, DEFAULT)
    regs.s[EXEC_LO] = Vec(np.full(1, 0xFFFFFFFF, np.uint64), 32)
    for place, value in zip(run.inputs, numbers, strict=True):
        (regs.v if isinstance(place, V) else regs.s)[place.index] = value
    written: set[Arg] = set(run.inputs)
    try:
        for inst in code:
            row = lookup(inst.op)
            if row is None or not all(isinstance(a, I) or a in written for a in inst.args[1:]):
                return None
            apply(regs, inst, row)
            written.add(inst.args[0])
    except (Undecided, SassxlateError, NotImplementedError):
        return None
    if not all(out in written for out in run.outputs):
        return None
    return tuple(np.broadcast_to(regs.v[out.index].v, _NUMBERS) for out in run.outputs)


def _bits(got: Sequence[NDArray[np.uint64]], wanted: Sequence[NDArray[np.uint64]]) -> float:
    """How many bits of the results are wrong, in the mean of the numbers."""
    return sum(
        float(np.bitwise_count(a ^ b).sum()) / _NUMBERS for a, b in zip(got, wanted, strict=True)
    )


def _agree(code: Sequence[Inst], run: Run) -> bool:
    """Whether a program is right on numbers that it was not chosen by."""
    numbers = numbers_of(len(run.inputs), 1)
    got, wanted = results_of(code, run, numbers), results_of(run.code, run, numbers)
    return got is not None and wanted is not None and _bits(got, wanted) == 0


__all__ = ["STEPS", "Run", "numbers_of", "results_of", "walk", "walk_runs"]

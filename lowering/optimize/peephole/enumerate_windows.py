"""Windows of a few instructions that one instruction can replace, found by exhaustive search.

A window computes one word from at most three others, and nothing else reads its intermediate
results.  Each integer instruction with the window's inputs and some constants in every order is run
on random numbers and corner cases; those that agree are proposed, the cheapest first.  Results are
cached by the window's shape, so each shape is searched once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.rdna3 import OPS
from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, S, V
from sassxlate.disasm.rdna3.semantics.apply import apply, lookup
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.domain.numpy_lanes import Vec
from sassxlate.errors import SassxlateError
from sassxlate.lowering.optimize.cost import instruction
from sassxlate.lowering.optimize.draft import Draft, legal, plain, source
from sassxlate.lowering.region.subset import in_language
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.verify.block.replay import Numbers
from sassxlate.lowering.verify.rdna3.registers import Registers
from sassxlate.lowering.verify.verdict import Undecided

INPUTS = 128  # numbers that a window is tried on
FEW = 8  # of the numbers; most wrong candidates fail on them
LONGEST = 4  # most instructions of a window
_RESULT = 63  # destination register of candidates
_INTEGER = ("b32", "u32", "i32")
Spec = tuple[str, tuple[int | I, ...]]  # mnemonic, and its operands: inputs by number, constants


@cache
def operations() -> tuple[tuple[str, int], ...]:
    """Instructions from words to one word, with their number of operands."""
    out: list[tuple[str, int]] = []
    for row in OPS.values():
        if row.kind != "valu" or not in_language(row) or row.is_trans or row.writes:
            continue
        args = row.args
        if not args or args[0].role != "w" or set(row.reads) - {"exec", "mode"}:
            continue
        wide = any(a.n != 1 or a.type not in _INTEGER for a in args)
        if wide or any(a.role != "r" for a in args[1:]) or lookup(row.op) is None:
            continue
        if not row.op.startswith(("v_mov", "v_mbcnt", "v_mul_lo", "v_mul_hi")):
            out.append((row.op, len(args) - 1))
    return tuple(out)


_INTEGERS = frozenset(op for op, _ in operations()) | {"v_mul_lo_u32", "v_mov_b32"}


@dataclass(frozen=True, slots=True)
class Window:
    """Lines that together compute the last one's result, and their inputs."""

    lines: tuple[int, ...]
    inputs: tuple[V | S, ...]
    shape: tuple[tuple[str, tuple[int | I, ...]], ...]  # results are numbered after the inputs


def windows(d: Draft) -> Iterator[Window]:
    """The windows that end at each line, the longest first."""
    for n in range(len(d.lines) - 1, 0, -1):
        yield from _ending(d, n)


def _fits(inst: Inst) -> bool:
    to = inst.args[0] if inst.args else None
    return inst.op in _INTEGERS and plain(inst) and isinstance(to, V) and to.n == 1


def _ending(d: Draft, n: int) -> Iterator[Window]:
    if not _fits(d.lines[n].inst):
        return
    mine = [n]
    found: list[Window] = []
    while len(mine) < LONGEST:
        more = _before(d, mine)
        if more is None:
            break
        mine = sorted([*mine, more])
        window = _window(d, mine)
        if window is not None:
            found.append(window)
    yield from reversed(found)


def _before(d: Draft, mine: Sequence[int]) -> int | None:
    """The index of a preceding line that may join the window: only these lines use its result."""
    last = mine[-1]
    for m in range(last - 1, max(-1, last - 24), -1):
        at = d.lines[m]
        if m in mine or not _fits(at.inst) or at.region != d.lines[last].region:
            continue
        (ref,) = source(at.inst.args[0])
        if not any(ref in d.lines[k].reads for k in mine if k > m):
            continue
        uses = d.uses(m, ref)
        if uses is None or not set(uses) <= set(mine):
            continue
        if all(d.unchanged(source(a), m, last) for a in at.inst.args[1:]):
            return m
    return None


def _window(d: Draft, mine: Sequence[int]) -> Window | None:
    inputs: list[V | S] = []
    made: dict[V | S, int] = {}
    shape: list[tuple[str, tuple[int | I, ...]]] = []
    for k, m in enumerate(mine):
        inst = d.lines[m].inst
        args: list[int | I] = []
        for arg in inst.args[1:]:
            if isinstance(arg, I):
                args.append(I(arg.value & 0xFFFFFFFF))
            elif not isinstance(arg, V | S):
                return None
            elif arg in made:
                args.append(-1 - made[arg])
            else:
                if arg not in inputs:
                    inputs.append(arg)
                args.append(inputs.index(arg))
        to = inst.args[0]
        assert isinstance(to, V)
        made[to] = k
        shape.append((inst.op, tuple(args)))
    if not 0 < len(inputs) <= 3:
        return None
    # Inputs of the first lines must be unchanged at the last.
    first, last = mine[0], mine[-1]
    if not all(d.unchanged(source(a), first, last) for a in inputs):
        return None
    return Window(tuple(mine), tuple(inputs), tuple(shape))


@cache
def _inputs() -> tuple[Vec, ...]:
    chance = np.random.default_rng(7)
    out: list[Vec] = []
    for _ in range(3):
        raw = chance.integers(0, 1 << 32, INPUTS, dtype=np.uint64)
        small = raw >> chance.integers(0, 32, INPUTS, dtype=np.uint64)
        kind = chance.random(INPUTS)
        values = np.where(kind < 0.3, chance.choice(_EDGES, INPUTS), raw)
        out.append(Vec(np.where((kind > 0.3) & (kind < 0.6), small, values), 32))
    return tuple(out)


_EDGES = np.array(
    [0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
     0xFFFFFFFE, 0xFFFFFFFF],
    dtype=np.uint64,
)  # fmt: skip


def _run(ops: Sequence[Inst], values: Sequence[Vec]) -> Vec | None:
    """What the last of the instructions writes, where the first VGPRs hold the values."""

    def zero(_: str, width: int) -> Vec:
        return Vec(np.zeros(1, np.uint64), width)

    regs: Registers[Vec] = Registers(Numbers(), zero, DEFAULT)
    regs.s[EXEC_LO] = Vec(np.full(1, 0xFFFFFFFF, np.uint64), 32)
    for i, value in enumerate(values):
        regs.v[i] = value
    try:
        for inst in ops:
            row = lookup(inst.op)
            if row is None:
                return None
            apply(regs, inst, row)
    except (Undecided, SassxlateError, NotImplementedError):
        return None
    return regs.v.get(_RESULT)


def _placed(arg: int | I, results: int) -> Arg:
    if isinstance(arg, I):
        return arg
    return V(arg) if arg >= 0 else V(8 + (-1 - arg) if -1 - arg < results else _RESULT)


def _constants(shape: Sequence[tuple[str, tuple[int | I, ...]]]) -> list[I]:
    """Constants that a shorter form may need: the window's own, and combinations of shifts and
    masks."""
    own = [a.value for _, args in shape for a in args if isinstance(a, I)]
    out = dict.fromkeys(own)
    for a in own:
        out[32 - a & 31] = None
        if a and a & (a + 1) == 0:
            out[a.bit_length()] = None
        out[~a & 0xFFFFFFFF] = None
    for a, b in product(own, own):
        out[a + b & 0xFFFFFFFF] = None
    out = dict.fromkeys((*own, 0, 0xFFFFFFFF)) | out
    return [I(v) for v in list(out)[:6]]


@cache
def shorter(shape: tuple[tuple[str, tuple[int | I, ...]], ...], count: int) -> tuple[Spec, ...]:
    """Single instructions that agree with a window on all numbers tried, the cheapest first."""
    last = len(shape) - 1
    ops = [
        Inst(op, (V(_RESULT if k == last else 8 + k), *(_placed(a, last) for a in args)))
        for k, (op, args) in enumerate(shape)
    ]
    wanted = _run(ops, _inputs()[:count])
    if wanted is None:
        return ()
    price = sum(instruction(inst) for inst in ops)
    target = _digest(wanted)
    few = np.broadcast_to(wanted.v, INPUTS)[:FEW]
    constants = tuple(_constants(shape))
    found: list[tuple[int, Spec]] = []
    for op, n in operations():
        for args in _agreeing(op, n, count, constants, few) if n >= count else ():
            if _tried(op, args, count) == target:
                made = Inst(op, (V(_RESULT), *(_placed(a, 0) for a in args)))
                if legal(made) and instruction(made) < price:
                    found.append((instruction(made), (op, args)))
    return tuple(spec for _, spec in sorted(found, key=lambda f: f[0]))


@cache
def _orders(count: int, constants: int, n: int) -> NDArray[np.intp]:
    """Ways to choose ``n`` operands from inputs and constants so that each input occurs: (n, way)
    numbers, the inputs first."""
    pool = range(count + constants)
    ways = [w for w in product(pool, repeat=n) if all(i in w for i in range(count))]
    return np.array(ways, dtype=np.intp).reshape(len(ways), n).T


def _agreeing(
    op: str, n: int, count: int, constants: tuple[I, ...], few: NDArray[np.uint64]
) -> list[tuple[int | I, ...]]:
    """Operands with which an instruction gives the right results on the few numbers."""
    orders = _orders(count, len(constants), n)
    pool: list[int | I] = [*range(count), *constants]
    made = _on_few(op, n, count, constants)
    ways: list[list[int]] = (
        orders.T if made is None else orders.T[(made == few).all(axis=1)]
    ).tolist()
    return [tuple(pool[i] for i in way) for way in ways]


@lru_cache(maxsize=1 << 12)
def _on_few(op: str, n: int, count: int, constants: tuple[I, ...]) -> NDArray[np.uint64] | None:
    """The results of an instruction in each order of operands: (way, number).  None if it cannot be
    run this way."""
    orders = _orders(count, len(constants), n)
    rows = [value.v[:FEW] for value in _inputs()[:count]]
    rows += [np.full(FEW, c.value & 0xFFFFFFFF, np.uint64) for c in constants]
    pool = np.stack(rows)
    values = [Vec(pool[order].ravel(), 32) for order in orders]
    out = _run([Inst(op, (V(_RESULT), *(V(i) for i in range(n))))], values)
    shape = orders.shape[1], FEW
    return None if out is None else np.broadcast_to(out.v, shape[0] * FEW).reshape(shape)


def _digest(value: Vec) -> int:
    """A hash of an instruction's results."""
    return hash(np.broadcast_to(value.v, INPUTS).tobytes())


@lru_cache(maxsize=1 << 19)
def _tried(op: str, args: tuple[int | I, ...], count: int) -> int | None:
    value = _run([Inst(op, (V(_RESULT), *(_placed(a, 0) for a in args)))], _inputs()[:count])
    return None if value is None else _digest(value)


def one_for_several(d: Draft) -> None:
    """Replaces a window by one instruction, if there is one."""
    again = True
    while again:
        again = False
        for window in windows(d):
            if _replaced(d, window):
                again = True
                break


def _replaced(d: Draft, window: Window) -> bool:
    last = window.lines[-1]
    before = sum(instruction(d.lines[n].inst) for n in window.lines)
    for op, args in shorter(window.shape, len(window.inputs))[:4]:
        actual = (a if isinstance(a, I) else window.inputs[a] for a in args)
        made = Inst(op, (d.lines[last].inst.args[0], *actual))
        if legal(made) and instruction(made) < before:
            d.join([d.lines[n].group for n in window.lines])
            d.put(last, made)
            d.remove(window.lines[:-1])
            return True
    return False


__all__ = ["one_for_several", "shorter", "windows"]

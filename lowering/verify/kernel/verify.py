"""The verdict on a kernel without loops: SASS beside the final machine code, for all inputs.

What is compared is one lane, alone: its stores to global and shared memory, and that the machine
code reads and writes no word that SASS does not.

Assumed, and named in the verdict: that accesses of SASS are aligned to their words, as CUDA
demands; that lanes do not race, so that what a lane finds in memory is what was there at its start
or what it wrote; and that the waits of the machine code suffice, which other checks see to (strict
runs, tools/witness/judge).  Registers that nothing wrote are any value, on each side another.
Kernels with barriers, atomics, fences, calls, local memory, or instructions that see other lanes
are Unknown.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import z3

from sassxlate.cfg import Cfg
from sassxlate.cfg.rdna3_flow import ModeBits
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.domain.interface import Domain, is_nan
from sassxlate.domain.numpy_lanes import Vec
from sassxlate.lowering.abi.kernarg import BankLayout, bank_layout
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.codeobject.descriptor import Descriptor
from sassxlate.lowering.select.translated import Translated
from sassxlate.lowering.target import Target
from sassxlate.lowering.verify.block.replay import Numbers, edge_biased
from sassxlate.lowering.verify.kernel import machine, sass
from sassxlate.lowering.verify.kernel.contents import Contents, Touched
from sassxlate.lowering.verify.rdna3.execute import Placed
from sassxlate.lowering.verify.rdna3.registers import OTHER_NAN, Registers
from sassxlate.lowering.verify.sass.lane import SassLane
from sassxlate.lowering.verify.solver.raw_terms import numeral
from sassxlate.lowering.verify.solver.terms import BV, Terms, holds
from sassxlate.lowering.verify.verdict import Proved, Refuted, Undecided, Unknown, Verdict

T = TypeVar("T")
ASSUMED = ("aligned accesses", "lanes that do not race", "waits checked elsewhere")
LANES = 2048  # random inputs
LIMIT_S = 60.0
QUICK_S = 15.0  # for a question without functions


@dataclass(frozen=True, slots=True)
class KernelPair:
    """A kernel's graph, its machine code with its descriptor, and where the arguments are."""

    cfg: Cfg
    layout: BankLayout
    code: Sequence[Placed]
    entry: Descriptor
    banks: dict[int, int]  # offset in the arguments of a constant bank's address -> bank
    threads: int
    target: Target
    constants: bytes  # bank 2
    together: Sequence[bool]  # of each block: whether all lanes of a warp are there


def pair_of(rules: Translated, made: Translated, target: Target) -> KernelPair:
    """The question about ``made``, other code for the kernel that ``rules`` has."""
    (kernel,) = read(made.code_object).kernels
    program = made.program
    ends = [*program.offsets[1:], len(program.data)]
    code = [
        Placed(item, at, end)
        for item, at, end in zip(made.items, program.offsets, ends, strict=True)
        if isinstance(item, Inst)
    ]
    fills = [f for f in made.launch.fills if f.kind.startswith("bank")]
    banks = {f.offset: int(f.kind.removeprefix("bank")) for f in fills}
    layout = bank_layout(rules.kernel.arch)
    threads, constants = made.launch.max_threads, rules.kernel.constant2
    together = rules.selected.plan.uniformity.converged
    entry = kernel.descriptor
    return KernelPair(rules.cfg, layout, code, entry, banks, threads, target, constants, together)


class _Lane(SassLane[T]):
    """A lane that knows the constants of the compiler, bank 2."""

    constants = b""

    def word(self, bank: int, offset: int) -> T:
        if bank == 2 and offset + 4 <= len(self.constants):
            word = int.from_bytes(self.constants[offset : offset + 4], "little")
            return self.d.const(word, 32)
        return super().word(bank, offset)


@dataclass(frozen=True, slots=True)
class _Sides(Generic[T]):
    """Both sides' memories after the kernel."""

    sass: Contents[T]
    rdna: Contents[T]


def _followed(
    pair: KernelPair,
    d: Domain[T],
    free: Callable[[str, int], T],
    initial: Callable[[str, T], T],
    sass_done: Callable[[Contents[T]], None] = lambda _: None,
) -> _Sides[T]:
    mine, yours = Contents(d, free, initial), Contents(d, free, initial)

    def side(name: str) -> Callable[[str, int], T]:
        shared = ("c[", "tid", "s.group", "shared.", "private.", "lane")

        def made(what: str, width: int) -> T:
            return free(what if what.startswith(shared) else f"{name} {what}", width)

        return made

    groups = {f"s{s.index}": f"s.group{i}" for i, s in enumerate(pair.target.group_id)}
    of_sass = side("SASS")

    def named(name: str, width: int) -> T:
        return of_sass(groups.get(name, name), width)

    lane = _Lane(d, pair.layout, named, True, pair.target)
    lane.constants = pair.constants
    lane.remember(mine)
    sass.run(pair.cfg, pair.together, lane, mine)
    sass_done(mine)
    regs = Registers(d, side("RDNA3"), pair.target)
    regs.memory = yours
    entry = pair.entry
    regs.bits = ModeBits(entry.float_mode | entry.dx10_clamp << 8 | entry.ieee_mode << 9)
    regs.word, regs.tables, regs.absent = lane.word, pair.banks, frozenset(lane.windows)
    numbers = 10 * (entry.workitem_id_dims + 1)  # the others' bits are 0
    regs.v[0] = d.zext(d.extract(free("tid", 32), 0, numbers), 32)
    at = entry.user_sgpr_count
    flags = ("enable_workgroup_id_x", "enable_workgroup_id_y", "enable_workgroup_id_z")
    for axis, flag in enumerate(flags):
        if getattr(entry, flag):
            regs.s[at] = free(f"s.group{axis}", 32)
            at += 1
    regs.write_scalar(EXEC_LO, regs.mask_of(d.const(1, 1)))
    machine.run(pair.code, regs, yours)
    return _Sides(mine, yours)


# --- numbers -------------------------------------------------------------------------------------


def _mixed(address: Vec, space: str, seed: int) -> Vec:
    """A word for each address: edge-biased."""
    x = address.v.astype(np.uint64) ^ np.uint64(zlib.crc32(space.encode()) ^ seed << 32)
    with np.errstate(over="ignore"):
        for factor, by in ((0xBF58476D1CE4E5B9, 30), (0x94D049BB133111EB, 27)):
            x = (x ^ (x >> np.uint64(by))) * np.uint64(factor)
    return edge_biased(x)


@dataclass(slots=True)
class Guesses:
    """What numbers say of each word that was read, in order, and of each access of both sides: the
    same bytes where addresses were equal for all random inputs."""

    words: list[bytes] = field(default_factory=list[bytes])
    sass: list[bytes] = field(default_factory=list[bytes])
    rdna: list[bytes] = field(default_factory=list[bytes])


def on_numbers(
    pair: KernelPair, guesses: Guesses, lanes: int = LANES, seed: int = 1
) -> Refuted | None:
    """The first random input for which the memories differ, if any.  Raises Undecided."""
    d = Numbers()
    d.payloads = True
    names: dict[str, Vec] = {}

    def free(name: str, width: int) -> Vec:
        if name not in names:
            chance = np.random.default_rng([seed, zlib.crc32(name.encode())])
            raw = edge_biased(chance.integers(0, 1 << 62, lanes, dtype=np.uint64)).v
            if name.startswith("c[") and width == 32:  # sizes, and addresses that are aligned
                some = chance.random(lanes)
                raw = np.where(some < 0.6, raw & np.uint64(0xFFFFFFF0), raw)
                raw = np.where((some > 0.6) & (some < 0.8), raw & np.uint64(0x3FF), raw)
            if name == "tid":
                raw = raw % np.uint64(min(pair.threads, 1024))
            if name.startswith("s.group"):
                raw &= np.uint64(0x3F)
            names[name] = Vec(raw & np.uint64((1 << width) - 1), width)
        return names[name]

    def initial(space: str, address: Vec) -> Vec:
        guesses.words.append(space.encode() + address.v.tobytes())
        return _mixed(address, space, seed)

    def told(one: Touched[Vec]) -> bytes:
        shown = np.where(one.when.v != 0, one.address.v, np.uint64(0))
        return f"{one.space} {one.size} {one.data is None}".encode() + shown.tobytes()

    sides = _followed(pair, d, free, initial)
    guesses.sass, guesses.rdna = ([told(one) for one in m.touched] for m in
                                  (sides.sass, sides.rdna))  # fmt: skip
    good = np.ones(lanes, np.bool_)
    for one in sides.sass.touched:
        bad = (one.address.v & np.uint64(one.size - 1)) != 0
        good &= ~(np.broadcast_to(one.when.v != 0, (lanes,)) & np.broadcast_to(bad, (lanes,)))
    for name, a, b in _compared(d, sides):
        x, y = (np.broadcast_to(v.v, (lanes,)) for v in (a, b))
        wrong = np.flatnonzero((x != y) & good)
        if wrong.size:
            at = int(wrong[0])
            inputs = {n: int(np.broadcast_to(v.v, (lanes,))[at]) for n, v in names.items()}
            return Refuted(inputs, name, int(x[at]), int(y[at]))
    return None


def _compared(d: Numbers, sides: _Sides[Vec]) -> Iterator[tuple[str, Vec, Vec]]:
    """Each word that either side stored, and whether an access has its like in SASS."""
    zero, yes = d.const(0, 32), d.const(1, 1)
    for one in (*sides.sass.touched, *sides.rdna.touched):
        if one.data is not None:
            place = d.and_(one.address, d.const(-4, d.width(one.address)))
            a = d.select(one.when, sides.sass.word(one.space, place), zero)
            b = d.select(one.when, sides.rdna.word(one.space, place), zero)
            yield f"word of {one.space}", a, d.select(_any_nan(d, sides, one.space, place), a, b)
    for when, active in sides.rdna.woken:
        name = "a scalar load of a wave without active lanes"
        yield name, yes, d.or_(d.not_(when), active)
    for one in sides.rdna.touched:
        allowed = d.not_(one.when)
        for other in sides.sass.touched:
            allowed = d.or_(allowed, _covers(d, other, one))
        yield f"access to {one.space} that SASS does not make", yes, allowed


def _any_nan(d: Numbers, sides: _Sides[Vec], space: str, place: Vec) -> Vec:
    """Whether a word is one of a double for which RDNA3 may have any NaN and SASS has one, too.  Of
    doubles that are only stored it is open which (docs/rdna3.md); the solver asks for the bits."""
    upper = d.extract(place, 2, 1)

    def double(side: Contents[Vec]) -> Vec:
        word = side.word(space, place)
        other = side.word(space, d.xor(place, d.const(4, d.width(place))))
        return d.concat(d.select(upper, word, other), d.select(upper, other, word))

    marked = d.eq(double(sides.rdna), d.const(OTHER_NAN[64], 64))
    return d.and_(marked, is_nan(d, double(sides.sass)))


def _covers(d: Domain[T], mine: Touched[T], yours: Touched[T]) -> T:
    """Whether SASS's access is to the same word."""
    if mine.space != yours.space or (yours.data is not None and mine.data is None):
        return d.const(0, 1)
    mask = d.const(-4, d.width(mine.address))
    same = d.eq(d.and_(mine.address, mask), d.and_(yours.address, mask))
    return d.and_(mine.when, same)


# --- terms ---------------------------------------------------------------------------------------


def _any(term: z3.ExprRef, number: int) -> z3.ExprRef:
    """A free value of a term's kind."""
    if isinstance(term, BV):
        return z3.BitVec(f"any {number}", term.size())
    return z3.BitVec(f"any {number}", 1) == z3.BitVecVal(1, 1)


def _never(a: BV, b: BV, where: Sequence[z3.BoolRef], limit_ms: float) -> bool:
    """Whether two terms are equal with any value for each function's result, which is a question
    about bits alone; False also where that is not known."""
    question = z3.simplify(z3.And(a != b, *where))
    found: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}
    seen: set[int] = set()
    work: list[z3.ExprRef] = [question]
    while work:
        term = work.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if term.num_args() and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[term.get_id()] = term, _any(term, len(found))
            continue
        work += term.children()
    solver = z3.SolverFor("QF_BV")
    solver.set("timeout", int(limit_ms))
    solver.add(z3.substitute(question, *found.values()) if found else question)
    return solver.check() == z3.unsat


class _GaveUp(Exception):
    """The solver had no answer, or a counterexample that numbers did not find."""


class _Proof:
    """Equal terms, proved one after the other until the time is over."""

    def __init__(self, pair: KernelPair, guesses: Guesses, until: float) -> None:
        self.pair, self.guesses, self.until = pair, guesses, until
        self.d = Terms(products=True)
        self.d.payloads = True  # the tier's code gives the NaN of doubles to the bit
        self.facts: list[z3.BoolRef] = []
        self.names: dict[str, BV] = {}
        self.words: dict[bytes, list[tuple[BV, BV]]] = {}  # addresses and what is there
        self.read = 0
        # Pairs that were proved.  A term's number is valid only while the term is kept.
        self.known: set[tuple[int, int]] = set()
        self.kept: list[BV] = []

    def free(self, name: str, width: int) -> BV:
        if name not in self.names:
            self.names[name] = z3.BitVec(name, width)
        return self.names[name]

    def initial(self, space: str, address: BV) -> BV:
        """The word at an address: one value for addresses that are proved equal, and any values
        for others."""
        told = self.guesses.words[self.read] if self.read < len(self.guesses.words) else b""
        self.read += 1
        address = z3.simplify(address)
        known = self.words.setdefault(told, [])
        for other, value in known:
            if self.equal("an address", other, address):
                return value
        value = self.free(f"{space}.{len(self.names)}", 32)
        known.append((address, value))
        return value

    def equal(self, name: str, a: BV, b: BV, when: BV | None = None) -> bool:
        """Whether two terms are equal for all inputs, wherever ``when`` holds.  Raises _GaveUp if
        the solver does not say."""
        x, y = z3.simplify(a), z3.simplify(b)
        if x.eq(y) or (when is None and (x.get_id(), y.get_id()) in self.known):
            return True
        if not self._proved(name, x, y, when):
            return False
        if when is None:
            self.kept += (x, y)
            self.known |= {(x.get_id(), y.get_id()), (y.get_id(), x.get_id())}
        return True

    def _proved(self, name: str, x: BV, y: BV, when: BV | None) -> bool:
        left = self.until - time.monotonic()
        if left <= 0:
            raise _GaveUp(f"{name}: the time is over")
        where = [] if when is None else [holds(when)]
        if _never(x, y, where, 1000 * min(left, QUICK_S)):
            return True
        solver = z3.Solver()
        solver.set("timeout", int(1000 * left))
        solver.add(x != y, *where, *self.facts, *self.d.facts)
        found = solver.check()
        if found == z3.unknown:
            raise _GaveUp(f"{name}: the solver gave up ({solver.reason_unknown()})")
        return found == z3.unsat

    def need(self, name: str, a: BV, b: BV, when: BV | None = None) -> None:
        if not self.equal(name, a, b, when):
            raise _GaveUp(f"{name}: the solver has a counterexample that numbers do not confirm")

    def prove(self) -> None:
        """Raises Undecided and _GaveUp."""
        threads = self.pair.threads
        for axis in range(3):
            number = z3.Extract(10 * axis + 9, 10 * axis, self.free("tid", 32))
            self.facts.append(z3.ULT(z3.ZeroExt(22, number), numeral(threads, 32)))
        sides = _followed(self.pair, self.d, self.free, self.initial, self._sass_done)
        mine, yours = sides.sass.touched, sides.rdna.touched
        for when, active in sides.rdna.woken:
            self.need("active lanes of a scalar load", active, self.d.const(1, 1), when)
        self._stores(mine, yours)
        self._loads(mine, yours)

    def _sass_done(self, sass: Contents[BV]) -> None:
        for one in sass.touched:
            if one.size > 1:
                low = z3.Extract(one.size // 2 - 1, 0, one.address)
                self.facts.append(z3.Implies(holds(one.when), low == 0))

    def _stores(self, mine: Sequence[Touched[BV]], yours: Sequence[Touched[BV]]) -> None:
        """Each store has its like on the other side, and those that may meet are in one order."""
        places: list[tuple[int, int]] = []
        left = [i for i, one in enumerate(yours) if one.data is not None]
        for n, one in enumerate(mine):
            if one.data is None:
                continue
            told = self.guesses.sass[n]
            other = next((i for i in left if self.guesses.rdna[i] == told), None)
            if other is None:
                raise _GaveUp("the two sides split stores differently")
            left.remove(other)
            places.append((n, other))
            theirs = yours[other]
            assert theirs.data is not None
            name = f"store {n} to {one.space}"
            self.need(f"condition of {name}", one.when, theirs.when)
            self.need(f"address of {name}", self._place(one), self._place(theirs))
            self.need(f"data of {name}", one.data, theirs.data, one.when)
        if left:
            raise _GaveUp("stores of RDNA3 alone")
        for i, (n, here) in enumerate(places):
            for m, there in places[i + 1 :]:
                if there < here and mine[n].space == mine[m].space:
                    self._apart(mine[n], mine[m])

    def _apart(self, a: Touched[BV], b: Touched[BV]) -> None:
        """Two stores never meet in a word."""
        d = self.d
        mask = d.const(-4, d.width(a.address))
        same = d.eq(d.and_(a.address, mask), d.and_(b.address, mask))
        both = d.and_(a.when, b.when)
        self.need("stores in another order", d.and_(same, both), d.const(0, 1))

    def _loads(self, mine: Sequence[Touched[BV]], yours: Sequence[Touched[BV]]) -> None:
        """RDNA3 reads no word that SASS does not, and is aligned."""
        d = self.d
        for n, one in enumerate(yours):
            told = self.guesses.rdna[n]
            name = f"access {n} to {one.space}"
            likely = [m for i, m in enumerate(mine) if self.guesses.sass[i] == told]
            if not any(self._alike(name, one, other) for other in likely) and not self._covered(
                name, one, mine
            ):
                raise _GaveUp(f"{name}, which SASS may not make")
            if one.size > 1:
                low = d.extract(one.address, 0, one.size // 2)
                self.need(f"alignment of {name}", low, d.const(0, one.size // 2), one.when)

    def _place(self, one: Touched[BV]) -> BV:
        """Its address where it is made: of a load that of the word, as in :class:`Contents`."""
        d = self.d
        width = d.width(one.address)
        at = one.address if one.data is not None else d.and_(one.address, d.const(-4, width))
        return d.select(one.when, at, d.const(0, width))

    def _alike(self, name: str, one: Touched[BV], other: Touched[BV]) -> bool:
        return self.equal(name, one.when, other.when) and self.equal(
            name, self._place(other), self._place(one)
        )

    def _covered(self, name: str, one: Touched[BV], some: Sequence[Touched[BV]]) -> bool:
        d = self.d
        allowed = d.const(0, 1)
        for other in some:
            allowed = d.or_(allowed, _covers(d, other, one))
        return self.equal(name, allowed, d.const(1, 1), one.when)


def _proved(pair: KernelPair, guesses: Guesses, until: float) -> Verdict:
    proof = _Proof(pair, guesses, until)
    try:
        proof.prove()
    except _GaveUp as why:
        return Unknown(str(why))
    modulo = list(ASSUMED)
    modulo += ["NaN payload"] * proof.d.doubles + ["approximations"] * proof.d.approximate
    return Proved(tuple(modulo))


def verify(pair: KernelPair, *, limit_s: float = LIMIT_S, lanes: int = LANES) -> Verdict:
    """Proved for all inputs, Refuted by numbers, or Unknown with the reason."""
    until = time.monotonic() + limit_s
    try:
        guesses = Guesses()
        found = on_numbers(pair, guesses, lanes)
        return found if found is not None else _proved(pair, guesses, until)
    except Undecided as why:
        return Unknown(str(why))
    except z3.Z3Exception as why:
        return Unknown(f"the solver rejects a term: {why}")


__all__ = ["ASSUMED", "KernelPair", "on_numbers", "pair_of", "verify"]

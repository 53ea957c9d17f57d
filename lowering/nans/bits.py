"""Where a NaN's bits are observable: the float results that must become NVIDIA's NaN.

NVIDIA's arithmetic gives one NaN (0x7fffffff for binary32, 0x7fff for a half); AMD's keeps signs
and payloads of its operands.  Arithmetic cannot tell them apart, code that reads bits can: integer
and logic operations, stores, shuffles, conversions to double, selections with a sign.  This pass
follows results that may be another NaN through the kernel, and decides before which instruction a
register is repaired (in place: it gets SASS's value), or which results are repaired at once.
Results that no such instruction reads cost nothing, and neither do those that cannot be NaN.

A result of doubles passes on the NaN of an operand on both sides, but the choice of operand and
the sign differ.  If its bits are read, the code of each operation that they may come through
chooses the NaN; see ``exact``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sassxlate.cfg import Block, Cfg, Liveness
from sassxlate.cfg.loops import structure
from sassxlate.disasm.sass.instruction import Imm, Instruction, Reg, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.nans.reads import (
    BITS,
    DIRTY,
    WIDE,
    Nan,
    carries,
    made,
    moved,
    numeric,
    sources_of_doubles,
    takes_away,
)
from sassxlate.lowering.nans.values import ANY, NUMBER, bound_of, float_result

_FEW = 24  # rounds over a block, after which bounds are given up
_LOOP = 8  # assumed iterations of a loop
_CALLEE = 4  # functions are mostly slow paths: assumed calls per execution


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a register: its bits, its bound as a float, the makers of its NaN."""

    bits: Nan = BITS
    bound: int = ANY
    makers: int = 0  # a set of instructions, as a mask of their numbers

    def joined(self, other: Value) -> Value:
        if self == other:
            return self
        return Value(
            self.bits | other.bits, max(self.bound, other.bound), self.makers | other.makers
        )


UNKNOWN = Value()
State = dict[RegRef, Value]  # a missing register is UNKNOWN


@dataclass(frozen=True, slots=True)
class NanBits:
    """The result of the pass.

    ``before``: registers to repair before the instruction at an offset, under its guard;
    ``after``: instructions whose results are repaired at once.  ``entry`` has for each block the
    registers whose NaN may differ from SASS's, and further facts that later blocks rely on.
    ``exact`` are the operations on doubles whose code chooses the NaN that NVIDIA passes on.
    ``wide`` are the instructions that read the bits of a double whose NaN may differ, ``apart``
    those whose code only the translator may write: it repairs something, or moves a NaN that may
    differ.
    """

    before: Mapping[int, tuple[tuple[RegRef, Nan], ...]] = field(
        default_factory=dict[int, tuple[tuple[RegRef, Nan], ...]]
    )
    after: Mapping[int, Nan] = field(default_factory=dict[int, Nan])
    entry: tuple[Mapping[RegRef, Nan], ...] = ()
    exact: frozenset[int] = frozenset()
    wide: frozenset[int] = frozenset()
    apart: frozenset[int] = frozenset()


# --- the pass ------------------------------------------------------------------------------------


def nan_bits(
    cfg: Cfg,
    live: Liveness,
    idle: frozenset[int] = frozenset(),
    routines: frozenset[int] = frozenset(),
) -> NanBits:
    """The places where results are repaired.  ``idle`` are instructions that are not translated,
    ``routines`` the entries of nvcc's own functions for quotients and roots of doubles."""
    return _Pass(cfg, live, idle, routines).found()


@dataclass(slots=True)
class _Use:
    """A register that is read as bits while its NaN may differ."""

    offset: int
    ref: RegRef
    value: Value
    weight: int
    movable: bool  # whether code may be inserted before the instruction
    decides: bool  # whether the bits enter a computation or a decision


class _Pass:
    def __init__(
        self, cfg: Cfg, live: Liveness, idle: frozenset[int], routines: frozenset[int]
    ) -> None:
        self.cfg, self.live, self.idle, self.routines = cfg, live, idle, routines
        self.numbers = {
            ins.offset: n
            for n, ins in enumerate(i for b in cfg.blocks for i in b.instructions if made(i))
        }
        self.doubles = 0  # makers of doubles, which are not repaired, as a mask
        for ins in (i for b in cfg.blocks for i in b.instructions if made(i) & WIDE):
            self.doubles |= 1 << self.numbers[ins.offset]
        self.passes: dict[int, int] = {}  # whose NaN a maker of doubles may pass on, as a mask
        self.at_once = 0  # makers whose results are repaired at once, as a mask
        self.uses: dict[tuple[int, RegRef], _Use] = {}
        self.moves: set[int] = set()  # instructions that move a NaN that may differ

    def found(self) -> NanBits:
        if not self.numbers:
            empty = tuple(dict[RegRef, Nan]() for _ in self.cfg.blocks)
            return NanBits(entry=empty)
        weights = self._weights()
        while True:
            entry = self._solve()
            self.uses.clear()
            self.moves.clear()
            self.passes.clear()
            for block in self.cfg.blocks:
                self._through(block, entry[block.index], weights[block.index])
            more = self._more(weights)
            if not more & ~self.at_once:
                break
            self.at_once |= more
        before: dict[int, list[tuple[RegRef, Nan]]] = {}
        seen = self._seen()
        exact = frozenset(
            ins.offset
            for b in self.cfg.blocks
            for ins in b.instructions
            if ins.offset in self.numbers and seen >> self.numbers[ins.offset] & 1
        )
        for use in self.uses.values():
            if kind := _curable(use.value):
                before.setdefault(use.offset, []).append((use.ref, kind))
        order = {"R": 0, "UR": 1}
        after = {
            ins.offset: made(ins)
            for b in self.cfg.blocks
            for ins in b.instructions
            if ins.offset in self.numbers and not made(ins) & WIDE
            if self.at_once >> self.numbers[ins.offset] & 1
        }
        return NanBits(
            {
                at: tuple(sorted(some, key=lambda r: (order[r[0].file], r[0].index)))
                for at, some in before.items()
            },
            after,
            self._told(entry),
            exact,
            frozenset(
                use.offset
                for use in self.uses.values()
                if use.value.bits & WIDE and use.value.makers & self.doubles & ~seen
            ),
            frozenset({*before, *after, *self.moves, *exact}),
        )

    def _seen(self) -> int:
        """The makers of doubles whose NaN's bits are read, directly or through others, as a
        mask."""
        out, work = 0, 0
        for use in self.uses.values():
            if use.value.bits & WIDE and use.decides:
                work |= use.value.makers & self.doubles
        while work & ~out:
            new = work & ~out
            out |= new
            for number in _members(new):
                work |= self.passes.get(number, 0)
        return out

    def _told(self, entry: list[State]) -> tuple[dict[RegRef, Nan], ...]:
        """The facts at each block's start: registers whose NaN may differ; and, if those
        of a later block rely on it, that a register holds no NaN that SASS does not make."""
        out = [
            {ref: v.bits for ref, v in state.items() if v.bits & DIRTY and ref in live}
            for state, live in zip(entry, self.live.live_in, strict=True)
        ]
        free = {Nan.SINGLE: Nan.FREE32, Nan.HALVES: Nan.FREE16}
        work = [
            (n, ref, free[kind])
            for n, told in enumerate(out)
            for ref, bits in told.items()
            if (kind := _curable(Value(bits)))
        ]
        while work:
            n, ref, none = work.pop()
            for edge in self.cfg.predecessors[n]:
                for source in self._sources(self.cfg.blocks[edge.src], ref):
                    value = entry[edge.src].get(source, UNKNOWN)
                    if source not in out[edge.src] and not value.bits & none:
                        out[edge.src][source] = BITS & ~none
                        work.append((edge.src, source, none))
        return tuple(out)

    def _sources(self, block: Block, ref: RegRef) -> set[RegRef]:
        """The registers before a block whose bits ``ref`` may hold after it."""
        out = {ref}
        for ins in reversed(block.instructions):
            if ins.offset in self.idle or not out & ins.writes:
                continue
            for n, to in enumerate(_words(ins, "Rd")):
                if to in out:
                    for role in moved(ins):
                        out |= set(_words(ins, role)[n : n + 1])
            if ins.guard.is_true:
                out -= ins.writes - {w for role in moved(ins) for w in _words(ins, role)}
        return out

    def _weights(self) -> list[int]:
        """Relative execution frequency of each block, estimated from its place."""
        shape = structure(self.cfg)
        kernel = self.cfg.functions[0]
        turns = [_LOOP ** min(shape.depth(b.index), 6) for b in self.cfg.blocks]
        return [
            _CALLEE * n if b.function == kernel else n
            for n, b in zip(turns, self.cfg.blocks, strict=True)
        ]

    def _solve(self) -> list[State]:
        """The states before each block, to a fixed point."""
        blocks = self.cfg.blocks
        entry: list[State | None] = [None] * len(blocks)
        entry[0] = {}
        rounds = [0] * len(blocks)
        work = [0]
        while work:
            index = min(work)
            work.remove(index)
            rounds[index] += 1
            state = entry[index]
            assert state is not None
            out = self._through(blocks[index], state, 0)
            for edge in self.cfg.successors[index]:
                if edge.kind == "back":
                    continue  # the path through the callee exists as call and ret edges
                live = self.live.live_in[edge.dst]
                told = {ref: v for ref, v in out.items() if ref in live}
                old = entry[edge.dst]
                new = told if old is None else _joined(old, told)
                if rounds[edge.dst] > _FEW:
                    new = {ref: Value(v.bits, ANY, v.makers) for ref, v in new.items()}
                if new != old:
                    entry[edge.dst] = new
                    if edge.dst not in work:
                        work.append(edge.dst)
        return [{} if state is None else state for state in entry]

    def _through(self, block: Block, state: State, weight: int) -> State:
        """The state after a block; with a weight, reads as bits are recorded."""
        state = dict(state)
        for ins in block.instructions:
            if ins.offset in self.idle:
                continue
            self._read(ins, state, weight, block)
            if weight and made(ins) & WIDE:
                self.passes[self.numbers[ins.offset]] = self._from(ins, state)
            self._write(ins, state)
        return state

    def _read(self, ins: Instruction, state: State, weight: int, block: Block) -> None:
        roles, blind = numeric(ins)
        seen = {ref: DIRTY for ref in ins.reads if ref.file in ("R", "UR") and ref in state}
        for role in roles:
            for n, ref in enumerate(_words(ins, role)):
                if ref in seen:
                    seen[ref] &= ~((Nan.HIGH if n else Nan.LOW) if blind == WIDE else blind)
        for role in moved(ins):
            for ref in _words(ins, role):
                if seen.pop(ref, Nan(0)) and state[ref].bits & DIRTY and weight:
                    self.moves.add(ins.offset)
        movable = not (ins is block.last and traits(ins).ends_block)
        for ref, what in seen.items():
            value = state[ref]
            if not value.bits & what:
                continue
            if weight:
                decides = block.function not in self.routines and not takes_away(ins, ref)
                self.uses[ins.offset, ref] = _Use(ins.offset, ref, value, weight, movable, decides)
            if movable and (kind := _curable(value)) and ins.guard.is_true:
                left = Nan.FREE16 if kind is Nan.SINGLE else Nan.FREE32
                state[ref] = Value(left, value.bound)

    def _from(self, ins: Instruction, state: State) -> int:
        """The makers of doubles whose NaN an instruction passes on, as a mask."""
        out = 0
        for role in sources_of_doubles(ins):
            for ref in _words(ins, role):
                out |= state.get(ref, UNKNOWN).makers
        return out & self.doubles

    def _write(self, ins: Instruction, state: State) -> None:
        new = self._results(ins, state)
        for ref in ins.writes:
            if ref.file not in ("R", "UR"):
                continue
            value = new.get(ref, UNKNOWN)
            if not ins.guard.is_true:
                value = value.joined(state.get(ref, UNKNOWN))
            if value == UNKNOWN:
                state.pop(ref, None)
            else:
                state[ref] = value

    def _results(self, ins: Instruction, state: State) -> State:
        if roles := moved(ins):
            return self._moved(ins, roles, state)
        kind = made(ins)
        if carries(ins) and (makers := self._from(ins, state)):
            return {ref: Value(BITS | Nan.HIGH, ANY, makers) for ref in _words(ins, "Rd")}

        def bound(role: str) -> int:
            return bound_of(ins, role, lambda r: state.get(r, UNKNOWN).bound)

        size = float_result(ins, bound)
        words = _words(ins, "Rd")
        if not kind:
            if size is None or len(words) != 1:
                return {}
            return {words[0]: Value(Nan.FREE16, size)}
        number = self.numbers[ins.offset]
        if kind is Nan.SINGLE:
            sure = size is not None and size <= NUMBER
            bits = Nan.FREE16 if sure or self.at_once >> number & 1 else Nan.FREE16 | Nan.SINGLE
            makers = 1 << number if bits & DIRTY else 0
            return {ref: Value(bits, ANY if size is None else size, makers) for ref in words}
        if kind is Nan.HALVES:
            clean = self.at_once >> number & 1
            bits = Nan.FREE32 if clean else Nan.FREE32 | Nan.HALVES
            return {ref: Value(bits, ANY, 0 if clean else 1 << number) for ref in words}
        if kind is Nan.HIGH:
            return {words[0]: Value(BITS | Nan.HIGH, ANY, 1 << number)}
        parts = (Nan.LOW, Nan.HIGH)
        return {
            ref: Value(BITS | part, ANY, 1 << number)
            for ref, part in zip(words, parts, strict=False)
        }

    def _moved(self, ins: Instruction, roles: tuple[str, ...], state: State) -> State:
        out: State = {}
        for n, ref in enumerate(_words(ins, "Rd")):
            value: Value | None = None
            for role in roles:
                source = _words(ins, role)
                one = state.get(source[n], UNKNOWN) if source else _constant(ins, role)
                value = one if value is None else value.joined(one)
            out[ref] = value or UNKNOWN
        return out

    def _more(self, weights: list[int]) -> int:
        """Makers whose results are cheaper to repair at once."""
        out = 0
        alone: dict[int, int] = {}
        where = {
            self.numbers[i.offset]: weights[b.index]
            for b in self.cfg.blocks
            for i in b.instructions
            if i.offset in self.numbers
        }
        for use in self.uses.values():
            makers = use.value.makers & ~self.at_once & ~self.doubles
            if use.value.bits & WIDE:
                # It may also hold a double's word, from another path of a lane: not repaired here.
                out |= makers
                continue
            kept = use.movable and bool(_curable(use.value))
            if not kept or sum(where[n] for n in _members(makers)) < use.weight:
                out |= makers
            elif makers and not makers & makers - 1:
                number = makers.bit_length() - 1
                alone[number] = alone.get(number, 0) + use.weight
        for number, weight in alone.items():
            if weight > where[number]:
                out |= 1 << number
        return out


def _curable(value: Value) -> Nan:
    """The format in which a register can be repaired, whatever made it; 0 if it cannot."""
    dirty = value.bits & DIRTY
    if dirty == Nan.SINGLE and not value.bits & Nan.FREE32:
        return Nan.SINGLE
    if dirty == Nan.HALVES and not value.bits & Nan.FREE16:
        return Nan.HALVES
    return Nan(0)


def _constant(ins: Instruction, role: str) -> Value:
    """A source without a tracked register: RZ, an immediate, a constant."""
    operand = ins.get(role)
    if isinstance(operand, Reg) and operand.is_zero:
        return Value(Nan(0), bound_of(ins, role, lambda _: ANY))
    if isinstance(operand, Imm) and operand.bits == 32:
        bits = Nan(0)
        if operand.value & 0x7FFFFFFF > 0x7F800000 and operand.value != 0x7FFFFFFF:
            bits |= Nan.FREE32
        for half in (operand.value & 0xFFFF, operand.value >> 16 & 0xFFFF):
            if half & 0x7FFF > 0x7C00 and half != 0x7FFF:
                bits |= Nan.FREE16
        return Value(bits, bound_of(ins, role, lambda _: ANY))
    return UNKNOWN


def _words(ins: Instruction, role: str) -> list[RegRef]:
    operand = ins.get(role)
    if not isinstance(operand, Reg) or operand.is_zero:
        return []
    return [RegRef(operand.file, operand.index + i) for i in range(operand.width)]


def _members(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _joined(a: State, b: State) -> State:
    """The join of two paths; a register missing from one of them is UNKNOWN there."""
    out: State = {}
    for ref in a.keys() | b.keys():
        value = a.get(ref, UNKNOWN).joined(b.get(ref, UNKNOWN))
        if value != UNKNOWN:
            out[ref] = value
    return out


__all__ = ["NanBits", "nan_bits"]

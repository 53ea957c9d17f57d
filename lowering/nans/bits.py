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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from sassxlate.cfg import Block, Cfg, Liveness
from sassxlate.cfg.loops import structure
from sassxlate.cfg.register_sets import ALL
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.lowering.nans import values
from sassxlate.lowering.nans.calls import Calls
from sassxlate.lowering.nans.flow import FACTS, SAME, Flow, doubles_of
from sassxlate.lowering.nans.guarded import Guarded
from sassxlate.lowering.nans.moves import of_doubles, of_parts, one_of
from sassxlate.lowering.nans.pairs import Pairs
from sassxlate.lowering.nans.reach import Reach
from sassxlate.lowering.nans.reads import BITS, DIRTY, WIDE, Nan, takes_away
from sassxlate.lowering.nans.steps import (
    COPY,
    HALVES,
    NUMBER,
    PARTS,
    SHUFFLED,
    SINGLE,
    UNKNOWN,
    Makers,
    State,
    Step,
    Value,
    clean,
    forget,
    names,
    number,
    put,
    steps,
    union,
)
from sassxlate.lowering.nans.values import ANY, Sources, float_result

_LOOP: Final = 8  # assumed iterations of a loop
_CALLEE: Final = 4  # functions are mostly slow paths: assumed calls per execution
_DIRTY: Final = int(DIRTY)
_WIDE: Final = int(WIDE)
_BITS: Final = int(BITS)
_SINGLE: Final = int(Nan.SINGLE)
_HALVES: Final = int(Nan.HALVES)
_BRAIN: Final = int(Nan.BRAIN)
_HIGH: Final = int(Nan.HIGH)
_LOW: Final = int(Nan.LOW)
_ALONE: Final = int(Nan.ALONE)
_FREE32: Final = int(Nan.FREE32)
_FREE16: Final = int(Nan.FREE16)


@dataclass(frozen=True, slots=True)
class NanBits:
    """The result of the pass.

    ``before``: registers to repair before the instruction at an offset, under its guard;
    ``after``: instructions whose results are repaired at once.
    ``exact`` are the operations on doubles whose code chooses the NaN that NVIDIA passes on.
    ``wide`` are the instructions that read the bits of a double whose NaN may differ, ``apart``
    those whose code only the translator may write: it repairs something, or moves a NaN that may
    differ.
    """

    before: Mapping[int, tuple[tuple[RegRef, Nan], ...]] = field(
        default_factory=dict[int, tuple[tuple[RegRef, Nan], ...]]
    )
    after: Mapping[int, Nan] = field(default_factory=dict[int, Nan])
    exact: frozenset[int] = frozenset()
    wide: frozenset[int] = frozenset()
    apart: frozenset[int] = frozenset()


# --- the pass ------------------------------------------------------------------------------------


def nan_bits(
    cfg: Cfg,
    live: Liveness,
    idle: frozenset[int] = frozenset(),
    routines: frozenset[int] = frozenset(),
    *,
    tier: bool = False,
) -> NanBits:
    """The places where results are repaired.  ``idle`` are instructions that are not translated,
    ``routines`` the entries of nvcc's own functions for quotients and roots of doubles.

    ``tier``: for the optimising tier, which leaves the NaN of bf16 as they are, too, and for which
    they are followed through shuffles and moves of halves: no block of it is proved by itself.
    """
    return _Pass(cfg, live, idle, routines, tier=tier).found()


def facts_before(
    cfg: Cfg,
    live: Liveness,
    idle: frozenset[int] = frozenset(),
    routines: frozenset[int] = frozenset(),
) -> tuple[Mapping[RegRef, Nan], ...]:
    """For each block the registers whose NaN may differ from SASS's, and further facts that later
    blocks rely on.  Found anew where they are asked for: only proofs need them, and they take as
    much memory as a kernel's code."""
    return _Pass(cfg, live, idle, routines).told()


@dataclass(slots=True)
class _Use:
    """A register that is read as bits while its NaN may differ."""

    offset: int
    register: int
    value: Value
    weight: int
    movable: bool  # whether code may be inserted before the instruction
    decides: bool  # whether the bits enter a computation or a decision


class _Known(Sources):
    """Bounds of an instruction's sources, those of registers by what is known of them."""

    def __init__(self, ins: Instruction, state: State) -> None:
        super().__init__(ins)
        self.state = state

    def of_register(self, number: int) -> int:
        value = self.state.get(number)
        return ANY if value is None else value.bound


class _Pass:
    """Registers are the numbers of their bits, makers are numbered by their place in the code.

    Where paths meet, the makers of a register are one negative number, and ``inputs`` has what
    comes into it: sets of makers at every block would take memory by the square of the kernel's
    size.  Such numbers are apart for makers of doubles (odd) and others (even).
    """

    def __init__(
        self,
        cfg: Cfg,
        live: Liveness,
        idle: frozenset[int],
        routines: frozenset[int],
        *,
        tier: bool = False,
    ) -> None:
        self.cfg, self.live, self.idle, self.routines = cfg, live, idle, routines
        self.tier = tier
        self.calls = Calls(cfg)
        self.steps = [steps(block, idle, tier=tier) for block in cfg.blocks]
        self.makers = {s.ins.offset: s for some in self.steps for s in some if s.made}
        # Makers of doubles, which are not repaired.
        self.doubles = frozenset(at for at, s in self.makers.items() if s.made & _WIDE)
        self.named: dict[int, frozenset[int]] = {}  # by block that was followed again
        self.inputs: dict[int, Makers | set[int]] = {}
        self.passes: dict[int, Makers] = {}  # whose NaN a maker of doubles may pass on
        self.at_once: set[int] = set()  # makers whose results are repaired at once
        self.made: dict[int, tuple[Value, ...]] = {}  # by maker: equal results are one object
        self.uses: dict[tuple[int, int], _Use] = {}
        self.moves: set[int] = set()  # instructions that move a NaN that may differ

    def told(self) -> tuple[Mapping[RegRef, Nan], ...]:
        """The facts at each block's start."""
        if not self.makers:
            return tuple(dict[RegRef, Nan]() for _ in self.cfg.blocks)
        return self._told(self._decided(keeps=True))

    def _decided(self, *, keeps: bool = False) -> list[State]:
        """Decides which results are repaired at once; the states before each block, if somebody
        ``keeps`` them: of a long kernel they take a fifth of all memory."""
        weights = self._weights()
        while True:
            entry = self._solve()
            self.uses.clear()
            self.moves.clear()
            self.passes.clear()
            for block in self.cfg.blocks:
                self._through(block, entry[block.index], weights[block.index])
                if not keeps:
                    entry[block.index] = {}
            more = self._more(weights)
            if more <= self.at_once:
                return entry
            entry.clear()  # before they are found anew
            self.at_once |= more

    def found(self) -> NanBits:
        if not self.makers:
            return NanBits()
        self._decided()
        before: dict[int, list[tuple[int, Nan]]] = {}
        seen = self._seen()
        unseen = Reach(self.inputs, seen)
        for use in self.uses.values():
            if kind := _curable(use.value.bits):
                before.setdefault(use.offset, []).append((use.register, Nan(kind)))
        after = {
            at: Nan(step.made)
            for at, step in self.makers.items()
            if not step.made & _WIDE and at in self.at_once
        }
        return NanBits(
            {at: tuple((ALL[r], kind) for r, kind in sorted(some)) for at, some in before.items()},
            after,
            frozenset(seen),
            frozenset(
                use.offset
                for use in self.uses.values()
                if use.value.bits & _WIDE and unseen.any(self._doubles_of(use.value.makers))
            ),
            frozenset({*before, *after, *self.moves, *seen}),
        )

    def _seen(self) -> set[int]:
        """The makers of doubles whose NaN's bits are read, directly or through others."""
        out: set[int] = set()
        work: list[int] = []
        for use in self.uses.values():
            if use.value.bits & _WIDE and use.decides:
                work += self._doubles_of(use.value.makers)
        while work:
            maker = work.pop()
            if maker not in out:
                out.add(maker)
                work += self.inputs.get(maker, ()) if maker < 0 else self.passes.get(maker, ())
        return {maker for maker in out if maker >= 0}

    def _doubles_of(self, makers: Makers) -> Makers:
        return doubles_of(makers, self.doubles)

    def _told(self, entry: list[State]) -> tuple[dict[RegRef, Nan], ...]:
        """The facts at each block's start: registers whose NaN may differ; and, if those
        of a later block rely on it, that a register holds no NaN that SASS does not make."""
        out = [
            {r: v.bits for r, v in state.items() if v.bits & _DIRTY and live >> r & 1}
            for state, live in zip(entry, self.live.in_bits, strict=True)
        ]
        free = {_SINGLE: _FREE32, _HALVES: _FREE16}
        work = [
            (n, register, free[kind])
            for n, told in enumerate(out)
            for register, bits in told.items()
            if (kind := _curable(bits))
        ]
        while work:
            n, register, none = work.pop()
            for edge in self.cfg.predecessors[n]:
                carried = self.calls.carries(edge, register)
                for source in self._sources(edge.src, register) if carried else ():
                    value = entry[edge.src].get(source, UNKNOWN)
                    if source not in out[edge.src] and not value.bits & none:
                        out[edge.src][source] = _BITS & ~none
                        work.append((edge.src, source, none))
        return tuple({ALL[r]: Nan(bits) for r, bits in told.items()} for told in out)

    def _sources(self, block: int, register: int) -> set[int]:
        """The registers before a block whose bits ``register`` may hold after it."""
        out = {register}
        for step in reversed(self.steps[block]):
            if out.isdisjoint(step.writes):
                continue
            for to, sources in zip(step.words, step.copies, strict=False):
                if to in out and step.makes != SHUFFLED:
                    out.update(s for s in sources if isinstance(s, int))
            if step.plain:
                out.difference_update(set(step.writes).difference(step.moved))
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
        """The states before each block, to a fixed point.

        What functions give back to all places after their calls makes each block's start new
        several times, often in registers that its code does not name: these are taken past it.
        """
        blocks = self.cfg.blocks
        flow = Flow(self.cfg, self.live, self.doubles, self.calls)
        self.inputs = flow.inputs
        self.made.clear()
        work, queued = [0], [SAME] * len(blocks)
        queued[0] = FACTS
        followed = [False] * len(blocks)
        while work:
            index = heappop(work)
            flow.rounds[index] += queued[index] == FACTS
            queued[index] = SAME
            state = flow.entry[index]
            assert state is not None
            whole = not followed[index]
            fresh, flow.fresh[index] = flow.fresh[index], []
            followed[index] = True
            if whole:
                out = self._through(blocks[index], state, 0)
            else:
                out = self._again(blocks[index], state, fresh)
            for edge in self.cfg.successors[index]:
                if changed := flow.along(edge, out, whole=whole):
                    if not queued[edge.dst]:
                        heappush(work, edge.dst)
                    queued[edge.dst] = max(changed, queued[edge.dst])
        return flow.reached()

    def _again(self, block: Block, state: State, fresh: list[int]) -> State:
        """What may be new after a block that was followed before, where ``fresh`` are the registers
        of which something is new before it; UNKNOWN ones, too."""
        named = self.named.get(block.index)
        if named is None:
            named = self.named[block.index] = names(self.steps[block.index])
        if named.isdisjoint(fresh):
            return {register: state.get(register, UNKNOWN) for register in fresh}
        out = self._through(block, state, 0)
        return {register: out.get(register, UNKNOWN) for register in named.union(fresh)}

    def _through(self, block: Block, state: State, weight: int) -> State:
        """The state after a block; with a weight, reads as bits are recorded."""
        pairs = Pairs(state, tier=self.tier) if self.doubles else None
        state = dict(state)
        guarded = Guarded() if self.tier else None
        for step in self.steps[block.index]:
            found = guarded.state(step, state) if guarded is not None else state
            if found:
                for register, what in step.reads:
                    value = found.get(register)
                    if value is not None and value.bits & what:
                        if weight:
                            self._use(step, register, value, weight, block)
                        if step.movable and step.plain and (kind := _curable(value.bits)):
                            left = _FREE16 if kind == _SINGLE else _FREE32
                            state[register] = clean(left, value.bound)
                if pairs is not None and weight:
                    for word in pairs.apart(step, found):
                        self._use(step, word, found[word], weight, block)
                if weight:
                    for register in step.copied:
                        if found.get(register, UNKNOWN).bits & _DIRTY:
                            self.moves.add(step.ins.offset)
            if weight and step.made & _WIDE:
                self.passes[step.ins.offset] = self._from(step, found)
            if pairs is not None:
                pairs.step(step)
            if guarded is None and not (step.makes or step.carries):
                forget(step, state)
                continue
            values = self._written(step, found)
            for register, value in values.items():
                if not step.plain:
                    value = value.joined(state.get(register, UNKNOWN))
                put(state, register, value)
            if guarded is not None:
                guarded.written(step, values)
        if pairs is not None:
            pairs.leave(state)
        return state

    def _use(self, step: Step, register: int, value: Value, weight: int, block: Block) -> None:
        ins = step.ins
        decides = block.function not in self.routines and not takes_away(ins, ALL[register])
        self.uses[ins.offset, register] = _Use(
            ins.offset, register, value, weight, step.movable, decides
        )

    def _from(self, step: Step, state: State) -> Makers:
        """The makers of doubles whose NaN an instruction passes on."""
        out: Makers = ()
        for register in step.passes:
            out = union(out, state.get(register, UNKNOWN).makers)
        return self._doubles_of(out) if out else out

    def _written(self, step: Step, state: State) -> dict[int, Value]:
        """What is known of the registers that an instruction writes, if its guard holds."""
        values = dict.fromkeys(step.writes, UNKNOWN)
        if step.makes or step.carries:
            for register, value in zip(step.words, self._results(step, state), strict=False):
                if register in values:
                    values[register] = value
        return values

    def _results(self, step: Step, state: State) -> Sequence[Value]:
        """What is known of the words of a result."""
        makes, words = step.makes, step.words
        if step.carries:
            makers = self._from(step, state)
            return [Value(_BITS | _HIGH | _ALONE, ANY, makers)] * len(words) if makers else ()
        if makes == COPY:
            return [one_of(sources, state) for sources in step.copies]
        if makes == PARTS:
            return (of_parts(step, state),)
        if makes == SHUFFLED:
            return [of_doubles(sources, state, self.doubles) for sources in step.copies]
        size = step.size
        for register in step.sources:
            if register in state:
                size = float_result(step.ins, _Known(step.ins, state))
                break
        if makes == NUMBER:
            return (number(ANY if size is None else size),)
        at = step.ins.offset
        cured = at in self.at_once
        bound = ANY if size is None else size
        if makes == SINGLE and (cured or (size is not None and size <= values.NUMBER)):
            return [number(bound)] * len(words)
        known = self.made.get(at)
        if known and known[0].bound == bound:
            return known
        mine: Makers = () if cured else (at,)
        if makes == SINGLE:
            known = (Value(_FREE16 | _SINGLE, bound, mine),) * len(words)
        elif makes == HALVES:
            kind = 0 if cured else step.made
            free = _FREE16 if step.made & _BRAIN else 0  # a number as bf16 may be a NaN as fp16
            known = (Value(_FREE32 | free | kind, bound, mine),) * len(words)
        else:
            parts = (_HIGH,) if step.made == _HIGH else (_LOW, _HIGH)
            mine = (at,)
            known = tuple([Value(_BITS | part, bound, mine) for part in parts])
        self.made[at] = known
        return known

    def _more(self, weights: list[int]) -> set[int]:
        """Makers whose results are cheaper to repair at once."""
        out: set[int] = set()
        alone: dict[int, int] = {}
        where = {
            step.ins.offset: weight
            for some, weight in zip(self.steps, weights, strict=True)
            for step in some
            if step.made
        }
        reach = Reach(self.inputs, self.at_once | self.doubles)
        never: set[int] = set()
        for use in self.uses.values():
            # It may also hold a double's word, from another path of a lane: not repaired here.
            wide = bool(use.value.bits & _WIDE)
            if wide or not use.movable or not _curable(use.value.bits):
                never.update(use.value.makers)
                continue
            found = reach.lighter(use.value.makers, where, use.weight)
            if found is None:
                continue
            makers, weight = found
            if weight < use.weight:
                out |= makers
            elif len(makers) == 1:
                (maker,) = makers
                alone[maker] = alone.get(maker, 0) + use.weight
        out |= reach.all(never)
        out |= {maker for maker, weight in alone.items() if weight > where[maker]}
        return out


def _curable(bits: int) -> int:
    """The format in which a register can be repaired, whatever made it; 0 if it cannot."""
    dirty = bits & _DIRTY
    if dirty == _SINGLE and not bits & _FREE32:
        return _SINGLE
    if dirty == _HALVES and not bits & _FREE16:
        return _HALVES
    return 0


__all__ = ["NanBits", "facts_before", "nan_bits"]

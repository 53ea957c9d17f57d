"""Instructions as the pass over NaN bits takes them: what is read and made, as integers.

The pass visits each instruction several times; what depends on the instruction alone is found once,
here.  Registers are the numbers of their bits (``cfg/register_sets.py``), differences are plain
integers with the values of :class:`.reads.Nan`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sassxlate.cfg import Block
from sassxlate.cfg.register_sets import FIRST, tracked
from sassxlate.disasm.sass.instruction import Imm, Instruction, Reg
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.nans.halves import Part, halves_of
from sassxlate.lowering.nans.reads import (
    BITS,
    DIRTY,
    WIDE,
    Nan,
    carries,
    is_plain,
    made,
    moved,
    numeric,
    sources_of_doubles,
    words_of_doubles,
)
from sassxlate.lowering.nans.values import ANY, Sources, float_result

# Sets of makers by number, in order: mostly of one or two, of which a set takes four times the
# memory.
Makers = tuple[int, ...]


def union(a: Makers, b: Makers) -> Makers:
    """One of the two objects where it has all."""
    if a is b or not b:
        return a
    if not a:
        return b
    known = a if len(a) < 8 else frozenset(a)
    more = [maker for maker in b if maker not in known]
    if not more:
        return a
    if len(more) + len(a) == len(b):
        return b
    return tuple(sorted([*a, *more]))


class Value(NamedTuple):
    """What is known of a register: its bits (of :class:`.reads.Nan`), its bound as a float, the
    makers of its NaN."""

    bits: int
    bound: int = ANY
    makers: Makers = ()

    def joined(self, other: Value) -> Value:
        if self == other:
            return self
        makers = union(self.makers, other.makers)
        bits, bound = self.bits | other.bits, max(self.bound, other.bound)
        for one in (self, other):  # no new object where it is one of the two
            if bits == one.bits and bound == one.bound and makers == one.makers:
                return one
        return Value(bits, bound, makers)


UNKNOWN: Final = Value(int(BITS))
# Values without makers, each made once, so that equal states are the same objects.
_CLEAN: Final[dict[int, Value]] = {}


def clean(bits: int, bound: int) -> Value:
    """What is known of a register that no NaN is followed to."""
    key = bound << 7 | bits
    known = _CLEAN.get(key)
    if known is None:
        _CLEAN[key] = known = Value(bits, bound)
    return known


def number(bound: int) -> Value:
    """A float whose NaN is SASS's."""
    return clean(int(Nan.FREE16), bound)


State = dict[int, Value]  # by the number of the register's bit; a missing one is UNKNOWN


# How an instruction's result comes about: nothing is known of it; it may be one of several sources,
# bit for bit; a float whose NaN is SASS's; a NaN that may be another, of binary32, of halves, of a
# double or its high word; two halves, each of a source; a word of a double that is shuffled, where
# all else that is shuffled is repaired before.
NOTHING, COPY, NUMBER, SINGLE, HALVES, DOUBLE, PARTS, SHUFFLED = range(8)


class Step(NamedTuple):
    """One instruction.

    ``reads``: registers that it reads as bits, each with the differences that it would see.
    ``moved``: those that it moves; ``copied``: the same without those that it reads as numbers.
    ``sources``: the registers of its operands of binary32; ``size`` is the result's bound if
    nothing is known of them.
    ``copies``: for each word of the result the sources that it may be, registers or values; of
    PARTS those of the lower and the upper half.
    ``passes``: registers whose NaN of a double it passes on; ``carries``: to a float.
    ``pairs``: the low words of doubles that it reads as numbers, -1 for none, and the high ones.
    """

    ins: Instruction
    reads: tuple[tuple[int, int], ...]
    copied: tuple[int, ...]
    moved: tuple[int, ...]
    writes: tuple[int, ...]
    plain: bool  # no guard
    movable: bool  # whether code may be inserted before it
    makes: int
    made: int  # of Nan
    words: tuple[int, ...]
    copies: tuple[tuple[int | Value, ...], ...]
    sources: tuple[int, ...]
    size: int | None
    passes: tuple[int, ...]
    carries: bool
    pairs: tuple[tuple[int, int], ...] = ()


_DIRTY: Final = int(DIRTY)
_WIDE: Final = int(WIDE)
_HALVES: Final = int(Nan.HALVES | Nan.BRAIN)
_HIGH: Final = int(Nan.HIGH)
_LOW: Final = int(Nan.LOW)
# By the registers that an instruction without floats reads: all of them are read as bits.
_AS_BITS: Final[dict[tuple[int, ...], tuple[tuple[int, int], ...]]] = {}
_READ: Final[dict[int, tuple[int, int]]] = {}
_MOST: Final = 1 << 14
# By the first register and how many there are.
_RUNS: Final[dict[int, tuple[int, ...]]] = {}


def steps(block: Block, idle: frozenset[int], *, tier: bool = False) -> list[Step]:
    """The instructions of a block that are translated, by the optimising tier or the rules."""
    last = block.last
    ends = traits(last).ends_block
    return [
        _step(ins, not (ends and ins is last), tier)
        for ins in block.instructions
        if ins.offset not in idle
    ]


def names(some: list[Step]) -> frozenset[int]:
    """The registers on which what steps do depends, or that they change."""
    out: set[int] = set()
    for step in some:
        for register, _ in step.reads:
            out.add(register)
        out.update(step.copied)
        out.update(step.moved)
        out.update(step.writes)
        out.update(step.words)
        out.update(step.sources)
        out.update(step.passes)
        # Which words make up doubles depends on both.
        out.update([register - 1 for register in step.writes])
        for sources in step.copies:
            out.update([source for source in sources if isinstance(source, int)])
    return frozenset(out)


def put(state: State, register: int, value: Value) -> None:
    """Enters what is known of a register."""
    if value == UNKNOWN:
        if register in state:
            del state[register]
    else:
        state[register] = value


def forget(step: Step, state: State) -> None:
    """Nothing is known of what an instruction writes, if its guard holds: :func:`put` for most
    instructions, of which hardly a register was known before."""
    for register in step.writes:
        known = state.get(register)
        if known is None:
            continue
        if step.plain:
            del state[register]
        else:
            put(state, register, UNKNOWN.joined(known))


def _step(ins: Instruction, movable: bool, tier: bool) -> Step:
    writes = tracked(ins.writes)
    words = _words(ins, "Rd")
    parts = halves_of(ins) if tier else None
    if parts is not None:
        return _parts(ins, movable, writes, words, parts)
    roles = moved(ins, tier=tier)
    if is_plain(ins) and not roles:
        if ins.mnemonic == "SHFL" and (source := _words(ins, "Ra")):
            bits = _as_bits(tracked(ins.reads))
            return Step(
                ins, bits, (), (), writes, ins.guard.is_true, movable, SHUFFLED, 0, words,
                (source,), (), None, (), False,
            )  # fmt: skip
        bits = _as_bits(tracked(ins.reads))
        return Step(
            ins, bits, (), (), writes, ins.guard.is_true, movable, NOTHING, 0, words, (), (), None,
            (), False,
        )  # fmt: skip
    kind, carried = int(made(ins, tier=tier)), carries(ins)
    reads, copied = _reads(ins, roles, tier)
    origin: tuple[int, ...] = ()
    for role in roles:
        origin += _words(ins, role)
    makes, size = NOTHING, None
    copies: tuple[tuple[int | Value, ...], ...] = ()
    sources: tuple[int, ...] = ()
    if roles:
        makes = COPY
        copies = tuple([_sources(ins, roles, n) for n in range(len(words))])
    elif kind & _WIDE:
        makes = DOUBLE
    elif kind & _HALVES:
        makes = HALVES
    else:
        size = float_result(ins, Sources(ins))
        if kind:
            makes = SINGLE
        elif size is not None and len(words) == 1:
            makes = NUMBER
        if makes and size is not None:
            sources = _registers(ins)
    passes: tuple[int, ...] = ()
    if carried or kind & _WIDE:
        for role in sources_of_doubles(ins):
            passes += _words(ins, role)
    return Step(
        ins, reads, copied, origin, writes, ins.guard.is_true, movable, makes, kind, words,
        copies, sources, size, passes, carried and not roles, _pairs(ins),
    )  # fmt: skip


def _pairs(ins: Instruction) -> tuple[tuple[int, int], ...]:
    out: list[tuple[int, int]] = []
    for below, above in words_of_doubles(ins):
        low, high = _words(ins, below), _words(ins, above)
        if low and high:
            alone = below == above and len(low) == 1
            out.append((-1 if alone else low[0], high[0] if len(high) == 1 else high[1]))
    return tuple(out)


def _parts(
    ins: Instruction,
    movable: bool,
    writes: tuple[int, ...],
    words: tuple[int, ...],
    parts: tuple[Part, Part],
) -> Step:
    """An instruction that moves halves: it reads others than those as bits."""
    copies = tuple([_part(ins, part) for part in parts])
    halves = {source for (source,) in copies if isinstance(source, int)}
    reads = [(r, _DIRTY & ~_HALVES if r in halves else _DIRTY) for r in tracked(ins.reads)]
    return Step(
        ins, tuple(reads), tuple(halves), (), writes, ins.guard.is_true, movable, PARTS, 0, words,
        copies, (), None, (), False,
    )  # fmt: skip


def _part(ins: Instruction, part: Part) -> tuple[int | Value]:
    """Where a half comes from."""
    if isinstance(part, int):
        free = part & 0x7FFF > 0x7C00 and part != 0x7FFF
        return (Value(int(Nan.FREE16) if free else 0),)
    (register,) = _words(ins, part[0]) or (None,)
    return (UNKNOWN if register is None else register,)


def _reads(
    ins: Instruction, copies: tuple[str, ...], tier: bool
) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """The registers that are read as bits, and those that are moved, of the roles ``copies``."""
    read = tracked(ins.reads)
    if not read:
        return (), ()
    roles, no_effect = numeric(ins, tier=tier)
    if not roles and not copies:
        return _as_bits(read), ()
    blind = int(no_effect)
    seen = dict.fromkeys(read, _DIRTY)
    for role in roles:
        for n, word in enumerate(_words(ins, role)):
            if word in seen:
                seen[word] &= ~((_HIGH if n else _LOW) if blind == _WIDE else blind)
    copied: list[int] = []
    # A shuffle's value may be the number of its lane, too.
    bits = _words(ins, "Rb") + _words(ins, "Rc") if ins.mnemonic == "SHFL" else ()
    for role in copies:
        for word in _words(ins, role):
            if word not in bits and seen.pop(word, 0):
                copied.append(word)
    return tuple([_read(word, what) for word, what in seen.items() if what]), tuple(copied)


def _read(word: int, what: int) -> tuple[int, int]:
    """The one object for a register and what of it is read, of which a long kernel's steps have
    tens of thousands."""
    key = what << 10 | word
    known = _READ.get(key)
    if known is None:
        known = _READ[key] = word, what
    return known


def _as_bits(read: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    known = _AS_BITS.get(read)
    if known is None:
        known = tuple([_read(word, _DIRTY) for word in read])
        if len(_AS_BITS) >= _MOST:
            _AS_BITS.clear()
        _AS_BITS[read] = known
    return known


def _words(ins: Instruction, role: str) -> tuple[int, ...]:
    """The registers of an operand; none for RZ and for what is no register."""
    operand = ins.operands.get(role)
    if not isinstance(operand, Reg) or operand.is_zero:
        return ()
    first, width = FIRST[operand.file] + operand.index, operand.width
    known = _RUNS.get(first << 8 | width)
    if known is None:
        known = tuple(range(first, first + width))
        if width < 256:
            _RUNS[first << 8 | width] = known
    return known


def _registers(ins: Instruction) -> tuple[int, ...]:
    return _words(ins, "Ra")[:1] + _words(ins, "Rb")[:1] + _words(ins, "Rc")[:1]


def _sources(ins: Instruction, roles: tuple[str, ...], n: int) -> tuple[int | Value, ...]:
    """What word ``n`` of a moved result may be."""
    out: list[int | Value] = []
    for role in roles:
        words = _words(ins, role)
        out.append(words[n] if words else _constant(ins, role))
    return tuple(out)


def _constant(ins: Instruction, role: str) -> Value:
    """A source without a tracked register: RZ, an immediate, a constant."""
    operand = ins.get(role)
    if isinstance(operand, Reg) and operand.is_zero:
        return Value(0, Sources(ins).of(role))
    if isinstance(operand, Imm) and operand.bits == 32:
        bits = 0
        if operand.value & 0x7FFFFFFF > 0x7F800000 and operand.value != 0x7FFFFFFF:
            bits |= int(Nan.FREE32)
        for half in (operand.value & 0xFFFF, operand.value >> 16 & 0xFFFF):
            if half & 0x7FFF > 0x7C00 and half != 0x7FFF:
                bits |= int(Nan.FREE16)
        return Value(bits, Sources(ins).of(role))
    return UNKNOWN


__all__ = [
    "COPY", "DOUBLE", "HALVES", "NOTHING", "NUMBER", "PARTS", "SHUFFLED", "SINGLE", "UNKNOWN",
    "Makers", "State", "Step", "Value", "clean", "forget", "names", "number", "put", "steps",
    "union",
]  # fmt: skip

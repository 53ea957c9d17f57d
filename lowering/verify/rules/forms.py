"""Instruction words of every form that a lowering rule may meet, made from the encoding tables.

For each row of the tables whose mnemonic has a rule: every modifier value, each sign,
complement and selector, RZ, PT and !PT in each place, destinations that are also sources, pairs
that overlap, guards, constants and uniform registers, and random combinations of all these.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.spec import (
    SB,
    B,
    Bits,
    C,
    Fixed,
    I,
    L,
    M,
    Mask,
    Mod,
    N,
    Operand,
    P,
    R,
    Row,
    S,
    When,
    bits,
)
from sassxlate.errors import DecodeError
from sassxlate.lowering.rules import TABLE

# Register numbers of operands: general and uniform registers have the same numbers.  Multiples of
# four, for tuples; an operand not named here gets the next.
REGISTERS = {"Ra": 4, "Rb": 8, "Rc": 12, "Rd": 16}
SPARE = (20, 24, 28, 32, 36)
PREDICATES = {"Pu": 3, "Pv": 4, "Pp": 0, "Pq": 1, "Pr": 2}
GUARD = 12  # the lowest bit
CONSTANT, BANK = 0x240, 0  # an aligned pair of bank 0
NO_BITS = Bits(())
Usable: TypeAlias = Callable[[Instruction], bool]
_CONTROL = 0x7E0 | 15  # stall 15, no barrier
_EDGES = (
    0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 127, 128, 255, 256, 0x7FFF,
    0x8000, 0xFFFF, 0x10000, 0x12345678, 0x3C003C00, 0x3C000000, 0x00800000, 0x007FFFFF, 0x3E22F983,
    0x3F000000, 0x3F800000, 0x40000000, 0x40800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000,
    0x7FF00000, 0x7FF80000, 0x3FE00000, 0x3FF00000, 0x40000000, 0x7FFFFFFF,
)  # fmt: skip
_POWERS = tuple(1 << i for i in range(32))
EDGES = tuple(
    dict.fromkeys(
        v & 0xFFFFFFFF
        for e in (*_EDGES, *_POWERS)
        for v in ((e, -e, e ^ 0x80000000) if e in _EDGES else (e, -e))
    )
)


def put(word: int, field: Bits, value: int) -> int:
    """The word with a field's value replaced."""
    for lo, width in field.parts:
        ones = (1 << width) - 1
        word = word & ~(ones << lo) | (value & ones) << lo
        value >>= width
    return word


@dataclass(frozen=True, slots=True)
class FormCase:
    """One word to verify a rule on, and the role of an immediate that represents all values."""

    ins: Instruction
    immediate: str = ""  # the role; the word holds one of its many values
    field: Bits = NO_BITS
    alone: bool = False  # only one modifier, sign or selector is special

    def __reduce__(self) -> tuple[object, ...]:
        """For other processes: the word is decoded again there, its operands cannot be pickled."""
        ins = self.ins
        return _again, (ins.word, ins.offset, ins.arch, self.immediate, self.field, self.alone)


def _again(word: int, offset: int, arch: int, immediate: str, field: Bits, alone: bool) -> FormCase:
    return FormCase(decode(word, offset, arch), immediate, field, alone)


@dataclass(frozen=True, slots=True)
class _Place:
    """An operand's register field: its width in bits, and the value of RZ or PT there."""

    role: str
    field: Bits
    zero: int
    write: bool
    file: str
    flip: int = 0


def _slot(operand: Operand) -> Operand:
    return operand.slot if isinstance(operand, When) else operand


class _Form:
    """One row with its operands in place, and the parts that may vary."""

    def __init__(self, row: Row, arch: int, generation: int) -> None:
        self.row, self.arch = row, arch
        self.word = row.opcode & 0xFFF | row.opcode >> 12 << 91 | 7 << GUARD
        for field, value in row.fixed:
            self.word = put(self.word, field, value)
        for field in row.ones:
            self.word = put(self.word, field, -1)
        self.uniform_bits = 8 if generation >= 100 else 6
        self.places: list[_Place] = []
        self.flags: list[tuple[Bits, int]] = []
        self.choices: list[tuple[Bits, Sequence[int]]] = []
        self.immediates: list[tuple[str, I | Mask]] = []
        spare: list[int] = [*SPARE]
        self.wide: list[tuple[Bits, int]] = []
        self.bindless = False  # constants through a descriptor, which no rule translates
        for role, operand in row.operands.items():
            self._place(role, _slot(operand), spare)
        self.mods = [m for m in row.mods if isinstance(m, Mod) and m.field.parts]

    def _register(self, role: str, slot: R, spare: list[int]) -> None:
        uniform = slot.file == "UR"
        width = self.uniform_bits if uniform else 8
        field = slot.split or bits(slot.lo, width)
        index = REGISTERS.get(role)
        if index is None:
            index = spare.pop(0)
        self.word = put(self.word, field, index)
        self.places.append(_Place(role, field, (1 << width) - 1, slot.write, slot.file))
        if not slot.write:
            self._signs(slot)

    def _signs(self, slot: R | C) -> None:
        self.flags += [(bits(b), 1) for b in (slot.neg, slot.abs, slot.inv) if b is not None]
        if slot.select:
            self.flags += [(slot.select.field, v) for v in slot.select.names]

    def _place(self, role: str, slot: Operand, spare: list[int]) -> None:
        match slot:
            case R():
                self._register(role, slot, spare)
            case P():
                field = bits(slot.lo, 3)
                self.word = put(self.word, field, PREDICATES.get(role, 5) ^ slot.flip)
                place = _Place(role, field, 7 ^ slot.flip, slot.write, slot.file, slot.flip)
                self.places.append(place)
                if not slot.write and slot.inv is not None:
                    self.flags.append((bits(slot.inv), 1))
            case I() | Mask():
                self.immediates.append((role, slot))
            case C():
                self.word = put(self.word, slot.offset, CONSTANT // slot.scale)
                self.word = put(self.word, slot.bank, BANK)
                self._signs(slot)
                if slot.index is not None:
                    self._address(f"{role} index", slot.index, slot.index_file, 8)
                if slot.bindless is None:
                    self.choices.append((slot.bank, (3,)))
                else:
                    self.bindless = True
            case M():
                self._memory(slot, 28 if role == "dst" else 4)
            case S():
                self.choices.append((slot.field, range(1 << slot.field.width)))
            case N():
                self.choices.append((slot.field, list(slot.names)))
            case L() | B() | SB() | When() | Fixed():
                pass

    def _address(self, role: str, lo: int, file: str, index: int) -> None:
        width = self.uniform_bits if file == "UR" else 8
        field = bits(lo, width)
        self.word = put(self.word, field, index)
        self.places.append(_Place(role, field, (1 << width) - 1, False, file))

    def _memory(self, slot: M, base: int) -> None:
        if slot.base is not None:
            self._address("base", slot.base, "R", base)
        if slot.ureg is not None:
            self._address("ureg", slot.ureg, "UR", 24)
        for bit in (slot.wide, slot.uwide, slot.desc, slot.desc_shown):
            if bit is not None:
                self.flags.append((bits(bit), 1))
        for bit in (slot.wide, slot.uwide):
            if bit is not None:
                self.wide.append((bits(bit), 1))
        if slot.scale is not None:
            self.choices.append((slot.scale, range(1 << slot.scale.width)))
        if not slot.offset.width:
            return
        top = 1 << slot.offset.width - 1
        offsets = (4, 0x7FC, 0x800, 0xFFC, 0x1000, 0x7FFC, top - 4, top, -4, -0x800, -0x1000)
        self.choices.append((slot.offset, offsets))

    def legal(self, word: int) -> Instruction | None:
        """The instruction of a word; None if it is not an instruction."""
        word = word & ~(((1 << 23) - 1) << 105) | _CONTROL << 105
        try:
            return decode(word, 0, self.arch)
        except DecodeError:
            return None


def _plain(form: _Form, chance: random.Random, word: int | None = None) -> int:
    """The word with a random value in each immediate."""
    word = form.word if word is None else word
    for role, slot in form.immediates:
        word = put(word, slot.field, _immediate(form, role, slot, chance))
    return word


def _immediate(form: _Form, role: str, slot: I | Mask, chance: random.Random) -> int:
    width = slot.field.width
    if role == "mask" and form.row.effect:
        return chance.choice((0x7F, 0x2A, 0x15))
    if role in ("mask", "wmask") and "MOV" in form.row.mnemonic:
        return 15
    if width <= 8:
        return chance.randrange(1 << width)
    return 0x5A5A5A5A & (1 << width) - 1 if chance.random() < 0.5 else chance.choice(EDGES)


def _aliases(form: _Form) -> Iterator[tuple[tuple[Bits, int], ...]]:
    """Destinations that equal or overlap sources, equal sources, RZ, PT and !PT."""
    targets = [p for p in form.places if p.write]
    sources = [p for p in form.places if not p.write]
    for place in form.places:
        yield ((place.field, place.zero),)
    for a in targets:
        for b in sources:
            if a.file != b.file:
                continue
            if a.file in ("P", "UP"):
                yield ((a.field, PREDICATES.get(b.role, 5) ^ a.flip),)
                continue
            at = b.field.get(form.word)
            for shift in (0, 1, -1, 2, -2):
                yield ((a.field, at + shift),)
    for n, a in enumerate(sources):
        for b in sources[n + 1 :]:
            if a.file == b.file and a.file in ("R", "UR"):
                yield ((b.field, a.field.get(form.word)),)
    if len(targets) > 1:  # both results discarded; one predicate for both would be undefined
        yield tuple((p.field, p.zero) for p in targets)


def _guards(form: _Form) -> Iterator[int]:
    """Guards: a predicate and its complement, one that the instruction writes, one that it reads,
    and one that is never true."""
    yield from (5, 5 | 8, 7 | 8)
    for place in form.places:
        if place.file == form.row.guard:
            index = PREDICATES.get(place.role, 5)
            yield from (index, index | 8)


def _mixed(form: _Form, word: int, chance: random.Random) -> int:
    """A word with random modifiers, signs and choices."""
    for mod in form.mods:
        if chance.random() < 0.6:
            word = put(word, mod.field, chance.choice(list(mod.names)))
    for field, value in form.flags:
        if chance.random() < 0.3:
            word = put(word, field, value)
    for field, some in form.choices:
        if some and chance.random() < 0.3:
            word = put(word, field, chance.choice(some))
    return word


def _bases(form: _Form, chance: random.Random, usable: Usable) -> list[int]:
    """One or two words to vary: translated ones, as rich as possible.

    No translated instruction needs second results, or addresses of 32 bits: words without them are
    tried first, then words with everything random.
    """
    quiet = form.word
    for place in form.places:
        if place.file in ("P", "UP"):
            quiet = put(quiet, place.field, place.zero)
    full = form.word
    for field, value in form.wide:  # addresses of 32 bits are refused, or name nothing
        full, quiet = put(full, field, value), put(quiet, field, value)
    found: list[int] = []
    for base in (full, quiet):
        ins = form.legal(_plain(form, chance, base))
        if ins is not None and usable(ins) and base not in found:
            found.append(base)
    for _ in range(0 if found else 400):
        base = _mixed(form, chance.choice((form.word, quiet, full)), chance)
        ins = form.legal(_plain(form, chance, base))
        if ins is not None and usable(ins):
            return [base]
    return found[:2]


def _alone(form: _Form, base: int, chance: random.Random) -> Iterator[int]:
    """Each modifier value, sign, selector and choice by itself."""
    yield _plain(form, chance, base)
    for mod in form.mods:
        for value in mod.names:
            yield put(_plain(form, chance, base), mod.field, value)
    for field, value in form.flags:
        yield put(_plain(form, chance, base), field, value)
    for field, some in form.choices:
        for value in some:
            yield put(_plain(form, chance, base), field, value)


def _places(form: _Form, base: int, chance: random.Random) -> Iterator[int]:
    """Coinciding registers, and guards."""
    for changes in _aliases(form):
        word = _plain(form, chance, base)
        for field, value in changes:
            word = put(word, field, value)
        yield word
    for guard in _guards(form):
        yield _plain(form, chance, base) & ~(15 << GUARD) | guard << GUARD


def _random(form: _Form, base: int, chance: random.Random, count: int) -> Iterator[int]:
    aliases, guards = list(_aliases(form)), list(_guards(form))
    for _ in range(count):
        word = _plain(form, chance, _mixed(form, base, chance))
        if aliases and chance.random() < 0.3:
            for field, value in chance.choice(aliases):
                word = put(word, field, value)
        if guards and chance.random() < 0.2:
            word = word & ~(15 << GUARD) | chance.choice(guards) << GUARD
        yield word


def rows(generation: int, wanted: Callable[[str], bool]) -> list[Row]:
    """The rows whose mnemonic has a rule."""
    return [r for r in ROWS if r.of(generation) and r.mnemonic in TABLE and wanted(r.mnemonic)]


def cases(
    row: Row, arch: int, generation: int, combinations: int, seed: int, usable: Usable
) -> Iterator[FormCase]:
    """The words of one row, each once: refused ones among them too; only a few if all are refused.

    ``usable`` decides whether an instruction is translated at all.
    """
    chance = random.Random(f"{seed} {row.mnemonic} {row.opcode}")
    form = _Form(row, arch, generation)
    wide = [(r, s.field) for r, s in form.immediates if isinstance(s, I) and s.field.width > 8]
    role, field = wide[0] if wide else ("", NO_BITS)
    bases = [] if form.bindless else _bases(form, chance, usable)
    found: set[int] = set()
    for base in bases:
        for word in _alone(form, base, chance):
            ins = form.legal(word)
            if ins is not None and ins.word not in found:
                found.add(ins.word)
                yield FormCase(ins, role, field, alone=True)
    rest: list[int] = [_mixed(form, form.word, chance) for _ in range(0 if bases else 8)]
    for base in bases:
        rest += _places(form, base, chance)
        rest += _random(form, base, chance, combinations)
    for base in bases[:1]:
        rest += _bytes(form, base, chance)
    for word in rest:
        ins = form.legal(word)
        if ins is not None and ins.word not in found:
            found.add(ins.word)
            yield FormCase(ins)


def _bytes(form: _Form, word: int, chance: random.Random) -> Iterator[int]:
    """Every value of immediates of at most a byte: truth tables, selectors."""
    base = _plain(form, chance, word)
    for _, slot in form.immediates:
        if slot.field.width <= 8:
            yield from (put(base, slot.field, value) for value in range(1 << slot.field.width))


def with_immediate(case: FormCase, value: int) -> Instruction | None:
    """The instruction with another value in its immediate; None if that is not an instruction."""
    try:
        return decode(put(case.ins.word, case.field, value), 0, case.ins.arch)
    except DecodeError:
        return None


__all__ = ["EDGES", "REGISTERS", "FormCase", "cases", "put", "rows", "with_immediate"]

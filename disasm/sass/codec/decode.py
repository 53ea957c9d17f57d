"""Decoding of 128-bit SASS words, driven by the rows of :mod:`.tables`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from sassxlate.disasm.sass.codec import legality
from sassxlate.disasm.sass.codec.implicit_registers import IMPLICIT
from sassxlate.disasm.sass.codec.operand_bits import operand_bits, relative
from sassxlate.disasm.sass.codec.row_compiler import Decoder, Value, make
from sassxlate.disasm.sass.instruction import (
    Control,
    Imm,
    Instruction,
    Label,
    Operand,
    Pred,
    PredFile,
    RegRef,
)
from sassxlate.disasm.sass.tables import ROWS
from sassxlate.disasm.sass.tables.spec import GENERATION_OF, Bits, Idiom, Row, bits
from sassxlate.errors import DecodeError

WORD_BYTES = 16
_OPCODE_MASK = 0xFFF | 1 << 91
_GUARD = bits(12, 4)
_CONTROL = bits(105, 21)
_SCHEDULING = legality.CONTROL_BITS >> 105
_CACHE_LIMIT = 1 << 13  # remembered values per operand slot and variant
_WORDS = 1 << 11  # remembered words, at least: four times as many are found a tenth more often
_NONE: frozenset[RegRef] = frozenset()


@dataclass(frozen=True, slots=True)
class BadWord:
    """A word that is not an instruction of its architecture, with the reason."""

    offset: int
    word: int
    error: DecodeError


def opcode_of(word: int) -> int:
    """Bits 0 to 11 with bit 91 above them."""
    return word & 0xFFF | word >> 79 & 0x1000


def opcode_bits(opcode: int) -> int:
    """The inverse of :func:`opcode_of`."""
    return opcode & 0xFFF | (opcode & 0x1000) << 79


class _Guard(NamedTuple):
    """A guard, its text, and the predicate that it reads."""

    pred: Pred
    text: str
    reads: frozenset[RegRef]


def _guard(raw: int, file: PredFile) -> _Guard:
    index, inv = raw & 7, bool(raw & 8)
    pred = Pred(file, index, inv)
    if index == 7:
        return _Guard(pred, f"@!{file}T " if inv else "", _NONE)
    name = f"@{'!' if inv else ''}{file}{index} "
    return _Guard(pred, name, frozenset((RegRef(file, index),)))


_GUARDS: Final = [_guard(raw, "P") for raw in range(16)]
_UNIFORM_GUARDS: Final = [_guard(raw, "UP") for raw in range(16)]


def guard_text(word: int, file: PredFile) -> str:
    """The text before the mnemonic: ``@!P0 `` or nothing."""
    return (_GUARDS if file == "P" else _UNIFORM_GUARDS)[word >> 12 & 15].text


_CONTROLS: Final[dict[int, Control]] = {}


def control_of(word: int) -> Control:
    """The scheduling information of a word."""
    raw = word >> 105 & 0x1FFFFF
    known = _CONTROLS.get(raw)
    if known is None:
        known = _CONTROLS[raw] = Control(
            stall=raw & 15,
            yield_=bool(raw >> 4 & 1),
            write_barrier=raw >> 5 & 7,
            read_barrier=raw >> 8 & 7,
            wait_mask=raw >> 11 & 63,
            reuse=raw >> 17 & 15,
        )
    return known


@dataclass(frozen=True, slots=True)
class _Token:
    """One role of a print template; ``lead`` is the separator before it."""

    role: str
    literal: bool
    elide: bool
    lead: str


def tokens(template: str, context: Mapping[str, int]) -> tuple[_Token, ...]:
    """The roles of a template that are printed under these modifiers."""
    out: list[_Token] = []
    for piece in template.split(","):
        for i, token in enumerate(piece.split()):
            role, _, condition = token.partition(":")
            if condition:
                wanted = not condition.startswith("!")
                if bool(context.get(condition.lstrip("!"), 0)) != wanted:
                    continue
            elide = role.endswith("?")
            role = role.rstrip("?")
            literal = role.startswith("'")
            out.append(_Token(role.strip("'"), literal, elide, " " if i else ", "))
    return tuple(out)


class _Slot:
    """An operand of a variant, with the values so far, by the bits that determine them."""

    __slots__ = ("decode", "mask", "role", "seen")

    def __init__(self, role: str, mask: int, decode: Decoder, remember: bool) -> None:
        self.role = role
        self.mask = mask
        self.decode = decode
        self.seen: dict[int, Value] | None = {} if remember else None

    def remember(self, part: int, word: int, offset: int) -> Value:
        """Decodes and caches a new value."""
        value = self.decode(word, offset)
        if self.seen is not None and len(self.seen) < _CACHE_LIMIT:
            self.seen[part] = value
        return value


@dataclass(frozen=True, slots=True)
class _Variant:
    """A row under given modifiers."""

    modifiers: tuple[str, ...]
    head: str
    slots: tuple[_Slot, ...]
    # The printed parts: the operand's index, or None and a literal; whether it may be omitted;
    # the separator after another operand.
    printed: tuple[tuple[int | None, str, bool, str], ...]


class _Settled(NamedTuple):
    """The modifiers of a word: their fields' values, the register counts they give, the parts."""

    context: dict[str, int]
    widths: dict[str, int]
    parts: tuple[str, ...]


class CompiledRow:
    """A row compiled for one generation; ``number`` is its index in its :class:`Index`."""

    def __init__(self, row: Row, generation: int) -> None:
        self.number = -1
        self.generation = generation
        self.match_mask = self.match_value = 0
        for fixed, value in row.fixed:
            if fixed.get(_place(fixed, value)) != value:
                raise ValueError(f"{row.mnemonic}: fixed value does not fit")
            self.match_mask |= fixed.mask
            self.match_value |= _place(fixed, value)
        self.legal = legality.find(row.opcode, self.match_mask, self.match_value, generation)
        self.row = row = legality.without_reuse(row, self.legal)
        mods = field = 0
        for mod in row.mods:
            mods |= mod.field.mask
        self.mod_mask = mods
        self.placed = any(map(relative, row.operands.values()))  # its place is in its operands
        self.operand_masks = {r: operand_bits(s, generation) for r, s in row.operands.items()}
        for mask in self.operand_masks.values():
            field |= mask
        used = _OPCODE_MASK | _GUARD.mask | _CONTROL.mask | mods | field | self.match_mask
        for free in (*row.free, *row.ones):
            used |= free.mask
        self.zero_mask = (1 << 128) - 1 & ~used
        self.reserved_mask = self.legal.reserved & self.zero_mask
        if self.legal is legality.ANYTHING and generation >= row.reserved_since:  # not probed
            for reserved in row.reserved:
                self.reserved_mask |= reserved.mask
            if self.reserved_mask & ~self.zero_mask:
                raise ValueError(f"{row.mnemonic}: a reserved field overlaps others")
        self.key_mask = self.mod_mask | self.legal.mask
        self._scheduled: set[int] = set()
        self._variants: dict[int, _Variant] = {}
        self._settled: dict[tuple[object, ...], _Variant] = {}

    def settle(self, word: int) -> _Settled:
        """The values of the modifiers; SX0202 if one is undefined."""
        context: dict[str, int] = {}
        widths: dict[str, int] = {}
        parts: list[str] = []
        for mod in self.row.mods:
            if isinstance(mod, Idiom):
                name: str | None = mod.spell(word)
                context[mod.name] = int(bool(name))
            else:
                value = mod.field.get(word)
                name = mod.names.get(value)
                if name is None:
                    raise DecodeError(
                        "SX0202", f"{self.row.mnemonic}: undefined value {value} of {mod.name}"
                    )
                context[mod.name] = value
                widths[mod.name] = mod.widths.get(value, 1)
            if name:
                parts += name.split(".")
        return _Settled(context, widths, tuple(parts))

    def variant(self, word: int) -> _Variant:
        """The row under the modifiers of a word; SX0202 if one is undefined."""
        key = word & self.key_mask
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variant(word)
            if len(self._variants) < _CACHE_LIMIT:
                self._variants[key] = variant
        return variant

    def scheduled(self, word: int) -> None:
        """SX0202 if the form does not take a word's scheduling information."""
        bits = word >> 105 & _SCHEDULING
        if not self.legal.takes_control(bits):
            raise DecodeError(
                "SX0202", f"{self.row.mnemonic}: undefined scheduling information {bits:#x}"
            )
        self._scheduled.add(bits)

    def _variant(self, word: int) -> _Variant:
        settled = self.settle(word)
        self.legal.check(word, self.row.mnemonic)
        return self.variant_of(settled)

    def variant_of(self, settled: _Settled) -> _Variant:
        """The row under given modifiers."""
        context, widths, modifiers = settled
        # Words with the same idiom are one variant, although the idiom's bits belong to operands.
        same = (*context.items(), modifiers)
        known = self._settled.get(same)
        if known is not None:
            return known
        slots = tuple(
            _Slot(
                role,
                self.operand_masks[role],
                make(spec, context, widths, self.generation),
                not relative(spec),
            )
            for role, spec in self.row.operands.items()
        )
        head = ".".join((self.row.mnemonic, *modifiers))
        roles = tuple(self.row.operands)
        printed = tuple(
            (None if t.literal else roles.index(t.role), t.role, t.elide, t.lead)
            for t in tokens(self.row.text, context)
        )
        variant = _Variant(modifiers, head, slots, printed)
        if len(self._settled) < _CACHE_LIMIT:
            self._settled[same] = variant
        return variant

    def decode(self, word: int, offset: int, arch: int, strict: bool = True) -> Instruction:
        """The instruction of a word that this row matches."""
        stray = word & (self.zero_mask if strict else self.reserved_mask)
        if stray:
            which = ", ".join(str(i) for i in range(128) if stray >> i & 1)
            raise DecodeError("SX0203", f"{self.row.mnemonic}: reserved bits are set: {which}")
        variant = self.variant(word)
        if word >> 105 & _SCHEDULING not in self._scheduled:
            self.scheduled(word)
        values: list[Value] = []
        guard = (_GUARDS if self.row.guard == "P" else _UNIFORM_GUARDS)[word >> 12 & 15]
        reads, writes = guard.reads, _NONE
        operands: dict[str, Operand] = {}
        for slot in variant.slots:
            seen = slot.seen
            if seen is None:
                value = slot.decode(word, offset)
            else:
                part = word & slot.mask
                value = seen.get(part) or slot.remember(part, word, offset)
            values.append(value)
            operands[slot.role] = value.operand
            # Where one operand alone names registers, its set is a shared one.
            if value.reads:
                reads = _shared(reads | value.reads) if reads else value.reads
            if value.writes:
                writes = _shared(writes | value.writes) if writes else value.writes
        text = guard.text + variant.head
        lead = " "
        for at, body, elide, before in variant.printed:
            if at is not None:
                value = values[at]
                if elide and value.default:
                    continue
                body = value.text
            if body:
                text += (lead or before) + body
            lead = ""
        if self.row.effect:
            read, written = set(reads), set(writes)
            IMPLICIT[self.row.effect](operands, read, written)
            reads, writes = _shared(frozenset(read)), _shared(frozenset(written))
        return Instruction(
            arch,
            offset,
            word,
            self.row.mnemonic,
            variant.modifiers,
            guard.pred,
            operands,
            control_of(word),
            reads,
            writes,
            text.rstrip(),
        )


_SETS: dict[frozenset[RegRef], frozenset[RegRef]] = {}


def _shared(refs: frozenset[RegRef]) -> frozenset[RegRef]:
    """The one object for equal sets: they are few, and without sharing take more memory than
    everything else."""
    if len(_SETS) >= 1 << 16:
        _SETS.clear()
    return _SETS.setdefault(refs, refs)


def _place(field: Bits, value: int) -> int:
    word = shift = 0
    for lo, width in field.parts:
        word |= (value >> shift & (1 << width) - 1) << lo
        shift += width
    return word


def code_address(operand: Operand | None, modifiers: tuple[str, ...], offset: int) -> int | None:
    """The code address that an instruction's text names, if any: its ``target`` or ``disp``.

    An indirect CALL.REL and RET.REL name the address that their register is added to.
    """
    if isinstance(operand, Label):
        return None if "ABS" in modifiers else operand.target
    if isinstance(operand, Imm) and "REL" in modifiers:
        return offset + WORD_BYTES + operand.value
    return None


def generation_of(arch: int) -> int:
    """The encoding generation of an architecture; SX0204 if it is not known."""
    try:
        return GENERATION_OF[arch]
    except KeyError:
        raise DecodeError("SX0204", f"sm_{arch} is not a known architecture") from None


class Index(Mapping[int, tuple[CompiledRow, ...]]):
    """The rows of a generation by opcode, those with fixed bits first; compiled when needed."""

    def __init__(self, generation: int) -> None:
        self._generation = generation
        self._raw: dict[int, list[Row]] = {}
        for row in ROWS:
            if row.of(generation):
                self._raw.setdefault(row.opcode, []).append(row)
        self._first: dict[int, int] = {}
        self._opcodes: list[int] = []  # the opcode of each row, by the row's number
        for opcode, rows in self._raw.items():
            self._first[opcode] = len(self._opcodes)
            self._opcodes += [opcode] * len(rows)
        self._made: dict[int, tuple[CompiledRow, ...]] = {}
        # Words decoded lately, of rows that say the same at every place.  Half of a kernel's words
        # are in kernels before it.
        self._words: dict[int, Instruction] = {}
        self._earlier: dict[int, Instruction] = {}

    def known(self, word: int) -> Instruction | None:
        """A word's instruction at some place and of some architecture, if it was decoded lately."""
        found = self._words.get(word)
        if found is None:
            found = self._earlier.get(word)
            if found is not None:
                self.remember(found)
        return found

    def remember(self, ins: Instruction) -> None:
        """Lets :meth:`known` find an instruction: the last so many, or twice as many."""
        if len(self._words) >= _WORDS:
            self._earlier, self._words = self._words, {}
        self._words[ins.word] = ins

    def rows(self, opcode: int) -> tuple[CompiledRow, ...]:
        """The rows of an opcode, none if it is unknown."""
        rows = self._made.get(opcode)
        if rows is None:
            found = [CompiledRow(row, self._generation) for row in self._raw.get(opcode, ())]
            rows = tuple(sorted(found, key=lambda r: -r.match_mask.bit_count()))
            for number, row in enumerate(rows, self._first.get(opcode, 0)):
                row.number = number
            self._made[opcode] = rows
        return rows

    def form(self, number: int) -> CompiledRow:
        """The row with a number."""
        opcode = self._opcodes[number]
        return self.rows(opcode)[number - self._first[opcode]]

    def __getitem__(self, opcode: int) -> tuple[CompiledRow, ...]:
        if opcode not in self._raw:
            raise KeyError(opcode)
        return self.rows(opcode)

    def __iter__(self) -> Iterator[int]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


@cache
def index(generation: int) -> Index:
    """The rows of a generation."""
    return Index(generation)


def row_of(word: int, generation: int) -> CompiledRow | None:
    """The row that matches a word, if any."""
    for row in index(generation).rows(word & 0xFFF | word >> 79 & 0x1000):
        if word & row.match_mask == row.match_value:
            return row
    return None


def _decode(table: Index, word: int, offset: int, arch: int, strict: bool) -> Instruction:
    known = table.known(word)
    if known is not None:
        return known.placed(offset, arch)
    rows = table.rows(word & 0xFFF | word >> 79 & 0x1000)
    for row in rows:
        if word & row.match_mask == row.match_value:
            made = row.decode(word, offset, arch, strict)
            if strict and not row.placed:
                table.remember(made)
            return made
    if not rows:
        raise DecodeError("SX0201", f"unknown opcode {opcode_of(word):#06x} on sm_{arch}")
    raise DecodeError(
        "SX0202", f"{rows[0].row.mnemonic}: no form of this opcode on sm_{arch} has these bits"
    )


def decode(word: int, offset: int, arch: int, *, strict: bool = True) -> Instruction:
    """Decode one word.

    ``offset`` is the word's place in its section in bytes, from which branch targets count;
    ``arch`` is the number of the architecture (80 for sm_80).  Without ``strict``, bits that
    belong to no field and that NVIDIA's disassembler ignores may be set.

    Raises :class:`DecodeError`: SX0201 unknown opcode, SX0202 undefined field value, SX0203
    reserved bits set, SX0204 unknown architecture.
    """
    table = index(generation_of(arch))
    try:
        return _decode(table, word, offset, arch, strict)
    except DecodeError as error:
        raise error.at(offset=offset, word=word) from None


def decode_or_bad(
    table: Index, word: int, offset: int, arch: int, strict: bool
) -> Instruction | BadWord:
    """As :func:`decode`, with the error as a value."""
    try:
        return _decode(table, word, offset, arch, strict)
    except DecodeError as error:
        place = error.at(offset=offset, word=word)
        assert isinstance(place, DecodeError)
        return BadWord(offset, word, place)

"""Sections decoded in columns: all words at once with NumPy, objects are made only on demand.

Words are grouped by opcode and form.  Whether a word is an instruction depends on few of its bits:
those that must be zero, the modifiers and what selects parts of operands.  Each distinct value of
these is checked once, by the same code that decodes single words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.sass.codec.decode import CompiledRow, generation_of, index
from sassxlate.disasm.sass.codec.legality import Legality
from sassxlate.disasm.sass.codec.operand_bits import failing_bits
from sassxlate.disasm.sass.tables.spec import Idiom
from sassxlate.errors import DecodeError

U64: TypeAlias = NDArray[np.uint64]
Indices: TypeAlias = NDArray[np.int64]

CONTROL = 105  # the lowest bit of the scheduling information
_HALF = (1 << 64) - 1
_WINDOW = 1 << 17  # words decoded at a time: bounds memory in use
_TABLE_BITS = 12  # keys of up to this many bits are looked up in a table
_REMEMBERED = 1 << 16  # most entries of a dictionary before it is cleared
_IDIOM_BITS = 8


class Gather:
    """Gathers the bits of a mask from many words, packed together."""

    __slots__ = ("_parts", "bits")

    def __init__(self, mask: int) -> None:
        self.bits = 0
        self._parts: list[tuple[int, np.uint64, np.uint64, np.uint64]] = []
        for column in (0, 1):
            half = mask >> 64 * column & _HALF
            while half:
                low = (half & -half).bit_length() - 1
                run = half >> low
                width = (~run & run + 1).bit_length() - 1
                ones = (1 << width) - 1
                part = (column, np.uint64(low), np.uint64(ones), np.uint64(self.bits & 63))
                self._parts.append(part)
                self.bits += width
                half &= ~(ones << low)

    def __call__(self, low: U64, high: U64) -> U64:
        """The bits of each word (given as halves); only for masks of at most 64 bits."""
        out: U64 | None = None
        for column, shift, ones, place in self._parts:
            part = (high if column else low) >> shift & ones
            if place:
                part <<= place
            out = part if out is None else out | part
        return np.zeros(len(low), np.uint64) if out is None else out


def word_of(low: U64, high: U64, i: int) -> int:
    """One word from its halves."""
    return int(low[i]) | int(high[i]) << 64


class _Spelled:
    """The spelled idioms of words, as numbers."""

    __slots__ = ("_gather", "_idiom", "_names", "_seen")

    def __init__(self, idiom: Idiom) -> None:
        self._idiom = idiom
        self._gather = Gather(idiom.field.mask)
        if self._gather.bits > 64:
            raise ValueError(f"the idiom {idiom.name} looks at more than 64 bits")
        self._names: dict[str, int] = {}
        self._seen: dict[int, int] = {}

    def __call__(self, low: U64, high: U64) -> U64:
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        raw = self._gather(low, high).tolist()
        out = list(map(self._seen.get, raw))
        for i, number in enumerate(out):
            if number is None:
                name = self._idiom.spell(word_of(low, high, i))
                number = self._names.setdefault(name, len(self._names))
                if number >> _IDIOM_BITS:
                    raise ValueError(f"the idiom {self._idiom.name} has too many spellings")
                out[i] = self._seen[raw[i]] = number
        return np.array(out, np.uint64)


class DecodePlan:
    """The plan for decoding the words of one row together."""

    def __init__(self, row: CompiledRow) -> None:
        self.row = row
        self.zero = _halves(row.zero_mask)
        self.reserved = _halves(row.reserved_mask)
        slots = row.row.operands.values()
        fails = [failing_bits(slot, row.generation) for slot in slots]
        self._fallible = tuple(i for i, mask in enumerate(fails) if mask)
        mask = 0
        self._idioms: list[_Spelled] = []
        for mod in row.row.mods:
            if isinstance(mod, Idiom):
                self._idioms.append(_Spelled(mod))
            else:
                mask |= mod.field.mask
        for bits in fails:
            mask |= bits
        self._gather = Gather(mask)
        self._legal = _legal(row.legal)
        self.key_bits = self._gather.bits + _IDIOM_BITS * len(self._idioms)
        if self.key_bits > 60:
            raise ValueError(f"{row.row.mnemonic}: modifiers of {self.key_bits} bits")
        # 0 not seen yet, 1 an instruction, 2 none
        self._table = np.zeros(1 << min(self.key_bits, _TABLE_BITS), np.uint8)
        self._seen: dict[int, int] = {}

    def keys(self, low: U64, high: U64) -> U64:
        """The bits of each word that decide its modifiers and whether it is an instruction."""
        out = self._gather(low, high)
        for spelled in self._idioms:
            out = out << np.uint64(_IDIOM_BITS) | spelled(low, high)
        return out

    def good(self, low: U64, high: U64, strict: bool) -> NDArray[np.bool_]:
        """Which words of this row are instructions."""
        zero_low, zero_high = self.zero if strict else self.reserved
        state: NDArray[np.bool_] = self._states(low, high) == 1
        for gather, taken in self._legal:
            state &= taken[gather(low, high)]
        if zero_low:
            state &= low & zero_low == 0
        if zero_high:
            state &= high & zero_high == 0
        return state

    def _states(self, low: U64, high: U64) -> NDArray[np.uint8]:
        keys = self.keys(low, high)
        if self.key_bits <= _TABLE_BITS:
            states = self._table[keys]
            if not states.all():
                fresh = np.flatnonzero(states == 0)
                found, first = np.unique(keys[fresh], return_index=True)
                for key, i in zip(found.tolist(), fresh[first].tolist(), strict=True):
                    self._table[key] = self._judge(word_of(low, high, i))
                states = self._table[keys]
            return states
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        found, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        known: list[int] = []
        for key, i in zip(found.tolist(), first.tolist(), strict=True):
            state = self._seen.get(key)
            if state is None:
                state = self._seen[key] = self._judge(word_of(low, high, i))
            known.append(state)
        return np.array(known, np.uint8)[inverse]

    def _judge(self, word: int) -> int:
        try:
            slots = self.row.variant_of(self.row.settle(word)).slots
            for i in self._fallible:
                slots[i].decode(word, 0)
        except DecodeError:
            return 2
        return 1


def _legal(legal: Legality) -> list[tuple[Gather, NDArray[np.bool_]]]:
    """Groups of bits, and the values of each that a form allows."""
    groups = [(Gather(group.mask), group.taken) for group in legal.groups]
    groups.append((Gather(7 << CONTROL + 5), legal.write))
    groups.append((Gather(7 << CONTROL + 8), legal.read))
    groups.append((Gather(31 << CONTROL | 7 << CONTROL + 17), legal.stall))
    everything = [(1 << (1 << gather.bits)) - 1 for gather, _ in groups]
    return [
        (gather, _bitmap(taken, 1 << gather.bits))
        for (gather, taken), all_of in zip(groups, everything, strict=True)
        if taken & all_of != all_of
    ]


def _bitmap(bits: int, count: int) -> NDArray[np.bool_]:
    data = np.frombuffer((bits & (1 << count) - 1).to_bytes(-(-count // 8), "little"), np.uint8)
    return np.unpackbits(data, count=count, bitorder="little").astype(np.bool_)


def _halves(mask: int) -> tuple[np.uint64, np.uint64]:
    return np.uint64(mask & _HALF), np.uint64(mask >> 64)


@cache
def plan(generation: int, number: int) -> DecodePlan:
    """The plan of a generation's row."""
    return DecodePlan(index(generation).form(number))


class Columns:
    """The words of one section or of several of one architecture, decoded.

    ``words`` has one row per word: its low and its high half.  ``form`` is the number of the row
    that a word belongs to in :class:`.decode.Index`, -1 for what is not an instruction.  ``starts``
    are the indices of the sections' first words.
    """

    def __init__(
        self, code: bytes | bytearray | memoryview, arch: int, strict: bool, starts: Sequence[int]
    ) -> None:
        self.arch = arch
        self.strict = strict
        self.generation = generation_of(arch)
        self.words: U64 = np.frombuffer(code, "<u8").reshape(-1, 2)
        self.starts = np.array(starts, np.int64)
        # Caches of bulk_text.py: texts of the last block printed; words that name code addresses.
        self.block: tuple[int, list[str | None]] | None = None
        self.addresses: tuple[list[int], list[int]] | None = None
        self.form: NDArray[np.int16] = np.full(len(self.words), -1, np.int16)
        for first in range(0, len(self.words), _WINDOW):
            self._classify(first, min(first + _WINDOW, len(self.words)))

    def __len__(self) -> int:
        return len(self.words)

    def _classify(self, start: int, stop: int) -> None:
        table = index(self.generation)
        low, high = self.words[start:stop, 0], self.words[start:stop, 1]
        opcodes = (low & np.uint64(0xFFF) | high >> np.uint64(15) & np.uint64(0x1000)).astype(
            np.uint16
        )
        form = self.form[start:stop]
        for opcode, where in grouped(opcodes):
            pending, some_low, some_high = where, low[where], high[where]
            for row in table.rows(opcode):
                if row.match_mask:
                    mask_low, mask_high = _halves(row.match_mask)
                    value_low, value_high = _halves(row.match_value)
                    hit = (some_low & mask_low == value_low) & (some_high & mask_high == value_high)
                    mine, mine_low, mine_high = pending[hit], some_low[hit], some_high[hit]
                    rest = ~hit
                    pending = pending[rest]
                    some_low, some_high = some_low[rest], some_high[rest]
                else:
                    mine, mine_low, mine_high = pending, some_low, some_high
                    pending = pending[:0]
                if len(mine):
                    good = plan(self.generation, row.number).good(mine_low, mine_high, self.strict)
                    form[mine[good]] = row.number
                if not len(pending):
                    break

    def offset(self, i: int) -> int:
        """The place of a word in its section, in bytes."""
        start = self.starts[np.searchsorted(self.starts, i, "right") - 1]
        return 16 * (i - int(start))

    def offsets(self, where: Indices) -> Indices:
        """The places of words in their sections, in bytes."""
        return 16 * (where - self.starts[np.searchsorted(self.starts, where, "right") - 1])

    def word(self, i: int) -> int:
        """One word."""
        return int(self.words[i, 0]) | int(self.words[i, 1]) << 64

    def bad(self, start: int, stop: int) -> list[int]:
        """The words that are not instructions."""
        return [start + int(i) for i in np.flatnonzero(self.form[start:stop] < 0)]

    def control(self, start: int, stop: int) -> NDArray[np.uint32]:
        """The scheduling bits (105 to 125) of words: see :class:`.ir.Control`."""
        bits = self.words[start:stop, 1] >> np.uint64(41) & np.uint64(0x1FFFFF)
        return bits.astype(np.uint32)

    def by_form(self, start: int, stop: int) -> Iterator[tuple[int, Indices]]:
        """The forms of words with the words' indices; those that are not instructions are -1."""
        for number, where in grouped(self.form[start:stop].view(np.uint16)):
            yield (number + 0x8000 & 0xFFFF) - 0x8000, where + start


def grouped(values: NDArray[np.uint16]) -> Iterator[tuple[int, Indices]]:
    """Each value with its indices."""
    if not len(values):
        return
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    bounds = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(values)]
    for first, end in pairwise(bounds):
        yield int(ordered[first]), order[first:end]

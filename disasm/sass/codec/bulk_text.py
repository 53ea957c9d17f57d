"""Texts of many instructions at once: each distinct operand of a form is rendered once.

The words of one form have their operands in the same bits, so an operand's text is looked up by
those bits, packed by NumPy; the texts of an instruction's parts are then joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from sassxlate.disasm.sass.codec.columns import (
    U64,
    Columns,
    DecodePlan,
    Gather,
    Indices,
    plan,
    word_of,
)
from sassxlate.disasm.sass.codec.decode import (
    WORD_BYTES,
    CompiledRow,
    code_address,
    guard_text,
    index,
)
from sassxlate.disasm.sass.codec.operand_bits import may_end_blank, relative, settling_mods
from sassxlate.disasm.sass.tables.spec import L

_REMEMBERED = 1 << 14  # most entries of a dictionary before it is cleared
_FEW = 6  # fewer words of one form are not worth NumPy's calls
_BLOCK = 1 << 14  # words rendered at a time
_GUARD_BITS = np.uint64(4)


class _Target:
    """The code addresses that the words of a form name, or displacements to them."""

    def __init__(self, row: CompiledRow, at: int) -> None:
        self._row = row
        self._at = at
        slot = list(row.row.operands.values())[at]
        # A field whose pieces are in order; signed addresses fit in 64 bits.
        lows = [low for low, _ in slot.field.parts] if isinstance(slot, L) else []
        fits = isinstance(slot, L) and slot.field.width <= 58 and slot.scale <= 4
        self._slot = slot if isinstance(slot, L) and fits and lows == sorted(lows) else None
        self._gather = Gather(slot.field.mask if isinstance(slot, L) else 0)

    def printed(self, low: U64, high: U64, where: Indices, columns: Columns) -> list[int] | None:
        """The address in each word's text; None if only single words can tell."""
        slot = self._slot
        if slot is None:
            return None
        value = self._gather(low, high).astype(np.int64)
        width = slot.field.width
        if slot.relative or slot.displacement:
            value = (value - (value >> width - 1 << width)) * slot.scale
        else:
            value = value * slot.scale & (2 << width) - 1
        if slot.relative:
            value += columns.offsets(where) + WORD_BYTES
        found: list[int] = value.tolist()
        return found

    def named(
        self, low: U64, high: U64, where: Indices, columns: Columns
    ) -> Iterator[tuple[int, int | None]]:
        """Each word's index with the code address of :func:`.decode.code_address`."""
        printed = self.printed(low, high, where, columns)
        for i, at in enumerate(where.tolist()):
            word = word_of(low, high, i)
            variant = self._row.variant(word)
            if printed is not None and self._slot is not None and not self._slot.displacement:
                yield at, None if "ABS" in variant.modifiers else printed[i]
            else:
                offset = columns.offset(at)
                operand = variant.slots[self._at].decode(word, offset).operand
                yield at, code_address(operand, variant.modifiers, offset)


_SHARED: dict[tuple[object, ...], dict[int, str]] = {}


def _shared(*key: object) -> dict[int, str]:
    """The texts of an operand in several forms."""
    try:
        return _SHARED.setdefault(key, {})
    except TypeError:  # a slot with a dictionary of names
        return {}


class _Part:
    """The printer of one operand of a form: its text by the bits that decide it.

    ``lead`` precedes the text; ``elide`` omits an operand that has its default value.
    """

    def __init__(self, row: CompiledRow, at: int, elide: bool, lead: str) -> None:
        self._row = row
        self._at = at
        self._elide = elide
        self._lead = lead
        role, slot = list(row.row.operands.items())[at]
        self._relative = relative(slot)
        self._target = _Target(row, at) if isinstance(slot, L) else None
        self._elide_zero = elide and isinstance(slot, L) and slot.elide_zero
        mods = settling_mods(slot, widths=False)
        self.blank = may_end_blank(slot)
        mask = row.operand_masks[role]
        for mod in row.row.mods:
            if mods is None or mod.name in mods:
                mask |= mod.field.mask
        self._gather = Gather(mask)
        self._seen: dict[int, str] = {}
        if mods == frozenset():
            self._seen = _shared(row.generation, slot, mask, elide, lead)

    def _render(self, word: int, offset: int) -> str:
        value = self._row.variant(word).slots[self._at].decode(word, offset)
        if (self._elide and value.default) or not value.text:
            return ""
        return self._lead + value.text

    def column(self, low: U64, high: U64, where: Indices, columns: Columns) -> list[str]:
        """The operand's text for each word."""
        if self._target is not None:
            addresses = self._target.printed(low, high, where, columns)
            if addresses is not None:
                lead, vanishes = self._lead, self._elide_zero
                return ["" if vanishes and not at else f"{lead}{at:#x}" for at in addresses]
        if self._relative or self._gather.bits > 64:
            return [
                self._render(word_of(low, high, i), columns.offset(at))
                for i, at in enumerate(where.tolist())
            ]
        if len(self._seen) > _REMEMBERED:
            self._seen.clear()
        keys = self._gather(low, high).tolist()
        out = list(map(self._seen.get, keys))
        if None in out:
            for i, text in enumerate(out):
                if text is None:
                    text = self._seen.get(keys[i])
                    if text is None:
                        text = self._seen[keys[i]] = self._render(word_of(low, high, i), 0)
                    out[i] = text
        return out  # type: ignore[return-value]


class _Shape:
    """The parts that a form prints under certain modifiers: operands and literals in order."""

    def __init__(
        self, row: CompiledRow, printed: tuple[tuple[int | None, str, bool, str], ...]
    ) -> None:
        # If the first operand may be omitted, which operand has no comma is unknown here.
        self.loose = bool(printed) and printed[0][2] and printed[0][0] is not None
        self._parts: list[_Part | str] = []
        for i, (at, body, elide, before) in enumerate(printed):
            lead = before if i or self.loose else " "
            self._parts.append(lead + body if at is None else _Part(row, at, elide, lead))

    def texts(
        self, heads: list[str], low: U64, high: U64, where: Indices, columns: Columns
    ) -> list[str]:
        """The texts of words, given those of their guards and mnemonics."""
        if not self._parts:
            return [head.rstrip() for head in heads]
        cells = [
            [part] * len(heads) if isinstance(part, str) else part.column(low, high, where, columns)
            for part in self._parts
        ]
        if self.loose:
            bodies = map("".join, zip(*cells, strict=True))
            return [
                f"{head} {body.lstrip(', ')}".rstrip()
                for head, body in zip(heads, bodies, strict=True)
            ]
        out = list(map("".join, zip(heads, *cells, strict=True)))
        if any(isinstance(part, _Part) and part.blank for part in self._parts):
            return [text.rstrip() for text in out]
        return out


class _Printer:
    """The printer of one form."""

    def __init__(self, plan: DecodePlan) -> None:
        self._plan = plan
        self._heads: dict[int, tuple[str, int]] = {}
        self._shapes: list[_Shape] = []
        self._numbers: dict[tuple[tuple[int | None, str, bool, str], ...], int] = {}

    def _head(self, word: int) -> tuple[str, int]:
        row = self._plan.row
        variant = row.variant(word)
        number = self._numbers.get(variant.printed)
        if number is None:
            number = self._numbers[variant.printed] = len(self._shapes)
            self._shapes.append(_Shape(row, variant.printed))
        return guard_text(word, row.row.guard) + variant.head, number

    def texts(self, low: U64, high: U64, where: Indices, columns: Columns) -> list[str]:
        """The texts of words of this form."""
        if len(self._heads) > _REMEMBERED:
            self._heads.clear()
        guard = low >> np.uint64(12) & np.uint64(15)
        keys = (self._plan.keys(low, high) << _GUARD_BITS | guard).tolist()
        found = list(map(self._heads.get, keys))
        if None in found:
            for i, known in enumerate(found):
                if known is None:
                    known = self._heads.get(keys[i])
                    if known is None:
                        known = self._heads[keys[i]] = self._head(word_of(low, high, i))
                    found[i] = known
        pairs: list[tuple[str, int]] = found  # type: ignore[assignment]
        heads = [head for head, _ in pairs]
        if len(self._shapes) == 1:
            return self._shapes[0].texts(heads, low, high, where, columns)
        out = heads
        numbers = np.array([number for _, number in pairs])
        for number, shape in enumerate(self._shapes):
            some = np.flatnonzero(numbers == number)
            if not len(some):
                continue
            mine = [heads[i] for i in some.tolist()]
            texts = shape.texts(mine, low[some], high[some], where[some], columns)
            for i, text in zip(some.tolist(), texts, strict=True):
                out[i] = text
        return out


@cache
def _printer(generation: int, number: int) -> _Printer:
    return _Printer(plan(generation, number))


def texts(columns: Columns, start: int, stop: int) -> list[str | None]:
    """The texts of words, None for what is not an instruction: as :attr:`.ir.Instruction.text`."""
    out: list[str | None] = [None] * (stop - start)
    rows = index(columns.generation)
    for number, where in columns.by_form(start, stop):
        if number < 0:
            continue
        places = where.tolist()
        if len(places) < _FEW:
            row = rows.form(number)
            for at in places:
                found = row.decode(columns.word(at), columns.offset(at), columns.arch, False)
                out[at - start] = found.text
            continue
        low, high = columns.words[where, 0], columns.words[where, 1]
        printed = _printer(columns.generation, number).texts(low, high, where, columns)
        for at, text in zip(places, printed, strict=True):
            out[at - start] = text
    return out


def block_texts(columns: Columns, start: int, stop: int) -> list[str | None]:
    """As :func:`texts`; whole blocks are printed, and the last one is cached.

    Sections that follow each other in a batch are printed together.
    """
    out: list[str | None] = []
    while start < stop:
        first = start // _BLOCK * _BLOCK
        block = columns.block
        if block is None or block[0] != first:
            block = first, texts(columns, first, min(first + _BLOCK, len(columns)))
            columns.block = block
        end = min(stop, first + _BLOCK)
        out += block[1][start - first : end - first]
        start = end
    return out


@cache
def _target(generation: int, number: int, at: int) -> _Target:
    return _Target(index(generation).form(number), at)


def addresses(columns: Columns) -> tuple[list[int], list[int]]:
    """The words whose text names a code address, in order, and the addresses."""
    if columns.addresses is None:
        found: dict[int, int] = {}
        rows = index(columns.generation)
        for number, where in columns.by_form(0, len(columns)):
            roles = list(rows.form(number).row.operands) if number >= 0 else []
            role = next((r for r in ("target", "disp") if r in roles), "")
            if not role:
                continue
            low, high = columns.words[where, 0], columns.words[where, 1]
            target = _target(columns.generation, number, roles.index(role))
            for at, address in target.named(low, high, where, columns):
                if address is not None:
                    found[at] = address
        words = sorted(found)
        columns.addresses = words, [found[at] for at in words]
    return columns.addresses

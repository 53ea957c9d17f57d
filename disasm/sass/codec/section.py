"""Decoded code sections: sequences of instructions that are built on access."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast, overload

from sassxlate import collector
from sassxlate.disasm.sass.codec.decode import (
    WORD_BYTES,
    BadWord,
    code_address,
    decode_or_bad,
    generation_of,
    index,
)
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import DecodeError

if TYPE_CHECKING:
    from sassxlate.disasm.sass.codec.columns import Columns

Item: TypeAlias = Instruction | BadWord

# Sections of fewer words are decoded one by one, at once: NumPy gains nothing there.
_FEW = 512
CONTROL = 105  # the lowest bit of the scheduling information
AWAITED = 31 << 105 | 63 << 116  # stall and yield, and the scoreboards that are waited for


class Section:
    """A decoded code section; offsets are multiples of 16 from 0 on.

    All words are decoded as far as whether they are instructions, and of which form.  The objects
    of ``instructions`` are made again each time they are taken, unless the section is small.
    """

    def __init__(
        self,
        arch: int,
        strict: bool,
        code: bytes,
        columns: Columns | None = None,
        start: int = 0,
    ) -> None:
        self.arch = arch
        self.strict = strict
        self._code = code
        self.start = start  # the section's first word among its columns
        if columns is not None:
            self.columns = columns
        self.instructions: Sequence[Item] = self._made() if columns is None else Items(self)

    def __len__(self) -> int:
        return len(self._code) // WORD_BYTES

    @cached_property
    def columns(self) -> Columns:
        """The words with their forms, as arrays; this section's begin at ``start``."""
        from sassxlate.disasm.sass.codec.columns import Columns

        return Columns(self._code, self.arch, self.strict, [0])

    @cached_property
    def errors(self) -> tuple[BadWord, ...]:
        """The words that could not be decoded."""
        if isinstance(self.instructions, Items):
            return tuple(self.instructions.bad())
        return tuple(i for i in self.instructions if isinstance(i, BadWord))

    def words(self, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """The words from one index to another."""
        code = self._code
        last = len(self) if stop is None else stop
        for at in range(WORD_BYTES * start, WORD_BYTES * last, WORD_BYTES):
            yield int.from_bytes(code[at : at + WORD_BYTES], "little")

    def awaited(self, start: int, stop: int) -> list[bool]:
        """Which words have a stall, a yield or a wait for a scoreboard, in a range of indices."""
        if isinstance(self.instructions, Items):
            control = self.columns.control(self.start + start, self.start + stop)
            found: list[bool] = (control & (AWAITED >> CONTROL) != 0).tolist()
            return found
        return [word & AWAITED != 0 for word in self.words(start, stop)]

    def texts(self, start: int = 0, stop: int | None = None) -> list[str | None]:
        """The instructions' texts in a range of indices; None for a bad word."""
        last = len(self) if stop is None else stop
        if not isinstance(self.instructions, Items):
            some = self.instructions[start:last]
            return [i.text if isinstance(i, Instruction) else None for i in some]
        from sassxlate.disasm.sass.codec.bulk_text import block_texts

        return block_texts(self.columns, self.start + start, self.start + last)

    def addresses(self) -> dict[int, int]:
        """The code addresses that texts name, by the instructions' indices, in order."""
        if not isinstance(self.instructions, Items):
            found = ((i, address_of(x)) for i, x in enumerate(self.instructions))
            return {i: address for i, address in found if address is not None}
        from sassxlate.disasm.sass.codec.bulk_text import addresses

        words, named = addresses(self.columns)
        first = bisect_left(words, self.start)
        last = bisect_left(words, self.start + len(self))
        return {words[i] - self.start: named[i] for i in range(first, last)}

    def _made(self) -> tuple[Item, ...]:
        """Builds all instructions as objects."""
        table, arch, strict = index(generation_of(self.arch)), self.arch, self.strict
        with collector.paused():
            return tuple(
                [
                    decode_or_bad(table, word, WORD_BYTES * i, arch, strict)
                    for i, word in enumerate(self.words())
                ]
            )

    def made(self) -> tuple[Item, ...]:
        """All instructions as objects that are kept."""
        return self._made() if isinstance(self.instructions, Items) else tuple(self.instructions)


def address_of(item: Item) -> int | None:
    """The code address that an instruction's text names, if any."""
    if isinstance(item, BadWord):
        return None
    operand = item.get("target") or item.get("disp")
    return code_address(operand, item.modifiers, item.offset)


class Items(Sequence[Item]):
    """The instructions of a section, built on access."""

    def __init__(self, section: Section) -> None:
        self._section = section
        self._table = index(generation_of(section.arch))

    def __len__(self) -> int:
        return len(self._section)

    def _at(self, i: int) -> Item:
        section = self._section
        word = section.columns.word(section.start + i)
        return decode_or_bad(self._table, word, WORD_BYTES * i, section.arch, section.strict)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        which = range(len(self))[at]
        if isinstance(which, range):
            return tuple(map(self._at, which))
        return self._at(which)

    def __iter__(self) -> Iterator[Item]:
        table, arch, strict = self._table, self._section.arch, self._section.strict
        for i, word in enumerate(self._section.words()):
            yield decode_or_bad(table, word, WORD_BYTES * i, arch, strict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Items):
            return NotImplemented
        items = cast("Sequence[object]", other)
        return len(self) == len(items) and all(a == b for a, b in zip(self, items, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def bad(self) -> Iterator[BadWord]:
        """The words that are not instructions."""
        section = self._section
        for i in section.columns.bad(section.start, section.start + len(self)):
            item = self._at(i - section.start)
            if isinstance(item, Instruction):
                raise AssertionError(f"decoded apart, but not together: {item.word:#034x}")
            yield item


def decode_section(code: bytes, arch: int, *, strict: bool = True) -> Section:
    """Decode a whole code section; words that cannot be decoded become :class:`BadWord`.

    ``strict`` as for :func:`.decode.decode`.

    Raises :class:`DecodeError` SX0204 for an unknown architecture, SX0205 if the length is not a
    multiple of 16 bytes.
    """
    return decode_sections([code], arch, strict=strict)[0]


def decode_sections(codes: Sequence[bytes], arch: int, *, strict: bool = True) -> list[Section]:
    """Decode several sections of one architecture together, which is faster for small ones.

    As :func:`decode_section` otherwise.
    """
    generation_of(arch)
    for code in codes:
        if len(code) % WORD_BYTES:
            raise DecodeError(
                "SX0205", f"{len(code)} bytes of code are not a whole number of words"
            )
    starts: list[int] = []
    total = 0
    for code in codes:
        starts.append(total)
        total += len(code) // WORD_BYTES
    if total < _FEW:
        return [Section(arch, strict, code) for code in codes]
    from sassxlate.disasm.sass.codec.columns import Columns

    columns = Columns(codes[0] if len(codes) == 1 else b"".join(codes), arch, strict, starts)
    return [
        Section(arch, strict, code, columns, start)
        for code, start in zip(codes, starts, strict=True)
    ]

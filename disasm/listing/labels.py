"""The names of code addresses, numbered as nvdisasm numbers them.

The numbers continue through the whole file: first the return addresses that relocations name, then
branch targets, then targets from other sections in file order, and last the ends of the functions.
Some requests use up a number although the address already has a name.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from sassxlate.disasm.containers.elf import STT_FUNC, STT_SECTION, Section
from sassxlate.disasm.listing.image import Image
from sassxlate.disasm.sass.codec.section import Section as Code

_WORD = 16
_TABLE_ENTRY = 4
_INDIRECT = re.compile(r"(?:@\S+ )?(BRXU?|JMXU?)\b")


@dataclass(slots=True)
class Labels:
    """Names by section and offset.  ``numbered`` has the names in the listing that are not
    symbols."""

    image: Image
    numbered: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    following: int = 0
    _symbols: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])

    def __post_init__(self) -> None:
        for number, symbol in enumerate(self.image.symbols):
            if not number or not 0 < symbol.shndx < len(self.image.sections):
                continue
            place = (symbol.shndx, symbol.value)
            kind = symbol.kind
            if kind == STT_FUNC or (kind == STT_SECTION and place not in self._symbols):
                self._symbols[place] = self.image.name(number)

    def at(self, section: int, offset: int) -> str | None:
        """The name of an address: a function's, otherwise a numbered one."""
        place = (section, offset)
        return self._symbols.get(place) or self.numbered.get(place)

    def need(self, section: int, offset: int) -> str:
        """The name of an address, a new one if it has none."""
        found = self.at(section, offset)
        if found is None:
            found = self.numbered[section, offset] = f".L_x_{self.following}"
            self.following += 1
        return found

    def ask(self, section: int, offset: int) -> str:
        """As `need`, using up a number in any case."""
        known = self.at(section, offset)
        if known is not None:
            self.following += 1
            return known
        return self.need(section, offset)


def number_labels(image: Image, codes: Mapping[int, Code]) -> Labels:
    """The labels of a file; ``codes`` are its decoded sections by number."""
    labels = Labels(image)
    _return_addresses(image, labels)
    for section in image.texts:
        _branches(section.index, codes[section.index], image, labels)
    _other_sections(image, codes, labels)
    _ends(image, labels)
    return labels


def _return_addresses(image: Image, labels: Labels) -> None:
    for section in image.texts:
        for reloc in image.relocations.get(section.index, ()):
            place = code_place(image, reloc.symbol, reloc.addend)
            if place is not None:
                labels.need(*place)


def code_place(image: Image, number: int, addend: int) -> tuple[int, int] | None:
    """The instruction, past a function's first, that symbol and addend name; None if they name
    none."""
    symbol = image.symbols[number]
    if symbol.kind != STT_FUNC or not 0 < symbol.shndx < len(image.sections) or not addend:
        return None
    offset = symbol.value + addend
    size = image.sections[symbol.shndx].size
    return (symbol.shndx, offset) if offset % _WORD == 0 and 0 <= offset <= size else None


def _branches(index: int, code: Code, image: Image, labels: Labels) -> None:
    end = _WORD * len(code)
    relocated = {r.offset // _WORD for r in image.relocations.get(index, ())}
    addresses = code.addresses()
    indirect = {
        at for table in image.tables_of(index) for at in (table.offset // _WORD,) if at < len(code)
    }
    for at in sorted({*addresses, *indirect} - relocated):
        if at in indirect:
            (text,) = code.texts(at, at + 1)
            if image.relocatable and text is not None and from_start(text):
                labels.following += 1
            continue
        target = addresses[at]
        if 0 <= target < end:
            labels.need(index, target)


def from_start(text: str) -> bool:
    """Whether an indirect branch of a relocatable file is printed relative to its section's
    start."""
    match = _INDIRECT.match(text)
    return match is not None and match[1] in ("BRX", "JMX")


def _has_start_branch(image: Image, code: Code, index: int) -> bool:
    for table in image.tables_of(index):
        at = table.offset // _WORD
        (text,) = code.texts(at, at + 1)
        if text is not None and from_start(text):
            return True
    return False


def _table_entries(image: Image, section: Section, text: int) -> int:
    """The number of words of a function's constant bank 2 that are entries of branch tables.

    The tables have symbols; other contents of the bank name no targets.
    """
    targets = {t for table in image.tables_of(text) for t in table.targets}
    found = 0
    for number in image.symbols_of.get(section.index, ()):
        symbol = image.symbols[number]
        data = section.data[symbol.value : symbol.value + symbol.size]
        if symbol.kind != STT_SECTION and len(data) and len(data) % _TABLE_ENTRY == 0:
            words = struct.unpack(f"<{len(data) // _TABLE_ENTRY}I", data)
            found += len(words) if targets.issuperset(words) else 0
    return found


def _other_sections(image: Image, codes: Mapping[int, Code], labels: Labels) -> None:
    """References to code from other sections, in file order: debug information, .nv.info, branch
    tables."""
    by_name = {s.name.removeprefix(".text"): s.index for s in image.texts}
    texts = set(by_name.values())
    for section in image.sections:
        if section.index in texts:
            continue
        text = by_name.get(section.name.removeprefix(".nv.info"))
        if text is not None:
            for table in image.tables_of(text):
                labels.ask(text, table.offset)
                for target in table.targets:
                    labels.ask(text, target)
        text = by_name.get(section.name.removeprefix(".nv.constant2"))
        if text is not None and image.relocatable and _has_start_branch(image, codes[text], text):
            labels.following += _table_entries(image, section, text)
        for reloc in image.relocations.get(section.index, ()):
            place = code_place(image, reloc.symbol, reloc.addend)
            if place is not None:
                labels.need(*place)


def _ends(image: Image, labels: Labels) -> None:
    texts = {s.index for s in image.texts}
    for symbol in image.symbols:
        if symbol.kind == STT_FUNC and symbol.shndx in texts:
            labels.ask(symbol.shndx, symbol.value + symbol.size)

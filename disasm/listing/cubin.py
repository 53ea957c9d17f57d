"""The listing of a cubin."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from sassxlate.disasm.containers.elf import (
    STT_CUDA_OBJECT,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_SECTION,
    ElfSymbol,
    Section,
)
from sassxlate.disasm.containers.relocations import relocation_name
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.listing.image import STB_GLOBAL, STB_WEAK, Image
from sassxlate.disasm.listing.labels import from_start, number_labels
from sassxlate.disasm.listing.relocated_operands import action, relocated
from sassxlate.disasm.listing.sass_section import (
    CONTROL_WIDTH,
    MNEMONIC_COLUMN,
    aligned,
    bad_text,
    control_brackets,
    ending,
    plain_lines,
    records,
)
from sassxlate.disasm.listing.source_lines import Mode, comments
from sassxlate.disasm.sass.codec.section import Section as Code
from sassxlate.disasm.sass.codec.section import decode_sections

_GUARD = re.compile(r"^@\S+ ")
_WINDOW = 1 << 12  # words printed at a time
_VISIBILITY = ("STV_DEFAULT", "STV_INTERNAL", "STV_HIDDEN", "STV_PROTECTED")
_OTHER = (
    (0x10, "STO_CUDA_ENTRY"),
    (0x20, "STO_CUDA_GLOBAL"),
    (0x40, "STO_CUDA_SHARED"),
    (0x80, "STO_CUDA_CONSTANT"),
)
_TYPES = {
    STT_NOTYPE: "@notype",
    STT_OBJECT: "@object",
    STT_FUNC: "@function",
    STT_CUDA_OBJECT: '@"STT_CUDA_OBJECT"',
}


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """``encoding`` adds the words, ``control`` the scheduling; ``wanted`` chooses functions."""

    encoding: bool = False
    control: bool = False
    wanted: Callable[[str], bool] | None = None
    source: Mode | None = None  # source lines of instructions


class Document:
    """A cubin's listing and how many of its words could not be decoded.

    ``cubin`` is the result of `parse_cubin` on ``data``, if it is at hand.

    Raises ContainerError (the cubin) and DecodeError SX0204 (the architecture).
    """

    def __init__(
        self,
        data: bytes | memoryview,
        options: ListingOptions | None = None,
        cubin: Cubin | None = None,
    ) -> None:
        self.options = options or ListingOptions()
        self.image = Image(data, cubin)
        mode = self.options.source
        self._source = comments(self.image.elf, mode) if mode else None
        arch = self.image.cubin.arch
        texts = self.image.texts
        decoded = decode_sections([bytes(s.data) for s in texts], arch)
        self.codes = {s.index: code for s, code in zip(texts, decoded, strict=True)}
        self.labels = number_labels(self.image, self.codes)
        self.bad = sum(len(self.codes[s.index].errors) for s in self.image.texts if self._chosen(s))

    @cached_property
    def _column(self) -> int:
        """The column of comments: after the longest instruction of the file, guard included."""
        texts = (text for s in self.image.texts for text in self._texts(s) if text)
        return 2 + max(map(len, texts), default=0)

    @cached_property
    def _encoding_column(self) -> int:
        """The column of the words: after the longest comment."""
        widest = max(
            (len(c) for s in self.image.texts for c in self._comments(s).values()), default=0
        )
        more = CONTROL_WIDTH if self.options.control else 0
        return MNEMONIC_COLUMN + self._column + widest + more + 1

    def _chosen(self, section: Section) -> bool:
        wanted = self.options.wanted
        return wanted is None or wanted(section.name.removeprefix(".text."))

    def _texts(self, section: Section) -> Iterator[str | None]:
        """The text of each instruction, without the comment that some have; None for a bad word."""
        return chain.from_iterable(self.windows(section))

    def windows(self, section: Section) -> Iterator[list[str | None]]:
        """As `_texts`, in windows."""
        code = self.codes[section.index]
        relocs = {r.offset: r for r in self.image.relocations.get(section.index, ())}
        addresses = code.addresses()
        indirect = {t.offset for t in self.image.tables_of(section.index)}
        named = sorted({*addresses, *(at // 16 for at in (*relocs, *indirect) if at % 16 == 0)})
        for start in range(0, len(code), _WINDOW):
            texts = code.texts(start, min(start + _WINDOW, len(code)))
            for at in named[bisect_left(named, start) : bisect_left(named, start + len(texts))]:
                text = texts[at - start]
                if text is None:
                    continue
                if 16 * at in relocs:
                    text = relocated(self.image, self.labels, text, relocs[16 * at])
                elif 16 * at in indirect:
                    text = self._indirect(section, text)
                else:
                    text = self._branch(section, text, addresses.get(at))
                texts[at - start] = text
            yield texts

    def _indirect(self, section: Section, text: str) -> str:
        if not self.image.relocatable or not from_start(text):
            return text
        head, _, _ = text.rpartition(" ")
        return f"{head} `((({section.name} - .) - 0x10))"

    def _branch(self, section: Section, text: str, target: int | None) -> str:
        name = self.labels.at(section.index, target) if target is not None else None
        if name is None:
            return text
        head, _, _ = text.rpartition(" ")
        return f"{head} `({name})"

    def lines(self) -> Iterator[str]:
        """The listing, as ``nvdisasm -c`` prints it."""
        parts = [self._section(s) for s in self.image.texts if self._chosen(s)]
        for number, part in enumerate([self._header(), *parts, self._symbols()]):
            for at, line in enumerate(part):
                if number and not at:
                    yield from ("", "")
                yield line

    @property
    def chosen(self) -> int:
        """The number of functions in the listing."""
        return sum(map(self._chosen, self.image.texts))

    def functions(self) -> Iterator[tuple[str, list[dict[str, object]]]]:
        """(name, one JSON record per word) of each function, with relocations and labels
        resolved."""
        for section in self.image.texts:
            if not self._chosen(section):
                continue
            code = self.codes[section.index]
            found = records(code)
            texts = self._texts(section)
            relocs = {r.offset: r for r in self.image.relocations.get(section.index, ())}
            for at, (record, text) in enumerate(zip(found, texts, strict=True)):
                label = self.labels.at(section.index, 16 * at)
                record.pop("label", None)
                if label is not None and at:
                    record["label"] = label
                if text is not None:
                    record["text"] = text
                reloc = relocs.get(16 * at)
                if reloc is not None:
                    record["relocation"] = {
                        "type": relocation_name(reloc.type),
                        "symbol": self.image.name(reloc.symbol),
                        "addend": reloc.addend,
                    }
            yield section.name.removeprefix(".text."), found

    def _header(self) -> Iterator[str]:
        cubin, elf = self.image.cubin, self.image.elf
        kind = "ET_REL" if self.image.relocatable else "ET_EXEC"
        if cubin.abi == 7:
            flags = ["EF_CUDA_TEXMODE_UNIFIED", "EF_CUDA_64BIT_ADDRESS"]
            if elf.flags & 0x800:
                flags.append("EF_CUDA_ACCELERATORS")
            flags.append(f"EF_CUDA_SM{elf.flags & 0xFF}")
            flags.append(f"EF_CUDA_VIRTUAL_SM(EF_CUDA_SM{elf.flags >> 16 & 0xFF})")
            yield f'\t.headerflags\t@"{" ".join(flags)}"'
        else:
            yield f"\t.target\tsm_{cubin.arch}{cubin.variant}"
            yield ""
        yield f'\t.elftype\t@"{kind}"'

    def _section(self, section: Section) -> Iterator[str]:
        yield f"//--------------------- {section.name:<25} --------------------------"
        yield f'\t.section\t{section.name},"ax",@progbits'
        barriers = section.flags >> 20 & 0x7F
        if barriers:
            yield f'\t.sectionflags\t@"SHF_BARRIERS={barriers}"'
        registers = section.info >> 24
        if registers:
            yield f'\t.sectioninfo\t@"SHI_REGISTERS={registers}"'
        yield f"\t.align\t{section.align}"
        marks = self._marks(section)
        code = self.codes[section.index]
        notes = self._comments(section)
        options = self.options
        if not (options.encoding or options.control or options.source):
            yield from self._plain(section, marks, notes)
            return
        for at, (word, text) in enumerate(zip(code.words(), self._texts(section), strict=True)):
            offset = 16 * at
            if offset in marks:
                yield from marks.pop(offset)
            if self._source is not None:
                yield from self._source(section.name, offset)
            place = f"        /*{offset:04x}*/"
            if text is None:
                yield f"{place} {bad_text(code.instructions[at])}"
                continue
            yield from self._line(code, at, word, place, text, notes.get(offset, ""))
        for offset in sorted(marks):
            yield from marks[offset]

    def _plain(
        self, section: Section, marks: Mapping[int, list[str]], notes: Mapping[int, str]
    ) -> Iterator[str]:
        """The instructions of a section and the lines between them, without options."""
        code = self.codes[section.index]
        stops = sorted({*marks, *notes})
        start = 0
        for texts in self.windows(section):
            printed = plain_lines(code, start, texts)
            end = start + len(texts)
            done = start
            for offset in stops[bisect_left(stops, 16 * start) : bisect_left(stops, 16 * end)]:
                at = offset // 16
                if offset % 16:
                    continue
                yield from printed[done - start : at - start]
                yield from marks.get(offset, ())
                done = at
                text = texts[at - start]
                if offset in notes and text is not None:
                    (word,) = code.words(at, at + 1)
                    place = f"        /*{offset:04x}*/"
                    yield from self._line(code, at, word, place, text, notes[offset])
                    done = at + 1
            yield from printed[done - start :]
            start = end
        for offset in stops:
            if offset % 16 or not offset < 16 * len(code):
                yield from marks.get(offset, ())

    @cached_property
    def _numbered(self) -> Mapping[int, list[tuple[int, str]]]:
        """The labels of each section: offset and name."""
        found: dict[int, list[tuple[int, str]]] = {}
        for (index, offset), name in self.labels.numbered.items():
            found.setdefault(index, []).append((offset, name))
        return found

    def _marks(self, section: Section) -> dict[int, list[str]]:
        """Offset -> the lines before the instruction there: symbols with directives, labels."""
        found: dict[int, list[str]] = {}
        for number in reversed(self.image.symbols_of.get(section.index, ())):
            symbol = self.image.symbols[number]
            found.setdefault(symbol.value, []).extend(self._symbol(number, symbol))
        for offset, name in self._numbered.get(section.index, ()):
            found.setdefault(offset, []).append(f"{name}:")
        return found

    def _symbol(self, number: int, symbol: ElfSymbol) -> Iterator[str]:
        name = self.image.name(number)
        if symbol.kind != STT_SECTION:
            binding = symbol.bind
            if binding in (STB_GLOBAL, STB_WEAK):
                word = ".global" if binding == STB_GLOBAL else ".weak"
                yield f"        {word:<16}{name}"
            yield f"        {'.type':<16}{name},{_TYPES.get(symbol.kind, '@notype')}"
            end = self.labels.at(symbol.shndx, symbol.value + symbol.size)
            size = f"({end} - {name})" if end is not None else f"{symbol.size:#x}"
            yield f"        {'.size':<16}{name},{size}"
            if symbol.other:
                yield f'        {".other":<16}{name},@"{_other(symbol.other)}"'
        yield f"{name}:"

    def _line(
        self, code: Code, at: int, word: int, place: str, text: str, comment: str
    ) -> Iterator[str]:
        before = place
        if self.options.control:
            before += f"  {control_brackets(code, at, word, text)}"
        end = ending(text, word)
        if comment:
            guard = _GUARD.match(text)
            width = self._column + (guard.end() if guard else 0)
            text, end = f"{text:<{width}}{comment}", ";"
        line = f"{before}{aligned(text, len(place))}{end}"
        if not self.options.encoding:
            yield line
            return
        column = self._encoding_column
        yield f"{line:<{column}} /* {word & (1 << 64) - 1:#018x} */"
        yield f"{'':<{column}} /* {word >> 64:#018x} */"

    def _comments(self, section: Section) -> dict[int, str]:
        """Offset -> the targets of an indirect branch, or the linker's change to a word."""
        found: dict[int, str] = {}
        for reloc in self.image.relocations.get(section.index, ()):
            comment = action(self.image, reloc)
            if comment is not None:
                found[reloc.offset] = max(found.get(reloc.offset, ""), comment, key=len)
        for table in self.image.tables_of(section.index):
            targets = (self.labels.at(section.index, t) for t in table.targets)
            names = ",".join(dict.fromkeys(filter(None, targets)))
            found[table.offset] = f'(*"BRANCH_TARGETS {names}"*)'
        return found

    def _symbols(self) -> Iterator[str]:
        """The symbols that are in no section."""
        undefined = [
            (number, symbol)
            for number, symbol in enumerate(self.image.symbols)
            if number and symbol.shndx == 0 and symbol.name
        ]
        if not undefined:
            return
        yield "//--------------------- SYMBOLS --------------------------"
        yield ""
        for number, symbol in undefined:
            name = self.image.name(number)
            yield f"\t.type\t\t{name},{_TYPES.get(symbol.kind, '@notype')}"
            if symbol.other:
                yield f'\t.other\t\t{name},@"{_other(symbol.other)}"'
            if symbol.size:
                yield f"\t.size\t\t{name},{symbol.size:#x}"


def _other(value: int) -> str:
    """A symbol's st_other in NVIDIA's names."""
    names = [name for bit, name in _OTHER if value & bit]
    return " ".join([*names, _VISIBILITY[value & 3]])

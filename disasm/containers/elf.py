"""The ELF64 reader for host files, cubins and code objects: it checks sizes and indices before use.

It reads only what the tables declare, keeps section contents as views of the input, and ends
in `ContainerError` for any malformed input.  LIEF and pyelftools are its witnesses in the tests;
neither is used here, because a reader of hostile files must bound every step.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from sassxlate.errors import ContainerError, Where

MAGIC = b"\x7fELF"
EM_X86_64 = 62
EM_CUDA = 190
EM_AMDGPU = 224
ET_REL, ET_EXEC, ET_DYN = 1, 2, 3
SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 2, 3, 4, 8, 9
SHT_DYNSYM, SHT_SYMTAB_SHNDX = 11, 18
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
PT_LOAD, PT_NOTE = 1, 4
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_CUDA_OBJECT = 0, 1, 2, 3, 13
# CUDA's own types of sections without bytes in the file: .nv.global, .nv.local, .nv.shared.* and
# .nv.shared.reserved.* of relocatable objects (linked cubins use SHT_NOBITS).
_CUDA_NOBITS = frozenset({0x70000007, 0x70000009, 0x7000000A, 0x70000015})
_SHARING = (".nv.merc.", ".nv.capmerc")
SHN_LORESERVE, SHN_XINDEX = 0xFF00, 0xFFFF

# Elf64_Ehdr, Elf64_Shdr, Elf64_Phdr, Elf64_Sym; the writer of code objects uses them too.
EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
SHDR = struct.Struct("<IIQQQQIIQQ")
PHDR = struct.Struct("<IIQQQQQQ")
SYM = struct.Struct("<IBBHQQ")
_REL = struct.Struct("<QQ")
_RELA = struct.Struct("<QQq")
_U32 = struct.Struct("<I")

# A name may be part of another, but many long names that share bytes would exhaust memory.
NAMES_RATIO = 16  # characters of all names, for each byte of the file
_MAX_NAME = 1 << 16  # bytes of one symbol's or section's name; the longest seen has 11 kB


@dataclass(frozen=True, slots=True)
class Section:
    """One section header; ``data`` is a view of its bytes in the file, empty for NOBITS."""

    index: int
    name: str
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class Segment:
    """One program header."""

    type: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """One symbol; ``shndx`` is the section's index, or a reserved number from SHN_LORESERVE on."""

    name: str
    value: int
    size: int
    info: int
    other: int
    shndx: int

    @property
    def kind(self) -> int:
        """STT_OBJECT, STT_FUNC and so on."""
        return self.info & 15

    @property
    def bind(self) -> int:
        """0 local, 1 global, 2 weak."""
        return self.info >> 4


@dataclass(frozen=True, slots=True)
class ElfReloc:
    """One relocation of a SHT_REL (addend 0) or SHT_RELA section."""

    offset: int
    type: int
    symbol: int
    addend: int


def fail(code: str, message: str, offset: int | None = None) -> ContainerError:
    """A container error at a byte offset of the file."""
    return ContainerError(code, message, Where(offset=offset))


def is_elf_of(data: bytes | memoryview, machine: int) -> bool:
    """Whether the data starts like an ELF file for a machine; 20 bytes suffice."""
    head = bytes(memoryview(data)[:20])
    return head[:4] == MAGIC and head[18:20] == machine.to_bytes(2, "little")


def check_entries(table: Section, size: int) -> None:
    """Refuses a table whose header claims entries of another size (SX0107)."""
    if table.entsize not in (0, size):
        raise fail("SX0107", f"{table.name} has entries of {table.entsize} bytes", table.offset)


class Elf:
    """A little-endian ELF64 file over a buffer.

    Raises ContainerError SX0103 (header), SX0104 (32-bit), SX0105 (byte order), SX0106 (a table or
    a section outside the file), SX0107 (names, symbols, relocations).
    """

    def __init__(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        self.data = view
        if len(view) < 20 or bytes(view[:4]) != MAGIC:
            raise fail("SX0103", "no ELF file", 0)
        ident = bytes(view[:16])
        if ident[4] == 1:
            raise fail("SX0104", "a 32-bit program; only 64-bit files are supported", 4)
        if ident[4] != 2:
            raise fail("SX0103", f"ELF class {ident[4]} is unknown", 4)
        if ident[5] != 1:
            raise fail("SX0105", "the byte order is not little-endian", 5)
        if len(view) < EHDR.size:
            raise fail("SX0103", f"the file ends within its ELF header ({len(view)} bytes)", 0)
        header = EHDR.unpack_from(view, 0)
        self.osabi, self.abiversion = ident[7], ident[8]
        self.type: int = header[1]
        self.machine: int = header[2]
        self.version: int = header[3]
        self.entry: int = header[4]
        self._phoff: int = header[5]
        self._shoff: int = header[6]
        self.flags: int = header[7]
        self._phentsize, self._phnum = int(header[9]), int(header[10])
        self._shentsize, self._shnum = int(header[11]), int(header[12])
        self._shstrndx = int(header[13])

    def slice(self, offset: int, size: int, what: str, code: str = "SX0106") -> memoryview:
        """``size`` bytes at ``offset``, or ContainerError ``code`` if the file is shorter."""
        if offset < 0 or size < 0 or offset > len(self.data) or size > len(self.data) - offset:
            raise fail(code, f"{what} ({size:#x} bytes at {offset:#x}) is outside the file", offset)
        return self.data[offset : offset + size]

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The program headers."""
        if self._phnum == 0:
            return ()
        if self._phentsize != PHDR.size:
            raise fail("SX0103", f"program headers of {self._phentsize} bytes", 54)
        table = self.slice(self._phoff, self._phnum * PHDR.size, "the program header table")
        return tuple(
            Segment(kind, flags, offset, vaddr, filesz, memsz)
            for kind, flags, offset, vaddr, _, filesz, memsz, _ in PHDR.iter_unpack(table)
        )

    @cached_property
    def _headers(self) -> tuple[Sequence[tuple[int, ...]], memoryview | None]:
        """The section headers' fields, and the table of the sections' names if there is one."""
        if self._shoff == 0:
            return (), None
        if self._shentsize != SHDR.size:
            raise fail("SX0103", f"section headers of {self._shentsize} bytes", 58)
        first = SHDR.unpack(self.slice(self._shoff, SHDR.size, "the section header table"))
        count = self._shnum or int(first[5])  # over 0xff00 sections: in the null header
        strndx = int(first[6]) if self._shstrndx == SHN_XINDEX else self._shstrndx
        table = self.slice(self._shoff, count * SHDR.size, "the section header table")
        rows = list(SHDR.iter_unpack(table))
        names = None
        if strndx:
            if strndx >= count:
                raise fail(
                    "SX0106", f"the table of section names is section {strndx} of {count}", 62
                )
            if rows[strndx][1] != SHT_STRTAB:
                raise fail("SX0106", f"section {strndx} is not a table of section names", 62)
            names = self.slice(rows[strndx][4], rows[strndx][5], "the table of section names")
        return rows, names

    @property
    def section_names(self) -> memoryview:
        """The string table of the sections' names, read without making the sections."""
        return self._headers[1] or memoryview(b"")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections, the null one included."""
        rows, names = self._headers
        cuda = self.machine == EM_CUDA
        found: list[Section] = []
        left = NAMES_RATIO * len(self.data)
        for index, row in enumerate(rows):
            name, kind, flags, addr, offset, size, link, info, align, entsize = row
            place = self._shoff + index * SHDR.size
            title = "" if names is None else read_string(names, name, "a section's name", place)
            left -= len(title)
            if left < 0:
                raise fail("SX0107", "the sections' names share bytes", place)
            data = memoryview(b"")
            if index and kind != SHT_NOBITS and not (cuda and kind in _CUDA_NOBITS):
                data = self.slice(offset, size, f"section {title!r}")
            found.append(
                Section(
                    index, title, kind, flags, addr, offset, size, link, info, align, entsize, data
                )
            )
        return tuple(found)

    def check_overlaps(self) -> None:
        """Refuses sections that share bytes with each other or with the headers (SX0122).

        Sections of NVIDIA's second form of the code (sm_100 and later) may: they share bytes with
        its data.
        """
        taken = [(0, EHDR.size, "the ELF header")]
        if self._shoff:
            size = len(self.sections) * SHDR.size
            taken.append((self._shoff, size, "the section header table"))
        taken += (
            (s.offset, len(s.data), s.name)
            for s in self.sections
            if len(s.data) and not s.name.startswith(_SHARING)
        )
        taken.sort()
        for (at, size, name), (following, _, other) in pairwise(taken):
            if at + size > following:
                raise fail("SX0122", f"{name} and {other} share bytes", following)

    def section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((s for s in self.sections if s.name == name), None)

    def symbols(self, table: Section) -> tuple[ElfSymbol, ...]:
        """The symbols of a SHT_SYMTAB or SHT_DYNSYM section."""
        if table.size % SYM.size:
            raise fail("SX0107", f"{table.name} is not a whole number of symbols", table.offset)
        if table.link >= len(self.sections):
            raise fail(
                "SX0107", f"{table.name} names section {table.link} as its strings", table.offset
            )
        if self.sections[table.link].type != SHT_STRTAB:
            raise fail(
                "SX0107", f"the strings of {table.name} are not a string table", table.offset
            )
        check_entries(table, SYM.size)
        names = self.sections[table.link].data
        wide = self._wide_indices(table)
        found: list[ElfSymbol] = []
        left = NAMES_RATIO * len(self.data)
        for number, row in enumerate(SYM.iter_unpack(table.data)):
            name, info, other, shndx, value, size = row
            if shndx == SHN_XINDEX and 4 * number + 4 <= len(wide):
                shndx = _U32.unpack_from(wide, 4 * number)[0]
            elif shndx < SHN_LORESERVE and shndx >= len(self.sections):
                text = f"symbol {number} is in section {shndx}, which does not exist"
                raise fail("SX0107", text, table.offset)
            title = read_string(names, name, "a symbol's name", table.offset)
            left -= len(title)
            if left < 0:
                raise fail("SX0107", "the symbols' names share bytes", table.offset)
            found.append(ElfSymbol(title, value, size, info, other, shndx))
        return tuple(found)

    def _wide_indices(self, table: Section) -> memoryview:
        for section in self.sections:
            if section.type == SHT_SYMTAB_SHNDX and section.link == table.index:
                return section.data
        return memoryview(b"")

    def relocations(self, table: Section) -> Iterator[ElfReloc]:
        """The relocations of a SHT_REL or SHT_RELA section."""
        layout = _RELA if table.type == SHT_RELA else _REL
        check_entries(table, layout.size)
        if table.size % layout.size:
            raise fail("SX0107", f"{table.name} is not a whole number of relocations", table.offset)
        for row in layout.iter_unpack(table.data):
            yield ElfReloc(row[0], row[1] & 0xFFFFFFFF, row[1] >> 32, row[2] if len(row) > 2 else 0)

    def file_offset(self, address: int) -> int | None:
        """The file offset of the byte at a virtual address; None if it is not in the file."""
        for segment in self.segments:
            if segment.type == PT_LOAD and 0 <= address - segment.vaddr < segment.filesz:
                return segment.offset + address - segment.vaddr
        return None


def read_string(table: memoryview, offset: int, what: str, place: int) -> str:
    """The NUL-terminated name at ``offset`` of a string table; ``place`` is for errors.

    Bytes that are not UTF-8, and control characters, are written as escapes: a name is never
    refused, and never moves a terminal's cursor.
    """
    if offset == 0 and len(table) == 0:
        return ""
    if offset >= len(table):
        raise fail("SX0107", f"{what} is outside its string table", place)
    chunk = bytes(table[offset : offset + 256])
    end = chunk.find(b"\0")
    if end < 0:
        chunk = bytes(table[offset : offset + _MAX_NAME])
        end = chunk.find(b"\0")
        if end < 0:
            raise fail("SX0107", f"{what} has no end", place)
    return printable(chunk[:end])


def printable(name: bytes) -> str:
    """A name of the file as text: UTF-8, with escapes for bytes that are not UTF-8 or not
    printable."""
    text = name.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)

"""Line tables: which source line each instruction comes from, written from the DWARF standard.

``.debug_line`` holds one table per compilation unit, of DWARF version 2 to 5 (chapter 6.2).
``.nv_debug_line_sass`` has the same layout and names lines of the PTX in ``.nv_debug_ptx_txt``.
NVIDIA's extended opcode 0x90 marks inlined code: it names the row of the call,
which counts from 1 in its sequence, and the inlined function, as an offset in .debug_str.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from sassxlate.disasm.containers.elf import (
    SHT_NOBITS,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    Elf,
    Section,
    fail,
    printable,
)

LINES, LINES_OF_PTX = ".debug_line", ".nv_debug_line_sass"
PTX_TEXT = ".nv_debug_ptx_txt"

# How many operands the standard opcodes have, from 0; others are skipped by the header's count.
_OPERANDS = (0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)
_END_SEQUENCE, _SET_ADDRESS, _DEFINE_FILE = 1, 2, 3
_INLINED_CALL = 0x90

_LNCT_PATH, _LNCT_DIRECTORY = 1, 2
_MAX_ROWS = 1 << 24
_MAX_NAMES = 1 << 20
_MAX_DEPTH = 256  # of inlined calls


@dataclass(frozen=True, slots=True)
class LineEntry:
    """One row of a line table: the source of the code from ``address`` on.

    ``section`` is the code section, "" for code that the linker left out.  ``call`` is the number,
    from 1 in the table, of the row of the call that was inlined, or 0; ``function`` is the
    mangled name of the inlined function.
    """

    section: str
    address: int
    file: str
    line: int
    column: int
    is_stmt: bool
    end: bool
    call: int = 0
    function: str = ""


@dataclass(frozen=True, slots=True)
class LineTable:
    """One unit's table; ``rows`` are numbered from 1 by `Row.call`."""

    version: int
    offset: int
    files: tuple[str, ...]
    rows: tuple[LineEntry, ...]

    def calls(self, row: LineEntry) -> tuple[LineEntry, ...]:
        """The rows of the calls through which the row was inlined, innermost first.

        Raises ContainerError SX0129 if they go in a circle.
        """
        found: list[LineEntry] = []
        while row.call:
            row = self.rows[row.call - 1]
            found.append(row)
            if len(found) > _MAX_DEPTH:
                raise fail("SX0129", "inlined calls go in a circle", self.offset)
        return tuple(found)


@dataclass(slots=True)
class _Reader:
    """A cursor over one unit; ``base`` is the file offset of ``data``."""

    data: memoryview
    base: int
    at: int = 0

    @property
    def place(self) -> int:
        return self.base + self.at

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise fail("SX0129", "a line table ends too early", self.place)
        found = self.data[self.at : self.at + size]
        self.at += size
        return found

    def number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise fail("SX0129", "a number of a line table has no end", self.place)

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def string(self) -> str:
        data = bytes(self.data[self.at : self.at + (1 << 16)])
        end = data.find(b"\0")
        if end < 0:
            raise fail("SX0129", "a name of a line table has no end", self.place)
        self.at += end + 1
        return printable(data[:end])


@dataclass(slots=True)
class _Header:
    """The parts of the header that a line program needs."""

    version: int
    wide: int  # bytes of an offset: 4, or 8 in 64-bit DWARF
    instruction: int
    is_stmt: bool
    line_base: int
    line_range: int
    operands: tuple[int, ...]  # of the standard opcodes, from 0
    directories: list[str]
    files: list[str]


@dataclass(slots=True)
class _Strings:
    """The string sections that a table may refer to."""

    sections: Mapping[str, Section]
    cache: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])

    def at(self, section: str, offset: int, place: int) -> str:
        key = (section, offset)
        if key not in self.cache:
            found = self.sections.get(section)
            if found is None or offset >= len(found.data):
                raise fail("SX0129", f"a name outside {section}", place)
            self.cache[key] = _Reader(found.data, found.offset, offset).string()
        return self.cache[key]


def parse_lines(elf: Elf, name: str = LINES) -> tuple[LineTable, ...]:
    """The tables of a section, in order; () if there is none.

    Raises ContainerError SX0129, and those of `Elf`.
    """
    section = elf.section(name)
    if section is None or section.type == SHT_NOBITS:
        return ()
    places = _code_places(elf, section)
    strings = _Strings({s.name: s for s in elf.sections})
    found: list[LineTable] = []
    at = 0
    while at < len(section.data):
        head = _Reader(section.data, section.offset, at)
        size, wide = head.number(4), 4
        if size == 0xFFFFFFFF:
            size, wide = head.number(8), 8
        elif size >= 0xFFFFFFF0:
            raise fail("SX0129", f"a line table of length {size:#x}", head.place)
        if size == 0 and not any(section.data[at:]):
            break  # padding
        if size > len(section.data) - head.at:
            raise fail("SX0129", f"a line table of {size:#x} bytes is longer than {name}", at)
        unit = _Reader(section.data[: head.at + size], section.offset, head.at)
        found.append(_unit(unit, section.offset + at, wide, strings, places, name))
        at = head.at + size
    return tuple(found)


def _code_places(elf: Elf, section: Section) -> dict[int, tuple[str, int]]:
    """Offset of an address in the table -> the code section and offset that it is relocated to."""
    table = next((s for s in elf.sections if s.type == SHT_SYMTAB), None)
    symbols = elf.symbols(table) if table else ()
    found: dict[int, tuple[str, int]] = {}
    for relocs in elf.sections:
        if relocs.type not in (SHT_REL, SHT_RELA) or relocs.info != section.index:
            continue
        for reloc in elf.relocations(relocs):
            if reloc.symbol >= len(symbols):
                raise fail(
                    "SX0107", f"a relocation of {section.name} is out of range", relocs.offset
                )
            symbol = symbols[reloc.symbol]
            name = ""
            if 0 < symbol.shndx < len(elf.sections):
                name = elf.sections[symbol.shndx].name
            found[reloc.offset] = (name, symbol.value + reloc.addend)
    return found


def _unit(
    unit: _Reader,
    offset: int,
    wide: int,
    strings: _Strings,
    places: Mapping[int, tuple[str, int]],
    section: str,
) -> LineTable:
    header = _header(unit, wide, strings)
    if section == LINES_OF_PTX:
        header.files = [PTX_TEXT, *header.files[1:]]
    rows = _Program(unit, header, strings, places, offset).run()
    return LineTable(header.version, offset, tuple(header.files), tuple(rows))


def _header(unit: _Reader, wide: int, strings: _Strings) -> _Header:
    version = unit.number(2)
    if not 2 <= version <= 5:
        raise fail("SX0129", f"a line table of DWARF version {version}", unit.place - 2)
    if version >= 5:
        address, selector = unit.number(1), unit.number(1)
        if address != 8 or selector:
            raise fail("SX0129", f"a line table with addresses of {address} bytes", unit.place - 2)
    length = unit.number(wide)
    if length > len(unit.data) - unit.at:
        raise fail("SX0129", "a line table's header is longer than the table", unit.place - wide)
    start = unit.at + length
    instruction = unit.number(1)
    if version >= 4:
        unit.number(1)  # operations of an instruction: one
    is_stmt = bool(unit.number(1))
    line_base, line_range = unit.number(1, signed=True), unit.number(1)
    opcode_base = unit.number(1)
    if not line_range or not opcode_base:
        raise fail("SX0129", "a line table without a range of lines or opcodes", unit.place - 2)
    operands = (0, *(unit.number(1) for _ in range(opcode_base - 1)))
    if version >= 5:
        directories = _entries(unit, wide, strings, [])
        files = _entries(unit, wide, strings, directories)
    else:
        directories, files = _old_names(unit)
    if unit.at > start:
        raise fail("SX0129", "a line table's header is longer than it says", unit.place)
    unit.at = start
    return _Header(
        version, wide, instruction, is_stmt, line_base, line_range, operands, directories, files
    )


def _old_names(unit: _Reader) -> tuple[list[str], list[str]]:
    """Directories and files of versions 2 to 4, numbered from 1."""
    directories, files = [""], [""]
    while name := unit.string():
        directories.append(name)
    while name := unit.string():
        files.append(_file(unit, name, directories))
    return directories, files


def _file(unit: _Reader, name: str, directories: list[str]) -> str:
    """The rest of a file's entry; its name with its directory."""
    directory = unit.uleb()
    unit.uleb()  # time
    unit.uleb()  # size
    return _join(unit, name, directory, directories)


def _join(unit: _Reader, name: str, directory: int, directories: list[str]) -> str:
    if directory >= len(directories):
        raise fail("SX0129", f"a file in directory {directory}", unit.place)
    folder = directories[directory]
    return f"{folder}/{name}" if folder and not name.startswith("/") else name


def _entries(unit: _Reader, wide: int, strings: _Strings, directories: list[str]) -> list[str]:
    """Directories or files of version 5, numbered from 0."""
    formats = [(unit.uleb(), unit.uleb()) for _ in range(unit.number(1))]
    count = unit.uleb()
    if count > _MAX_NAMES or (count and not formats):
        raise fail("SX0129", f"{count} names in a line table", unit.place)
    found: list[str] = []
    for _ in range(count):
        path, directory = "", 0
        for content, form in formats:
            value = _form(unit, wide, strings, form)
            if content == _LNCT_PATH and isinstance(value, str):
                path = value
            elif content == _LNCT_DIRECTORY and isinstance(value, int):
                directory = value
        found.append(_join(unit, path, directory, directories) if directories else path)
    return found


def _form(unit: _Reader, wide: int, strings: _Strings, form: int) -> str | int | None:
    """A value in one of the forms that line tables use."""
    match form:
        case 0x08:  # DW_FORM_string
            return unit.string()
        case 0x1F:  # DW_FORM_line_strp
            return strings.at(".debug_line_str", unit.number(wide), unit.place)
        case 0x0E:  # DW_FORM_strp
            return strings.at(".debug_str", unit.number(wide), unit.place)
        case 0x0F:  # DW_FORM_udata
            return unit.uleb()
        case 0x0B | 0x05 | 0x06 | 0x07:  # DW_FORM_data1, 2, 4, 8
            return unit.number({0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8}[form])
        case 0x1E:  # DW_FORM_data16, a checksum
            unit.take(16)
            return None
        case 0x09:  # DW_FORM_block
            unit.take(unit.uleb())
            return None
        case _:
            raise fail("SX0129", f"a name of form {form:#x} in a line table", unit.place)


class _Program:
    """The state machine of chapter 6.2.2."""

    def __init__(
        self,
        unit: _Reader,
        header: _Header,
        strings: _Strings,
        places: Mapping[int, tuple[str, int]],
        offset: int,
    ) -> None:
        self.unit, self.header, self.strings = unit, header, strings
        self.places, self.offset = places, offset
        self.rows: list[LineEntry] = []
        self.reset()

    def reset(self) -> None:
        self.section, self.address = "", 0
        self.file, self.line, self.column = 1, 1, 0
        self.is_stmt = self.header.is_stmt
        self.call, self.function = 0, ""
        self.first = len(self.rows)  # first row of the sequence: calls count from it

    def run(self) -> list[LineEntry]:
        unit, header = self.unit, self.header
        base = len(header.operands)
        while unit.at < len(unit.data):
            opcode = unit.number(1)
            if opcode >= base:
                self.advance((opcode - base) // header.line_range)
                self.line += header.line_base + (opcode - base) % header.line_range
                self.emit()
            elif opcode == 0:
                self.extended()
            else:
                self.standard(opcode)
        return self.rows

    def advance(self, operations: int) -> None:
        self.address = (self.address + operations * self.header.instruction) & (1 << 64) - 1

    def emit(self, end: bool = False) -> None:
        files = self.header.files
        if self.file >= len(files):
            raise fail("SX0129", f"a line of file {self.file} of {len(files)}", self.unit.place)
        call = self.first + self.call if self.call else 0
        if call > len(self.rows):
            raise fail("SX0129", f"inlined at row {self.call}, which is not yet", self.unit.place)
        if len(self.rows) >= _MAX_ROWS:
            raise fail("SX0129", f"more than {_MAX_ROWS} rows", self.unit.place)
        self.rows.append(
            LineEntry(
                self.section, self.address, files[self.file], self.line & 0xFFFFFFFF, self.column,
                self.is_stmt, end, call, self.function,
            )
        )  # fmt: skip

    def standard(self, opcode: int) -> None:
        unit, header = self.unit, self.header
        if opcode >= len(_OPERANDS) or header.operands[opcode] != _OPERANDS[opcode]:
            for _ in range(header.operands[opcode]):  # unknown, or different from the standard
                unit.uleb()
            return
        match opcode:
            case 1:  # copy
                self.emit()
            case 2:  # advance_pc
                self.advance(unit.uleb())
            case 3:  # advance_line
                self.line += unit.sleb()
            case 4:  # set_file
                self.file = unit.uleb()
            case 5:  # set_column
                self.column = unit.uleb()
            case 6:  # negate_stmt
                self.is_stmt = not self.is_stmt
            case 8:  # const_add_pc
                self.advance((255 - len(header.operands)) // header.line_range)
            case 9:  # fixed_advance_pc
                self.address = (self.address + unit.number(2)) & (1 << 64) - 1
            case 12:  # set_isa
                unit.uleb()
            case _:  # basic_block, prologue_end, epilogue_begin
                pass

    def extended(self) -> None:
        unit = self.unit
        length = unit.uleb()
        start = unit.at
        if not length or length > len(unit.data) - start:
            raise fail("SX0129", f"an extended opcode of {length} bytes", unit.place)
        opcode = unit.number(1)
        if opcode == _END_SEQUENCE:
            self.emit(end=True)
            self.reset()
        elif opcode == _SET_ADDRESS:
            self.set_address(length - 1)
        elif opcode == _DEFINE_FILE:
            self.header.files.append(_file(unit, unit.string(), self.header.directories))
        elif opcode == _INLINED_CALL:
            self.call = unit.uleb()
            name = unit.uleb()
            self.function = self.strings.at(".debug_str", name, unit.place) if self.call else ""
        if unit.at > start + length:
            raise fail("SX0129", "an extended opcode is longer than it says", unit.place)
        unit.at = start + length

    def set_address(self, size: int) -> None:
        unit = self.unit
        if size != 8:
            raise fail("SX0129", f"an address of {size} bytes", unit.place)
        place = self.places.get(unit.at)
        (value,) = struct.unpack("<Q", unit.take(8))
        if place is None:
            self.section, self.address = "", value
        else:
            # A relocation without an addend adds to the value stored here.
            self.section, self.address = place[0], place[1] or value

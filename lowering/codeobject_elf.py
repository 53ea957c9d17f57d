"""The ELF shell of a code object: a shared object for AMDGPU with the HSA ABI (code object v5)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from sassxlate.errors import EncodeError

ABI_HSA: Final = 64
MACHINE_AMDGPU: Final = 224
GFX1100: Final = 0x41
VERSIONS: Final = {2: 4, 3: 5, 4: 6}  # e_ident[EI_ABIVERSION] to the code object's version
NOTE_METADATA: Final = 32
_PAGE: Final = 0x1000
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_PHDR: Final = struct.Struct("<IIQQQQQQ")
_SHDR: Final = struct.Struct("<IIQQQQIIQQ")
_SYM: Final = struct.Struct("<IBBHQQ")
_NOTE: Final = struct.Struct("<III")
_FUNC, _OBJECT = 2, 1
_PROTECTED: Final = 3


@dataclass(frozen=True, slots=True)
class Symbol:
    """A defined symbol: ``kind`` is STT (1 object, 2 function), ``value`` a virtual address."""

    name: str
    value: int
    size: int
    kind: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A loaded piece: ``data`` at ``address``, zero-filled to ``size``; flags 4 R, 2 W, 1 X."""

    address: int
    data: bytes
    size: int
    flags: int


@dataclass(frozen=True, slots=True)
class Image:
    """What a code object loads and names; ``sections`` maps a name to (address, size)."""

    version: int
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...]
    metadata: bytes
    sections: dict[str, tuple[int, int]]

    def at(self, address: int, size: int) -> bytes:
        """Bytes of the loaded image.

        Raises:
            EncodeError: SX0532, outside every segment.
        """
        for segment in self.segments:
            first = address - segment.address
            if first >= 0 and first + size <= segment.size:
                found = segment.data[first : first + size]
                return found + bytes(size - len(found))
        raise EncodeError("SX0532", f"{size} bytes at {address:#x} are in no segment")


def _align(value: int, step: int) -> int:
    return -(-value // step) * step


class _Strings:
    """A string table that grows; the empty string is at 0."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, name: str) -> int:
        at = len(self.data)
        self.data += name.encode() + b"\0"
        return at


def _hash_table(names: list[str]) -> bytes:
    """A SysV hash table with one bucket: the symbols chained in order."""
    chain = [0, *range(2, len(names) + 1), 0] if names else [0]
    words = [1, len(names) + 1, 1 if names else 0, *chain]
    return struct.pack(f"<{len(words)}I", *words)


def note(metadata: bytes) -> bytes:
    """The note that carries the metadata: owner ``AMDGPU``, type 32."""
    body = metadata + bytes(-len(metadata) % 4)
    return struct.pack("<III", 7, len(metadata), NOTE_METADATA) + b"AMDGPU\0\0" + body


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    data: bytes
    link: int = 0
    info: int = 0
    align: int = 1
    entry: int = 0


def build(
    metadata: bytes,
    descriptors: bytes,
    text: bytes,
    functions: list[tuple[str, int, int]],
    entry_field: int,
    notes: bytes = b"",
) -> bytes:
    """A linked code object.

    ``functions`` lists (name, offset in text, size); descriptor *i*, of 64 bytes, is theirs and
    gets at ``entry_field`` its distance to the code.  Each becomes the symbols NAME and NAME.kd.
    ``notes`` are whole ELF notes to follow the metadata's.
    """
    note_data = note(metadata) + notes
    count = len(functions) * 2 + 1
    strings, symbol_strings = _Strings(), _Strings()
    names = [n for name, _, _ in functions for n in (name, f"{name}.kd")]
    places = [strings.add(n) for n in names]
    at = 64 + 7 * _PHDR.size
    note_at = at
    sym_at = _align(note_at + len(note_data), 8)
    hash_at = sym_at + count * _SYM.size
    hash_data = _hash_table(names)
    str_at = hash_at + len(hash_data)
    rodata_at = _align(str_at + len(strings.data), 64)
    read_end = rodata_at + len(descriptors)
    text_at = _align(read_end, 256)
    text_addr = text_at + _PAGE
    dyn_at = _align(text_at + len(text), 8)
    dyn_addr = dyn_at + 2 * _PAGE
    ro = bytearray(descriptors)
    symbols = [_SYM.pack(0, 0, 0, 0, 0, 0)]
    for i, (_, offset, size) in enumerate(functions):
        kd = rodata_at + 64 * i
        struct.pack_into("<q", ro, 64 * i + entry_field, text_addr + offset - kd)
        symbols.append(_SYM.pack(places[2 * i], 0x12, _PROTECTED, 6, text_addr + offset, size))
        symbols.append(_SYM.pack(places[2 * i + 1], 0x11, _PROTECTED, 5, kd, 64))
    sym_data = b"".join(symbols)
    tags = (
        (6, sym_at),
        (11, _SYM.size),
        (5, str_at),
        (10, len(strings.data)),
        (4, hash_at),
        (0, 0),
    )
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    sections = [
        _Section(".note", 7, 2, note_at, note_at, note_data, align=4),
        _Section(".dynsym", 11, 2, sym_at, sym_at, sym_data, 4, 1, 8, _SYM.size),
        _Section(".hash", 5, 2, hash_at, hash_at, hash_data, 2, 0, 4, 4),
        _Section(".dynstr", 3, 2, str_at, str_at, strings.data),
        _Section(".rodata", 1, 2, rodata_at, rodata_at, bytes(ro), align=64),
        _Section(".text", 1, 6, text_addr, text_at, text, align=256),
        _Section(".dynamic", 6, 3, dyn_addr, dyn_at, dynamic, 4, 0, 8, 16),
        _Section(".symtab", 2, 0, 0, dyn_at + len(dynamic), sym_data, 9, 1, 8, _SYM.size),
    ]
    end = sections[-1].offset + len(sym_data)
    sections.append(_Section(".strtab", 3, 0, 0, end, strings.data))
    end += len(strings.data)
    section_names = [symbol_strings.add(s.name) for s in sections]
    section_names.append(symbol_strings.add(".shstrtab"))
    sections.append(_Section(".shstrtab", 3, 0, 0, end, symbol_strings.data))
    table_at = _align(end + len(symbol_strings.data), 8)
    segments = (
        (6, 4, 64, 64, 7 * _PHDR.size, 8),
        (1, 4, 0, 0, read_end, _PAGE),
        (1, 5, text_at, text_addr, len(text), _PAGE),
        (1, 6, dyn_at, dyn_addr, len(dynamic), _PAGE),
        (2, 6, dyn_at, dyn_addr, len(dynamic), 8),
        (0x6474E551, 6, 0, 0, 0, 0),
        (4, 4, note_at, note_at, len(note_data), 4),
    )
    ident = b"\x7fELF\2\1\1" + bytes([ABI_HSA, 3]) + bytes(7)
    out = bytearray(table_at)
    out[:64] = _HEADER.pack(
        ident, 3, MACHINE_AMDGPU, 1, 0, 64, table_at, GFX1100, 64, _PHDR.size, len(segments),
        _SHDR.size, len(sections) + 1, len(sections),
    )  # fmt: skip
    for i, (kind, flags, offset, address, size, step) in enumerate(segments):
        row = _PHDR.pack(kind, flags, offset, address, address, size, size, step)
        out[64 + i * _PHDR.size : 64 + (i + 1) * _PHDR.size] = row
    headers = [bytes(_SHDR.size)]
    for name, s in zip(section_names, sections, strict=True):
        out[s.offset : s.offset + len(s.data)] = s.data
        places_of = (s.address, s.offset, len(s.data))
        headers.append(
            _SHDR.pack(name, s.kind, s.flags, *places_of, s.link, s.info, s.align, s.entry)
        )
    return bytes(out) + b"".join(headers)


def _unpack(layout: struct.Struct, data: bytes, at: int, what: str) -> tuple[int, ...]:
    if at < 0 or at + layout.size > len(data):
        raise EncodeError("SX0532", f"the file ends inside {what}")
    found: tuple[int, ...] = layout.unpack_from(data, at)
    return found


def _slice(data: bytes, at: int, size: int, what: str) -> bytes:
    if at + size > len(data):
        raise EncodeError("SX0532", f"the file ends inside {what}")
    return data[at : at + size]


def _string(table: bytes, at: int) -> str:
    end = table.find(b"\0", at)
    if end < 0:
        raise EncodeError("SX0532", "a name ends outside its string table")
    return table[at:end].decode("utf-8", "replace")


def _check_header(data: bytes) -> int:
    """The code object's version; SX0531 where it is none for gfx1100."""
    if data[:4] != b"\x7fELF":
        bundle = data[:24] == b"__CLANG_OFFLOAD_BUNDLE__"
        raise EncodeError("SX0531", "an offload bundle" if bundle else "not an ELF file")
    if len(data) < _HEADER.size:
        raise EncodeError("SX0532", "the file ends inside the ELF header")
    machine, flags = struct.unpack_from("<H", data, 18)[0], struct.unpack_from("<I", data, 48)[0]
    if data[4:6] != b"\2\1" or machine != MACHINE_AMDGPU or data[7] != ABI_HSA:
        raise EncodeError("SX0531", "not a 64-bit AMDGPU file of the HSA ABI")
    if data[8] not in VERSIONS:
        raise EncodeError("SX0531", f"ABI version {data[8]}: code objects 4, 5 and 6 are known")
    if flags & 0xFF != GFX1100:
        raise EncodeError("SX0531", f"machine {flags & 0xFF:#x}, not gfx1100 ({GFX1100:#x})")
    return VERSIONS[data[8]]


def parse(data: bytes) -> Image:
    """What a linked code object holds.

    Raises:
        EncodeError: SX0531, not a code object for gfx1100; SX0532, truncated or corrupt.
    """
    version = _check_header(data)
    header = _unpack(_HEADER, data, 0, "the ELF header")
    _, kind, _, _, _, ph_at, sh_at, _, _, _, ph_n, _, sh_n, names_at = header
    if kind != 3:
        raise EncodeError("SX0531", "not linked (a relocatable object)")
    segments: list[Segment] = []
    metadata = b""
    for i in range(ph_n):
        row = _unpack(_PHDR, data, ph_at + i * _PHDR.size, "the program headers")
        what, flags, offset, address, _, size, memory, _ = row
        if what == 1:
            if memory < size:
                raise EncodeError("SX0532", "a segment is larger in the file than in memory")
            body = _slice(data, offset, size, "a segment")
            segments.append(Segment(address, body, memory, flags))
        elif what == 4:
            metadata = metadata or _metadata(_slice(data, offset, size, "the notes"))
    rows = [
        _unpack(_SHDR, data, sh_at + i * _SHDR.size, "the section headers") for i in range(sh_n)
    ]
    if not rows or names_at >= len(rows):
        raise EncodeError("SX0532", "no section headers")
    names = _slice(data, rows[names_at][4], rows[names_at][5], "the section names")
    sections = {_string(names, row[0]): (row[3], row[5]) for row in rows}
    symbols: tuple[Symbol, ...] = ()
    for row in rows:
        if row[1] == 11 or (row[1] == 2 and not symbols):
            symbols = _symbols(data, row, rows)
    return Image(version, tuple(segments), symbols, metadata, sections)


def _metadata(notes: bytes) -> bytes:
    """The description of the AMDGPU metadata note, empty if there is none."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = _unpack(_NOTE, notes, at, "a note")
        name_at = at + 12
        desc_at = name_at + _align(name_size, 4)
        body = _slice(notes, desc_at, size, "a note")
        if notes[name_at : name_at + 7] == b"AMDGPU\0" and kind == NOTE_METADATA:
            return body
        at = desc_at + _align(size, 4)
    return b""


def _symbols(data: bytes, row: tuple[int, ...], rows: list[tuple[int, ...]]) -> tuple[Symbol, ...]:
    if row[6] >= len(rows):
        raise EncodeError("SX0532", "a symbol table without names")
    names = _slice(data, rows[row[6]][4], rows[row[6]][5], "the symbol names")
    table = _slice(data, row[4], row[5], "the symbol table")
    out: list[Symbol] = []
    for at in range(0, len(table) - _SYM.size + 1, _SYM.size):
        name, kind, _, section, value, size = _SYM.unpack_from(table, at)
        if section and kind & 15 in (_FUNC, _OBJECT):
            out.append(Symbol(_string(names, name), value, size, kind & 15))
    return tuple(out)

"""Code objects as a disassembler sees them: sections, symbols and relocations of AMDGPU ELF files.

Linked and relocatable files of code object versions 4, 5 and 6 are read; clang's offload bundles
(what ``hipcc --genco`` writes) are opened.  Layouts: ELF-64 and LLVM's AMDGPUUsage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import zstandard

from sassxlate.errors import EncodeError, Where

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELA: Final = struct.Struct("<QQq")
_MACHINE: Final = 224
_ABI_HSA: Final = 64
_VERSIONS: Final = {2: 4, 3: 5, 4: 6}  # e_ident[EI_ABIVERSION] to the code object's version
_GFX1100: Final = 0x41
_BUNDLE: Final = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED: Final = b"CCOB"  # of a compressed offload bundle
# What the bundles of a small file may hold unpacked, in bytes, and a larger one for each byte of
# its own: clang gets 3 to 10 out of machine code.
_LEAST: Final = 1 << 28
_RATIO: Final = 16
_NOBITS: Final = 8
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
# e_flags' machine numbers, for messages (AMDGPUUsage, "AMDGPU Machine Types").
_MACHINES: Final = {
    0x2A: "gfx803", 0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x33: "gfx1010",
    0x35: "gfx1012", 0x36: "gfx1030", 0x37: "gfx1031", 0x38: "gfx1032", 0x3E: "gfx1034",
    0x3F: "gfx90a", 0x41: "gfx1100", 0x43: "gfx1150", 0x44: "gfx1103", 0x46: "gfx1101",
    0x47: "gfx1102", 0x48: "gfx1200", 0x4A: "gfx1151", 0x4C: "gfx942", 0x4E: "gfx1201",
    0x4F: "gfx950", 0x54: "gfx11-generic",
}  # fmt: skip
_RELOCATIONS: Final = (
    "NONE", "ABS32_LO", "ABS32_HI", "ABS64", "REL32", "REL64", "ABS32", "GOTPCREL",
    "GOTPCREL32_LO", "GOTPCREL32_HI", "REL32_LO", "REL32_HI", "", "RELATIVE64", "REL16",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol: ``kind`` is STT (0 none, 1 object, 2 function, 3 section), ``section`` an index.

    ``value`` is an address in a linked file, else the offset in its section.
    """

    name: str
    value: int
    size: int
    kind: int
    section: int
    bind: int = 0


@dataclass(frozen=True, slots=True)
class Relocation:
    """What the linker will add: ``offset`` in bytes from the section's start."""

    offset: int
    name: str
    symbol: str
    addend: int


@dataclass(frozen=True, slots=True)
class Section:
    """A section; ``address`` is 0 in relocatable files."""

    index: int
    name: str
    address: int
    data: bytes
    code: bool
    relocations: tuple[Relocation, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A code object for gfx1100; ``version`` is 4, 5 or 6."""

    version: int
    linked: bool
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def symbols_of(self, section: Section) -> tuple[Symbol, ...]:
        """The named symbols of a section in the order of their places; sections' are left out."""
        found = [s for s in self.symbols if s.section == section.index and s.name and s.kind != 3]
        return tuple(sorted(found, key=lambda s: (s.value, s.kind != 2, s.name)))


def is_code_object(data: bytes) -> bool:
    """Whether the bytes begin an AMDGPU ELF file or an offload bundle."""
    if data[:4] == b"\x7fELF" and len(data) >= 20:
        return int.from_bytes(data[18:20], "little") == _MACHINE
    return data[: len(_BUNDLE)] == _BUNDLE or data[: len(_COMPRESSED)] == _COMPRESSED


def _bad(message: str) -> EncodeError:
    return EncodeError("SX0532", message)


@dataclass(slots=True)
class Room:
    """Bytes that all bundles of one file may hold."""

    left: int

    @classmethod
    def of(cls, size: int) -> Room:
        """That of a file of ``size`` bytes."""
        return cls(max(_LEAST, _RATIO * size))

    def take(self, size: int) -> None:
        """EncodeError SX0532 where it is too much."""
        if size > self.left:
            raise _bad(f"{size} bytes in a bundle, where {self.left} are left for the file")
        self.left -= size


def _slice(data: bytes, at: int, size: int, what: str) -> bytes:
    if at + size > len(data):
        raise _bad(f"the file ends inside {what}")
    return data[at : at + size]


def _string(table: bytes, at: int) -> str:
    end = table.find(b"\0", at)
    if end < 0:
        raise _bad("a name ends outside its string table")
    return table[at:end].decode("utf-8", "replace")


def _decompress(data: bytes, room: Room) -> bytes:
    """The bundle in a compressed one: versions 1 to 3 of clang's header, zstd."""
    version, method = struct.unpack("<HH", _slice(data, 4, 4, "the bundle's header"))
    layout = {1: "<IQ", 2: "<IIQ", 3: "<QQQ"}.get(version)
    if layout is None or method != 1:
        raise EncodeError("SX0531", f"a bundle of version {version}, compressed by method {method}")
    size = struct.calcsize(layout)
    *head, whole, _ = struct.unpack(layout, _slice(data, 8, size, "the bundle's header"))
    if head and head[0] > len(data):
        raise _bad("the file ends inside the compressed bundle")
    body = data[8 + size : head[0] if head else len(data)]
    room.take(whole)
    try:
        # The frame's own header may ask for any size: it is not believed.
        declared = zstandard.frame_content_size(body)
        if declared not in (-1, whole):
            raise _bad(f"the compressed bundle holds {declared} bytes, not {whole}")
        out = zstandard.ZstdDecompressor().decompress(body, max_output_size=whole)
    except zstandard.ZstdError as error:
        raise _bad(f"the compressed bundle is damaged: {error}") from None
    if len(out) != whole:
        raise _bad(f"the compressed bundle holds {len(out)} bytes, not {whole}")
    return out


def find_bundles(data: bytes) -> Iterator[bytes]:
    """The offload bundles in a host program or library, which lie in its section .hip_fatbin."""
    for magic in (_BUNDLE, _COMPRESSED):
        at = data.find(magic)
        while at >= 0:
            yield data[at:]
            at = data.find(magic, at + 1)


def unbundle(data: bytes, room: Room | None = None) -> tuple[tuple[str, bytes], ...]:
    """(target, code object) of every entry of an offload bundle; host code is left out.

    ``room`` is what is left for all bundles of the file.

    Raises:
        EncodeError: SX0531, compressed in another way than zstd; SX0532, truncated or damaged, or
            larger than there is room for.
    """
    room = room or Room.of(len(data))
    if data[: len(_COMPRESSED)] == _COMPRESSED:
        data = _decompress(data, room)
        if data[: len(_BUNDLE)] != _BUNDLE:
            raise _bad("the compressed bundle holds no bundle")
    (count,) = struct.unpack("<Q", _slice(data, 24, 8, "the bundle's header"))
    at = 32
    out: list[tuple[str, bytes]] = []
    for _ in range(count):
        offset, size, length = struct.unpack("<QQQ", _slice(data, at, 24, "the bundle's header"))
        name = _slice(data, at + 24, length, "the bundle's header").decode("utf-8", "replace")
        at += 24 + length
        room.take(24 + length + size)  # entries may share their bytes
        if size and not name.startswith("host"):
            out.append((name, _slice(data, offset, size, "the bundle")))
    return tuple(out)


def _check(data: bytes) -> tuple[int, tuple[int, ...]]:
    if data[:4] != b"\x7fELF":
        raise EncodeError("SX0531", "not an ELF file")
    header = _HEADER.unpack(_slice(data, 0, _HEADER.size, "the ELF header"))
    if data[4:6] != b"\2\1" or header[2] != _MACHINE or data[7] != _ABI_HSA:
        raise EncodeError("SX0531", "not a 64-bit AMDGPU file of the HSA ABI")
    machine = header[7] & 0xFF
    if machine != _GFX1100:
        name = _MACHINES.get(machine, f"machine {machine:#x}")
        raise EncodeError("SX0531", f"code for {name}, not gfx1100")
    if data[8] not in _VERSIONS:
        raise EncodeError("SX0531", f"ABI version {data[8]}: code objects 4, 5 and 6 are known")
    return _VERSIONS[data[8]], header


def _relocations(
    data: bytes, row: tuple[int, ...], rows: list[tuple[int, ...]], tables: dict[int, list[Symbol]]
) -> tuple[Relocation, ...]:
    symbols: list[Symbol] = tables.get(row[6], [])
    body = _slice(data, row[4], row[5], "a relocation table")
    out: list[Relocation] = []
    places: list[tuple[int, int, int]] = list(_RELA.iter_unpack(body[: len(body) // 24 * 24]))
    for offset, info, addend in places:
        if info >> 32 >= len(symbols):
            raise _bad("a relocation of a symbol that is not there")
        kind = info & 0xFFFFFFFF
        name = _RELOCATIONS[kind] if kind < len(_RELOCATIONS) else ""
        symbol = symbols[info >> 32]
        label = symbol.name or _section_name(data, rows, symbol.section)
        out.append(Relocation(offset, f"R_AMDGPU_{name or kind}", label, addend))
    return tuple(out)


def _section_name(data: bytes, rows: list[tuple[int, ...]], index: int) -> str:
    header: tuple[int, ...] = _HEADER.unpack_from(data)
    names = rows[header[13]]
    if not 0 < index < len(rows):
        return "*ABS*"
    return _string(_slice(data, names[4], names[5], "the section names"), rows[index][0])


def _check_apart(data: bytes, rows: list[tuple[int, ...]]) -> None:
    """Sections that share bytes would be read again and again."""
    if sum(row[5] for row in rows if row[1] != _NOBITS) > len(data):
        raise _bad("its sections share bytes")


def _symbols(data: bytes, row: tuple[int, ...], rows: list[tuple[int, ...]]) -> list[Symbol]:
    if row[6] >= len(rows):
        raise _bad("a symbol table without names")
    names = _slice(data, rows[row[6]][4], rows[row[6]][5], "the symbol names")
    table = _slice(data, row[4], row[5], "the symbol table")
    found: list[Symbol] = []
    left = _RATIO * len(data)  # a name may be a part of another: of long ones there are few
    for name, kind, _, section, value, size in _SYMBOL.iter_unpack(
        table[: len(table) // _SYMBOL.size * _SYMBOL.size]
    ):
        text = _string(names, name)
        left -= len(text)
        if left < 0:
            raise _bad("its symbols' names share bytes")
        found.append(Symbol(text, value, size, kind & 15, section, kind >> 4))
    return found


def read(data: bytes, path: str = "") -> CodeObject:
    """The code object in the bytes of an ELF file.

    Raises:
        EncodeError: SX0531, no code object for gfx1100; SX0532, truncated or corrupt.
    """
    try:
        return _read(data)
    except EncodeError as error:
        raise EncodeError(error.code, error.message, Where(file=path or None)) from None


def _read(data: bytes) -> CodeObject:
    version, header = _check(data)
    kind, table_at, count, names_at = header[1], header[6], header[12], header[13]
    if kind not in (1, 3):
        raise EncodeError("SX0531", f"an ELF file of type {kind}, neither relocatable nor linked")
    table = _slice(data, table_at, count * _SECTION.size, "the section headers")
    rows: list[tuple[int, ...]] = list(_SECTION.iter_unpack(table))
    _check_apart(data, rows)
    if names_at >= len(rows):
        raise _bad("no section names")
    tables = {i: _symbols(data, row, rows) for i, row in enumerate(rows) if row[1] in (2, 11)}
    relocations = {
        row[7]: _relocations(data, row, rows, tables) for row in rows if row[1] == 4 and kind == 1
    }
    sections: list[Section] = []
    for index, row in enumerate(rows):
        if not row[2] & _ALLOC or row[1] == _NOBITS:
            continue
        name = _section_name(data, rows, index)
        body = _slice(data, row[4], row[5], f"the section {name}")
        code = bool(row[2] & _EXECUTE)
        sections.append(Section(index, name, row[3], body, code, relocations.get(index, ())))
    symbols = next((tables[i] for i, row in enumerate(rows) if row[1] == 2), None)
    if symbols is None:
        symbols = [symbol for table in tables.values() for symbol in table]
    return CodeObject(version, kind == 3, tuple(sections), tuple(symbols))

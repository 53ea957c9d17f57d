"""The ELF shell of a code object, version 5 or 6: a shared object for AMDGPU with the HSA ABI."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sassxlate.disasm.containers.code_object import ABI_HSA, NOTE_METADATA, NOTE_OWNER, VERSIONS
from sassxlate.disasm.containers.elf import EHDR, EM_AMDGPU, ET_DYN, PHDR, SHDR, SYM
from sassxlate.disasm.rdna3.tables.kernel_descriptor import ENTRY, WORDS
from sassxlate.disasm.rdna3.tables.kernel_descriptor import SIZE as DESCRIPTOR_SIZE

_PAGE: Final = 0x1000
_PROTECTED: Final = 3
_ABI_VERSION: Final = {version: abi for abi, version in VERSIONS.items()}


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
    owner = NOTE_OWNER + bytes(-len(NOTE_OWNER) % 4)
    body = metadata + bytes(-len(metadata) % 4)
    return struct.pack("<III", len(NOTE_OWNER), len(metadata), NOTE_METADATA) + owner + body


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
    more: bytes = b""  # follows ``data``: notes may be longer than the code

    @property
    def size(self) -> int:
        return len(self.data) + len(self.more)


def build(
    metadata: bytes,
    descriptors: bytes,
    text: bytes,
    functions: list[tuple[str, int, int]],
    flags: int,
    notes: bytes = b"",
    version: int = 5,
) -> bytes:
    """A linked code object.

    ``functions`` lists (name, offset in text, size); descriptor *i* is theirs and
    gets its distance to the code as entry.  Each becomes the symbols NAME and NAME.kd.
    ``flags`` are the file's e_flags, ``notes`` whole ELF notes to follow the metadata's;
    ``version`` is the code object's.
    """
    note_data = note(metadata)
    note_size = len(note_data) + len(notes)
    count = len(functions) * 2 + 1
    strings, symbol_strings = _Strings(), _Strings()
    names = [n for name, _, _ in functions for n in (name, f"{name}.kd")]
    places = [strings.add(n) for n in names]
    head_end = note_at = 64 + 7 * PHDR.size
    sym_at = _align(note_at + note_size, 8)
    hash_at = sym_at + count * SYM.size
    hash_data = _hash_table(names)
    str_at = hash_at + len(hash_data)
    rodata_at = _align(str_at + len(strings.data), 64)
    read_end = rodata_at + len(descriptors)
    text_at = _align(read_end, 256)
    text_addr = text_at + _PAGE
    dyn_at = _align(text_at + len(text), 8)
    dyn_addr = dyn_at + 2 * _PAGE
    ro = bytearray(descriptors)
    symbols = [SYM.pack(0, 0, 0, 0, 0, 0)]
    for i, (_, offset, size) in enumerate(functions):
        kd = rodata_at + DESCRIPTOR_SIZE * i
        struct.pack_into("<q", ro, kd - rodata_at + WORDS[ENTRY].offset, text_addr + offset - kd)
        symbols.append(SYM.pack(places[2 * i], 0x12, _PROTECTED, 6, text_addr + offset, size))
        symbols.append(SYM.pack(places[2 * i + 1], 0x11, _PROTECTED, 5, kd, DESCRIPTOR_SIZE))
    sym_data = b"".join(symbols)
    tags = (
        (6, sym_at),
        (11, SYM.size),
        (5, str_at),
        (10, len(strings.data)),
        (4, hash_at),
        (0, 0),
    )
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    sections = [
        _Section(".note", 7, 2, note_at, note_at, note_data, align=4, more=notes),
        _Section(".dynsym", 11, 2, sym_at, sym_at, sym_data, 4, 1, 8, SYM.size),
        _Section(".hash", 5, 2, hash_at, hash_at, hash_data, 2, 0, 4, 4),
        _Section(".dynstr", 3, 2, str_at, str_at, strings.data),
        _Section(".rodata", 1, 2, rodata_at, rodata_at, bytes(ro), align=64),
        _Section(".text", 1, 6, text_addr, text_at, text, align=256),
        _Section(".dynamic", 6, 3, dyn_addr, dyn_at, dynamic, 4, 0, 8, 16),
        _Section(".symtab", 2, 0, 0, dyn_at + len(dynamic), sym_data, 9, 1, 8, SYM.size),
    ]
    end = sections[-1].offset + len(sym_data)
    sections.append(_Section(".strtab", 3, 0, 0, end, strings.data))
    end += len(strings.data)
    section_names = [symbol_strings.add(s.name) for s in sections]
    section_names.append(symbol_strings.add(".shstrtab"))
    sections.append(_Section(".shstrtab", 3, 0, 0, end, symbol_strings.data))
    table_at = _align(end + len(symbol_strings.data), 8)
    segments = (
        (6, 4, 64, 64, 7 * PHDR.size, 8),
        (1, 4, 0, 0, read_end, _PAGE),
        (1, 5, text_at, text_addr, len(text), _PAGE),
        (1, 6, dyn_at, dyn_addr, len(dynamic), _PAGE),
        (2, 6, dyn_at, dyn_addr, len(dynamic), 8),
        (0x6474E551, 6, 0, 0, 0, 0),
        (4, 4, note_at, note_at, note_size, 4),
    )
    ident = b"\x7fELF\2\1\1" + bytes([ABI_HSA, _ABI_VERSION[version]]) + bytes(7)
    out = bytearray(head_end)
    out[:64] = EHDR.pack(
        ident, ET_DYN, EM_AMDGPU, 1, 0, 64, table_at, flags, 64, PHDR.size, len(segments),
        SHDR.size, len(sections) + 1, len(sections),
    )  # fmt: skip
    for i, (kind, flags, offset, address, size, step) in enumerate(segments):
        row = PHDR.pack(kind, flags, offset, address, address, size, size, step)
        out[64 + i * PHDR.size : 64 + (i + 1) * PHDR.size] = row
    headers = [bytes(SHDR.size)]
    parts, at = [bytes(out)], head_end
    for name, s in zip(section_names, sections, strict=True):
        parts += (bytes(s.offset - at), s.data, s.more)
        at = s.offset + s.size
        places_of = (s.address, s.offset, s.size)
        headers.append(
            SHDR.pack(name, s.kind, s.flags, *places_of, s.link, s.info, s.align, s.entry)
        )
    return b"".join((*parts, bytes(table_at - at), *headers))


def with_sections(data: bytes, more: Mapping[str, bytes]) -> bytes:
    """A file of :func:`build` with further sections, which are not loaded, at its end."""
    head = list(EHDR.unpack_from(data))
    table_at, count = head[6], head[12]
    headers = [list(SHDR.unpack_from(data, table_at + i * SHDR.size)) for i in range(count)]
    *headers, strings = headers
    names = data[strings[4] : strings[4] + strings[5]]
    out = bytearray(data[:table_at])
    for name, content in more.items():
        headers.append([len(names), 1, 0, 0, len(out), len(content), 0, 0, 1, 0])
        names += name.encode() + b"\0"
        out += content
    strings[4], strings[5] = len(out), len(names)
    out += names
    out += bytes(-len(out) % 8)
    head[6], head[12], head[13] = len(out), len(headers) + 1, len(headers)
    out[: EHDR.size] = EHDR.pack(*head)
    return bytes(out) + b"".join(SHDR.pack(*one) for one in (*headers, strings))

"""From an LLVM object to the flat image that the native library maps (abi.h, SxImageHeader)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sassxlate.errors import EmulatorError

from .abi import (
    FLAG_COUNTS,
    FLAG_STRICT,
    HEADER_FORMAT,
    HEADER_SIZE,
    IMAGE_MAGIC,
    IMAGE_VERSION,
    ISA_AVX2,
    ISA_AVX512,
)

_R_PC64, _R_PC32, _R_PLT32 = 24, 2, 4
_ALLOC, _WRITE = 2, 1
_SYMTAB, _RELA, _NOBITS = 2, 4, 8  # types of sections
_GLOBAL = 1  # binding of a symbol
# Elf64_Shdr, Elf64_Sym, Elf64_Rela.
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


class _Relocation(NamedTuple):
    offset: int
    info: int
    addend: int


@dataclass(frozen=True, slots=True)
class HostImage:
    """An image file's bytes, and what its making cost."""

    data: bytes
    kernel: str
    instructions: int
    code_size: int
    entry: int
    stack: int  # bytes of stack that the wave's function itself takes
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    counts: int = 0  # numbers that it counts in, one a block
    traces: bool = False  # it writes records, and spends a budget

    @property
    def code(self) -> bytes:
        return self.data[HEADER_SIZE:]


class _Object:
    """A relocatable object that LLVM made, as far as linking needs it."""

    def __init__(self, data: bytes) -> None:
        (offset,) = struct.unpack_from("<Q", data, 40)  # e_shoff, e_shnum, e_shstrndx
        count, names = struct.unpack_from("<HH", data, 60)
        self.data = data
        rows = [_SECTION.unpack_from(data, offset + _SECTION.size * i) for i in range(count)]
        self.sections = [_Section(*row) for row in rows]
        self.names = self.sections[names].offset
        table = next((s for s in self.sections if s.type == _SYMTAB), None)
        self.symbols: list[_Symbol] = []
        self.strings = 0
        if table is not None:
            self.strings = self.sections[table.link].offset
            end = table.offset + table.size
            self.symbols = [
                _Symbol(*_SYMBOL.unpack_from(data, at))
                for at in range(table.offset, end, _SYMBOL.size)
            ]
        self.base: dict[int, int] = {}  # section's index to its place in the image

    def text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode()

    def name(self, symbol: _Symbol) -> str:
        return self.text(self.strings + symbol.name)

    def place(self, blob: bytearray) -> None:
        """Appends what is loaded."""
        for index, section in enumerate(self.sections):
            if not section.flags & _ALLOC or not section.size:
                continue
            name = self.text(self.names + section.name)
            if name == ".eh_frame":
                continue
            if section.flags & _WRITE or section.type == _NOBITS:
                raise EmulatorError("SX0690", f"the compiled code has writable data: {name}")
            blob += bytes(-len(blob) % max(section.align, 1))
            self.base[index] = len(blob)
            blob += self.data[section.offset : section.offset + section.size]

    def defined(self) -> Iterator[tuple[str, int]]:
        """Its global symbols and their places."""
        for symbol in self.symbols:
            if symbol.info >> 4 == _GLOBAL and symbol.section in self.base:
                yield self.name(symbol), self.base[symbol.section] + symbol.value

    def relocate(self, blob: bytearray, known: Mapping[str, int]) -> None:
        for section in self.sections:
            if section.type != _RELA or section.info not in self.base:
                continue
            at = self.base[section.info]
            end = section.offset + section.size
            for place in range(section.offset, end, _RELOCATION.size):
                offset, info, addend = _Relocation(*_RELOCATION.unpack_from(self.data, place))
                value = self._value(self.symbols[info >> 32], known) + addend - at - offset
                kind = info & 0xFFFFFFFF
                if kind in (_R_PC32, _R_PLT32):
                    struct.pack_into("<i", blob, at + offset, value)
                elif kind == _R_PC64:
                    struct.pack_into("<q", blob, at + offset, value)
                else:
                    text = f"the compiled code has a relocation of type {kind}"
                    raise EmulatorError("SX0690", text)

    def _value(self, symbol: _Symbol, known: Mapping[str, int]) -> int:
        if symbol.section in self.base:
            return self.base[symbol.section] + symbol.value
        name = self.name(symbol)
        if symbol.section or name not in known:
            raise EmulatorError("SX0690", f"the compiled code needs the symbol {name!r}")
        return known[name]


def link(objects: Sequence[bytes], entry: str) -> tuple[bytes, int]:
    """(code with its read-only data, the entry's offset in it).

    Raises:
        EmulatorError: SX0690, an object has what an image cannot have: writable data, an
        undefined symbol or a relocation that is not relative.
    """
    blob = bytearray()
    parts = [_Object(data) for data in objects]
    known: dict[str, int] = {}
    for part in parts:
        part.place(blob)
        for name, value in part.defined():
            known.setdefault(name, value)
    for part in parts:
        part.relocate(blob, known)
    if entry not in known:
        raise EmulatorError("SX0690", "the compiled code has no entry")
    return bytes(blob), known[entry]


def header(
    kernel: str, size: int, entry: int, *, strict: bool, avx512: bool, counts: int = 0
) -> bytes:
    name = kernel.encode()[:255]
    page = struct.pack(
        HEADER_FORMAT,
        IMAGE_MAGIC,
        IMAGE_VERSION,
        HEADER_SIZE,
        size,
        entry,
        (FLAG_STRICT if strict else 0) | (FLAG_COUNTS if counts else 0),
        ISA_AVX512 if avx512 else ISA_AVX2,
        counts,
        name,
    )
    return page + bytes(HEADER_SIZE - len(page))


def frame_size(code: bytes, entry: int) -> int:
    """Bytes that the function's prologue takes of the stack: its `sub rsp, imm32`."""
    at = code.find(b"\x48\x81\xec", entry, entry + 96)
    return struct.unpack_from("<I", code, at + 3)[0] if at >= 0 else 256

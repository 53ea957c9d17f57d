"""From an LLVM object to the flat image that the native library maps (abi.h, SxImageHeader)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sassxlate.disasm.containers.elf import (
    SHF_ALLOC,
    SHF_WRITE,
    SHT_NOBITS,
    SHT_RELA,
    SHT_SYMTAB,
    Elf,
    ElfSymbol,
)
from sassxlate.errors import EmulatorError
from sassxlate.lowering.emulate.image.abi import (
    FLAG_COUNTS,
    FLAG_PARTIAL,
    FLAG_QUICK,
    FLAG_RUNS,
    FLAG_STRICT,
    FLAG_TURNS,
    HEADER_FORMAT,
    HEADER_SIZE,
    IMAGE_MAGIC,
    IMAGE_VERSION,
    ISA_AVX2,
    ISA_AVX512,
)

_R_PC64, _R_PC32, _R_PLT32 = 24, 2, 4
_GLOBAL = 1  # binding of a symbol


@dataclass(frozen=True, slots=True)
class HostImage:
    """An image file's bytes, and the cost of making it."""

    data: bytes
    kernel: str
    instructions: int
    code_size: int
    entry: int
    stack: int  # bytes of stack of the wave function itself
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    counts: int = 0  # number of its counters, one per block
    traces: bool = False  # it writes records, and uses up a budget

    @property
    def code(self) -> bytes:
        return self.data[HEADER_SIZE:]


class _Object:
    """A relocatable object that LLVM made, with the parts that linking needs."""

    def __init__(self, data: bytes) -> None:
        self.elf = Elf(data)
        table = next((s for s in self.elf.sections if s.type == SHT_SYMTAB), None)
        self.symbols = self.elf.symbols(table) if table is not None else ()
        self.base: dict[int, int] = {}  # section index -> offset in the image

    def place(self, blob: bytearray) -> None:
        """Appends the sections that are loaded."""
        for section in self.elf.sections:
            if not section.flags & SHF_ALLOC or not section.size:
                continue
            if section.name == ".eh_frame":
                continue
            if section.flags & SHF_WRITE or section.type == SHT_NOBITS:
                text = f"the compiled code has writable data: {section.name}"
                raise EmulatorError("SX0690", text)
            blob += bytes(-len(blob) % max(section.align, 1))
            self.base[section.index] = len(blob)
            blob += section.data

    def defined(self) -> Iterator[tuple[str, int]]:
        """Its global symbols and their offsets."""
        for symbol in self.symbols:
            if symbol.bind == _GLOBAL and symbol.shndx in self.base:
                yield symbol.name, self.base[symbol.shndx] + symbol.value

    def relocate(self, blob: bytearray, known: Mapping[str, int]) -> None:
        for section in self.elf.sections:
            if section.type != SHT_RELA or section.info not in self.base:
                continue
            at = self.base[section.info]
            for reloc in self.elf.relocations(section):
                offset, kind = reloc.offset, reloc.type
                value = self._value(self.symbols[reloc.symbol], known) + reloc.addend - at - offset
                if kind in (_R_PC32, _R_PLT32):
                    struct.pack_into("<i", blob, at + offset, value)
                elif kind == _R_PC64:
                    struct.pack_into("<q", blob, at + offset, value)
                else:
                    text = f"the compiled code has a relocation of type {kind}"
                    raise EmulatorError("SX0690", text)

    def _value(self, symbol: ElfSymbol, known: Mapping[str, int]) -> int:
        if symbol.shndx in self.base:
            return self.base[symbol.shndx] + symbol.value
        if symbol.shndx or symbol.name not in known:
            raise EmulatorError("SX0690", f"the compiled code needs the symbol {symbol.name!r}")
        return known[symbol.name]


def link_all(objects: Sequence[bytes]) -> tuple[bytes, dict[str, int]]:
    """(code with its read-only data, the offsets of the global symbols in it).

    Raises:
        EmulatorError: SX0690, an object has something that an image cannot have: writable data, an
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
    return bytes(blob), known


def link(objects: Sequence[bytes], entry: str) -> tuple[bytes, int]:
    """(code with its read-only data, the entry's offset in it).

    Raises:
        EmulatorError: SX0690, as `link_all`, or there is no entry.
    """
    blob, known = link_all(objects)
    if entry not in known:
        raise EmulatorError("SX0690", "the compiled code has no entry")
    return blob, known[entry]


def header(
    kernel: str,
    size: int,
    entry: int,
    *,
    strict: bool,
    avx512: bool,
    counts: int = 0,
    turns: bool = False,
    quick: bool = False,
    runs: bool = False,
    partial: bool = False,
) -> bytes:
    flags = FLAG_STRICT * strict | FLAG_COUNTS * bool(counts) | FLAG_TURNS * turns
    flags |= FLAG_QUICK * quick | FLAG_RUNS * runs | FLAG_PARTIAL * partial
    name = kernel.encode()[:255]
    page = struct.pack(
        HEADER_FORMAT,
        IMAGE_MAGIC,
        IMAGE_VERSION,
        HEADER_SIZE,
        size,
        entry,
        flags,
        ISA_AVX512 if avx512 else ISA_AVX2,
        counts,
        name,
    )
    return page + bytes(HEADER_SIZE - len(page))


def frame_size(code: bytes, entry: int) -> int:
    """Bytes of stack that the function's prologue takes: its `sub rsp, imm32`."""
    at = code.find(b"\x48\x81\xec", entry, entry + 96)
    return struct.unpack_from("<I", code, at + 3)[0] if at >= 0 else 256

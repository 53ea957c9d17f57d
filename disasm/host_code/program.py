"""A host program as far as its calls go: functions, imports, strings.

Functions come from the symbol tables, from the unwind table (.eh_frame_hdr, which strip leaves:
System V ABI for x86-64, and the Linux Standard Base's "Exception Frames"), and from the targets of
direct calls.  Imports are the slots that relocations fill, and the PLT's jumps through them.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sassxlate.disasm.containers.elf import (
    EM_X86_64,
    ET_DYN,
    ET_EXEC,
    SHF_EXECINSTR,
    SHF_WRITE,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_RELA,
    SHT_SYMTAB,
    STT_FUNC,
    Elf,
    Section,
)
from sassxlate.errors import UsageError

_GLOB_DAT, _JUMP_SLOT, _RELATIVE = 6, 7, 8  # R_X86_64_*
_SORTED_TABLE = (1, 0x1B, 0x03, 0x3B)  # version; pcrel sdata4, udata4, datarel sdata4
_MOST_STRING = 4096


@dataclass(slots=True)
class Function:
    """A function: its first address, the one after its last, its name in the symbol table."""

    start: int
    end: int
    name: str = ""

    @property
    def label(self) -> str:
        """The name, or ``sub_ADDRESS`` where there is none."""
        return self.name or f"sub_{self.start:x}"


@dataclass
class Program:
    """A program or shared object; ``known`` are names of addresses from elsewhere, as those of a
    statically linked runtime's functions."""

    elf: Elf
    known: Mapping[int, str] = field(default_factory=dict[int, str])

    def __post_init__(self) -> None:
        if self.elf.machine != EM_X86_64 or self.elf.type not in (ET_EXEC, ET_DYN):
            raise UsageError("SX0890", "no x86-64 program or shared object: it has no host code")

    @cached_property
    def code(self) -> tuple[Section, ...]:
        """The sections with machine code."""
        return tuple(
            s for s in self.elf.sections if s.flags & SHF_EXECINSTR and s.type != SHT_NOBITS
        )

    @cached_property
    def symbols(self) -> dict[int, tuple[str, int]]:
        """Names and sizes of functions by address."""
        found: dict[int, tuple[str, int]] = {}
        for table in self.elf.sections:
            if table.type in (SHT_SYMTAB, SHT_DYNSYM):
                for symbol in self.elf.symbols(table):
                    if symbol.kind == STT_FUNC and symbol.shndx and symbol.value:
                        found.setdefault(symbol.value, (symbol.name, symbol.size))
        return found

    @cached_property
    def exported(self) -> set[int]:
        """The functions that other files can call by name."""
        return {
            symbol.value
            for table in self.elf.sections
            if table.type == SHT_DYNSYM
            for symbol in self.elf.symbols(table)
            if symbol.kind == STT_FUNC and symbol.shndx and symbol.bind and symbol.value
        }

    @cached_property
    def slots(self) -> dict[int, str]:
        """Imported names by the address of the word that the dynamic linker fills."""
        found: dict[int, str] = {}
        for table in self.elf.sections:
            if table.type != SHT_RELA or table.link >= len(self.elf.sections):
                continue
            names = self.elf.sections[table.link]
            symbols = self.elf.symbols(names) if names.type == SHT_DYNSYM else ()
            for reloc in self.elf.relocations(table):
                if reloc.type in (_GLOB_DAT, _JUMP_SLOT) and 0 < reloc.symbol < len(symbols):
                    found[reloc.offset] = symbols[reloc.symbol].name
        return found

    @cached_property
    def pointers(self) -> dict[int, int]:
        """Words that hold an address of this image, by their own address."""
        found: dict[int, int] = {}
        for table in self.elf.sections:
            if table.type == SHT_RELA:
                for reloc in self.elf.relocations(table):
                    if reloc.type == _RELATIVE:
                        found[reloc.offset] = reloc.addend
        return found

    @cached_property
    def _unwound(self) -> list[int]:
        """The functions' starts in the unwind table."""
        section = self.elf.section(".eh_frame_hdr")
        if section is None or len(section.data) < 12 or tuple(section.data[:4]) != _SORTED_TABLE:
            return []
        count = struct.unpack_from("<I", section.data, 8)[0]
        rows = section.data[12 : 12 + 8 * min(count, len(section.data) // 8)]
        rows = rows[: len(rows) // 8 * 8]
        return [section.addr + start for start, _ in struct.iter_unpack("<ii", rows)]

    def functions(self, more: Iterator[int] | tuple[int, ...] = ()) -> list[Function]:
        """All functions, by address; ``more`` are starts that calls have shown."""
        starts = {*self.symbols, *self._unwound, *self.known, *more}
        found: list[Function] = []
        for section in self.code:
            end = section.addr + len(section.data)
            here = sorted(a for a in starts if section.addr <= a < end)
            if not here or section.name.startswith(".plt"):
                continue
            for at, following in zip(here, [*here[1:], end], strict=True):
                name = self.known.get(at) or self.symbols.get(at, ("", 0))[0]
                found.append(Function(at, following, name))
        found.sort(key=lambda f: f.start)
        return found

    def bytes_at(self, start: int, end: int) -> bytes:
        """Machine code between two addresses of one section."""
        for section in self.code:
            if section.addr <= start < section.addr + len(section.data):
                return bytes(section.data[start - section.addr : end - section.addr])
        return b""

    def string(self, address: int) -> str | None:
        """The NUL-terminated text at an address that is not written to."""
        for section in self.elf.sections:
            if section.flags & SHF_WRITE or not section.addr:
                continue
            if section.addr <= address < section.addr + len(section.data):
                data = bytes(section.data[address - section.addr :][:_MOST_STRING])
                text, found, _ = data.partition(b"\0")
                return text.decode("utf-8", "surrogateescape") if found and text else None
        return None

    def is_code(self, address: int) -> bool:
        """Whether the address lies in a section with machine code."""
        return any(s.addr <= address < s.addr + len(s.data) for s in self.code)


def function_at(functions: list[Function], address: int) -> Function | None:
    """The function that an address is in."""
    index = bisect.bisect_right(functions, address, key=lambda f: f.start) - 1
    if index < 0 or address >= functions[index].end:
        return None
    return functions[index]


__all__ = ["Function", "Program", "function_at"]

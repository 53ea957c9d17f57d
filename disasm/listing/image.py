"""A cubin in the form that its listing needs: raw sections, symbols and relocations, by number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sassxlate.disasm.containers import eiattr
from sassxlate.disasm.containers import relocations as relocs
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.elf import (
    ET_REL,
    SHF_EXECINSTR,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    STT_SECTION,
    Elf,
    ElfReloc,
    ElfSymbol,
    Section,
    fail,
)
from sassxlate.disasm.containers.values import Cubin, Function, Kernel

_IN_PLACE = {relocs.IDS["R_CUDA_64"]: 8, relocs.IDS["R_CUDA_32"]: 4}
STB_GLOBAL, STB_WEAK = 1, 2


@dataclass(frozen=True, slots=True)
class BranchTable:
    """An indirect branch and its possible targets, in bytes from the start of the section."""

    offset: int
    targets: tuple[int, ...]


def in_place(reloc: ElfReloc, data: memoryview) -> ElfReloc:
    """A relocation without an addend, with the one that is stored in the section.

    Only addresses in data have one; those in code have only a symbol.
    """
    size = _IN_PLACE.get(reloc.type)
    if size is None or reloc.offset + size > len(data):
        return reloc
    addend = int.from_bytes(data[reloc.offset : reloc.offset + size], "little", signed=True)
    return replace(reloc, addend=addend)


class Image:
    """A cubin that `parse_cubin` accepts, with the parts of its ELF file that a listing uses.

    Raises ContainerError as `parse_cubin` does.
    """

    def __init__(self, data: bytes | memoryview, cubin: Cubin | None = None) -> None:
        self.cubin = parse_cubin(data) if cubin is None else cubin
        self.elf = Elf(data)
        self.relocatable = self.elf.type == ET_REL
        self.sections = self.elf.sections
        table = next((s for s in self.sections if s.type == SHT_SYMTAB), None)
        self.symbols: tuple[ElfSymbol, ...] = self.elf.symbols(table) if table else ()

    @cached_property
    def texts(self) -> tuple[Section, ...]:
        """The code sections in file order."""
        return tuple(
            s for s in self.sections if s.flags & SHF_EXECINSTR and s.name.startswith(".text.")
        )

    def name(self, number: int) -> str:
        """A symbol's name; a section's symbol is named as the section."""
        symbol = self.symbols[number]
        nameless = not symbol.name and symbol.kind == STT_SECTION
        if nameless and symbol.shndx < len(self.sections):
            return self.sections[symbol.shndx].name
        return symbol.name

    @cached_property
    def symbols_of(self) -> Mapping[int, tuple[int, ...]]:
        """Section -> the numbers of the symbols in it."""
        found: dict[int, list[int]] = defaultdict(list)
        for number, symbol in enumerate(self.symbols):
            if number and 0 < symbol.shndx < len(self.sections):
                found[symbol.shndx].append(number)
        return {index: tuple(numbers) for index, numbers in found.items()}

    @cached_property
    def relocations(self) -> Mapping[int, tuple[ElfReloc, ...]]:
        """Section -> its relocations by offset."""
        found: dict[int, list[ElfReloc]] = defaultdict(list)
        for table in self.sections:
            if table.type not in (SHT_REL, SHT_RELA):
                continue
            relocs_of = list(self.elf.relocations(table))
            out = any(r.symbol >= len(self.symbols) for r in relocs_of)
            if out or table.info >= len(self.sections):
                raise fail("SX0107", f"a relocation of {table.name} is out of range", table.offset)
            if table.type == SHT_REL:
                data = self.sections[table.info].data
                relocs_of = [in_place(r, data) for r in relocs_of]
            found[table.info] += relocs_of
        return {
            index: tuple(sorted(relocs, key=lambda r: r.offset)) for index, relocs in found.items()
        }

    def tables_of(self, index: int) -> tuple[BranchTable, ...]:
        """The indirect branches of a code section as .nv.info lists them."""
        return self._tables.get(self.sections[index].name.removeprefix(".text."), ())

    @cached_property
    def _tables(self) -> Mapping[str, tuple[BranchTable, ...]]:
        number = eiattr.IDS["EIATTR_INDIRECT_BRANCH_TARGETS"]
        codes: list[Kernel | Function] = [*self.cubin.kernels, *self.cubin.functions]
        return {
            code.name: tuple(
                BranchTable(at, targets)
                for record in code.attributes
                if record.id == number
                for at, targets in eiattr.branch_targets(record).items()
            )
            for code in codes
        }

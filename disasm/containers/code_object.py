"""AMD's code objects: ELF files of code object versions 4, 5 and 6 for RDNA3's processors.

`read` returns the contents that a disassembler lists, of linked and of relocatable files;
`read_image` the segments that a loader maps.  Both read through `elf`.  Layout: LLVM's AMDGPUUsage,
"ELF Code Object".
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sassxlate.disasm.amdgpu_machines import RDNA3, RDNA3_TEXT, machine_name
from sassxlate.disasm.containers.elf import (
    EHDR,
    EM_AMDGPU,
    ET_DYN,
    ET_REL,
    MAGIC,
    PT_LOAD,
    PT_NOTE,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_RELA,
    SHT_SYMTAB,
    STT_FUNC,
    STT_OBJECT,
    STT_SECTION,
    Elf,
    ElfSymbol,
    is_elf_of,
)
from sassxlate.disasm.containers.offload_bundle import is_offload_bundle
from sassxlate.errors import ContainerError, EncodeError, Where

ABI_HSA: Final = 64  # e_ident[EI_OSABI]
VERSIONS: Final = {2: 4, 3: 5, 4: 6}  # e_ident[EI_ABIVERSION] to the code object's version
NOTE_OWNER: Final = b"AMDGPU\0"
NOTE_METADATA: Final = 32  # NT_AMDGPU_METADATA
_RELOCATIONS: Final = (
    "NONE", "ABS32_LO", "ABS32_HI", "ABS64", "REL32", "REL64", "ABS32", "GOTPCREL",
    "GOTPCREL32_LO", "GOTPCREL32_HI", "REL32_LO", "REL32_HI", "", "RELATIVE64", "REL16",
)  # fmt: skip
_NOTE: Final = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class CodeRelocation:
    """A relocation for the linker: ``offset`` in bytes from the section's start."""

    offset: int
    name: str
    symbol: str
    addend: int


@dataclass(frozen=True, slots=True)
class CodeSection:
    """A section with bytes that is loaded; ``address`` is 0 in relocatable files."""

    index: int
    name: str
    address: int
    data: bytes
    code: bool
    relocations: tuple[CodeRelocation, ...] = ()


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A code object; ``version`` is 4, 5 or 6, ``machine`` a processor of RDNA3.

    A symbol's value is an address in a linked file, otherwise the offset in its section.
    """

    version: int
    linked: bool
    sections: tuple[CodeSection, ...]
    symbols: tuple[ElfSymbol, ...]
    machine: str

    def symbols_of(self, section: CodeSection) -> tuple[ElfSymbol, ...]:
        """The named symbols of a section by address; section symbols are left out."""
        found = [
            s for s in self.symbols
            if s.shndx == section.index and s.name and s.kind != STT_SECTION
        ]  # fmt: skip
        return tuple(sorted(found, key=lambda s: (s.value, s.kind != STT_FUNC, s.name)))


@dataclass(frozen=True, slots=True)
class LoadedSegment:
    """A loaded piece: ``data`` at ``address``, zero-filled to ``size``; flags 4 R, 2 W, 1 X."""

    address: int
    data: bytes
    size: int
    flags: int


@dataclass(frozen=True, slots=True)
class Image:
    """The segments and names of a linked code object; ``sections`` maps a name to (address, size).

    ``symbols`` are the defined functions and objects, ``metadata`` the note's MessagePack, empty
    if there is no note, ``more_metadata`` that of further notes: a file that was linked of
    assembled kernels, as rocBLAS's, has one for each of them.
    """

    version: int
    segments: tuple[LoadedSegment, ...]
    symbols: tuple[ElfSymbol, ...]
    metadata: bytes
    sections: dict[str, tuple[int, int]]
    machine: str
    more_metadata: tuple[bytes, ...] = ()

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
        raise _bad(f"{size} bytes at {address:#x} are in no segment")


def is_code_object(data: bytes) -> bool:
    """Whether the bytes begin an AMDGPU ELF file or an offload bundle; 24 bytes suffice."""
    return is_elf_of(data, EM_AMDGPU) or is_offload_bundle(data)


def _bad(message: str) -> EncodeError:
    return EncodeError("SX0532", message)


@contextmanager
def _damage(path: str) -> Generator[None]:
    """Turns the ELF reader's errors into SX0532, with the file's name."""
    try:
        yield
    except ContainerError as error:
        where = Where(file=path or None, offset=error.where.offset)
        raise EncodeError("SX0532", error.message, where) from None
    except EncodeError as error:
        raise error.at(file=path or None) from None


def _open(data: bytes) -> tuple[Elf, int, str]:
    """(the file, its version as a code object, its processor); SX0531 where it is none for one of
    RDNA3's."""
    if data[: len(MAGIC)] != MAGIC:
        what = "an offload bundle" if is_offload_bundle(data) else "not an ELF file"
        raise EncodeError("SX0531", what)
    if len(data) >= EHDR.size and data[4:6] != b"\2\1":
        raise EncodeError("SX0531", "not a 64-bit AMDGPU file of the HSA ABI")
    elf = Elf(data)
    if elf.machine != EM_AMDGPU or elf.osabi != ABI_HSA:
        raise EncodeError("SX0531", "not a 64-bit AMDGPU file of the HSA ABI")
    machine = machine_name(elf.flags)
    if machine not in RDNA3:
        raise EncodeError("SX0531", f"code for {machine}, not {RDNA3_TEXT}")
    if elf.abiversion not in VERSIONS:
        raise EncodeError("SX0531", f"ABI version {elf.abiversion}: code objects 4 to 6 are known")
    return elf, VERSIONS[elf.abiversion], machine


def _check_sections(elf: Elf) -> None:
    """Refuses sections that share bytes, which would be read again and again; all code objects have
    section names."""
    elf.check_overlaps()
    if not any(section.name for section in elf.sections):
        raise _bad("no section names")


def _symbols(elf: Elf, *kinds: int) -> tuple[ElfSymbol, ...]:
    """The symbols of the first table of the first kind that has any: a file has one table per
    kind."""
    for kind in kinds:
        table = next((s for s in elf.sections if s.type == kind), None)
        if table is not None and (found := elf.symbols(table)):
            return found
    return ()


def read(data: bytes, path: str = "") -> CodeObject:
    """The code object in the bytes of an ELF file, linked or relocatable.

    Raises:
        EncodeError: SX0531, no code object for RDNA3; SX0532, truncated or corrupt.
    """
    with _damage(path):
        elf, version, machine = _open(data)
        if elf.type not in (ET_REL, ET_DYN):
            what = f"an ELF file of type {elf.type}, neither relocatable nor linked"
            raise EncodeError("SX0531", what)
        _check_sections(elf)
        symbols = _symbols(elf, SHT_SYMTAB, SHT_DYNSYM)
        relocations = _relocations(elf, symbols) if elf.type == ET_REL else {}
        sections = tuple(
            CodeSection(
                s.index, s.name, s.addr, bytes(s.data), bool(s.flags & SHF_EXECINSTR),
                relocations.get(s.index, ()),
            )
            for s in elf.sections
            if s.flags & SHF_ALLOC and s.type != SHT_NOBITS
        )  # fmt: skip
        return CodeObject(version, elf.type == ET_DYN, sections, symbols, machine)


def _relocations(elf: Elf, symbols: tuple[ElfSymbol, ...]) -> dict[int, tuple[CodeRelocation, ...]]:
    """Section index to the section's relocations."""
    labels = [s.name or _section_name(elf, s.shndx) for s in symbols]
    found: dict[int, tuple[CodeRelocation, ...]] = {}
    for table in elf.sections:
        if table.type != SHT_RELA:
            continue
        linked = table.link < len(elf.sections) and elf.sections[table.link].type == SHT_SYMTAB
        rows: list[CodeRelocation] = []
        for raw in elf.relocations(table):
            if not linked or raw.symbol >= len(labels):
                raise _bad("a relocation of a symbol that is not there")
            name = _RELOCATIONS[raw.type] if raw.type < len(_RELOCATIONS) else ""
            kind = f"R_AMDGPU_{name or raw.type}"
            rows.append(CodeRelocation(raw.offset, kind, labels[raw.symbol], raw.addend))
        found[table.info] = tuple(rows)
    return found


def _section_name(elf: Elf, index: int) -> str:
    return elf.sections[index].name if 0 < index < len(elf.sections) else "*ABS*"


def read_image(data: bytes) -> Image:
    """The segments and names that a linked code object loads.

    Raises:
        EncodeError: SX0531, no linked code object for RDNA3; SX0532, truncated or corrupt.
    """
    with _damage(""):
        elf, version, machine = _open(data)
        if elf.type != ET_DYN:
            raise EncodeError("SX0531", "not linked (a relocatable object)")
        _check_sections(elf)
        segments, metadata = _segments(elf)
        symbols = tuple(
            s for s in _symbols(elf, SHT_DYNSYM, SHT_SYMTAB)
            if s.shndx and s.kind in (STT_FUNC, STT_OBJECT)
        )  # fmt: skip
        sections = {s.name: (s.addr, s.size) for s in elf.sections}
        first = metadata[0] if metadata else b""
        return Image(version, segments, symbols, first, sections, machine, metadata[1:])


def _segments(elf: Elf) -> tuple[tuple[LoadedSegment, ...], tuple[bytes, ...]]:
    """(what is loaded, the metadata notes).  Each byte of the file is loaded once, and is in one
    note: otherwise 65,535 headers could demand as many copies of the file."""
    for kind, what in ((PT_LOAD, "segments"), (PT_NOTE, "notes")):
        if sum(s.filesz for s in elf.segments if s.type == kind) > len(elf.data):
            raise _bad(f"its {what} share bytes")
    found: list[LoadedSegment] = []
    metadata: list[bytes] = []
    for segment in elf.segments:
        if segment.type == PT_LOAD:
            if segment.memsz < segment.filesz:
                raise _bad("a segment is larger in the file than in memory")
            body = bytes(elf.slice(segment.offset, segment.filesz, "a segment"))
            found.append(LoadedSegment(segment.vaddr, body, segment.memsz, segment.flags))
        elif segment.type == PT_NOTE:
            metadata += _metadata(elf.slice(segment.offset, segment.filesz, "the notes"))
    return tuple(found), tuple(metadata)


def _metadata(notes: memoryview) -> list[bytes]:
    """The descriptions of the AMDGPU metadata notes."""
    at = 0
    found: list[bytes] = []
    while at + _NOTE.size <= len(notes):
        name_size, size, kind = _NOTE.unpack_from(notes, at)
        name_at = at + _NOTE.size
        body_at = name_at + name_size + -name_size % 4
        if body_at + size > len(notes):
            raise _bad("the file ends inside a note")
        owner = bytes(notes[name_at : name_at + len(NOTE_OWNER)])
        if owner == NOTE_OWNER and kind == NOTE_METADATA:
            found.append(bytes(notes[body_at : body_at + size]))
        at = body_at + size + -size % 4
    return found

"""Host files: finds the fatbins of executables, shared objects, objects and archives."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeAlias

from sassxlate.disasm.containers import archive
from sassxlate.disasm.containers import elf as elf_file
from sassxlate.disasm.containers.cubin import is_cubin, parse_cubin
from sassxlate.disasm.containers.elf import Elf, Section, fail
from sassxlate.disasm.containers.fatbin import (
    MAGIC_BYTES,
    container_size,
    find_fatbins,
    moved,
    parse_fatbin,
)
from sassxlate.disasm.containers.function_names import function_names
from sassxlate.disasm.containers.ptx import target_of
from sassxlate.disasm.containers.unpack import Budget, Packed
from sassxlate.disasm.containers.values import Cubin, Fatbin, FatbinEntry
from sassxlate.errors import ContainerError, Where

WRAPPER_MAGIC = 0x466243B1
_WRAPPER = struct.Struct("<IIQQ")
_LINKED, _UNLINKED = (".nv_fatbin",), ("__nv_relfatbin",)
_R_X86_64_64, _R_X86_64_RELATIVE = 1, 8

Named: TypeAlias = Callable[[str], bool]
Kind = Literal["executable", "shared object", "object", "fatbin", "cubin", "ptx", "archive"]

ZIP = "a ZIP archive"
_FOREIGN = (
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a macOS universal program"),
    (b"PK\x03\x04", ZIP),
    (b"#!", "a script"),
    (b"BC\xc0\xde", "LLVM bitcode"),
)


def foreign(head: bytes) -> str | None:
    """What a file is by its first bytes, if it is none that has code for Linux."""
    return next((text for magic, text in _FOREIGN if head.startswith(magic)), None)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One 24-byte record of .nvFatBinSegment, which registration hands to the CUDA runtime.

    ``data`` and ``aux`` are addresses of the host image; ``container`` is the file offset of the
    fatbin that ``data`` points to.  Version 2 is the result of a device link (-rdc).
    """

    offset: int
    version: int
    data: int
    aux: int
    container: int


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a cubin: container and entry by number, and its byte offset in the file.

    ``member`` is the archive member that holds it, "" in other files.
    """

    module: int
    entry: int
    offset: int
    member: str = ""

    def __str__(self) -> str:
        place = f"module {self.module} entry {self.entry}"
        return f"{place} of {self.member}" if self.member else place


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file and every fatbin in it; a bare cubin or PTX text counts as one module with one
    entry."""

    path: str
    kind: Kind
    fatbins: tuple[Fatbin, ...]
    wrappers: tuple[Wrapper, ...]

    def entries(self) -> Iterator[tuple[Origin, FatbinEntry]]:
        """Every entry of every container, in file order."""
        for fatbin in self.fatbins:
            for number, entry in enumerate(fatbin.entries):
                offset = fatbin.offset + entry.offset
                yield Origin(fatbin.module, number, offset, fatbin.member), entry

    def cubins(
        self, *, unlinked: bool = False, arch: int | None = None, named: Named | None = None
    ) -> Iterator[tuple[Origin, Cubin]]:
        """As `images`, without the bytes."""
        for origin, _, cubin in self.images(unlinked=unlinked, arch=arch, named=named):
            yield origin, cubin

    def images(
        self, *, unlinked: bool = False, arch: int | None = None, named: Named | None = None
    ) -> Iterator[tuple[Origin, bytes, Cubin]]:
        """The cubins in file order, as bytes and as read.

        A device-linked file still carries the relocatable objects that went into the link
        (__nv_relfatbin): they are left out if linked code is there as well, unless
        ``unlinked``.  Entries for another SM than ``arch`` are not unpacked, and cubins without a
        function whose mangled name is ``named`` are not read: a library has thousands.
        Raises ContainerError with this file's path.
        """
        linked = {f.member for f in self.fatbins if f.section not in _UNLINKED}
        skip = {
            f.module
            for f in self.fatbins
            if f.section in _UNLINKED and f.member in linked and not unlinked
        }
        for origin, entry in self.entries():
            if entry.kind != "elf" or origin.module in skip or arch not in (None, entry.arch):
                continue
            try:
                image = entry.payload
                if named is not None and not any(map(named, function_names(image))):
                    continue
                cubin = parse_cubin(image)
            except ContainerError as error:
                message = f"{error.message} (in {origin})"
                raise ContainerError(error.code, message, error.where).at(file=self.path) from None
            yield origin, image, cubin


def load(path: str | os.PathLike[str]) -> LoadedFile:
    """Reads a host ELF file (executable, shared object, object), a static archive of such files,
    a bare fatbin, a bare cubin or PTX text.

    A host file without device code gives no fatbins.  Raises ContainerError: SX0101 (cannot be
    read), SX0102 (no such file format), SX0108 and SX0109 (archives), and those of the readers,
    with the file and an offset.
    """
    name = os.fspath(path)
    return load_bytes(read_file(name), name)


def read_file(name: str) -> bytes:
    """All of a file of bounded size; ContainerError SX0101 if it cannot be read."""
    try:
        return _read(name)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ContainerError("SX0101", f"cannot read the file: {reason}", Where(name)) from None
    except MemoryError:
        raise ContainerError("SX0101", "the file does not fit in memory", Where(name)) from None
    except ValueError as error:  # a NUL in the name
        raise ContainerError(
            "SX0101", f"cannot read the file: {error}", Where(repr(name))
        ) from None


def _read(name: str) -> bytes:
    """The whole file.  A device has no end, and a sparse file may be larger than memory."""
    status = os.stat(name)
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise ContainerError("SX0101", "cannot read the file: it is a device", Where(name))
    if status.st_size > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise MemoryError
    return Path(name).read_bytes()


def load_bytes(data: bytes, name: str = "<memory>") -> LoadedFile:
    """`load` on the contents of a file."""
    try:
        return _load(data, name, Budget.of(len(data)))
    except ContainerError as error:
        raise error.at(file=name) from None


def _load(data: bytes, name: str, budget: Budget) -> LoadedFile:
    if not data:
        raise fail("SX0102", "the file is empty", 0)
    if data[:4] == MAGIC_BYTES:
        return LoadedFile(name, "fatbin", (parse_fatbin(data, budget=budget),), ())
    if is_cubin(data):
        cubin = parse_cubin(data)
        packed = Packed(memoryview(data), len(data))
        entry = FatbinEntry("elf", cubin.arch, 0, "", 0, packed, len(data), cubin.variant)
        return LoadedFile(name, "cubin", (Fatbin(0, 0, (entry,)),), ())
    if (target := target_of(data)) is not None:
        packed = Packed(memoryview(data), len(data))
        entry = FatbinEntry("ptx", target[0], 0, "", 0, packed, len(data), target[1])
        return LoadedFile(name, "ptx", (Fatbin(0, 0, (entry,)),), ())
    if data[:8] in (archive.MAGIC, archive.THIN_MAGIC):
        return _load_archive(data, name, budget)
    if data[:4] != elf_file.MAGIC:
        what = foreign(data) or "no ELF file, fatbin, cubin or PTX"
        raise fail("SX0102", f"{what}: sassxlate reads ELF files, archives, fatbins and cubins", 0)
    return _load_host(Elf(data), data, name, budget)


def _load_archive(data: bytes, name: str, budget: Budget) -> LoadedFile:
    """The device code of every member that is a host file, a fatbin or a cubin."""
    fatbins: list[Fatbin] = []
    wrappers: list[Wrapper] = []
    for member in archive.members(data):
        head = bytes(member.data[:4])
        if head not in (elf_file.MAGIC, MAGIC_BYTES):
            continue  # text, or an object of another kind: no device code
        try:
            inner = _load(bytes(member.data), name, budget)
        except ContainerError as error:
            offset = member.offset + (error.where.offset or 0)
            message = f"{error.message} (in {member.name})"
            raise ContainerError(error.code, message, replace(error.where, offset=offset)) from None
        for fatbin in inner.fatbins:
            place = member.offset + fatbin.offset
            entries = tuple(moved(entry, place) for entry in fatbin.entries)
            fatbins.append(Fatbin(len(fatbins), place, entries, fatbin.section, member.name))
        wrappers += (
            replace(w, offset=w.offset + member.offset, container=w.container + member.offset)
            for w in inner.wrappers
        )
    return LoadedFile(name, "archive", tuple(fatbins), tuple(wrappers))


def _load_host(elf: Elf, data: bytes, name: str, budget: Budget) -> LoadedFile:
    if elf.machine != elf_file.EM_X86_64:
        raise fail("SX0105", f"an ELF file for machine {elf.machine}; only x86-64 is supported", 18)
    if elf.type not in (elf_file.ET_REL, elf_file.ET_EXEC, elf_file.ET_DYN):
        raise fail("SX0103", f"an ELF file of type {elf.type}", 16)
    wrappers = tuple(_wrappers(elf))
    places: dict[int, str] = {}
    for section in elf.sections:
        if section.name in _LINKED + _UNLINKED:
            for at in _section_containers(section):
                places[at] = section.name
    for wrapper in wrappers:
        places.setdefault(wrapper.container, "")
    if not elf.sections:  # section headers stripped: look for the containers themselves
        places = dict.fromkeys(find_fatbins(data), "")
    # The same image may be reached through a wrapper and a section; places are unique by offset.
    _check_apart(data, sorted(places))
    fatbins = tuple(
        parse_fatbin(elf.slice(at, len(data) - at, "a fatbin"), module, at, places[at], budget)
        for module, at in enumerate(sorted(places))
    )
    if elf.type == elf_file.ET_REL:
        kind: Kind = "object"
    elif elf.type == elf_file.ET_EXEC or any(s.name == ".interp" for s in elf.sections):
        kind = "executable"
    else:
        kind = "shared object"
    return LoadedFile(name, kind, fatbins, wrappers)


def _check_apart(data: bytes, places: Sequence[int]) -> None:
    """SX0130 if a container reaches into the next: all of their entries would be read twice."""
    view = memoryview(data)
    for at, following in pairwise(places):
        if at + container_size(view[at:]) > following:
            raise fail("SX0130", f"two fatbins share the bytes at {following:#x}", at)


def _section_containers(section: Section) -> Iterator[int]:
    """File offsets of the containers in a .nv_fatbin section, which follow one another."""
    data = section.data
    at = 0
    while at < len(data):
        if not any(data[at : at + 8]):
            at += 8  # alignment
            continue
        try:
            size = container_size(data[at:])
        except ContainerError as error:
            raise fail(
                error.code, f"{section.name}: {error.message}", section.offset + at
            ) from None
        yield section.offset + at
        at += size + -size % 8


def _wrappers(elf: Elf) -> Iterator[Wrapper]:
    """The records of .nvFatBinSegment, pointers resolved.

    In a position-independent image the pointers are in the relocations (R_X86_64_RELATIVE), in
    other images in the section itself.  Object files have neither yet.
    """
    section = elf.section(".nvFatBinSegment")
    if section is None or elf.type == elf_file.ET_REL:
        return
    pointers: dict[int, int] = {}
    for table in elf.sections:
        if table.type == elf_file.SHT_RELA and table.name.startswith(".rela.dyn"):
            for reloc in elf.relocations(table):
                if reloc.type in (_R_X86_64_RELATIVE, _R_X86_64_64) and reloc.symbol == 0:
                    pointers[reloc.offset] = reloc.addend
    data = section.data
    for at in range(0, len(data) - len(data) % 8, 8):
        if len(data) - at < _WRAPPER.size:
            break
        magic, version, pointer, aux = _WRAPPER.unpack_from(data, at)
        if magic != WRAPPER_MAGIC:
            if at % _WRAPPER.size == 0 and any(data[at : at + _WRAPPER.size]):
                raise fail("SX0118", "a broken record of .nvFatBinSegment", section.offset + at)
            continue
        if version not in (1, 2):
            raise fail("SX0118", f"a fatbin wrapper of version {version}", section.offset + at)
        target = pointers.get(section.addr + at + 8, int(pointer))
        place = elf.file_offset(target)
        if place is None:
            raise fail("SX0118", f"a fatbin wrapper points to {target:#x}", section.offset + at)
        more = pointers.get(section.addr + at + 16, int(aux))
        yield Wrapper(section.offset + at, version, target, more, place)

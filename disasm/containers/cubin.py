"""A cubin as values: the kernels of a device ELF file, with everything that .nv.info has on them.

Two flavours exist.  ABI 7 (OSABI 0x33; CUDA 12 and older for sm_75 to sm_90) keeps the SM in the
low byte of e_flags and counts barriers in sh_flags; ABI 8 (OSABI 0x41; CUDA 13, and sm_100 and
later since 12.8) keeps the SM in the second byte and counts barriers in an EIATTR.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sassxlate.disasm.containers import eiattr
from sassxlate.disasm.containers.demangle import demangle
from sassxlate.disasm.containers.elf import (
    EM_CUDA,
    ET_EXEC,
    ET_REL,
    SHF_ALLOC,
    SHF_EXECINSTR,
    SHN_LORESERVE,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    STT_CUDA_OBJECT,
    STT_FUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_SECTION,
    Elf,
    ElfSymbol,
    Section,
    fail,
    is_elf_of,
)
from sassxlate.disasm.containers.values import (
    Attribute,
    Cubin,
    Function,
    Global,
    Kernel,
    Param,
    Reloc,
    Symbol,
)
from sassxlate.errors import ContainerError

_STO_CUDA_ENTRY = 0x10
_STO_CUDA_MANAGED = 0x04
_SymbolType: TypeAlias = Literal["func", "object", "section", "notype", "other"]
_Binding: TypeAlias = Literal["local", "global", "weak"]
_TYPES: Mapping[int, _SymbolType] = {
    STT_NOTYPE: "notype", STT_OBJECT: "object", STT_FUNC: "func", STT_SECTION: "section",
    STT_CUDA_OBJECT: "object",
}  # fmt: skip
_BINDINGS: Mapping[int, _Binding] = {0: "local", 2: "weak"}
_FLAG_A_ABI7, _FLAG_A_ABI8 = 0x800, 0x08
_COMPAT_ACCELERATOR_TARGET = 9

_LEAST_IMPOSSIBLE = 1 << 31  # bytes of a stack or of shared memory; such a MIN_STACK_SIZE: unknown

# Where the parameters start in constant bank 0, for kernels without a PARAM_CBANK record.
_PARAM_BASE = ((100, 0x380), (90, 0x210), (0, 0x160))

# Sections of each kernel or function: prefix -> the rest of the section's name.
_PER_FUNCTION = (
    ".text.",
    ".nv.info.",
    ".nv.constant0.",
    ".nv.constant2.",
    ".nv.shared.",
    ".nv.local.",
)
_SKIPPED = (".nv.capmerc", ".nv.merc", ".debug", ".nv_debug", ".rel", ".note")


@dataclass(slots=True)
class _Parts:
    """The sections that belong to one function, and its records, by kind."""

    text: Section
    symbol: ElfSymbol
    sections: dict[str, Section] = field(default_factory=dict[str, Section])
    attributes: tuple[Attribute, ...] = ()
    callees: list[Symbol] = field(default_factory=list[Symbol])
    relocs: list[Reloc] = field(default_factory=list[Reloc])

    def all(self, name: str) -> list[Attribute]:
        number = eiattr.IDS[f"EIATTR_{name}"]
        return [a for a in self.attributes if a.id == number]

    def one(self, name: str) -> Attribute | None:
        found = self.all(name)
        return found[-1] if found else None

    def words(self, name: str) -> tuple[int, ...]:
        return tuple(w for a in self.all(name) for w in eiattr.words(a))


def is_cubin(data: bytes | memoryview) -> bool:
    """Whether the data starts like a 64-bit device ELF file."""
    return is_elf_of(data, EM_CUDA) and memoryview(data)[4] == 2


def parse_cubin(data: bytes | memoryview) -> Cubin:
    """A device ELF file, linked or (-rdc) relocatable.

    Raises ContainerError SX0103 to SX0107 (ELF), SX0120 (no cubin), SX0121 (flavour), SX0122
    (sections that overlap), SX0123 and SX0124 (.nv.info), SX0125 to SX0128 (kernels); offsets
    count from the start of ``data``.
    """
    elf = Elf(data)
    if elf.machine != EM_CUDA:
        raise fail("SX0120", f"an ELF file for machine {elf.machine}, not CUDA", 18)
    arch, variant, abi = _flavour(elf)
    elf.check_overlaps()
    if elf.type not in (ET_REL, ET_EXEC):
        raise fail("SX0121", f"a cubin of ELF type {elf.type}", 16)
    return _Reader(elf, arch, abi).cubin(variant)


def _possible(size: int, what: str) -> int:
    if size >= _LEAST_IMPOSSIBLE:
        raise fail("SX0127", f"the kernel has {what} of {size} bytes")
    return size


def _flavour(elf: Elf) -> tuple[int, str, int]:
    """(SM, variant letter, ABI) of the ELF header."""
    if elf.osabi == 0x33 and elf.abiversion == 7:
        arch, variant = elf.flags & 0xFF, "a" if elf.flags & _FLAG_A_ABI7 else ""
    elif elf.osabi == 0x41 and elf.abiversion == 8:
        arch, variant = elf.flags >> 8 & 0xFF, "a" if elf.flags & _FLAG_A_ABI8 else ""
        compat = elf.section(".nv.compat")
        if compat is not None and _accelerator_target(compat):
            variant = "a"
    else:
        raise fail("SX0121", f"a cubin of OSABI {elf.osabi:#x}, ABI version {elf.abiversion}", 7)
    if arch == 0:
        raise fail("SX0121", f"no architecture in e_flags {elf.flags:#x}", 48)
    return arch, variant, elf.abiversion


def _accelerator_target(compat: Section) -> bool:
    records = eiattr.parse_attributes(compat.data, compat.offset, compat.name)
    return any(r.id == _COMPAT_ACCELERATOR_TARGET and r.value == b"\1" for r in records)


class _Reader:
    """The state of parsing one cubin; it does not outlive `parse_cubin`."""

    def __init__(self, elf: Elf, arch: int, abi: int) -> None:
        self.elf, self.arch, self.abi = elf, arch, abi
        self.sections = elf.sections
        table = next((s for s in self.sections if s.type == SHT_SYMTAB), None)
        self.raw_symbols = elf.symbols(table) if table else ()
        self.symbols = tuple(self._symbol(s) for s in self.raw_symbols)
        info = elf.section(".nv.info")
        self.module = eiattr.parse_attributes(info.data, info.offset, info.name) if info else ()
        try:
            self.per_symbol = self._per_symbol_attributes()
        except ContainerError as error:
            raise error.at(offset=info.offset if info else None) from None

    def _symbol(self, raw: ElfSymbol) -> Symbol:
        section = ""
        if 0 < raw.shndx < len(self.sections):
            section = self.sections[raw.shndx].name
        elif raw.shndx >= SHN_LORESERVE:
            section = {0xFFF1: "*ABS*", 0xFFF2: "*COMMON*"}.get(raw.shndx, f"*{raw.shndx:#x}*")
        name = raw.name
        if not name and raw.kind == STT_SECTION:
            name = section
        kind = _TYPES.get(raw.kind, "other")
        binding = _BINDINGS.get(raw.bind, "global")
        return Symbol(name, section, raw.value, raw.size, kind, binding)

    def _per_symbol_attributes(self) -> Mapping[tuple[str, int], int]:
        """(record's name, symbol number) -> value, for the records of .nv.info that are per
        function."""
        wanted = {
            eiattr.IDS[f"EIATTR_{n}"]: n for n in ("REGCOUNT", "FRAME_SIZE", "MIN_STACK_SIZE")
        }
        found: dict[tuple[str, int], int] = {}
        for record in self.module:
            if record.id in wanted:
                symbol, value = eiattr.words(record, 2)
                if symbol >= len(self.symbols):
                    raise fail(
                        "SX0124", f"{record.name} names symbol {symbol} of {len(self.symbols)}"
                    )
                found[wanted[record.id], symbol] = value
        return found

    def cubin(self, variant: str) -> Cubin:
        parts = self._parts()
        data_relocs = self._relocations(parts)
        kernels: list[Kernel] = []
        functions: list[Function] = []
        for number, part in sorted(parts.items(), key=lambda item: item[1].text.index):
            try:
                if part.symbol.other & _STO_CUDA_ENTRY:
                    kernels.append(self._kernel(number, part))
                else:
                    functions.append(self._function(number, part))
            except ContainerError as error:
                place = error.at(kernel=part.symbol.name, offset=part.text.offset)
                raise place from None
        sections, sizes = self._data_sections()
        return Cubin(
            arch=self.arch,
            variant=variant,
            abi=self.abi,
            relocatable=self.elf.type == ET_REL,
            kernels=tuple(kernels),
            globals=tuple(
                Global(s.name, s.section, s.value, s.size, bool(raw.other & _STO_CUDA_MANAGED))
                for s, raw in zip(self.symbols, self.raw_symbols, strict=True)
                if s.type == "object" and s.section in sizes
            ),
            sections=sections,
            section_sizes=sizes,
            relocs=tuple(data_relocs),
            symbols=self.symbols,
            attributes=self.module,
            functions=tuple(functions),
        )

    def _parts(self) -> dict[int, _Parts]:
        """Symbol number -> the parts of each kernel and each function with its own section."""
        by_text: dict[int, list[int]] = defaultdict(list)
        for number, raw in enumerate(self.raw_symbols):
            if raw.kind == STT_FUNC and 0 < raw.shndx < len(self.sections):
                by_text[raw.shndx].append(number)
        found: dict[int, _Parts] = {}
        names: dict[str, _Parts] = {}
        for text in self.sections:
            if not text.name.startswith(".text.") or not text.flags & SHF_EXECINSTR:
                if by_text.get(text.index):
                    raise fail("SX0125", f"functions in section {text.name!r}", text.offset)
                continue
            name = text.name[len(".text.") :]
            owners = [n for n in by_text[text.index] if self.raw_symbols[n].name == name]
            entries = [
                n for n in by_text[text.index] if self.raw_symbols[n].other & _STO_CUDA_ENTRY
            ]
            if len(owners) != 1 or any(n != owners[0] for n in entries):
                raise fail("SX0125", f"{text.name} has no one function of its name", text.offset)
            owner = owners[0]
            part = _Parts(text, self.raw_symbols[owner])
            if part.symbol.value != 0:
                raise fail("SX0125", f"{name} starts inside its section", text.offset)
            if part.symbol.size > text.size:
                raise fail("SX0125", f"{name} is longer than its section", text.offset)
            self._check_code(text)
            for number in by_text[text.index]:
                callee = self.symbols[number]
                if number != owner:
                    if callee.value >= text.size or callee.size > text.size - callee.value:
                        raise fail("SX0125", f"{callee.name} is outside {text.name}", text.offset)
                    part.callees.append(callee)
            found[owner] = names[name] = part
        for section in self.sections:
            for prefix in _PER_FUNCTION:
                if section.name.startswith(prefix) and prefix != ".text.":
                    owner_of = names.get(section.name[len(prefix) :])
                    if owner_of is not None:
                        owner_of.sections[prefix] = section
        for part in found.values():
            info = part.sections.get(".nv.info.")
            if info is not None:
                part.attributes = eiattr.parse_attributes(info.data, info.offset, info.name)
            part.callees.sort(key=lambda s: s.value)
        return found

    def _check_code(self, text: Section) -> None:
        if self.arch >= 70 and text.size % 16:
            raise fail("SX0126", f"{text.name} is not a whole number of instructions", text.offset)

    def _relocations(self, parts: Mapping[int, _Parts]) -> list[Reloc]:
        """Gives each function its relocations; returns those of the module's data sections."""
        owner: dict[int, _Parts] = {}
        for part in parts.values():
            owner[part.text.index] = part
            for section in part.sections.values():
                owner[section.index] = part
        rest: list[Reloc] = []
        for table in self.sections:
            if table.type not in (SHT_REL, SHT_RELA):
                continue
            if table.info >= len(self.sections):
                raise fail("SX0107", f"{table.name} patches section {table.info}", table.offset)
            target = self.sections[table.info]
            if not target.flags & SHF_ALLOC or target.name.startswith(_SKIPPED):
                continue
            into = owner[target.index].relocs if target.index in owner else rest
            for raw in self.elf.relocations(table):
                if raw.symbol >= len(self.symbols) or raw.offset >= target.size:
                    raise fail(
                        "SX0107", f"a relocation of {target.name} is out of range", table.offset
                    )
                name = self.symbols[raw.symbol].name
                into.append(Reloc(target.name, raw.offset, raw.type, name, raw.addend))
        return rest

    def _data_sections(self) -> tuple[dict[str, bytes], dict[str, int]]:
        """(contents, sizes) of the module's allocated sections; sizes also of .nv.shared.*."""
        contents: dict[str, bytes] = {}
        sizes: dict[str, int] = {}
        for section in self.sections:
            name = section.name
            if not section.flags & SHF_ALLOC or section.flags & SHF_EXECINSTR:
                continue
            if name.startswith(_SKIPPED):
                continue
            shared = name.startswith(".nv.shared.")
            if name.startswith(_PER_FUNCTION) and not shared:
                continue
            sizes[name] = section.size
            if len(section.data) == section.size and not shared:
                contents[name] = bytes(section.data)
        return contents, sizes

    def _targets(self, part: _Parts) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for record in part.all("INDIRECT_BRANCH_TARGETS"):
            found.update(eiattr.branch_targets(record))
        for at, targets in found.items():
            if at >= part.text.size or any(t >= part.text.size for t in targets):
                raise fail("SX0128", f"the indirect branch at {at:#x} leaves the kernel")
        return eiattr.found_targets(found, self._constant2(part), part.text.size)

    def _offsets(self, part: _Parts, name: str) -> tuple[int, ...]:
        found = part.words(name)
        if any(offset >= part.text.size for offset in found):
            raise fail("SX0128", f"{name} names an offset outside the kernel")
        return tuple(sorted(found))

    def _externs(self, part: _Parts) -> tuple[str, ...]:
        numbers = part.words("EXTERNS")
        if any(n >= len(self.symbols) for n in numbers):
            raise fail("SX0124", "EIATTR_EXTERNS names a symbol that is not there")
        return tuple(self.symbols[n].name for n in numbers)

    def _stack(self, number: int) -> int:
        frame = self.per_symbol.get(("FRAME_SIZE", number), 0)
        least = self.per_symbol.get(("MIN_STACK_SIZE", number), frame)
        size = max(least, frame) if least < _LEAST_IMPOSSIBLE else frame
        return _possible(size, "a stack")

    def _constant2(self, part: _Parts) -> bytes:
        section = part.sections.get(".nv.constant2.")
        return bytes(section.data) if section is not None else b""

    def _function(self, number: int, part: _Parts) -> Function:
        return Function(
            name=part.symbol.name,
            demangled=demangle(part.symbol.name),
            code=bytes(part.text.data),
            local_size=self._stack(number),
            constant2=self._constant2(part),
            exits=self._offsets(part, "EXIT_INSTR_OFFSETS"),
            indirect_targets=self._targets(part),
            syscall_offsets=self._offsets(part, "SYSCALL_OFFSETS"),
            externs=self._externs(part),
            callees=tuple(part.callees),
            relocs=tuple(part.relocs),
            attributes=part.attributes,
        )

    def _kernel(self, number: int, part: _Parts) -> Kernel:
        base, size = self._param_area(part)
        constant0 = part.sections.get(".nv.constant0.")
        shared = part.sections.get(".nv.shared.")
        return Kernel(
            name=part.symbol.name,
            demangled=demangle(part.symbol.name),
            arch=self.arch,
            code=bytes(part.text.data),
            registers=self._registers(number, part),
            shared_size=_possible(shared.size, "shared memory") if shared is not None else 0,
            local_size=self._stack(number),
            barriers=self._barriers(part),
            param_base=base,
            param_size=size,
            params=self._params(part, size),
            constant0_size=constant0.size if constant0 is not None else 0,
            constant2=self._constant2(part),
            max_threads=self._max_threads(part),
            exits=self._offsets(part, "EXIT_INSTR_OFFSETS"),
            indirect_targets=self._targets(part),
            syscall_offsets=self._offsets(part, "SYSCALL_OFFSETS"),
            externs=self._externs(part),
            callees=tuple(part.callees),
            relocs=tuple(part.relocs),
            attributes=part.attributes,
            uses_cta_z=part.one("CTAIDZ_USED") is not None,
        )

    def _registers(self, number: int, part: _Parts) -> int:
        count = self.per_symbol.get(("REGCOUNT", number))
        if count is None:
            count = part.text.info >> 24  # only sm_89 and older have it here
        if not 0 < count <= 256:
            raise fail("SX0127", f"the kernel has {count} registers")
        return count

    def _barriers(self, part: _Parts) -> int:
        record = part.one("NUM_BARRIERS")
        count = eiattr.scalar(record) if record else part.text.flags >> 20 & 0x7F
        if count > 16:
            raise fail("SX0127", f"the kernel has {count} named barriers")
        return count

    def _param_area(self, part: _Parts) -> tuple[int, int]:
        """(base, size) of the parameters in constant bank 0, in bytes."""
        size_record = part.one("CBANK_PARAM_SIZE")
        size = eiattr.scalar(size_record) if size_record else 0
        constant0 = part.sections.get(".nv.constant0.")
        bank = part.one("PARAM_CBANK")
        if bank is not None:
            _, place = eiattr.words(bank, 2)
            base, size = place & 0xFFFF, place >> 16
        elif constant0 is not None and constant0.size >= size:
            base = constant0.size - size
        else:
            base = next(b for least, b in _PARAM_BASE if self.arch >= least)
        if constant0 is not None and base + size > constant0.size:
            raise fail(
                "SX0127", f"{base + size:#x} bytes of parameters and a bank of {constant0.size:#x}"
            )
        return base, size

    def _params(self, part: _Parts, area: int) -> tuple[Param, ...]:
        found: dict[int, Param] = {}
        for record in part.all("KPARAM_INFO"):
            _, place, shape = eiattr.words(record, 3)
            found[place & 0xFFFF] = Param(place & 0xFFFF, place >> 16, shape >> 18)
        for record in part.all("KPARAM_INFO_V2"):  # kernels with more than 4 KiB of parameters
            if len(record.value) != 12:
                raise fail("SX0124", f"{record.name} has {len(record.value)} bytes")
            _, ordinal, offset, size, _ = struct.unpack("<IHHHH", record.value)
            found[ordinal] = Param(ordinal, offset, size)
        params = tuple(found[index] for index in sorted(found))
        if [p.index for p in params] != list(range(len(params))):
            raise fail("SX0127", "the kernel's parameters are not numbered from 0")
        if any(p.offset + p.size > area for p in params):
            raise fail("SX0127", f"a parameter lies outside the {area} bytes of parameters")
        return params

    def _max_threads(self, part: _Parts) -> tuple[int, int, int] | None:
        record = part.one("REQNTID") or part.one("MAX_THREADS")
        if record is None:
            return None
        x, y, z = eiattr.words(record, 3)
        return x, y, z

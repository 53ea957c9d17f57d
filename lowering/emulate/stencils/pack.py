"""A pack: stencils with the tables and helpers that the library needs to build kernels of them.

native/hip/stencils.h has the file's layout.  Compiling takes about a millisecond a shape.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import llvmlite.binding as llvm

from sassxlate.disasm.containers.elf import (
    SHF_ALLOC,
    SHT_RELA,
    SHT_SYMTAB,
    Elf,
    Section,
)
from sassxlate.errors import EmulatorError, EncodeError
from sassxlate.lowering.emulate.compiler import ATTRIBUTES, optimize, target_machine
from sassxlate.lowering.emulate.compiler import emit as emit_object
from sassxlate.lowering.emulate.image import helper_objects
from sassxlate.lowering.emulate.image.abi import ISA_AVX2, ISA_AVX512
from sassxlate.lowering.emulate.image.image import link_all
from sassxlate.lowering.emulate.stencils import glue
from sassxlate.lowering.emulate.stencils.encodings import Encodings, encodings
from sassxlate.lowering.emulate.stencils.stencil import (
    NEXT,
    SYMBOLS,
    TAKEN,
    Shape,
    StencilBuilder,
    preamble,
)

if TYPE_CHECKING:
    from sassxlate.lowering.emulate.options import Isa

MAGIC: Final = 0x54535853  # "SXST"
VERSION: Final = 2
_PAGE: Final = 4096
_CHUNK: Final = 64  # shapes of a module
_GLUE: Final = 0xFFFFFFFF << 32  # the words of the glue's shapes, which no instruction has

_HEADER = struct.Struct("<IIII16sQQ" + "QQ" * 9)
_STENCIL = struct.Struct("<QIiIIII")
_RELOC = struct.Struct("<IBBHi")
_ABSOLUTE, _POOL, _NEXT, _TAKEN, _CONSTANTS = range(5)
_R_PC32, _R_PLT32, _R_32, _R_32S = 2, 4, 10, 11
_NOTE: Final = 16  # bytes of the digest
_JMP: Final = 0xE9


@dataclass(frozen=True, slots=True)
class Reloc:
    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Stencil:
    """Code that falls through to what follows it, and the places to fill in."""

    code: bytes
    relocs: tuple[Reloc, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A shape that has no stencil, and why."""

    shape: Shape
    error: EmulatorError | EncodeError


class _StencilObject:
    """An object with the functions of a chunk, each in its section, and their constants."""

    def __init__(self, data: bytes) -> None:
        self.elf = Elf(data)
        table = next(s for s in self.elf.sections if s.type == SHT_SYMTAB)
        self.symbols = self.elf.symbols(table)
        self.base: dict[int, int] = {}
        self.texts: dict[str, Section] = {}

    def place(self, pool: bytearray) -> None:
        for section in self.elf.sections:
            if not section.flags & SHF_ALLOC or not section.size or section.name == ".eh_frame":
                continue
            if section.name.startswith(".text."):
                self.texts[section.name.removeprefix(".text.")] = section
                continue
            pool += bytes(-len(pool) % max(section.align, 1))
            self.base[section.index] = len(pool)
            pool += section.data

    def stencils(self, helpers: dict[str, int]) -> dict[str, Stencil]:
        relocs: dict[int, list[Reloc]] = {}
        for section in self.elf.sections:
            if section.type != SHT_RELA:
                continue
            if section.info in self.base:
                raise EmulatorError("SX0690", "constants of a stencil have relocations")
            if any(t.index == section.info for t in self.texts.values()):
                relocs[section.info] = [
                    self._reloc(r.offset, r.type, r.symbol, r.addend, helpers)
                    for r in self.elf.relocations(section)
                ]
        return {
            name: _trimmed(bytes(s.data), sorted(relocs.get(s.index, ()), key=lambda r: r.offset))
            for name, s in self.texts.items()
        }

    def _reloc(
        self, offset: int, kind: int, index: int, addend: int, helpers: dict[str, int]
    ) -> Reloc:
        symbol = self.symbols[index]
        relative = kind in (_R_PC32, _R_PLT32)
        if symbol.shndx in self.base and relative:
            return Reloc(offset, _POOL, 0, self.base[symbol.shndx] + symbol.value + addend)
        if symbol.name in SYMBOLS and kind in (_R_32, _R_32S):
            return Reloc(offset, _ABSOLUTE, SYMBOLS.index(symbol.name), addend)
        if relative and symbol.name in (NEXT, TAKEN, "CONSTANTS"):
            which = {NEXT: _NEXT, TAKEN: _TAKEN}.get(symbol.name, _CONSTANTS)
            return Reloc(offset, which, 0, addend)
        if relative and symbol.name in helpers:
            return Reloc(offset, _POOL, 0, helpers[symbol.name] + addend)
        text = f"a stencil has a relocation of type {kind} to {symbol.name!r}"
        raise EmulatorError("SX0690", text)


def _trimmed(code: bytes, relocs: list[Reloc]) -> Stencil:
    """Without the jump to what follows."""
    last = relocs[-1] if relocs else None
    if last and last.kind == _NEXT and last.offset == len(code) - 4 and code[-5] == _JMP:
        return Stencil(code[:-5], tuple(relocs[:-1]))
    return Stencil(code, tuple(relocs))


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack's bytes, and the shapes that it lacks although they were asked for."""

    data: bytes
    refused: tuple[Refused, ...]


def make(shapes: Iterable[Shape], isa: Isa, *, tables: bool = True) -> Pack:
    """The pack of some shapes, with the tables and the glue; without `tables` it adds to another.

    Raises:
        EmulatorError: SX0690, the compiled code has something that a stencil cannot have.
    """
    machine = target_machine(isa, 1, "-vzeroupper")
    plain = target_machine(isa, 1)
    wanted = sorted(set(shapes))
    refused: list[Refused] = []
    objects: list[_StencilObject] = []
    names: dict[str, Shape] = {}
    helper_texts: dict[str, str] = {}
    for at in range(0, max(len(wanted), 1), _CHUNK):
        builder = StencilBuilder(isa, ATTRIBUTES[isa])
        here: list[str] = []
        for i, shape in enumerate(wanted[at : at + _CHUNK], at):
            name = f"s.{i}"
            try:
                builder.add(shape, name)
            except (EmulatorError, EncodeError) as e:
                refused.append(Refused(shape, e))
                continue
            here.append(name)
            names[name] = shape
        parts = helper_objects.split(builder.module, *here)
        helper_texts |= parts.helpers
        text = preamble() + parts.kernel
        if at == 0 and tables:
            text = preamble() + glue.text(isa, ATTRIBUTES[isa]) + parts.kernel
        objects.append(_StencilObject(_object(text, machine)))
    made = helper_objects.helpers(
        helper_texts.values(), f"{isa} 1", lambda one: emit_object(one, plain, {})
    )
    blob, known = link_all(made)
    pool = bytearray(blob)
    for each in objects:
        each.place(pool)
    found: dict[Shape, Stencil] = {}
    for each in objects:
        for name, stencil in each.stencils(known).items():
            if name in names:
                found[names[name]] = stencil
            else:
                piece = glue.Glue[name.removeprefix("glue.").upper()]
                found[Shape(_GLUE | int(piece))] = stencil
    return Pack(_file(found, bytes(pool), isa, tables), tuple(refused))


def _object(text: str, machine: llvm.TargetMachine) -> bytes:
    module = llvm.parse_assembly(text)
    optimize(module, machine)
    data: bytes = machine.emit_object(module)
    return data


def _file(found: dict[Shape, Stencil], pool: bytes, isa: Isa, whole: bool) -> bytes:
    tables = encodings() if whole else Encodings()
    code, relocs, rows = bytearray(), bytearray(), bytearray()
    count = 0
    for shape in sorted(found):
        stencil = found[shape]
        rows += _STENCIL.pack(
            shape.word, shape.dpp, shape.mode, len(code), len(stencil.code), count,
            len(stencil.relocs),
        )  # fmt: skip
        code += stencil.code
        for r in stencil.relocs:
            relocs += _RELOC.pack(r.offset, r.kind, r.symbol, 0, r.addend)
        count += len(stencil.relocs)
    parts: Sequence[bytes] = (
        tables.classes, tables.fields, tables.rows, tables.opcodes, tables.formats,
        tables.dispatch, bytes(rows), bytes(relocs), bytes(code),
    )  # fmt: skip
    body = bytearray()
    places: list[int] = []
    for part in parts:
        body += bytes(-len(body) % 64)
        places += [_PAGE + len(body), len(part)]
        body += part
    body += bytes(-len(body) % _PAGE)
    at = _PAGE + len(body)
    body += pool + bytes(-len(pool) % _PAGE)
    numbers = (ISA_AVX512 if isa == "avx512" else ISA_AVX2), 0
    rest = struct.pack("<QQ" + "QQ" * 9, at, len(pool), *places)
    digest = hashlib.blake2b(rest + body, digest_size=_NOTE).digest()
    head = _HEADER.pack(MAGIC, VERSION, *numbers, digest, at, len(pool), *places)
    return head + bytes(_PAGE - len(head)) + bytes(body)


__all__ = ["Pack", "Refused", "Reloc", "Stencil", "make"]

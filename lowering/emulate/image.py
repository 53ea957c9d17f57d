"""From an LLVM object to the flat image that the native library maps (abi.h, SxImageHeader)."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field
from typing import Any

from elftools.elf.elffile import ELFFile

from sassxlate.errors import EmulatorError

from .abi import (
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

    @property
    def code(self) -> bytes:
        return self.data[HEADER_SIZE:]


def link(obj: bytes, entry: str) -> tuple[bytes, int]:
    """(code with its read-only data, the entry's offset in it).

    Raises:
        EmulatorError: SX0690, the object has what an image cannot have: writable data, an
        undefined symbol or a relocation that is not relative.
    """
    elf: Any = ELFFile(io.BytesIO(obj))
    blob = bytearray()
    base: dict[int, int] = {}
    for index, section in enumerate(elf.iter_sections()):
        flags, size = section["sh_flags"], section["sh_size"]
        if not flags & _ALLOC or not size or section.name == ".eh_frame":
            continue
        if flags & _WRITE:
            raise EmulatorError("SX0690", f"the compiled code has writable data: {section.name}")
        align = max(section["sh_addralign"], 1)
        blob += bytes(-len(blob) % align)
        base[index] = len(blob)
        blob += section.data()
    symbols = elf.get_section_by_name(".symtab")
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_RELA" and section["sh_info"] in base:
            _relocate(blob, base, base[section["sh_info"]], section, symbols)
    found = symbols.get_symbol_by_name(entry)
    if not found:
        raise EmulatorError("SX0690", "the compiled code has no entry")
    return bytes(blob), base[found[0]["st_shndx"]] + found[0]["st_value"]


def _relocate(blob: bytearray, base: dict[int, int], at: int, rela: Any, symbols: Any) -> None:
    for r in rela.iter_relocations():
        symbol = symbols.get_symbol(r["r_info_sym"])
        shndx = symbol["st_shndx"]
        if shndx not in base:
            raise EmulatorError("SX0690", f"the compiled code needs the symbol {symbol.name!r}")
        place = at + r["r_offset"]
        value = base[shndx] + symbol["st_value"] + r["r_addend"] - place
        kind = r["r_info_type"]
        if kind in (_R_PC32, _R_PLT32):
            struct.pack_into("<i", blob, place, value)
        elif kind == _R_PC64:
            struct.pack_into("<q", blob, place, value)
        else:
            raise EmulatorError("SX0690", f"the compiled code has a relocation of type {kind}")


def header(kernel: str, size: int, entry: int, *, strict: bool, avx512: bool) -> bytes:
    name = kernel.encode()[:255]
    page = struct.pack(
        HEADER_FORMAT,
        IMAGE_MAGIC,
        IMAGE_VERSION,
        HEADER_SIZE,
        size,
        entry,
        FLAG_STRICT if strict else 0,
        ISA_AVX512 if avx512 else ISA_AVX2,
        0,
        name,
    )
    return page + bytes(HEADER_SIZE - len(page))


def frame_size(code: bytes, entry: int) -> int:
    """Bytes that the function's prologue takes of the stack: its `sub rsp, imm32`."""
    at = code.find(b"\x48\x81\xec", entry, entry + 96)
    return struct.unpack_from("<I", code, at + 3)[0] if at >= 0 else 256

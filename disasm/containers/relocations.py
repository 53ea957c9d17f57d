"""Relocation types of cubins: NVIDIA's names, and the field that each fills in.

The names were read off cuobjdump 13.1 by giving it each number in turn, and the look of operands
off nvdisasm; tests repeat both where the tools are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sassxlate.disasm.containers.elf import SHT_REL, SHT_RELA, SHT_SYMTAB, Elf, ElfReloc, fail

_BYTES = "8_0 8_8 8_16 8_24 8_32 8_40 8_48 8_56".split()

# Names by number, from 0, without "R_CUDA_".
_NAMES: tuple[str, ...] = (
    "NONE", "32", "64", "G32", "G64", "ABS32_26", "TEX_HEADER_INDEX", "SAMP_HEADER_INDEX",
    "SURF_HW_DESC", "SURF_HW_SW_DESC", "ABS32_LO_26", "ABS32_HI_26", "ABS32_23", "ABS32_LO_23",
    "ABS32_HI_23", "ABS24_26", "ABS24_23", "ABS16_26", "ABS16_23", "TEX_SLOT", "SAMP_SLOT",
    "SURF_SLOT", "TEX_BINDLESSOFF13_32", "TEX_BINDLESSOFF13_47", "CONST_FIELD19_28",
    "CONST_FIELD19_23", "TEX_SLOT9_49", "6_31", "2_47", "TEX_BINDLESSOFF13_41",
    "TEX_BINDLESSOFF13_45", "FUNC_DESC32_23", "FUNC_DESC32_LO_23", "FUNC_DESC32_HI_23",
    "FUNC_DESC_32", "FUNC_DESC_64", "CONST_FIELD21_26", "QUERY_DESC21_37", "CONST_FIELD19_26",
    "CONST_FIELD21_23", "PCREL_IMM24_26", "PCREL_IMM24_23", "ABS32_20", "ABS32_LO_20",
    "ABS32_HI_20", "ABS24_20", "ABS16_20", "FUNC_DESC32_20", "FUNC_DESC32_LO_20",
    "FUNC_DESC32_HI_20", "CONST_FIELD19_20", "BINDLESSOFF13_36", "SURF_HEADER_INDEX",
    "INSTRUCTION64", "CONST_FIELD21_20", "ABS32_32", "ABS32_LO_32", "ABS32_HI_32", "ABS47_34",
    "ABS16_32", "ABS24_32", "FUNC_DESC32_32", "FUNC_DESC32_LO_32", "FUNC_DESC32_HI_32",
    "CONST_FIELD19_40", "BINDLESSOFF14_40", "CONST_FIELD21_38", "INSTRUCTION128",
    "YIELD_OPCODE9_0", "YIELD_CLEAR_PRED4_87", "32_LO", "32_HI", "UNUSED_CLEAR32",
    "UNUSED_CLEAR64", "ABS24_40", "ABS55_16_34", *_BYTES, *(f"G{b}" for b in _BYTES),
    *(f"FUNC_DESC_{b}" for b in _BYTES), "ABS20_44", "SAMP_HEADER_INDEX_0", "UNIFIED",
    "UNIFIED_32", *(f"UNIFIED_{b}" for b in _BYTES), "UNIFIED32_LO_32", "UNIFIED32_HI_32",
    "ABS56_16_34", "CONST_FIELD22_37",
)  # fmt: skip

NAMES: tuple[str, ...] = tuple(f"R_CUDA_{name}" for name in _NAMES)
IDS: Mapping[str, int] = {name: number for number, name in enumerate(NAMES)}


@dataclass(frozen=True, slots=True)
class Kind:
    """The format of a relocated operand: ``wrap`` is put around the symbol in its text."""

    field: Literal["immediate", "constant", "target", "offset"]
    wrap: str = ""


def _kind(name: str) -> Kind | None:
    if name.startswith("CONST_FIELD"):
        return Kind("constant")
    if name.startswith(("ABS55", "ABS56", "ABS47", "PCREL")):
        return Kind("target")
    if name == "ABS24_40":
        return Kind("offset")
    for part, wrap in (
        ("FUNC_DESC32_LO", "32@lo(fun@fdesc({}))"),
        ("FUNC_DESC32_HI", "32@hi(fun@fdesc({}))"),
        ("FUNC_DESC32", "fun@fdesc({})"),
        ("UNIFIED32_LO", "32@lo(fun@unified({}))"),
        ("UNIFIED32_HI", "32@hi(fun@unified({}))"),
        ("ABS32_LO", "32@lo({})"),
        ("ABS32_HI", "32@hi({})"),
        ("ABS", ""),
    ):
        if name.startswith(part):
            return Kind("immediate", wrap)
    return None


_KINDS: tuple[Kind | None, ...] = tuple(_kind(name) for name in _NAMES)


def relocation_name(number: int) -> str:
    """NVIDIA's name, or ``R_CUDA_0x74`` for a number without a known one."""
    return NAMES[number] if number < len(NAMES) else f"R_CUDA_{number:#04x}"


def kind(number: int) -> Kind | None:
    """The format of a relocated operand by type; None for those that fill in no operand."""
    return _KINDS[number] if number < len(_KINDS) else None


@dataclass(frozen=True, slots=True)
class Listed:
    """A relocation of any section, debug information included."""

    section: str
    offset: int
    type: str
    symbol: str
    addend: int


def relocations(elf: Elf) -> Iterator[Listed]:
    """Every relocation of a cubin, by section and offset.  Raises ContainerError SX0107."""
    table = next((s for s in elf.sections if s.type == SHT_SYMTAB), None)
    symbols = elf.symbols(table) if table else ()
    found: list[tuple[int, ElfReloc]] = []
    for part in elf.sections:
        if part.type in (SHT_REL, SHT_RELA):
            if part.info >= len(elf.sections):
                raise fail("SX0107", f"{part.name} patches section {part.info}", part.offset)
            found += ((part.info, reloc) for reloc in elf.relocations(part))
    for index, reloc in sorted(found, key=lambda f: (f[0], f[1].offset)):
        target = elf.sections[index]
        if reloc.symbol >= len(symbols):
            raise fail("SX0107", f"a relocation of {target.name} is out of range", target.offset)
        symbol = symbols[reloc.symbol]
        name = symbol.name
        if not name and 0 < symbol.shndx < len(elf.sections):
            name = elf.sections[symbol.shndx].name
        yield Listed(target.name, reloc.offset, relocation_name(reloc.type), name, reloc.addend)

"""Operands that a relocation fills in: ``32@lo(table)``, ``c[`((coeff + 0x4))]``, ```(callee)``."""

from __future__ import annotations

import re

from sassxlate.disasm.containers import relocations
from sassxlate.disasm.containers.elf import ElfReloc
from sassxlate.disasm.listing.image import Image
from sassxlate.disasm.listing.labels import Labels, code_place

_CONSTANT = re.compile(r"c\[0x[0-9a-f]+\]\[(?:(U?R\d+|U?RZ)(?:\.X\w+)?)?\+?(?:-?0x[0-9a-f]+)?\]")
_ADDRESS = re.compile(r"\[((?:U?R(?:\d+|Z)[\w.]*\+?)*?)\+?(?:-?0x[0-9a-f]+)?\]")
_NUMBER = re.compile(r"^(?:-?0x[0-9a-f]+|[-+]?[0-9.]+(?:e[-+][0-9]+)?|[-+](?:INF|QNAN|SNAN))$")


def expression(image: Image, labels: Labels, reloc: ElfReloc, signed: bool) -> str:
    """The text to fill in: a symbol, or symbol and addend in parentheses."""
    name = image.name(reloc.symbol)
    if not reloc.addend:
        return name
    place = code_place(image, reloc.symbol, reloc.addend)
    if place is not None:
        return f"({name} + {labels.need(*place)}@srel)"
    if signed and reloc.addend < 0:
        return f"({name} + -{-reloc.addend:#x})"
    return f"({name} + {reloc.addend & (1 << 64) - 1:#x})"


def relocated(image: Image, labels: Labels, text: str, reloc: ElfReloc) -> str:
    """An instruction's text with the relocation in it; unchanged if it fills in no operand."""
    kind = relocations.kind(reloc.type)
    if kind is None:
        return text
    if kind.field == "constant":
        match = _CONSTANT.search(text)
        if match is None:
            return text
        inner = expression(image, labels, reloc, signed=True)
        index = f"{match[1]}+" if match[1] not in (None, "RZ", "URZ") else ""
        return f"{text[: match.start()]}c[{index}`({inner})]{text[match.end() :]}"
    inner = expression(image, labels, reloc, signed=not kind.wrap)
    if kind.field == "offset":
        match = _ADDRESS.search(text)
        if match is None:
            return text
        base = "" if match[1] in ("", "RZ", "RZ+") else f"{match[1].rstrip('+')}+"
        return f"{text[: match.start()]}[{base}`({inner})]{text[match.end() :]}"
    filled = kind.wrap.format(inner) if kind.wrap else f"`({inner})"
    return _in_place_of_number(text, filled, kind.field == "target")


def _in_place_of_number(text: str, filled: str, append: bool) -> str:
    """The text with its last number replaced; a target of 0 is not printed, so the name is
    appended."""
    head, *operands = re.split(r"(, | (?=[^ ]+$))", text)
    parts = [head, *operands]
    for at in range(len(parts) - 1, -1, -1):
        if _NUMBER.match(parts[at].strip()):
            parts[at] = filled
            return "".join(parts)
    return f"{text} {filled}" if append else text


def action(image: Image, reloc: ElfReloc) -> str | None:
    """The comment for a word that the linker replaces entirely; None for other relocations."""
    name = relocations.relocation_name(reloc.type)
    if name in ("R_CUDA_INSTRUCTION64", "R_CUDA_INSTRUCTION128"):
        return f'(*"RELOCATOR MAIN,{image.name(reloc.symbol)}"*)'
    if name == "R_CUDA_YIELD_OPCODE9_0":
        return f'(*"RELOCATOR OPCODE,YIELD,{reloc.addend}"*)'
    return '(*""*)' if name == "R_CUDA_YIELD_CLEAR_PRED4_87" else None

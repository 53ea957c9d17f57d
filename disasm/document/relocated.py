"""Operands that a relocation fills in: ``32@lo(table)``, ``c[`((coeff + 0x4))]``, ```(callee)``."""

from __future__ import annotations

import re

from sassxlate.disasm.containers import relocs
from sassxlate.disasm.containers.elf import ElfReloc

from .image import Image
from .labels import Labels, code_place

_CONSTANT = re.compile(r"c\[0x[0-9a-f]+\]\[(?:(U?R\d+|U?RZ)(?:\.X\w+)?)?\+?(?:-?0x[0-9a-f]+)?\]")
_NUMBER = re.compile(r"^(?:-?0x[0-9a-f]+|[-+]?[0-9.]+(?:e[-+][0-9]+)?|[-+](?:INF|QNAN|SNAN))$")


def expression(image: Image, labels: Labels, reloc: ElfReloc, signed: bool) -> str:
    """What is filled in: a symbol, or symbol and addend in parentheses."""
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
    """An instruction's text with the relocation in it; as it stands if it fills in no operand."""
    kind = relocs.kind(reloc.type)
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
    filled = kind.wrap.format(inner) if kind.wrap else f"`({inner})"
    return _in_place_of_number(text, filled)


def _in_place_of_number(text: str, filled: str) -> str:
    """The text with its last number replaced."""
    head, *operands = re.split(r"(, | (?=[^ ]+$))", text)
    parts = [head, *operands]
    for at in range(len(parts) - 1, -1, -1):
        if _NUMBER.match(parts[at].strip()):
            parts[at] = filled
            return "".join(parts)
    return f"{text} {filled}"

"""The bit fields of a form, and the picture of a word."""

from __future__ import annotations

from sassxlate.disasm.sass.codec.operand_bits import operand_bits
from sassxlate.disasm.sass.reference.numbers import ranges
from sassxlate.disasm.sass.reference.operands import describe
from sassxlate.disasm.sass.tables.spec import Idiom, Mod, Row

OPCODE, GUARD, CONTROL = (0xFFF | 1 << 91, 0xF << 12, 0x1FFFFF << 105)
KEYS = "abcdefghijklmnpqrstuvwxyzABDEFHIJKLMNPQRSTUVWXYZ"  # without o, C, G and O
Field = tuple[str, int, str]  # its name, its bits, its description


def fields(row: Row, generation: int) -> list[Field]:
    """Modifiers and operands with their own bits, in this order; no two share a bit.

    A bit that several fields use is shown as the first one's, and the text of each lists
    all of its bits.
    """
    constant = 0
    for fixed, _ in row.fixed:
        constant |= fixed.mask
    taken = OPCODE | GUARD | CONTROL | constant
    out: list[Field] = []
    plain = [m for m in row.mods if isinstance(m, Mod)]
    rest: list[tuple[str, int, str]] = [
        (f".{m.name}", m.field.mask, "modifier") for m in plain if m.field.parts
    ]
    for role, slot in row.operands.items():
        rest.append((role, operand_bits(slot, generation), describe(slot, generation)))
    idioms = [m for m in row.mods if isinstance(m, Idiom)]
    rest += [(f".{m.name}", m.field.mask, f"modifier; of {ranges(m.field.mask)}") for m in idioms]
    for name, mask, text in rest:
        out.append((name, mask & ~taken, text))
        taken |= mask
    return out


def bitmap(row: Row, generation: int) -> tuple[str, dict[str, str]]:
    """(128 characters, bit 127 first; key of each field that has bits of its own)."""
    cells = ["."] * 128

    def fill(mask: int, key: str) -> None:
        for i in range(128):
            if mask >> i & 1:
                cells[i] = key

    for free, key in ((row.free, "-"), (row.ones, "+"), (row.reserved, "!")):
        for field in free:
            fill(field.mask, key)
    keys: dict[str, str] = {}
    names = iter(KEYS)
    for name, mask, _ in fields(row, generation):
        if mask:
            keys[name] = next(names)
            fill(mask, keys[name])
    fill(CONTROL, "C")
    fill(GUARD, "G")
    for i in range(12):
        cells[i] = str(row.opcode >> i & 1)
    cells[91] = str(row.opcode >> 12 & 1)
    for fixed, value in row.fixed:
        place = 0
        for lo, width in fixed.parts:
            for i in range(width):
                cells[lo + i] = str(value >> place & 1)
                place += 1
    return "".join(reversed(cells)), keys


def picture(row: Row, generation: int) -> list[str]:
    """The bits in four lines of 32, the highest first, in groups of eight."""
    text, _ = bitmap(row, generation)
    lines: list[str] = []
    for i in range(4):
        part = text[32 * i : 32 * i + 32]
        groups = " ".join(part[j : j + 8] for j in range(0, 32, 8))
        lines.append(f"{127 - 32 * i:3} {groups} {96 - 32 * i:2}")
    return lines

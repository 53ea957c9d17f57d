"""The words of a row that are instructions: as ``tools/witness/nvdisasm/probe/__main__.py`` found
by probing nvdisasm.

Rows define the meaning of fields.  Not every combination of values is an instruction: sizes go with
some memory orders only, roundings with some types, barriers with instructions that take time.
``tables/legal.json`` holds, for each row and generation,

* ``reserved``: bits that belong to no field and that, if set, make another instruction or none;
* ``ignored``: bits that may hold anything;
* the scheduling information that the form takes;
* groups of bits with the values that they may have together.

A row that is not in the file allows everything that its fields define.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from sassxlate.disasm.sass.tables.spec import Operand, R, Row
from sassxlate.errors import DecodeError

PATH = Path(__file__).parents[1] / "tables" / "legal.json"
_REUSE: Mapping[int | None, int] = {122: 1, 123: 2, 124: 4}
CONTROL_BITS = (0x7FF << 105) | (7 << 122)  # stall, barriers and reuse


def name_of(opcode: int, match_mask: int, match_value: int) -> str:
    """The identifier of a row within a generation: its opcode and its fixed bits."""
    return f"{opcode:04x}" + (f" {match_mask:x} {match_value:x}" if match_mask else "")


def gather(word: int, mask: int) -> int:
    """The bits of a mask, packed together."""
    value = shift = 0
    while mask:
        low = mask & -mask
        width = (~(mask // low) & mask // low + 1).bit_length() - 1
        ones = (1 << width) - 1
        value |= (word // low & ones) << shift
        shift += width
        mask &= ~(ones * low)
    return value


@dataclass(frozen=True, slots=True)
class Group:
    """Bits whose legal values are those in the bit map ``taken``, by the number that the bits
    form."""

    mask: int
    taken: int


@dataclass(frozen=True, slots=True)
class Legality:
    """The values that a form allows in one generation."""

    reserved: int = 0
    ignored: int = 0
    write: int = 0xFF  # barriers set by a result, as a bit map
    read: int = 0xFF  # barriers set when operands were read
    stall: int = (1 << 256) - 1  # stall and yield (5 bits) below reuse (3 bits)
    groups: tuple[Group, ...] = ()

    @property
    def reuse(self) -> int:
        """Which of the three reuse bits keep a register (bit 0 is bit 122 of the word)."""
        taken = self.stall
        values = {v for v in range(8) if taken >> (v << 5 | 22) & 1}
        if 6 not in values and {1, 2, 4} <= values:
            return 0  # these bits hold something else
        return sum(1 << i for i in range(3) if 1 << i in values)

    @property
    def mask(self) -> int:
        """The bits of all groups."""
        mask = 0
        for group in self.groups:
            mask |= group.mask
        return mask

    def takes_control(self, bits: int) -> bool:
        """Whether scheduling information (bits 105 to 124 of the word) is allowed for the form."""
        return bool(
            self.write >> (bits >> 5 & 7)
            & self.read >> (bits >> 8 & 7)
            & self.stall >> (bits & 31 | bits >> 12 & 0xE0)
            & 1
        )

    def check(self, word: int, mnemonic: str) -> None:
        """Raises :class:`DecodeError` SX0202 if values do not go together."""
        for group in self.groups:
            if not group.taken >> gather(word, group.mask) & 1:
                which = [i for i in range(128) if group.mask >> i & 1]
                raise DecodeError(
                    "SX0202", f"{mnemonic}: the values of bits {_ranges(which)} do not go together"
                )


def _ranges(bits: list[int]) -> str:
    """``72-75, 80``."""
    out: list[str] = []
    for bit in bits:
        if bit - 1 in bits:
            first = out[-1].partition("-")[0]
            out[-1] = f"{first}-{bit}"
        else:
            out.append(str(bit))
    return ", ".join(out)


ANYTHING = Legality()


@cache
def load() -> Mapping[str, Any]:
    """The file; empty if there is none."""
    if not PATH.exists():
        return {"witness": "", "groups": [], "profiles": [], "rows": {}}
    found: Mapping[str, Any] = json.loads(PATH.read_text())
    return found


@cache
def _group(number: int) -> Group:
    mask, taken = load()["groups"][number]
    return Group(int(mask, 16), int(taken, 16))


@cache
def _profile(number: int) -> Legality:
    reserved, ignored, control, *groups = load()["profiles"][number]
    return Legality(
        int(reserved, 16),
        int(ignored, 16),
        int(control[:2], 16),
        int(control[2:4], 16),
        int(control[4:], 16),
        tuple(_group(number) for number in groups),
    )


@cache
def _generation(generation: int) -> Mapping[str, int]:
    return {
        name: int(number)
        for name, profiles in load()["rows"].items()
        for number, generations in profiles.items()
        if generation in generations
    }


def find(opcode: int, match_mask: int, match_value: int, generation: int) -> Legality:
    """The values that a row allows; any if it was not probed."""
    number = _generation(generation).get(name_of(opcode, match_mask, match_value))
    return ANYTHING if number is None else _profile(number)


def without_reuse(row: Row, legality: Legality) -> Row:
    """The row with register reuse only where the form allows it."""
    operands: dict[str, Operand] = {}
    for role, slot in row.operands.items():
        kept = slot.reuse if isinstance(slot, R) else None
        if isinstance(slot, R) and kept in _REUSE and not legality.reuse & _REUSE[kept]:
            slot = replace(slot, reuse=None)
        operands[role] = slot
    return row if operands == row.operands else row.with_(operands=operands)

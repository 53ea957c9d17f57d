"""Machine code as pieces, an instruction each, and the few scalar instructions that are read and
written in the code of every family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sassxlate.lowering.target import Family
from sassxlate.lowering.tier.numbers.modes import NEAREST


@dataclass(frozen=True, slots=True)
class Piece:
    """An instruction at its offset.  ``target`` is the offset that a branch goes to; ``real`` what
    it stands for, which needs the mode ``mode``.  ``text`` is what a listing has; ``clause`` says
    how many instructions must follow it with nothing in between, ``blind`` that it does the same in
    every mode."""

    at: int
    data: bytes
    target: int | None = None
    real: bytes | None = None
    mode: int = NEAREST
    text: str = ""
    clause: int = 0
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Opcodes:
    """A family's opcodes of SOP1, SOPK's of the call, and SOPP's of the branch and the clause."""

    getpc: int
    setpc: int
    swappc: int
    sext_i16: int
    call: int
    branch: int
    clause: int


OPCODES: Final[Mapping[Family, Opcodes]] = MappingProxyType({
    "RDNA2": Opcodes(getpc=0x1F, setpc=0x20, swappc=0x21, sext_i16=0x1A, call=0x16,
                     branch=0x02, clause=0x21),
    "RDNA3": Opcodes(getpc=0x47, setpc=0x48, swappc=0x49, sext_i16=0x0F, call=0x14,
                     branch=0x20, clause=0x05),
    "RDNA4": Opcodes(getpc=0x47, setpc=0x48, swappc=0x49, sext_i16=0x0F, call=0x14,
                     branch=0x20, clause=0x05),
})  # fmt: skip
SOP1: Final = 0x17D  # bits 31:23 of the first word
SOPP: Final = 0x17F
NOP: Final = bytes.fromhex("000080bf")  # s_nop 0


def first_word(data: bytes) -> int:
    return int.from_bytes(data[:4], "little")


def one_source(data: bytes) -> int | None:
    """The opcode of a scalar instruction with one source."""
    word = first_word(data)
    return word >> 8 & 0xFF if word >> 23 == SOP1 else None


def without_operands(data: bytes) -> int | None:
    """The opcode of a scalar instruction without operands: a wait, a branch, ..."""
    word = first_word(data)
    return word >> 16 & 0x7F if word >> 23 == SOPP else None


def in_clause(data: bytes, ops: Opcodes) -> int:
    """How many instructions an s_clause has; 0 if it is none."""
    return (first_word(data) & 0x3F) + 1 if without_operands(data) == ops.clause else 0


def branch(ops: Opcodes) -> bytes:
    """An s_branch without its distance."""
    return (SOPP << 23 | ops.branch << 16).to_bytes(4, "little")


__all__ = [
    "NOP", "OPCODES", "SOPP", "Opcodes", "Piece", "branch", "first_word", "in_clause",
    "one_source", "without_operands",
]  # fmt: skip

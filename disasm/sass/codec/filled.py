"""Decodes a section's words as objects at once, as a translation does."""

from __future__ import annotations

from sassxlate import collector
from sassxlate.disasm.sass.codec.decode import (
    WORD_BYTES,
    BadWord,
    decode_or_bad,
    generation_of,
    index,
)
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import DecodeError


def decode_filled(code: bytes, arch: int) -> list[Instruction | BadWord]:
    """The instructions of a section as objects, in order, without words of zeros, which are no
    instructions: between functions that stay at their places in a module there are many.

    Raises as :func:`.section.decode_section`.
    """
    if len(code) % WORD_BYTES:
        raise DecodeError("SX0205", f"{len(code)} bytes of code are not a whole number of words")
    table = index(generation_of(arch))
    found: list[Instruction | BadWord] = []
    with collector.paused():
        for offset in range(0, len(code), WORD_BYTES):
            word = int.from_bytes(code[offset : offset + WORD_BYTES], "little")
            if word:
                found.append(decode_or_bad(table, word, offset, arch, True))
    return found


__all__ = ["decode_filled"]

"""Numbers as words: any value can be expressed, in few words if it is a common one.

A value of 32 or 64 bits is one word if it is small (``#-16`` to ``#64``) or a common float
(``1.0``, by the bits of the width), otherwise bytes after a word that gives their number and
position: ``x2 b01 b00`` is 0x100, ``f2 b40 b49`` is 0x40490000 (the bytes at the top).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from sassxlate.errors import EncodeError

Bits: TypeAlias = Literal[32, 64]
SMALL: Final = range(-16, 65)
_FLOATS: Final = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
_INVERSE_TAU: Final = {32: 0x3E22F983, 64: 0x3FC45F306DC9C882}
NUMBER_WORDS: Final = (
    *(f"#{n}" for n in SMALL),
    *_FLOATS,
    "1/tau",
    *(f"x{n}" for n in range(1, 9)),
    *(f"f{n}" for n in range(1, 8)),
    *(f"b{n:02x}" for n in range(256)),
)


def _bits(word: str, bits: int) -> int:
    layout = "<f" if bits == 32 else "<d"
    return int.from_bytes(struct.pack(layout, float(word)), "little")


_BY_VALUE: Final = {
    bits: {_bits(w, bits): w for w in _FLOATS} | {_INVERSE_TAU[bits]: "1/tau"} for bits in (32, 64)
}
_BY_WORD: Final = {bits: {w: v for v, w in table.items()} for bits, table in _BY_VALUE.items()}


def number(value: int, bits: Bits = 32) -> list[str]:
    """The words of a value, taken modulo 2 to its width."""
    value &= (1 << bits) - 1
    signed = value - (value >> (bits - 1) << bits)
    if signed in SMALL:
        return [f"#{signed}"]
    usual = _BY_VALUE[bits].get(value)
    if usual is not None:
        return [usual]
    size = bits // 8
    data = value.to_bytes(size, "big")
    low, high = data.lstrip(b"\0"), data.rstrip(b"\0")
    head, data = ("f", high) if len(high) < len(low) else ("x", low)
    return [f"{head}{len(data)}", *(f"b{byte:02x}" for byte in data)]


def is_number(word: str) -> bool:
    """Whether a number begins with this word."""
    return word in _STARTS


_STARTS: Final = frozenset(w for w in NUMBER_WORDS if not w.startswith("b"))


def value_of(words: Sequence[str], at: int, bits: Bits = 32) -> tuple[int, int]:
    """The value at ``words[at]``, signed if its top bit is set, and the index after it.

    Raises EncodeError SX0540 if there is no number, or a wider one.
    """
    word = words[at] if at < len(words) else ""
    if word not in _STARTS:
        raise EncodeError("SX0540", f"{word!r} is not a number")
    if word.startswith("#"):
        return int(word[1:]), at + 1
    if word in _BY_WORD[bits]:
        value, at = _BY_WORD[bits][word], at + 1
    else:
        n, size = int(word[1:]), bits // 8
        data = words[at + 1 : at + 1 + n]
        if n > size or len(data) < n or not all(_is_byte(b) for b in data):
            raise EncodeError(
                "SX0540", f"{' '.join((word, *data))!r} is not a number of {bits} bits"
            )
        value = int.from_bytes(bytes(int(b[1:], 16) for b in data), "big")
        value <<= 8 * (size - n) if word.startswith("f") else 0
        at += 1 + n
    return value - (value >> (bits - 1) << bits), at


def _is_byte(word: str) -> bool:
    return len(word) == 3 and word in _BYTES


_BYTES: Final = frozenset(f"b{n:02x}" for n in range(256))

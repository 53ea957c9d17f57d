"""MessagePack as code-object metadata uses it: maps, arrays, strings, integers, booleans, nil.

Integers and strings take their shortest form and maps keep the given order, so the bytes equal
LLVM's if keys are sorted.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

from sassxlate.errors import EncodeError

Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | None"

_MAX_DEPTH: Final = 32


def _length(n: int, fix: int, limit: int, codes: tuple[int | None, int, int]) -> bytes:
    """The head of a string, array or map of ``n`` items."""
    if n < limit:
        return bytes([fix | n])
    if n < 0x100 and codes[0] is not None:
        return bytes([codes[0], n])
    if n < 0x10000:
        return struct.pack(">BH", codes[1], n)
    return struct.pack(">BI", codes[2], n)


def _integer(value: int) -> bytes:
    if value >= 0:
        if value < 0x80:
            return bytes([value])
        for code, fmt, top in ((0xCC, "B", 8), (0xCD, "H", 16), (0xCE, "I", 32), (0xCF, "Q", 64)):
            if value < 1 << top:
                return struct.pack(f">B{fmt}", code, value)
    elif value >= -32:
        return struct.pack("b", value)
    else:
        for code, fmt, top in ((0xD0, "b", 7), (0xD1, "h", 15), (0xD2, "i", 31), (0xD3, "q", 63)):
            if value >= -(1 << top):
                return struct.pack(f">B{fmt}", code, value)
    raise EncodeError("SX0530", f"the integer {value} has more than 64 bits")


def pack(value: Value) -> bytes:
    """A value as MessagePack.

    Raises:
        EncodeError: SX0530, an integer of more than 64 bits.
    """
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return struct.pack(">Bd", 0xCB, value)
    if isinstance(value, str):
        raw = value.encode()
        return _length(len(raw), 0xA0, 32, (0xD9, 0xDA, 0xDB)) + raw
    if isinstance(value, bytes):
        return _length(len(value), 0, 0, (0xC4, 0xC5, 0xC6)) + value
    if isinstance(value, list):
        head = _length(len(value), 0x90, 16, (None, 0xDC, 0xDD))
        return head + b"".join(pack(item) for item in value)
    head = _length(len(value), 0x80, 16, (None, 0xDE, 0xDF))
    return head + b"".join(pack(key) + pack(item) for key, item in value.items())


# code: (kind, struct format of the length or the value)
_FORMS: Final[dict[int, tuple[str, str]]] = {
    0xC4: ("bytes", "B"),
    0xC5: ("bytes", "H"),
    0xC6: ("bytes", "I"),
    0xCA: ("value", "f"),
    0xCB: ("value", "d"),
    0xCC: ("value", "B"),
    0xCD: ("value", "H"),
    0xCE: ("value", "I"),
    0xCF: ("value", "Q"),
    0xD0: ("value", "b"),
    0xD1: ("value", "h"),
    0xD2: ("value", "i"),
    0xD3: ("value", "q"),
    0xD9: ("str", "B"),
    0xDA: ("str", "H"),
    0xDB: ("str", "I"),
    0xDC: ("list", "H"),
    0xDD: ("list", "I"),
    0xDE: ("map", "H"),
    0xDF: ("map", "I"),
}


class _Reader:
    """A position in the bytes; methods advance it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise EncodeError("SX0534", "the metadata ends inside a value")
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, fmt: str) -> int | float:
        value: int | float = struct.unpack(f">{fmt}", self.take(struct.calcsize(f">{fmt}")))[0]
        return value

    def value(self, depth: int) -> Value:
        if depth > _MAX_DEPTH:
            raise EncodeError("SX0534", "the metadata is nested too deeply")
        code = self.take(1)[0]
        if code < 0x80:
            return code
        if code >= 0xE0:
            return code - 0x100
        if code in (0xC0, 0xC2, 0xC3):
            return None if code == 0xC0 else code == 0xC3
        if code < 0xC0:
            kind = "map" if code < 0x90 else "list" if code < 0xA0 else "str"
            return self.sized(kind, code & (0x1F if kind == "str" else 0xF), depth)
        if code not in _FORMS:
            raise EncodeError("SX0534", f"the metadata has a value of unknown kind {code:#04x}")
        kind, fmt = _FORMS[code]
        number = self.number(fmt)
        return number if kind == "value" else self.sized(kind, int(number), depth)

    def sized(self, kind: str, n: int, depth: int) -> Value:
        if kind == "bytes":
            return self.take(n)
        if kind == "str":
            return self.text(n)
        if kind == "list":
            return [self.value(depth + 1) for _ in range(n)]
        out: dict[str, Value] = {}
        for _ in range(n):
            key = self.value(depth + 1)
            if not isinstance(key, str):
                raise EncodeError("SX0534", "a key of the metadata is not a string")
            out[key] = self.value(depth + 1)
        return out

    def text(self, n: int) -> str:
        try:
            return self.take(n).decode()
        except UnicodeDecodeError:
            raise EncodeError("SX0534", "a string of the metadata is not UTF-8") from None


def unpack(data: bytes) -> Value:
    """The first value of some MessagePack bytes.

    Raises:
        EncodeError: SX0534, truncated, nested too deeply, or not MessagePack.
    """
    return _Reader(data).value(0)

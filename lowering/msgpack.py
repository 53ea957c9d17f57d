"""The part of MessagePack that AMD's metadata note needs, written and read."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = "Mapping[str, Value] | Sequence[Value] | str | int | bool"


def pack(value: Value) -> bytes:
    """The shortest MessagePack form of maps with text keys, lists, text, booleans and naturals."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _pack_int(value)
    if isinstance(value, str):
        raw = value.encode()
        return _head(len(raw), 0xA0, 32, ((0xD9, "B"), (0xDA, ">H"), (0xDB, ">I"))) + raw
    if isinstance(value, Mapping):
        head = _head(len(value), 0x80, 16, ((0xDE, ">H"), (0xDF, ">I")))
        return head + b"".join(pack(k) + pack(v) for k, v in value.items())
    head = _head(len(value), 0x90, 16, ((0xDC, ">H"), (0xDD, ">I")))
    return head + b"".join(pack(v) for v in value)


def _head(n: int, fix: int, limit: int, longer: Sequence[tuple[int, str]]) -> bytes:
    if n < limit:
        return bytes([fix | n])
    for code, form in longer:
        if n < 1 << 8 * struct.calcsize(form):
            return bytes([code]) + struct.pack(form, n)
    raise ValueError(n)


def _pack_int(n: int) -> bytes:
    if 0 <= n < 128:
        return bytes([n])
    for code, form in ((0xCC, "B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q")):
        if n < 1 << 8 * struct.calcsize(form):
            return bytes([code]) + struct.pack(form, n)
    raise ValueError(n)

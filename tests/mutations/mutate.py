"""Seeded damage to files: truncations, flipped bits, overwritten and moved words."""

from __future__ import annotations

import random
from collections.abc import Sequence

# Numbers at which sizes, counts and offsets change their nature.
_EDGES = (0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF)
Span = tuple[int, int]  # first byte, and the byte after the last


def mutated(data: bytes, seed: int, spans: Sequence[Span] = ()) -> bytes:
    """``data`` with the damage that ``seed`` names.

    A fifth are truncations, a fifth hits the first 256 bytes, a fifth the last 3,000, where tables
    stand; the rest hits anywhere.  Given ``spans``, every place is chosen in one of them, and
    nothing is cut off.
    """
    chance = random.Random(seed)
    kind = seed % 5
    if kind == 0 and not spans:
        return data[: chance.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        start, end = chance.choice(spans) if spans else (0, len(data))
        if kind == 1:
            end = min(end, start + 256)
        elif kind == 2:
            start = max(start, end - 3000)
        _damage(changed, chance, chance.randrange(start, end), end)
    return bytes(changed)


def _damage(changed: bytearray, chance: random.Random, at: int, end: int) -> None:
    how = chance.random()
    size = min(chance.choice((1, 2, 4, 8)), end - at)
    if how < 0.7:
        changed[at] ^= 1 << chance.randrange(8)
    elif how < 0.85:
        changed[at : at + size] = chance.choice(_EDGES).to_bytes(8, "little")[:size]
    elif how < 0.95:
        changed[at : at + size] = chance.randbytes(size)
    else:  # bytes from another place: a field that is right by itself and wrong here
        other = chance.randrange(len(changed) - size + 1)
        changed[at : at + size] = changed[other : other + size]

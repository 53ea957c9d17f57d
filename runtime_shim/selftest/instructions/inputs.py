"""Seeded, edge-biased operands for single instructions, by the kinds of the table of semantics."""

from __future__ import annotations

import random

WIDTH = {
    **{"b16": 16, "f16": 16, "b32": 32, "f32": 32, "b64": 64, "f64": 64, "m": 1, "raw": 32},
    **{"f16lo": 16, "f16hi": 16, "p16": 32, "pf16": 32},
}
_INTEGERS = (
    *(0, 1, 2, -1, -2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 31, 32, 33, 63, 64),
    *(0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 1 << 63),
)
# Zeros, denormals, the smallest and largest numbers, infinities, NaNs, 1 and its neighbours, 0.5,
# numbers near the ends of integer ranges.
_FLOATS = {
    16: (
        *(0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7E00, 0x3C00),
        *(0xBC00, 0x3C01, 0x3BFF, 0x3800, 0x6400, 0x77FF),
    ),
    32: (
        *(0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF),
        *(0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0x3F800000, 0xBF800000, 0x3F800001),
        *(0x3F7FFFFF, 0x3F000000, 0x4B000001, 0x4F000000, 0xCF000000, 0x4F800000, 0x33000000),
    ),
    64: (
        *(0, 1 << 63, 1, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF),
        *(0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001, 0x7FF8000000000000),
        *(0x3FF0000000000000, 0xBFF0000000000000, 0x3FF0000000000001, 0x3FEFFFFFFFFFFFFF),
        *(0x41E0000000000000, 0xC1E0000000000000, 0x41F0000000000000, 0x0350000000000000),
    ),
}
_FORMAT = {16: (10, 5), 32: (23, 8), 64: (52, 11)}  # bits of mantissa and exponent


def value(rng: random.Random, kind: str) -> int:
    """A random operand: often an edge; floats often with similar exponents, so that sums cancel."""
    width = WIDTH[kind]
    if width == 1:
        return rng.getrandbits(1)
    if kind in ("p16", "pf16"):
        half = "f16" if kind == "pf16" else "b16"
        return value(rng, half) << 16 | value(rng, half)
    if kind[0] == "f":
        return _float(rng, width)
    choice = rng.random()
    if choice < 0.35:
        return rng.choice(_INTEGERS) & ((1 << width) - 1)
    return 1 << rng.randrange(width) if choice < 0.5 else rng.getrandbits(width)


def _float(rng: random.Random, width: int) -> int:
    mantissa, exponent = _FORMAT[width]
    choice = rng.random()
    if choice < 0.3:
        return rng.choice(_FLOATS[width])
    if choice > 0.85:
        return rng.getrandbits(width)
    # Near the denormals, or near 1.
    biased = rng.randint(0, 3) if choice > 0.75 else (1 << (exponent - 1)) - 1 + rng.randint(-4, 4)
    return rng.getrandbits(1) << (width - 1) | biased << mantissa | rng.getrandbits(mantissa)

"""The inputs of the sweep's kernels: streams of 128 words, biased to the edges of a type.

A profile is a letter a stream: ``i`` integers, ``s`` integers below 40, ``r`` random bits, ``f``
floats, ``E`` two halves, ``B`` two bf16, ``l`` and ``d`` integers and doubles of 64 bits, whose
high words are the next stream (whose letter is ``-``); ``a`` floats from -8 to 8, ``p`` from 0.
"""

from __future__ import annotations

import random
import struct

import numpy as np
import numpy.typing as npt

from .kernel import THREADS

Words = npt.NDArray[np.uint32]


def _with_signs(bits: list[int], sign: int) -> list[int]:
    return [b ^ s for b in bits for s in (0, sign)]


_INT = [
    *range(9), 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 0x7FFF, 0x8000, 0x8001,
    0xFFFF, 0x10000, 0x10001, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF,
    0xFFFFFFF0, 0xFFFF8000, 0xFFFF7FFF, 0x55555555, 0xAAAAAAAA, 0x01010101, 0x80808080, 0x7F7F7F7F,
    0x00FF00FF, 0xFF00FF00, 0x12345678, 0x89ABCDEF, 0x3F800000, 0x00800000, 0x007FFFFF, 0x7F800000,
]  # fmt: skip
_LONG = [
    0, 1, 2, 3, 31, 32, 33, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000, 0x100000001,
    0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE,
    0xFFFFFFFF00000000, 0xFFFFFFFF80000000, 0xFFFFFFFF7FFFFFFF, 0x5555555555555555, 0x123456789ABCDEF0,
    0x0020000000000000, 0x0020000000000001, 0x003FFFFFFFFFFFFF, 0x7FFFFFFFFFFFFC00, 0xFFFFFFFFFFFFF800,
]  # fmt: skip
_FLOAT = _with_signs([
    0, 1, 2, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x3F800000, 0x3F7FFFFF, 0x3F800001,
    0x40000000, 0x40400000, 0x3F000000, 0x3F000001, 0x3EFFFFFF, 0x3FC00000, 0x40200000, 0x40490FDB,
    0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4B7FFFFF, 0x4B800000, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF,
    0x4F800000, 0x5EFFFFFF, 0x5F000000, 0x5F800000, 0x7F7FFFFF, 0x7F7FFFFE, 0x7E800000, 0x33800000,
    0x34000000, 0x0D800000, 0x1E000000, 0x20000000, 0x477FE000, 0x477FF000, 0x38800000, 0x33000000,
    0x42FE0000, 0x437F0000, 0x43000000, 0x41B80000, 0x7F800000, 0x7F800000, 0x7FC00000, 0x7FFFFFFF,
    0x7F800001, 0x7FA00000, 0x7FC12345,
], 0x80000000)  # fmt: skip
_HALF = _with_signs([
    0, 1, 2, 0x200, 0x3FF, 0x400, 0x401, 0x3C00, 0x3BFF, 0x3C01, 0x4000, 0x4200, 0x3800, 0x3801,
    0x37FF, 0x3E00, 0x4100, 0x63FF, 0x6400, 0x6401, 0x67FF, 0x6800, 0x7BFF, 0x7BFE, 0x7C00, 0x7E00,
    0x7FFF, 0x7C01, 0x7D00, 0x5BF8, 0x57F0,
], 0x8000)  # fmt: skip
_BF16 = _with_signs([
    0, 1, 2, 0x40, 0x7F, 0x80, 0x81, 0x3F80, 0x3F7F, 0x3F81, 0x4000, 0x4040, 0x3F00, 0x3F01, 0x3FC0,
    0x4020, 0x4300, 0x437F, 0x4380, 0x4F00, 0x4F80, 0x7F7F, 0x7F7E, 0x7F80, 0x7FC0, 0x7FFF, 0x7F81,
], 0x8000)  # fmt: skip
_DOUBLE = _with_signs([
    0, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0x3FEFFFFFFFFFFFFF,
    0x3FF0000000000001, 0x4000000000000000, 0x4008000000000000, 0x3FE0000000000000, 0x3FE0000000000001,
    0x3FF8000000000000, 0x4004000000000000, 0x400921FB54442D18, 0x4330000000000000, 0x433FFFFFFFFFFFFF,
    0x4340000000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0x41EFFFFFFFE00000, 0x41F0000000000000,
    0x43DFFFFFFFFFFFFF, 0x43E0000000000000, 0x43F0000000000000, 0x7FEFFFFFFFFFFFFF, 0x47EFFFFFE0000000,
    0x47EFFFFFF0000000, 0x47F0000000000000, 0x3810000000000000, 0x36A0000000000000, 0x380FFFFFFFFFFFFF,
    0x40EFFC0000000000, 0x3F10000000000000, 0x3E70000000000000, 0x7FF0000000000000, 0x7FF0000000000000,
    0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000001, 0x7FF4000000000000,
], 1 << 63)  # fmt: skip


def _bits32(x: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def _stream(letter: str, rng: random.Random, count: int) -> list[int]:
    """``count`` values: two of three from the edges, in random order; 64-bit ones for ``l`` and ``d``."""
    wide = letter in "ld"
    edges = {"i": _INT, "f": _FLOAT, "l": _LONG, "d": _DOUBLE}.get(letter)
    if letter in "EB":
        table = _HALF if letter == "E" else _BF16

        def part() -> int:
            return rng.choice(table) if rng.random() < 0.67 else rng.getrandbits(16)

        return [part() | part() << 16 for _ in range(count)]
    if letter == "s":
        return [rng.randrange(40) for _ in range(count)]
    if letter in "ap":
        low = 0.0 if letter == "p" else -8.0
        return [_bits32(rng.uniform(low, 8.0)) for _ in range(count)]
    if edges is None:
        return [rng.getrandbits(32) for _ in range(count)]
    values: list[int] = []
    for _ in range(count):
        r = rng.random()
        if r < 0.6:
            values.append(rng.choice(edges))
        elif r < 0.8 or letter not in "fd":
            values.append(rng.getrandbits(64 if wide else 32))
        else:  # of ordinary size, so that sums round
            exponent = rng.randrange(1011, 1036) if wide else rng.randrange(115, 140)
            sign = rng.getrandbits(1)
            values.append(
                (sign << 63 | exponent << 52 | rng.getrandbits(52))
                if wide
                else (sign << 31 | exponent << 23 | rng.getrandbits(23))
            )
    return values


def inputs(name: str, profiles: str, threads: int = THREADS) -> Words:
    """``in`` of the kernel ``name``: len(profiles) times ``threads`` words."""
    rng = random.Random(f"inputs {name}")
    words = np.zeros((max(len(profiles), 1), threads), np.uint32)
    for k, letter in enumerate(profiles):
        if letter == "-":
            continue
        values = np.array(_stream(letter, rng, threads), np.uint64)
        words[k] = values & 0xFFFFFFFF
        if letter in "ld":
            words[k + 1] = values >> 32
    return words

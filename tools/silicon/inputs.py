"""Edge-biased inputs: (class, vector, word) of a, b, c, d as pairs of words, then predicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .forms import CLASSES

WORDS = 10  # a vector: four pairs, the predicates' bits, one not used
_INTEGERS = np.array(
    [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000,
     0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0x00010000, 0x8000FFFF], dtype=np.uint32,
)  # fmt: skip
_FLOATS = np.array(
    [0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
     0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FFFFFFF, 1, 0x80000001, 0x007FFFFF,
     0x00800000, 0x3F7FFFFF, 0x3F800001, 0x4B000001, 0x4EFFFFFF, 0x4F000000, 0xCF000000,
     0x5F000000, 0x40490FDB], dtype=np.uint32,
)  # fmt: skip
_DOUBLES = np.array(
    [0, 1 << 63, 0x3FF0000000000000, 0xBFF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
     0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF, 1,
     0x8000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF,
     0x3FEFFFFFFFFFFFFF, 0x4330000000000001, 0x41DFFFFFFFC00000, 0x43E0000000000000,
     0x40EFFC0000000000, 0x3FE0000000000000], dtype=np.uint64,
)  # fmt: skip
_HALVES = np.array(
    [0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0x7C01, 0xFE01, 0x7FFF, 1, 0x8001, 0x3FF,
     0x400, 0x7BFF, 0xFBFF, 0x3BFF, 0x3C01, 0x5640, 0x6400, 0x3F80, 0x7F80, 0x7F7F, 0x0080,
     0x7FF7, 0xFFF7],
    dtype=np.uint16,
)  # fmt: skip


def _mixed(chance: np.random.Generator, values: NDArray[np.uint64], edges: NDArray[np.generic],
           share: float) -> NDArray[np.uint64]:  # fmt: skip
    at = chance.random(values.shape) < share
    values[at] = chance.choice(edges, int(at.sum())).astype(np.uint64)
    return values


def _integers(chance: np.random.Generator, n: int) -> NDArray[np.uint32]:
    raw = chance.integers(0, 1 << 32, (n, WORDS), dtype=np.uint64)
    raw >>= chance.choice(np.array([0, 0, 0, 7, 20, 27], dtype=np.uint64), raw.shape)
    power = np.uint64(1) << chance.integers(0, 32, raw.shape, dtype=np.uint64)
    power += chance.integers(-1, 2, raw.shape).astype(np.uint64)
    near = chance.random(raw.shape) < 0.15
    raw[near] = power[near]
    return _mixed(chance, raw, _INTEGERS, 0.25).astype(np.uint32)


def _patterns(
    chance: np.random.Generator, n: int, width: int, mantissa: int, edges: NDArray[np.generic]
) -> NDArray[np.uint64]:
    """Floats of a width: uniform bits, near 1, few mantissa bits, halfway cases, corners."""
    shape = (n, WORDS * 32 // width)
    raw = chance.integers(0, 1 << 63, shape, dtype=np.uint64) * np.uint64(2)
    raw |= chance.integers(0, 2, shape, dtype=np.uint64)
    raw >>= np.uint64(64 - width)
    bias = (1 << width - 2 - mantissa) - 1
    near = chance.random(shape) < 0.45
    field = chance.integers(bias - 12, bias + 13, shape).astype(np.uint64) << np.uint64(mantissa)
    keep = np.uint64((1 << width - 1) | (1 << mantissa) - 1)
    raw[near] = (raw[near] & keep) | field[near]
    short = chance.random(shape) < 0.3  # few bits: sums and products that are exact or halfway
    cut = np.uint64((1 << mantissa) - 1) >> chance.integers(1, mantissa, shape).astype(np.uint64)
    raw[short] &= ~cut[short]
    return _mixed(chance, raw, edges, 0.2)


def inputs(vectors: int, seed: int) -> NDArray[np.uint32]:
    """(class, vector, word), by the order of CLASSES; the same for the same seed."""
    chance = np.random.default_rng(seed)
    wide = _patterns(chance, vectors, 64, 52, _DOUBLES)
    parts = {
        "words": _integers(chance, vectors),
        "floats": _patterns(chance, vectors, 32, 23, _FLOATS).astype(np.uint32),
        "doubles": wide.view(np.uint32),
        "halves": _patterns(chance, vectors, 16, 10, _HALVES).astype(np.uint16).view(np.uint32),
    }
    out = np.stack([np.ascontiguousarray(parts[name]).reshape(vectors, WORDS) for name in CLASSES])
    out[:, :, 8] = chance.integers(0, 128, (len(CLASSES), vectors), dtype=np.uint32)
    return out

"""The multiprocessor that a block runs on."""

from __future__ import annotations

import random

import pytest

from sassxlate.disasm.sass.semantics.arithmetic.multiprocessor import multiprocessor, reciprocal
from sassxlate.domain.integers import Bits, Reference

D = Reference()


def word(value: int) -> Bits:
    return D.const(value, 32)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 48, 108, 132, 1024, 65537, (1 << 31) - 1, 1 << 31])
def test_it_is_the_blocks_number_modulo_their_number(count: int) -> None:
    """Exact for every number of 32 bits, with one correction; the edges are multiples of it."""
    rng = random.Random(count)
    edges = [k * count + d for k in (0, 1, (1 << 32) // count) for d in (-1, 0, 1)]
    values = [v for v in [*edges, (1 << 32) - 1] if 0 <= v < 1 << 32]
    values += [rng.getrandbits(32) for _ in range(500)]
    zero = word(0)
    for number in values:
        place = (word(number), zero, zero)
        got = multiprocessor(D, place, (word(1), word(1)), word(count), word(reciprocal(count)))
        assert got.n == number % count, number


def test_blocks_are_numbered_along_x_then_y_then_z() -> None:
    grid, count = (5, 3, 4), 7
    shape = (word(grid[0]), word(grid[1]))
    seen = [
        multiprocessor(
            D, (word(x), word(y), word(z)), shape, word(count), word(reciprocal(count))
        ).n
        for z in range(grid[2])
        for y in range(grid[1])
        for x in range(grid[0])
    ]
    assert seen == [n % count for n in range(60)]

"""Bitwise functions and shifts of pairs, against their definitions."""

from __future__ import annotations

import itertools
import random

import pytest

from sassxlate.disasm.sass.semantics.arithmetic.logic import table3
from sassxlate.domain.integers import Bits, Reference
from sassxlate.lowering.tier.numbers.bits import Shift, bitwise, funnel

D = Reference()
_MASK = (1 << 32) - 1


def test_every_table_in_every_row() -> None:
    """Eight bits of each operand are all rows of a table."""
    a, b, c = (Bits(n, 8) for n in (0xF0, 0xCC, 0xAA))
    for table in range(256):
        assert bitwise(D, table, a, b, c).n == table
        assert table3(D, table, a, b, c).n == table


@pytest.mark.parametrize("how", ["shl", "lshr", "ashr"])
def test_shifts_by_every_count(how: Shift) -> None:
    chance = random.Random(how)
    edges = (0, 1, 0x80000000, 0x7FFFFFFF, _MASK)
    words = [*itertools.product(edges, edges)]
    words += [(chance.getrandbits(32), chance.getrandbits(32)) for _ in range(20)]
    for (hi, lo), n, high in itertools.product(words, range(65), (False, True)):
        pair = hi << 32 | lo
        if how == "shl":
            shifted = pair << n
        else:
            shifted = (pair - (1 << 64) if how == "ashr" and hi >> 31 else pair) >> n
        wanted = shifted >> (32 if high else 0) & _MASK
        for known in (n, None):
            got = funnel(D, how, Bits(hi, 32), Bits(lo, 32), Bits(n, 32), known, high=high)
            assert got is None or got.n == wanted, (hi, lo, n, high, known)
            assert got is not None or known is None or n > 32
